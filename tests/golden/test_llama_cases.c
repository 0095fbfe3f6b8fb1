/* Rows B64 and B67 of the reported faults, for models of text: sessions of one model in several threads at once give the bits
 * that they give alone, and models, sessions, samplers, states and failed loads, again and again, take no more memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "golden/golden_support.h"
#include "golden/llama_support.h"

enum { THREADS = 4, STEPS = 12, ROUNDS = 60, FIRST = 8 };

typedef struct job {
    const sotto_llama_model *model;
    int first;           /* the text begins at this token */
    int32_t ids[STEPS];  /* what was sampled after it */
    float logits[STEPS]; /* of these */
    bool ok;
} job;

/* A prompt and some tokens after it, each fed back. */
static void generate(void *arg)
{
    job *j = arg;
    sotto_sampler_options so;
    sotto_sampler_options_default(&so);
    so.seed = (uint64_t)j->first;
    sotto_sampler *sampler = NULL;
    sotto_llama_session *s = NULL;
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = 64;
    j->ok = sotto_llama_session_create(j->model, &o, &s, NULL) == SOTTO_OK &&
            sotto_llama_sampler_create(j->model, &so, &sampler, NULL) == SOTTO_OK;
    int32_t prompt[FIRST];
    for (int i = 0; i < FIRST; i++)
        prompt[i] = llama_token(j->first + i);
    j->ok = j->ok && sotto_llama_decode_tokens(s, 0, prompt, FIRST, NULL) == SOTTO_OK;
    for (int i = 0; j->ok && i < STEPS; i++) {
        const float *logits = sotto_llama_logits(s, -1);
        j->ok = sotto_sampler_sample(sampler, logits, &j->ids[i], NULL) == SOTTO_OK &&
                sotto_sampler_accept(sampler, j->ids[i], NULL) == SOTTO_OK;
        j->logits[i] = logits[j->ids[i]];
        j->ok = j->ok && sotto_llama_decode_tokens(s, 0, &j->ids[i], 1, NULL) == SOTTO_OK;
    }
    sotto_sampler_free(sampler);
    sotto_llama_session_free(s);
}

static void sessions_in_threads_give_the_same_bits(void **state)
{
    (void)state;
    static const char *const computes[] = {"f32", "int8"};
    for (size_t c = 0; c < sizeof computes / sizeof *computes; c++) {
        const sotto_llama_model_options o = llama_options("cpu", 0, computes[c]);
        sotto_llama_model *model = llama_open("llama", &o);
        job alone[2], jobs[THREADS];
        st_thread threads[THREADS];
        for (int i = 0; i < 2; i++) {
            alone[i] = (job){.model = model, .first = 10 * i};
            generate(&alone[i]);
            assert_true(alone[i].ok);
        }
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (job){.model = model, .first = alone[i % 2].first};
            assert_true(st_thread_create(&threads[i], generate, &jobs[i]));
        }
        for (int i = 0; i < THREADS; i++) {
            st_thread_join(&threads[i]);
            assert_true(jobs[i].ok);
            assert_memory_equal(jobs[i].ids, alone[i % 2].ids, sizeof jobs[i].ids);
            assert_memory_equal(jobs[i].logits, alone[i % 2].logits, sizeof jobs[i].logits);
        }
        sotto_llama_model_free(model);
    }
}

static void rounds(const sotto_llama_model *model, const char *cut, int n)
{
    sotto_error err;
    for (int i = 0; i < n; i++) {
        job j = {.model = model, .first = i};
        generate(&j);
        assert_true(j.ok);
        sotto_llama_session *s = llama_session(model, 64, 16, 2);
        llama_feed(s, 0, 0, 20);
        assert_int_equal(sotto_llama_seq_copy(s, 1, 0, 10, &err), SOTTO_OK);
        assert_int_equal(sotto_llama_seq_shift(s, 0, 2, 8, &err), SOTTO_OK);
        const int32_t none = LLAMA_VOCAB;
        assert_int_equal(sotto_llama_decode_tokens(s, 0, &none, 1, &err), SOTTO_E_ARGUMENT);
        assert_int_not_equal(sotto_llama_state_load(s, 1, cut, &err), SOTTO_OK);
        sotto_llama_session_free(s);
        sotto_llama_model *m;
        assert_int_not_equal(sotto_llama_model_open(cut, NULL, &m, &err), SOTTO_OK);
        assert_null(m);
        sotto_llama_text *t;
        const char *stop[] = {"lazy", "dog"};
        assert_int_equal(sotto_llama_text_create(model, stop, 2, &t, &err), SOTTO_OK);
        sotto_llama_text_free(t);
        if (i % 20 == 0)
            sotto_llama_model_free(llama_open("llama-spm", NULL));
    }
}

static void nothing_grows(void **state)
{
    (void)state;
    static char cut[] = SOTTO_BUILD_DIR "/cut.gguf";
    static char bytes[100000];
    FILE *whole = fopen(llama_path("llama"), "rb"), *part = fopen(cut, "wb");
    assert_non_null(whole);
    assert_non_null(part);
    assert_int_equal(fread(bytes, 1, sizeof bytes, whole), sizeof bytes);
    assert_int_equal(fwrite(bytes, 1, sizeof bytes, part), sizeof bytes);
    fclose(whole);
    fclose(part);
    sotto_llama_model *model = llama_open("llama", NULL);
    rounds(model, cut, ROUNDS / 3);
    const long before = golden_resident_pages();
    rounds(model, cut, ROUNDS);
    const long after = golden_resident_pages();
    printf("%ld pages, then %ld\n", before, after);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* those keep what was freed for a while */
    assert_true(after - before < 1000);
#endif
    sotto_llama_model_free(model);
    remove(cut);
}

int main(void)
{
    if (!llama_is_made())
        return 77;
    const struct CMUnitTest tests[] = {cmocka_unit_test(sessions_in_threads_give_the_same_bits),
                                       cmocka_unit_test(nothing_grows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
