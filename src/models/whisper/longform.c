#include "models/whisper/longform.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "models/whisper/missed.h"
#include "models/whisper/options.h"
#include "models/whisper/results.h"

enum {
    WINDOW_FRAMES = 3000,
    FRAMES_PER_SECOND = 100,
    DEFAULT_AUDIO_CTX = 1500,
    LEAST_REST = 100,    /* frames */
    LEAST_ADVANCE = 200, /* frames: a text that ends sooner is no ground to decode nearly the same window again */
    LEAST_SPEECH = 20    /* frames of speech in the rest of a chunk that are worth another window */
};

/* Mean log of what a grammar leaves of the network's expectations, below which it was something else that was said. */
static const float LEAST_GRAMMAR_LOGPROB = -2.3f;

struct st_longform {
    const st_vocab *vocab;
    st_engine engine;
    st_window_source source;
    st_decoder *decoder;
    st_slicer slicer;
    st_results results;
    st_settings settings;
    float *log_mel;       /* [3000, n_mels] */
    float *probabilities; /* [n_languages] */
    int64_t lookahead, total;
    double duration;
    int64_t content_end; /* once all of the audio is there, else -1 */
    int64_t seek;
    bool running, done;
    const st_speech *speech; /* NULL: windows follow each other */
    st_chunk chunk;          /* of it, in which seek is */
    /* language */
    int language;
    bool settled;
    float probability;
    /* prompt */
    int32_t *text; /* tokens of previous segments since the last reset, the last of them */
    int n_text, text_capacity;
    bool initial_counts; /* the initial prompt was not reset yet */
    int32_t *prompt;     /* [n_text_ctx] */
    /* what a window's text leaves out */
    st_voice voice;
    bool again;           /* the window begins where a text ended early */
    int32_t *kept_tokens; /* [n_text_ctx] */
    float *kept_logprobs; /* [n_text_ctx] */
};

/* ---- making ---- */

static sotto_status create(st_longform *lf, sotto_error *err)
{
    const size_t n_ctx = (size_t)lf->engine.n_text_ctx, n_mel = (size_t)WINDOW_FRAMES * (size_t)lf->source.n_mels;
    lf->log_mel = st_calloc(n_mel, sizeof *lf->log_mel);
    lf->probabilities = st_calloc((size_t)lf->vocab->n_languages, sizeof *lf->probabilities);
    lf->text_capacity = 4 * lf->engine.n_text_ctx;
    lf->text = st_calloc(4 * n_ctx, sizeof *lf->text);
    lf->prompt = st_calloc(n_ctx, sizeof *lf->prompt);
    lf->kept_tokens = st_calloc(n_ctx, sizeof *lf->kept_tokens);
    lf->kept_logprobs = st_calloc(n_ctx, sizeof *lf->kept_logprobs);
    if (!lf->log_mel || !lf->probabilities || !lf->text || !lf->prompt || !lf->kept_tokens || !lf->kept_logprobs)
        return st_fail_memory(err, n_mel * sizeof *lf->log_mel, "a window");
    st_slicer_init(&lf->slicer, lf->vocab);
    ST_TRY(st_results_reset(&lf->results, err));
    return st_decoder_create(lf->vocab, &lf->engine, &lf->decoder, err);
}

sotto_status st_longform_create(const st_vocab *vocab, const st_engine *engine, const st_window_source *source,
                                st_longform **out, sotto_error *err)
{
    *out = NULL;
    st_longform *lf = st_calloc(1, sizeof *lf);
    if (!lf)
        return st_fail_memory(err, sizeof *lf, "the speech logic");
    lf->vocab = vocab;
    lf->engine = *engine;
    lf->source = *source;
    if (lf->source.n_audio_ctx == 0)
        lf->source.n_audio_ctx = DEFAULT_AUDIO_CTX;
    const sotto_status status = create(lf, err);
    if (status != SOTTO_OK) {
        st_longform_free(lf);
        return status;
    }
    *out = lf;
    return SOTTO_OK;
}

