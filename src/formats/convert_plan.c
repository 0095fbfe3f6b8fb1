/* convert_plan.c: which type every tensor gets, before anything is written. */
#include <stdio.h>
#include <string.h>

#include "formats/convert_impl.h"
#include "sotto/quant.h"

static bool is_quantised(sotto_dtype dtype)
{
    return dtype == SOTTO_I8 || sotto_dtype_block(dtype) > 1;
}

static bool ends_with(const char *text, const char *ending)
{
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

/* ---- places ---- */

typedef struct role_name {
    const char *part; /* of the tensor's name */
    st_role role;
} role_name;

static st_role role_of(const char *name, const role_name *roles, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(name, roles[i].part))
            return roles[i].role;
    return ST_ROLE_PLAIN;
}

static st_place language_place(const sotto_model_tensor *t, int64_t layers)
{
    static const char *const kept[] = {"_norm.weight", "ffn_gate_inp.weight"};
    static const role_name roles[] = {{"attn_qkv.weight", ST_ROLE_VALUE},
                                      {"attn_v.weight", ST_ROLE_VALUE},
                                      {"attn_output.weight", ST_ROLE_ATTENTION_OUT},
                                      {"ffn_down", ST_ROLE_DOWN}};
    st_place p = {ST_ROLE_KEPT, 0, layers};
    long long layer;
    if (t->n_dims < 2 || t->bytes == 0 || !ends_with(t->name, "weight") ||
        (t->dim[1] == 1 && t->dim[2] == 1 && t->dim[3] == 1))
        return p;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(t->name, kept[i]))
            return p;
    p.role = role_of(t->name, roles, sizeof roles / sizeof *roles);
    if (strcmp(t->name, "output.weight") == 0)
        p.role = ST_ROLE_OUTPUT;
    if (strcmp(t->name, "token_embd.weight") == 0)
        p.role = ST_ROLE_EMBEDDING;
    if (sscanf(t->name, "blk.%lld.", &layer) == 1)
        p.layer = layer;
    return p;
}

/* Convolutions, vectors and positions are no matrices. */
static bool is_speech_matrix(const sotto_model_tensor *t)
{
    return t->n_dims == 2 && !strstr(t->name, "positional_embedding");
}

static st_place speech_place(const sotto_model_file *file, const sotto_model_tensor *t)
{
    static const role_name roles[] = {{"decoder.token_embedding.weight", ST_ROLE_EMBEDDING},
                                      {"attn.value.weight", ST_ROLE_VALUE},
                                      {"attn.out.weight", ST_ROLE_ATTENTION_OUT},
                                      {"mlp.2.weight", ST_ROLE_DOWN}};
    st_place p = {ST_ROLE_KEPT, 0, 0};
    if (!is_speech_matrix(t))
        return p;
    p.role = role_of(t->name, roles, sizeof roles / sizeof *roles);
    const bool encoder = strncmp(t->name, "encoder.", 8) == 0;
    long long layer;
    if (sotto_meta_int(file, encoder ? "whisper.n_audio_layer" : "whisper.n_text_layer", &p.layers, NULL) != SOTTO_OK)
        p.layers = 0;
    if (sscanf(t->name + 8, "blocks.%lld.", &layer) == 1) /* "encoder." is as long as "decoder." */
        p.layer = layer;
    return p;
}

/* ---- facts ---- */

/* A whole number, or the first of several (some models have one a layer). */
static int64_t first_number(const sotto_model_file *file, const char *arch, const char *name, int64_t otherwise)
{
    char key[160];
    int64_t value, n;
    const int64_t *values;
    snprintf(key, sizeof key, "%.64s.%s", arch, name);
    if (sotto_meta_int(file, key, &value, NULL) == SOTTO_OK)
        return value;
    if (sotto_meta_ints(file, key, &values, &n, NULL) == SOTTO_OK && n > 0)
        return values[0];
    return otherwise;
}

