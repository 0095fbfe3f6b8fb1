/* llama.h: text generation with models of the LLaMA family, from GGUF files.
 *
 * A sotto_llama_model never changes after loading: share it between threads. A sotto_llama_session holds the keys and values
 * of a number of sequences and belongs to one thread at a time. A sequence is a run of tokens at positions 0, 1, ...;
 * each call of sotto_llama_decode() appends rows to sequences and gives the logits that were asked for. The same calls give
 * the same bits on the same device with the same options.
 * Architectures: llama (SmolLM2, TinyLlama, Mistral, Llama 1 to 3), qwen2, qwen3, gemma3, phi3.
 * Source: H. Touvron et al., "LLaMA: Open and Efficient Foundation Language Models", 2023, and the models' own papers;
 * numbers follow llama.cpp, whose files these are. */
#ifndef SOTTO_LLAMA_H
#define SOTTO_LLAMA_H

#include "backend.h"
#include "model.h"
#include "sampler.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sotto_llama_model sotto_llama_model;
typedef struct sotto_llama_session sotto_llama_session;

/* ---- model ---- */

typedef struct sotto_llama_model_options {
    size_t size; /* of this struct, set by _default; lets it grow */
    sotto_backend_options backend;
    /* In which numbers products are computed:
     *   "f32"   weights of any type expanded exactly, activations in f32
     *   "f16"   operands rounded to f16 where the device has matrix units for it
     *   "int8"  block types as they are, met by activations of 8 bits with a scale for each 32; f16 and bf16 weights as in bf16
     * NULL or "auto": what the device prefers. */
    const char *compute;
    bool no_mmap; /* read the file into memory instead of mapping it */
    bool mlock;   /* keep mapped pages in memory while loading, and those of weights that are read in place as long as
                     the model; a warning where the system refuses */
    /* Only count: weights are declared and not loaded, and sessions take no memory for caches. */
    bool measure_only;
} sotto_llama_model_options;

SOTTO_API void sotto_llama_model_options_default(sotto_llama_model_options *options);

/* Open a GGUF file (of a split file the first part). The file need not be trusted. options may be NULL.
 * Returns SOTTO_E_NOT_FOUND, SOTTO_E_IO, SOTTO_E_FORMAT (with the tensor or key and what was expected),
 * SOTTO_E_UNSUPPORTED (an unknown architecture or tokenizer), SOTTO_E_MEMORY, SOTTO_E_DEVICE. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_model_open(const char *path, const sotto_llama_model_options *options,
                                                              sotto_llama_model **out, sotto_error *err);
/* From a file that is open already and need not stay so: the model keeps what it reads in place. The file on disk is not to be
 * changed before the model is freed (no_mmap reads it into memory instead). */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_model_load(const sotto_model_file *file,
                                                              const sotto_llama_model_options *options,
                                                              sotto_llama_model **out, sotto_error *err);
/* The model must outlive its sessions. */
SOTTO_API void sotto_llama_model_free(sotto_llama_model *model);

typedef struct sotto_llama_model_info {
    const char *architecture; /* "llama", "qwen2", ... */
    const char *name;         /* general.name, "" when there is none */
    const char *tokenizer;    /* "gpt2", "llama" or "t5" */
    const char *chat_format;  /* "chatml", ...; NULL: no template, or an unknown one */
    int n_vocab, n_ctx_train, n_embd, n_layer, n_head, n_head_kv, n_ff, d_head;
    int sliding_window; /* positions that layers with a window see; 0 = none */
    int64_t n_params;
    uint64_t weight_bytes; /* resident */
    const char *compute;   /* "f32", "f16" or "int8" */
    double load_seconds;
} sotto_llama_model_info;
SOTTO_API void sotto_llama_model_get_info(const sotto_llama_model *model, sotto_llama_model_info *out);
/* Its devices; valid as long as the model. */
SOTTO_API const sotto_backend *sotto_llama_model_backend(const sotto_llama_model *model);

/* ---- tokens ---- */

enum {
    SOTTO_TOKENIZE_ADD_SPECIAL = 1,  /* begin and end tokens as the model wants them */
    SOTTO_TOKENIZE_PARSE_SPECIAL = 2 /* texts of control tokens ("<|im_start|>") become these tokens */
};

