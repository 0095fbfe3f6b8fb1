/* Two real models along the texts that llama.cpp finds likeliest with the same weights as f32, where it rounds nothing
 * (tools/make_llama_text_golden.py). In f32 this library writes the same texts from the quantised files; in int8, as llama.cpp
 * with quantised files, each activation's rounding to 8 bits moves log-probabilities, by about as much there as here. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "golden/golden_support.h"
#include "sotto/llama.h"

/* What is asked of log-probabilities: the largest and the mean difference; and how much likelier than llama.cpp's token another
 * one may be there. */
typedef struct bounds {
    const char *compute;
    sotto_dtype cache;
    double most, mean, near_tie, agreement;
} bounds;

enum { MOST_IDS = 128 };

static double log_probability(const float *logits, int n, int id)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, logits[i]);
    for (int i = 0; i < n; i++)
        sum += exp(logits[i] - most);
    return logits[id] - most - log(sum);
}

static int best_of(const float *logits, int n)
{
    int best = 0;
    for (int i = 1; i < n; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

static int64_t number(const json_t *array, size_t i)
{
    return (int64_t)json_number_value(json_array_get(array, i));
}

typedef struct tally {
    int texts, same, tokens, agree;
    double sum, most;             /* of differences of log-probabilities */
    double their_sum, their_most; /* of llama.cpp's with the quantised file */
    double gap;                   /* between the likeliest token and llama.cpp's, at most */
} tally;

/* Follows llama.cpp's text to its end. */
static void follow(const sotto_llama_model *m, sotto_llama_session *s, const json_t *text, tally *t)
{
    sotto_llama_model_info info;
    sotto_llama_model_get_info(m, &info);
    const json_t *prompt = json_object_get(text, "ids"), *steps = json_object_get(text, "steps");
    int32_t ids[MOST_IDS];
    int64_t n;
    sotto_error err = {0};
    const char *words = json_string_value(json_object_get(text, "prompt"));
    if (sotto_llama_tokenize(m, words, strlen(words), SOTTO_TOKENIZE_ADD_SPECIAL, ids, MOST_IDS, &n, &err))
        fail_msg("%s", err.text);
    assert_int_equal(n, json_array_size(prompt));
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(ids[i], number(prompt, (size_t)i));
    if (sotto_llama_seq_truncate(s, 0, 0, &err) || sotto_llama_decode_tokens(s, 0, ids, n, &err))
        fail_msg("%s", err.text);
    int agree = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const int32_t first = (int32_t)number(step, 0);
        const float *logits = sotto_llama_logits(s, -1);
        const double p = log_probability(logits, info.n_vocab, first);
        const int32_t mine = best_of(logits, info.n_vocab);
        const double exact = json_number_value(json_array_get(step, 1)), off = fabs(p - exact),
                     theirs = fabs(json_number_value(json_array_get(step, 4)) - exact);
        t->sum += off;
        t->most = fmax(t->most, off);
        t->their_sum += theirs;
        t->their_most = fmax(t->their_most, theirs);
        t->gap = fmax(t->gap, (double)logits[mine] - (double)logits[first]);
        agree += mine == first;
        if (sotto_llama_decode_tokens(s, 0, &first, 1, &err))
            fail_msg("%s", err.text);
    }
    t->texts++;
    t->agree += agree;
    t->tokens += (int)json_array_size(steps);
    t->same += agree == (int)json_array_size(steps);
}

static void check(const char *file, const char *name, const bounds *b)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/tests/golden/data/llama_text/%s.json", SOTTO_SOURCE_DIR, name);
    json_t *root = json_load_file(path, 0, &error);
    assert_non_null(root);
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.compute = b->compute;
    o.backend.device = "cpu";
    o.backend.n_threads = 2;
    sotto_llama_session_options so;
    sotto_llama_session_options_default(&so);
    so.n_ctx = 256;
    so.cache_k = so.cache_v = b->cache;
    sotto_llama_model *m;
    sotto_llama_session *s;
    sotto_error err = {0};
    if (sotto_llama_model_open(file, &o, &m, &err) || sotto_llama_session_create(m, &so, &s, &err))
        fail_msg("%s", err.text);
    tally t = {0};
    const json_t *texts = json_object_get(root, "texts");
    for (size_t i = 0; i < json_array_size(texts); i++)
        follow(m, s, json_array_get(texts, i), &t);
    printf("%s in %s: %d of %d texts are the same, %d of %d tokens, at most %.1e beside the likeliest; "
           "log-probabilities within "
           "%.1e on average, %.1e at most; those of llama.cpp with the quantised file %.3f, %.2f\n",
           name, b->compute, t.same, t.texts, t.agree, t.tokens, t.gap, t.sum / t.tokens, t.most,
           t.their_sum / t.tokens, t.their_most);
    assert_true(t.gap <= b->near_tie);
    assert_true(t.agree >= b->agreement * t.tokens);
    assert_true(t.most <= b->most);
    assert_true(t.sum <= b->mean * t.tokens);
    sotto_llama_session_free(s);
    sotto_llama_model_free(m);
    json_decref(root);
}

static void smollm2_writes_what_it_writes_there(void **state)
{
    (void)state;
    const char *path = model_path("smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf");
    if (!path)
        skip();
    char *file = strdup(path);
    check(file, "smollm2-135m", &(bounds){"f32", SOTTO_F32, 1e-4, 1e-5, 1e-4, 1});
    check(file, "smollm2-135m", &(bounds){"int8", SOTTO_F16, 0.5, 0.04, 0.35, 0.95});
    free(file);
}

/* Its GELU llama.cpp takes from a table of halves. */
static void gemma3_writes_what_it_writes_there(void **state)
{
    (void)state;
    const char *path = model_path("gemma3-270m/gemma-3-270m-q4_k_m.gguf");
    if (!path)
        skip();
    char *file = strdup(path);
    check(file, "gemma3-270m", &(bounds){"f32", SOTTO_F32, 5e-3, 5e-4, 5e-3, 1});
    check(file, "gemma3-270m", &(bounds){"int8", SOTTO_F16, 0.3, 0.025, 0.35, 0.96});
    free(file);
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smollm2_writes_what_it_writes_there),
        cmocka_unit_test(gemma3_writes_what_it_writes_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
