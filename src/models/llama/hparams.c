#include "models/llama/hparams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const st_llama_arch archs[] = {
    {.name = "llama", .pairs = SOTTO_ROPE_NEIGHBOURS, .act = SOTTO_ACT_SILU, .whole_rotation = true},
    {.name = "qwen2", .pairs = SOTTO_ROPE_HALVES, .act = SOTTO_ACT_SILU, .bias = true, .whole_rotation = true},
    {.name = "qwen3", .pairs = SOTTO_ROPE_HALVES, .act = SOTTO_ACT_SILU, .head_norm = true, .whole_rotation = true},
    {.name = "gemma3",
     .pairs = SOTTO_ROPE_HALVES,
     .act = SOTTO_ACT_GELU_TANH,
     .head_norm = true,
     .post_norm = true,
     .scaled_embedding = true,
     .window_pattern = 6,
     .full_scale_layers = 62},
    {.name = "phi3", .pairs = SOTTO_ROPE_HALVES, .act = SOTTO_ACT_SILU, .fused_qkv = true, .fused_gate = true},
};

enum { N_ARCHS = sizeof archs / sizeof *archs, KEY_SIZE = 96 };

static const char *const scaling_names[] = {
    [ST_ROPE_NONE] = "none", [ST_ROPE_LINEAR] = "linear", [ST_ROPE_YARN] = "yarn", [ST_ROPE_LONGROPE] = "longrope"};

/* Upper bounds are far above any published model and keep every product of two sizes inside 63 bits. */
static const struct {
    const char *key;
    size_t offset;
    int64_t min, max;
    bool optional;
} fields[] = {
    {"context_length", offsetof(st_llama_hparams, n_ctx_train), 1, 1 << 28, false},
    {"embedding_length", offsetof(st_llama_hparams, n_embd), 8, 1 << 17, false},
    {"block_count", offsetof(st_llama_hparams, n_layer), 1, 512, false},
    {"feed_forward_length", offsetof(st_llama_hparams, n_ff), 8, 1 << 19, false},
    {"attention.head_count", offsetof(st_llama_hparams, n_head), 1, 1024, false},
    {"attention.head_count_kv", offsetof(st_llama_hparams, n_head_kv), 1, 1024, true},
    {"attention.key_length", offsetof(st_llama_hparams, d_head), 2, 1024, true},
    {"rope.dimension_count", offsetof(st_llama_hparams, n_rot), 2, 1024, true},
    {"attention.sliding_window", offsetof(st_llama_hparams, window), 0, 1 << 28, true},
    {"attention.sliding_window_pattern", offsetof(st_llama_hparams, window_pattern), 1, 512, true},
    {"rope.scaling.original_context_length", offsetof(st_llama_hparams, n_ctx_original), 1, 1 << 28, true},
};

static const struct {
    const char *key;
    size_t offset;
    double min, max;
    bool optional;
} numbers[] = {
    {"attention.layer_norm_rms_epsilon", offsetof(st_llama_hparams, eps), 0, 1, false},
    {"rope.freq_base", offsetof(st_llama_hparams, rope_base), 1, 1e12, true},
    {"rope.freq_base_swa", offsetof(st_llama_hparams, rope_base_window), 1, 1e12, true},
    {"rope.scaling.factor", offsetof(st_llama_hparams, scaling_factor), 1e-3, 1e6, true},
    {"rope.scale_linear", offsetof(st_llama_hparams, scaling_factor), 1e-3, 1e6, true},
    {"rope.scaling.attn_factor", offsetof(st_llama_hparams, scaling_attention), 1e-3, 1e3, true},
    {"final_logit_softcapping", offsetof(st_llama_hparams, soft_cap), 0, 1e6, true},
};

static const char *key_of(const st_llama_arch *arch, const char *name, char out[KEY_SIZE])
{
    snprintf(out, KEY_SIZE, "%s.%s", arch->name, name);
    return out;
}

static const st_llama_arch *find_arch(const char *name, size_t n)
{
    for (int i = 0; i < N_ARCHS; i++)
        if (strlen(archs[i].name) == n && memcmp(archs[i].name, name, n) == 0)
            return &archs[i];
    return NULL;
}

bool st_llama_is_known(const sotto_model_file *file)
{
    const char *name;
    size_t n;
    return sotto_meta_string(file, "general.architecture", &name, &n, NULL) == SOTTO_OK && find_arch(name, n) != NULL;
}

