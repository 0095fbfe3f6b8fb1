/* cpu.h: what the processor and the operating system can do together. */
#ifndef SOTTO_SRC_BASE_CPU_H
#define SOTTO_SRC_BASE_CPU_H

#include <stddef.h>
#include <stdint.h>

enum {
    ST_CPU_SSE42 = 1 << 0,
    ST_CPU_AVX2 = 1 << 1, /* with the operating system saving the wide registers, as for all below */
    ST_CPU_FMA = 1 << 2,
    ST_CPU_F16C = 1 << 3,
    ST_CPU_AVX512 = 1 << 4, /* F, BW, CD, DQ and VL together */
    ST_CPU_AVX512_VNNI = 1 << 5,
    ST_CPU_AVX512_BF16 = 1 << 6,
    ST_CPU_AVX_VNNI = 1 << 7,
    ST_CPU_NEON = 1 << 8,
    ST_CPU_AVX512_VBMI = 1 << 10,
    ST_CPU_DOTPROD = 1 << 11, /* arm64: dot products of bytes */
    ST_CPU_I8MM = 1 << 12,    /* arm64: matrix products of bytes */
    ST_CPU_BF16MM = 1 << 13,  /* arm64: matrix products of bf16 */
    ST_CPU_AMX = 1 << 9       /* tiles with 8-bit and bf16 products; asking has got the process leave to use them */
};

/* The set bits of this machine. */
uint32_t st_cpu_features(void);
/* Space-separated names of the bits, as in "avx2 fma f16c", cut to size. Returns out. */
char *st_cpu_features_text(uint32_t features, char *out, size_t size);
/* The processor's own name, "" when it does not tell. Returns out. */
char *st_cpu_name(char *out, size_t size);

#endif
