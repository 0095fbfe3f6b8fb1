/* Decoding and transcription against openai-whisper itself, both with a network made of arithmetic (tools/make_search_golden.py):
 * greedy, beam search with patience and penalties, filters, prompts, silence, clips, the seek loop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "speech_support.h"

static json_t *golden;
static st_vocab *vocab;
static int quiet_every;

static int setup(void **state)
{
    (void)state;
    golden = json_load_file(SOTTO_SOURCE_DIR "/tests/unit/data/search.json", JSON_ALLOW_NUL, NULL);
    vocab = fake_vocab(99, true);
    return golden ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    json_decref(golden);
    st_vocab_free(vocab);
    return 0;
}

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void network(fake_net *net, int window, const int32_t *history, int n, float *logits)
{
    const uint64_t gamma = 0x9e3779b97f4a7c15u;
    const int64_t seek = (int64_t)net->first_mel[window];
    const st_vocab *v = net->vocab;
    uint64_t seed = (uint64_t)(seek + 1) * gamma;
    for (int i = 0; i < n; i++)
        seed = mix(seed + (uint64_t)history[i] + 1);
    for (int32_t t = 0; t < v->n_vocab; t++) {
        float x = (float)(mix(seed + (uint64_t)t * gamma) >> 40) * 0x1p-24f;
        x = x * x;
        x = x * x;
        x = x * x;
        logits[t] = x * 32.0f;
        if (t >= 128 && t < 256)
            logits[t] -= 40.0f;
        if (t > v->eot && t < v->timestamp)
            logits[t] -= 20.0f;
        if (t >= v->timestamp)
            logits[t] -= 6.0f;
    }
    int sot = 0;
    while (history[sot] != v->sot)
        sot++;
    const int so_far = n - sot - 3;
    logits[v->eot] += (float)(so_far > 0 ? so_far : 0);
    if (quiet_every > 0 && seek / 100 % quiet_every == 1 && history[n - 1] == v->sot)
        logits[v->no_speech] += 60.0f;
}

static double number(json_t *object, const char *key, double absent)
{
    json_t *value = json_object_get(object, key);
    return json_is_null(value) ? NAN : value ? json_number_value(value) : absent;
}

static int read_ids(json_t *list, int32_t *out)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        out[i] = (int32_t)json_integer_value(json_array_get(list, i));
    return (int)json_array_size(list);
}

static bool same_ids(const int32_t *ids, int64_t n, json_t *list)
{
    bool same = n == (int64_t)json_array_size(list);
    for (int64_t i = 0; i < n && same; i++)
        same = ids[i] == json_integer_value(json_array_get(list, (size_t)i));
    return same;
}

/* As the original reads its "suppress_tokens". */
static int64_t suppressed(json_t *options, int32_t *out)
{
    const int32_t always[] = {vocab->transcribe, vocab->translate, vocab->sot,
                              vocab->sot_prev,   vocab->sot_lm,    vocab->no_speech};
    const char *text = json_string_value(json_object_get(options, "suppress_tokens"));
    if (text && !*text)
        return 0;
    int64_t n = 0;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        out[n++] = always[i];
    for (int64_t i = 0; i < vocab->n_non_speech; i++)
        out[n++] = vocab->non_speech[i];
    for (const char *p = text ? strchr(text, ',') : NULL; p; p = strchr(p + 1, ','))
        out[n++] = atoi(p + 1);
    return n;
}

