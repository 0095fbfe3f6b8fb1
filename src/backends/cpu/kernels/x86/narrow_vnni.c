/* narrow_vnni.c: narrow products with AVX-512 VNNI and BF16 (contracts in cpu_kernels.h). A tile is 12 rows of 32 columns:
 * 24 accumulators, two vectors of weights, one broadcast. The instructions are written out, since gcc 12 moves accumulators
 * to and fro around its builtins. */
#if !defined(__AVX512VNNI__) || !defined(__AVX512BF16__)
#error "this file needs -mavx512vnni -mavx512bf16"
#endif
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/cpu_kernels.h"
#include "../vec.h"

enum { MR = 12, STEP_BYTES = 128 };

#define DOT_I8(C, X, W) __asm__("vpdpbusd %2, %1, %0" : "+v"(C) : "v"(X), "v"(W))
#define DOT_BF16(C, X, W) __asm__("vdpbf16ps %2, %1, %0" : "+v"(C) : "v"(X), "v"(W))

/* acc [2][rows][16] = A B; a step is one dword of each row, four bytes or two bf16, with 32 columns */
#define NARROW_BODY(DOT)                                                              \
    __m512i c[MR][2];                                                                 \
    UNROLL for (int r = 0; r < rows; r++) c[r][0] = c[r][1] = _mm512_setzero_si512(); \
    for (int i = 0; i < chunks; i++, a += 64 * (rows - 1)) {                          \
        for (int two = 0; two < 8; two++, a += 8, b += 2 * STEP_BYTES) {              \
            UNROLL for (int s = 0; s < 2; s++)                                        \
            {                                                                         \
                const __m512i w0 = _mm512_loadu_si512(b + s * STEP_BYTES);            \
                const __m512i w1 = _mm512_loadu_si512(b + s * STEP_BYTES + 64);       \
                UNROLL for (int r = 0; r < rows; r++)                                 \
                {                                                                     \
                    int32_t x;                                                        \
                    memcpy(&x, a + r * 64 + 4 * s, sizeof x);                         \
                    const __m512i xs = _mm512_set1_epi32(x);                          \
                    DOT(c[r][0], xs, w0);                                             \
                    DOT(c[r][1], xs, w1);                                             \
                }                                                                     \
            }                                                                         \
        }                                                                             \
    }                                                                                 \
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++)          \
        _mm512_storeu_si512(acc + (size_t)(h * rows + r) * 64, c[r][h])

INL void i8_rows(int rows, const uint8_t *a, const uint8_t *b, int chunks, uint8_t *acc)
{
    NARROW_BODY(DOT_I8);
}

INL void bf16_rows(int rows, const uint8_t *a, const uint8_t *b, int chunks, uint8_t *acc)
{
    NARROW_BODY(DOT_BF16);
}

#define ROWS(R)                                                               \
    static void i8_##R(const void *a, const void *b, int chunks, void *acc)   \
    {                                                                         \
        i8_rows(R, a, b, chunks, acc);                                        \
    }                                                                         \
    static void bf16_##R(const void *a, const void *b, int chunks, void *acc) \
    {                                                                         \
        bf16_rows(R, a, b, chunks, acc);                                      \
    }
#define EACH_ROW(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
EACH_ROW(ROWS)

static void pack_row_bf16(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *scale)
{
    (void)fine;
    (void)scale;
    uint8_t *out = dst;
    for (int64_t i = 0; i < k; i += 32, out += 64 * (ptrdiff_t)rows) {
        const int64_t left = k - i;
        const __mmask32 all = left >= 32 ? 0xffffffffu : (1u << left) - 1u;
        const __m512 low = _mm512_maskz_loadu_ps((__mmask16)all, x + i);
        const __m512 high = _mm512_maskz_loadu_ps((__mmask16)(all >> 16), x + i + 16);
        _mm512_storeu_si512(out, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

void st_cpu_fill_narrow_vnni(st_cpu_kernels *k)
{
    k->i8.mr = k->bf16.mr = MR;
    k->i8.row_unit = k->bf16.row_unit = 1;
    k->bf16.pack_row = pack_row_bf16;
#define SET(R)                 \
    k->i8.product[R] = i8_##R; \
    k->bf16.product[R] = bf16_##R;
    EACH_ROW(SET)
#undef SET
    st_cpu_fill_attention_vnni(k);
}
