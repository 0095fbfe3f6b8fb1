/* cpu.c: CPUID and XGETBV on x86; on arm64 NEON is part of the architecture. */
#include "base/cpu.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Linux saves the tiles only for processes that have asked. */
static bool allow_tiles(void)
{
#if defined(__linux__) && defined(__x86_64__)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

static uint32_t xgetbv0(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}

uint32_t st_cpu_features(void)
{
    uint32_t a, b, c, d, f = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return 0;
    const uint32_t leaf1 = c;
    if ((leaf1 & bit_SSE4_2) && (leaf1 & bit_SSSE3) && (leaf1 & bit_POPCNT))
        f |= ST_CPU_SSE42;
    const uint32_t saved = leaf1 & bit_OSXSAVE ? xgetbv0() : 0;
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) /* xmm and ymm */
        return f;
    const uint32_t leaf7b = b, leaf7c = c, leaf7d = d;
    uint32_t leaf71a = 0;
    if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
        leaf71a = a;
    if ((leaf7b & (1u << 5)) && (leaf7b & (1u << 3)) && (leaf7b & (1u << 8))) /* AVX2, BMI1, BMI2 */
        f |= ST_CPU_AVX2;
    if (leaf1 & bit_FMA)
        f |= ST_CPU_FMA;
    if (leaf1 & bit_F16C)
        f |= ST_CPU_F16C;
    if (leaf71a & (1u << 4))
        f |= ST_CPU_AVX_VNNI;
    const uint32_t v4 = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F DQ CD BW VL */
    if ((saved & 0xe0) == 0xe0 && (leaf7b & v4) == v4) {                      /* opmask and zmm */
        f |= ST_CPU_AVX512;
        if (leaf7c & (1u << 11))
            f |= ST_CPU_AVX512_VNNI;
        if (leaf7c & (1u << 1))
            f |= ST_CPU_AVX512_VBMI;
        if (leaf71a & (1u << 5))
            f |= ST_CPU_AVX512_BF16;
        const uint32_t amx = 1u << 22 | 1u << 24 | 1u << 25; /* BF16, TILE, INT8 */
        if ((saved & 0x60000) == 0x60000 && (leaf7d & amx) == amx && allow_tiles())
            f |= ST_CPU_AMX;
    }
    return f;
}

char *st_cpu_name(char *out, size_t size)
{
    uint32_t r[12] = {0};
    char text[sizeof r + 1];
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) >= 0x80000004u) {
        for (unsigned i = 0; i < 3; i++)
            __get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]);
    }
    memcpy(text, r, sizeof r);
    text[sizeof r] = '\0';
    snprintf(out, size, "%s", text + strspn(text, " "));
    return out;
}
#else
uint32_t st_cpu_features(void)
{
#if defined(__aarch64__) && defined(__linux__)
    const unsigned long dotprod = 1ul << 20, i8mm = 1ul << 13, bf16 = 1ul << 14; /* HWCAP_ASIMDDP, HWCAP2_I8MM, _BF16 */
    const unsigned long more = getauxval(AT_HWCAP2);
    return ST_CPU_NEON | (getauxval(AT_HWCAP) & dotprod ? ST_CPU_DOTPROD : 0u) | (more & i8mm ? ST_CPU_I8MM : 0u) |
           (more & bf16 ? ST_CPU_BF16MM : 0u);
#elif defined(__aarch64__) && defined(__APPLE__)
    static const struct {
        const char *name;
        uint32_t feature;
    } asked[] = {{"hw.optional.arm.FEAT_DotProd", ST_CPU_DOTPROD},
                 {"hw.optional.arm.FEAT_I8MM", ST_CPU_I8MM},
                 {"hw.optional.arm.FEAT_BF16", ST_CPU_BF16MM}};
    uint32_t f = ST_CPU_NEON;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        int there = 0;
        size_t size = sizeof there;
        if (sysctlbyname(asked[i].name, &there, &size, NULL, 0) == 0 && there != 0)
            f |= asked[i].feature;
    }
    return f;
#elif defined(__aarch64__)
    return ST_CPU_NEON;
#else
    return 0;
#endif
}

char *st_cpu_name(char *out, size_t size)
{
    if (size > 0)
        out[0] = '\0';
    return out;
}
#endif

char *st_cpu_features_text(uint32_t features, char *out, size_t size)
{
    static const char *const name[] = {"sse4.2",      "avx2",        "fma",      "f16c",  "avx512",
                                       "avx512-vnni", "avx512-bf16", "avx-vnni", "neon",  "amx",
                                       "avx512-vbmi", "dotprod",     "i8mm",     "bf16mm"};
    size_t used = 0;
    if (size > 0)
        out[0] = '\0';
    for (size_t i = 0; i < sizeof name / sizeof name[0]; i++) {
        if (!(features >> i & 1u))
            continue;
        const int n = snprintf(out + used, size - used, "%s%s", used > 0 ? " " : "", name[i]);
        if (n < 0 || (size_t)n >= size - used)
            break;
        used += (size_t)n;
    }
    return out;
}
