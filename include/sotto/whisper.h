/* whisper.h: speech to text with Whisper models.
 *
 * A sotto_whisper_model never changes after loading: share it between threads. A sotto_whisper_session is one
 * transcription at a time and belongs to one thread at a time; its results are the same bits whatever other sessions do.
 * Audio is f32 mono at 16,000 samples a second, nominally in -1..1; samples that are not finite count as zero.
 * Times are in seconds from the first sample fed. Text is always valid UTF-8.
 * Source: A. Radford et al., "Robust Speech Recognition via Large-Scale Weak Supervision", 2022; behaviour follows
 * openai-whisper 20250625. */
#ifndef SOTTO_WHISPER_H
#define SOTTO_WHISPER_H

#include "grammar.h"
#include "vad.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SOTTO_WHISPER_SAMPLE_RATE 16000

typedef struct sotto_whisper_model sotto_whisper_model;
typedef struct sotto_whisper_session sotto_whisper_session;

/* ---- model ---- */

typedef struct sotto_whisper_model_options {
    size_t size; /* of this struct, set by _default; lets it grow */
    sotto_backend_options backend;
    /* In which numbers weights are kept and multiplied, decided when loading:
     *   "f32"   every weight as the file holds it, expanded exactly; activations in f32
     *   "bf16"  weights and the left side of products rounded to bf16, or in the encoder to words of 16 bits where these are
     *           faster (SOTTO_COMPUTE_WORDS), which is closer
     *   "int8"  weights as 8-bit integers with a scale for each output, the left side brought to 8 bits row by row; what
     *           is no matrix product, and attention, as in bf16
     * Sums are wide in each. Block types (q5_0, ...) are brought to the type where many rows meet the weights, in the
     * encoder, and stay as they are in the decoder, where their bytes count (q8_0 becomes int8 there too). NULL or "auto":
     * what the device prefers (sotto_backend_preferred_weights). */
    const char *compute;
    /* Only count: weights are declared and not loaded, and sessions take no memory for caches. Such a session can be asked
     * for sizes (sotto_whisper_get_memory) and graphs, not for text. */
    bool measure_only;
    bool no_mmap; /* read files into memory instead of mapping them */
    bool mlock;   /* keep mapped pages in memory while loading, and those of weights that are read in place as long as
                     the model; a warning where the system refuses */
} sotto_whisper_model_options;

SOTTO_API void sotto_whisper_model_options_default(sotto_whisper_model_options *options);

/* Open a model of any format of model.h. The file need not be trusted; weights may be read in place where it is mapped, so it
 * is not to be changed before the model is freed. options may be NULL.
 * Returns SOTTO_E_NOT_FOUND, SOTTO_E_IO, SOTTO_E_FORMAT, SOTTO_E_UNSUPPORTED, SOTTO_E_MEMORY, SOTTO_E_DEVICE. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_model_open(const char *path,
                                                                const sotto_whisper_model_options *options,
                                                                sotto_whisper_model **out, sotto_error *err);
/* From memory, which is not needed after the call. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_model_open_memory(const void *data, size_t size,
                                                                       const sotto_whisper_model_options *options,
                                                                       sotto_whisper_model **out, sotto_error *err);
/* From a stream: read() fills up to n bytes and returns how many, 0 at the end, negative on error. */
typedef struct sotto_reader {
    int64_t (*read)(void *user, void *buffer, size_t n);
    void *user;
} sotto_reader;
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_model_open_reader(const sotto_reader *reader,
                                                                       const sotto_whisper_model_options *options,
                                                                       sotto_whisper_model **out, sotto_error *err);
/* The model must outlive its sessions. */
SOTTO_API void sotto_whisper_model_free(sotto_whisper_model *model);

typedef struct sotto_whisper_model_info {
    const char *format; /* "ggml", "gguf", "ctranslate2", "safetensors" */
    const char *size;   /* "tiny" ... "large-v3-turbo", or "custom" */
    bool multilingual;
    int n_vocab, n_mels, n_audio_ctx, n_audio_state, n_audio_head, n_audio_layer;
    int n_text_ctx, n_text_state, n_text_head, n_text_layer;
    int n_languages;
    uint64_t weight_bytes; /* resident */
    uint64_t step_bytes;   /* of weights that a step of the decoder multiplies by: all that it has to read of them */
    const char *compute;   /* "f32", "bf16" or "int8" */
} sotto_whisper_model_info;
SOTTO_API void sotto_whisper_model_get_info(const sotto_whisper_model *model, sotto_whisper_model_info *out);

