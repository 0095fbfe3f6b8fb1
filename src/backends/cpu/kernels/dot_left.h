/* dot_left.h: rows of the left side of block products (st_cpu_left8). Included after a vec_*.h and
 *   ST_DOT_WIDE_ZERO   what is left in wide bytes of weights: 128, or 0 when products take it off
 *   ST_DOT_START       what the integers of products start with, if not 0
 *   ST_DOT_FOLD        1, where expanded q3_k has ST_DOT_FOLD_ZERO in its bytes */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_LEFT_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_LEFT_H

#include "quads.h"

#if !defined(ST_DOT_START)
#define ST_DOT_START 0
#endif
#if !defined(ST_DOT_FOLD)
#define ST_DOT_FOLD 0
#endif

enum { ST_DOT_FOLD_ZERO = 124 };
enum { RECORD = sizeof(st_cpu_left8), RECORD_SCALE = 32, RECORD_FIX = 36 };
_Static_assert(offsetof(st_cpu_left8, scale) == RECORD_SCALE && offsetof(st_cpu_left8, fix) == RECORD_FIX, "a record");

/* Numbers of this size and above are integers: adding it rounds to nearest, ties to even. */
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */

/* One row; see st_cpu_left8. The sums of rounded numbers are exact, and NaN when one was not finite. */
static void pack_row(st_cpu_wtype t, const float *x, int64_t k, void *dst, int rows)
{
    const bool min = type_has_min(t), one = type_groups_of_part(t) == 1;
    const float zero = (float)(type_is_wide(t) ? ST_DOT_WIDE_ZERO : type_zero(t));
    const float zero_of_all = ST_DOT_FOLD && t == ST_CPU_W_Q3_K ? (float)ST_DOT_FOLD_ZERO : zero;
    uint8_t *out = dst;
    for (int64_t i = 0; i < k; i += ST_CPU_BLOCK, out += RECORD * (ptrdiff_t)rows) {
        vf v[32 / VL], most = v_zero(), sum[2] = {v_zero(), v_zero()};
        UNROLL for (int j = 0; j < 32 / VL; j++)
        {
            v[j] = v_load(x + i + j * VL);
            most = v_max(v_max(v[j], v_sub(v_zero(), v[j])), most);
        }
        const float max = v_hmax(most);
        const vf factor = v_set1(max >= 1e-30f ? 127.0f / max : 0.0f), rounder = v_set1(ROUNDER);
        UNROLL for (int j = 0; j < 32 / VL; j++)
        {
            const vf moved = v_add(v_mul(v[j], factor), rounder);
            vi_store_bytes(out + j * VL, v_as_int(moved));
            sum[j * VL / 16] = v_add(sum[j * VL / 16], v_sub(moved, rounder));
        }
        float s[2];
        if (one) {
            s[0] = v_hsum(v_add(sum[0], sum[1]));
            s[1] = 0;
        } else {
            s[0] = v_hsum(sum[0]);
            s[1] = v_hsum(sum[1]);
        }
        st_cpu_left8 rest = {.scale = max >= 1e-30f ? max / 127.0f : 0.0f};
        if (s[0] + s[1] != s[0] + s[1]) {
            memset(out, 0, 32);
            rest.scale = __builtin_nanf("");
            s[0] = s[1] = 0;
        }
        for (int g = 0; g < 2; g++) {
            const float scaled = rest.scale * (t >= ST_CPU_W_Q2_K ? -s[g] : s[g]);
            if (min)
                memcpy(&rest.fix[g], &scaled, sizeof scaled);
            else
                rest.fix[g] = ST_DOT_START + (int32_t)(-zero * s[g]);
        }
        rest.fix_of_all = ST_DOT_START + (int32_t)(-zero_of_all * (s[0] + s[1]));
        memcpy(out + RECORD_SCALE, &rest.scale, sizeof rest - RECORD_SCALE);
    }
}

#endif
