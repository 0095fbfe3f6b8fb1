/* gguf_split.c: models in parts, NAME-00001-of-00003.gguf and so on in one folder. All metadata is in the first part; each
 * has its number, split.no, from 0 on. */
#include <stdio.h>
#include <string.h>

#include "formats/gguf.h"

enum { ENDING = 64 };

/* The ending of the names of part `no`; no is counted from 0, names from 1. */
static size_t ending_of(int64_t no, int64_t count, char out[ENDING])
{
    return (size_t)snprintf(out, ENDING, "-%05lld-of-%05lld.gguf", (long long)no + 1, (long long)count);
}

/* The name of another part, in the arena; NULL when the path does not have the ending of part `no`, or without memory. */
static const char *part_name(sotto_model_file *file, const st_gguf_split *s, int64_t other)
{
    char mine[ENDING], theirs[ENDING];
    const size_t n = ending_of(s->no, s->count, mine), m = ending_of(other, s->count, theirs);
    const char *path = file->path;
    const size_t length = strlen(path);
    if (!file->folder || length <= n || strcmp(path + length - n, mine) != 0)
        return NULL;
    size_t start = length - n; /* what is before the ending, back to the folder */
    while (start > 0 && path[start - 1] != '/' && path[start - 1] != '\\')
        start--;
    const size_t stem = length - n - start;
    char *name = st_arena_alloc(file->arena, stem + m + 1);
    if (name) {
        memcpy(name, path + start, stem);
        memcpy(name + stem, theirs, m);
    }
    return name;
}

static sotto_status read_part(sotto_model_file *file, const st_gguf_split *first, int64_t no, sotto_error *err)
{
    const char *name = part_name(file, first, no);
    const char *path = name ? st_model_sibling(file, name) : NULL;
    if (!path)
        return st_fail_memory(err, strlen(file->path) + ENDING, "the path of a model");
    const uint8_t *data;
    size_t size;
    ST_TRY(st_model_map(file, path, &data, &size, err));
    st_gguf_split split = {0, 0, -1};
    if (!st_reader_gguf.probe(data, size))
        return st_fail(err, SOTTO_E_FORMAT, "%s: is no GGUF file", path);
    const sotto_status status = st_gguf_read(file, data, size, false, &split, err);
    if (status != SOTTO_OK)
        return st_fail_context(err, status, "%s", path);
    if (split.no != no || split.count != first->count)
        return st_fail(err, SOTTO_E_FORMAT, "%s: is part %lld of %lld, expected part %lld of %lld", path,
                       (long long)split.no + 1, (long long)split.count, (long long)no + 1, (long long)first->count);
    return SOTTO_OK;
}

sotto_status st_gguf_read_parts(sotto_model_file *file, const st_gguf_split *first, sotto_error *err)
{
    char ending[ENDING];
    ending_of(0, first->count, ending);
    if (first->no >= first->count)
        return st_fail(err, SOTTO_E_FORMAT, "split.no: %lld, expected less than split.count, %lld",
                       (long long)first->no, (long long)first->count);
    const char *name = part_name(file, first, 0);
    if (first->no != 0)
        return st_fail(err, SOTTO_E_ARGUMENT, "is part %lld of %lld: open the first, %s%s", (long long)first->no + 1,
                       (long long)first->count, name ? name : "its name ends with ", name ? "" : ending);
    if (!name)
        return st_fail(err, SOTTO_E_FORMAT,
                       "is the first of %lld parts, and the others are found by its name, which does not end with %s",
                       (long long)first->count, ending);
    for (int64_t no = 1; no < first->count; no++) {
        const sotto_status status = read_part(file, first, no, err);
        if (status != SOTTO_OK)
            return st_fail_context(err, status, "part %lld of %lld", (long long)no + 1, (long long)first->count);
    }
    if (first->tensors >= 0 && first->tensors != file->n_tensors)
        return st_fail(err, SOTTO_E_FORMAT, "split.tensors.count: %lld, but the parts have %lld tensors together",
                       (long long)first->tensors, (long long)file->n_tensors);
    return SOTTO_OK;
}
