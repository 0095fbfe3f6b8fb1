#include "models/whisper/batch.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"

enum { WINDOW_FRAMES = 3000, FRAMES_PER_SECOND = 100 };

typedef enum wish {
    WISH_NOTHING = 0, /* the slot's thread computes */
    WISH_CHUNK,
    WISH_LOG,
    WISH_ENCODE,
    WISH_DECODE,
    WISH_OVER /* the thread has ended, or was never started */
} wish;

typedef struct slot {
    st_batch *batch;
    int index;
    st_longform *lf;
    st_thread thread;
    bool started, direct; /* direct: the caller's thread uses the facade itself */
    float *mel;           /* [3000, n_mels] of the chunk */
    bool encoded;         /* the chunk's first window is in the network already */
    int64_t chunk;        /* number; -1: none */
    st_chunk place;
    st_row *rows; /* [n_text_ctx], sequences as the network numbers them */
    /* What the thread waits for. Written by it before it waits, read by the caller's thread while it does. */
    wish wish;
    int n_rows;
    const float *log_mel;
    int n_frames; /* of it */
    sotto_log_level level;
    const char *text;
    /* The answer. */
    st_cond answered;
    sotto_status answer; /* of a chunk: whether there is one */
    sotto_status status; /* when over */
    sotto_error err;
} slot;

typedef struct record {
    st_results results;
    int64_t end;
    bool done;
} record;

struct st_batch {
    const st_vocab *vocab;
    st_engine engine;
    st_batch_source source;
    int n_slots;
    slot *slots;
    st_row *rows; /* [n_slots * n_text_ctx] */
    bool locks;   /* mutex, waiting */
    st_mutex mutex;
    st_cond waiting; /* no thread computes */
    int n_busy;
    /* the recording */
    sotto_whisper_options given; /* callbacks; pointers to text are NULL */
    bool running, done;
    st_settings settings; /* as the first slot read them; what they point to is its own */
    const st_speech *speech;
    int64_t total;
    double duration;
    int language; /* -1: not known yet */
    float probability;
    record *records; /* of chunks given out */
    int64_t n_records, records_capacity;
    int64_t n_flushed; /* records whose segments were told */
    const sotto_whisper_segment **segments;
    int64_t n_segments, segments_capacity;
    st_decode_counters counters;
};

uint64_t st_batch_seed(uint64_t seed, int64_t chunk)
{
    return seed + (uint64_t)chunk * UINT64_C(0x9e3779b97f4a7c15);
}

/* ---- the slot's side ---- */

/* Wait for what the slot wishes. */
static sotto_status ask(slot *s, wish w)
{
    st_batch *b = s->batch;
    st_mutex_lock(&b->mutex);
    s->wish = w;
    if (--b->n_busy == 0)
        st_cond_broadcast(&b->waiting);
    while (s->wish != WISH_NOTHING)
        st_cond_wait(&s->answered, &b->mutex);
    const sotto_status answer = s->answer;
    st_mutex_unlock(&b->mutex);
    return answer;
}

static sotto_status stopped(sotto_error *err)
{
    return st_fail(err, SOTTO_E_ABORTED, "the other chunks were stopped");
}

static sotto_status slot_encode(void *ctx, int window, const float *log_mel, int n_frames, sotto_error *err)
{
    (void)window;
    slot *s = ctx;
    s->log_mel = log_mel;
    s->n_frames = n_frames;
    return ask(s, WISH_ENCODE) == SOTTO_OK ? SOTTO_OK : stopped(err);
}

static sotto_status slot_decode(void *ctx, st_row *rows, int n_rows, sotto_error *err)
{
    slot *s = ctx;
    const st_batch *b = s->batch;
    if (n_rows < 1 || n_rows > b->engine.n_text_ctx)
        return st_fail(err, SOTTO_E_INTERNAL, "%d rows of one window, expected 1 to %d", n_rows, b->engine.n_text_ctx);
    for (int i = 0; i < n_rows; i++) {
        s->rows[i] = rows[i];
        s->rows[i].seq += s->index * b->engine.n_seq;
    }
    s->n_rows = n_rows;
    if (s->direct)
        ST_TRY(b->engine.decode(b->engine.ctx, s->rows, n_rows, err));
    else if (ask(s, WISH_DECODE) != SOTTO_OK)
        return stopped(err);
    for (int i = 0; i < n_rows; i++)
        rows[i].logits = s->rows[i].logits, rows[i].blocks = s->rows[i].blocks;
    return SOTTO_OK;
}

