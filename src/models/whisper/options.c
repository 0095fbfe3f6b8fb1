#include "models/whisper/options.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/whisper/follow.h"

enum { MAX_PATIENCE = 100, MAX_SUPPRESS = 1 << 20 };

void sotto_whisper_options_default(sotto_whisper_options *options)
{
    sotto_vad_options vad;
    sotto_vad_options_default(&vad);
    *options = (sotto_whisper_options){
        .size = sizeof *options,
        .timestamps = true,
        .beam_size = 5,
        .best_of = 5,
        .patience = 1.0f,
        .length_penalty = -1.0f,
        .temperature_inc = 0.2f,
        .compression_ratio_threshold = 2.4f,
        .logprob_threshold = -1.0f,
        .no_speech_threshold = 0.6f,
        .suppress_blank = true,
        .suppress_non_speech = true,
        .max_initial_timestamp = 1.0f,
        .condition_on_previous_text = true,
        .recover_missed = true,
        .max_context = -1,
        .grammar_penalty = 100.0f,
        .batch = 1,
        .vad_options = vad,
    };
}

/* ---- ranges ---- */

typedef struct range_check {
    const char *field;
    double value, min, max;
} range_check;

static sotto_status check_ranges(const range_check *checks, size_t n, sotto_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(checks[i].value >= checks[i].min && checks[i].value <= checks[i].max))
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: %g, expected %g to %g", checks[i].field, checks[i].value,
                           checks[i].min, checks[i].max);
    return SOTTO_OK;
}

static sotto_status check_numbers(const sotto_whisper_options *o, const st_engine *engine, int n_audio_ctx,
                                  sotto_error *err)
{
    const range_check checks[] = {
        {"task", (double)o->task, SOTTO_TRANSCRIBE, SOTTO_TRANSLATE},
        {"padding", (double)o->padding, SOTTO_PADDING_AUTO, SOTTO_PADDING_THIN},
        {"offset", o->offset, 0, 1e12},
        {"duration", o->duration, 0, 1e12},
        {"audio_ctx", o->audio_ctx, 0, n_audio_ctx},
        {"batch", o->batch, 0, ST_MAX_BATCH},
        {"beam_size", o->beam_size, 0, ST_MAX_SEQUENCES},
        {"best_of", o->best_of, 1, ST_MAX_SEQUENCES},
        {"patience", (double)o->patience, 0.01, MAX_PATIENCE},
        {"length_penalty", (double)o->length_penalty, -INFINITY, 1},
        {"temperature", (double)o->temperature, 0, 2},
        {"temperature_inc", (double)o->temperature_inc, 0, 2},
        {"max_tokens", o->max_tokens, 0, engine->n_text_ctx / 2},
        {"max_initial_timestamp", (double)o->max_initial_timestamp, -INFINITY, 30},
        {"n_suppress_tokens", o->n_suppress_tokens, 0, MAX_SUPPRESS},
        {"grammar_penalty", (double)o->grammar_penalty, 0, 1e6},
    };
    ST_TRY(check_ranges(checks, sizeof checks / sizeof *checks, err));
    if (o->temperature_inc > 0.0f && o->temperature_inc < 0.01f)
        return st_fail(err, SOTTO_E_ARGUMENT, "temperature_inc: %g, expected 0 or 0.01 to 2",
                       (double)o->temperature_inc);
    return SOTTO_OK;
}

/* Only what the ladder can reach needs caches. */
static sotto_status check_sequences(const sotto_whisper_options *o, const st_ladder *ladder, int n_seq, sotto_error *err)
{
    if (st_ladder_has_zero(ladder) && o->beam_size > n_seq)
        return st_fail(err, SOTTO_E_ARGUMENT, "beam_size: %d, expected 0 to %d, the session's max_sequences",
                       o->beam_size, n_seq);
    if (st_ladder_has_sampling(ladder) && o->best_of > n_seq)
        return st_fail(err, SOTTO_E_ARGUMENT, "best_of: %d, expected 1 to %d, the session's max_sequences", o->best_of,
                       n_seq);
    if (st_ladder_has_zero(ladder) && rint((double)ladder->beam_size * (double)o->patience) < 1)
        return st_fail(err, SOTTO_E_ARGUMENT, "patience: %g, expected at least %g with %d beams", (double)o->patience,
                       0.5 / ladder->beam_size, ladder->beam_size);
    return SOTTO_OK;
}

