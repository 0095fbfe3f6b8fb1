#include "llama_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "formats/gguf.h"
#include "sotto/quant.h"
#include "tokenizer_support.h"

enum { Q = TOY_EMBD, KV = TOY_EMBD / TOY_HEADS * TOY_HEADS_KV, D = TOY_EMBD / TOY_HEADS };

enum { PLAIN = 1, BIAS = 2, HEAD_NORM = 4, POST_NORM = 8, FUSED = 16 };

static const struct {
    const char *name;
    int64_t dim[2]; /* innermost first; second 0: a vector */
    int when;       /* 0: in every architecture */
} tensors[] = {
    {"token_embd.weight", {TOY_EMBD, TOY_VOCAB}, 0},
    {"output_norm.weight", {TOY_EMBD, 0}, 0},
    {"output.weight", {TOY_EMBD, TOY_VOCAB}, 0},
    {"blk.0.attn_norm.weight", {TOY_EMBD, 0}, 0},
    {"blk.0.attn_q.weight", {TOY_EMBD, Q}, PLAIN},
    {"blk.0.attn_k.weight", {TOY_EMBD, KV}, PLAIN},
    {"blk.0.attn_v.weight", {TOY_EMBD, KV}, PLAIN},
    {"blk.0.attn_q.bias", {Q, 0}, BIAS},
    {"blk.0.attn_k.bias", {KV, 0}, BIAS},
    {"blk.0.attn_v.bias", {KV, 0}, BIAS},
    {"blk.0.attn_qkv.weight", {TOY_EMBD, Q + 2 * KV}, FUSED},
    {"blk.0.attn_q_norm.weight", {D, 0}, HEAD_NORM},
    {"blk.0.attn_k_norm.weight", {D, 0}, HEAD_NORM},
    {"blk.0.attn_output.weight", {Q, TOY_EMBD}, 0},
    {"blk.0.post_attention_norm.weight", {TOY_EMBD, 0}, POST_NORM},
    {"blk.0.ffn_norm.weight", {TOY_EMBD, 0}, 0},
    {"blk.0.ffn_gate.weight", {TOY_EMBD, TOY_FF}, PLAIN},
    {"blk.0.ffn_up.weight", {TOY_EMBD, TOY_FF}, PLAIN},
    {"blk.0.ffn_up.weight", {TOY_EMBD, 2 * TOY_FF}, FUSED},
    {"blk.0.ffn_down.weight", {TOY_FF, TOY_EMBD}, 0},
    {"blk.0.post_ffw_norm.weight", {TOY_EMBD, 0}, POST_NORM},
};

enum { N_TENSORS = sizeof tensors / sizeof *tensors };

static const struct {
    const char *arch;
    int has;
} archs[] = {{"llama", PLAIN},
             {"qwen2", PLAIN | BIAS},
             {"qwen3", PLAIN | HEAD_NORM},
             {"gemma3", PLAIN | HEAD_NORM | POST_NORM},
             {"phi3", FUSED}};

static const struct {
    const char *key;
    int value;
} sizes[] = {
    {"context_length", TOY_CTX},     {"embedding_length", TOY_EMBD},      {"block_count", 1},
    {"feed_forward_length", TOY_FF}, {"attention.head_count", TOY_HEADS}, {"attention.head_count_kv", TOY_HEADS_KV}};

static int has_of(const char *arch)
{
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
        if (strcmp(archs[i].arch, arch) == 0)
            return archs[i].has;
    return PLAIN;
}

const char *toy_tensor(const char *arch, int i)
{
    for (int t = 0; t < N_TENSORS; t++)
        if ((tensors[t].when == 0 || (tensors[t].when & has_of(arch))) && i-- == 0)
            return tensors[t].name;
    return NULL;
}

static bool is_left_out(const toy_recipe *r, const char *name)
{
    return (r->without && strcmp(r->without, name) == 0) || (r->tied && strcmp(name, "output.weight") == 0);
}

static void float_key(meta_file *m, const char *key, double value)
{
    blob_text(&m->body, key, 8);
    blob_number(&m->body, ST_GGUF_F32, 4);
    blob_f32(&m->body, (float)value);
    m->n++;
}

static void number(meta_file *m, const toy_recipe *r, const char *key, double value, bool is_float, bool *given)
{
    char full[128];
    snprintf(full, sizeof full, "%s.%s", r->arch ? r->arch : "llama", key);
    if (is_left_out(r, key) || (r->text_key && strcmp(r->text_key, key) == 0))
        return;
    if (r->key && strcmp(r->key, key) == 0) {
        value = r->value;
        *given = true;
    }
    if (is_float)
        float_key(m, full, value);
    else
        meta_int(m, full, (int64_t)value);
}

