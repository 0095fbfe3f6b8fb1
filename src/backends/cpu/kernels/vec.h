/* vec.h: what the vector wrappers share. A kernel body is written once over the wrapper that its shell includes first:
 *   vec_generic.h  4 lanes, GCC vector extensions: any processor, SSE, NEON
 *   vec_v3.h       8 lanes, AVX2 + FMA + F16C
 *   vec_v4.h       16 lanes, AVX-512 F BW DQ VL
 * vf holds VL floats, vi VL 32-bit integers. v_max(a, b) and v_min(a, b) return b when either is NaN, on every level.
 * Loads and stores accept any alignment; the _n forms touch the first n elements only (0 <= n <= VL), and load zero
 * elsewhere. Each wrapper also chooses the register tiles:
 *   ST_MR, ST_NV      rows and vectors of the product tile
 *   ST_REGISTERS      how many vectors there are
 *   ST_SKINNY(X)      X(rows, vectors, accumulator sets) for one row, two rows, ... up to ST_SKINNY_ROWS */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INL static inline __attribute__((always_inline, unused))
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer) || __has_feature(thread_sanitizer)
#define ST_CHECKED_BUILD
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ST_CHECKED_BUILD
#endif
#if defined(ST_CHECKED_BUILD)
#define UNROLL /* every access is checked: unrolled, a kernel takes the compiler minutes */
#define ROLLED
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define ROLLED _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#define ROLLED \
    _Pragma("GCC unroll 1") /* rather than held to be short enough, with more numbers than there are registers */
#endif
/* What iq4_nl's nibbles stand for, plus 128. */
static const uint8_t st_iq4_bytes[16]
    __attribute__((unused)) = {1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
#define ST_CAT2(a, b) a##_##b
#define ST_CAT(a, b) ST_CAT2(a, b)
/* The name of this level's version of a shared function. */
#define LEVEL(name) ST_CAT(name, ST_LEVEL)

/* Where column c of row r is in a tile of sums [2][rows][16], as numbers of 4 bytes. */
INL int tile_at(int rows, int r, int c)
{
    return (c / 16 * rows + r) * 16 + c % 16;
}

#endif
