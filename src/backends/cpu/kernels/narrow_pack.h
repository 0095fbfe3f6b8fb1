/* narrow_pack.h: rows of f32 as unsigned bytes, one or two for a number (contract in cpu_kernels.h). Included after a vec_*.h. */

#include "backends/cpu/cpu_pack.h"

/* Numbers of this size and above are integers: adding it rounds to nearest, ties to even. */
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */

/* VL numbers from x + i, zeros from k on */
INL vf narrow_load(const float *x, int64_t i, int64_t k)
{
    const int64_t left = k - i;
    return left >= VL ? v_load(x + i) : left > 0 ? v_load_n(x + i, (int)left) : v_zero();
}

/* What becomes of a row's numbers: round(clamp(x * factor, least, most)) + zero, in the low bits. */
typedef struct narrow_steps {
    vf factor, least, most;
    vi zero;
} narrow_steps;

INL vi narrow_step(const narrow_steps *s, vf x)
{
    /* the low bits of (v + ROUNDER)'s bits are v's; zero comes on top in the same bits */
    const vf v = v_min(v_max(v_mul(x, s->factor), s->least), s->most);
    return vi_add(v_as_int(v_add(v, v_set1(ROUNDER))), s->zero);
}

/* The range of a row, zero included; NaN when a number of it is not finite. */
INL float narrow_range(const float *x, int64_t k, float *lowest)
{
    vf low[4], high[4], check[4]; /* side by side, to hide how long each takes */
    UNROLL for (int j = 0; j < 4; j++) low[j] = high[j] = check[j] = v_zero();
    for (int64_t i = 0; i < k; i += 4 * VL) {
        vf v[4];
        if (k - i >= 4 * VL)
            UNROLL for (int j = 0; j < 4; j++) v[j] = v_load(x + i + j * VL);
        else
            UNROLL for (int j = 0; j < 4; j++) v[j] = narrow_load(x, i + j * VL, k);
        UNROLL for (int j = 0; j < 4; j++)
        {
            low[j] = v_min(v[j], low[j]);
            high[j] = v_max(v[j], high[j]);
            check[j] = v_fma(v[j], v_zero(), check[j]);
        }
    }
    UNROLL for (int j = 1; j < 4; j++)
    {
        low[0] = v_min(low[j], low[0]);
        high[0] = v_max(high[j], high[0]);
        check[0] = v_add(check[j], check[0]);
    }
    *lowest = -v_hmax(v_sub(v_zero(), low[0]));
    return v_hmax(high[0]) - *lowest + v_hsum(check[0]);
}

/* A whole chunk, without the second bytes. */
INL void narrow_chunk(const narrow_steps *s, const float *x, uint8_t *out)
{
#if defined(ST_OWN_BYTES)
    UNROLL for (int j = 0; j < ST_CPU_I8_BLOCK; j += 4 * VL)
    {
        vf v[4];
        UNROLL for (int i = 0; i < 4; i++) v[i] = v_mul(v_load(x + j + i * VL), s->factor);
        v_store_u8(out + j, v, s->zero);
    }
#else
    UNROLL for (int j = 0; j < ST_CPU_I8_BLOCK; j += VL) vi_store_bytes(out + j, narrow_step(s, v_load(x + j)));
#endif
}

/* The scale of a row, and how its numbers become bytes. */
INL narrow_steps narrow_scale(const float *x, int64_t k, bool fine, st_cpu_row_scale *scale)
{
    const float steps = fine ? 65535.0f : 255.0f;
    float lowest;
    const float range = narrow_range(x, k, &lowest);
    const float inverse = range > 0 ? steps / range : 0.0f;
    const bool usable = range > 0 && range < 3e38f && inverse < 3e38f;
    const float zero = usable ? (-lowest * inverse + ROUNDER) - ROUNDER : 0.0f;
    const int32_t whole = (int32_t)zero;
    scale->zero = fine ? whole >> 8 : whole;
    scale->fine_zero = fine ? whole & 255 : 0;
    scale->scale = usable ? range / steps : range - range; /* of a range that is not finite: NaN */
    return (narrow_steps){v_set1(usable ? inverse : 0.0f), v_set1(-zero), v_set1(steps - zero), vi_set1(whole)};
}

__attribute__((unused)) static void pack_row_i8(const float *x, int64_t k, void *dst, void *fine, int rows,
                                                st_cpu_row_scale *scale)
{
    const narrow_steps s = narrow_scale(x, k, fine != NULL, scale);
    const ptrdiff_t step = ST_CPU_I8_BLOCK * (ptrdiff_t)rows;
    uint8_t *out = dst, *low_out = fine;
    int64_t i = 0;
    for (; fine == NULL && i + ST_CPU_I8_BLOCK <= k; i += ST_CPU_I8_BLOCK, out += step) {
        UNROLL for (int j = 0; j < ST_CPU_I8_BLOCK; j += 16)
            __builtin_prefetch(x + i + j + k); /* comes next, as a rule */
        narrow_chunk(&s, x + i, out);
    }
    for (; i < k; i += ST_CPU_I8_BLOCK, out += step) {
        for (int j = 0; j < ST_CPU_I8_BLOCK; j += VL) {
            const vi bits = narrow_step(&s, narrow_load(x, i + j, k));
            vi_store_bytes(out + j, fine != NULL ? vi_shr(bits, 8) : bits);
            if (fine != NULL)
                vi_store_bytes(low_out + j, bits);
        }
        const int64_t left = k - i < ST_CPU_I8_BLOCK ? k - i : ST_CPU_I8_BLOCK;
        memset(out + left, 0, (size_t)(ST_CPU_I8_BLOCK - left));
        if (fine != NULL) {
            memset(low_out + left, 0, (size_t)(ST_CPU_I8_BLOCK - left));
            low_out += step;
        }
    }
}
