#include "models/whisper/decode.h"

#include <math.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "base/utf8.h"
#include "models/whisper/decode_impl.h"
#include "models/whisper/follow.h"

/* ---- making ---- */

static sotto_status allocate(st_decoder *d, sotto_error *err)
{
    const size_t n_vocab = (size_t)d->engine.n_vocab, n_ctx = (size_t)d->engine.n_text_ctx,
                 n_seq = (size_t)d->engine.n_seq;
    const size_t n_out = n_seq > 2 ? n_seq : 2, n_rows = n_ctx > n_seq ? n_ctx : n_seq;
    const size_t n_blocks = (size_t)st_logits_blocks(d->engine.n_vocab), n_store = 2 * n_seq + 1, n_tokens = n_ctx + 1;
    d->room = st_alloc(n_out * n_vocab, sizeof *d->room);
    d->block_max = st_alloc(n_blocks, sizeof *d->block_max);
    d->block_sum = st_alloc(n_blocks + 2, sizeof *d->block_sum);
    d->first = st_alloc(n_vocab + 2 * n_blocks, sizeof *d->first);
    d->rows = st_alloc(n_rows, sizeof *d->rows);
    d->initial = st_alloc(n_ctx, sizeof *d->initial);
    d->token_store = st_alloc(n_store * n_tokens, sizeof *d->token_store);
    d->logprob_store = st_alloc(n_store * n_tokens, sizeof *d->logprob_store);
    if (!d->room || !d->block_max || !d->block_sum || !d->first || !d->rows || !d->initial || !d->token_store ||
        !d->logprob_store)
        return st_fail_memory(err, n_out * n_vocab * sizeof *d->room, "the logits of a session");
    for (size_t i = 0; i < n_store; i++) {
        st_sequence *s = i == 0 ? &d->best : i <= n_seq ? &d->sequences[i - 1] : &d->others[i - 1 - n_seq];
        s->tokens = d->token_store + i * n_tokens;
        s->logprobs = d->logprob_store + i * n_tokens;
    }
    return SOTTO_OK;
}

sotto_status st_decoder_create(const st_vocab *vocab, const st_engine *engine, st_decoder **out, sotto_error *err)
{
    *out = NULL;
    if (engine->n_vocab != vocab->n_vocab)
        return st_fail(err, SOTTO_E_INTERNAL, "a network of %d tokens with a vocabulary of %d", engine->n_vocab,
                       vocab->n_vocab);
    if (engine->n_seq < 1 || engine->n_seq > ST_MAX_SEQUENCES || engine->n_text_ctx < 8)
        return st_fail(err, SOTTO_E_ARGUMENT, "max_sequences: %d, expected 1 to %d", engine->n_seq,
                       (int)ST_MAX_SEQUENCES);
    st_decoder *d = st_calloc(1, sizeof *d);
    if (!d)
        return st_fail_memory(err, sizeof *d, "a decoder");
    d->vocab = vocab;
    d->engine = *engine;
    const sotto_status status = allocate(d, err);
    if (status != SOTTO_OK) {
        st_decoder_free(d);
        return status;
    }
    *out = d;
    return SOTTO_OK;
}

void st_decoder_free(st_decoder *d)
{
    if (!d)
        return;
    void *const blocks[] = {d->room,    d->block_max,   d->block_sum,     d->first, d->rows,
                            d->initial, d->token_store, d->logprob_store, d->text,  d->repaired};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        st_free(blocks[i]);
    st_free(d);
}

void st_decoder_begin(st_decoder *d, uint64_t seed, bool (*abort)(void *user), void *user)
{
    st_rng_seed(&d->rng, seed);
    d->abort = abort;
    d->abort_user = user;
    d->counters = (st_decode_counters){0};
}

st_decode_counters *st_decoder_counters(st_decoder *d)
{
    return &d->counters;
}

/* ---- what the searches use ---- */

static sotto_status check_abort(const st_decoder *d, sotto_error *err)
{
    if (d->abort && d->abort(d->abort_user))
        return st_fail(err, SOTTO_E_ABORTED, "the abort callback asked to stop");
    return SOTTO_OK;
}

