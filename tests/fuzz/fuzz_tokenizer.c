/* The vocabulary of a GGUF file: what opens encodes any text into tokens that exist, and these give text. */
#include <string.h>

#include "base/alloc.h"
#include "base/utf8.h"
#include "fuzz/fuzz.h"
#include "models/common/text_stream.h"

static const char *const texts[] = {
    "",
    " ",
    "Hello world, it's 12345!\n\n\tx  y <s></s><|im_end|> \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x99\x82 aaaaaaaaaaaaaaaa",
    "\xff\xfe\xc3(\xe4\xbd",
    "ab abab  ab\nabc",
    "\xe2\x96\x81"
    "a\xe2\x96\x81\xe2\x96\x81 <0x0A><x>",
};

static void show(const st_tokenizer *t, const int32_t *ids, int64_t n)
{
    static const char *const stop[] = {"ab", "\n\n"};
    for (int k = 0; k < 2; k++) {
        const st_text_stream_options o = {.stop = stop, .n_stop = 2 * k, .special = k, .whole = !k};
        st_text_stream *s;
        const char *text;
        size_t length;
        if (st_text_stream_create(t, &o, &s, NULL) != SOTTO_OK)
            return;
        for (int64_t i = 0; i <= n; i++) {
            FUZZ_CHECK((i < n ? st_text_stream_push(s, ids[i], &text, &length, NULL)
                              : st_text_stream_finish(s, &text, &length, NULL)) == SOTTO_OK);
            FUZZ_CHECK(st_utf8_valid(text, length) && text[length] == 0);
        }
        st_text_stream_free(s);
    }
}

static void encode(const st_tokenizer *t, const char *text, size_t n, unsigned flags)
{
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 0;
    sotto_error err;
    err.text[0] = 0;
    if (st_tokenizer_encode(t, text, n, flags & 1, flags >> 1 & 1, &ids, &capacity, &count, &err) != SOTTO_OK) {
        FUZZ_CHECK(err.text[0] && count == 0);
    } else {
        for (int64_t i = 0; i < count; i++)
            FUZZ_CHECK(ids[i] >= 0 && ids[i] < st_tokenizer_size(t));
        show(t, ids, count);
    }
    st_free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sotto_model_file *file;
    st_tokenizer *t;
    sotto_error err;
    err.text[0] = 0;
    if (sotto_model_file_open_memory(data, size, "fuzzed", &file, NULL) != SOTTO_OK)
        return 0;
    const sotto_status status = st_tokenizer_create(file, &t, &err);
    sotto_model_file_free(file);
    FUZZ_CHECK((status == SOTTO_OK) == (t != NULL) && (t || err.text[0]));
    if (!t)
        return 0;
    const st_token_ids ids = st_tokenizer_ids(t);
    const int32_t n = st_tokenizer_size(t);
    FUZZ_CHECK(n > 0 && ids.bos < n && ids.eos < n && ids.eot < n && ids.unk < n && ids.pad < n && ids.newline < n);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        for (unsigned flags = 0; flags < 4; flags++)
            encode(t, texts[i], strlen(texts[i]), flags);
    encode(t, (const char *)data, size < 4096 ? size : 4096, 3);
    for (int32_t id = -1; id <= n; id++) {
        size_t length;
        const char *bytes = st_tokenizer_bytes(t, id, true, &length);
        FUZZ_CHECK(bytes[length] == 0);
        (void)st_tokenizer_ends(t, id);
    }
    st_tokenizer_free(t);
    return 0;
}