/* Token ids of n bytes of text. *count gets the number of ids, also when it exceeds cap, in which case only cap are written;
 * cap 0 counts. Invalid UTF-8 is taken as its repaired form. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_tokenize(const sotto_llama_model *model, const char *text, size_t n,
                                                            unsigned flags, int32_t *ids, int64_t cap, int64_t *count,
                                                            sotto_error *err);
/* Bytes that a token adds to a text (parts of a character are possible); control tokens add none unless `special`. Valid as
 * long as the model; "" for ids out of range. */
SOTTO_API const char *sotto_llama_token_bytes(const sotto_llama_model *model, int32_t id, bool special, size_t *n);
/* True for tokens after which nothing is to be generated. */
SOTTO_API bool sotto_llama_token_ends(const sotto_llama_model *model, int32_t id);
typedef enum sotto_llama_token {
    SOTTO_LLAMA_TOKEN_BEGIN,
    SOTTO_LLAMA_TOKEN_END,
    SOTTO_LLAMA_TOKEN_END_OF_TURN,
    SOTTO_LLAMA_TOKEN_UNKNOWN,
    SOTTO_LLAMA_TOKEN_PADDING,
    SOTTO_LLAMA_TOKEN_NEWLINE
} sotto_llama_token;
/* -1 when the model has none. */
SOTTO_API int32_t sotto_llama_token_find(const sotto_llama_model *model, sotto_llama_token which);

/* Tokens to text that can be shown at once: what is given is always whole, valid UTF-8 characters, and never the beginning of
 * a stop string, which is held back until it is clear. One thread at a time. */
typedef struct sotto_llama_text sotto_llama_text;
/* stop: n_stop texts at which the text ends, copied; may be NULL. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_text_create(const sotto_llama_model *model, const char *const *stop,
                                                               int n_stop, sotto_llama_text **out, sotto_error *err);
SOTTO_API void sotto_llama_text_free(sotto_llama_text *t);
/* What the token adds that can be shown now: *n bytes, valid until the next call. *stopped: a stop string has been met; it
 * and what follows are not shown. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_text_push(sotto_llama_text *t, int32_t token, const char **text,
                                                             size_t *n, bool *stopped, sotto_error *err);
/* The rest, and ready for another text. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_text_finish(sotto_llama_text *t, const char **text, size_t *n,
                                                               sotto_error *err);

typedef struct sotto_llama_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *content;
} sotto_llama_message;
/* Tokens of a conversation in the model's chat format, or in `format` ("chatml", "llama2", "llama3", "gemma", "mistral", "phi3",
 * "zephyr"; NULL: the model's). Content is never read as control tokens. `answer`: end with what begins an answer.
 * Counts as sotto_llama_tokenize() does. SOTTO_E_UNSUPPORTED when the model's template is none of the known ones. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_chat_tokenize(const sotto_llama_model *model, const char *format,
                                                                 const sotto_llama_message *messages, int n_messages,
                                                                 bool answer, int32_t *ids, int64_t cap, int64_t *count,
                                                                 sotto_error *err);

/* ---- session ---- */

typedef struct sotto_llama_session_options {
    size_t size;
    int n_ctx;                    /* positions that all sequences hold together; 0 = as trained, at most 4096 */
    int n_batch;                  /* rows computed at once; longer calls are cut. Default 512 */
    int n_seq;                    /* sequences, 1 .. 256. Default 1 */
    sotto_dtype cache_k, cache_v; /* SOTTO_F16 (default), SOTTO_F32, SOTTO_BF16 or SOTTO_Q8_0 */
    int n_threads;                /* 0 = the model's */
} sotto_llama_session_options;

SOTTO_API void sotto_llama_session_options_default(sotto_llama_session_options *options);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_session_create(const sotto_llama_model *model,
                                                                  const sotto_llama_session_options *options,
                                                                  sotto_llama_session **out, sotto_error *err);
SOTTO_API void sotto_llama_session_free(sotto_llama_session *session);

