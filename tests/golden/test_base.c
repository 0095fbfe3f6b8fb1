/* The model `base` against openai-whisper in float32, recording by recording: log-mel, encoder and first logits in every
 * compute type; languages and whole transcriptions token by token in f32. Bounds: docs/numerics.md. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "parts_support.h"
#include "words_support.h"

#define MEL_BOUND 1e-4
#define LANGUAGE_BOUND 0.01
#define WORDS_PERCENT 3 /* words that differ from those in float32, most of them no errors */
enum { FIRST_SPECIAL = 50257 };

typedef struct precision {
    const char *compute;
    double encoder; /* relative to the norm */
    double logit;
    const char *caches; /* NULL: what goes with the compute type */
} precision;

static const precision precisions[] = {{"f32", 2e-3, 0.05, NULL}, {"bf16", 1e-2, 0.2, NULL}, {"int8", 3e-2, 0.5, "bf16"}},
                       in_q8_0 = {"int8", 3e-2, 0.5, "q8_0"}, f32_in_q8_0 = {"f32", 2e-3, 0.2, "q8_0"};
enum { F32, BF16, INT8, N_PRECISIONS };

static const char *const names[] = {
    "librivox-0870", "librivox-0880", "librivox-0890", "librivox-0920", "librivox-0930",
    "librivox-pair", "librivox-all",  "librivox-long", "jfk",           "pico-test",
    "pico-test-de",  "pico-test-es",  "pico-test-ja",  "pico-empty",
};
enum { N_NAMES = sizeof names / sizeof *names };

static sotto_whisper_model *models[N_PRECISIONS];

static double check_mel(const golden *g, const float *mel, int n_mels)
{
    json_t *entry = golden_at(g->json, "mel"), *frames = golden_at(entry, "frames");
    int64_t n;
    const float *want = golden_floats(g, golden_at(entry, "values"), &n);
    double worst = 0;
    for (size_t i = 0; i < json_array_size(frames); i++) {
        const int64_t frame = json_integer_value(json_array_get(frames, i));
        for (int b = 0; b < n_mels; b++)
            worst = fmax(worst, fabs((double)mel[frame * n_mels + b] - (double)want[(int64_t)i * n_mels + b]));
    }
    return worst;
}

/* The same order of the most likely tokens but for near-ties. */
static void check_order(const golden *g, const float *logits, double bound)
{
    int32_t top[64];
    const int n = parts_ids(golden_at(golden_at(g->json, "first_logits"), "top_ids"), top, 64);
    for (int i = 0; i + 1 < n; i++)
        assert_true(logits[top[i]] > logits[top[i + 1]] - 2 * bound);
}

static double check_logits(const parts *p, const golden *g, float *logits, double bound)
{
    json_t *entry = golden_at(g->json, "first_logits");
    int32_t prompt[16];
    const int n = parts_ids(golden_at(entry, "prompt"), prompt, 16);
    parts_logits(p, prompt, n, logits);
    check_order(g, logits, bound);
    return parts_logit_error(g, entry, logits);
}

static void mel_encoder_and_first_logits(const sotto_whisper_model *model, const precision *b)
{
    const int n_mels = model->h.n_mels, d = model->h.n_audio_state;
    parts p = parts_open_with(model, NULL, b->caches);
    float *mel = malloc(sizeof *mel * ST_WINDOW_FRAMES * (size_t)n_mels);
    float *out = malloc(sizeof *out * (size_t)model->h.n_audio_ctx * (size_t)d);
    float *logits = malloc(sizeof *logits * (size_t)model->h.n_vocab);
    int done = 0;
    bool within = true;
    for (int i = 0; i < N_NAMES; i++) {
        golden g = golden_open("base", names[i]);
        recording r;
        if (recording_open(golden_at(g.json, "parts"), 480000, &r)) {
            sotto_error err;
            st_frontend_reset(p.frontend);
            /* the golden mel is of the audio cut to 30 s, whose last frames see its end reflected */
            float reflection[ST_N_FFT / 2];
            for (int k = 0; k < ST_N_FFT / 2; k++)
                reflection[k] = r.pcm[480000 - 2 - k];
            if (st_frontend_feed(p.frontend, r.pcm, 480000, NULL, &err) ||
                st_frontend_feed(p.frontend, reflection, ST_N_FFT / 2, NULL, &err) ||
                st_frontend_finish(p.frontend, NULL, &err))
                fail_msg("%s", err.text);
            st_frontend_window(p.frontend, 0, ST_WINDOW_FRAMES, mel);
            if (p.engine.encode(p.engine.ctx, 0, mel, ST_WINDOW_FRAMES, &err) || st_net_encoder_output(p.net, out, &err))
                fail_msg("%s", err.text);
            const double m = check_mel(&g, mel, n_mels), e = parts_encoder_error(&g, out, d),
                         l = check_logits(&p, &g, logits, b->logit);
            printf("%-14s %s: mel %.1e (<= %.0e), encoder %.1e (<= %.0e), first logits %.1e (<= %.2f)\n", names[i],
                   b->compute, m, MEL_BOUND, e, b->encoder, l, b->logit);
            within &= m <= MEL_BOUND && e <= b->encoder && l <= b->logit;
            done++;
            recording_close(&r);
        }
        golden_close(&g);
    }
    free(mel);
    free(out);
    free(logits);
    parts_close(&p);
    assert_true(within);
    if (done == 0)
        skip();
}