static sotto_status read_arch(const sotto_model_file *file, const st_llama_arch **out, sotto_error *err)
{
    const char *name;
    size_t n;
    ST_TRY(sotto_meta_string(file, "general.architecture", &name, &n, err));
    *out = find_arch(name, n);
    if (*out)
        return SOTTO_OK;
    char known[128] = "";
    size_t at = 0;
    for (int i = 0; i < N_ARCHS; i++)
        at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i > 0 ? ", " : "", archs[i].name);
    return st_fail(err, SOTTO_E_UNSUPPORTED, "general.architecture: \"%.*s\", expected one of %s",
                   (int)(n < 64 ? n : 64), name, known);
}

static sotto_status read_fields(const sotto_model_file *file, st_llama_hparams *h, sotto_error *err)
{
    char key[KEY_SIZE];
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int64_t v;
        key_of(h->arch, fields[i].key, key);
        const sotto_status status = sotto_meta_int(file, key, &v, err);
        if (status == SOTTO_E_NOT_FOUND && fields[i].optional)
            continue;
        if (status != SOTTO_OK)
            return status == SOTTO_E_NOT_FOUND ? st_fail(err, SOTTO_E_FORMAT, "%s: missing", key) : status;
        if (v < fields[i].min || v > fields[i].max)
            return st_fail(err, SOTTO_E_FORMAT, "%s: %lld, expected %lld to %lld", key, (long long)v,
                           (long long)fields[i].min, (long long)fields[i].max);
        *(int32_t *)((char *)h + fields[i].offset) = (int32_t)v;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double v;
        key_of(h->arch, numbers[i].key, key);
        const sotto_status status = sotto_meta_float(file, key, &v, err);
        if (status == SOTTO_E_NOT_FOUND && numbers[i].optional)
            continue;
        if (status != SOTTO_OK)
            return status == SOTTO_E_NOT_FOUND ? st_fail(err, SOTTO_E_FORMAT, "%s: missing", key) : status;
        if (!(v >= numbers[i].min && v <= numbers[i].max))
            return st_fail(err, SOTTO_E_FORMAT, "%s: %g, expected %g to %g", key, v, numbers[i].min, numbers[i].max);
        *(float *)((char *)h + numbers[i].offset) = (float)v;
    }
    return SOTTO_OK;
}

static sotto_status read_scaling(const sotto_model_file *file, st_llama_hparams *h, sotto_error *err)
{
    char key[KEY_SIZE];
    const char *name;
    size_t n;
    key_of(h->arch, "rope.scaling.type", key);
    const sotto_status status = sotto_meta_string(file, key, &name, &n, err);
    h->scaling = ST_ROPE_LINEAR; /* a factor without a type */
    if (status == SOTTO_E_NOT_FOUND)
        return SOTTO_OK;
    ST_TRY(status);
    for (size_t i = 0; i < sizeof scaling_names / sizeof *scaling_names; i++)
        if (strlen(scaling_names[i]) == n && memcmp(scaling_names[i], name, n) == 0) {
            h->scaling = (st_rope_scaling)i;
            return SOTTO_OK;
        }
    return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: \"%.*s\", expected none, linear, yarn or longrope", key,
                   (int)(n < 64 ? n : 64), name);
}

/* The number of rows of the embedding, which the tokens have to fit. */
static sotto_status read_vocabulary(const sotto_model_file *file, st_llama_hparams *h, sotto_error *err)
{
    sotto_model_tensor t;
    ST_TRY(sotto_model_tensor_need(file, "token_embd.weight", &t, err));
    if (t.n_dims != 2 || t.dim[0] != h->n_embd || t.dim[1] < 1 || t.dim[1] > 1 << 24)
        return st_fail(err, SOTTO_E_FORMAT,
                       "token_embd.weight: %d dimensions, [%lld, %lld], expected 1 to %d rows of %d", t.n_dims,
                       (long long)t.dim[1], (long long)t.dim[0], 1 << 24, (int)h->n_embd);
    h->n_vocab = (int32_t)t.dim[1];
    return SOTTO_OK;
}

static sotto_status refuse_other_kinds(const sotto_model_file *file, const st_llama_hparams *h, sotto_error *err)
{
    char key[KEY_SIZE];
    int64_t v;
    if (sotto_meta_int(file, key_of(h->arch, "expert_count", key), &v, NULL) == SOTTO_OK && v > 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %lld, mixtures of experts are not supported", key, (long long)v);
    if (sotto_meta_int(file, key_of(h->arch, "attention.value_length", key), &v, NULL) == SOTTO_OK && v != h->d_head)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: %lld, expected the length of keys, %d", key, (long long)v,
                       (int)h->d_head);
    return SOTTO_OK;
}

