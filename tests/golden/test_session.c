/* Sessions from outside, through sotto/whisper.h: pieces and wholes, threads, memory, abort, bad audio. On a small seeded
 * model (its text means nothing) and, where it matters, on base. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/thread.h"
#include "golden_support.h"
#include "sotto/sotto.h"

#define TINY SOTTO_BUILD_DIR "/tiny/tiny-multilingual-ggml-f16.bin"

enum { RATE = SOTTO_WHISPER_SAMPLE_RATE };

static sotto_whisper_model *open_model(const char *path)
{
    sotto_error err;
    sotto_whisper_model *model;
    if (sotto_whisper_model_open(path, NULL, &model, &err))
        fail_msg("%s", err.text);
    return model;
}

static sotto_whisper_session *open_session_with(const sotto_whisper_model *model, const char *caches)
{
    sotto_whisper_session_options o;
    sotto_whisper_session_options_default(&o);
    o.cache_k = o.cache_v = caches;
    sotto_error err;
    sotto_whisper_session *s;
    if (sotto_whisper_session_create(model, &o, &s, &err))
        fail_msg("%s", err.text);
    return s;
}

static sotto_whisper_session *open_session(const sotto_whisper_model *model)
{
    return open_session_with(model, NULL);
}

/* A short run: the small model's text never ends by itself. */
static sotto_whisper_options short_options(void)
{
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    o.language = "en";
    o.beam_size = 2;
    o.max_tokens = 6;
    o.temperature_inc = 0;
    return o;
}

/* Every number and byte of the result, so that equal digests mean equal bits. */
static uint64_t digest(const sotto_whisper_session *s)
{
    uint64_t h = 1469598103934665603u;
    const int64_t n = sotto_whisper_segment_count(s);
    for (int64_t i = 0; i < n; i++) {
        const sotto_whisper_segment *g = sotto_whisper_segment_get(s, i);
        const struct {
            const void *data;
            size_t size;
        } parts[] = {{&g->start, sizeof g->start},
                     {&g->end, sizeof g->end},
                     {g->text, g->n_text},
                     {&g->avg_logprob, sizeof g->avg_logprob},
                     {&g->no_speech_probability, sizeof g->no_speech_probability}};
        for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
            for (size_t b = 0; b < parts[k].size; b++)
                h = (h ^ ((const uint8_t *)parts[k].data)[b]) * 1099511628211u;
        for (int64_t k = 0; k < g->n_tokens; k++)
            h = (h ^ (uint64_t)(uint32_t)g->tokens[k].id) * 1099511628211u;
    }
    return h ^ (uint64_t)n;
}

/* Seeded noise with a slow swell: something for the front end to hear. */
static float *make_noise(int64_t n, uint32_t seed)
{
    float *pcm = malloc(sizeof *pcm * (size_t)(n > 0 ? n : 1));
    for (int64_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        pcm[i] = 0.3f * ((float)(seed >> 8) / 8388608.0f - 1) * (float)(0.5 + 0.5 * sin((double)i / 20000));
    }
    return pcm;
}

static void run(sotto_whisper_session *s, const float *pcm, int64_t n, const sotto_whisper_options *o)
{
    sotto_error err;
    if (sotto_whisper_transcribe(s, pcm, n, o, &err))
        fail_msg("%s", err.text);
}

static void the_same_twice_and_after_other_audio(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model), *fresh = open_session(model);
    const sotto_whisper_options o = short_options();
    float *a = make_noise(5 * RATE, 1), *silence = calloc(3 * RATE, sizeof *silence), *b = make_noise(7 * RATE, 2);
    run(s, a, 5 * RATE, &o);
    const uint64_t first = digest(s);
    run(s, silence, 3 * RATE, &o);
    run(s, b, 7 * RATE, &o);
    const uint64_t later = digest(s);
    run(fresh, b, 7 * RATE, &o);
    assert_int_equal(later, digest(fresh));
    run(s, a, 5 * RATE, &o);
    assert_int_equal(first, digest(s));
    assert_int_not_equal(first, later);
    free(a);
    free(b);
    free(silence);
    sotto_whisper_session_free(s);
    sotto_whisper_session_free(fresh);
    sotto_whisper_model_free(model);
}