/* These touch the window's own sequences only, so no other slot need wait. */
static void slot_reorder(void *ctx, const int32_t *dst, const int32_t *src, int n, int length)
{
    slot *s = ctx;
    const st_engine *e = &s->batch->engine;
    int32_t to[ST_MAX_SEQUENCES], from[ST_MAX_SEQUENCES];
    for (int i = 0; i < n && i < ST_MAX_SEQUENCES; i++) {
        to[i] = dst[i] + s->index * e->n_seq;
        from[i] = src[i] + s->index * e->n_seq;
    }
    e->reorder(e->ctx, to, from, n < ST_MAX_SEQUENCES ? n : ST_MAX_SEQUENCES, length);
}

static void slot_reset(void *ctx, int window)
{
    (void)window;
    slot *s = ctx;
    s->batch->engine.reset(s->batch->engine.ctx, s->index);
}

static sotto_status slot_window(void *ctx, int64_t first, int64_t end, float *log_mel, sotto_error *err)
{
    (void)err;
    const slot *s = ctx;
    const size_t n_mels = (size_t)s->batch->source.audio.n_mels;
    const int64_t at = first - s->place.first, left = s->place.end - first;
    int64_t n = end - first < left ? end - first : left;
    n = n < WINDOW_FRAMES - at ? n : WINDOW_FRAMES - at;
    n = n > 0 ? n : 0;
    if (n > 0)
        memcpy(log_mel, s->mel + (size_t)at * n_mels, (size_t)n * n_mels * sizeof *log_mel);
    memset(log_mel + (size_t)n * n_mels, 0, (size_t)(WINDOW_FRAMES - n) * n_mels * sizeof *log_mel);
    return SOTTO_OK;
}

/* From the slot's thread, but for what begin() has to say, which the first slot says for all. */
static void slot_log(void *user, sotto_log_level level, const char *text)
{
    slot *s = user;
    if (s->direct) {
        if (s->index == 0)
            st_log(&s->batch->given.logger, level, "%s", text);
        return;
    }
    s->level = level;
    s->text = text;
    (void)ask(s, WISH_LOG);
}

static void slot_main(void *arg)
{
    slot *s = arg;
    sotto_status status = SOTTO_OK;
    while (status == SOTTO_OK && ask(s, WISH_CHUNK) == SOTTO_OK)
        status = st_longform_run(s->lf, s->place.end, true, &s->err);
    st_mutex_lock(&s->batch->mutex);
    s->status = status;
    s->wish = WISH_OVER;
    if (--s->batch->n_busy == 0)
        st_cond_broadcast(&s->batch->waiting);
    st_mutex_unlock(&s->batch->mutex);
}

/* ---- making ---- */

static sotto_status create_slot(st_batch *b, int index, sotto_error *err)
{
    slot *s = &b->slots[index];
    const size_t n_mel = (size_t)WINDOW_FRAMES * (size_t)b->source.audio.n_mels;
    st_engine engine = b->engine;
    engine.ctx = s;
    engine.n_window = 1;
    engine.encode = slot_encode;
    engine.decode = slot_decode;
    engine.reorder = slot_reorder;
    engine.reset = slot_reset;
    const st_window_source source = {
        .ctx = s, .window = slot_window, .n_mels = b->source.audio.n_mels, .n_audio_ctx = b->source.audio.n_audio_ctx};
    s->mel = st_calloc(n_mel, sizeof *s->mel);
    s->rows = st_calloc((size_t)b->engine.n_text_ctx, sizeof *s->rows);
    if (!s->mel || !s->rows)
        return st_fail_memory(err, n_mel * sizeof *s->mel, "a chunk");
    if (!st_cond_init(&s->answered))
        return st_fail_memory(err, sizeof s->answered, "a lock");
    s->batch = b; /* from here the lock is there, too */
    s->index = index;
    s->wish = WISH_OVER;
    s->direct = true;
    s->chunk = -1;
    return st_longform_create(b->vocab, &engine, &source, &s->lf, err);
}

