/* cmd_bench_memory.c: how fast memory is read and copied. Every thread has blocks of its own; all begin together. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "cmd_bench.h"
#include "common/terminal.h"
#include "common/text.h"

static const size_t block_sizes[] = {(size_t)16 << 10, (size_t)128 << 10, (size_t)1 << 20,
                                     (size_t)8 << 20,  (size_t)64 << 20,  (size_t)256 << 20};
enum { N_BLOCKS = 6, SAMPLES = 5, MOST_THREADS = 64 };
#define SAMPLE_SECONDS 0.02

typedef struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    char *from, *to;
    size_t bytes;
    int repeats;
    double read, copied; /* seconds of all repeats */
    uint64_t sum;        /* so that reading is not left out */
} worker;

/* The C library looks for a byte with the widest vectors there are; it is not there. */
static uint64_t read_all(const char *p, size_t bytes)
{
    return memchr(p, 0, bytes) != NULL;
}

static void *work(void *arg)
{
    worker *w = arg;
    pthread_barrier_wait(w->barrier);
    double start = cli_now();
    for (int i = 0; i < w->repeats; i++)
        w->sum += read_all(w->from, w->bytes);
    w->read = cli_now() - start;
    pthread_barrier_wait(w->barrier);
    start = cli_now();
    for (int i = 0; i < w->repeats; i++) {
        memcpy(w->to, w->from, w->bytes);
        w->sum += (uint64_t)(unsigned char)w->to[w->bytes / 2];
    }
    w->copied = cli_now() - start;
    return NULL;
}

/* GB/s of all threads together, medians. */
static sotto_status measure(worker *w, int n, size_t bytes, double *read, double *copied)
{
    double r[SAMPLES], c[SAMPLES];
    const int repeats = (int)(SAMPLE_SECONDS * 1e10 / (double)bytes) + 1;
    for (int s = 0; s < SAMPLES; s++) {
        pthread_barrier_t barrier;
        if (pthread_barrier_init(&barrier, NULL, (unsigned)n) != 0)
            return SOTTO_E_DEVICE;
        for (int i = 0; i < n; i++) {
            w[i].barrier = &barrier;
            w[i].bytes = bytes;
            w[i].repeats = repeats;
            if (i > 0 && pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
                return SOTTO_E_DEVICE; /* the started ones wait for ever, and end with the program */
        }
        work(&w[0]);
        r[s] = c[s] = 0;
        for (int i = 0; i < n; i++) {
            if (i > 0)
                pthread_join(w[i].thread, NULL);
            r[s] += repeats * (double)bytes / w[i].read * 1e-9;
            c[s] += repeats * (double)bytes / w[i].copied * 1e-9;
        }
        pthread_barrier_destroy(&barrier);
    }
    *read = cli_bench_median(r, SAMPLES);
    *copied = cli_bench_median(c, SAMPLES);
    return SOTTO_OK;
}

/* Blocks for n workers of `most` bytes each; false without memory. */
static bool make_blocks(worker *w, int n, size_t most)
{
    bool ok = true;
    for (int i = 0; i < n; i++) {
        w[i].from = malloc(most);
        w[i].to = malloc(most);
        ok = ok && w[i].from && w[i].to;
        if (ok) /* a page that was never written is not there */
            memset(w[i].from, 1, most), memset(w[i].to, 2, most);
    }
    return ok;
}

static void free_blocks(worker *w, int n)
{
    for (int i = 0; i < n; i++) {
        free(w[i].from);
        free(w[i].to);
    }
}

sotto_status cli_bench_memory(int n_threads, bool json, sotto_error *err)
{
    const int n = n_threads < 1 ? 1 : n_threads > MOST_THREADS ? MOST_THREADS : n_threads;
    worker w[MOST_THREADS] = {0};
    const size_t most = block_sizes[N_BLOCKS - 1] / (size_t)n / 64 * 64;
    sotto_status status = make_blocks(w, n, most) ? SOTTO_OK : SOTTO_E_MEMORY;
    cli_text out = {0};
    if (json)
        cli_text_printf(&out, "{\"threads\": %d, \"memcpy\": [", n);
    else
        cli_text_printf(&out, "%d thread%s, ordinary pages; bytes in the blocks of all, GB/s read, GB/s copied\n", n,
                        n == 1 ? "" : "s");
    for (int b = 0; status == SOTTO_OK && b < N_BLOCKS; b++) {
        double read = 0, copied = 0;
        const size_t bytes = block_sizes[b] / (size_t)n / 64 * 64;
        status = measure(w, n, bytes > 0 ? bytes : 64, &read, &copied);
        if (json)
            cli_text_printf(&out, "%s\n  {\"bytes\": %zu, \"read_gb_s\": %.2f, \"copy_gb_s\": %.2f}", b > 0 ? "," : "",
                            block_sizes[b], read, copied);
        else
            cli_text_printf(&out, "%8zu KiB %9.1f %9.1f\n", block_sizes[b] >> 10, read, copied);
    }
    cli_text_puts(&out, json ? "\n]}\n" : "");
    if (status == SOTTO_OK && out.data)
        fputs(out.data, stdout);
    else if (err && status != SOTTO_OK)
        snprintf(err->text, sizeof err->text, "memory bandwidth: %s", sotto_status_name(status));
    cli_text_free(&out);
    free_blocks(w, n);
    return status;
}
