/* tok_charmap.h: SentencePiece's table of what characters are replaced by (precompiled_charsmap): a double array of prefixes,
 * whose values point into a block of strings.
 * Source: S. Yata, darts-clone, for the array's units; S. Kanda et al., "Compressed double-array tries", 2017. */
#ifndef SOTTO_SRC_MODELS_COMMON_TOK_CHARMAP_H
#define SOTTO_SRC_MODELS_COMMON_TOK_CHARMAP_H

#include "sotto/model.h"

typedef struct st_charmap {
    uint32_t *units;
    size_t n_units;
    char *strings; /* each ends with a zero, the last one too */
    size_t n_strings;
} st_charmap;

/* An empty map when the key is missing. */
sotto_status st_charmap_read(st_charmap *m, const sotto_model_file *file, const char *key, sotto_error *err);
void st_charmap_free(st_charmap *m);
/* What the longest prefix of text (n > 0) in the map becomes, else the first character, else U+FFFD for a byte that belongs to none:
 * *got bytes for the first *used ones. */
const char *st_charmap_at(const st_charmap *m, const char *text, size_t n, size_t *used, size_t *got);

#endif