static sotto_status create(st_batch *b, sotto_error *err)
{
    const size_t n_rows = (size_t)b->n_slots * (size_t)b->engine.n_text_ctx;
    b->slots = st_calloc((size_t)b->n_slots, sizeof *b->slots);
    b->rows = st_calloc(n_rows, sizeof *b->rows);
    if (!b->slots || !b->rows)
        return st_fail_memory(err, n_rows * sizeof *b->rows, "the rows of a batch");
    if (!st_mutex_init(&b->mutex))
        return st_fail_memory(err, sizeof b->mutex, "a lock");
    if (!st_cond_init(&b->waiting)) {
        st_mutex_destroy(&b->mutex);
        return st_fail_memory(err, sizeof b->waiting, "a lock");
    }
    b->locks = true;
    for (int i = 0; i < b->n_slots; i++)
        ST_TRY(create_slot(b, i, err));
    return SOTTO_OK;
}

sotto_status st_batch_create(const st_vocab *vocab, const st_engine *engine, const st_batch_source *source,
                             st_batch **out, sotto_error *err)
{
    *out = NULL;
    if (engine->n_window < 1 || engine->n_window > ST_MAX_BATCH)
        return st_fail(err, SOTTO_E_INTERNAL, "a batch of %d windows, expected 1 to %d", engine->n_window,
                       (int)ST_MAX_BATCH);
    st_batch *b = st_calloc(1, sizeof *b);
    if (!b)
        return st_fail_memory(err, sizeof *b, "a batch");
    b->vocab = vocab;
    b->engine = *engine;
    b->source = *source;
    b->n_slots = engine->n_window;
    b->language = -1;
    const sotto_status status = create(b, err);
    if (status != SOTTO_OK) {
        st_batch_free(b);
        return status;
    }
    *out = b;
    return SOTTO_OK;
}

/* ---- the caller's side: threads ---- */

static void answer(slot *s, sotto_status status)
{
    st_batch *b = s->batch;
    st_mutex_lock(&b->mutex);
    s->answer = status;
    s->wish = WISH_NOTHING;
    b->n_busy++;
    st_cond_broadcast(&s->answered);
    st_mutex_unlock(&b->mutex);
}

/* Until no thread computes: then each waits for an answer or is over. */
static void wait_for_all(st_batch *b)
{
    st_mutex_lock(&b->mutex);
    while (b->n_busy > 0)
        st_cond_wait(&b->waiting, &b->mutex);
    st_mutex_unlock(&b->mutex);
}

/* Every thread ends: who waits is refused, and so is what it asks for then. */
static void end_threads(st_batch *b)
{
    for (bool left = true; left;) {
        left = false;
        wait_for_all(b);
        for (int i = 0; i < b->n_slots; i++)
            if (b->slots[i].wish != WISH_OVER) {
                answer(&b->slots[i], SOTTO_E_ABORTED);
                left = true;
            }
    }
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        if (s->started)
            st_thread_join(&s->thread);
        s->started = false;
        s->direct = true;
    }
}

static sotto_status start_threads(st_batch *b, sotto_error *err)
{
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        s->direct = false;
        s->status = SOTTO_OK;
        s->chunk = -1;
        s->wish = WISH_NOTHING;
        st_mutex_lock(&b->mutex);
        b->n_busy++;
        st_mutex_unlock(&b->mutex);
        if (!st_thread_create(&s->thread, slot_main, s)) {
            st_mutex_lock(&b->mutex);
            b->n_busy--;
            st_mutex_unlock(&b->mutex);
            s->wish = WISH_OVER;
            return st_fail(err, SOTTO_E_MEMORY, "a batch of %d windows: no thread for the one numbered %d", b->n_slots,
                           i);
        }
        s->started = true;
    }
    return SOTTO_OK;
}

static void forget(st_batch *b)
{
    for (int64_t i = 0; i < b->n_records; i++)
        st_results_free(&b->records[i].results);
    b->n_records = b->n_flushed = b->n_segments = 0;
}

void st_batch_free(st_batch *b)
{
    if (!b)
        return;
    if (b->slots && b->slots[0].started)
        end_threads(b);
    forget(b);
    for (int i = 0; b->slots && i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        st_longform_free(s->lf);
        st_free(s->mel);
        st_free(s->rows);
        if (s->batch)
            st_cond_destroy(&s->answered);
    }
    if (b->locks) {
        st_cond_destroy(&b->waiting);
        st_mutex_destroy(&b->mutex);
    }
    st_free(b->slots);
    st_free(b->rows);
    st_free(b->records);
    st_free(b->segments);
    st_free(b);
}