void st_longform_free(st_longform *lf)
{
    if (!lf)
        return;
    st_decoder_free(lf->decoder);
    st_slicer_free(&lf->slicer);
    st_results_free(&lf->results);
    st_settings_free(&lf->settings);
    st_free(lf->log_mel);
    st_free(lf->probabilities);
    st_free(lf->text);
    st_free(lf->prompt);
    st_free(lf->kept_tokens);
    st_free(lf->kept_logprobs);
    st_free(lf);
}

static sotto_status forget_recording(st_longform *lf, sotto_error *err)
{
    lf->running = false;
    ST_TRY(st_results_reset(&lf->results, err));
    lf->seek = lf->total = 0;
    lf->speech = NULL;
    lf->again = false;
    lf->duration = 0;
    lf->content_end = -1;
    lf->settled = lf->done = false;
    lf->probability = 0;
    lf->n_text = 0;
    lf->initial_counts = true;
    st_decoder_begin(lf->decoder, 0, NULL, NULL);
    return SOTTO_OK;
}

static void settle(st_longform *lf, int language, float probability)
{
    lf->language = language;
    lf->settled = language >= 0;
    lf->probability = language >= 0 ? probability : 0.0f;
}

sotto_status st_longform_begin(st_longform *lf, const sotto_whisper_options *options, sotto_error *err)
{
    ST_TRY(forget_recording(lf, err));
    ST_TRY(st_settings_read(&lf->settings, options, lf->vocab, &lf->engine, lf->source.n_audio_ctx, err));
    st_decoder_begin(lf->decoder, options->seed, options->abort, options->user);
    lf->seek = lf->settings.first;
    settle(lf, lf->settings.language, 1.0f);
    lf->running = true;
    return SOTTO_OK;
}

sotto_status st_longform_begin_part(st_longform *lf, const st_part *part, sotto_error *err)
{
    const sotto_whisper_options *o = &lf->settings.given;
    ST_TRY(forget_recording(lf, err));
    st_decoder_begin(lf->decoder, part->seed, o->abort, o->user);
    lf->seek = lf->settings.first = part->first;
    lf->settings.end = part->end;
    lf->speech = part->speech;
    lf->chunk = (st_chunk){part->first, part->end};
    settle(lf, part->language >= 0 ? part->language : lf->settings.language,
           part->language >= 0 ? part->probability : 1.0f);
    lf->running = true;
    return SOTTO_OK;
}

const st_settings *st_longform_settings(const st_longform *lf)
{
    return &lf->settings;
}

void st_longform_set_lookahead(st_longform *lf, int64_t frames)
{
    lf->lookahead = frames > 0 ? frames : 0;
}

void st_longform_set_total(st_longform *lf, int64_t frames)
{
    lf->total = frames > 0 ? frames : 0;
}

void st_longform_set_speech(st_longform *lf, const st_speech *speech)
{
    lf->speech = speech;
    lf->chunk = (st_chunk){lf->seek, lf->seek};
}

void st_longform_set_duration(st_longform *lf, double seconds)
{
    lf->duration = seconds;
}

/* ---- prompt ---- */

static int append(int32_t *out, int n, const int32_t *tokens, int64_t count)
{
    if (count > 0)
        memcpy(out + n, tokens, (size_t)count * sizeof *out);
    return n + (int)count;
}

/* Initial prompt and previous text, at most n_text_ctx / 2 - 1 tokens. */
static int build_prompt(st_longform *lf)
{
    const st_settings *s = &lf->settings;
    const int most = lf->engine.n_text_ctx / 2 - 1;
    int n = 0, used = lf->n_text < s->max_context ? lf->n_text : s->max_context;
    if (s->given.carry_initial_prompt) {
        if (used > most - (int)s->n_initial)
            used = most - (int)s->n_initial;
        n = append(lf->prompt, n, s->initial, s->n_initial);
    } else if (lf->initial_counts && used == lf->n_text) {
        /* It is older than all text: only what the text leaves of it. */
        int64_t before = s->n_initial;
        if (before > most - used)
            before = most - used;
        n = append(lf->prompt, n, s->initial + (s->n_initial - before), before);
    }
    return append(lf->prompt, n, lf->text + (lf->n_text - used), used);
}