/* ---- tokens and languages ---- */

/* Token ids of a text (no special tokens are recognised in it). *count gets the number of ids, also when it exceeds cap,
 * in which case only cap are written; cap 0 counts. Invalid UTF-8 is taken as its repaired form. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_tokenize(const sotto_whisper_model *model, const char *text,
                                                              int32_t *ids, int64_t cap, int64_t *count,
                                                              sotto_error *err);
/* Bytes of one token (parts of a character are possible); valid as long as the model. "" for ids out of range. */
SOTTO_API const char *sotto_whisper_token_bytes(const sotto_whisper_model *model, int32_t id, size_t *length);
/* Codes as in the original ("en", "zh", ..., "yue"): 0 <= index < n_languages of the model; NULL outside. */
SOTTO_API const char *sotto_language_code(int index);
SOTTO_API const char *sotto_language_name(int index); /* "english", ... */
/* Index of a code or an English name, case ignored; -1 when unknown. */
SOTTO_API int sotto_language_find(const char *text);

/* ---- options ---- */

typedef struct sotto_whisper_segment sotto_whisper_segment;

typedef enum sotto_whisper_task { SOTTO_TRANSCRIBE = 0, SOTTO_TRANSLATE = 1 } sotto_whisper_task;

/* What the encoder computes of the padding that fills a window up behind its sound. Whole, as in the original: all positions.
 * Thin: those of the first 4 s, then every eighth, at its place, which the decoder sees in place of the seven behind it as well. The
 * shorter a window, the more that saves: of half a window a third of the encoder's time. Few words differ (docs/quality.md). */
typedef enum sotto_padding {
    SOTTO_PADDING_AUTO = 0, /* thin with batch above 1, whose chunks are 18 s on average, else whole */
    SOTTO_PADDING_WHOLE = 1,
    SOTTO_PADDING_THIN = 2
} sotto_padding;

