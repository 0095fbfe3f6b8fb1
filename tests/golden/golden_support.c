#include "golden_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static void *read_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    const long n = ftell(f);
    rewind(f);
    char *data = malloc((size_t)n + 1);
    *size = data ? fread(data, 1, (size_t)n, f) : 0;
    fclose(f);
    return data;
}

golden golden_open(const char *folder, const char *name)
{
    char path[512];
    golden g = {0};
    json_error_t error;
    snprintf(path, sizeof path, SOTTO_SOURCE_DIR "/tests/golden/data/%s/%s.json", folder, name);
    g.json = json_load_file(path, 0, &error);
    if (!g.json)
        fail_msg("%s: %s", path, error.text);
    snprintf(path, sizeof path, SOTTO_SOURCE_DIR "/tests/golden/data/%s/%s.f32", folder, name);
    size_t size;
    g.values = read_file(path, &size);
    if (!g.values)
        fail_msg("%s: missing", path);
    g.n_values = (int64_t)(size / sizeof *g.values);
    return g;
}

void golden_close(golden *g)
{
    json_decref(g->json);
    free(g->values);
    *g = (golden){0};
}

json_t *golden_at(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!value)
        fail_msg("golden value \"%s\" is missing", key);
    return value;
}

const float *golden_floats(const golden *g, json_t *entry, int64_t *count)
{
    const int64_t offset = json_integer_value(golden_at(entry, "offset"));
    json_t *shape = golden_at(entry, "shape");
    int64_t n = 1;
    for (size_t i = 0; i < json_array_size(shape); i++)
        n *= json_integer_value(json_array_get(shape, i));
    assert_true(offset + n <= g->n_values);
    *count = n;
    return g->values + offset;
}

/* The fetched clips, and beside the checkout the recordings that only developers and CI have. */
static const char *const folders[] = {
    SOTTO_SOURCE_DIR "/models/samples/librivox",
    SOTTO_SOURCE_DIR "/models/sample/librivox",
    SOTTO_SOURCE_DIR "/models/sample",
    SOTTO_SOURCE_DIR "/../shared/speech/audio",
};

/* 16-bit mono WAV; the header's chunks are walked, sizes are trusted only as far as the file goes. */
static bool add_wav(recording *r, const char *name)
{
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", folders[i], name);
        size_t size;
        uint8_t *data = read_file(path, &size);
        if (!data)
            continue;
        size_t at = 12;
        uint32_t n = 0;
        while (at + 8 <= size) {
            memcpy(&n, data + at + 4, 4);
            if (memcmp(data + at, "data", 4) == 0)
                break;
            at += 8 + (size_t)n + (n & 1u);
        }
        at += 8;
        n = at + n > size ? (uint32_t)(size - at) : n;
        r->pcm = realloc(r->pcm, (size_t)(r->n + n / 2) * sizeof *r->pcm);
        for (uint32_t k = 0; k < n / 2; k++) {
            int16_t v;
            memcpy(&v, data + at + 2 * k, 2);
            r->pcm[r->n++] = (float)v / 32768.0f;
        }
        free(data);
        return true;
    }
    return false;
}

static void add_zeros(recording *r, int64_t n)
{
    r->pcm = realloc(r->pcm, (size_t)(r->n + n + 1) * sizeof *r->pcm);
    memset(r->pcm + r->n, 0, (size_t)n * sizeof *r->pcm);
    r->n += n;
}

bool recording_open(json_t *parts, int64_t pad_to, recording *out)
{
    recording r = {0};
    for (size_t i = 0; i < json_array_size(parts); i++) {
        json_t *part = json_array_get(parts, i);
        if (json_is_integer(part)) {
            add_zeros(&r, json_integer_value(part));
            continue;
        }
        if (!add_wav(&r, json_string_value(part))) {
            printf("skipped: %s is not here\n", json_string_value(part));
            free(r.pcm);
            return false;
        }
    }
    if (r.n < pad_to)
        add_zeros(&r, pad_to - r.n);
    *out = r;
    return true;
}

void recording_close(recording *r)
{
    free(r->pcm);
    *r = (recording){0};
}

const char *model_path(const char *name)
{
    static char path[512]; /* one at a time is enough for a test program */
    struct stat s;
    snprintf(path, sizeof path, SOTTO_SOURCE_DIR "/models/%s", name);
    if (stat(path, &s) == 0)
        return path;
    printf("skipped: %s has not been fetched\n", path);
    return NULL;
}

long golden_resident_pages(void)
{
    long total = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    fclose(f);
    return pages;
}