sotto_status st_batch_begin(st_batch *b, const sotto_whisper_options *options, sotto_error *err)
{
    end_threads(b);
    forget(b);
    b->running = b->done = false;
    b->total = 0;
    b->speech = NULL;
    b->duration = 0;
    b->language = -1;
    b->probability = 0;
    b->counters = (st_decode_counters){0};
    b->given = (sotto_whisper_options){0};
    if (options)
        b->given.logger = options->logger;
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        sotto_whisper_options own = {0};
        if (options) {
            own = *options;
            own.on_segment = NULL;
            own.on_progress = NULL;
            own.abort = NULL;
            own.logger = (sotto_logger){options->logger.write ? slot_log : NULL, s};
        }
        ST_TRY(st_longform_begin(s->lf, options ? &own : NULL, err));
    }
    b->settings = *st_longform_settings(b->slots[0].lf);
    b->given = *options;
    b->given.language = b->given.initial_prompt = NULL;
    b->given.suppress_tokens = NULL;
    b->language = b->settings.language;
    b->probability = b->language >= 0 ? 1.0f : 0.0f;
    b->running = true;
    return SOTTO_OK;
}

/* ---- the caller's side: chunks ---- */

/* Tell the segments of all chunks before the first that is not done. */
static void flush(st_batch *b)
{
    for (; b->n_flushed < b->n_records && b->records[b->n_flushed].done; b->n_flushed++) {
        const st_results *r = &b->records[b->n_flushed].results;
        for (int64_t i = 0; i < r->count; i++) {
            sotto_whisper_segment *s = r->segments[i];
            s->id = b->n_segments;
            b->segments[b->n_segments++] = s;
            if (b->given.on_segment)
                b->given.on_segment(b->given.user, s);
        }
    }
}

/* What the slot has made of its chunk. */
static sotto_status collect(st_batch *b, slot *s, sotto_error *err)
{
    if (s->chunk < 0)
        return SOTTO_OK;
    record *r = &b->records[s->chunk];
    const st_decode_counters *c = st_longform_counters(s->lf);
    b->counters.n_prompt += c->n_prompt;
    b->counters.n_decode += c->n_decode;
    b->counters.n_fallback += c->n_fallback;
    st_longform_take_results(s->lf, &r->results);
    r->done = true;
    s->chunk = -1;
    int64_t n = r->results.count;
    for (int64_t i = b->n_flushed; i < b->n_records; i++)
        n += &b->records[i] != r ? b->records[i].results.count : 0;
    if (!st_grow(&b->segments, &b->segments_capacity, b->n_segments + n, sizeof *b->segments))
        return st_fail_memory(err, (uint64_t)n * sizeof *b->segments, "the list of segments");
    return SOTTO_OK;
}

static double seconds(int64_t frames)
{
    return frames > 0 ? (double)frames / FRAMES_PER_SECOND : 0.0;
}

/* How much has been told; 100 % comes once, at the very end. */
static void progress(const st_batch *b, int64_t end, bool over)
{
    if (!b->given.on_progress)
        return;
    const int64_t total = end == INT64_MAX ? 0 : end > b->settings.first ? end - b->settings.first : 0;
    if (over) {
        b->given.on_progress(b->given.user, seconds(total), seconds(total));
        return;
    }
    const int64_t at = b->n_flushed > 0 ? b->records[b->n_flushed - 1].end : b->settings.first;
    if (at < end)
        b->given.on_progress(b->given.user, seconds(at - b->settings.first), seconds(total));
}

static sotto_status check_abort(const st_batch *b, sotto_error *err)
{
    if (b->given.abort && b->given.abort(b->given.user))
        return st_fail(err, SOTTO_E_ABORTED, "the abort callback asked to stop");
    return SOTTO_OK;
}

static sotto_status encode(st_batch *b, slot *s, const float *log_mel, int n_frames, sotto_error *err)
{
    ST_TRY(check_abort(b, err));
    const double before = st_time_now();
    ST_TRY(b->engine.encode(b->engine.ctx, s->index, log_mel, n_frames, err));
    b->counters.encode_s += st_time_now() - before;
    b->counters.n_encode++;
    return SOTTO_OK;
}

