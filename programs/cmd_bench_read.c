/* cmd_bench_read.c: how fast the memory of a model's weights could be read. A thread reads its part in several places at once,
 * a word of each cache line: nothing waits for anything, so that only the memory sets the pace. The median pass counts, as does the
 * median run of what is compared with it: on a shared machine both have their lucky moments, in which more lies in the caches.
 * Pages are large ones where the system has them, as those of weights. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmd_bench.h"
#include "common/terminal.h"

enum {
    LINE = 64,
    PLACES = 4,
    HUGE_PAGE = 2 << 20,
    HUGE_PAGES_PLEASE = 14, /* MADV_HUGEPAGE of Linux; other systems refuse it, and pages stay ordinary */
    MOST_THREADS = 64,
    ROUNDS = 4,
    FEWEST_PASSES = 2,
    MOST_PASSES = 400
};
#define ROUND_SECONDS 0.15
#define PASS_BYTES ((size_t)32 << 20)
#define MUCH ((size_t)1 << 30)
#define MOST ((size_t)4 << 30) /* more makes no difference */

typedef struct reader {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const char *from;
    size_t bytes;
    int repeats, passes;
    double seconds[MOST_PASSES];
    uint64_t sum; /* so that reading is not left out */
} reader;

static uint64_t word_at(const char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static uint64_t read_all(const char *p, size_t bytes)
{
    const size_t part = bytes / PLACES / LINE * LINE;
    uint64_t sum = 0;
    for (size_t i = 0; i < part; i += LINE)
        sum += word_at(p + i) + word_at(p + part + i) + word_at(p + 2 * part + i) + word_at(p + 3 * part + i);
    return sum;
}

static void *work(void *arg)
{
    reader *r = arg;
    for (int pass = 0; pass < r->passes; pass++) {
        pthread_barrier_wait(r->barrier);
        const double start = cli_now();
        for (int i = 0; i < r->repeats; i++)
            r->sum += read_all(r->from, r->bytes);
        r->seconds[pass] = cli_now() - start;
    }
    return NULL;
}

/* Bytes a second of passes, in the order in which they were. */
typedef struct rates {
    double value[ROUNDS * (MOST_PASSES + FEWEST_PASSES)];
    size_t n;
} rates;

/* So many more passes; one is over when the last thread is. */
static sotto_status passes_of(reader *r, int n, const char *block, size_t bytes, int passes, rates *out)
{
    pthread_barrier_t barrier;
    if (pthread_barrier_init(&barrier, NULL, (unsigned)n) != 0)
        return SOTTO_E_DEVICE;
    const size_t part = bytes / (size_t)n / (LINE * PLACES) * (LINE * PLACES);
    const int repeats = (int)(PASS_BYTES / (bytes + 1)) + 1;
    for (int i = 0; i < n; i++) {
        r[i].barrier = &barrier;
        r[i].from = block + (size_t)i * part;
        r[i].bytes = part;
        r[i].repeats = repeats;
        r[i].passes = passes;
        if (i > 0 && pthread_create(&r[i].thread, NULL, work, &r[i]) != 0)
            return SOTTO_E_DEVICE; /* the started ones wait for ever, and end with the program */
    }
    work(&r[0]);
    for (int i = 1; i < n; i++)
        pthread_join(r[i].thread, NULL);
    for (int pass = 0; pass < passes; pass++) {
        double last = r[0].seconds[pass];
        for (int i = 1; i < n; i++)
            last = r[i].seconds[pass] > last ? r[i].seconds[pass] : last;
        out->value[out->n++] = (double)part * n * repeats / last;
    }
    pthread_barrier_destroy(&barrier);
    return SOTTO_OK;
}

/* Passes for ROUND_SECONDS, and at least a few. */
static sotto_status a_round(reader *r, int n, const char *block, size_t bytes, rates *out)
{
    const double start = cli_now();
    const sotto_status status = passes_of(r, n, block, bytes, FEWEST_PASSES, out);
    const double each = (cli_now() - start) / FEWEST_PASSES, left = ROUND_SECONDS - (cli_now() - start);
    const int more = left <= 0 ? 0 : left / each < MOST_PASSES ? (int)(left / each) : MOST_PASSES;
    return status == SOTTO_OK && more > 0 ? passes_of(r, n, block, bytes, more, out) : status;
}

/* At most an eighth of the machine's memory. */
static size_t at_most(size_t bytes)
{
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    const size_t most = pages > 0 && size > 0 ? (size_t)pages / 8 * (size_t)size : MUCH;
    return bytes < most ? bytes : most;
}

sotto_status cli_bench_bandwidth(int n_threads, double bytes, cli_bench_rates *out)
{
    const int n = n_threads < 1 ? 1 : n_threads > MOST_THREADS ? MOST_THREADS : n_threads;
    const size_t least = (size_t)n * LINE * PLACES, wanted = bytes < (double)MOST ? (size_t)bytes : MOST;
    const size_t few = at_most(wanted < least ? least : wanted), much = at_most(few > MUCH ? few : MUCH);
    reader *r = calloc((size_t)n, sizeof *r);
    rates *of = calloc(2, sizeof *of);
    void *block = NULL;
    if (!r || !of || posix_memalign(&block, HUGE_PAGE, much) != 0) {
        free(r);
        free(of);
        return SOTTO_E_MEMORY;
    }
    (void)madvise(block, much, HUGE_PAGES_PLEASE);
    memset(block, 1, much); /* a page that was never written is not there */
    *out = (cli_bench_rates){0};
    sotto_status status = SOTTO_OK;
    for (int i = 0; i < ROUNDS && status == SOTTO_OK; i++) { /* in turns: what disturbs may last for a while */
        status = a_round(r, n, block, few, &of[0]);
        if (status == SOTTO_OK)
            status = a_round(r, n, block, much, &of[1]);
    }
    if (status == SOTTO_OK)
        *out = (cli_bench_rates){cli_bench_median(of[0].value, of[0].n), cli_bench_median(of[1].value, of[1].n)};
    free(of);
    free(block);
    free(r);
    return status;
}
