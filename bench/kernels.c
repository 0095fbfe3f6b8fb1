/* kernels.c: speed of the CPU kernels on the shapes of whisper-base, one thread, as fractions of the machine's own peak
 * measured in the same run. Usage: bench_kernels [LEVEL]. Medians of 5; the machine should be quiet. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backends/cpu/cpu_attention.h"
#include "backends/cpu/cpu_gemm.h"
#include "base/alloc.h"
#include "base/cpu.h"

static const struct {
    const char *name;
    st_cpu_wtype type;
    size_t block_bytes;
    int block;
} types[] = {{"f32", ST_CPU_W_F32, 4, 1},     {"f16", ST_CPU_W_F16, 2, 1},     {"bf16", ST_CPU_W_BF16, 2, 1},
             {"q8_0", ST_CPU_W_Q8_0, 34, 32}, {"q5_1", ST_CPU_W_Q5_1, 24, 32}, {"q5_0", ST_CPU_W_Q5_0, 22, 32},
             {"q4_1", ST_CPU_W_Q4_1, 20, 32}, {"q4_0", ST_CPU_W_Q4_0, 18, 32}};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Processor time of this process: other programs on the machine disturb it less than the wall clock. */
static double cpu_now(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

/* Median seconds of a call, each sample at least 20 ms. */
static double seconds(void (*call)(void *), void *arg)
{
    double t[5];
    call(arg);
    double t0 = cpu_now();
    call(arg);
    const double once = cpu_now() - t0;
    const int n = once > 0.02   ? 1
                  : once > 1e-5 ? (int)(0.02 / once) + 1
                                : 2000; /* the clock may not tick in one call */
    for (int r = 0; r < 5; r++) {
        t0 = cpu_now();
        for (int i = 0; i < n; i++)
            call(arg);
        t[r] = (cpu_now() - t0) / n;
    }
    qsort(t, 5, sizeof t[0], compare);
    return t[2];
}

#if defined(__x86_64__)
#define TWELVE(op, r)                                                                                                 \
    op " %%" r "14,%%" r "15,%%" r "0\n" op " %%" r "14,%%" r "15,%%" r "1\n" op " %%" r "14,%%" r "15,%%" r "2\n" op \
       " %%" r "14,%%" r "15,%%" r "3\n" op " %%" r "14,%%" r "15,%%" r "4\n" op " %%" r "14,%%" r "15,%%" r "5\n" op \
       " %%" r "14,%%" r "15,%%" r "6\n" op " %%" r "14,%%" r "15,%%" r "7\n" op " %%" r "14,%%" r "15,%%" r "8\n" op \
       " %%" r "14,%%" r "15,%%" r "9\n" op " %%" r "14,%%" r "15,%%" r "10\n" op " %%" r "14,%%" r "15,%%" r "11\n"
#define CLOBBERED \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm14", "xmm15"
enum { PEAK_ROUNDS = 100000 };
static void peak_v4(void *arg)
{
    (void)arg;
    __asm__ volatile("vpxor %%xmm14,%%xmm14,%%xmm14\nvpxor %%xmm15,%%xmm15,%%xmm15\n" ::: CLOBBERED);
    for (int i = 0; i < PEAK_ROUNDS; i++)
        __asm__ volatile(TWELVE("vfmadd231ps", "zmm")::: CLOBBERED);
}
static void peak_v3(void *arg)
{
    (void)arg;
    __asm__ volatile("vpxor %%xmm14,%%xmm14,%%xmm14\nvpxor %%xmm15,%%xmm15,%%xmm15\n" ::: CLOBBERED);
    for (int i = 0; i < PEAK_ROUNDS; i++)
        __asm__ volatile(TWELVE("vfmadd231ps", "ymm")::: CLOBBERED);
}
static void peak_sse(void *arg)
{
    (void)arg;
    for (int i = 0; i < PEAK_ROUNDS; i++)
        __asm__ volatile("addps %%xmm14,%%xmm0\nmulps %%xmm15,%%xmm1\naddps %%xmm14,%%xmm2\nmulps %%xmm15,%%xmm3\n"
                         "addps %%xmm14,%%xmm4\nmulps %%xmm15,%%xmm5\naddps %%xmm14,%%xmm6\nmulps %%xmm15,%%xmm7\n"
                         "addps %%xmm14,%%xmm8\nmulps %%xmm15,%%xmm9\naddps %%xmm14,%%xmm10\nmulps %%xmm15,%%xmm11\n"
                         "addps %%xmm14,%%xmm0\nmulps %%xmm15,%%xmm1\naddps %%xmm14,%%xmm2\nmulps %%xmm15,%%xmm3\n"
                         "addps %%xmm14,%%xmm4\nmulps %%xmm15,%%xmm5\naddps %%xmm14,%%xmm6\nmulps %%xmm15,%%xmm7\n"
                         "addps %%xmm14,%%xmm8\nmulps %%xmm15,%%xmm9\naddps %%xmm14,%%xmm10\nmulps %%xmm15,%%xmm11\n" ::
                             : CLOBBERED);
}
/* 10^9 multiply-adds a second with 12 accumulators that stay in registers. */
static double peak(st_cpu_level level)
{
    if (level >= ST_CPU_LEVEL_V4)
        return PEAK_ROUNDS * 12.0 * 16 / seconds(peak_v4, NULL) * 1e-9;
    if (level == ST_CPU_LEVEL_V3)
        return PEAK_ROUNDS * 12.0 * 8 / seconds(peak_v3, NULL) * 1e-9;
    return PEAK_ROUNDS * 12.0 * 4 / seconds(peak_sse, NULL) * 1e-9;
}
#else
static double peak(st_cpu_level level)
{
    (void)level;
    return NAN;
}
#endif

static volatile uint64_t sink;
typedef struct region {
    const uint8_t *p;
    size_t n, piece, at;
} region;
static void read_bytes(void *arg)
{
    region *r = arg;
    const uint64_t *p = (const uint64_t *)(const void *)(r->p + r->at);
    uint64_t s[8] = {0};
    for (size_t i = 0; i + 8 <= r->piece / 8; i += 8)
        for (int j = 0; j < 8; j++)
            s[j] ^= p[i + j];
    sink = s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5] ^ s[6] ^ s[7];
    r->at = r->at + 2 * r->piece <= r->n ? r->at + r->piece : 0;
}