typedef struct sotto_whisper_options {
    size_t size; /* of this struct, set by _default */

    const char *language; /* NULL, "" or "auto": detect (English-only models: en); else code or name */
    sotto_whisper_task task;
    bool timestamps; /* false: one segment a window, with the window's times. The last window is asked for text only; those
                        before it still need timestamps, to go on without losing a word. Default true */

    /* Window: nothing outside [offset, offset + duration) is heard. Seconds; duration 0 = to the end. */
    double offset, duration;
    int audio_ctx;         /* encoder positions, 1 .. n_audio_ctx; 0 = all. Windows are then as much shorter */
    sotto_padding padding; /* Default SOTTO_PADDING_AUTO */

    /* Decoding */
    int beam_size;         /* 0 or 1: greedy at temperature 0; up to 16. Default 5 */
    int best_of;           /* candidates when sampling, 1 .. 16. Default 5 */
    float patience;        /* beam search goes on until round(beam_size * patience) are finished. Default 1 */
    float length_penalty;  /* alpha of Google NMT's penalty; negative = divide by the length. Default -1 */
    float temperature;     /* first of the ladder, 0 .. 2. Default 0 */
    float temperature_inc; /* step up to 1.0 on failure, 0.01 .. 2; 0 = no fallback. Default 0.2 */
    uint64_t seed;         /* same seed, same text. Default 0 */
    float compression_ratio_threshold; /* fail above; NAN = off. Default 2.4 */
    float logprob_threshold;           /* fail below; NAN = off. Default -1 */
    float no_speech_threshold;         /* skip the window above (when logprob also fails); NAN = off. Default 0.6 */
    int max_tokens;           /* text tokens of a segment, 0 = no limit; longer ones are split and share their time */
    bool suppress_blank;      /* Default true */
    bool suppress_non_speech; /* the original's list of symbols. Default true */
    const int32_t *suppress_tokens; /* more ids; n_suppress_tokens of them; copied */
    int n_suppress_tokens;
    float max_initial_timestamp; /* seconds, up to 30; negative = off. Default 1.0 */
    /* A grammar that the text of each window is to follow, with the space that texts begin with; timestamps are no part of it.
     * Tokens that leave it, an end where it must go on, and timestamps inside a word lose grammar_penalty from their logits. A
     * warning tells of windows whose text does not follow all the same, or to which the grammar left little of what the
     * network expected: something else was said. NULL = none; must outlive the recording. */
    const sotto_grammar *grammar;
    float grammar_penalty; /* 0 .. 1e6. Default 100 */

    /* Context */
    const char *initial_prompt;      /* NULL = none; its last n_text_ctx / 2 - 1 tokens are used */
    bool carry_initial_prompt;       /* before every window, not only the first */
    bool condition_on_previous_text; /* Default true; dropped after a window decoded above temperature 0.5 */
    /* A window whose text leaves out 3 s of voice is decoded once more without the text before it, 2 s of voice behind the end
     * of a text are heard in another window, and a window that would begin behind the first word of a sentence begins in the
     * pause before it; false: as the text says, as in the original and with a grammar. Default true */
    bool recover_missed;
    int max_context; /* tokens of previous text, negative = n_text_ctx / 2 - 1 */

    /* Speech only: what voice activity detection finds no speech in is not decoded, and windows begin and end in pauses.
     * Times are those of the recording all the same. NULL = off; the model must outlive the session. */
    const sotto_vad_model *vad;
    sotto_vad_options vad_options;

    /* Several windows at once: the recording is cut into chunks of at most a window, in pauses found by `vad` or else at the
     * most silent place of the window's last third, and this many are decoded together, which reads the weights once for all
     * of them. 1 .. 32; 1 = one window after another; 0 = as many as suit the machine: 8 on accelerators and with 8 threads,
     * 4 with 4, else 1, and fewer where a quarter of the free memory does not hold their caches. Default 1. Every option acts as ever,
     * but a chunk is a recording of its own: prompts, previous text and thresholds act inside it, random numbers begin anew,
     * and a language that is not given is detected in the first chunk, for all. Every run gives the same text; another number
     * may round differently. Caches take memory for each window, and each has a thread that mostly waits. */
    int batch;

    /* Callbacks, from the calling thread; all may be NULL. */
    void (*on_segment)(void *user, const sotto_whisper_segment *segment);       /* valid during the call */
    void (*on_progress)(void *user, double seconds_done, double seconds_total); /* total 0 while unknown */
    bool (*abort)(void *user); /* true: the run ends with SOTTO_E_ABORTED within 100 ms */
    void *user;
    sotto_logger logger;
    void (*trace)(void *user, const sotto_trace_node *node); /* every node that ran */
    void *trace_user;
    void (*trace_split)(void *user,
                        const sotto_trace_split *split); /* every run of nodes on one device; trace_user too */
} sotto_whisper_options;

SOTTO_API void sotto_whisper_options_default(sotto_whisper_options *options);

/* ---- session ---- */

typedef struct sotto_whisper_session_options {
    size_t size;
    int n_threads;         /* 0 = as the model's backend */
    const char *cpu_level; /* NULL = as the model's backend */
    int max_sequences;     /* beams or candidates the caches are made for, 1 .. 16. Default 5 */
    /* Numbers that keys and values are kept in, those of the decoder's own tokens and those of the window alike: "f32", "f16",
     * "bf16" or "q8_0" (8 bits with a scale for each 32). NULL or "auto": f16 under f32 and f16, bf16 under bf16, and under int8
     * what the device prefers (sotto_backend_preferred_caches) where heads are whole blocks of it, else bf16. */
    const char *cache_k, *cache_v;
} sotto_whisper_session_options;
SOTTO_API void sotto_whisper_session_options_default(sotto_whisper_session_options *options);

SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_session_create(const sotto_whisper_model *model,
                                                                    const sotto_whisper_session_options *options,
                                                                    sotto_whisper_session **out, sotto_error *err);
SOTTO_API void sotto_whisper_session_free(sotto_whisper_session *session);

