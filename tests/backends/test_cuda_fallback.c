/* A model on a device that the library chose, for every amount of memory that the device may have (the stand-in of cuda_mock.c):
 * what does not fit is computed on the CPU, and the logits stay. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cuda_support.h"
#include "unit/llama_support.h"

enum { N_ROWS = 9 };

static cuda_mock *mock;
static int n_fewer, n_caches;

static void count(void *user, sotto_log_level level, const char *text)
{
    (void)user;
    (void)level;
    n_fewer += strstr(text, "layers on the device") || strstr(text, "computing on the CPU");
    n_caches += strstr(text, "the caches go to the CPU") != NULL;
}

static void must(sotto_status status, const sotto_error *err, long memory)
{
    if (status != SOTTO_OK)
        fail_msg("%ld bytes: %s", memory, err->text);
}

/* Logits of the last of N_ROWS tokens. */
static void run(const char *device, float logits[TOY_VOCAB])
{
    const toy_recipe r = {0};
    blob b = toy_file(&r);
    sotto_error err = {0};
    sotto_model_file *file;
    sotto_llama_model *m;
    sotto_llama_session *s;
    must(sotto_model_file_open_memory(b.data, b.n, "toy", &file, &err), &err, 0);
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.backend.device = device;
    o.backend.n_threads = 1;
    o.backend.logger.write = count;
    o.compute = "f32";
    must(sotto_llama_model_load(file, &o, &m, &err), &err, mock->memory);
    must(sotto_llama_session_create(m, NULL, &s, &err), &err, mock->memory);
    int32_t tokens[N_ROWS];
    for (int i = 0; i < N_ROWS; i++)
        tokens[i] = 3 + 11 * i;
    must(sotto_llama_decode_tokens(s, 0, tokens, N_ROWS, &err), &err, mock->memory);
    memcpy(logits, sotto_llama_logits(s, 0), TOY_VOCAB * sizeof *logits);
    sotto_llama_session_free(s);
    sotto_llama_model_free(m);
    sotto_model_file_free(file);
    blob_free(&b);
}

static void any_amount_of_memory_does(void **state)
{
    (void)state;
    float want[TOY_VOCAB], got[TOY_VOCAB], largest = 0;
    run("cpu", want);
    for (int i = 0; i < TOY_VOCAB; i++)
        largest = fmaxf(largest, fabsf(want[i]));
    int runs_with_fewer = 0, runs_with_all = 0;
    for (double memory = 1 << 14; memory < 1 << 18; memory *= 1.02) /* weights are 103 KiB */ {
        mock->memory = (long)memory;
        n_fewer = n_caches = 0;
        run("auto", got);
        for (int i = 0; i < TOY_VOCAB; i++)
            assert_true(fabsf(got[i] - want[i]) <= 2e-2f * largest);
        runs_with_fewer += n_fewer > 0;
        runs_with_all += n_fewer == 0 && n_caches == 0;
    }
    assert_true(runs_with_fewer > 2 && runs_with_all > 2);
    assert_string_equal(mock->problem, "");
}

int main(void)
{
    mock = cuda_mock_open();
    if (!mock)
        return 77;
    static const struct CMUnitTest tests[] = {cmocka_unit_test(any_amount_of_memory_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