static void remember(st_longform *lf, const int32_t *tokens, int n)
{
    const int keep = lf->engine.n_text_ctx;
    if (lf->n_text + n > lf->text_capacity) {
        memmove(lf->text, lf->text + (lf->n_text - keep), (size_t)keep * sizeof *lf->text);
        lf->n_text = keep;
    }
    lf->n_text = append(lf->text, lf->n_text, tokens, n);
}

static void forget(st_longform *lf)
{
    lf->n_text = 0;
    lf->initial_counts = false;
}

/* ---- one window ---- */

static sotto_status encode(st_longform *lf, int64_t end, sotto_error *err)
{
    const sotto_whisper_options *o = &lf->settings.given;
    if (o->abort && o->abort(o->user))
        return st_fail(err, SOTTO_E_ABORTED, "the abort callback asked to stop");
    const double before = st_time_now();
    ST_TRY(lf->source.window(lf->source.ctx, lf->seek, end, lf->log_mel, err));
    ST_TRY(lf->engine.encode(lf->engine.ctx, 0, lf->log_mel, (int)(end - lf->seek), err));
    st_decode_counters *c = st_decoder_counters(lf->decoder);
    c->encode_s += st_time_now() - before;
    c->n_encode++;
    return SOTTO_OK;
}

static sotto_status store(st_longform *lf, const st_decode_result *result, int64_t end, sotto_error *err)
{
    const sotto_whisper_options *o = &lf->settings.given;
    double limit = (double)end / FRAMES_PER_SECOND;
    if (end == lf->content_end)
        limit = fmax(limit, lf->duration); /* the last frame may be followed by a part of one */
    limit = fmin(limit, lf->settings.limit);
    for (int i = 0; i < lf->slicer.n_slices; i++) {
        const st_slice *slice = &lf->slicer.slices[i];
        const sotto_whisper_segment *segment;
        ST_TRY(st_results_add(&lf->results, &lf->slicer, slice, result, lf->seek, limit,
                              sotto_language_code(lf->language), &segment, err));
        remember(lf, result->tokens + slice->first, slice->end - slice->first);
        if (o->on_segment)
            o->on_segment(o->user, segment);
    }
    return SOTTO_OK;
}

/* False: the text was made up to follow the grammar; as text before the next window it would make that look likely. */
static bool tell_of_grammar(const st_longform *lf, const st_decode_options *o, const st_decode_result *result)
{
    const sotto_logger *logger = &lf->settings.given.logger;
    const double at = (double)lf->seek / FRAMES_PER_SECOND;
    if (!o->grammar)
        return true;
    if (result->off_grammar)
        st_log(logger, SOTTO_LOG_WARNING, "%.2f s: the window's text does not follow the grammar to its end", at);
    const bool matches = !(result->grammar_logprob < LEAST_GRAMMAR_LOGPROB);
    if (!matches)
        st_log(logger, SOTTO_LOG_WARNING,
               "%.2f s: what is heard hardly matches the grammar: what it allows has a probability of %.2g a token", at,
               exp((double)result->grammar_logprob));
    return matches;
}

/* ---- what the text leaves out ---- */

/* A text that is to follow a grammar leaves out what does not belong to it. */
static bool recovers(const st_longform *lf)
{
    return lf->settings.given.recover_missed && !lf->settings.grammar;
}

static st_missed missed_by(const st_longform *lf, const st_decode_result *r, int64_t size)
{
    return st_missed_count(&lf->voice, r->tokens, r->n_tokens, lf->vocab->timestamp, size);
}

/* The result that leaves out less: where the first leaves out much, the window is decoded once more without the text before
 * it, which is what most often makes the model skip. */