/* In the first chunk, whose window the slot will find encoded. */
static sotto_status detect(st_batch *b, slot *s, sotto_error *err)
{
    ST_TRY(encode(b, s, s->mel, (int)(s->place.end - s->place.first), err));
    s->encoded = true;
    float *p = st_calloc((size_t)b->vocab->n_languages, sizeof *p);
    if (!p)
        return st_fail_memory(err, (uint64_t)b->vocab->n_languages * sizeof *p, "the languages");
    const double before = st_time_now();
    s->direct = true;
    const sotto_status status = st_decode_language(st_longform_decoder(s->lf), p, &b->language, NULL, err);
    s->direct = false;
    b->counters.prompt_s += st_time_now() - before;
    b->counters.n_prompt++;
    b->probability = status == SOTTO_OK ? p[b->language] : 0.0f;
    st_free(p);
    return status;
}

static sotto_status assign(st_batch *b, slot *s, const st_chunk *c, int64_t frames, bool final, sotto_error *err)
{
    const int64_t window = b->settings.window;
    if (c->first < b->settings.first || c->end <= c->first || c->end - c->first > window || c->end > frames)
        return st_fail(err, SOTTO_E_INTERNAL,
                       "chunk %lld: frames %lld to %lld, expected at most %lld inside %lld to %lld",
                       (long long)b->n_records, (long long)c->first, (long long)c->end, (long long)window,
                       (long long)b->settings.first, (long long)frames);
    if (!st_grow(&b->records, &b->records_capacity, b->n_records + 1, sizeof *b->records))
        return st_fail_memory(err, sizeof *b->records, "the list of chunks");
    ST_TRY(b->source.audio.window(b->source.audio.ctx, c->first, c->end, s->mel, err));
    s->place = *c;
    s->encoded = false;
    if (b->language < 0)
        ST_TRY(detect(b, s, err));
    const st_part part = {c->first,    c->end,         st_batch_seed(b->given.seed, b->n_records),
                          b->language, b->probability, b->speech};
    ST_TRY(st_longform_begin_part(s->lf, &part, err));
    if (final && c->end == frames)
        st_longform_set_duration(s->lf, b->duration);
    s->chunk = b->n_records;
    b->records[b->n_records++] = (record){.end = c->end};
    return SOTTO_OK;
}

/* ---- the caller's side: rounds ---- */

static sotto_status give_chunks(st_batch *b, int64_t frames, bool final, bool *hungry, sotto_error *err)
{
    const int64_t flushed = b->n_flushed;
    for (int i = 0; i < b->n_slots; i++)
        if (b->slots[i].wish == WISH_CHUNK)
            ST_TRY(collect(b, &b->slots[i], err));
    flush(b);
    const int64_t end = final                          ? frames < b->settings.end ? frames : b->settings.end
                        : b->settings.end != INT64_MAX ? b->settings.end
                        : b->total > 0                 ? b->total
                                                       : INT64_MAX;
    if (b->n_flushed > flushed)
        progress(b, end, false);
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        if (s->wish != WISH_CHUNK)
            continue;
        st_chunk chunk;
        bool have = false;
        ST_TRY(b->source.next(b->source.ctx, frames, final, &chunk, &have, err));
        if (!have && !final) {
            *hungry = true;
            return SOTTO_OK;
        }
        if (have)
            ST_TRY(assign(b, s, &chunk, frames, final, err));
        answer(s, have ? SOTTO_OK : SOTTO_E_NOT_FOUND);
    }
    return SOTTO_OK;
}

static sotto_status encode_all(st_batch *b, sotto_error *err)
{
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        if (s->wish != WISH_ENCODE)
            continue;
        if (!s->encoded)
            ST_TRY(encode(b, s, s->log_mel, s->n_frames, err));
        s->encoded = false;
        answer(s, SOTTO_OK);
    }
    return SOTTO_OK;
}