/* ---- fields ---- */

static sotto_status read_language(st_settings *s, const sotto_whisper_options *o, const st_vocab *vocab,
                                  sotto_error *err)
{
    const bool automatic = !o->language || !*o->language || strcmp(o->language, "auto") == 0;
    s->language = automatic ? (vocab->multilingual ? -1 : 0) : sotto_language_find(o->language);
    if (automatic)
        return SOTTO_OK;
    if (s->language < 0 || (vocab->multilingual && s->language >= vocab->n_languages))
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "language: \"%.40s\", expected \"auto\" or one of the model's %d languages", o->language,
                       vocab->multilingual ? vocab->n_languages : 1);
    if (!vocab->multilingual && s->language != 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "language: \"%.40s\", but the model knows English only", o->language);
    return SOTTO_OK;
}

static sotto_status add_suppress(st_settings *s, const int32_t *ids, int64_t n, sotto_error *err)
{
    if (n == 0)
        return SOTTO_OK;
    if (!st_grow(&s->suppress, &s->suppress_capacity, s->n_suppress + n, sizeof *s->suppress))
        return st_fail_memory(err, (uint64_t)n * sizeof *ids, "suppress_tokens");
    memcpy(s->suppress + s->n_suppress, ids, (size_t)n * sizeof *ids);
    s->n_suppress += n;
    return SOTTO_OK;
}

static sotto_status read_suppress(st_settings *s, const sotto_whisper_options *o, const st_vocab *v, sotto_error *err)
{
    if (o->n_suppress_tokens > 0 && !o->suppress_tokens)
        return st_fail(err, SOTTO_E_ARGUMENT, "suppress_tokens: NULL with n_suppress_tokens %d", o->n_suppress_tokens);
    for (int i = 0; i < o->n_suppress_tokens; i++)
        if (o->suppress_tokens[i] < 0 || o->suppress_tokens[i] >= v->n_vocab)
            return st_fail(err, SOTTO_E_ARGUMENT, "suppress_tokens[%d]: %d, expected 0 to %d", i,
                           (int)o->suppress_tokens[i], (int)v->n_vocab - 1);
    /* These are never said; the probability of no speech is read apart. */
    const int32_t always[] = {v->transcribe, v->translate, v->sot, v->sot_prev, v->sot_lm, v->no_speech};
    s->n_suppress = 0;
    ST_TRY(add_suppress(s, always, sizeof always / sizeof *always, err));
    if (o->suppress_non_speech)
        ST_TRY(add_suppress(s, v->non_speech, v->n_non_speech, err));
    return add_suppress(s, o->suppress_tokens, o->n_suppress_tokens, err);
}

static sotto_status read_prompt(st_settings *s, const sotto_whisper_options *o, const st_vocab *v, int n_text_ctx,
                                sotto_error *err)
{
    s->n_initial = 0;
    if (!o->initial_prompt)
        return SOTTO_OK;
    const size_t length = strlen(o->initial_prompt);
    char *text = st_alloc(1, length + 2);
    if (!text)
        return st_fail_memory(err, length, "initial_prompt");
    const char *stripped = o->initial_prompt;
    size_t n = length;
    st_strip(&stripped, &n);
    text[0] = ' ';
    memcpy(text + 1, stripped, n);
    const sotto_status status =
        st_bpe_encode(v->bpe, text, n + 1, &s->initial, &s->initial_capacity, &s->n_initial, err);
    st_free(text);
    if (status != SOTTO_OK)
        return st_fail_context(err, status, "initial_prompt");
    const int64_t most = n_text_ctx / 2 - 1;
    if (s->n_initial > most) {
        st_log(&o->logger, SOTTO_LOG_WARNING, "initial_prompt: %lld tokens, the last %lld are used",
               (long long)s->n_initial, (long long)most);
        memmove(s->initial, s->initial + (s->n_initial - most), (size_t)most * sizeof *s->initial);
        s->n_initial = most;
    }
    return SOTTO_OK;
}

