/* Logits of the seeded models of every architecture and kind of rotation against llama.cpp's (tools/make_llama_golden.py):
 * all rows at once, in pieces, and one after the other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden/llama_support.h"
#include "sotto/model.h"

enum { N_ROWS = 3 };

static const int rows[N_ROWS] = {0, 23, 47};
static const double bound = 1e-3, type_bound = 1e-5; /* of the largest logit */

static void expected(const char *name, float out[N_ROWS][LLAMA_VOCAB])
{
    char path[1024];
    snprintf(path, sizeof path, "%s/tests/golden/data/llama_logits/%s.f32", SOTTO_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fread(out, sizeof(float), (size_t)N_ROWS * LLAMA_VOCAB, f), N_ROWS * LLAMA_VOCAB);
    fclose(f);
}

static double all_at_once(const sotto_llama_model *m, int n_ctx, float want[N_ROWS][LLAMA_VOCAB])
{
    sotto_llama_session *s = llama_session(m, n_ctx, 64, 1);
    sotto_llama_row list[LLAMA_TOKENS];
    for (int i = 0; i < LLAMA_TOKENS; i++)
        list[i] = (sotto_llama_row){.token = llama_token(i), .logits = true};
    sotto_error err = {0};
    if (sotto_llama_decode(s, list, LLAMA_TOKENS, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    double most = 0;
    for (int r = 0; r < N_ROWS; r++) {
        const double d = llama_difference(sotto_llama_logits(s, rows[r]), want[r], LLAMA_VOCAB);
        most = d > most ? d : most;
    }
    sotto_llama_session_free(s);
    return most;
}

/* The last row of a text that comes in pieces of `step`. */
static double in_pieces(const sotto_llama_model *m, int n_ctx, int step, float want[N_ROWS][LLAMA_VOCAB])
{
    sotto_llama_session *s = llama_session(m, n_ctx, 64, 1);
    for (int i = 0; i < LLAMA_TOKENS; i += step)
        llama_feed(s, 0, i, i + step < LLAMA_TOKENS ? i + step : LLAMA_TOKENS);
    const double d = llama_difference(sotto_llama_logits(s, -1), want[N_ROWS - 1], LLAMA_VOCAB);
    sotto_llama_session_free(s);
    return d;
}

static void every_architecture_gives_the_logits_of_llama_cpp(void **state)
{
    (void)state;
    static const struct {
        const char *model, *golden;
        int n_ctx;
    } cases[] = {
        {"llama", "llama", 512},
        {"llama-tied", "llama-tied", 512},
        {"llama-spm", "llama-spm", 512},
        {"llama-bias", "llama-bias", 512},
        {"llama-linear", "llama-linear", 512},
        {"llama-yarn", "llama-yarn", 512},
        {"llama3", "llama3", 512},
        {"llama-narrow", "llama-narrow", 512},
        {"llama-288", "llama-288", 512},
        {"qwen2", "qwen2", 512},
        {"qwen2-tied", "qwen2-tied", 512},
        {"qwen2-yarn", "qwen2-yarn", 512},
        {"qwen3", "qwen3", 512},
        {"gemma3", "gemma3", 512},
        {"gemma3-linear", "gemma3-linear", 512},
        {"gemma3-six", "gemma3-six", 512},
        {"gemma3-plain", "gemma3-plain", 512},
        {"phi3", "phi3", 512},
        {"phi3-part", "phi3-part", 512},
        {"phi3-long", "phi3-long", 512},
        {"phi3-long", "phi3-long-near", 256},
    };
    static float want[N_ROWS][LLAMA_VOCAB];
    int bad = 0;
    if (!llama_is_made())
        skip();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expected(cases[i].golden, want);
        sotto_llama_model *m = llama_open(cases[i].model, NULL);
        const double at_once = all_at_once(m, cases[i].n_ctx, want), pieces = in_pieces(m, cases[i].n_ctx, 7, want),
                     single = in_pieces(m, cases[i].n_ctx, 1, want);
        printf("%-16s at once %.1e, in sevens %.1e, one by one %.1e (<= %.0e)\n", cases[i].golden, at_once, pieces,
               single, bound);
        bad += !(at_once <= bound && pieces <= bound && single <= bound);
        sotto_llama_model_free(m);
    }
    assert_int_equal(bad, 0);
}

/* The seeded model quantised here as `sotto convert -t TYPE` does it; the caller frees the path. */
static char *quantised(const char *type)
{
    sotto_error err = {0};
    sotto_model_file *file;
    char *path = malloc(1024);
    assert_non_null(path);
    snprintf(path, 1024, "%s/llama-%s-%ld.gguf", SOTTO_BUILD_DIR, type, (long)getpid());
    const sotto_convert_options o = {.dtype = type, .threads = 1};
    if (sotto_model_file_open(llama_path("llama"), &file, &err) != SOTTO_OK ||
        sotto_model_convert(file, path, &o, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    sotto_model_file_free(file);
    return path;
}

/* llama.cpp reads what was quantised here as the same numbers: it was asked about them as f32. */
static void every_type_gives_the_logits_of_llama_cpp(void **state)
{
    (void)state;
    static const char *const types[] = {"q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl",
                                        "q2_k", "q3_k", "q4_k", "q5_k", "q6_k"};
    static float want[N_ROWS][LLAMA_VOCAB];
    int bad = 0;
    if (!llama_is_made())
        skip();
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char golden[64], *path = quantised(types[i]);
        snprintf(golden, sizeof golden, "llama-%s", types[i]);
        expected(golden, want);
        sotto_llama_model_options o = llama_options("cpu", 0, "f32");
        sotto_llama_model *m;
        sotto_error err = {0};
        if (sotto_llama_model_open(path, &o, &m, &err) != SOTTO_OK)
            fail_msg("%s", err.text);
        const double at_once = all_at_once(m, 512, want), single = in_pieces(m, 512, 1, want);
        printf("%-16s at once %.1e, one by one %.1e (<= %.0e)\n", types[i], at_once, single, type_bound);
        bad += !(at_once <= type_bound && single <= type_bound);
        sotto_llama_model_free(m);
        unlink(path);
        free(path);
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_gives_the_logits_of_llama_cpp),
        cmocka_unit_test(every_type_gives_the_logits_of_llama_cpp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
