#include "models/common/tokenizer.h"

#include "base/status.h"

sotto_status st_tokenizer_create(const sotto_model_file *file, st_tokenizer **out, sotto_error *err)
{
    (void)file;
    *out = NULL;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "tokenizers of GGUF files are not there yet");
}

void st_tokenizer_free(st_tokenizer *t)
{
    (void)t;
}

const char *st_tokenizer_kind(const st_tokenizer *t)
{
    (void)t;
    return "";
}

const char *st_tokenizer_warning(const st_tokenizer *t)
{
    (void)t;
    return NULL;
}

st_token_ids st_tokenizer_ids(const st_tokenizer *t)
{
    (void)t;
    return (st_token_ids){-1, -1, -1, -1, -1, -1, false, false, false};
}

int32_t st_tokenizer_size(const st_tokenizer *t)
{
    (void)t;
    return 0;
}

bool st_tokenizer_ends(const st_tokenizer *t, int32_t id)
{
    (void)t;
    (void)id;
    return false;
}

const char *st_tokenizer_bytes(const st_tokenizer *t, int32_t id, bool special, size_t *n)
{
    (void)t;
    (void)id;
    (void)special;
    *n = 0;
    return "";
}

int32_t st_tokenizer_find(const st_tokenizer *t, const char *spelling, size_t n)
{
    (void)t;
    (void)spelling;
    (void)n;
    return -1;
}

sotto_status st_tokenizer_encode_framed(const st_tokenizer *t, const char *text, size_t n, const st_text_span *plain,
                                        int64_t n_plain, bool add_special, int32_t **ids, int64_t *capacity,
                                        int64_t *count, sotto_error *err)
{
    (void)t;
    (void)text;
    (void)n;
    (void)plain;
    (void)n_plain;
    (void)add_special;
    (void)ids;
    (void)capacity;
    (void)count;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "tokenizers of GGUF files are not there yet");
}

sotto_status st_tokenizer_encode(const st_tokenizer *t, const char *text, size_t n, bool add_special,
                                 bool parse_special, int32_t **ids, int64_t *capacity, int64_t *count, sotto_error *err)
{
    const st_text_span all = {0, n};
    return st_tokenizer_encode_framed(t, text, n, &all, parse_special ? 0 : 1, add_special, ids, capacity, count, err);
}