sotto_status st_decoder_filter(st_decoder *d, const st_decode_options *o, int row, st_sequence *s, st_allowed *allowed,
                               sotto_error *err)
{
    st_logits_row r = d->logits[row];
    if (o->grammar) {
        ST_TRY(st_follow_time(d, o, s, r.logits, err));
        r.block_sum = NULL; /* they have changed */
    }
    if (!st_filters_apply(&o->filters, &r, s->tokens, s->n, allowed))
        return st_fail(err, SOTTO_E_DEVICE, "the network gave NaN or infinity instead of logits at position %d",
                       d->n_initial + s->n - 1);
    return o->grammar ? st_follow_penalise(d, o, s, &r, allowed, err) : SOTTO_OK;
}

static st_logits_row row_of(const st_decoder *d, const st_row *r)
{
    const bool known = r->blocks != NULL;
    return (st_logits_row){r->logits, known ? r->blocks : d->block_max,
                           known ? r->blocks + st_logits_blocks(d->engine.n_vocab) : NULL};
}

sotto_status st_decoder_step(st_decoder *d, const st_sequence *sequences, const int32_t *list, int n, sotto_error *err)
{
    ST_TRY(check_abort(d, err));
    for (int i = 0; i < n; i++) {
        const st_sequence *s = &sequences[list[i]];
        float *logits = d->room + (size_t)i * (size_t)d->vocab->n_vocab;
        d->rows[i] = (st_row){s->tokens[s->n - 1], d->n_initial + s->n - 1, list[i], logits, NULL};
    }
    const double before = st_time_now();
    ST_TRY(d->engine.decode(d->engine.ctx, d->rows, n, err));
    d->counters.decode_s += st_time_now() - before;
    for (int i = 0; i < n; i++)
        d->logits[i] = row_of(d, &d->rows[i]);
    d->counters.n_decode++;
    return SOTTO_OK;
}

bool st_decoder_has_room(const st_decoder *d, const st_decode_options *o, int n)
{
    return n < o->sample_len && d->n_initial + n <= d->engine.n_text_ctx;
}

void st_sequence_copy(st_sequence *dst, const st_sequence *src)
{
    memcpy(dst->tokens, src->tokens, (size_t)src->n * sizeof *dst->tokens);
    memcpy(dst->logprobs, src->logprobs, (size_t)src->n * sizeof *dst->logprobs);
    dst->n = src->n;
    dst->done = src->done;
    dst->sum = src->sum;
    dst->place = src->place;
    dst->n_placed = src->n_placed;
    dst->forced = src->forced;
}

double st_sequence_score(const st_sequence *s, float length_penalty)
{
    if (length_penalty < 0.0f)
        return s->sum / (s->n > 0 ? s->n : 1);
    return s->sum / pow((5.0 + s->n) / 6.0, (double)length_penalty);
}

/* ---- prompt ---- */

static sotto_status build_initial(st_decoder *d, const st_decode_options *o, sotto_error *err)
{
    const st_vocab *v = d->vocab;
    const int n_ctx = d->engine.n_text_ctx, most = n_ctx / 2 - 1;
    int n = 0;
    if (o->n_prompt > 0 && most > 0) {
        const int used = o->n_prompt < most ? (int)o->n_prompt : most;
        d->initial[n++] = v->sot_prev;
        memcpy(d->initial + n, o->prompt + (o->n_prompt - used), (size_t)used * sizeof *d->initial);
        n += used;
    }
    /* At most n_ctx / 2 so far and four to come, of at least 8. */
    d->sot_index = n;
    d->initial[n++] = v->sot;
    if (v->multilingual) {
        d->initial[n++] = v->language + o->language;
        d->initial[n++] = o->translate ? v->translate : v->transcribe;
    }
    if (!o->timestamps)
        d->initial[n++] = v->no_timestamps;
    if (o->n_prefix < 0 || o->n_prefix >= n_ctx - n)
        return st_fail(err, SOTTO_E_ARGUMENT, "a prefix of %d tokens, at most %d have room", o->n_prefix, n_ctx - n - 1);
    if (o->n_prefix > 0)
        memcpy(d->initial + n, o->prefix, (size_t)o->n_prefix * sizeof *d->initial);
    d->n_initial = n + o->n_prefix;
    return SOTTO_OK;
}