static void one_decode(json_t *entry, st_decoder *d, const st_engine *engine)
{
    json_t *o = json_object_get(entry, "options");
    int32_t suppress[300], prompt[64], prefix[8];
    const double initial = number(o, "max_initial_timestamp", 1.0);
    const char *language = json_string_value(json_object_get(o, "language"));
    const bool timestamps = !json_is_true(json_object_get(o, "without_timestamps"));
    const st_decode_options options = {
        .language = sotto_language_find(language ? language : "en"),
        .translate = json_object_get(o, "task") != NULL,
        .timestamps = timestamps,
        .group = (int)number(o, "beam_size", 1),
        .patience = (float)number(o, "patience", 1),
        .length_penalty = (float)number(o, "length_penalty", -1),
        .sample_len = (int)number(o, "sample_len", FAKE_CTX / 2),
        .prompt = prompt,
        .n_prompt = read_ids(json_object_get(o, "prompt"), prompt),
        .prefix = prefix,
        .n_prefix = read_ids(json_object_get(o, "prefix"), prefix),
        .filters = {.vocab = vocab,
                    .suppress = suppress,
                    .n_suppress = suppressed(o, suppress),
                    .suppress_blank = !json_is_false(json_object_get(o, "suppress_blank")),
                    .timestamps = timestamps,
                    .max_initial = isnan(initial) ? -1 : (int32_t)rint(initial / 0.02)},
    };
    fake_net *net = engine->ctx;
    net->n_encode = 1;
    net->first_mel[0] = (float)json_integer_value(json_object_get(entry, "seek"));
    st_decode_result r;
    sotto_error err;
    if (st_decode(d, &options, &r, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    char *what = json_dumps(entry, JSON_COMPACT);
    if (!same_ids(r.tokens, r.n_tokens, json_object_get(entry, "tokens")))
        fail_msg("other tokens than the original: %s", what);
    if (fabs((double)r.avg_logprob - number(entry, "avg_logprob", 0)) > 1e-4 ||
        fabs((double)r.no_speech_prob - number(entry, "no_speech_prob", 0)) > 1e-6 ||
        fabs((double)r.compression_ratio - number(entry, "compression_ratio", 0)) > 1e-5)
        fail_msg("%g %g %g: %s", (double)r.avg_logprob, (double)r.no_speech_prob, (double)r.compression_ratio, what);
    free(what);
}

static void windows_decode_as_in_the_original(void **state)
{
    (void)state;
    static fake_net net;
    st_decoder *d;
    sotto_error err;
    quiet_every = 0;
    fake_init(&net, vocab, 8, network, NULL);
    const st_engine engine = fake_engine(&net);
    assert_int_equal(st_decoder_create(vocab, &engine, &d, &err), SOTTO_OK);
    st_decoder_begin(d, 0, NULL, NULL);
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(golden, "decode"), i, entry) one_decode(entry, d, &engine);
    assert_true(i > 50);
    st_decoder_free(d);
}

static void read_options(json_t *o, sotto_whisper_options *out)
{
    sotto_whisper_options_default(out);
    const char *clip = json_string_value(json_object_get(o, "clip_timestamps"));
    const char *comma = clip ? strchr(clip, ',') : NULL;
    out->language = json_string_value(json_object_get(o, "language"));
    out->task = json_object_get(o, "task") ? SOTTO_TRANSLATE : SOTTO_TRANSCRIBE;
    out->offset = clip ? atof(clip) : 0;
    out->duration = comma ? atof(comma + 1) - out->offset : 0;
    out->beam_size = (int)number(o, "beam_size", 1);
    out->temperature_inc = 0;
    out->compression_ratio_threshold = (float)number(o, "compression_ratio_threshold", 0);
    out->logprob_threshold = (float)number(o, "logprob_threshold", 0);
    out->no_speech_threshold = (float)number(o, "no_speech_threshold", 0);
    out->initial_prompt = json_string_value(json_object_get(o, "initial_prompt"));
    out->carry_initial_prompt = json_is_true(json_object_get(o, "carry_initial_prompt"));
    out->condition_on_previous_text = !json_is_false(json_object_get(o, "condition_on_previous_text"));
    out->recover_missed = false; /* not in the original */
}

/* The original keeps segments that it emptied; times behind the end of the audio or the clip are cut off here. */
static void compare(json_t *entry, double limit, const st_longform *lf)
{
    char *what = json_dumps(json_object_get(entry, "options"), JSON_COMPACT);
    json_t *s;
    size_t i;
    int64_t n = 0;
    json_array_foreach(json_object_get(entry, "segments"), i, s)
    {
        json_t *tokens = json_object_get(s, "tokens");
        if (json_array_size(tokens) == 0)
            continue;
        const sotto_whisper_segment *got = st_longform_segment(lf, n++);
        int32_t ids[FAKE_CTX + 1];
        for (int64_t k = 0; got && k < got->n_tokens; k++)
            ids[k] = got->tokens[k].id;
        if (!got || !same_ids(ids, got->n_tokens, tokens))
            fail_msg("segment %zu has other tokens: %s", i, what);
        const double end = fmin(number(s, "end", 0), fmin(number(entry, "frames", 0) / 100, limit));
        if (fabs(got->seek * 100 - number(s, "seek", 0)) > 1e-6 || fabs(got->end - end) > 1e-6 ||
            fabs((double)got->avg_logprob - number(s, "avg_logprob", 0)) > 1e-4 ||
            (number(s, "start", 0) < end && fabs(got->start - number(s, "start", 0)) > 1e-6))
            fail_msg("segment %zu: seek %g, %g to %g: %s", i, got->seek, got->start, got->end, what);
        json_t *text = json_object_get(s, "text");
        assert_int_equal(got->n_text, json_string_length(text));
        assert_memory_equal(got->text, json_string_value(text), got->n_text);
    }
    assert_int_equal(st_longform_count(lf), n);
    free(what);
}

/* pieces: audio arrives in so many parts. */
static void one_transcription(json_t *entry, int pieces)
{
    static fake_net net;
    fake_audio audio;
    st_longform *lf;
    sotto_error err;
    sotto_whisper_options options;
    fake_init(&net, vocab, 5, network, NULL);
    const st_engine engine = fake_engine(&net);
    const st_window_source source = fake_source(&audio);
    quiet_every = (int)number(entry, "quiet_every", 0);
    const int64_t frames = (int64_t)number(entry, "frames", 0);
    read_options(json_object_get(entry, "options"), &options);
    assert_int_equal(st_longform_create(vocab, &engine, &source, &lf, &err), SOTTO_OK);
    if (st_longform_begin(lf, &options, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    for (int i = 1; i <= pieces; i++)
        assert_int_equal(st_longform_run(lf, frames * i / pieces, false, &err), SOTTO_OK);
    assert_int_equal(st_longform_run(lf, frames, true, &err), SOTTO_OK);
    compare(entry, options.duration > 0 ? options.offset + options.duration : INFINITY, lf);
    st_longform_free(lf);
}

static void recordings_transcribe_as_in_the_original(void **state)
{
    (void)state;
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(golden, "transcribe"), i, entry)
    {
        one_transcription(entry, 0);
        one_transcription(entry, 7);
        one_transcription(entry, 1000);
    }
    assert_true(i > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_decode_as_in_the_original),
        cmocka_unit_test(recordings_transcribe_as_in_the_original),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
