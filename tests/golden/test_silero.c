/* Silero VAD against the original's network and its spans (silero.json, see README.md there). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden_support.h"
#include "sotto/vad.h"

static sotto_error err;

static void ok(sotto_status status)
{
    if (status != SOTTO_OK)
        fail_msg("%s", err.text);
}

static sotto_vad_options options_of(const char *name)
{
    sotto_vad_options o;
    sotto_vad_options_default(&o);
    if (strcmp(name, "long_pauses") == 0) {
        o.min_speech_ms = 0;
        o.min_silence_ms = 2000;
        o.pad_ms = 400;
    } else if (strcmp(name, "short_spans") == 0) {
        o.max_speech_s = 3;
    } else if (strcmp(name, "very_short_spans") == 0) {
        o.max_speech_s = 1;
        o.min_silence_ms = 300;
    } else if (strcmp(name, "strict") == 0) {
        o.threshold = 0.8f;
        o.pad_ms = 200;
    } else if (strcmp(name, "lenient") == 0) {
        o.threshold = 0.2f;
        o.neg_threshold = 0.1f;
        o.min_silence_ms = 30;
        o.min_speech_ms = 50;
    } else
        assert_string_equal(name, "defaults");
    return o;
}

/* In pieces of that many samples, one more each time. */
static void hear(sotto_vad_stream *s, const recording *r, int64_t piece)
{
    for (int64_t at = 0; at < r->n; piece++) {
        const int64_t n = r->n - at < piece ? r->n - at : piece;
        ok(sotto_vad_push(s, r->pcm + at, n, &err));
        at += n;
    }
    ok(sotto_vad_finish(s, &err));
}

static double compare(const sotto_vad_stream *s, json_t *want, const char *name)
{
    int64_t n;
    const float *p = sotto_vad_probabilities(s, &n);
    double worst = 0;
    assert_int_equal(n, json_array_size(want));
    for (int64_t i = 0; i < n; i++) {
        const double w = json_number_value(json_array_get(want, (size_t)i));
        worst = fmax(worst, fabs((double)p[i] - w));
        if (!(fabs((double)p[i] - w) <= 1e-4))
            fail_msg("%s: chunk %d: %.7f, expected %.7f", name, (int)i, (double)p[i], w);
    }
    return worst;
}

static void compare_spans(const sotto_vad_stream *s, json_t *want, const char *name)
{
    assert_int_equal(sotto_vad_span_count(s), json_array_size(want));
    for (size_t i = 0; i < json_array_size(want); i++) {
        sotto_vad_span span;
        ok(sotto_vad_span_get(s, (int64_t)i, &span));
        const json_t *w = json_array_get(want, i);
        const long start = lrint(span.start * 16000), end = lrint(span.end * 16000);
        if (start != json_integer_value(json_array_get(w, 0)) || end != json_integer_value(json_array_get(w, 1)))
            fail_msg("%s: span %d: %ld to %ld, expected %d to %d", name, (int)i, start, end,
                     (int)json_integer_value(json_array_get(w, 0)), (int)json_integer_value(json_array_get(w, 1)));
    }
}

static json_t *golden_root(void)
{
    json_t *root = json_load_file(SOTTO_SOURCE_DIR "/tests/golden/data/silero.json", 0, NULL);
    assert_non_null(root);
    return root;
}

static void as_the_original(void **state)
{
    (void)state;
    const char *path = model_path("silero-vad");
    if (!path)
        skip();
    sotto_vad_model *model;
    sotto_vad_stream *stream;
    ok(sotto_vad_model_open(path, NULL, &model, &err));
    ok(sotto_vad_stream_create(model, NULL, &stream, &err));
    json_t *root = golden_root(), *entry, *spans;
    const char *name, *key;
    int n = 0;
    json_object_foreach(root, name, entry)
    {
        recording r;
        if (!recording_open(golden_at(entry, "parts"), 0, &r))
            continue;
        assert_int_equal(r.n, json_integer_value(golden_at(entry, "samples")));
        int64_t piece = r.n;
        json_object_foreach(golden_at(entry, "spans"), key, spans)
        {
            const sotto_vad_options o = options_of(key);
            ok(sotto_vad_reset(stream, &o, &err));
            hear(stream, &r, piece);
            const double worst = compare(stream, golden_at(entry, "probabilities"), name);
            compare_spans(stream, spans, key);
            if (piece == r.n)
                printf("%s: probabilities within %.1e\n", name, worst);
            piece = piece == r.n ? 100 : piece * 7;
        }
        recording_close(&r);
        n++;
    }
    json_decref(root);
    sotto_vad_stream_free(stream);
    sotto_vad_model_free(model);
    if (n == 0)
        skip();
}

/* The shortest recording on every instruction set and on the reference. */
static void on_every_backend(void **state)
{
    (void)state;
    const char *path = model_path("silero-vad");
    if (!path)
        skip();
    json_t *root = golden_root(), *entry = golden_at(root, "librivox-0880");
    recording r;
    if (!recording_open(golden_at(entry, "parts"), 0, &r)) {
        json_decref(root);
        skip();
    }
    static const char *const levels[] = {"portable", "v2", "v3", "v4", "neon", "reference"};
    for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
        const bool reference = strcmp(levels[i], "reference") == 0;
        const sotto_backend_options backend = {.device = reference ? levels[i] : NULL,
                                               .cpu_level = reference ? NULL : levels[i]};
        sotto_vad_model *model;
        sotto_vad_stream *stream;
        if (sotto_vad_model_open(path, &backend, &model, &err) != SOTTO_OK) {
            assert_null(model); /* not this machine's */
            continue;
        }
        ok(sotto_vad_stream_create(model, NULL, &stream, &err));
        hear(stream, &r, 5000);
        printf("%s: within %.1e\n", levels[i], compare(stream, golden_at(entry, "probabilities"), levels[i]));
        compare_spans(stream, golden_at(golden_at(entry, "spans"), "defaults"), levels[i]);
        sotto_vad_stream_free(stream);
        sotto_vad_model_free(model);
    }
    recording_close(&r);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_original), cmocka_unit_test(on_every_backend)};
    return cmocka_run_group_tests_name("silero", tests, NULL, NULL);
}
