/* api.c: models and sessions of include/sotto/whisper.h. A session joins the front end (PCM to log-mel), the network and
 * the speech logic, and owns nothing else. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"
#include "models/common/model_error.h"
#include "models/whisper/chunker.h"
#include "models/whisper/frontend.h"
#include "models/whisper/listener.h"
#include "models/whisper/longform.h"
#include "models/whisper/net.h"

enum {
    MAX_SEQUENCES = 16,
    MOST_BATCH = 8,                               /* that is chosen: more gain little and take memory */
    FEED_SAMPLES = 30 * SOTTO_WHISPER_SAMPLE_RATE /* decode as soon as a window more is there, not after a whole hour */
};

struct sotto_whisper_session {
    const sotto_whisper_model *model;
    sotto_backend *backend;
    sotto_arena *arena;
    st_frontend *frontend;
    st_net *net;
    st_engine engine;
    st_longform *longform;
    st_batch *batch; /* of the last recording that asked for one; in use when `batched` */
    st_chunker chunker;
    bool batched;
    int64_t lookahead; /* frames */
    st_listener listener;
    sotto_run_options run;
    bool begun, finished; /* between begin and finish; a finished recording takes no more audio */
    double total_seconds;
};

/* ---- model ---- */

void sotto_whisper_model_options_default(sotto_whisper_model_options *options)
{
    *options = (sotto_whisper_model_options){.size = sizeof *options};
}

static sotto_status open_file(sotto_model_file *file, const sotto_whisper_model_options *options,
                              sotto_whisper_model **out, sotto_error *err)
{
    sotto_whisper_model_options defaults;
    sotto_whisper_model_options_default(&defaults);
    const sotto_status status = st_whisper_model_load(file, options ? options : &defaults, out, err);
    sotto_model_file_free(file);
    return status;
}