/* Rows for the whole prompt; logits of start of transcript are the first, of the last token, which may be the same, the second. */
static sotto_status run_prompt(st_decoder *d, sotto_error *err)
{
    ST_TRY(check_abort(d, err));
    d->engine.reset(d->engine.ctx, 0);
    float *logits = d->room;
    for (int i = 0; i < d->n_initial; i++) {
        const bool wanted = i == d->sot_index || i == d->n_initial - 1;
        d->rows[i] = (st_row){d->initial[i], i, 0, wanted ? logits : NULL, NULL};
        logits += wanted ? d->vocab->n_vocab : 0;
    }
    const double before = st_time_now();
    ST_TRY(d->engine.decode(d->engine.ctx, d->rows, d->n_initial, err));
    d->counters.prompt_s += st_time_now() - before;
    d->counters.n_prompt++;
    d->logits[0] = row_of(d, &d->rows[d->sot_index]);
    d->logits[1] = row_of(d, &d->rows[d->n_initial - 1]);
    return SOTTO_OK;
}

/* Probability of one token over the whole row, before any filter. */
static sotto_status probability(st_decoder *d, int32_t token, float *out, sotto_error *err)
{
    const st_range all = {0, d->vocab->n_vocab};
    const st_logits_row *r = &d->logits[0];
    if (!(r->block_sum ? st_logits_are_numbers(r->block_sum, st_logits_blocks(all.hi))
                       : st_logits_scan(r->logits, all.hi, r->block_max)))
        return st_fail(err, SOTTO_E_DEVICE, "the network gave NaN or infinity instead of logits at position %d",
                       d->sot_index);
    const float max = st_logits_max(r->logits, r->block_max, all);
    const double sum = st_logits_sum_exp(r->logits, r->block_max, r->block_sum, all, max);
    *out = sum > 0 ? (float)(exp((double)r->logits[token] - (double)max) / sum) : 0.0f;
    return SOTTO_OK;
}

/* The network's answer to the prompt is kept for attempts that follow, as steps may overwrite it. */
static sotto_status prompt(st_decoder *d, const st_decode_options *o, sotto_error *err)
{
    const size_t n_vocab = (size_t)d->engine.n_vocab, n_blocks = 2 * (size_t)st_logits_blocks(d->engine.n_vocab);
    float *const blocks = d->first + n_vocab;
    if (o->again) {
        int32_t dst[ST_MAX_SEQUENCES], src[ST_MAX_SEQUENCES] = {0};
        for (int i = 0; i < d->engine.n_seq; i++)
            dst[i] = i;
        d->engine.reorder(d->engine.ctx, dst, src, d->engine.n_seq, d->n_initial);
        memcpy(d->room, d->first, n_vocab * sizeof *d->room); /* filters write to it */
        const st_row kept = {.logits = d->room, .blocks = d->first_has_blocks ? blocks : NULL};
        d->logits[0] = row_of(d, &kept);
        return SOTTO_OK;
    }
    ST_TRY(build_initial(d, o, err));
    ST_TRY(run_prompt(d, err));
    ST_TRY(probability(d, d->vocab->no_speech, &d->no_speech, err));
    const st_row *last = &d->rows[d->n_initial - 1];
    memcpy(d->first, last->logits, n_vocab * sizeof *d->first);
    d->first_has_blocks = last->blocks != NULL;
    if (d->first_has_blocks)
        memcpy(blocks, last->blocks, n_blocks * sizeof *blocks);
    d->logits[0] = d->logits[1];
    return SOTTO_OK;
}

/* ---- the window ---- */

static sotto_status summarise(st_decoder *d, const st_decode_options *o, st_decode_result *out, sotto_error *err)
{
    st_sequence *s = &d->best;
    out->tokens = s->tokens;
    out->logprobs = s->logprobs;
    out->n_tokens = s->n;
    out->complete = s->done;
    out->sum_logprob = s->sum;
    out->avg_logprob = (float)(s->sum / (s->n + 1));
    out->temperature = o->temperature;
    if (o->grammar) {
        bool whole;
        ST_TRY(st_follow_check(d, o, s, &whole, err));
        out->off_grammar = !whole;
        out->grammar_logprob = (float)(s->forced / (s->n + 1));
    }
    const char *text;
    size_t n;
    ST_TRY(st_decode_text(d, s->tokens, s->n, d->vocab->timestamp, &text, &n, err));
    st_strip(&text, &n);
    return st_compression_ratio(text, n, &out->compression_ratio, err);
}