static sotto_status decode_all(st_batch *b, sotto_error *err)
{
    int n = 0, n_prompt = 0;
    ST_TRY(check_abort(b, err));
    for (int i = 0; i < b->n_slots; i++) {
        const slot *s = &b->slots[i];
        if (s->wish != WISH_DECODE)
            continue;
        memcpy(b->rows + n, s->rows, (size_t)s->n_rows * sizeof *b->rows);
        n_prompt += s->rows[0].pos == 0 ? s->n_rows : 0;
        n += s->n_rows;
    }
    const double before = st_time_now();
    ST_TRY(b->engine.decode(b->engine.ctx, b->rows, n, err));
    const double spent = st_time_now() - before, prompt = spent * n_prompt / n; /* shared out by rows */
    b->counters.prompt_s += prompt;
    b->counters.decode_s += spent - prompt;
    const st_row *done = b->rows;
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        if (s->wish != WISH_DECODE)
            continue;
        for (int k = 0; k < s->n_rows; k++, done++)
            s->rows[k].logits = done->logits, s->rows[k].blocks = done->blocks;
        answer(s, SOTTO_OK);
    }
    return SOTTO_OK;
}

static void log_all(st_batch *b)
{
    for (int i = 0; i < b->n_slots; i++) {
        slot *s = &b->slots[i];
        if (s->wish != WISH_LOG)
            continue;
        st_log(&b->given.logger, s->level, "%s", s->text);
        answer(s, SOTTO_OK);
    }
}

static int count_wishes(const st_batch *b, wish w)
{
    int n = 0;
    for (int i = 0; i < b->n_slots; i++)
        n += b->slots[i].wish == w;
    return n;
}

/* The failure of the first slot that has one. */
static sotto_status check_slots(const st_batch *b, sotto_error *err)
{
    for (int i = 0; i < b->n_slots; i++)
        if (b->slots[i].wish == WISH_OVER && b->slots[i].status != SOTTO_OK)
            return st_fail(err, b->slots[i].status, "%s", b->slots[i].err.text);
    return SOTTO_OK;
}

static sotto_status run_rounds(st_batch *b, int64_t frames, bool final, sotto_error *err)
{
    for (bool hungry = false; !hungry;) {
        wait_for_all(b);
        ST_TRY(check_slots(b, err));
        if (count_wishes(b, WISH_LOG) > 0)
            log_all(b);
        else if (count_wishes(b, WISH_CHUNK) > 0)
            ST_TRY(give_chunks(b, frames, final, &hungry, err));
        else if (count_wishes(b, WISH_ENCODE) > 0)
            ST_TRY(encode_all(b, err));
        else if (count_wishes(b, WISH_DECODE) > 0)
            ST_TRY(decode_all(b, err));
        else {
            progress(b, frames < b->settings.end ? frames : b->settings.end, true);
            b->done = true;
            return SOTTO_OK;
        }
    }
    return SOTTO_OK;
}

sotto_status st_batch_run(st_batch *b, int64_t frames, bool final, sotto_error *err)
{
    if (!b->running)
        return st_fail(err, SOTTO_E_ARGUMENT, "no recording was begun, or an error ended it: begin a new one");
    if (b->done)
        return SOTTO_OK;
    sotto_status status = b->slots[0].started ? SOTTO_OK : start_threads(b, err);
    if (status == SOTTO_OK)
        status = run_rounds(b, frames, final, err);
    if (status != SOTTO_OK || b->done)
        end_threads(b);
    b->running = status == SOTTO_OK;
    return status;
}

void st_batch_set_total(st_batch *b, int64_t frames)
{
    b->total = frames > 0 ? frames : 0;
}

void st_batch_set_speech(st_batch *b, const st_speech *speech)
{
    b->speech = speech;
}

void st_batch_set_duration(st_batch *b, double length)
{
    b->duration = length;
}

/* ---- results ---- */

const st_settings *st_batch_settings(const st_batch *b)
{
    return &b->settings;
}

int64_t st_batch_count(const st_batch *b)
{
    return b->n_segments;
}

const sotto_whisper_segment *st_batch_segment(const st_batch *b, int64_t index)
{
    return index >= 0 && index < b->n_segments ? b->segments[index] : NULL;
}

const char *st_batch_language(const st_batch *b, float *probability)
{
    const bool known = b->settings.language >= 0 || b->n_segments > 0;
    if (probability)
        *probability = known ? b->probability : 0.0f;
    return known ? sotto_language_code(b->language) : NULL;
}

st_decode_counters st_batch_counters(const st_batch *b)
{
    return b->counters;
}
