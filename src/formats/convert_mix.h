/* convert_mix.h: which type each matrix gets in a file of a given kind. The mixes are those of llama-quantize: the matrices
 * that matter most get more bits. */
#ifndef SOTTO_SRC_FORMATS_CONVERT_MIX_H
#define SOTTO_SRC_FORMATS_CONVERT_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "sotto/tensor.h"

typedef struct st_mix {
    const char *name;
    sotto_dtype main; /* of most matrices */
    int file_type;    /* general.file_type of GGUF */
    bool rules;       /* false: all matrices get `main` */
} st_mix;

/* Ignoring case; NULL for any other text. `language`: of a model of the LLaMA family, where "q4_k" is short for "q4_k_m". */
const st_mix *st_mix_find(const char *name, bool language);
/* general.file_type of a file whose matrices mostly have that type; -1 for a type that cannot be written. */
int st_mix_file_type(sotto_dtype main);

typedef enum st_role {
    ST_ROLE_KEPT,  /* stays in the type it has */
    ST_ROLE_PLAIN, /* a matrix without a rule */
    ST_ROLE_OUTPUT,
    ST_ROLE_EMBEDDING,
    ST_ROLE_VALUE, /* of attention; alone or with query and key in one */
    ST_ROLE_ATTENTION_OUT,
    ST_ROLE_DOWN /* the feed-forward network's second */
} st_role;

/* Where a matrix is in the model. */
typedef struct st_place {
    st_role role;
    int64_t layer, layers;
} st_place;

typedef struct st_mix_facts {
    int64_t heads_per_key; /* heads that share keys and values */
    bool tied;             /* the embedding is the output matrix too */
    bool weighted;         /* there is an importance matrix */
    bool largest;          /* of 80 layers with shared heads */
} st_mix_facts;

sotto_dtype st_mix_type(const st_mix *mix, st_place place, const st_mix_facts *facts, int64_t width);
/* The type itself where rows are whole blocks of it, else one with smaller blocks. */
sotto_dtype st_mix_fitting(sotto_dtype dtype, int64_t width);

#endif
