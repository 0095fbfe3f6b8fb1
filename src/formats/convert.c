/* convert.c: the call that converts: what is asked for, then the plan, then the file. */
#include <string.h>

#include "formats/convert_impl.h"
#include "formats/mel_filters.h"
#include "formats/whisper_names.h"

static sotto_status find_architecture(st_plan *plan, sotto_error *err)
{
    const char *name;
    size_t n;
    ST_TRY(sotto_meta_string(plan->file, "general.architecture", &name, &n, err));
    plan->language = n != 7 || memcmp(name, "whisper", 7) != 0;
    return plan->language ? SOTTO_OK : st_whisper_complete(plan->file, err);
}

static sotto_status plan_filters(st_plan *plan, float *computed, sotto_error *err)
{
    if (sotto_meta_floats(plan->file, "whisper.mel_filters", &plan->filters, &plan->n_filters, NULL) == SOTTO_OK)
        return SOTTO_OK;
    int64_t n_mels;
    ST_TRY(sotto_meta_int(plan->file, "whisper.n_mels", &n_mels, err));
    if (n_mels > ST_MEL_MAX || !st_mel_filters((int)n_mels, computed))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "whisper.n_mels: no filters are known for %lld bands",
                       (long long)n_mels);
    plan->filters = computed;
    plan->n_filters = n_mels * ST_MEL_BINS;
    return SOTTO_OK;
}

/* ---- formats ---- */

typedef struct format {
    const char *name;
    sotto_status (*write)(const st_plan *plan, st_out *o);
    bool language; /* holds language models too */
} format;

static const format formats[] = {{"ggml", st_write_ggml, false}, {"gguf", st_write_gguf, true}};

static sotto_status find_format(const char *name, const char *path, bool language, const format **out, sotto_error *err)
{
    const size_t n = strlen(path);
    if (!name)
        name = language || (n > 5 && strcmp(path + n - 5, ".gguf") == 0) ? "gguf" : "ggml";
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0) {
            *out = &formats[i];
            if (language && !formats[i].language)
                return st_fail(err, SOTTO_E_ARGUMENT, "format \"%s\": holds speech models only, expected \"gguf\"",
                               name);
            return SOTTO_OK;
        }
    return st_fail(err, SOTTO_E_ARGUMENT, "format \"%.40s\", expected \"ggml\" or \"gguf\"", name);
}

static sotto_status find_mix(st_plan *plan, const format *to, sotto_error *err)
{
    const char *name = plan->options->dtype;
    if (!name)
        return SOTTO_OK;
    plan->mix = st_mix_find(name, plan->language);
    if (!plan->mix)
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "type \"%.40s\", expected f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, "
                       "q6_k, iq4_nl or a mix of K types (q4_k_m)",
                       name);
    if (!to->language && plan->mix->rules)
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "type \"%.40s\": a mix, and %s files have one type for all matrices; expected \"%s\" or GGUF",
                       name, to->name, sotto_dtype_name(plan->mix->main));
    return SOTTO_OK;
}

/* ---- the call ---- */

static sotto_status write_plan(const st_plan *plan, const format *to, const char *path, sotto_error *err)
{
    st_out o = {NULL, SOTTO_OK, err};
    ST_TRY(st_file_writer_open(path, &o.writer, err));
    const sotto_status status = to->write(plan, &o);
    if (status == SOTTO_OK)
        return st_file_writer_commit(o.writer, err);
    st_file_writer_discard(o.writer);
    return status;
}

static sotto_status make_plan(st_plan *plan, const char *path, const format **to, float *computed, sotto_error *err)
{
    ST_TRY(find_architecture(plan, err));
    ST_TRY(find_format(plan->options->format, path, plan->language, to, err));
    ST_TRY(find_mix(plan, *to, err));
    if (!plan->language)
        ST_TRY(plan_filters(plan, computed, err));
    return st_plan_make(plan, err);
}

static void tell(const st_plan *plan)
{
    const sotto_convert_options *o = plan->options;
    for (int64_t i = 0; i < plan->n && o->planned; i++)
        o->planned(o->planned_user, &plan->list[i].source, plan->list[i].dtype, plan->list[i].bytes);
}

sotto_status sotto_model_convert(const sotto_model_file *file, const char *path, const sotto_convert_options *options,
                                 sotto_error *err)
{
    static const sotto_convert_options defaults;
    if (!file || !path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_model_convert: %s is NULL", file ? "path" : "file");
    st_plan plan = {.file = file, .options = options ? options : &defaults, .n = file->n_tensors};
    const format *to = NULL;
    for (int64_t i = 0; i < file->n_parts; i++)
        if (st_same_file(file->parts[i].path, path))
            return st_fail(err, SOTTO_E_ARGUMENT, "%s: is the model that is read, expected another file to write", path);
    float *computed = st_alloc(ST_MEL_MAX * ST_MEL_BINS, sizeof *computed);
    sotto_status status = computed ? make_plan(&plan, path, &to, computed, err)
                                   : st_fail_memory(err, ST_MEL_MAX * ST_MEL_BINS * sizeof *computed, "mel filters");
    if (status != SOTTO_OK)
        status = st_fail_context(err, status, "%s", file->path);
    else
        tell(&plan);
    if (status == SOTTO_OK && !plan.options->dry_run)
        status = write_plan(&plan, to, path, err);
    st_plan_free(&plan);
    st_free(computed);
    return status;
}