static sotto_status decode_all_of_it(st_longform *lf, st_decode_options *o, int64_t size, st_decode_result *result,
                                     sotto_error *err)
{
    const st_settings *s = &lf->settings;
    ST_TRY(st_ladder_decode(lf->decoder, &s->ladder, o, result, err));
    if (!recovers(lf))
        return SOTTO_OK;
    if (lf->speech)
        st_voice_from_speech(&lf->voice, lf->speech, lf->seek, size);
    else
        st_voice_from_mel(&lf->voice, lf->log_mel, lf->source.n_mels, size);
    const st_missed first = missed_by(lf, result, size);
    if (first.inside < ST_MISSED_INSIDE || lf->n_text == 0 || st_ladder_is_silence(&s->ladder, result))
        return SOTTO_OK;
    st_decode_result kept = *result;
    memcpy(lf->kept_tokens, result->tokens, (size_t)result->n_tokens * sizeof *lf->kept_tokens);
    memcpy(lf->kept_logprobs, result->logprobs, (size_t)result->n_tokens * sizeof *lf->kept_logprobs);
    kept.tokens = lf->kept_tokens;
    kept.logprobs = lf->kept_logprobs;
    const int n_text = lf->n_text;
    lf->n_text = 0;
    o->n_prompt = build_prompt(lf);
    ST_TRY(st_ladder_decode(lf->decoder, &s->ladder, o, result, err));
    const st_missed second = missed_by(lf, result, size);
    const bool better = second.inside + ST_MISSED_INSIDE / 2 < first.inside;
    if (!better || st_ladder_failed(&s->ladder, result) || st_ladder_is_silence(&s->ladder, result)) {
        *result = kept;
        lf->n_text = n_text;
    }
    return SOTTO_OK;
}

/* Frames to the next window. That a text ends early is no reason to pass over what is voiced behind it; unless it did so in
 * the window before, too: then it is likely no speech. */
static int64_t advance(st_longform *lf, const st_decode_result *result, int64_t size, bool last)
{
    const bool again = lf->again;
    lf->again = false;
    if (!recovers(lf))
        return lf->slicer.advance;
    if (lf->slicer.advance < size) /* of a rest as short as that, text is made up */
        return last && size - lf->slicer.advance < LEAST_REST ? lf->slicer.advance
                                                              : st_voice_begin(&lf->voice, lf->slicer.advance, size);
    if (!result->complete || again)
        return size;
    const st_missed m = missed_by(lf, result, size);
    lf->again = m.rest >= ST_MISSED_REST && m.last >= LEAST_ADVANCE;
    return lf->again ? m.last : size;
}

/* last: no window follows this one. */
static sotto_status run_window(st_longform *lf, int64_t size, bool last, sotto_error *err)
{
    st_settings *s = &lf->settings;
    ST_TRY(encode(lf, lf->seek + size, err));
    if (!lf->settled) {
        int best;
        ST_TRY(st_decode_language(lf->decoder, lf->probabilities, &best, NULL, err));
        lf->language = best;
        lf->probability = lf->probabilities[best];
    }
    st_decode_options o = s->decode;
    o.language = lf->language;
    o.timestamps = o.filters.timestamps = s->given.timestamps || !last;
    o.prompt = lf->prompt;
    o.n_prompt = build_prompt(lf);
    o.n_steps = size > 2 ? (int32_t)(size / 2) : 1;
    st_decode_result result;
    ST_TRY(decode_all_of_it(lf, &o, size, &result, err));
    if (st_ladder_is_silence(&s->ladder, &result)) {
        lf->seek += size;
        return SOTTO_OK;
    }
    const st_window w = {.tokens = result.tokens,
                         .n_tokens = result.n_tokens,
                         .complete = result.complete,
                         .seek = lf->seek,
                         .size = size,
                         .whole = !s->given.timestamps,
                         .max_tokens = s->given.max_tokens};
    ST_TRY(st_slicer_run(&lf->slicer, &w, err));
    const bool credible = tell_of_grammar(lf, &o, &result);
    if (lf->slicer.truncated)
        st_log(&s->given.logger, SOTTO_LOG_WARNING,
               "%.2f s: the window's text reached the limit of %d tokens without an end",
               (double)lf->seek / FRAMES_PER_SECOND, o.sample_len);
    if (lf->slicer.n_slices > 0)
        lf->settled = true;
    const int64_t step = advance(lf, &result, size, last);
    if (lf->slicer.n_slices > 0 && step < lf->slicer.advance) {
        st_slice *tail = &lf->slicer.slices[lf->slicer.n_slices - 1];
        tail->stop = fmin(tail->stop, fmax(tail->start, (double)(lf->seek + step) / FRAMES_PER_SECOND));
    }
    ST_TRY(store(lf, &result, lf->seek + size, err));
    if (!s->given.condition_on_previous_text || result.temperature > 0.5f || !credible)
        forget(lf);
    lf->seek += step;
    return SOTTO_OK;
}

