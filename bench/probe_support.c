#include "probe_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

bool bench_listed(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
        if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
            return true;
    return list[0] == '\0';
}

double bench_median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, compare);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

bench_result bench_measure(void (*call)(void *), void *arg, double work, double (*ceiling)(void *), void *ceiling_arg,
                           int samples, double least)
{
    enum { MOST = 32 };
    double t[MOST], top[MOST], fraction[MOST];
    samples = samples < MOST ? samples : MOST;
    call(arg);
    int n = 1;
    for (;;) { /* as many calls as take the time of a sample */
        const double t0 = bench_cpu_now();
        for (int i = 0; i < n; i++)
            call(arg);
        const double took = bench_cpu_now() - t0;
        if (took >= least / 2 || n > 1 << 20) {
            n = took >= least ? n : (int)(n * least / took) + 1;
            break;
        }
        n *= 4;
    }
    for (int r = 0; r < samples; r++) {
        top[r] = ceiling != NULL ? ceiling(ceiling_arg) : NAN;
        const double t0 = bench_cpu_now();
        for (int i = 0; i < n; i++)
            call(arg);
        t[r] = (bench_cpu_now() - t0) / n;
        fraction[r] = work / t[r] / top[r];
    }
    bench_result out = {.seconds = bench_median(t, samples)};
    out.fraction = ceiling != NULL ? bench_median(fraction, samples) : NAN;
    out.ceiling = ceiling != NULL ? bench_median(top, samples) : NAN;
    return out;
}

#if defined(__x86_64__)
/* clang-format off */
#define V(r, i) "%%" r #i
#define TWELVE(op, r) \
    op " " V(r, 14) "," V(r, 15) "," V(r, 0) "\n" op " " V(r, 14) "," V(r, 15) "," V(r, 1) "\n" \
    op " " V(r, 14) "," V(r, 15) "," V(r, 2) "\n" op " " V(r, 14) "," V(r, 15) "," V(r, 3) "\n" \
    op " " V(r, 14) "," V(r, 15) "," V(r, 4) "\n" op " " V(r, 14) "," V(r, 15) "," V(r, 5) "\n" \
    op " " V(r, 14) "," V(r, 15) "," V(r, 6) "\n" op " " V(r, 14) "," V(r, 15) "," V(r, 7) "\n" \
    op " " V(r, 14) "," V(r, 15) "," V(r, 8) "\n" op " " V(r, 14) "," V(r, 15) "," V(r, 9) "\n" \
    op " " V(r, 14) "," V(r, 15) "," V(r, 10) "\n" op " " V(r, 14) "," V(r, 15) "," V(r, 11) "\n"
/* two products, each added to an accumulator of its own */
#define PAIR(r, a, b) \
    "vpmaddwd " V(r, 14) "," V(r, 15) "," V(r, 12) "\nvpmaddwd " V(r, 14) "," V(r, 15) "," V(r, 13) "\n" \
    "vpaddd " V(r, 12) "," V(r, a) "," V(r, a) "\nvpaddd " V(r, 13) "," V(r, b) "," V(r, b) "\n"
#define MADD(r) PAIR(r, 0, 1) PAIR(r, 2, 3) PAIR(r, 4, 5) PAIR(r, 6, 7) PAIR(r, 8, 9) PAIR(r, 10, 11)
/* two sums of two products of bytes, added up in 16 bits and then in 32 */
#define FOUR(r, i) \
    "vpmaddubsw " V(r, 14) "," V(r, 15) "," V(r, 12) "\nvpmaddubsw " V(r, 14) "," V(r, 15) "," V(r, 13) "\n" \
    "vpaddw " V(r, 12) "," V(r, 13) "," V(r, 12) "\nvpmaddwd " V(r, 14) "," V(r, 12) "," V(r, 12) "\n" \
    "vpaddd " V(r, 12) "," V(r, i) "," V(r, i) "\n"
#define FOURS(r) \
    FOUR(r, 0) FOUR(r, 1) FOUR(r, 2) FOUR(r, 3) FOUR(r, 4) FOUR(r, 5) FOUR(r, 6) FOUR(r, 7) FOUR(r, 8) FOUR(r, 9) \
    FOUR(r, 10) FOUR(r, 11)
#define CLOBBERED "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
    "xmm12", "xmm13", "xmm14", "xmm15"
#define ZERO_VEX "vpxor %%xmm14,%%xmm14,%%xmm14\nvpxor %%xmm15,%%xmm15,%%xmm15\n"
#define PEAK(name, zero, body) \
    static void name(void) \
    { \
        __asm__ volatile(zero ::: CLOBBERED); \
        for (int i = 0; i < ROUNDS; i++) \
            __asm__ volatile(body ::: CLOBBERED); \
    }