typedef struct product {
    const st_cpu_kernels *k;
    st_cpu_left left;
    st_cpu_right right;
    st_cpu_epilogue e;
    int64_t m;
    float *scratch;
    const uint8_t *weights;
    size_t copy_bytes, copies, copy;
} product;

static void run_product(void *arg)
{
    product *p = arg;
    p->right.packed = p->weights + p->copy_bytes * p->copy;
    p->copy = (p->copy + 1) % p->copies;
    for (int64_t row = 0; row < p->m; row += ST_CPU_ROW_BLOCK) {
        const int n = p->m - row < ST_CPU_ROW_BLOCK ? (int)(p->m - row) : ST_CPU_ROW_BLOCK;
        st_cpu_gemm_pack(p->k, &p->left, &p->right, p->m, row, n, p->scratch);
        st_cpu_gemm_panels(p->k, &p->right, &p->e, p->m, row, n, 0, st_cpu_panels(p->right.n), p->scratch);
    }
}

static float noise(uint32_t *s)
{
    *s = *s * 1664525u + 1013904223u;
    return (float)(int32_t)*s * 0x1p-31f;
}

static void bench_products(const st_cpu_kernels *k, double top)
{
    static const int shape[][3] = {{1500, 512, 512}, {1500, 2048, 512}, {1500, 512, 2048},
                                   {12, 2048, 512},  {1, 2048, 512},    {5, 2048, 512},
                                   {8, 2048, 512},   {1, 51865, 512},   {5, 51865, 512}};
    for (size_t i = 0; i < sizeof shape / sizeof shape[0]; i++) {
        const int64_t m = shape[i][0], n = shape[i][1], kk = shape[i][2];
        float *x = st_alloc_pages((size_t)(m * kk) * 4), *y = st_alloc_pages((size_t)(m * n) * 4);
        float *bias = st_calloc((size_t)n, 4);
        uint32_t seed = 1;
        for (int64_t j = 0; j < m * kk; j++)
            x[j] = noise(&seed);
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            const size_t bytes = st_cpu_packed_bytes(types[t].type, n, kk);
            /* few rows: rotate over more copies than the caches hold */
            const size_t copies = m > 8 || bytes > ((size_t)64 << 20) ? 1 : ((size_t)256 << 20) / bytes;
            uint8_t *w = st_alloc_pages(bytes * copies);
            const size_t row_bytes = (size_t)kk / (size_t)types[t].block * types[t].block_bytes;
            uint8_t *row = st_calloc(1, row_bytes);
            for (size_t j = 0; j < row_bytes; j++)
                row[j] =
                    (uint8_t)((j % types[t].block_bytes) % 2 ? 0x2c : 0x11); /* small finite numbers in every type */
            for (int64_t r = 0; r < n; r++)
                st_cpu_pack_rows(types[t].type, kk, row, r, 1, w);
            for (size_t c = 1; c < copies; c++)
                memcpy(w + c * bytes, w, bytes);
            product p = {.k = k,
                         .left = {.x = x, .n1 = m, .n2 = 1, .stride1 = (ptrdiff_t)kk},
                         .right = {types[t].type, n, kk, NULL},
                         .e = {.out = y, .out_stride = (ptrdiff_t)n, .bias = bias},
                         .m = m,
                         .scratch = st_alloc_pages(4 * st_cpu_gemm_scratch(ST_CPU_ROW_BLOCK, kk)),
                         .weights = w,
                         .copy_bytes = bytes,
                         .copies = copies};
            top = peak(k->level); /* again each time: it moves with what else the machine does */
            const double s = seconds(run_product, &p);
            region r = {w, bytes * copies, bytes, 0};
            const double read = m > 8 ? 0 : (double)bytes / seconds(read_bytes, &r) * 1e-9;
            const double rate = (double)(m * n * kk) / s * 1e-9;
            printf("%-5s %5dx%5dx%4d  %7.1f GMAC/s  %3.0f %% of peak  %8.1f us", types[t].name, shape[i][0],
                   shape[i][1], shape[i][2], rate, 100 * rate / top, s * 1e6);
            if (m <= 8)
                printf("  %5.1f GB/s of %5.1f read", (double)bytes / s * 1e-9, read);
            printf("\n");
            fflush(stdout);
            st_free_pages(p.scratch, 4 * st_cpu_gemm_scratch(ST_CPU_ROW_BLOCK, kk));
            st_free_pages(w, bytes * copies);
            st_free(row);
        }
        st_free_pages(x, (size_t)(m * kk) * 4);
        st_free_pages(y, (size_t)(m * n) * 4);
        st_free(bias);
    }
}