sotto_status st_decode(st_decoder *d, const st_decode_options *o, st_decode_result *out, sotto_error *err)
{
    *out = (st_decode_result){0};
    if (o->group < 1 || o->group > d->engine.n_seq)
        return st_fail(err, SOTTO_E_ARGUMENT, "%d sequences at once, expected 1 to %d", o->group, d->engine.n_seq);
    if (o->grammar)
        ST_TRY(st_grammar_filter_tidy(o->grammar, NULL, 0, err));
    ST_TRY(prompt(d, o, err));
    out->no_speech_prob = d->no_speech;
    if (o->temperature == 0.0f && o->group > 1) {
        ST_TRY(st_search_beam(d, o, err));
        return summarise(d, o, out, err);
    }
    if (o->group > 1) {
        int32_t dst[ST_MAX_SEQUENCES], src[ST_MAX_SEQUENCES] = {0};
        for (int i = 0; i < o->group; i++)
            dst[i] = i;
        d->engine.reorder(d->engine.ctx, dst, src, o->group, d->n_initial);
    }
    ST_TRY(st_search_greedy(d, o, err));
    return summarise(d, o, out, err);
}

sotto_status st_decode_language(st_decoder *d, float *probabilities, int *best, float *no_speech, sotto_error *err)
{
    const st_vocab *v = d->vocab;
    if (!v->multilingual)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "the model knows English only: there is no language to detect");
    d->initial[0] = v->sot;
    d->n_initial = 1;
    d->sot_index = 0;
    ST_TRY(run_prompt(d, err));
    float p;
    ST_TRY(probability(d, v->no_speech, &p, err));
    if (no_speech)
        *no_speech = p;
    const float *logits = d->logits[0].logits + v->language;
    *best = 0;
    for (int i = 1; i < v->n_languages; i++)
        if (logits[i] > logits[*best])
            *best = i;
    double sum = 0;
    for (int i = 0; i < v->n_languages; i++)
        sum += exp((double)logits[i] - (double)logits[*best]);
    for (int i = 0; i < v->n_languages; i++)
        probabilities[i] = (float)(exp((double)logits[i] - (double)logits[*best]) / sum);
    return SOTTO_OK;
}

/* ---- text ---- */

sotto_status st_decode_text(st_decoder *d, const int32_t *tokens, int n, int32_t end_id, const char **text,
                            size_t *length, sotto_error *err)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        size_t bytes;
        const char *p = st_vocab_bytes(d->vocab, tokens[i], &bytes);
        if (tokens[i] >= end_id)
            continue;
        if (!st_grow(&d->text, &d->text_capacity, total + (int64_t)bytes, 1))
            return st_fail_memory(err, (uint64_t)total + bytes, "the text of a window");
        if (bytes)
            memcpy(d->text + total, p, bytes);
        total += (int64_t)bytes;
    }
    if (!st_grow(&d->repaired, &d->repaired_capacity, 3 * total + 1, 1))
        return st_fail_memory(err, 3 * (uint64_t)total + 1, "the text of a window");
    *length = st_utf8_repair(total ? d->text : "", (size_t)total, d->repaired);
    *text = d->repaired;
    return SOTTO_OK;
}

sotto_status st_compression_ratio(const char *text, size_t n, float *out, sotto_error *err)
{
    uLongf packed = compressBound((uLong)n);
    Bytef *buffer = st_alloc(1, packed);
    if (!buffer)
        return st_fail_memory(err, packed, "the compression ratio");
    const int code = compress2(buffer, &packed, (const Bytef *)text, (uLong)n, Z_DEFAULT_COMPRESSION);
    st_free(buffer);
    if (code != Z_OK || packed == 0)
        return st_fail_memory(err, packed, "the compression ratio");
    *out = (float)((double)n / (double)packed);
    return SOTTO_OK;
}