/* Every run gives the same, whole or in pieces with a lookahead as long; sequential sessions pay nothing for batches. */
static void a_batch_gives_the_same_every_time(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model);
    sotto_whisper_options o = short_options();
    enum { N = 100 * RATE + 77 };
    float *pcm = make_noise(N, 9);
    sotto_whisper_timings before, t;
    sotto_error err;
    sotto_whisper_get_timings(s, &before);
    run(s, pcm, N, &o);
    const uint64_t sequential = digest(s);
    static const int sizes[] = {3, 8};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        o.batch = sizes[k];
        run(s, pcm, N, &o);
        const uint64_t first = digest(s);
        sotto_whisper_get_timings(s, &t);
        assert_true(t.n_encode >= 4 && t.n_prompt >= 4 && sotto_whisper_segment_count(s) >= 4);
        sotto_whisper_set_lookahead(s, 100);
        assert_int_equal(sotto_whisper_begin(s, &o, &err), SOTTO_OK);
        for (int64_t i = 0; i < N; i += 7 * RATE)
            assert_int_equal(sotto_whisper_feed(s, pcm + i, i + 7 * RATE < N ? 7 * RATE : N - i, &err), SOTTO_OK);
        assert_int_equal(sotto_whisper_finish(s, &err), SOTTO_OK);
        assert_int_equal(digest(s), first);
        sotto_whisper_set_lookahead(s, 0);
        assert_int_equal(sotto_whisper_begin(s, &o, &err), SOTTO_OK); /* given up half way */
        assert_int_equal(sotto_whisper_feed(s, pcm, 70 * RATE, &err), SOTTO_OK);
    }
    o.batch = 33;
    assert_int_equal(sotto_whisper_begin(s, &o, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "batch"));
    o.batch = 1;
    run(s, pcm, N, &o);
    assert_int_equal(digest(s), sequential);
    sotto_whisper_get_timings(s, &t);
    assert_true(t.self_cache_bytes == before.self_cache_bytes && t.cross_cache_bytes == before.cross_cache_bytes);
    free(pcm);
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

/* Padding is thin where it is asked for, and where it is not, in batches. A full window has none, and is the same. */
static void padding_is_thin_in_batches(void **state)
{
    (void)state;
    static const sotto_padding kinds[] = {SOTTO_PADDING_AUTO, SOTTO_PADDING_WHOLE, SOTTO_PADDING_THIN};
    enum { AUTO, WHOLE, THIN };
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model);
    float *pcm = make_noise(30 * RATE, 4);
    uint64_t heard[2][3], full[3];
    for (int batch = 0; batch < 2; batch++)
        for (int k = 0; k < 3; k++) {
            sotto_whisper_options o = short_options();
            o.batch = batch + 1;
            o.padding = kinds[k];
            run(s, pcm, 5 * RATE, &o);
            heard[batch][k] = digest(s);
            o.batch = 1;
            o.timestamps = false; /* so that there is one window */
            run(s, pcm, 30 * RATE, &o);
            full[k] = digest(s);
        }
    assert_true(heard[0][AUTO] == heard[0][WHOLE] && heard[0][AUTO] != heard[0][THIN]);
    assert_true(heard[1][AUTO] == heard[1][THIN] && heard[1][AUTO] != heard[1][WHOLE]);
    assert_true(full[AUTO] == full[WHOLE] && full[AUTO] == full[THIN]);
    free(pcm);
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