#define SSE_TWO(a, b) "mulps %%xmm14," V("xmm", a) "\naddps %%xmm15," V("xmm", b) "\n"
enum { ROUNDS = 4000 };
PEAK(fma_zmm, ZERO_VEX, TWELVE("vfmadd231ps", "zmm"))
PEAK(fma_ymm, ZERO_VEX, TWELVE("vfmadd231ps", "ymm"))
PEAK(bf16_zmm, ZERO_VEX, TWELVE("vdpbf16ps", "zmm"))
PEAK(i8_zmm, ZERO_VEX, TWELVE("vpdpbusd", "zmm"))
PEAK(i8_ymm, ZERO_VEX, TWELVE("%{vex%} vpdpbusd", "ymm"))
PEAK(madd_zmm, ZERO_VEX, MADD("zmm"))
PEAK(madd_ymm, ZERO_VEX, MADD("ymm"))
PEAK(fours_zmm, ZERO_VEX, FOURS("zmm"))
PEAK(fours_ymm, ZERO_VEX, FOURS("ymm"))
PEAK(mul_add_sse, "xorps %%xmm14,%%xmm14\nxorps %%xmm15,%%xmm15\n",
     SSE_TWO(0, 6) SSE_TWO(1, 7) SSE_TWO(2, 8) SSE_TWO(3, 9) SSE_TWO(4, 10) SSE_TWO(5, 11))
#define AMX_FOUR(op) \
    op " %%tmm6,%%tmm4,%%tmm0\n" op " %%tmm7,%%tmm4,%%tmm1\n" op " %%tmm6,%%tmm5,%%tmm2\n" op " %%tmm7,%%tmm5,%%tmm3\n"
static void amx_i8(void)
{
    for (int i = 0; i < ROUNDS / 8; i++)
        __asm__ volatile(AMX_FOUR("tdpbusd")::);
}
static void amx_bf16(void)
{
    for (int i = 0; i < ROUNDS / 8; i++)
        __asm__ volatile(AMX_FOUR("tdpbf16ps")::);
}
/* clang-format on */

bench_probe bench_probe_of(const st_cpu_kernels *k, bench_number number)
{
    const st_cpu_level level = k->level;
    const bool v4 = level >= ST_CPU_LEVEL_V4, v3 = level >= ST_CPU_LEVEL_V3, vnni = level >= ST_CPU_LEVEL_VNNI;
    const bool amx = level == ST_CPU_LEVEL_AMX;
    const double twelve = 12.0 * ROUNDS, tiles = 4.0 * (ROUNDS / 8) * 16 * 16;
    if (number == BENCH_BF16 && amx)
        return (bench_probe){"tdpbf16ps", tiles * 32, amx_bf16, k->enter};
    if (number == BENCH_I8 && amx)
        return (bench_probe){"tdpbusd", tiles * 64, amx_i8, k->enter};
    if (number == BENCH_BF16 && vnni)
        return (bench_probe){"vdpbf16ps zmm", twelve * 32, bf16_zmm, NULL};
    if (number == BENCH_I8 && level >= ST_CPU_LEVEL_AVX512VNNI)
        return (bench_probe){"vpdpbusd zmm", twelve * 64, i8_zmm, NULL};
    if (number == BENCH_BYTES && v4)
        return (bench_probe){"vpmaddubsw in fours zmm", twelve * 128, fours_zmm, NULL};
    if (number == BENCH_BYTES && v3)
        return (bench_probe){"vpmaddubsw in fours ymm", twelve * 64, fours_ymm, NULL};
    if (number == BENCH_I8 && v4)
        return (bench_probe){"vpmaddwd+vpaddd zmm", twelve * 32, madd_zmm, NULL};
    if (number == BENCH_I8 && level == ST_CPU_LEVEL_AVXVNNI)
        return (bench_probe){"vpdpbusd ymm", twelve * 32, i8_ymm, NULL};
    if ((number == BENCH_I8 || number == BENCH_WORDS) && v3)
        return (bench_probe){"vpmaddwd+vpaddd ymm", twelve * 16, madd_ymm, NULL};
    if (v4)
        return (bench_probe){"vfmadd231ps zmm", twelve * 16, fma_zmm, NULL};
    if (v3)
        return (bench_probe){"vfmadd231ps ymm", twelve * 8, fma_ymm, NULL};
    return (bench_probe){"mulps+addps", twelve / 2 * 4, mul_add_sse, NULL};
}