static sotto_status language_facts(const st_plan *plan, st_mix_facts *facts, int64_t *layers, sotto_error *err)
{
    static const char *const known[] = {"llama", "qwen2", "qwen3", "gemma3", "phi3"};
    const sotto_model_file *file = plan->file;
    const char *text;
    char arch[65];
    size_t n;
    sotto_model_tensor t;
    ST_TRY(sotto_meta_string(file, "general.architecture", &text, &n, err));
    snprintf(arch, sizeof arch, "%.*s", (int)(n < 64 ? n : 64), text);
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found = found || strcmp(known[i], arch) == 0;
    if (!found)
        return st_fail(err, SOTTO_E_UNSUPPORTED,
                       "general.architecture: \"%s\", only whisper, llama, qwen2, qwen3, gemma3 and phi3 can be "
                       "converted to another type",
                       arch);
    if (first_number(file, arch, "expert_count", 0) > 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s.expert_count: mixtures of experts are not supported", arch);
    const int64_t heads = first_number(file, arch, "attention.head_count", 0);
    const int64_t keys = first_number(file, arch, "attention.head_count_kv", heads);
    *layers = first_number(file, arch, "block_count", 0);
    if (*layers < 1 || *layers > INT32_MAX || heads < 1 || keys < 1)
        return st_fail(err, SOTTO_E_FORMAT, "%s: %lld layers of %lld heads and %lld of keys, expected 1 or more of each",
                       arch, (long long)*layers, (long long)heads, (long long)keys);
    facts->heads_per_key = heads / keys;
    facts->tied = sotto_model_tensor_find(file, "output.weight", &t) == SOTTO_E_NOT_FOUND;
    facts->largest = *layers == 80 && (strcmp(arch, "qwen2") == 0 || (strcmp(arch, "llama") == 0 && heads != keys));
    return SOTTO_OK;
}

/* ---- types ---- */

static sotto_status named_type(const char *option, const char *name, const sotto_dtype **out, sotto_dtype *room,
                               sotto_error *err)
{
    *out = NULL;
    if (!name)
        return SOTTO_OK;
    if (sotto_dtype_find(name, room) != SOTTO_OK || !sotto_dtype_can_pack(*room))
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "%s \"%.40s\", expected f32, f16, bf16, q4_0 to q8_0, q2_k to q6_k or iq4_nl", option, name);
    *out = room;
    return SOTTO_OK;
}

/* Integers with a scale a row are the integers of q8_0. */
static sotto_dtype kept_type(const sotto_model_tensor *t)
{
    return t->dtype == SOTTO_I8 ? SOTTO_Q8_0 : t->dtype == SOTTO_I32 ? SOTTO_F32 : t->dtype;
}

/* Programs that read ggml files want convolutions in f16 beside anything but f32, and vectors and positions in f32. */
static sotto_dtype beside_matrices(const sotto_model_tensor *t, sotto_dtype main)
{
    return t->n_dims == 3 && main != SOTTO_F32 ? SOTTO_F16 : SOTTO_F32;
}

static sotto_status check_requantizing(const sotto_model_tensor *t, sotto_dtype to, sotto_error *err)
{
    const bool same_integers = t->dtype == SOTTO_I8 && (to == SOTTO_Q8_0 || !is_quantised(to));
    if (!is_quantised(t->dtype) || t->dtype == to || same_integers)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_ARGUMENT,
                   "%.100s: is quantised already (%s); converting it to %s again loses more and has to be "
                   "asked for",
                   t->name, sotto_dtype_name(t->dtype), sotto_dtype_name(to));
}

typedef struct choice {
    st_mix_facts facts;
    int64_t layers;
    const sotto_dtype *output, *embedding; /* what the caller wants instead; NULL: the mix's */
    sotto_dtype output_room, embedding_room;
    int64_t fallen;
} choice;

static sotto_dtype matrix_type(const st_plan *plan, choice *c, const sotto_model_tensor *t, st_place place)
{
    const bool output = place.role == ST_ROLE_OUTPUT || (place.role == ST_ROLE_EMBEDDING && c->facts.tied);
    sotto_dtype wanted = plan->options->pure ? plan->mix->main : st_mix_type(plan->mix, place, &c->facts, t->dim[0]);
    if (output && c->output)
        wanted = *c->output;
    if (place.role == ST_ROLE_EMBEDDING && c->embedding)
        wanted = *c->embedding;
    const sotto_dtype fitting = st_mix_fitting(wanted, t->dim[0]);
    c->fallen += fitting != wanted;
    return fitting;
}

/* Type of the matrices as a speech file's header tells it: that of the widest choice, the token embedding, else the first. */
static void find_main(st_plan *plan, choice *c)
{
    plan->main = plan->mix ? plan->mix->main : SOTTO_F16;
    bool found = false;
    for (int64_t i = 0; i < plan->n && !plan->language; i++) {
        const sotto_model_tensor *t = &plan->list[i].source;
        const bool embedding = strcmp(t->name, "decoder.token_embedding.weight") == 0;
        if (is_speech_matrix(t) && (!found || embedding)) {
            plan->main = plan->mix ? matrix_type(plan, c, t, speech_place(plan->file, t))
                                   : st_mix_fitting(kept_type(t), t->dim[0]);
            found = true;
        }
    }
    c->fallen = 0;
}

