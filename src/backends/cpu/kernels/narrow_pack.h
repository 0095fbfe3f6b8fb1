/* narrow_pack.h: rows of f32 as unsigned bytes, one or two for a number (contract in cpu_kernels.h). Included after a vec_*.h. */

/* Numbers of this size and above are integers: adding it rounds to nearest, ties to even. */
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */

/* VL numbers from x + i, zeros from k on */
INL vf narrow_load(const float *x, int64_t i, int64_t k)
{
    const int64_t left = k - i;
    return left >= VL ? v_load(x + i) : left > 0 ? v_load_n(x + i, (int)left) : v_zero();
}

static void pack_row_i8(const float *x, int64_t k, void *dst, void *fine, int rows, st_cpu_row_scale *scale)
{
    const float steps = fine != NULL ? 65535.0f : 255.0f;
    vf low = v_zero(), high = v_zero(), check = v_zero();
    for (int64_t i = 0; i < k; i += VL) {
        const vf v = narrow_load(x, i, k);
        low = v_min(v, low);
        high = v_max(v, high);
        check = v_add(check, v_mul(v, v_zero()));
    }
    const float lowest = -v_hmax(v_sub(v_zero(), low)), range = v_hmax(high) - lowest;
    const float inverse = range > 0 ? steps / range : 0.0f;
    const bool usable = range > 0 && range < 3e38f && inverse < 3e38f;
    const float zero = usable ? (-lowest * inverse + ROUNDER) - ROUNDER : 0.0f;
    const int32_t whole = (int32_t)zero;
    scale->zero = fine != NULL ? whole >> 8 : whole;
    scale->fine_zero = fine != NULL ? whole & 255 : 0;
    scale->scale = (usable ? range / steps : 0.0f) + v_hsum(check);
    /* the low bits of (v + ROUNDER)'s bits are v's; zero comes on top in the same bits */
    const vf factor = v_set1(usable ? inverse : 0.0f), least = v_set1(-zero), most = v_set1(steps - zero);
    const vi offset = vi_set1(whole);
    uint8_t *out = dst, *low_out = fine;
    for (int64_t i = 0; i < k; i += ST_CPU_I8_BLOCK, out += ST_CPU_I8_BLOCK * (ptrdiff_t)rows) {
        for (int j = 0; j < ST_CPU_I8_BLOCK; j += VL) {
            const vf v = v_min(v_max(v_mul(narrow_load(x, i + j, k), factor), least), most);
            const vi bits = vi_add(v_as_int(v_add(v, v_set1(ROUNDER))), offset);
            vi_store_bytes(out + j, fine != NULL ? vi_shr(bits, 8) : bits);
            if (fine != NULL)
                vi_store_bytes(low_out + j, bits);
        }
        const int64_t left = k - i < ST_CPU_I8_BLOCK ? k - i : ST_CPU_I8_BLOCK;
        memset(out + left, 0, (size_t)(ST_CPU_I8_BLOCK - left));
        if (fine != NULL) {
            memset(low_out + left, 0, (size_t)(ST_CPU_I8_BLOCK - left));
            low_out += ST_CPU_I8_BLOCK * (ptrdiff_t)rows;
        }
    }
}