#define READ(name, move, register, width)                                                                              \
    static void name(const char *p, size_t bytes)                                                                      \
    {                                                                                                                  \
        for (const char *end = p + bytes / 512 * 512; p < end; p += 512)                                               \
            for (int i = 0; i < 512; i += 4 * (width))                                                                 \
                __asm__ volatile(                                                                                      \
                    move " (%0)," register "0\n" move                                                                  \
                                           " %c1(%0)," register "1\n" move                                             \
                                                                " %c2(%0)," register "2\n" move                        \
                                                                                     " %c3(%0)," register "3\n" ::"r"( \
                                                                                         p + i),                       \
                    "i"(width), "i"(2 * (width)), "i"(3 * (width))                                                     \
                    : "xmm0", "xmm1", "xmm2", "xmm3", "memory");                                                       \
    }
READ(read_zmm, "vmovups", "%%zmm", 64)
READ(read_ymm, "vmovups", "%%ymm", 32)
READ(read_sse, "movups", "%%xmm", 16)

void bench_read(st_cpu_level level, const void *p, size_t bytes)
{
    (level >= ST_CPU_LEVEL_V4 ? read_zmm : level >= ST_CPU_LEVEL_V3 ? read_ymm : read_sse)(p, bytes);
}
#else
#if defined(__aarch64__)
/* clang-format off */
#define ONE(op, type, i) op " v" #i ".4s,v30." type ",v31." type "\n"
#define EIGHT(op, t, a, b, c, d, e, f, g, h) \
    ONE(op, t, a) ONE(op, t, b) ONE(op, t, c) ONE(op, t, d) ONE(op, t, e) ONE(op, t, f) ONE(op, t, g) ONE(op, t, h)
#define PEAK(name, extension, op, t) \
    static void name(void) \
    { \
        __asm__ volatile(".arch_extension " extension "\nmovi v30.4s,#0\nmovi v31.4s,#0\n" ::: "v30", "v31"); \
        for (int i = 0; i < ROUNDS; i++) \
            __asm__ volatile(".arch_extension " extension "\n" EIGHT(op, t, 0, 1, 2, 3, 4, 5, 6, 7) \
                             EIGHT(op, t, 8, 9, 10, 11, 12, 13, 14, 15) EIGHT(op, t, 16, 17, 18, 19, 20, 21, 22, 23) \
                             ::: "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", \
                             "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v30", "v31"); \
    }
enum { ROUNDS = 2000 };
PEAK(fma_f32, "simd", "fmla", "4s")
PEAK(dot_i8, "dotprod", "sdot", "16b")
PEAK(square_i8, "i8mm", "usmmla", "16b")
PEAK(square_bf16, "bf16", "bfmmla", "8h")
/* clang-format on */

bench_probe bench_probe_of(const st_cpu_kernels *k, bench_number number)
{
    const double all = 24.0 * ROUNDS;
    if (number == BENCH_BF16 && k->level >= ST_CPU_LEVEL_BF16MM)
        return (bench_probe){"bfmmla", all * 16, square_bf16, NULL};
    if (number == BENCH_I8 && k->level >= ST_CPU_LEVEL_I8MM)
        return (bench_probe){"usmmla", all * 32, square_i8, NULL};
    if (number == BENCH_I8 && k->level >= ST_CPU_LEVEL_DOTPROD)
        return (bench_probe){"sdot", all * 16, dot_i8, NULL};
    return (bench_probe){"fmla", all * 4, fma_f32, NULL};
}
#else
bench_probe bench_probe_of(const st_cpu_kernels *k, bench_number number)
{
    (void)k;
    (void)number;
    return (bench_probe){"none", 0, NULL, NULL};
}
#endif

void bench_read(st_cpu_level level, const void *p, size_t bytes)
{
    (void)level;
    static volatile uint64_t sink;
    const uint64_t *v = p;
    uint64_t s[8] = {0};
    for (size_t i = 0; i + 8 <= bytes / 8; i += 8)
        for (int j = 0; j < 8; j++)
            s[j] ^= v[i + (size_t)j];
    sink = s[0] ^ s[1] ^ s[2] ^ s[3] ^ s[4] ^ s[5] ^ s[6] ^ s[7];
}
#endif

double bench_peak(const bench_probe *probe)
{
    if (probe->run == NULL)
        return NAN;
    if (probe->enter != NULL)
        probe->enter();
    probe->run();
    double best = 0;
    for (int i = 0; i < 3; i++) { /* each well under a millisecond: the undisturbed one counts */
        const double t0 = bench_cpu_now();
        for (int j = 0; j < 8; j++)
            probe->run();
        const double rate = 8 * probe->macs / (bench_cpu_now() - t0) * 1e-9;
        best = rate > best ? rate : best;
    }
    return best;
}
