#include "formats/json_file.h"

sotto_status st_json_bytes(const char *name, const void *data, size_t size, json_t **out, sotto_error *err)
{
    json_error_t why;
    *out = json_loadb(size ? data : "", size, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &why);
    if (!*out)
        return st_fail(err, json_error_code(&why) == json_error_out_of_memory ? SOTTO_E_MEMORY : SOTTO_E_FORMAT,
                       "%s: line %d: %s", name, why.line, why.text);
    return SOTTO_OK;
}

sotto_status st_json_sibling(sotto_model_file *file, const char *name, json_t **out, sotto_error *err)
{
    *out = NULL;
    const char *path = st_model_sibling(file, name);
    if (!path)
        return st_fail_memory(err, 1, name);
    st_file_map map;
    ST_TRY(st_file_map_open(path, &map, err));
    const sotto_status status = st_json_bytes(name, map.data, map.size, out, err);
    st_file_map_close(&map);
    return status;
}

sotto_status st_put_alignment_heads(sotto_model_file *file, const json_t *array, sotto_error *err)
{
    const size_t n = json_array_size(array);
    if (n == 0)
        return SOTTO_OK;
    int64_t *heads = st_model_array(file, 2 * (int64_t)n, sizeof *heads, "alignment heads", err);
    if (!heads)
        return SOTTO_E_MEMORY;
    for (size_t i = 0; i < 2 * n; i++) {
        const json_t *number = json_array_get(json_array_get(array, i / 2), i % 2);
        if (!json_is_integer(number))
            return SOTTO_OK;
        heads[i] = json_integer_value(number);
    }
    return st_model_put_ints(file, "whisper.alignment_heads", heads, 2 * (int64_t)n, err);
}
