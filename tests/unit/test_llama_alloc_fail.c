/* Memory that runs out at every place of a model's and a session's life. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "llama_support.h"

static sotto_status load(void *user)
{
    const sotto_model_file *file = user;
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.backend.device = "cpu";
    o.backend.n_threads = 1;
    sotto_llama_model *m;
    sotto_error err = {0};
    const sotto_status status = sotto_llama_model_load(file, &o, &m, &err);
    if (status != SOTTO_OK && (m || err.code != status || !err.text[0]))
        return SOTTO_E_INTERNAL;
    sotto_llama_model_free(m);
    return status;
}

static void a_model_is_loaded_or_not(void **state)
{
    (void)state;
    const toy_recipe r = {.arch = "gemma3", .key = "rope.freq_base", .value = 5e4};
    blob b = toy_file(&r);
    sotto_model_file *file;
    sotto_error err = {0};
    if (sotto_model_file_open_memory(b.data, b.n, "toy", &file, &err))
        fail_msg("%s", err.text);
    assert_true(alloc_fail_sweep(load, file) > 20);
    sotto_model_file_free(file);
    blob_free(&b);
}

typedef struct life {
    const sotto_llama_model *model;
    const char *path;
} life;

static sotto_status live(sotto_llama_session *s, const char *path, sotto_error *err)
{
    int32_t tokens[40];
    for (int i = 0; i < 40; i++)
        tokens[i] = 3 + i;
    sotto_status status = sotto_llama_decode_tokens(s, 0, tokens, 40, err);
    if (status == SOTTO_OK)
        status = sotto_llama_seq_copy(s, 1, 0, 10, err);
    if (status == SOTTO_OK)
        status = sotto_llama_seq_shift(s, 0, 2, 5, err);
    if (status == SOTTO_OK)
        status = sotto_llama_state_save(s, 0, path, err);
    if (status == SOTTO_OK)
        status = sotto_llama_state_load(s, 1, path, err);
    return status;
}

static sotto_status session(void *user)
{
    const life *l = user;
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_seq = 2;
    o.n_ctx = 80;
    o.n_batch = 16;
    sotto_llama_session *s;
    sotto_error err = {0};
    sotto_status status = sotto_llama_session_create(l->model, &o, &s, &err);
    if (status == SOTTO_OK)
        status = live(s, l->path, &err);
    if (status != SOTTO_OK && (err.code != status || !err.text[0]))
        return SOTTO_E_INTERNAL;
    sotto_llama_session_free(s);
    return status;
}

static void a_session_lives_or_not(void **state)
{
    (void)state;
    const toy_recipe r = {0};
    char *folder = make_folder();
    life l = {.model = toy_must_load(&r), .path = in_folder(folder, "state")};
    assert_true(alloc_fail_sweep(session, &l) > 40);
    assert_int_equal(count_files(folder), 1);
    sotto_llama_model_free((sotto_llama_model *)(uintptr_t)l.model);
    remove_folder(folder);
}

static sotto_status texts(void *user)
{
    const sotto_llama_model *m = user;
    static const char *const stop[] = {"never"};
    sotto_llama_text *t;
    sotto_sampler *sampler = NULL;
    sotto_error err = {0};
    int64_t count;
    int32_t ids[64];
    const char *text;
    size_t n;
    bool stopped;
    sotto_status status = sotto_llama_text_create(m, stop, 1, &t, &err);
    if (status == SOTTO_OK)
        status = sotto_llama_sampler_create(m, NULL, &sampler, &err);
    if (status == SOTTO_OK)
        status = sotto_llama_tokenize(m, "abc nev", 7, SOTTO_TOKENIZE_ADD_SPECIAL, ids, 64, &count, &err);
    for (int64_t i = 0; status == SOTTO_OK && i < count; i++)
        status = sotto_llama_text_push(t, ids[i], &text, &n, &stopped, &err);
    if (status == SOTTO_OK)
        status = sotto_llama_text_finish(t, &text, &n, &err);
    const sotto_llama_message hello = {"user", "hello"};
    if (status == SOTTO_OK)
        status = sotto_llama_chat_tokenize(m, "chatml", &hello, 1, true, ids, 64, &count, &err);
    sotto_llama_text_free(t);
    sotto_sampler_free(sampler);
    return status != SOTTO_OK && !err.text[0] ? SOTTO_E_INTERNAL : status;
}

static void texts_are_made_or_not(void **state)
{
    (void)state;
    const toy_recipe r = {0};
    sotto_llama_model *m = toy_must_load(&r);
    assert_true(alloc_fail_sweep(texts, m) > 4);
    sotto_llama_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_loaded_or_not),
        cmocka_unit_test(a_session_lives_or_not),
        cmocka_unit_test(texts_are_made_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