sotto_status sotto_whisper_model_open(const char *path, const sotto_whisper_model_options *options,
                                      sotto_whisper_model **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_model_open: out is NULL");
    *out = NULL;
    if (!path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_model_open: path is NULL");
    sotto_model_file *file;
    sotto_model_file_options how = {0};
    if (options)
        how = (sotto_model_file_options){
            .no_mmap = options->no_mmap, .mlock = options->mlock, .logger = options->backend.logger};
    ST_TRY(sotto_model_file_open_with(path, &how, &file, err));
    const sotto_status status = open_file(file, options, out, err);
    return st_fail_model(err, status, path);
}

sotto_status sotto_whisper_model_open_memory(const void *data, size_t size, const sotto_whisper_model_options *options,
                                             sotto_whisper_model **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_model_open_memory: out is NULL");
    *out = NULL;
    if (!data && size > 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_model_open_memory: data is NULL, size %zu", size);
    sotto_model_file *file;
    ST_TRY(sotto_model_file_open_memory(data, size, "model in memory", &file, err));
    return open_file(file, options, out, err);
}

static sotto_status read_all(const sotto_reader *reader, uint8_t **data, size_t *size, sotto_error *err)
{
    enum { PIECE = 1 << 20 };
    uint8_t *buffer = NULL;
    int64_t cap = 0;
    size_t n = 0;
    for (;;) {
        if (!st_grow(&buffer, &cap, (int64_t)n + PIECE, 1)) {
            st_free(buffer);
            return st_fail_memory(err, n + PIECE, "a model read through callbacks");
        }
        const int64_t got = reader->read(reader->user, buffer + n, PIECE);
        if (got < 0 || got > PIECE) {
            st_free(buffer);
            return st_fail(err, SOTTO_E_IO, "model reader: read() returned %lld after %zu bytes", (long long)got, n);
        }
        if (got == 0)
            break;
        n += (size_t)got;
    }
    *data = buffer;
    *size = n;
    return SOTTO_OK;
}

sotto_status sotto_whisper_model_open_reader(const sotto_reader *reader, const sotto_whisper_model_options *options,
                                             sotto_whisper_model **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_model_open_reader: out is NULL");
    *out = NULL;
    if (!reader || !reader->read)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_model_open_reader: reader has no read()");
    uint8_t *data = NULL;
    size_t size = 0;
    ST_TRY(read_all(reader, &data, &size, err));
    const sotto_status status = sotto_whisper_model_open_memory(data, size, options, out, err);
    st_free(data);
    return status;
}

void sotto_whisper_model_get_info(const sotto_whisper_model *model, sotto_whisper_model_info *out)
{
    if (!out)
        return;
    *out = (sotto_whisper_model_info){0};
    if (!model)
        return;
    const st_hparams *h = &model->h;
    *out = (sotto_whisper_model_info){
        .format = model->format,
        .size = st_hparams_size_name(h),
        .multilingual = model->vocab->multilingual,
        .n_vocab = h->n_vocab,
        .n_mels = h->n_mels,
        .n_audio_ctx = h->n_audio_ctx,
        .n_audio_state = h->n_audio_state,
        .n_audio_head = h->n_audio_head,
        .n_audio_layer = h->n_audio_layer,
        .n_text_ctx = h->n_text_ctx,
        .n_text_state = h->n_text_state,
        .n_text_head = h->n_text_head,
        .n_text_layer = h->n_text_layer,
        .n_languages = model->vocab->n_languages,
        .weight_bytes = sotto_store_bytes(model->store) + sotto_store_in_place_bytes(model->store, -1),
        .step_bytes = st_whisper_step_bytes(model),
        .compute = model->compute == SOTTO_I8     ? "int8"
                   : model->compute == SOTTO_BF16 ? "bf16"
                   : model->compute == SOTTO_F16  ? "f16"
                                                  : "f32",
    };
}

/* ---- session ---- */

void sotto_whisper_session_options_default(sotto_whisper_session_options *options)
{
    *options = (sotto_whisper_session_options){.size = sizeof *options, .max_sequences = 5};
}

static sotto_status window(void *ctx, int64_t seek, int64_t end, float *log_mel, sotto_error *err)
{
    (void)err;
    sotto_whisper_session *s = ctx;
    st_frontend_window(s->frontend, seek, end, log_mel);
    return SOTTO_OK;
}

static st_window_source window_source(sotto_whisper_session *s)
{
    const st_hparams *h = &s->model->h;
    return (st_window_source){.ctx = s, .window = window, .n_mels = h->n_mels, .n_audio_ctx = h->n_audio_ctx};
}

static void release_network(sotto_whisper_session *s)
{
    st_net_free(s->net);
    st_frontend_free(s->frontend);
    sotto_arena_free(s->arena);
    s->net = NULL;
    s->frontend = NULL;
    s->arena = NULL;
}

static sotto_status create_network(sotto_whisper_session *s, const sotto_whisper_session_options *o, sotto_error *err)
{
    const sotto_whisper_model *m = s->model;
    st_net_shape shape = {.n_seq = o->max_sequences};
    ST_TRY(st_net_cache_type(m, "cache_k", o->cache_k, &shape.keys, err));
    ST_TRY(st_net_cache_type(m, "cache_v", o->cache_v, &shape.values, err));
    ST_TRY(sotto_arena_create(s->backend, &s->arena, err));
    ST_TRY(st_frontend_create(m, s->backend, s->arena, &s->frontend, err));
    return st_net_create(m, s->backend, s->arena, &shape, &s->net, err);
}

static sotto_status create(sotto_whisper_session *s, const sotto_whisper_session_options *o, sotto_error *err)
{
    const sotto_whisper_model *m = s->model;
    ST_TRY(sotto_backend_open_like(m->backend, o->n_threads, o->cpu_level, &s->backend, err));
    sotto_status status = create_network(s, o, err);
    const int last = sotto_backend_device_count(s->backend) - 1;
    if (status == SOTTO_E_MEMORY && last > 0 && sotto_backend_is_auto(s->backend)) {
        st_log(&m->logger, SOTTO_LOG_WARNING, "%s: the caches go to the CPU", err ? err->text : "no memory");
        release_network(s);
        sotto_backend_set_cache_device(s->backend, last);
        status = create_network(s, o, err);
    }
    ST_TRY(status);
    s->engine = st_net_engine(s->net);
    const st_window_source source = window_source(s);
    return st_longform_create(m->vocab, &s->engine, &source, &s->longform, err);
}

sotto_status sotto_whisper_session_create(const sotto_whisper_model *model, const sotto_whisper_session_options *options,
                                          sotto_whisper_session **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_session_create: out is NULL");
    *out = NULL;
    if (!model)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_session_create: model is NULL");
    sotto_whisper_session_options o;
    sotto_whisper_session_options_default(&o);
    if (options)
        o = *options;
    if (o.max_sequences < 1 || o.max_sequences > MAX_SEQUENCES)
        return st_fail(err, SOTTO_E_ARGUMENT, "max_sequences: %d, expected 1 to %d", o.max_sequences,
                       (int)MAX_SEQUENCES);
    sotto_whisper_session *s = st_calloc(1, sizeof *s);
    if (!s)
        return st_fail_memory(err, sizeof *s, "a session");
    s->model = model;
    const sotto_status status = create(s, &o, err);
    if (status != SOTTO_OK) {
        sotto_whisper_session_free(s);
        return status;
    }
    *out = s;
    return SOTTO_OK;
}

void sotto_whisper_session_free(sotto_whisper_session *session)
{
    if (!session)
        return;
    st_batch_free(session->batch);
    st_chunker_free(&session->chunker);
    st_longform_free(session->longform);
    st_listener_free(&session->listener);
    release_network(session);
    sotto_backend_free(session->backend);
    st_free(session);
}

void sotto_whisper_set_lookahead(sotto_whisper_session *session, double seconds)
{
    if (!session || !(seconds >= 0 && seconds <= 1e6))
        return;
    session->lookahead = (int64_t)(seconds * ST_FRAMES_PER_SECOND);
    st_longform_set_lookahead(session->longform, session->lookahead);
}

void sotto_whisper_set_encoder(sotto_whisper_session *session,
                               sotto_status (*encode)(void *user, const float *log_mel, int n_mels, int n_frames,
                                                      float *out, sotto_error *err),
                               void *user)
{
    if (session)
        st_net_set_encoder(session->net, encode, user);
}

/* How many windows at once suit the machine. Steps of one row leave accelerators and most of many cores idle, as they wait for
 * memory and for each other, while the encoder uses them all; two cores gain a tenth at most, for a lot of memory. */
static int suitable_batch(const sotto_whisper_session *s)
{
    const st_hparams *h = &s->model->h;
    sotto_device_info info;
    const int device = sotto_backend_layer_device(s->backend, h->n_audio_layer, st_whisper_layers(s->model)),
              threads = sotto_backend_threads(s->backend);
    if (sotto_backend_device(s->backend, device, &info, NULL) != SOTTO_OK)
        return 1;
    int n = info.kind == SOTTO_DEVICE_GPU || threads >= 8 ? MOST_BATCH : threads >= 4 ? 4 : 1;
    const st_net_bytes bytes = st_net_get_bytes(s->net);
    const uint64_t window = (bytes.self_cache + bytes.cross_cache) / (uint64_t)s->engine.n_window;
    while (n > 1 && info.memory_free > 0 && (uint64_t)n * window > info.memory_free / 4)
        n /= 2;
    return n;
}

/* Caches for n windows, and what decodes them together when there are several. */
static sotto_status size_batch(sotto_whisper_session *s, int n, sotto_error *err)
{
    if (s->engine.n_window == n && (s->batch || n == 1))
        return SOTTO_OK;
    st_batch_free(s->batch);
    s->batch = NULL;
    ST_TRY(st_net_set_windows(s->net, n, err));
    s->engine = st_net_engine(s->net);
    if (n == 1)
        return SOTTO_OK;
    const st_batch_source source = {.audio = window_source(s), .ctx = &s->chunker, .next = st_chunker_next};
    return st_batch_create(s->model->vocab, &s->engine, &source, &s->batch, err);
}

static sotto_status begin_logic(sotto_whisper_session *s, const sotto_whisper_options *o, sotto_error *err)
{
    s->batched = false;
    if (o->size != sizeof *o) /* nothing else of it may be read */
        return st_longform_begin(s->longform, o, err);
    sotto_whisper_options quiet = *o;
    const int n = o->batch == 0 ? suitable_batch(s) : o->batch;
    if (n > 1)
        quiet.logger.write = NULL;                       /* the batch will say it */
    ST_TRY(st_longform_begin(s->longform, &quiet, err)); /* checks all options */
    ST_TRY(st_listener_begin(&s->listener, o->vad, &o->vad_options, err));
    ST_TRY(size_batch(s, n, err));
    const st_speech *speech = o->vad ? &s->listener.speech : NULL;
    if (n == 1) {
        st_longform_set_speech(s->longform, speech);
        return SOTTO_OK;
    }
    ST_TRY(st_batch_begin(s->batch, o, err));
    st_batch_set_speech(s->batch, speech);
    const st_window_source source = window_source(s);
    st_chunker_begin(&s->chunker, &source, speech, st_batch_settings(s->batch));
    s->batched = true;
    return SOTTO_OK;
}

sotto_status sotto_whisper_begin(sotto_whisper_session *session, const sotto_whisper_options *options, sotto_error *err)
{
    if (!session)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_begin: session is NULL");
    sotto_whisper_options defaults;
    sotto_whisper_options_default(&defaults);
    const sotto_whisper_options *o = options ? options : &defaults;
    session->begun = session->finished = false;
    ST_TRY(begin_logic(session, o, err));
    const int n_audio_ctx = session->model->h.n_audio_ctx;
    ST_TRY(st_net_set_audio_ctx(session->net, o->audio_ctx > 0 ? o->audio_ctx : n_audio_ctx, err));
    st_net_set_thin_padding(session->net,
                            o->padding == SOTTO_PADDING_THIN || (o->padding == SOTTO_PADDING_AUTO && session->batched));
    st_frontend_reset(session->frontend);
    session->run = (sotto_run_options){.abort = o->abort,
                                       .abort_user = o->user,
                                       .trace = o->trace,
                                       .trace_user = o->trace_user,
                                       .trace_split = o->trace_split};
    st_net_set_run_options(session->net, &session->run);
    session->total_seconds = 0;
    session->begun = true;
    return SOTTO_OK;
}

static sotto_status decode_ready(sotto_whisper_session *s, bool final, sotto_error *err)
{
    const int64_t frames = st_frontend_frames(s->frontend);
    if (s->batched) {
        ST_TRY(st_batch_run(s->batch, final || frames < s->lookahead ? frames : frames - s->lookahead, final, err));
        st_frontend_drop(s->frontend, st_chunker_earliest(&s->chunker));
        return SOTTO_OK;
    }
    ST_TRY(st_longform_run(s->longform, frames, final, err));
    st_frontend_drop(s->frontend, st_longform_seek(s->longform));
    return SOTTO_OK;
}

/* After a failure the recording is over: what was decoded stays readable, more audio is refused. */
static sotto_status end_on_failure(sotto_whisper_session *s, sotto_status status)
{
    if (status != SOTTO_OK)
        s->begun = false;
    return status;
}

static sotto_status hear(sotto_whisper_session *s, const float *pcm, int64_t n, sotto_error *err)
{
    ST_TRY(st_frontend_feed(s->frontend, pcm, n, &s->run, err));
    return st_listener_feed(&s->listener, pcm, n, err);
}

static sotto_status feed(sotto_whisper_session *s, const float *pcm, int64_t n, sotto_error *err)
{
    while (n > 0) {
        const int64_t piece = n < FEED_SAMPLES ? n : FEED_SAMPLES;
        ST_TRY(hear(s, pcm, piece, err));
        ST_TRY(decode_ready(s, false, err));
        pcm += piece;
        n -= piece;
    }
    return SOTTO_OK;
}

static sotto_status check_samples(const char *call, const sotto_whisper_session *session, const float *pcm,
                                  int64_t n_samples, sotto_error *err)
{
    if (!session)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: session is NULL", call);
    if (n_samples < 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: n_samples is %lld, expected 0 or more", call, (long long)n_samples);
    if (!pcm && n_samples > 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: pcm is NULL, but n_samples is %lld", call, (long long)n_samples);
    return SOTTO_OK;
}

sotto_status sotto_whisper_feed(sotto_whisper_session *session, const float *pcm, int64_t n_samples, sotto_error *err)
{
    ST_TRY(check_samples("sotto_whisper_feed", session, pcm, n_samples, err));
    if (!session->begun || session->finished)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_feed: no recording has begun, or it is finished");
    const double start = st_time_now();
    const sotto_status status = feed(session, pcm, n_samples, err);
    session->total_seconds += st_time_now() - start;
    return end_on_failure(session, status);
}

sotto_status sotto_whisper_finish(sotto_whisper_session *session, sotto_error *err)
{
    if (!session)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_finish: session is NULL");
    if (!session->begun || session->finished)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_finish: no recording has begun, or it is finished");
    const double start = st_time_now();
    session->finished = true;
    sotto_status status = st_frontend_finish(session->frontend, &session->run, err);
    if (status == SOTTO_OK)
        status = st_listener_finish(&session->listener, err);
    st_longform_set_duration(session->longform, sotto_whisper_duration(session));
    if (session->batched)
        st_batch_set_duration(session->batch, sotto_whisper_duration(session));
    if (status == SOTTO_OK)
        status = decode_ready(session, true, err);
    session->total_seconds += st_time_now() - start;
    return end_on_failure(session, status);
}

/* The whole recording is at hand: all of it is heard before the first window is decoded, as in the original, so that its
 * loudest frame is known. */
sotto_status sotto_whisper_transcribe(sotto_whisper_session *session, const float *pcm, int64_t n_samples,
                                      const sotto_whisper_options *options, sotto_error *err)
{
    ST_TRY(check_samples("sotto_whisper_transcribe", session, pcm, n_samples, err));
    ST_TRY(sotto_whisper_begin(session, options, err));
    st_longform_set_total(session->longform, n_samples / ST_HOP);
    if (session->batched)
        st_batch_set_total(session->batch, n_samples / ST_HOP);
    const double start = st_time_now();
    const sotto_status status = hear(session, pcm, n_samples, err);
    session->total_seconds += st_time_now() - start;
    return status == SOTTO_OK ? sotto_whisper_finish(session, err) : end_on_failure(session, status);
}

static sotto_status detect(sotto_whisper_session *s, const float *pcm, int64_t n, float *out, int *best,
                           sotto_error *err)
{
    static const float silence[4000];
    enum { WINDOW_SAMPLES = ST_WINDOW_FRAMES * ST_HOP, PIECE = sizeof silence / sizeof *silence };
    n = n < WINDOW_SAMPLES ? n : WINDOW_SAMPLES;
    ST_TRY(st_frontend_feed(s->frontend, pcm, n, &s->run, err));
    for (int64_t left = WINDOW_SAMPLES - n; left > 0; left -= PIECE)
        ST_TRY(st_frontend_feed(s->frontend, silence, left < PIECE ? left : PIECE, &s->run, err));
    ST_TRY(st_frontend_finish(s->frontend, &s->run, err));
    const size_t count = (size_t)ST_WINDOW_FRAMES * (size_t)s->model->h.n_mels;
    float *log_mel = st_alloc(count, sizeof *log_mel);
    if (!log_mel)
        return st_fail_memory(err, count * sizeof *log_mel, "a window");
    st_frontend_window(s->frontend, 0, ST_WINDOW_FRAMES, log_mel);
    sotto_status status = s->engine.encode(s->engine.ctx, 0, log_mel, ST_WINDOW_FRAMES, err);
    st_free(log_mel);
    if (status == SOTTO_OK)
        status = st_decode_language(st_longform_decoder(s->longform), out, best, NULL, err);
    return status;
}

sotto_status sotto_whisper_detect_language(sotto_whisper_session *session, const float *pcm, int64_t n_samples,
                                           float *out, int *best, sotto_error *err)
{
    ST_TRY(check_samples("sotto_whisper_detect_language", session, pcm, n_samples, err));
    if (!out || !best)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_detect_language: %s is NULL", out ? "best" : "out");
    if (!session->model->vocab->multilingual)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "language detection: the model is English only");
    ST_TRY(sotto_whisper_begin(session, NULL, err));
    session->begun = false; /* the front end holds what was listened to */
    const sotto_status status = detect(session, pcm, n_samples, out, best, err);
    st_frontend_reset(session->frontend);
    return status;
}

/* ---- results ---- */

int64_t sotto_whisper_segment_count(const sotto_whisper_session *session)
{
    if (!session)
        return 0;
    return session->batched ? st_batch_count(session->batch) : st_longform_count(session->longform);
}

const sotto_whisper_segment *sotto_whisper_segment_get(const sotto_whisper_session *session, int64_t index)
{
    if (!session)
        return NULL;
    return session->batched ? st_batch_segment(session->batch, index) : st_longform_segment(session->longform, index);
}

const char *sotto_whisper_language(const sotto_whisper_session *session, float *probability)
{
    if (!session)
        return NULL;
    return session->batched ? st_batch_language(session->batch, probability)
                            : st_longform_language(session->longform, probability);
}

double sotto_whisper_duration(const sotto_whisper_session *session)
{
    return session ? (double)st_frontend_samples(session->frontend) / SOTTO_WHISPER_SAMPLE_RATE : 0;
}

void sotto_whisper_get_timings(const sotto_whisper_session *session, sotto_whisper_timings *out)
{
    if (!out)
        return;
    *out = (sotto_whisper_timings){0};
    if (!session)
        return;
    const st_decode_counters together = session->batched ? st_batch_counters(session->batch) : (st_decode_counters){0};
    const st_decode_counters *c = session->batched ? &together : st_longform_counters(session->longform);
    const st_net_bytes b = st_net_get_bytes(session->net);
    *out = (sotto_whisper_timings){
        .load_s = session->model->load_seconds,
        .mel_s = st_frontend_seconds(session->frontend),
        .encode_s = c->encode_s,
        .decode_s = c->decode_s,
        .prompt_s = c->prompt_s,
        .total_s = session->total_seconds,
        .n_encode = c->n_encode,
        .n_decode = c->n_decode,
        .n_prompt = c->n_prompt,
        .n_fallback = c->n_fallback,
        .weight_bytes = sotto_store_bytes(session->model->store) + sotto_store_in_place_bytes(session->model->store, -1),
        .self_cache_bytes = b.self_cache,
        .cross_cache_bytes = b.cross_cache,
        .mel_bytes = st_frontend_plan_bytes(session->frontend),
        .encode_bytes = b.encode,
        .decode_bytes = b.decode,
    };
}

sotto_status sotto_whisper_get_memory(const sotto_whisper_session *session, int device, sotto_whisper_memory *out,
                                      sotto_error *err)
{
    if (!session || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_get_memory: session or out is NULL");
    *out = (sotto_whisper_memory){0};
    const int n = sotto_backend_device_count(session->backend);
    if (device < 0 || device >= n)
        return st_fail(err, SOTTO_E_NOT_FOUND, "device %d: expected 0 to %d", device, n - 1);
    sotto_device_info info;
    ST_TRY(sotto_backend_device(session->backend, device, &info, err));
    memcpy(out->device, info.id, sizeof out->device);
    out->weights = sotto_store_device_bytes(session->model->store, device);
    out->in_place = sotto_store_in_place_bytes(session->model->store, device);
    st_net_device_bytes(session->net, device, &out->caches, &out->compute);
    const uint64_t mel = sotto_plan_device_bytes(st_frontend_plan(session->frontend), device);
    out->compute = mel > out->compute ? mel : out->compute;
    return SOTTO_OK;
}

static sotto_status find_plan(const sotto_whisper_session *session, const char *graph, const sotto_plan **out,
                              sotto_error *err)
{
    *out = strcmp(graph, "mel") == 0 ? st_frontend_plan(session->frontend) : st_net_plan(session->net, graph);
    if (*out)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_NOT_FOUND, "graph \"%s\": expected mel, encode or decode", graph);
}

sotto_status sotto_whisper_describe(const sotto_whisper_session *session, const char *graph,
                                    void (*write)(void *user, const char *text, size_t n), void *user, sotto_error *err)
{
    const sotto_plan *plan;
    if (!session || !graph)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_describe: session or graph is NULL");
    ST_TRY(find_plan(session, graph, &plan, err));
    return sotto_plan_describe(plan, write, user, err);
}

sotto_status sotto_whisper_write_dot(const sotto_whisper_session *session, const char *graph,
                                     void (*write)(void *user, const char *text, size_t n), void *user, sotto_error *err)
{
    if (!session || !graph)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_write_dot: session or graph is NULL");
    const sotto_plan *plan;
    ST_TRY(find_plan(session, graph, &plan, err));
    return sotto_plan_dot(plan, write, user, err);
}

/* ---- tokens ---- */

sotto_status sotto_whisper_tokenize(const sotto_whisper_model *model, const char *text, int32_t *ids, int64_t cap,
                                    int64_t *count, sotto_error *err)
{
    if (!model || !text || !count || cap < 0 || (!ids && cap > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_whisper_tokenize: a pointer is NULL, or cap is %lld",
                       (long long)cap);
    return st_vocab_tokenize(model->vocab, text, ids, cap, count, err);
}

const char *sotto_whisper_token_bytes(const sotto_whisper_model *model, int32_t id, size_t *length)
{
    if (model)
        return st_vocab_bytes(model->vocab, id, length);
    if (length)
        *length = 0;
    return "";
}