/* One whole recording in memory: begin, feed, finish in one call. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_transcribe(sotto_whisper_session *session, const float *pcm,
                                                                int64_t n_samples, const sotto_whisper_options *options,
                                                                sotto_error *err);
/* A recording in pieces. begin() checks the options (SOTTO_E_ARGUMENT names the field) and forgets the last recording.
 * feed() takes any number of samples; once `lookahead` seconds beyond the current window are there (sotto_whisper_lookahead,
 * default 0) it decodes, calling on_segment. finish() decodes the rest. Memory is bounded by window + lookahead.
 * The loudest frame heard so far sets the floor of the log-mel (the original takes the whole recording's): with the
 * whole recording inside the lookahead the result is the original's. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_begin(sotto_whisper_session *session,
                                                           const sotto_whisper_options *options, sotto_error *err);
SOTTO_API void sotto_whisper_set_lookahead(sotto_whisper_session *session, double seconds);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_feed(sotto_whisper_session *session, const float *pcm,
                                                          int64_t n_samples, sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_finish(sotto_whisper_session *session, sotto_error *err);

/* Probabilities of all languages for the first window of pcm (up to 30 s are used); out has n_languages entries.
 * SOTTO_E_UNSUPPORTED for English-only models. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_detect_language(sotto_whisper_session *session, const float *pcm,
                                                                     int64_t n_samples, float *out, int *best,
                                                                     sotto_error *err);
/* Take the encoder's output [n_audio_ctx, n_audio_state] from outside for the next window instead of running the encoder
 * (an app with its own accelerator); asked for each window: pcm is the window's log-mel [n_mels, 3000]. NULL = own encoder. */
SOTTO_API void sotto_whisper_set_encoder(sotto_whisper_session *session,
                                         sotto_status (*encode)(void *user, const float *log_mel, int n_mels,
                                                                int n_frames, float *out, sotto_error *err),
                                         void *user);

/* ---- results: of the current recording, valid until the next begin/transcribe or free ---- */

typedef struct sotto_whisper_token {
    int32_t id;
    float probability, logprob; /* under the model's filtered distribution at temperature 1 */
    double start, end;          /* the segment's times until word times exist */
    const char *bytes;          /* may be part of a character */
    size_t n_bytes;
} sotto_whisper_token;

struct sotto_whisper_segment {
    int64_t id; /* 0, 1, ... in the order of speech */
    double start, end;
    const char *text; /* as decoded, with its leading space; valid UTF-8; joined segments give the whole text */
    size_t n_text;
    const sotto_whisper_token *tokens; /* special tokens included */
    int64_t n_tokens;
    double seek; /* start of the window */
    float temperature, avg_logprob, compression_ratio, no_speech_probability;
    const char *language; /* code */
};

SOTTO_API int64_t sotto_whisper_segment_count(const sotto_whisper_session *session);
SOTTO_API const sotto_whisper_segment *sotto_whisper_segment_get(const sotto_whisper_session *session, int64_t index);
/* Given, or detected in the first window with text; NULL before that and when there was none. probability 1 when given. */
SOTTO_API const char *sotto_whisper_language(const sotto_whisper_session *session, float *probability);
SOTTO_API double sotto_whisper_duration(const sotto_whisper_session *session); /* seconds fed */

typedef struct sotto_whisper_timings {
    double load_s, mel_s, encode_s, decode_s, prompt_s, total_s; /* load_s is the model's */
    int64_t n_encode, n_decode, n_prompt;                        /* windows; steps; prompt passes */
    int64_t n_fallback;
    uint64_t weight_bytes, self_cache_bytes, cross_cache_bytes, mel_bytes, encode_bytes,
        decode_bytes; /* compute by graph */
} sotto_whisper_timings;
SOTTO_API void sotto_whisper_get_timings(const sotto_whisper_session *session, sotto_whisper_timings *out);

/* What the session needs on one device of its backend, counted from 0. SOTTO_E_NOT_FOUND behind the last. */
typedef struct sotto_whisper_memory {
    char device[32];
    uint64_t weights, caches, compute; /* weights are the model's, shared by its sessions */
    uint64_t in_place;                 /* weights besides, which are read where the file is mapped */
} sotto_whisper_memory;
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_get_memory(const sotto_whisper_session *session, int device,
                                                                sotto_whisper_memory *out, sotto_error *err);

/* How one of the session's graphs is divided among devices, as text (sotto_plan_describe); graphs as below. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_describe(const sotto_whisper_session *session, const char *graph,
                                                              void (*write)(void *user, const char *text, size_t n),
                                                              void *user, sotto_error *err);
/* One of the session's graphs, "mel", "encode" or "decode" (a step of all sequences), in Graphviz's language. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_whisper_write_dot(const sotto_whisper_session *session, const char *graph,
                                                               void (*write)(void *user, const char *text, size_t n),
                                                               void *user, sotto_error *err);

#ifdef __cplusplus
}
#endif
#endif