typedef struct attention {
    const st_cpu_kernels *k;
    st_cpu_attention a;
    float *packed, *scratch;
} attention;

static void run_attention(void *arg)
{
    attention *t = arg;
    for (int64_t p = 0; p < st_cpu_attention_pack_units(&t->a); p++)
        st_cpu_attention_pack(t->k, &t->a, p, t->packed);
    for (int64_t q = 0; q < t->a.n_q; q += t->k->mr) {
        const int rows = t->a.n_q - q < t->k->mr ? (int)(t->a.n_q - q) : t->k->mr;
        st_cpu_attention_rows(t->k, &t->a, q, rows, t->packed, t->scratch);
    }
}

typedef struct cells {
    const st_cpu_kernels *k;
    st_cpu_cells c;
    size_t step, n, at;
    const char *base;
} cells;

static void run_cells(void *arg)
{
    cells *t = arg;
    t->c.k = t->c.v = t->base + t->at * t->step;
    t->at = (t->at + 1) % t->n;
    t->k->cells_f16(&t->c);
}

static void bench_attention(const st_cpu_kernels *k, double top)
{
    enum { N = 1500, D = 64, STRIDE = 512 };
    float *q = st_alloc_pages(4 * N * STRIDE), *o = st_alloc_pages(4 * N * STRIDE);
    uint32_t seed = 2;
    for (int i = 0; i < N * STRIDE; i++)
        q[i] = noise(&seed);
    attention t = {.k = k,
                   .a = {.q = q,
                         .k = q,
                         .v = q,
                         .out = o,
                         .q_stride = STRIDE,
                         .k_stride = STRIDE,
                         .v_stride = STRIDE,
                         .out_stride = STRIDE,
                         .n_q = N,
                         .n_k = N,
                         .d = D,
                         .scale = 0.125f}};
    t.packed = st_alloc_pages(4 * st_cpu_attention_packed(&t.a));
    t.scratch = st_alloc_pages(4 * st_cpu_attention_scratch(&t.a));
    const double s = seconds(run_attention, &t), rate = 2.0 * N * N * D / s * 1e-9;
    printf("attention 1500x1500x64 one head  %7.1f GMAC/s  %3.0f %% of peak  %8.1f us\n", rate, 100 * rate / top,
           s * 1e6);
    enum { COPIES = 400 };
    char *kv = st_alloc_pages((size_t)COPIES * N * D * 2);
    float *scratch = st_alloc_pages(4 * st_cpu_cells_scratch(D));
    for (int rows = 1; rows <= 5; rows += 4) {
        cells c = {.k = k,
                   .c = {.n_row = rows,
                         .d = D,
                         .scale = 0.125f,
                         .k_stride = D * 2,
                         .v_stride = D * 2,
                         .n_kv = N,
                         .n_cell = N,
                         .scratch = scratch},
                   .step = (size_t)N * D * 2,
                   .n = COPIES,
                   .base = kv};
        for (int r = 0; r < rows; r++) {
            c.c.q[r] = q + r * STRIDE;
            c.c.out[r] = o + r * STRIDE;
        }
        const double u = seconds(run_cells, &c);
        printf("cells f16 %d rows x 1500 x 64, cold  %8.1f us  %5.1f GB/s\n", rows, u * 1e6,
               2.0 * N * D * 2 / u * 1e-9 / 2);
    }
    st_free_pages(kv, (size_t)COPIES * N * D * 2);
    st_free_pages(scratch, 4 * st_cpu_cells_scratch(D));
    st_free_pages(t.packed, 4 * st_cpu_attention_packed(&t.a));
    st_free_pages(t.scratch, 4 * st_cpu_attention_scratch(&t.a));
    st_free_pages(q, 4 * N * STRIDE);
    st_free_pages(o, 4 * N * STRIDE);
}

int main(int argc, char **argv)
{
    const uint32_t features = st_cpu_features();
    st_cpu_level level = st_cpu_level_best(features);
    if (argc > 1 && (!st_cpu_level_find(argv[1], &level) || !st_cpu_level_usable(level, features))) {
        fprintf(stderr, "bench_kernels: level %s is unknown or not usable here\n", argv[1]);
        return 2;
    }
    st_cpu_kernels k;
    st_cpu_kernels_fill(&k, level);
    const double top = peak(level);
    printf("level %s, peak %.1f GMAC/s\n", st_cpu_level_name(level), top);
    bench_attention(&k, top);
    bench_products(&k, top);
    return 0;
}