/* ---- all windows ---- */

static double seconds(int64_t frames)
{
    return frames > 0 ? (double)frames / FRAMES_PER_SECOND : 0.0;
}

/* 100 % is told once, at the very end. */
static void progress(st_longform *lf, int64_t end, bool over)
{
    const sotto_whisper_options *o = &lf->settings.given;
    if (!o->on_progress || (!over && lf->seek >= end))
        return;
    const int64_t total = end == INT64_MAX ? 0 : end - lf->settings.first;
    o->on_progress(o->user, seconds(over ? total : lf->seek - lf->settings.first), seconds(total));
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The end of the audio that windows may reach from seek on, which goes to the next chunk when nothing is left of the one
 * before; no more than seek when there is none, or none yet. */
static int64_t window_limit(st_longform *lf, int64_t end)
{
    if (!lf->speech)
        return end;
    const st_chunk_rules rules = {lf->settings.window, ST_CHUNK_PAD};
    while (lf->seek < end && lf->seek >= lf->chunk.end) {
        const int64_t from = lf->chunk.end;
        if (!st_chunk_next(lf->speech, &rules, from, &lf->chunk)) {
            const int64_t earliest = st_chunk_earliest(lf->speech, &rules, from);
            lf->seek = earliest > lf->seek ? earliest : lf->seek; /* what was silent need not be kept */
            return lf->seek;
        }
        lf->seek = lf->chunk.first;
    }
    return min_i64(lf->chunk.end, end);
}

static sotto_status run(st_longform *lf, int64_t frames, bool final, sotto_error *err)
{
    const st_settings *s = &lf->settings;
    const int64_t end = final ? min_i64(frames, s->end) : s->end;
    lf->content_end = final ? frames : -1;
    for (int64_t limit; (limit = window_limit(lf, end)) > lf->seek;) {
        const int64_t size = min_i64(s->window, limit - lf->seek);
        const bool last = size == limit - lf->seek;
        if (!final && frames < lf->seek + size + lf->lookahead + (last ? 0 : 1))
            return SOTTO_OK;
        ST_TRY(run_window(lf, size, last, err));
        if (lf->speech && st_chunk_speech(lf->speech, lf->seek, lf->chunk.end) < LEAST_SPEECH)
            lf->seek = lf->chunk.end;
        progress(lf, end != INT64_MAX ? end : lf->total > 0 ? min_i64(lf->total, s->end) : INT64_MAX, false);
    }
    if (!final)
        return SOTTO_OK;
    progress(lf, end > s->first ? end : s->first, true);
    lf->done = true;
    return SOTTO_OK;
}

sotto_status st_longform_run(st_longform *lf, int64_t frames, bool final, sotto_error *err)
{
    if (!lf->running)
        return st_fail(err, SOTTO_E_ARGUMENT, "no recording was begun, or an error ended it: begin a new one");
    if (lf->done)
        return SOTTO_OK;
    const sotto_status status = run(lf, frames, final, err);
    if (status != SOTTO_OK)
        lf->running = false;
    return status;
}

/* ---- results ---- */

int64_t st_longform_seek(const st_longform *lf)
{
    return lf->seek;
}

int64_t st_longform_count(const st_longform *lf)
{
    return lf->results.count;
}

const sotto_whisper_segment *st_longform_segment(const st_longform *lf, int64_t index)
{
    return index >= 0 && index < lf->results.count ? lf->results.segments[index] : NULL;
}

void st_longform_take_results(st_longform *lf, st_results *out)
{
    *out = lf->results;
    lf->results = (st_results){0};
}

const char *st_longform_language(const st_longform *lf, float *probability)
{
    if (probability)
        *probability = lf->settled ? lf->probability : 0.0f;
    return lf->settled ? sotto_language_code(lf->language) : NULL;
}

const st_decode_counters *st_longform_counters(const st_longform *lf)
{
    return st_decoder_counters(lf->decoder);
}

st_decoder *st_longform_decoder(st_longform *lf)
{
    return lf->decoder;
}