static sotto_status check_sizes(st_llama_hparams *h, sotto_error *err)
{
    const char *arch = h->arch->name;
    if (h->d_head == 0) {
        if (h->n_embd % h->n_head != 0)
            return st_fail(err, SOTTO_E_FORMAT,
                           "%s.attention.head_count: %d heads of an embedding of %d, expected a divisor", arch,
                           (int)h->n_head, (int)h->n_embd);
        h->d_head = h->n_embd / h->n_head;
    }
    if (h->n_head_kv == 0)
        h->n_head_kv = h->n_head;
    if (h->n_head % h->n_head_kv != 0)
        return st_fail(err, SOTTO_E_FORMAT, "%s.attention.head_count_kv: %d, expected a divisor of the %d heads", arch,
                       (int)h->n_head_kv, (int)h->n_head);
    if (h->d_head % 8 != 0 || h->d_head > 1024)
        return st_fail(err, SOTTO_E_UNSUPPORTED,
                       "%s.attention.key_length: heads of %d elements, expected a multiple of 8, at most 1024", arch,
                       (int)h->d_head);
    if (h->n_rot == 0)
        h->n_rot = h->d_head;
    if (h->n_rot % 2 != 0 || h->n_rot > h->d_head || (h->arch->whole_rotation && h->n_rot != h->d_head))
        return st_fail(err, SOTTO_E_FORMAT, "%s.rope.dimension_count: %d, expected %s %d, the length of a head", arch,
                       (int)h->n_rot, h->arch->whole_rotation ? "" : "an even number up to", (int)h->d_head);
    return SOTTO_OK;
}

sotto_status st_llama_hparams_read(const sotto_model_file *file, st_llama_hparams *out, sotto_error *err)
{
    st_llama_hparams h = {.rope_base = 10000, .rope_base_window = 10000, .scaling_factor = 1, .scaling_attention = 1};
    ST_TRY(read_arch(file, &h.arch, err));
    h.window_pattern = h.arch->window_pattern;
    ST_TRY(read_fields(file, &h, err));
    ST_TRY(read_scaling(file, &h, err));
    ST_TRY(check_sizes(&h, err));
    ST_TRY(refuse_other_kinds(file, &h, err));
    ST_TRY(read_vocabulary(file, &h, err));
    if (h.arch->window_pattern == 0)
        h.window = 0; /* the files of the others name windows that llama.cpp does not apply, either */
    if (h.n_ctx_original == 0)
        h.n_ctx_original = h.n_ctx_train;
    const bool full = h.arch->full_scale_layers != 0 && h.n_layer == h.arch->full_scale_layers;
    h.attention_scale = 1.0f / sqrtf((float)(full ? h.n_embd / h.n_head : h.d_head));
    *out = h;
    return SOTTO_OK;
}

/* ---- rotation ---- */

/* The pair that turns `turns` times over the original context (as a real number). */
static double pair_of_turns(const st_llama_hparams *h, double turns, double base)
{
    const double pi = 3.14159265358979323846;
    return h->n_rot * log(h->n_ctx_original / (turns * 2 * pi)) / (2 * log(base));
}

/* YaRN (Peng et al., 2023): pairs that turn often keep their speed, those that hardly turn are slowed by the factor, and
 * between them there is a ramp. Returns what the speed of pair i is multiplied with. */
static double yarn_speed(const st_llama_hparams *h, double base, int i)
{
    const double fast_turns = 32, slow_turns = 1;
    const double low = fmax(0, floor(pair_of_turns(h, fast_turns, base)));
    const double high = fmin(h->n_rot - 1, ceil(pair_of_turns(h, slow_turns, base)));
    const double y = (i - low) / fmax(0.001, high - low);
    const double keep = 1 - fmin(1, fmax(0, y));
    return (1 - keep) / h->scaling_factor + keep;
}

st_llama_rope st_llama_rope_table(const st_llama_hparams *h, bool window, const float *file_factors, float *factors)
{
    const double base = window ? h->rope_base_window : h->rope_base;
    st_llama_rope r = {.base = (float)base, .scale = 1, .magnitude = h->scaling_attention};
    const bool stretched = !window && h->scaling != ST_ROPE_NONE && h->scaling_factor != 1;
    const bool yarn = h->scaling == ST_ROPE_YARN && stretched;
    if (stretched && !yarn)
        r.scale = 1.0f / h->scaling_factor;
    if (yarn && h->scaling_factor > 1)
        r.magnitude *= 1.0f + 0.1f * logf(h->scaling_factor);
    r.has_factors = yarn || file_factors != NULL;
    for (int i = 0; r.has_factors && i < h->n_rot / 2; i++) {
        const double given = file_factors ? file_factors[i] : 1;
        factors[i] = (float)(yarn ? given / yarn_speed(h, base, i) : given);
    }
    return r;
}
