/* A vocabulary and a text from any bytes: tokens as a length byte and that many bytes, ended by length 255; the rest is the text.
 * The tokens joined are the repaired text, less the bytes that no token has; a byte order of joins cannot be checked here. */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "models/whisper/vocab.h"

enum { MOST = 4096 };

typedef struct tokens {
    const char *bytes[MOST];
    size_t length[MOST];
    int64_t count;
} tokens;

static sotto_status get(void *ctx, int64_t id, const char **bytes, size_t *n, sotto_error *err)
{
    const tokens *t = ctx;
    (void)err;
    *bytes = t->bytes[id];
    *n = t->length[id];
    return SOTTO_OK;
}

static void check_text(const st_vocab *v, const char *text, size_t n)
{
    sotto_error err;
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 0;
    FUZZ_CHECK(st_bpe_encode(v->bpe, text, n, &ids, &capacity, &count, &err) == SOTTO_OK);
    char *const repaired = malloc(3 * n + 1);
    if (!repaired)
        abort();
    const size_t length = st_utf8_repair(text, n, repaired);
    size_t at = 0;
    for (int64_t i = 0; i < count; i++) {
        size_t bytes;
        FUZZ_CHECK(ids[i] >= 0 && ids[i] < v->n_text);
        const char *p = st_vocab_bytes(v, ids[i], &bytes);
        FUZZ_CHECK(bytes > 0);
        while (at < length && st_bpe_find(v->bpe, repaired + at, 1) < 0 &&
               (length - at < bytes || memcmp(repaired + at, p, bytes) != 0))
            at++;
        FUZZ_CHECK(length - at >= bytes && memcmp(repaired + at, p, bytes) == 0);
        at += bytes;
    }
    for (; at < length; at++)
        FUZZ_CHECK(st_bpe_find(v->bpe, repaired + at, 1) < 0);
    free(repaired);
    st_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static tokens t;
    size_t at = 0;
    t.count = 0;
    while (at < size && data[at] != 255 && t.count < MOST) {
        const size_t left = size - at - 1, n = data[at] < left ? data[at] : left;
        t.bytes[t.count] = (const char *)data + at + 1;
        t.length[t.count++] = n;
        at += 1 + n;
    }
    at += at < size;
    sotto_error err;
    st_vocab_layout layout;
    if (st_vocab_layout_find((int32_t)t.count + 1510 + (int32_t)(size % 101), t.count, &layout, &err) != SOTTO_OK)
        return 0;
    const st_token_source source = {&t, get, t.count};
    st_vocab *v;
    if (st_vocab_build(&source, &layout, &v, &err) != SOTTO_OK)
        return 0;
    FUZZ_CHECK(v->n_vocab == (int32_t)t.count + 1510 + (int32_t)(size % 101));
    for (int64_t i = 0; i < v->n_non_speech; i++)
        FUZZ_CHECK(v->non_speech[i] >= 0 && v->non_speech[i] < v->n_text &&
                   (i == 0 || v->non_speech[i] > v->non_speech[i - 1]));
    check_text(v, (const char *)data + at, size - at);
    st_vocab_free(v);
    return 0;
}