static void read_times(st_settings *s, const sotto_whisper_options *o, int n_audio_ctx)
{
    s->first = (int64_t)rint(o->offset * 100);
    s->end = o->duration > 0 ? (int64_t)rint((o->offset + o->duration) * 100) : INT64_MAX;
    s->limit = o->duration > 0 ? o->offset + o->duration : INFINITY;
    s->window = 2 * (int64_t)(o->audio_ctx > 0 ? o->audio_ctx : n_audio_ctx);
}

sotto_status st_settings_read(st_settings *s, const sotto_whisper_options *options, const st_vocab *vocab,
                              const st_engine *engine, int n_audio_ctx, sotto_error *err)
{
    const sotto_whisper_options *o = options;
    if (!o)
        return st_fail(err, SOTTO_E_ARGUMENT, "options: NULL");
    if (o->size != sizeof *o)
        return st_fail(err, SOTTO_E_ARGUMENT, "options: size %zu, expected %zu, set by sotto_whisper_options_default()",
                       o->size, sizeof *o);
    ST_TRY(check_numbers(o, engine, n_audio_ctx, err));
    const int most = engine->n_text_ctx / 2 - 1;
    s->given = *o;
    s->given.language = s->given.initial_prompt = NULL;
    s->given.suppress_tokens = NULL;
    s->max_context = o->max_context < 0 || o->max_context > most ? most : o->max_context;
    s->ladder = (st_ladder){
        .temperature = o->temperature,
        .temperature_inc = o->temperature_inc,
        .beam_size = o->beam_size > 1 ? o->beam_size : 1,
        .best_of = o->best_of,
        .compression_ratio_threshold = o->compression_ratio_threshold,
        .logprob_threshold = o->logprob_threshold,
        .no_speech_threshold = o->no_speech_threshold,
    };
    ST_TRY(check_sequences(o, &s->ladder, engine->n_seq, err));
    read_times(s, o, n_audio_ctx);
    ST_TRY(read_language(s, o, vocab, err));
    ST_TRY(read_suppress(s, o, vocab, err));
    ST_TRY(read_prompt(s, o, vocab, engine->n_text_ctx, err));
    st_grammar_filter_free(s->grammar);
    s->grammar = NULL;
    if (o->grammar)
        ST_TRY(st_follow_create(o->grammar, vocab, &s->grammar, err));
    if (o->task == SOTTO_TRANSLATE && !vocab->multilingual)
        st_log(&o->logger, SOTTO_LOG_WARNING, "task: the model knows English only, the speech is transcribed");
    s->decode = (st_decode_options){
        .translate = o->task == SOTTO_TRANSLATE,
        .patience = o->patience,
        .length_penalty = o->length_penalty,
        .sample_len = engine->n_text_ctx / 2,
        .grammar = s->grammar,
        .grammar_penalty = o->grammar_penalty,
        .filters = {.vocab = vocab,
                    .suppress = s->suppress,
                    .n_suppress = s->n_suppress,
                    .suppress_blank = o->suppress_blank,
                    .max_initial =
                        o->max_initial_timestamp < 0 ? -1 : (int32_t)rint((double)o->max_initial_timestamp / 0.02)},
    };
    return SOTTO_OK;
}

void st_settings_free(st_settings *s)
{
    st_grammar_filter_free(s->grammar);
    st_free(s->suppress);
    st_free(s->initial);
    *s = (st_settings){0};
}