/* In f16, whose caches are whole lines of 64 bytes. */
static void a_batch_takes_caches_for_each_window(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session_with(model, "f16");
    sotto_whisper_options o = short_options();
    sotto_whisper_timings one, t;
    sotto_error err;
    sotto_whisper_get_timings(s, &one);
    static const int sizes[] = {3, 8, 1};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        o.batch = sizes[k];
        assert_int_equal(sotto_whisper_begin(s, &o, &err), SOTTO_OK);
        sotto_whisper_get_timings(s, &t);
        const uint64_t n = (uint64_t)sizes[k];
        assert_int_equal(t.self_cache_bytes, n * one.self_cache_bytes);
        assert_int_equal(t.cross_cache_bytes, n * one.cross_cache_bytes);
    }
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

/* Two threads for each core are the most that is used, or four: so many there are everywhere. */
static void a_batch_is_chosen_by_the_threads(void **state)
{
    (void)state;
    static const struct {
        int threads;
        uint64_t windows;
    } cases[] = {{1, 1}, {3, 1}, {4, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sotto_whisper_model_options mo;
        sotto_whisper_model_options_default(&mo);
        mo.backend.n_threads = cases[i].threads;
        sotto_whisper_model *model;
        sotto_error err;
        assert_int_equal(sotto_whisper_model_open(TINY, &mo, &model, &err), SOTTO_OK);
        sotto_whisper_session *s = open_session_with(model, "f16");
        sotto_whisper_options o = short_options();
        sotto_whisper_timings before, t;
        sotto_whisper_get_timings(s, &before);
        o.batch = 0;
        assert_int_equal(sotto_whisper_begin(s, &o, &err), SOTTO_OK);
        sotto_whisper_get_timings(s, &t);
        assert_int_equal(t.cross_cache_bytes, cases[i].windows * before.cross_cache_bytes);
        sotto_whisper_session_free(s);
        sotto_whisper_model_free(model);
    }
}

static void pieces_give_what_the_whole_gives(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model);
    const sotto_whisper_options o = short_options();
    enum { N = 8 * RATE + 77 };
    float *pcm = make_noise(N, 3);
    run(s, pcm, N, &o);
    const uint64_t whole = digest(s);
    static const int64_t steps[] = {1, 159, 160, 4097, 16000};
    for (size_t k = 0; k < sizeof steps / sizeof *steps; k++) {
        sotto_error err;
        const int64_t step = k == 0 ? 1 : steps[k];
        assert_int_equal(sotto_whisper_begin(s, &o, &err), SOTTO_OK);
        for (int64_t i = 0; i < N; i += step)
            assert_int_equal(sotto_whisper_feed(s, pcm + i, i + step < N ? step : N - i, &err), SOTTO_OK);
        assert_int_equal(sotto_whisper_finish(s, &err), SOTTO_OK);
        assert_int_equal(digest(s), whole);
        assert_true(fabs(sotto_whisper_duration(s) - (double)N / RATE) < 1e-9);
        assert_int_equal(sotto_whisper_feed(s, pcm, 1, &err), SOTTO_E_ARGUMENT);
    }
    free(pcm);
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

typedef struct job {
    const sotto_whisper_model *model;
    const float *pcm;
    int64_t n;
    uint64_t digest;
    bool ok;
} job;

static void transcribe_job(void *arg)
{
    job *j = arg;
    const sotto_whisper_options o = short_options();
    sotto_whisper_session *s;
    j->ok = sotto_whisper_session_create(j->model, NULL, &s, NULL) == SOTTO_OK &&
            sotto_whisper_transcribe(s, j->pcm, j->n, &o, NULL) == SOTTO_OK;
    if (!j->ok)
        return;
    j->digest = digest(s);
    sotto_whisper_session_free(s);
}

static void sessions_in_threads_give_the_same_bits(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    sotto_whisper_model *model = open_model(TINY);
    float *pcm[2] = {make_noise(4 * RATE, 4), make_noise(6 * RATE, 5)};
    job alone[2], jobs[THREADS];
    for (int i = 0; i < 2; i++) {
        alone[i] = (job){.model = model, .pcm = pcm[i], .n = (4 + 2 * i) * RATE};
        transcribe_job(&alone[i]);
        assert_true(alone[i].ok);
    }
    st_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (job){.model = model, .pcm = pcm[i % 2], .n = alone[i % 2].n};
        assert_true(st_thread_create(&threads[i], transcribe_job, &jobs[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        st_thread_join(&threads[i]);
        assert_true(jobs[i].ok);
        assert_int_equal(jobs[i].digest, alone[i % 2].digest);
    }
    free(pcm[0]);
    free(pcm[1]);
    sotto_whisper_model_free(model);
}

/* Silence, one sample, lengths around a frame and a window, and the parts of a second that people cut from recordings. */
static void audio_of_any_length(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0,    1,    5,    159,   160,   161,    199,    200,   201,
                                      1600, 4800, 8800, 15840, 16000, 479999, 480000, 480001};
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model);
    sotto_whisper_options o = short_options();
    o.beam_size = 1;
    float *pcm = make_noise(480001, 6);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        run(s, lengths[i] ? pcm : NULL, lengths[i], &o);
        const double duration = (double)lengths[i] / RATE;
        for (int64_t k = 0; k < sotto_whisper_segment_count(s); k++) {
            const sotto_whisper_segment *g = sotto_whisper_segment_get(s, k);
            assert_true(g->start >= 0 && g->start <= g->end && g->end <= duration + 1e-9);
        }
        if (lengths[i] < 160)
            assert_int_equal(sotto_whisper_segment_count(s), 0);
    }
    free(pcm);
    sotto_error err;
    float p[128];
    assert_int_equal(sotto_whisper_transcribe(s, NULL, 5, &o, &err), SOTTO_E_ARGUMENT);
    assert_string_equal(err.text, "sotto_whisper_transcribe: pcm is NULL, but n_samples is 5");
    assert_int_equal(sotto_whisper_feed(s, p, -1, &err), SOTTO_E_ARGUMENT);
    assert_string_equal(err.text, "sotto_whisper_feed: n_samples is -1, expected 0 or more");
    assert_int_equal(sotto_whisper_detect_language(s, p, 1, p, NULL, &err), SOTTO_E_ARGUMENT);
    assert_string_equal(err.text, "sotto_whisper_detect_language: best is NULL");
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

static void samples_that_are_no_numbers(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model);
    const sotto_whisper_options o = short_options();
    enum { N = 3 * RATE };
    float *pcm = make_noise(N, 7);
    pcm[100] = pcm[RATE] = pcm[N - 1] = 0;
    run(s, pcm, N, &o);
    const uint64_t clean = digest(s);
    pcm[100] = NAN;
    pcm[RATE] = INFINITY;
    pcm[N - 1] = -INFINITY;
    run(s, pcm, N, &o);
    assert_int_equal(digest(s), clean);
    uint32_t seed = 99;
    for (int i = 0; i < N; i++) { /* a file's bytes taken for samples */
        seed = seed * 1664525u + 1013904223u;
        const uint32_t bits = seed ^ (seed << 13);
        memcpy(&pcm[i], &bits, 4);
    }
    run(s, pcm, N, &o);
    for (int i = 0; i < N; i++)
        pcm[i] = 1e-41f;
    run(s, pcm, N, &o);
    free(pcm);
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

/* What a session costs is what its timings say: caches and compute buffers, no weights. */
static void a_second_session_costs_only_its_own_memory(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_model_info info;
    sotto_whisper_model_get_info(model, &info);
    sotto_whisper_session *a = open_session_with(model, "f16"), *b = open_session_with(model, "f16");
    sotto_whisper_timings ta, tb;
    sotto_whisper_get_timings(a, &ta);
    sotto_whisper_get_timings(b, &tb);
    assert_int_equal(ta.weight_bytes, info.weight_bytes);
    assert_int_equal(ta.self_cache_bytes, tb.self_cache_bytes);
    assert_int_equal(ta.cross_cache_bytes, tb.cross_cache_bytes);
    /* [n_audio_ctx, D] keys and values in f16 of each layer */
    assert_int_equal(ta.cross_cache_bytes, 2u * 2u * 1500u * 64u * 2u);
    sotto_whisper_session_free(a);
    sotto_whisper_session_free(b);
    sotto_whisper_model_free(model);
}

static int64_t read_file(void *user, void *buffer, size_t n)
{
    return (int64_t)fread(buffer, 1, n < 1000 ? n : 1000, (FILE *)user);
}

static int64_t read_fails(void *user, void *buffer, size_t n)
{
    (void)user;
    (void)buffer;
    (void)n;
    return -1;
}

static void models_from_memory_and_callbacks(void **state)
{
    (void)state;
    const sotto_whisper_options o = short_options();
    float *pcm = make_noise(2 * RATE, 8);
    FILE *f = fopen(TINY, "rb");
    assert_non_null(f);
    sotto_error err;
    sotto_whisper_model *models[2];
    const sotto_reader reader = {read_file, f};
    if (sotto_whisper_model_open_reader(&reader, NULL, &models[0], &err))
        fail_msg("%s", err.text);
    const long size = ftell(f);
    rewind(f);
    void *data = malloc((size_t)size);
    assert_int_equal(fread(data, 1, (size_t)size, f), (size_t)size);
    fclose(f);
    if (sotto_whisper_model_open_memory(data, (size_t)size, NULL, &models[1], &err))
        fail_msg("%s", err.text);
    free(data); /* not needed after the call */
    uint64_t digests[2];
    for (int i = 0; i < 2; i++) {
        sotto_whisper_session *s = open_session(models[i]);
        run(s, pcm, 2 * RATE, &o);
        digests[i] = digest(s);
        sotto_whisper_session_free(s);
        sotto_whisper_model_free(models[i]);
    }
    assert_int_equal(digests[0], digests[1]);
    const sotto_reader bad = {read_fails, NULL};
    sotto_whisper_model *none;
    assert_int_equal(sotto_whisper_model_open_reader(&bad, NULL, &none, &err), SOTTO_E_IO);
    assert_null(none);
    assert_int_equal(sotto_whisper_model_open_memory("", 0, NULL, &none, &err), SOTTO_E_FORMAT);
    free(pcm);
}

static void null_is_refused_everywhere(void **state)
{
    (void)state;
    sotto_error err;
    sotto_whisper_model *model;
    sotto_whisper_session *session;
    float p[128];
    int best;
    int64_t count;
    assert_int_equal(sotto_whisper_model_open(NULL, NULL, &model, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_model_open("x", NULL, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_model_open("/does/not/exist", NULL, &model, NULL), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_whisper_session_create(NULL, NULL, &session, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_begin(NULL, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_feed(NULL, p, 1, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_finish(NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_transcribe(NULL, p, 1, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_detect_language(NULL, p, 1, p, &best, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_tokenize(NULL, "x", NULL, 0, &count, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_whisper_segment_count(NULL), 0);
    assert_null(sotto_whisper_segment_get(NULL, 0));
    assert_null(sotto_whisper_language(NULL, p));
    assert_string_equal(sotto_whisper_token_bytes(NULL, 0, NULL), "");
    sotto_whisper_timings t;
    sotto_whisper_get_timings(NULL, &t);
    sotto_whisper_model_info info;
    sotto_whisper_model_get_info(NULL, &info);
    sotto_whisper_set_lookahead(NULL, 1);
    sotto_whisper_set_encoder(NULL, NULL, NULL);
    sotto_whisper_session_free(NULL);
    sotto_whisper_model_free(NULL);
}

typedef struct outside {
    int calls, n_mels, n_frames;
    float first;
} outside;

static sotto_status encode_outside(void *user, const float *log_mel, int n_mels, int n_frames, float *out,
                                   sotto_error *err)
{
    (void)err;
    outside *o = user;
    o->calls++;
    o->n_mels = n_mels;
    o->n_frames = n_frames;
    o->first = log_mel[0];
    for (int i = 0; i < 1500 * 64; i++)
        out[i] = sinf((float)i);
    return SOTTO_OK;
}

static void an_encoder_from_outside(void **state)
{
    (void)state;
    sotto_whisper_model *model = open_model(TINY);
    sotto_whisper_session *s = open_session(model);
    const sotto_whisper_options o = short_options();
    float *pcm = make_noise(2 * RATE, 9);
    run(s, pcm, 2 * RATE, &o);
    const uint64_t own = digest(s);
    outside x = {0};
    sotto_whisper_set_encoder(s, encode_outside, &x);
    run(s, pcm, 2 * RATE, &o);
    assert_int_equal(x.calls, 1);
    assert_int_equal(x.n_mels, 80);
    assert_int_equal(x.n_frames, 3000);
    assert_true(x.first >= -2 && x.first <= 2);
    assert_int_not_equal(digest(s), own);
    sotto_whisper_set_encoder(s, NULL, NULL);
    run(s, pcm, 2 * RATE, &o);
    assert_int_equal(digest(s), own);
    free(pcm);
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

typedef struct stopwatch {
    double from; /* when abort() began to say true; 0: not yet */
    double after;
    double start;
} stopwatch;

static bool abort_after(void *user)
{
    stopwatch *w = user;
    const double now = st_time_now();
    if (now - w->start < w->after)
        return false;
    if (w->from == 0)
        w->from = now;
    return true;
}

/* The promise is 100 ms; the figure is printed, since a busy machine may stretch it. Asserted are the status and that the
 * session works afterwards. */
static void abort_inside_the_encoder(void **state)
{
    (void)state;
    const char *path = model_path("base");
    if (!path)
        skip();
    sotto_whisper_model *model = open_model(path);
    sotto_whisper_session *s = open_session(model);
    float *pcm = make_noise(20 * RATE, 10);
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    stopwatch w = {.after = 0.1, .start = st_time_now()};
    o.abort = abort_after;
    o.user = &w;
    sotto_error err;
    assert_int_equal(sotto_whisper_transcribe(s, pcm, 20 * RATE, &o, &err), SOTTO_E_ABORTED);
    const double late = st_time_now() - w.from;
    printf("aborted %.0f ms after the callback said so\n", late * 1e3);
    o.abort = NULL;
    o.max_tokens = 4;
    o.temperature_inc = 0;
    run(s, pcm, 5 * RATE, &o);
    free(pcm);
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
}

int main(void)
{
    FILE *f = fopen(TINY, "rb");
    if (!f) {
        printf("skipped: " TINY " has not been made (tools/make_tiny_models.py needs Python with numpy)\n");
        return 77;
    }
    fclose(f);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_twice_and_after_other_audio),
        cmocka_unit_test(pieces_give_what_the_whole_gives),
        cmocka_unit_test(sessions_in_threads_give_the_same_bits),
        cmocka_unit_test(audio_of_any_length),
        cmocka_unit_test(samples_that_are_no_numbers),
        cmocka_unit_test(a_second_session_costs_only_its_own_memory),
        cmocka_unit_test(models_from_memory_and_callbacks),
        cmocka_unit_test(a_batch_gives_the_same_every_time),
        cmocka_unit_test(padding_is_thin_in_batches),
        cmocka_unit_test(a_batch_takes_caches_for_each_window),
        cmocka_unit_test(a_batch_is_chosen_by_the_threads),
        cmocka_unit_test(null_is_refused_everywhere),
        cmocka_unit_test(an_encoder_from_outside),
        cmocka_unit_test(abort_inside_the_encoder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
