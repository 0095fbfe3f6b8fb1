/* tokenizer.c: creating, asking, and cutting a text at its control tokens. What is between them is encoded by the type. */
#include "models/common/tokenizer.h"

#include <string.h>

#include "models/common/tokenizer_impl.h"

static const st_tok_type *const types[] = {&st_tok_gpt2, &st_tok_llama, &st_tok_t5};

static sotto_status choose_type(const sotto_model_file *file, const st_tok_type **out, sotto_error *err)
{
    const char *key = "tokenizer.ggml.model", *name;
    size_t n;
    *out = NULL;
    const sotto_status status = sotto_meta_string(file, key, &name, &n, err);
    if (status == SOTTO_E_NOT_FOUND)
        return st_fail(err, SOTTO_E_FORMAT, "%s is missing: the file has no tokenizer", key);
    ST_TRY(status);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strlen(types[i]->name) == n && memcmp(types[i]->name, name, n) == 0)
            *out = types[i];
    if (*out)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "%s is \"%.*s\", expected gpt2, llama or t5", key, (int)(n < 60 ? n : 60),
                   name);
}

sotto_status st_tokenizer_create(const sotto_model_file *file, st_tokenizer **out, sotto_error *err)
{
    const st_tok_type *type;
    *out = NULL;
    ST_TRY(choose_type(file, &type, err));
    st_tokenizer *t = st_calloc(1, sizeof *t);
    if (!t)
        return st_fail_memory(err, sizeof *t, "the tokenizer");
    t->type = type;
    for (int i = 0; i < ST_N_IDS; i++)
        t->id[i] = -1;
    t->id[ST_ID_BOS] = type->bos;
    t->id[ST_ID_EOS] = type->eos;
    t->id[ST_ID_UNK] = type->unk;
    t->id[ST_ID_PAD] = type->pad;
    t->add_bos = type->add_bos;
    t->add_eos = type->add_eos;
    t->add_space_prefix = type->add_space_prefix;
    const sotto_status status = st_tok_load(t, file, err);
    if (status != SOTTO_OK) {
        st_tokenizer_free(t);
        return status;
    }
    *out = t;
    return SOTTO_OK;
}

void st_tokenizer_free(st_tokenizer *t)
{
    if (!t)
        return;
    t->type->free(t->data);
    st_tok_table_free(&t->spelling);
    st_free(t->blob);
    st_free(t->offset);
    st_free(t->flags);
    st_free(t->score);
    st_free(t->bytes);
    st_free(t->bytes_offset);
    st_free(t->classes);
    st_free(t);
}

const char *st_tokenizer_kind(const st_tokenizer *t)
{
    return t->type->name;
}

const char *st_tokenizer_warning(const st_tokenizer *t)
{
    return t->warning[0] ? t->warning : NULL;
}

st_token_ids st_tokenizer_ids(const st_tokenizer *t)
{
    return (st_token_ids){
        .bos = t->id[ST_ID_BOS],
        .eos = t->id[ST_ID_EOS],
        .eot = t->id[ST_ID_EOT],
        .unk = t->id[ST_ID_UNK],
        .pad = t->id[ST_ID_PAD],
        .newline = t->newline >= 0 ? t->newline : t->id[ST_ID_PAD],
        .add_bos = t->add_bos,
        .add_eos = t->add_eos,
        .add_space_prefix = t->add_space_prefix,
    };
}

int32_t st_tokenizer_size(const st_tokenizer *t)
{
    return t->spelling.n;
}

bool st_tokenizer_ends(const st_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->spelling.n && t->flags[id] & ST_TOK_ENDS;
}

const char *st_tokenizer_bytes(const st_tokenizer *t, int32_t id, bool special, size_t *n)
{
    *n = 0;
    if (id < 0 || id >= t->spelling.n || (!special && t->flags[id] & ST_TOK_HIDDEN))
        return "";
    *n = t->bytes_offset[id + 1] - t->bytes_offset[id] - 1;
    return t->bytes + t->bytes_offset[id];
}

int32_t st_tokenizer_find(const st_tokenizer *t, const char *spelling, size_t n)
{
    return st_tok_table_find(&t->spelling, spelling, n);
}

void st_tok_scratch_free(st_tok_scratch *s)
{
    st_merge_free(&s->merge);
    st_pieces_free(&s->pieces);
    st_free(s->buffer);
    st_free(s->spelled);
    st_free(s->steps);
}

static sotto_status encode_fragments(const st_tokenizer *t, const char *text, const st_fragments *fragments,
                                     bool add_special, const st_id_list *out, sotto_error *err)
{
    st_tok_scratch s = {0};
    const int32_t begin = add_special && t->add_bos ? t->id[ST_ID_BOS] : -1;
    const int32_t end = add_special && t->add_eos ? t->id[ST_ID_EOS] : -1;
    bool first = true, memory = begin < 0 || st_id_add(out, begin);
    sotto_status status = SOTTO_OK;
    for (int64_t i = 0; i < fragments->n && memory && status == SOTTO_OK; i++) {
        const st_fragment *f = &fragments->at[i];
        if (f->id >= 0)
            memory = st_id_add(out, f->id);
        else
            status = t->type->encode(t, &s, text + f->begin, f->end - f->begin, first, out, err);
        first = f->id >= 0;
    }
    if (memory && status == SOTTO_OK)
        memory = end < 0 || st_id_add(out, end);
    st_tok_scratch_free(&s);
    if (!memory)
        return st_fail_memory(err, (uint64_t)*out->count * sizeof(int32_t), "the tokens of a text");
    return status;
}

sotto_status st_tokenizer_encode_framed(const st_tokenizer *t, const char *text, size_t n, const st_text_span *plain,
                                        int64_t n_plain, bool add_special, int32_t **ids, int64_t *capacity,
                                        int64_t *count, sotto_error *err)
{
    if (n > ST_TOK_MAX_TEXT)
        return st_fail(err, SOTTO_E_ARGUMENT, "a text of %zu bytes, at most %d can be encoded", n, ST_TOK_MAX_TEXT);
    const int64_t before = *count;
    const st_id_list out = {ids, capacity, count};
    st_fragments fragments = {0};
    sotto_status status;
    if (st_specials_find(t, text, n, plain, n_plain, &fragments))
        status = encode_fragments(t, text, &fragments, add_special, &out, err);
    else
        status = st_fail_memory(err, n, "the control tokens of a text");
    st_fragments_free(&fragments);
    if (status != SOTTO_OK)
        *count = before;
    return status;
}

sotto_status st_tokenizer_encode(const st_tokenizer *t, const char *text, size_t n, bool add_special,
                                 bool parse_special, int32_t **ids, int64_t *capacity, int64_t *count, sotto_error *err)
{
    const st_text_span all = {0, n};
    return st_tokenizer_encode_framed(t, text, n, &all, parse_special ? 0 : 1, add_special, ids, capacity, count, err);
}