static void numbers_in_f32(void **state)
{
    (void)state;
    mel_encoder_and_first_logits(models[F32], &precisions[F32]);
}

static void numbers_in_bf16(void **state)
{
    (void)state;
    mel_encoder_and_first_logits(models[BF16], &precisions[BF16]);
}

static void numbers_in_int8(void **state)
{
    (void)state;
    mel_encoder_and_first_logits(models[INT8], &precisions[INT8]);
}

static void numbers_with_caches_in_8_bits(void **state)
{
    (void)state;
    mel_encoder_and_first_logits(models[F32], &f32_in_q8_0);
    mel_encoder_and_first_logits(models[INT8], &in_q8_0);
}

static sotto_whisper_session *open_session_with(const sotto_whisper_model *model, const char *caches)
{
    sotto_error err;
    sotto_whisper_session *s;
    sotto_whisper_session_options o;
    sotto_whisper_session_options_default(&o);
    o.cache_k = o.cache_v = caches;
    if (sotto_whisper_session_create(model, &o, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static sotto_whisper_session *open_session(const sotto_whisper_model *model)
{
    return open_session_with(model, NULL);
}

static void languages(void **state)
{
    (void)state;
    sotto_whisper_session *s = open_session(models[F32]);
    int done = 0;
    for (int i = 0; i < N_NAMES; i++) {
        golden g = golden_open("base", names[i]);
        recording r;
        if (recording_open(golden_at(g.json, "parts"), 480000, &r)) {
            float p[128];
            int best;
            sotto_error err;
            if (sotto_whisper_detect_language(s, r.pcm, 480000, p, &best, &err))
                fail_msg("%s", err.text);
            json_t *want = golden_at(g.json, "language_probabilities"), *value;
            const char *code;
            double worst = 0;
            json_object_foreach(want, code, value)
            {
                const int index = sotto_language_find(code);
                assert_true(index >= 0);
                worst = fmax(worst, fabs((double)p[index] - json_number_value(value)));
            }
            printf("%-14s %s, worst difference %.1e (<= %.2f)\n", names[i], sotto_language_code(best), worst,
                   LANGUAGE_BOUND);
            assert_true(worst <= LANGUAGE_BOUND);
            done++;
            recording_close(&r);
        }
        golden_close(&g);
    }
    sotto_whisper_session_free(s);
    if (done == 0)
        skip();
}

static void compare_segment(const char *name, int64_t i, const sotto_whisper_segment *have, json_t *want)
{
    json_t *tokens = golden_at(want, "tokens");
    char text[1024] = "";
    for (int64_t k = 0; k < have->n_tokens; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " %d", (int)have->tokens[k].id);
    if (have->n_tokens != (int64_t)json_array_size(tokens))
        fail_msg("%s segment %lld: %lld tokens, expected %zu: %s", name, (long long)i, (long long)have->n_tokens,
                 json_array_size(tokens), text);
    for (int64_t k = 0; k < have->n_tokens; k++)
        if (have->tokens[k].id != json_integer_value(json_array_get(tokens, (size_t)k)))
            fail_msg("%s segment %lld: token %lld differs: %s", name, (long long)i, (long long)k, text);
    const struct {
        const char *key;
        double value, bound;
    } numbers[] = {{"start", have->start, 1e-3},
                   {"end", have->end, 1e-3},
                   {"temperature", (double)have->temperature, 1e-6},
                   {"avg_logprob", (double)have->avg_logprob, 5e-3},
                   {"compression_ratio", (double)have->compression_ratio, 1e-4},
                   {"no_speech_prob", (double)have->no_speech_probability, 5e-3}};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
        const double w = json_number_value(golden_at(want, numbers[k].key));
        if (fabs(numbers[k].value - w) > numbers[k].bound)
            fail_msg("%s segment %lld: %s is %g, expected %g", name, (long long)i, numbers[k].key, numbers[k].value, w);
    }
}

/* The original clamps nothing: a last segment may end after the audio there. Ours ends with its last whole frame. */
static double clamp_end(double end, double duration)
{
    return end < duration ? end : duration;
}

static void transcriptions(int beam_size, const char *key)
{
    sotto_whisper_session *s = open_session(models[F32]);
    int done = 0;
    for (int i = 0; i < N_NAMES; i++) {
        golden g = golden_open("base", names[i]);
        recording r;
        json_t *segments = json_object_get(g.json, key);
        if (segments && recording_open(golden_at(g.json, "parts"), 0, &r)) {
            sotto_whisper_options o;
            sotto_whisper_options_default(&o);
            o.beam_size = beam_size;
            o.recover_missed = false; /* windows begin where the original's do */
            o.language = json_string_value(golden_at(g.json, "language"));
            sotto_error err;
            if (sotto_whisper_transcribe(s, r.pcm, r.n, &o, &err))
                fail_msg("%s: %s", names[i], err.text);
            const double duration = (double)r.n / SOTTO_WHISPER_SAMPLE_RATE;
            printf("%-14s %s: %lld segments\n", names[i], key, (long long)sotto_whisper_segment_count(s));
            assert_int_equal(sotto_whisper_segment_count(s), (int64_t)json_array_size(segments));
            for (int64_t k = 0; k < sotto_whisper_segment_count(s); k++) {
                json_t *want = json_array_get(segments, (size_t)k);
                const double end = json_number_value(golden_at(want, "end"));
                json_object_set_new(want, "end", json_real(clamp_end(end, duration)));
                compare_segment(names[i], k, sotto_whisper_segment_get(s, k), want);
            }
            done++;
            recording_close(&r);
        }
        golden_close(&g);
    }
    sotto_whisper_session_free(s);
    if (done == 0)
        skip();
}

static void greedy_transcriptions(void **state)
{
    (void)state;
    transcriptions(1, "transcribe_greedy");
}

static void beam_transcriptions(void **state)
{
    (void)state;
    transcriptions(5, "transcribe_beam5");
}

/* Text of all segments as the original's tokens give it; special tokens have no bytes of their own. */
static void golden_text(const sotto_whisper_model *model, json_t *segments, char *text, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(segments); i++) {
        json_t *tokens = golden_at(json_array_get(segments, i), "tokens");
        for (size_t k = 0; k < json_array_size(tokens); k++) {
            const int32_t id = (int32_t)json_integer_value(json_array_get(tokens, k));
            size_t length;
            const char *bytes = sotto_whisper_token_bytes(model, id, &length);
            if (id < FIRST_SPECIAL && n + length < cap) {
                memcpy(text + n, bytes, length);
                n += length;
            }
        }
    }
    text[n] = 0;
}

/* Words that differ from what the original in float32 writes, over all recordings but the one of three equal rounds, where
 * the original, too, leaves out or repeats whole rounds on a hair's breadth. */
static int words_off(int which, const char *caches, int beam_size, const char *key, int *n_words)
{
    sotto_whisper_session *s = open_session_with(models[which], caches);
    int apart = 0;
    *n_words = 0;
    for (int i = 0; i < N_NAMES; i++) {
        golden g = golden_open("base", names[i]);
        recording r;
        json_t *segments = json_object_get(g.json, key);
        const bool rounds = strcmp(names[i], "librivox-long") == 0;
        if (segments && !rounds && recording_open(golden_at(g.json, "parts"), 0, &r)) {
            sotto_whisper_options o;
            sotto_whisper_options_default(&o);
            o.beam_size = beam_size;
            o.recover_missed = false; /* windows begin where the original's do */
            o.language = json_string_value(golden_at(g.json, "language"));
            sotto_error err;
            if (sotto_whisper_transcribe(s, r.pcm, r.n, &o, &err))
                fail_msg("%s: %s", names[i], err.text);
            char want[4096], have[4096] = "";
            golden_text(models[which], segments, want, sizeof want);
            for (int64_t k = 0; k < sotto_whisper_segment_count(s); k++)
                snprintf(have + strlen(have), sizeof have - strlen(have), "%s", sotto_whisper_segment_get(s, k)->text);
            int n;
            const int off = words_apart(have, want, &n);
            printf("%-14s %s %s, caches %s: %d of %d words differ\n", names[i], precisions[which].compute, key,
                   caches ? caches : "auto", off, n);
            if (n == 0)
                assert_int_equal(off, 0); /* silence stays silence */
            apart += off;
            *n_words += n;
            recording_close(&r);
        }
        golden_close(&g);
    }
    sotto_whisper_session_free(s);
    return apart;
}

static int check_words(int which, const char *caches)
{
    int total = 0;
    for (int beam_size = 1; beam_size <= 5; beam_size += 4) {
        int n;
        const int apart =
            words_off(which, caches, beam_size, beam_size == 1 ? "transcribe_greedy" : "transcribe_beam5", &n);
        printf("%s, caches %s, beam %d: %d of %d words differ (<= %d %%)\n", precisions[which].compute,
               caches ? caches : "auto", beam_size, apart, n, WORDS_PERCENT);
        assert_true(apart * 100 <= n * WORDS_PERCENT);
        total += n;
    }
    return total;
}

static void texts_in_other_types(void **state)
{
    (void)state;
    if (check_words(BF16, NULL) + check_words(INT8, "bf16") == 0)
        skip();
}

static void texts_with_caches_in_8_bits(void **state)
{
    (void)state;
    if (check_words(INT8, "q8_0") == 0)
        skip();
}

static void caches_take_half_the_memory(void **state)
{
    (void)state;
    static const char *const types[] = {"bf16", "q8_0", NULL};
    uint64_t bytes[3][2];
    for (int i = 0; i < 3; i++) {
        sotto_whisper_session *s = open_session_with(models[INT8], types[i]);
        sotto_whisper_timings t;
        sotto_whisper_get_timings(s, &t);
        bytes[i][0] = t.self_cache_bytes;
        bytes[i][1] = t.cross_cache_bytes;
        sotto_whisper_session_free(s);
    }
    const int preferred = sotto_backend_preferred_caches(models[INT8]->backend) == SOTTO_Q8_0 ? 1 : 0;
    for (int c = 0; c < 2; c++) {
        printf("%.1f MB in bf16, %.1f in q8_0\n", (double)bytes[0][c] / 1e6, (double)bytes[1][c] / 1e6);
        assert_true(bytes[1][c] * 64 <= bytes[0][c] * 35); /* 34 of 64, and padding */
        assert_int_equal(bytes[2][c], bytes[preferred][c]);
    }
}

static void other_caches_are_refused(void **state)
{
    (void)state;
    sotto_whisper_session_options o;
    sotto_whisper_session_options_default(&o);
    o.cache_v = "q4_0";
    sotto_error err;
    sotto_whisper_session *s;
    assert_int_equal(sotto_whisper_session_create(models[INT8], &o, &s, &err), SOTTO_E_ARGUMENT);
    assert_null(s);
    assert_non_null(strstr(err.text, "cache_v: \"q4_0\" is no type of caches"));
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const char *path = model_path("base");
    if (!path)
        return 77;
    for (int i = 0; i < N_PRECISIONS; i++) {
        sotto_whisper_model_options o;
        sotto_whisper_model_options_default(&o);
        o.compute = precisions[i].compute;
        sotto_error err;
        if (sotto_whisper_model_open(path, &o, &models[i], &err)) {
            printf("%s\n", err.text);
            return 1;
        }
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_in_f32),
        cmocka_unit_test(numbers_in_bf16),
        cmocka_unit_test(numbers_in_int8),
        cmocka_unit_test(languages),
        cmocka_unit_test(greedy_transcriptions),
        cmocka_unit_test(beam_transcriptions),
        cmocka_unit_test(texts_in_other_types),
        cmocka_unit_test(numbers_with_caches_in_8_bits),
        cmocka_unit_test(texts_with_caches_in_8_bits),
        cmocka_unit_test(caches_take_half_the_memory),
        cmocka_unit_test(other_caches_are_refused),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    for (int i = 0; i < N_PRECISIONS; i++)
        sotto_whisper_model_free(models[i]);
    return failed;
}
