/* `base` in types of blocks: the first logits in int8, whose decoder multiplies bytes of both sides, beside those in f32 of the
 * same file, with the encoder's errors and, printed beside them, with its output in f32. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "parts_support.h"

#define LOGIT_BOUND 0.5

static const char *const names[] = {"librivox-0890", "jfk", "pico-test-es"};
enum { N_NAMES = sizeof names / sizeof *names, SAMPLES = 480000 };

static sotto_model_file *file;

static sotto_whisper_model *open_as(const char *path, const char *compute)
{
    sotto_whisper_model *m;
    sotto_whisper_model_options o;
    sotto_error err;
    sotto_whisper_model_options_default(&o);
    o.compute = compute;
    if (sotto_whisper_model_open(path, &o, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

typedef struct given {
    const float *encoded;
    size_t bytes;
} given;

static sotto_status give(void *user, const float *log_mel, int n_mels, int n_frames, float *out, sotto_error *err)
{
    const given *g = user;
    (void)log_mel;
    (void)n_mels;
    (void)n_frames;
    (void)err;
    memcpy(out, g->encoded, g->bytes);
    return SOTTO_OK;
}

static void hear(parts *p, const float *mel, const int32_t *prompt, int n, float *logits)
{
    sotto_error err;
    if (p->engine.encode(p->engine.ctx, 0, mel, ST_WINDOW_FRAMES, &err))
        fail_msg("%s", err.text);
    parts_logits(p, prompt, n, logits);
}

static double difference(const float *a, const float *b, json_t *ids)
{
    double worst = 0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_int_t id = json_integer_value(json_array_get(ids, i));
        worst = fmax(worst, fabs((double)a[id] - (double)b[id]));
    }
    return worst;
}

static void compare(const sotto_whisper_model *whole, const sotto_whisper_model *bytes, const char *type, int *done)
{
    const st_hparams *h = &whole->h;
    parts p = parts_open(whole, NULL), q = parts_open(bytes, NULL);
    const size_t n_encoded = (size_t)h->n_audio_ctx * (size_t)h->n_audio_state, n_vocab = (size_t)h->n_vocab;
    float *mel = malloc(sizeof *mel * ST_WINDOW_FRAMES * (size_t)h->n_mels),
          *encoded = malloc(sizeof *encoded * n_encoded), *want = malloc(sizeof *want * n_vocab),
          *got = malloc(sizeof *got * n_vocab);
    given g = {encoded, sizeof *encoded * n_encoded};
    double most = 0, most_alone = 0;
    for (int i = 0; i < N_NAMES; i++) {
        golden of = golden_open("base", names[i]);
        recording r;
        if (recording_open(golden_at(of.json, "parts"), SAMPLES, &r)) {
            json_t *entry = golden_at(of.json, "first_logits");
            int32_t prompt[16];
            const int n = parts_ids(golden_at(entry, "prompt"), prompt, 16);
            sotto_error err;
            st_frontend_reset(p.frontend);
            if (st_frontend_feed(p.frontend, r.pcm, SAMPLES, NULL, &err) || st_frontend_finish(p.frontend, NULL, &err))
                fail_msg("%s", err.text);
            st_frontend_window(p.frontend, 0, ST_WINDOW_FRAMES, mel);
            if (p.engine.encode(p.engine.ctx, 0, mel, ST_WINDOW_FRAMES, &err) ||
                st_net_encoder_output(p.net, encoded, &err))
                fail_msg("%s", err.text);
            parts_logits(&p, prompt, n, want);
            hear(&q, mel, prompt, n, got);
            const double both = difference(got, want, golden_at(entry, "ids"));
            st_net_set_encoder(q.net, give, &g);
            hear(&q, mel, prompt, n, got);
            st_net_set_encoder(q.net, NULL, NULL);
            const double alone = difference(got, want, golden_at(entry, "ids"));
            printf("%-14s %-6s: first logits %.2f, of the decoder alone %.2f\n", names[i], type, both, alone);
            most = fmax(most, both);
            most_alone = fmax(most_alone, alone);
            ++*done;
            recording_close(&r);
        }
        golden_close(&of);
    }
    printf("%s: %.2f (<= %.1f), of the decoder alone %.2f\n", type, most, LOGIT_BOUND, most_alone);
    free(mel);
    free(encoded);
    free(want);
    free(got);
    parts_close(&p);
    parts_close(&q);
    assert_true(most <= LOGIT_BOUND);
}

static void check_type(const char *type, const char *ending)
{
    char path[1024];
    sotto_error err;
    const sotto_convert_options o = {.dtype = type, .threads = 1};
    snprintf(path, sizeof path, "%s/blocks-%s-%ld%s", SOTTO_BUILD_DIR, type, (long)getpid(), ending);
    if (sotto_model_convert(file, path, &o, &err))
        fail_msg("%s", err.text);
    sotto_whisper_model *whole = open_as(path, "f32"), *bytes = open_as(path, "int8");
    unlink(path);
    int done = 0;
    compare(whole, bytes, type, &done);
    sotto_whisper_model_free(whole);
    sotto_whisper_model_free(bytes);
    if (done == 0)
        skip();
}

#define TYPE(name, ending)         \
    static void name(void **state) \
    {                              \
        (void)state;               \
        check_type(#name, ending); \
    }
TYPE(q4_0, ".bin")
TYPE(q5_0, ".bin")
TYPE(q5_1, ".bin")
TYPE(q4_k, ".gguf")
TYPE(iq4_nl, ".gguf")

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const char *path = model_path("base");
    sotto_error err;
    if (!path)
        return 77;
    if (sotto_model_file_open(path, &file, &err)) {
        printf("%s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q4_0), cmocka_unit_test(q5_0),   cmocka_unit_test(q5_1),
        cmocka_unit_test(q4_k), cmocka_unit_test(iq4_nl),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sotto_model_file_free(file);
    return failed;
}
