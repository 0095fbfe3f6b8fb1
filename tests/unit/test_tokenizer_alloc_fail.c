/* Memory that runs out at every place of making a tokenizer, encoding, showing text and writing a conversation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "base/alloc.h"
#include "models/common/chat.h"
#include "models/common/text_stream.h"
#include "tokenizer_support.h"

typedef struct work {
    const sotto_model_file *file;
    const char *format;
} work;

static sotto_status show(const st_tokenizer *t, const int32_t *ids, int64_t n, sotto_error *err)
{
    static const char *const stop[] = {"ab!", "zz"};
    const st_text_stream_options o = {.stop = stop, .n_stop = 2, .special = true};
    st_text_stream *s;
    const char *text;
    size_t length;
    sotto_status status = st_text_stream_create(t, &o, &s, err);
    for (int64_t i = 0; i < n && status == SOTTO_OK; i++)
        status = st_text_stream_push(s, ids[i], &text, &length, err);
    if (status == SOTTO_OK)
        status = st_text_stream_finish(s, &text, &length, err);
    st_text_stream_free(s);
    return status;
}

static sotto_status run(void *user)
{
    const work *w = user;
    const st_chat_message messages[] = {{"system", "a \xff"}, {"user", "abab  <s>"}, {"assistant", "b\n"}};
    sotto_error err = {0};
    st_tokenizer *t;
    st_chat_text text = {0};
    int32_t *ids = NULL;
    int64_t capacity = 0, count = 0;
    sotto_status status = st_tokenizer_create(w->file, &t, &err);
    if (status == SOTTO_OK)
        status = st_chat_apply(st_chat_by_name(w->format), messages, 3, true, &text, &err);
    if (status == SOTTO_OK)
        status = st_tokenizer_encode_framed(t, text.text, (size_t)text.length, text.content, text.n_content, true, &ids,
                                            &capacity, &count, &err);
    if (status == SOTTO_OK)
        status = show(t, ids, count, &err);
    if (status != SOTTO_OK && (err.code != status || !err.text[0]))
        status = SOTTO_E_INTERNAL;
    st_free(ids);
    st_chat_text_free(&text);
    st_tokenizer_free(t);
    return status;
}

static void sweep(meta_file *m, const char *format)
{
    blob b = meta_finish(m);
    sotto_model_file *file;
    sotto_error err;
    if (sotto_model_file_open_memory(b.data, b.n, "vocabulary", &file, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    work w = {file, format};
    assert_true(alloc_fail_sweep(run, &w) > 15);
    sotto_model_file_free(file);
    blob_free(&b);
}

static int32_t kind_of(const char *token)
{
    return strlen(token) > 2 && token[0] == '<' ? 3 : 1;
}

static void gpt2(void **state)
{
    (void)state;
    meta_file m = {0};
    gpt2_file(&m, "deepseek-v3", (const char *[]){"ab", "abab", "<s>", "<|im_end|>", NULL},
              (const char *[]){"a b", "ab ab", NULL}, kind_of);
    sweep(&m, "chatml");
    gpt2_file(&m, "tekken", (const char *[]){"ab", "<s>", NULL}, NULL, kind_of);
    sweep(&m, "mistral-v3-tekken");
}

static const char *const tokens[] = {"<unk>",
                                     "<s>",
                                     "</s>",
                                     "\u2581",
                                     "a",
                                     "b",
                                     "ab",
                                     "\u2581"
                                     "a",
                                     "<x>"};
static const float scores[] = {0, 0, 0, -1, -2, -3, -4, -5, 0};
static const int32_t kinds[] = {2, 3, 3, 1, 1, 1, 1, 1, 4};

static void llama(void **state)
{
    (void)state;
    meta_file m = {0};
    meta_string(&m, "tokenizer.ggml.model", "llama");
    meta_strings(&m, "tokenizer.ggml.tokens", tokens, 9);
    meta_floats(&m, "tokenizer.ggml.scores", scores, 9);
    meta_ints(&m, "tokenizer.ggml.token_type", kinds, 9);
    sweep(&m, "llama2");
}

static void t5(void **state)
{
    (void)state;
    meta_file m = {0};
    /* an array of one unit, which leads nowhere, and one empty string */
    const uint8_t map[] = {4, 0, 0, 0, 0, 0, 0, 0, 0};
    meta_string(&m, "tokenizer.ggml.model", "t5");
    meta_strings(&m, "tokenizer.ggml.tokens", tokens, 9);
    meta_floats(&m, "tokenizer.ggml.scores", scores, 9);
    meta_ints(&m, "tokenizer.ggml.token_type", kinds, 9);
    meta_bytes(&m, "tokenizer.ggml.precompiled_charsmap", map, sizeof map);
    sweep(&m, "zephyr");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(gpt2), cmocka_unit_test(llama), cmocka_unit_test(t5)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
