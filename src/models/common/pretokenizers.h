/* pretokenizers.h: how models cut a text into words before encoding, by the names that files use (tokenizer.ggml.pre). */
#ifndef SOTTO_SRC_MODELS_COMMON_PRETOKENIZERS_H
#define SOTTO_SRC_MODELS_COMMON_PRETOKENIZERS_H

#include <stdbool.h>
#include <stddef.h>

enum { ST_PRETOKENIZER_PATTERNS = 6 };

typedef struct st_pretokenizer {
    const char *const *names;                       /* ends with NULL */
    const char *patterns[ST_PRETOKENIZER_PATTERNS]; /* applied in order, see tok_split.h */
    bool whole_words;                               /* a word that is a token is not joined from its bytes */
    bool add_bos;                                   /* a begin token, where the file does not say */
} st_pretokenizer;

/* NULL when there is none of that name. */
const st_pretokenizer *st_pretokenizer_find(const char *name, size_t n);
int st_pretokenizer_count(const st_pretokenizer *p);

#endif