static sotto_status choose_type(st_plan *plan, choice *c, st_plan_tensor *p, sotto_error *err)
{
    const sotto_model_tensor *t = &p->source;
    const st_place place = plan->language ? language_place(t, c->layers) : speech_place(plan->file, t);
    if (plan->language && (place.role == ST_ROLE_KEPT || !plan->mix)) {
        p->dtype = t->dtype;
        p->bytes = t->bytes;
        return SOTTO_OK;
    }
    if (sotto_dtype_block(t->dtype) == 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: elements of type %s are not supported", t->name,
                       sotto_model_dtype_name(t->dtype));
    if (place.role == ST_ROLE_KEPT)
        p->dtype = beside_matrices(t, plan->main);
    else
        p->dtype = plan->mix ? matrix_type(plan, c, t, place) : st_mix_fitting(kept_type(t), t->dim[0]);
    if (place.role != ST_ROLE_KEPT && !plan->options->requantize)
        ST_TRY(check_requantizing(t, p->dtype, err));
    p->bytes = st_tensor_bytes(t, p->dtype);
    return p->bytes
               ? SOTTO_OK
               : st_fail(err, SOTTO_E_FORMAT, "%.100s: cannot be written as %s", t->name, sotto_dtype_name(p->dtype));
}

/* ---- importance ---- */

static bool uses_importance(const st_plan_tensor *p)
{
    return is_quantised(p->dtype) && p->dtype != SOTTO_Q8_0 && p->dtype != p->source.dtype;
}

/* Means of squares for every matrix that is known; one piece of memory for all. */
static sotto_status plan_importance(st_plan *plan, sotto_error *err)
{
    sotto_imatrix_entry e;
    int64_t floats = 0, unknown = 0;
    for (int64_t i = 0; i < plan->n; i++)
        if (uses_importance(&plan->list[i])) {
            const sotto_model_tensor *t = &plan->list[i].source;
            if (sotto_imatrix_find(plan->options->importance, t->name, &e) != SOTTO_OK || e.rows == 0) {
                unknown++;
                continue;
            }
            if (e.n != t->dim[0])
                return st_fail(err, SOTTO_E_ARGUMENT,
                               "%.100s: the importance matrix has %lld columns, expected %lld; is it of this model?",
                               t->name, (long long)e.n, (long long)t->dim[0]);
            floats += e.n;
        }
    plan->importance = st_alloc((size_t)floats, sizeof(float));
    if (!plan->importance)
        return st_fail_memory(err, (uint64_t)floats * sizeof(float), "importance");
    float *next = plan->importance;
    for (int64_t i = 0; i < plan->n; i++) {
        st_plan_tensor *p = &plan->list[i];
        if (!uses_importance(p) || sotto_imatrix_find(plan->options->importance, p->source.name, &e) != SOTTO_OK ||
            e.rows == 0)
            continue;
        p->importance = next;
        for (int64_t k = 0; k < e.n; k++)
            *next++ = e.squares[k] / (float)e.rows;
    }
    if (unknown > 0)
        st_log(&plan->options->logger, SOTTO_LOG_INFO, "%lld matrices are not in the importance matrix",
               (long long)unknown);
    return SOTTO_OK;
}

/* ---- the plan ---- */

sotto_status st_plan_make(st_plan *plan, sotto_error *err)
{
    const sotto_convert_options *o = plan->options;
    choice c = {.facts = {.heads_per_key = 1, .tied = true, .weighted = o->importance != NULL}};
    ST_TRY(named_type("output type", o->output_dtype, &c.output, &c.output_room, err));
    ST_TRY(named_type("token embedding type", o->embedding_dtype, &c.embedding, &c.embedding_room, err));
    if (!plan->mix && (c.output || c.embedding || o->importance || o->pure))
        return st_fail(err, SOTTO_E_ARGUMENT, "a type for some matrices, or importance, without a type for all");
    if (plan->language && plan->mix)
        ST_TRY(language_facts(plan, &c.facts, &c.layers, err));
    plan->list = st_calloc((size_t)plan->n, sizeof *plan->list);
    if (!plan->list)
        return st_fail_memory(err, (uint64_t)plan->n * sizeof *plan->list, "the list of tensors");
    for (int64_t i = 0; i < plan->n; i++)
        plan->list[i].source = plan->file->tensors[i];
    find_main(plan, &c);
    for (int64_t i = 0; i < plan->n; i++)
        ST_TRY(choose_type(plan, &c, &plan->list[i], err));
    plan->file_type = plan->mix ? plan->mix->file_type : plan->language ? -1 : st_mix_file_type(plan->main);
    if (c.fallen > 0)
        st_log(&o->logger, SOTTO_LOG_WARNING,
               "%lld matrices get another type than usual in such a file: their rows are no whole number of blocks",
               (long long)c.fallen);
    return o->importance ? plan_importance(plan, err) : SOTTO_OK;
}

void st_plan_free(st_plan *plan)
{
    st_free(plan->list);
    st_free(plan->importance);
}
