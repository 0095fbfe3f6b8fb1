/* api.c: models, tokens, text and chat of include/sotto/llama.h. */
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/model_error.h"
#include "models/common/sampler_impl.h"
#include "models/common/text_stream.h"
#include "models/llama/model_impl.h"

/* ---- model ---- */

void sotto_llama_model_options_default(sotto_llama_model_options *options)
{
    if (options)
        *options = (sotto_llama_model_options){.size = sizeof *options};
}

sotto_status sotto_llama_model_load(const sotto_model_file *file, const sotto_llama_model_options *options,
                                    sotto_llama_model **out, sotto_error *err)
{
    sotto_llama_model_options defaults;
    sotto_llama_model_options_default(&defaults);
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_model_load: out is NULL");
    *out = NULL;
    if (!file)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_model_load: file is NULL");
    if (options && options->size != sizeof *options)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_model_load: options->size is %zu, expected %zu",
                       options->size, sizeof *options);
    return st_llama_model_load(file, options ? options : &defaults, out, err);
}

sotto_status sotto_llama_model_open(const char *path, const sotto_llama_model_options *options, sotto_llama_model **out,
                                    sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_model_open: out is NULL");
    *out = NULL;
    if (!path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_model_open: path is NULL");
    sotto_model_file *file;
    sotto_model_file_options how = {0};
    if (options)
        how = (sotto_model_file_options){
            .no_mmap = options->no_mmap, .mlock = options->mlock, .logger = options->backend.logger};
    ST_TRY(sotto_model_file_open_with(path, &how, &file, err));
    const sotto_status status = sotto_llama_model_load(file, options, out, err);
    sotto_model_file_free(file);
    return st_fail_model(err, status, path);
}

void sotto_llama_model_get_info(const sotto_llama_model *model, sotto_llama_model_info *out)
{
    if (!out)
        return;
    *out = (sotto_llama_model_info){0};
    if (!model)
        return;
    const st_llama_hparams *h = &model->h;
    *out = (sotto_llama_model_info){
        .architecture = h->arch->name,
        .name = model->name,
        .tokenizer = st_tokenizer_kind(model->tokenizer),
        .chat_format = model->chat ? st_chat_name(model->chat) : NULL,
        .n_vocab = h->n_vocab,
        .n_ctx_train = h->n_ctx_train,
        .n_embd = h->n_embd,
        .n_layer = h->n_layer,
        .n_head = h->n_head,
        .n_head_kv = h->n_head_kv,
        .n_ff = h->n_ff,
        .d_head = h->d_head,
        .sliding_window = h->window,
        .n_params = model->n_params,
        .weight_bytes = sotto_store_bytes(model->store) + sotto_store_in_place_bytes(model->store, -1),
        .compute = model->compute == SOTTO_I8    ? "int8"
                   : model->compute == SOTTO_F16 ? "f16"
                                                 : "f32",
        .load_seconds = model->load_seconds,
    };
}

const sotto_backend *sotto_llama_model_backend(const sotto_llama_model *model)
{
    return model ? model->backend : NULL;
}

/* ---- tokens ---- */

/* Ids go to the caller as far as they fit. */
static sotto_status hand_over(sotto_status status, int32_t *found, int64_t n, int32_t *ids, int64_t cap, int64_t *count)
{
    if (status == SOTTO_OK) {
        if (n > 0 && cap > 0)
            memcpy(ids, found, (size_t)(n < cap ? n : cap) * sizeof *ids);
        *count = n;
    }
    st_free(found);
    return status;
}

sotto_status sotto_llama_tokenize(const sotto_llama_model *model, const char *text, size_t n, unsigned flags,
                                  int32_t *ids, int64_t cap, int64_t *count, sotto_error *err)
{
    if (!model || (!text && n > 0) || !count || cap < 0 || (!ids && cap > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_tokenize: a pointer is NULL, or cap is %lld", (long long)cap);
    *count = 0;
    int32_t *found = NULL;
    int64_t capacity = 0, n_found = 0;
    const sotto_status status =
        st_tokenizer_encode(model->tokenizer, text ? text : "", n, (flags & SOTTO_TOKENIZE_ADD_SPECIAL) != 0,
                            (flags & SOTTO_TOKENIZE_PARSE_SPECIAL) != 0, &found, &capacity, &n_found, err);
    return hand_over(status, found, n_found, ids, cap, count);
}

const char *sotto_llama_token_bytes(const sotto_llama_model *model, int32_t id, bool special, size_t *n)
{
    size_t length = 0;
    const char *bytes = model ? st_tokenizer_bytes(model->tokenizer, id, special, &length) : "";
    if (n)
        *n = length;
    return bytes;
}

bool sotto_llama_token_ends(const sotto_llama_model *model, int32_t id)
{
    return model && st_tokenizer_ends(model->tokenizer, id);
}

int32_t sotto_llama_token_find(const sotto_llama_model *model, sotto_llama_token which)
{
    if (!model)
        return -1;
    const st_token_ids t = st_tokenizer_ids(model->tokenizer);
    const int32_t ids[] = {
        [SOTTO_LLAMA_TOKEN_BEGIN] = t.bos,       [SOTTO_LLAMA_TOKEN_END] = t.eos,
        [SOTTO_LLAMA_TOKEN_END_OF_TURN] = t.eot, [SOTTO_LLAMA_TOKEN_UNKNOWN] = t.unk,
        [SOTTO_LLAMA_TOKEN_PADDING] = t.pad,     [SOTTO_LLAMA_TOKEN_NEWLINE] = t.newline,
    };
    return (unsigned)which < sizeof ids / sizeof *ids ? ids[which] : -1;
}

/* ---- text ---- */

struct sotto_llama_text {
    st_text_stream *stream;
};

sotto_status sotto_llama_text_create(const sotto_llama_model *model, const char *const *stop, int n_stop,
                                     sotto_llama_text **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_text_create: out is NULL");
    *out = NULL;
    if (!model || n_stop < 0 || (!stop && n_stop > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_text_create: a pointer is NULL, or n_stop is %d", n_stop);
    sotto_llama_text *t = st_calloc(1, sizeof *t);
    if (!t)
        return st_fail_memory(err, sizeof *t, "a text");
    const st_text_stream_options o = {.stop = stop, .n_stop = n_stop};
    const sotto_status status = st_text_stream_create(model->tokenizer, &o, &t->stream, err);
    if (status != SOTTO_OK) {
        st_free(t);
        return status;
    }
    *out = t;
    return SOTTO_OK;
}

void sotto_llama_text_free(sotto_llama_text *t)
{
    if (!t)
        return;
    st_text_stream_free(t->stream);
    st_free(t);
}

sotto_status sotto_llama_text_push(sotto_llama_text *t, int32_t token, const char **text, size_t *n, bool *stopped,
                                   sotto_error *err)
{
    if (!t || !text || !n)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_text_push: a pointer is NULL");
    const sotto_status status = st_text_stream_push(t->stream, token, text, n, err);
    if (stopped)
        *stopped = st_text_stream_stopped(t->stream) >= 0;
    return status;
}

sotto_status sotto_llama_text_finish(sotto_llama_text *t, const char **text, size_t *n, sotto_error *err)
{
    if (!t || !text || !n)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_text_finish: a pointer is NULL");
    return st_text_stream_finish(t->stream, text, n, err);
}

/* ---- chat ---- */

sotto_status sotto_llama_chat_tokenize(const sotto_llama_model *model, const char *format,
                                       const sotto_llama_message *messages, int n_messages, bool answer, int32_t *ids,
                                       int64_t cap, int64_t *count, sotto_error *err)
{
    if (!model || n_messages < 0 || (!messages && n_messages > 0) || !count || cap < 0 || (!ids && cap > 0))
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "sotto_llama_chat_tokenize: a pointer is NULL, n_messages is %d, or cap is %lld", n_messages,
                       (long long)cap);
    *count = 0;
    const st_chat_format *f = model->chat;
    if (format)
        ST_TRY(st_chat_choose(NULL, format, &f, err));
    if (!f)
        return st_fail(err, model->no_chat.code, "%s", model->no_chat.text);
    st_chat_message *list = st_alloc((size_t)n_messages + 1, sizeof *list);
    if (!list)
        return st_fail_memory(err, ((uint64_t)n_messages + 1) * sizeof *list, "messages");
    for (int i = 0; i < n_messages; i++)
        list[i] =
            (st_chat_message){messages[i].role ? messages[i].role : "", messages[i].content ? messages[i].content : ""};
    st_chat_text text = {0};
    int32_t *found = NULL;
    int64_t capacity = 0, n_found = 0;
    sotto_status status = st_chat_apply(f, list, n_messages, answer, &text, err);
    if (status == SOTTO_OK)
        status = st_tokenizer_encode_framed(model->tokenizer, text.text, (size_t)text.length, text.content,
                                            text.n_content, true, &found, &capacity, &n_found, err);
    st_chat_text_free(&text);
    st_free(list);
    return hand_over(status, found, n_found, ids, cap, count);
}

/* ---- sampling ---- */

static const char *grammar_bytes(void *user, int32_t id, size_t *n)
{
    return sotto_llama_token_bytes(user, id, false, n);
}

static bool grammar_ends(void *user, int32_t id)
{
    return sotto_llama_token_ends(user, id);
}

sotto_status sotto_llama_sampler_create(const sotto_llama_model *model, const sotto_sampler_options *options,
                                        sotto_sampler **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_sampler_create: out is NULL");
    *out = NULL;
    if (!model)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_llama_sampler_create: model is NULL");
    sotto_sampler_options o;
    sotto_sampler_options_default(&o);
    if (options)
        o = *options;
    o.token_bytes = grammar_bytes;
    o.token_ends = grammar_ends;
    o.token_user = (void *)(uintptr_t)model; /* only read */
    return st_sampler_create(model->h.n_vocab, &o, model->texts, out, err);
}
