/* Two real models along the texts that llama.cpp finds likeliest (tools/make_llama_text_golden.py): the same token is the
 * likeliest here, or nearly so, and log-probabilities agree on average. llama.cpp rounds activations to 8 bits, its scales
 * and its attention to halves; on models this small that moves single log-probabilities by 0.1 and more, in any compute type. */
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

static const double least_agreement = 0.9, most_on_average = 0.1, near_tie = 0.6;

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
    int texts, same, tokens, agree, far;
    double sum; /* of differences of log-probabilities */
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
        t->sum += fabs(p - json_number_value(json_array_get(step, 1)));
        agree += mine == first;
        t->far += logits[mine] - logits[first] > near_tie;
        if (sotto_llama_decode_tokens(s, 0, &first, 1, &err))
            fail_msg("%s", err.text);
    }
    t->texts++;
    t->agree += agree;
    t->tokens += (int)json_array_size(steps);
    t->same += agree == (int)json_array_size(steps);
}

static void check(const char *file, const char *name, const char *compute)
{
    char path[512];
    json_error_t error;
    snprintf(path, sizeof path, "%s/tests/golden/data/llama_text/%s.json", SOTTO_SOURCE_DIR, name);
    json_t *root = json_load_file(path, 0, &error);
    assert_non_null(root);
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.compute = compute;
    o.backend.device = "cpu";
    o.backend.n_threads = 2;
    sotto_llama_session_options so;
    sotto_llama_session_options_default(&so);
    so.n_ctx = 256;
    sotto_llama_model *m;
    sotto_llama_session *s;
    sotto_error err = {0};
    if (sotto_llama_model_open(file, &o, &m, &err) || sotto_llama_session_create(m, &so, &s, &err))
        fail_msg("%s", err.text);
    tally t = {0};
    const json_t *texts = json_object_get(root, "texts");
    for (size_t i = 0; i < json_array_size(texts); i++)
        follow(m, s, json_array_get(texts, i), &t);
    printf("%s in %s: %d of %d texts are the same, %d of %d tokens, log-probabilities within %.3f on average, %d far\n",
           name, compute, t.same, t.texts, t.agree, t.tokens, t.sum / t.tokens, t.far);
    assert_int_equal(t.far, 0);
    assert_true(t.agree >= least_agreement * t.tokens);
    assert_true(t.sum <= most_on_average * t.tokens);
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
    check(file, "smollm2-135m", "f32");
    check(file, "smollm2-135m", "int8");
    free(file);
}

static void gemma3_writes_what_it_writes_there(void **state)
{
    (void)state;
    const char *path = model_path("gemma3-270m/gemma-3-270m-q4_k_m.gguf");
    if (!path)
        skip();
    char *file = strdup(path);
    check(file, "gemma3-270m", "f32");
    check(file, "gemma3-270m", "int8");
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
