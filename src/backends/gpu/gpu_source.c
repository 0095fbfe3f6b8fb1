/* gpu_source.c: the list of the kernels, and their text for interfaces that compile at run time. */
#include "backends/gpu/gpu_source.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "backends/gpu/gpu_api.h"
#include "backends/gpu/kernels/params.h"
#include "base/alloc.h"

const st_gpu_kernel_info st_gpu_kernels[ST_GPU_KERNEL_COUNT] = {
#define KERNEL(module, name, group, params, n_args) {#module, #name, group, sizeof(struct params), n_args},
#include "backends/gpu/kernels/kernels.inc"
#undef KERNEL
};

/* Files include files, which include files: deeper is a mistake. */
enum { MAX_DEPTH = 8, NAME_SIZE = 64 };

typedef struct growing {
    char *text;
    int64_t size, capacity;
    bool failed;
} growing;

static void put(growing *g, const char *text, size_t n)
{
    if (!g->failed && !st_grow(&g->text, &g->capacity, g->size + (int64_t)n + 1, 1))
        g->failed = true;
    if (g->failed)
        return;
    memcpy(g->text + g->size, text, n);
    g->size += (int64_t)n;
    g->text[g->size] = 0;
}

/* Compilers then name the file and the line as they are in the repository. */
static void put_line_mark(growing *g, int line, const char *name)
{
    char mark[NAME_SIZE + 32];
    put(g, mark, (size_t)snprintf(mark, sizeof mark, "#line %d \"%s\"\n", line, name));
}

static const st_gpu_text *find(const char *name, size_t n)
{
    for (int i = 0; i < st_gpu_n_texts; i++)
        if (strncmp(st_gpu_texts[i].name, name, n) == 0 && st_gpu_texts[i].name[n] == 0)
            return &st_gpu_texts[i];
    return NULL;
}

/* The file that a line includes, and the length of its name; NULL for every other line. */
static const char *included(const char *line, size_t n, size_t *length)
{
    static const char word[] = "#include \"";
    const size_t head = sizeof word - 1;
    const char *end = n > head && memcmp(line, word, head) == 0 ? memchr(line + head, '"', n - head) : NULL;
    *length = end ? (size_t)(end - line) - head : 0;
    return end ? line + head : NULL;
}

static void put_file(growing *g, const st_gpu_text *file, int depth)
{
    if (!file || depth > MAX_DEPTH) {
        g->failed = true;
        return;
    }
    put_line_mark(g, 1, file->name);
    const char *const end = file->text + file->size;
    int number = 1;
    for (const char *line = file->text; line < end && !g->failed; number++) {
        const char *const found = memchr(line, '\n', (size_t)(end - line)), *const next = found ? found + 1 : end;
        size_t length;
        const char *const name = included(line, (size_t)(next - line), &length);
        if (name) {
            put_file(g, find(name, length), depth + 1);
            put_line_mark(g, number + 1, file->name);
        } else {
            put(g, line, (size_t)(next - line));
        }
        line = next;
    }
}

char *st_gpu_source(const char *prelude, const char *module)
{
    char name[NAME_SIZE];
    growing g = {0};
    put_file(&g, find(prelude, strlen(prelude)), 0);
    put_file(&g, find("params.h", strlen("params.h")), 0);
    snprintf(name, sizeof name, "%s.krn", module);
    put_file(&g, find(name, strlen(name)), 0);
    if (g.failed) {
        st_free(g.text);
        return NULL;
    }
    return g.text;
}
