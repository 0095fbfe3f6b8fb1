/* tok_table.h: strings numbered from 0, found by their bytes. */
#ifndef SOTTO_SRC_MODELS_COMMON_TOK_TABLE_H
#define SOTTO_SRC_MODELS_COMMON_TOK_TABLE_H

#include "sotto/base.h"

/* String i is blob[offset[i]] .. blob[offset[i + 1] - 2]; one byte after each belongs to nobody. */
typedef struct st_tok_table {
    const char *blob;
    const uint32_t *offset; /* [n + 1] */
    int32_t n;
    size_t longest;
    int32_t twice; /* the first that has the bytes of an earlier one, -1: none */
    struct st_tok_slot {
        uint32_t number; /* + 1, 0 = empty */
        uint32_t hash;   /* so that few other strings are looked at */
    } * slots;
    uint32_t mask;
} st_tok_table;

/* Blob and offsets must outlive the table. Empty strings are never found; of equal ones the first is. */
sotto_status st_tok_table_build(st_tok_table *t, const char *blob, const uint32_t *offset, int32_t n, sotto_error *err);
void st_tok_table_free(st_tok_table *t);
/* -1 when there is none. */
int32_t st_tok_table_find(const st_tok_table *t, const char *bytes, size_t n);

/* Places of a hash table for n entries: a power of two, at most half of which are taken. */
static inline uint32_t st_tok_slots(int32_t n)
{
    uint32_t n_slots = 16;
    while (n_slots < 2u * (uint32_t)n)
        n_slots *= 2;
    return n_slots;
}

static inline const char *st_tok_table_get(const st_tok_table *t, int32_t id, size_t *n)
{
    *n = t->offset[id + 1] - t->offset[id] - 1;
    return t->blob + t->offset[id];
}

#endif
