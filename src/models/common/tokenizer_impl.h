/* tokenizer_impl.h: what the types of tokenizers share. */
#ifndef SOTTO_SRC_MODELS_COMMON_TOKENIZER_IMPL_H
#define SOTTO_SRC_MODELS_COMMON_TOKENIZER_IMPL_H

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/tok_merge.h"
#include "models/common/tok_split.h"
#include "models/common/tok_table.h"
#include "models/common/tokenizer.h"

/* Longest text that is encoded at once: escaping may make three bytes of one, and parts are counted in int32. */
enum { ST_TOK_MAX_TEXT = INT32_MAX / 8 };

/* What a token is; more than one may hold. */
enum {
    ST_TOK_NORMAL = 1,
    ST_TOK_UNKNOWN = 2,
    ST_TOK_CONTROL = 4,
    ST_TOK_USER = 8, /* given to the model's tokenizer by its makers: found in the raw text before anything else */
    ST_TOK_UNUSED = 16,
    ST_TOK_BYTE = 32,
    ST_TOK_STRIP_LEFT = 64, /* white space before it is dropped */
    ST_TOK_STRIP_RIGHT = 128,
    ST_TOK_ENDS = 256,
    ST_TOK_APART = 512, /* no text gives it, whatever its letters join to: control tokens of the file */
    ST_TOK_HIDDEN = ST_TOK_CONTROL | ST_TOK_UNKNOWN /* not found in texts that are not trusted, not shown */
};

/* The ids with a purpose. */
enum {
    ST_ID_BOS,
    ST_ID_EOS,
    ST_ID_EOT, /* end of a turn */
    ST_ID_EOM, /* end of a message */
    ST_ID_UNK,
    ST_ID_PAD,
    ST_ID_FIM_PRE, /* filling in the middle */
    ST_ID_FIM_SUF,
    ST_ID_FIM_MID,
    ST_ID_FIM_PAD,
    ST_ID_FIM_REP,
    ST_ID_FIM_SEP,
    ST_N_IDS
};

/* The list a caller gave, which grows. */
typedef struct st_id_list {
    int32_t **ids;
    int64_t *capacity, *count;
} st_id_list;

static inline bool st_id_add(const st_id_list *list, int32_t id)
{
    if (!st_grow(list->ids, list->capacity, *list->count + 1, sizeof **list->ids))
        return false;
    (*list->ids)[(*list->count)++] = id;
    return true;
}

/* Memory of one call of encode. */
typedef struct st_tok_scratch {
    st_merge merge;
    st_pieces pieces;
    char *buffer, *spelled;
    int64_t buffer_capacity, spelled_capacity;
    struct st_unigram_step *steps;
    int64_t steps_capacity;
} st_tok_scratch;

void st_tok_scratch_free(st_tok_scratch *s);

typedef struct st_tok_type {
    const char *name;
    int32_t bos, eos, unk, pad; /* where the file says nothing; -1: none */
    bool add_bos, add_eos, add_space_prefix;
    /* Reads what only this type has into t->data; spellings, flags and scores are there. */
    sotto_status (*create)(st_tokenizer *t, const sotto_model_file *file, sotto_error *err);
    void (*free)(void *data);
    /* The n bytes at `text` without control tokens in them. `first`: at the start or right after a control token. */
    sotto_status (*encode)(const st_tokenizer *t, st_tok_scratch *s, const char *text, size_t n, bool first,
                           const st_id_list *out, sotto_error *err);
    /* Bytes that a normal token of this spelling adds to a text: at most n. */
    size_t (*unspell)(const char *spelling, size_t n, char *out);
} st_tok_type;

extern const st_tok_type st_tok_gpt2, st_tok_llama, st_tok_t5;

/* Tokens that are looked for in the raw text, by their length in bytes. */
typedef struct st_special_class {
    size_t length;
    uint8_t any[32], user[32]; /* bit: a first byte of one of them; user: of one that is found in every text */
} st_special_class;

struct st_tokenizer {
    const st_tok_type *type;
    void *data;
    char *blob;
    uint32_t *offset;
    st_tok_table spelling;
    uint16_t *flags; /* [n] */
    float *score;    /* [n] */
    char *bytes;     /* what tokens add to a text */
    uint32_t *bytes_offset;
    int32_t id[ST_N_IDS], newline;
    bool add_bos, add_eos, add_space_prefix;
    st_special_class *classes; /* longest first */
    int64_t n_classes, classes_capacity;
    char warning[200];
};

/* ---- tokenizer_load.c ---- */

/* A key that may be missing: *out is then as it was. */
sotto_status st_tok_get_int(const sotto_model_file *file, const char *key, int64_t *out, sotto_error *err);
sotto_status st_tok_get_bool(const sotto_model_file *file, const char *key, bool *out, sotto_error *err);
/* Strings of an array, at most INT32_MAX / 4; SOTTO_E_FORMAT when the key is missing or another kind. */
sotto_status st_tok_count_strings(const sotto_model_file *file, const char *key, int32_t *out, sotto_error *err);
sotto_status st_tok_load(st_tokenizer *t, const sotto_model_file *file, sotto_error *err);

/* ---- tokenizer_names.c ---- */

/* Purposes of tokens that the file does not tell, by their names, and which of them end a text. */
sotto_status st_tok_name_ids(st_tokenizer *t, const sotto_model_file *file, sotto_error *err);

/* ---- tok_specials.c ---- */

/* Part of a text: a token that was found in it, or (id -1) what is to be encoded. */
typedef struct st_fragment {
    size_t begin, end;
    int32_t id;
} st_fragment;

typedef struct st_fragments {
    st_fragment *at, *other;
    int64_t n, capacity, n_other, other_capacity;
} st_fragments;

sotto_status st_specials_build(st_tokenizer *t, sotto_error *err);
/* False without memory. */
bool st_specials_find(const st_tokenizer *t, const char *text, size_t n, const st_text_span *plain, int64_t n_plain,
                      st_fragments *out);
void st_fragments_free(st_fragments *f);

/* ---- tok_bytes.c ---- */

/* GPT-2 spells a byte as a printable character. */
uint32_t st_byte_to_code(uint8_t byte);
int st_code_to_byte(uint32_t code); /* -1: not one of them */
/* "<0x0A>"; -1: another form. */
int st_byte_token(const char *spelling, size_t n);
/* Copy with U+FFFD for each byte that belongs to no character. out holds 3 * n bytes. */
size_t st_repair_bytes(const char *text, size_t n, char *out);
/* Copy with U+2581 for each space; out holds 3 * n bytes. And back, n bytes. */
size_t st_escape_spaces(const char *text, size_t n, char *out);
size_t st_unescape_spaces(const char *text, size_t n, char *out);
/* Length that the first byte of a character promises. */
static inline size_t st_lead_length(char lead)
{
    const uint8_t c = (uint8_t)lead;
    return c < 0xc0 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

#endif