static void tokens(meta_file *m, int n)
{
    static char bytes[256][8];
    static const char *all[TOY_VOCAB + 8] = {"<unk>", "<s>", "</s>"};
    static float scores[TOY_VOCAB + 8];
    static int32_t kinds[TOY_VOCAB + 8] = {2, 3, 3};
    for (int i = 0; i < 256; i++) {
        snprintf(bytes[i], sizeof bytes[i], "<0x%02X>", (unsigned)i);
        all[3 + i] = bytes[i];
        kinds[3 + i] = 6;
    }
    for (int i = 259; i < n; i++) {
        static const char *const more[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
        all[i] = more[i - 259];
        kinds[i] = 1;
    }
    meta_string(m, "tokenizer.ggml.model", "llama");
    meta_strings(m, "tokenizer.ggml.tokens", all, n);
    meta_floats(m, "tokenizer.ggml.scores", scores, n);
    meta_ints(m, "tokenizer.ggml.token_type", kinds, n);
    meta_int(m, "tokenizer.ggml.bos_token_id", 1);
    meta_int(m, "tokenizer.ggml.eos_token_id", 2);
}

static void metadata(meta_file *m, const toy_recipe *r)
{
    bool given = r->key == NULL;
    if (!is_left_out(r, "general.architecture"))
        meta_string(m, "general.architecture", r->arch ? r->arch : "llama");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        number(m, r, sizes[i].key, sizes[i].value, false, &given);
    number(m, r, "attention.layer_norm_rms_epsilon", 1e-5, true, &given);
    if (!given) {
        const bool is_float = strstr(r->key, "rope.freq") || strstr(r->key, "factor") || strstr(r->key, "softcapping");
        number(m, r, r->key, r->value, is_float, &given);
    }
    if (r->text_key) {
        char full[128];
        snprintf(full, sizeof full, "%s.%s", r->arch ? r->arch : "llama", r->text_key);
        meta_string(m, full, r->text);
    }
    tokens(m, r->n_tokens ? r->n_tokens : TOY_VOCAB);
}

typedef struct placed {
    const char *name;
    int64_t dim[2];
    int n_dims;
    sotto_dtype dtype;
    uint64_t offset;
} placed;

static int64_t count_of(const placed *p)
{
    return p->dim[0] * (p->n_dims > 1 ? p->dim[1] : 1);
}

static int place(const toy_recipe *r, placed *out)
{
    const int has = has_of(r->arch ? r->arch : "llama");
    uint64_t offset = 0;
    int n = 0;
    for (int i = 0; i < N_TENSORS; i++) {
        if ((tensors[i].when != 0 && !(tensors[i].when & has)) || is_left_out(r, tensors[i].name))
            continue;
        placed p = {.name = tensors[i].name, .n_dims = tensors[i].dim[1] ? 2 : 1, .offset = offset};
        memcpy(p.dim, tensors[i].dim, sizeof p.dim);
        if (r->tensor && strcmp(r->tensor, p.name) == 0) {
            memcpy(p.dim, r->dim, sizeof p.dim);
            p.n_dims = r->dim[1] ? 2 : 1;
        }
        p.dtype = r->half && strcmp(r->half, p.name) == 0 ? SOTTO_F16 : SOTTO_F32;
        offset += ((uint64_t)count_of(&p) * sotto_dtype_bytes(p.dtype) + 31) / 32 * 32;
        out[n++] = p;
    }
    return n;
}

blob toy_file(const toy_recipe *r)
{
    placed list[N_TENSORS];
    meta_file m = {0};
    blob b = {0};
    const int n = place(r, list);
    metadata(&m, r);
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, (uint64_t)n, 8);
    blob_number(&b, m.n, 8);
    blob_bytes(&b, m.body.data, m.body.n);
    blob_free(&m.body);
    for (int i = 0; i < n; i++) {
        blob_text(&b, list[i].name, 8);
        blob_number(&b, (uint64_t)list[i].n_dims, 4);
        for (int a = 0; a < list[i].n_dims; a++)
            blob_number(&b, (uint64_t)list[i].dim[a], 8);
        blob_number(&b, (uint64_t)list[i].dtype, 4);
        blob_number(&b, list[i].offset, 8);
    }
    for (int i = 0; i < n; i++) {
        while (b.n % 32 != 0)
            blob_number(&b, 0, 1);
        for (int64_t k = 0; k < count_of(&list[i]); k++) {
            const float value = (float)((k * 37 + k / 13 * 5 + i * 11) % 127 - 63) / 256;
            uint16_t half;
            (void)sotto_row_from_f32(SOTTO_F16, &value, &half, 1);
            if (list[i].dtype == SOTTO_F16)
                blob_number(&b, half, 2);
            else
                blob_f32(&b, list[i].n_dims == 1 ? 1 + value : value);
        }
    }
    while (b.n % 32 != 0)
        blob_number(&b, 0, 1);
    return b;
}

sotto_status toy_load(const toy_recipe *r, sotto_llama_model **out, sotto_error *err)
{
    blob b = toy_file(r);
    sotto_model_file *file;
    *out = NULL;
    sotto_status status = sotto_model_file_open_memory(b.data, b.n, "toy", &file, err);
    if (status == SOTTO_OK) {
        sotto_llama_model_options o;
        sotto_llama_model_options_default(&o);
        o.backend.device = "cpu";
        o.backend.n_threads = 1;
        o.compute = "f32";
        status = sotto_llama_model_load(file, &o, out, err);
        sotto_model_file_free(file);
    }
    blob_free(&b);
    return status;
}

sotto_llama_model *toy_must_load(const toy_recipe *r)
{
    sotto_llama_model *m;
    sotto_error err = {0};
    if (toy_load(r, &m, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return m;
}