typedef struct sotto_llama_memory {
    uint64_t weights, cache, compute; /* bytes; compute: of the largest batch */
    uint64_t in_place;                /* weights besides, which are read where the file is mapped */
} sotto_llama_memory;
/* On device number `device` of the backend, or on all together: -1. Known before anything is allocated (measure_only). */
SOTTO_API void sotto_llama_get_memory(const sotto_llama_session *session, int device, sotto_llama_memory *out);
/* Used by every run from here on: abort, traces (backend.h). */
SOTTO_API void sotto_llama_set_run_options(sotto_llama_session *session, const sotto_run_options *run);
/* The graph for n_rows rows, 1 .. n_batch, the last of which gives logits, in Graphviz's language. Returns SOTTO_E_ARGUMENT,
 * SOTTO_E_MEMORY. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_write_dot(sotto_llama_session *session, int n_rows,
                                                             void (*write)(void *user, const char *text, size_t n),
                                                             void *user, sotto_error *err);

typedef struct sotto_llama_row {
    int32_t token;
    int32_t seq;
    bool logits; /* wanted for this row */
} sotto_llama_row;

/* Appends n rows, each at the end of its sequence, and computes them: rows of one sequence in the order given. When it fails
 * the sequences are as before. Returns SOTTO_E_ARGUMENT (token or sequence out of range), SOTTO_E_FULL when the context has no
 * room for them ("context full: ..."; nothing is dropped silently, see sotto_llama_seq_shift), SOTTO_E_ABORTED,
 * SOTTO_E_MEMORY, SOTTO_E_DEVICE. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_decode(sotto_llama_session *session, const sotto_llama_row *rows,
                                                          int n, sotto_error *err);
/* n tokens of one sequence; logits of the last. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_decode_tokens(sotto_llama_session *session, int32_t seq,
                                                                 const int32_t *tokens, int64_t n, sotto_error *err);
/* Logits [n_vocab] of the i-th row of the last call that wanted them; negative counts from the end. Valid until the next
 * call of decode. NULL when there are not so many. */
SOTTO_API const float *sotto_llama_logits(const sotto_llama_session *session, int i);

/* Tokens of a sequence so far, and which. */
SOTTO_API int64_t sotto_llama_seq_length(const sotto_llama_session *session, int32_t seq);
SOTTO_API const int32_t *sotto_llama_seq_tokens(const sotto_llama_session *session, int32_t seq);
/* Drops what is at position `length` and after. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_seq_truncate(sotto_llama_session *session, int32_t seq,
                                                                int64_t length, sotto_error *err);
/* dst becomes the first `length` tokens of src (-1: all); both share what they have in common, nothing is computed. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_seq_copy(sotto_llama_session *session, int32_t dst, int32_t src,
                                                            int64_t length, sotto_error *err);
/* Makes room: the first `keep` tokens stay, the `drop` after them go, and the rest move to lower positions (their keys are
 * rotated; as in llama.cpp the result is not what a new run over the remaining tokens would give). Returns SOTTO_E_FULL, and
 * changes nothing, when what moves is shared with other sequences and there is no room for copies. When it is aborted or the
 * device fails, only the first `keep` tokens are left. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_seq_shift(sotto_llama_session *session, int32_t seq, int64_t keep,
                                                             int64_t drop, sotto_error *err);

/* One sequence with its keys and values, written to a temporary name and renamed; checksummed. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_state_save(sotto_llama_session *session, int32_t seq,
                                                              const char *path, sotto_error *err);
/* Replaces a sequence. SOTTO_E_FORMAT when the file is damaged, of another version, of another model or of another type of
 * cache, SOTTO_E_FULL when the context has no room for it; then the sequence is empty. Files need not be trusted. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_state_load(sotto_llama_session *session, int32_t seq,
                                                              const char *path, sotto_error *err);

/* A sampler for the model: options as in sampler.h, whose token functions are filled in. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_sampler_create(const sotto_llama_model *model,
                                                                  const sotto_sampler_options *options,
                                                                  sotto_sampler **out, sotto_error *err);

/* Sums of squares of what meets each matrix, for importance matrices: called for every product of a batch while set, with
 * the name of the weight in the file and rows [n, width] of its input. Runs are slower. NULL ends it. */
typedef void (*sotto_llama_observer)(void *user, const char *weight, const float *rows, int64_t n, int64_t width);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_llama_observe(sotto_llama_session *session, sotto_llama_observer observer,
                                                           void *user, sotto_error *err);

#ifdef __cplusplus
}
#endif
#endif
