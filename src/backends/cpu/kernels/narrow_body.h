/* narrow_body.h: 8-bit products for levels without 8-bit dot products, and the finishing that all levels share
 * (contracts in cpu_kernels.h). Included by product_body.h. The integers are the same on every level, and so are the numbers
 * made of them: only basic operations, each rounded once. */

#include "narrow_pack.h"

#if !defined(ST_OWN_I8)
INL void product_i8_columns(int rows, const uint8_t *a, const uint8_t *b, int chunks, int32_t *acc, int column)
{
    vi c[4][2];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++) c[r][v] = vi_set1(0);
    b += 4 * column;
    for (int i = 0; i < chunks; i++, a += 64 * (rows - 1)) {
        for (int four = 0; four < 16; four++, a += 4, b += 4 * ST_CPU_PANEL) {
            vi w[2];
            UNROLL for (int v = 0; v < 2; v++) w[v] = vi_load(b + 4 * v * VL);
            UNROLL for (int r = 0; r < rows; r++)
            {
                int32_t x;
                memcpy(&x, a + 64 * r, sizeof x);
                UNROLL for (int v = 0; v < 2; v++) c[r][v] = vi_dot4(c[r][v], x, w[v]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < 2; v++)
        memcpy(acc + tile_at(rows, r, column + v * VL), &c[r][v], sizeof(vi));
}

#define PRODUCT_I8(R)                                                                                      \
    static void product_i8_##R(const void *a, const void *b, int chunks, void *acc)                        \
    {                                                                                                      \
        for (int column = 0; column < ST_CPU_PANEL; column += 2 * VL)                                      \
            product_i8_columns(R, (const uint8_t *)a, (const uint8_t *)b, chunks, (int32_t *)acc, column); \
    }
#define EACH_I8(X) X(1) X(2) X(3) X(4)
EACH_I8(PRODUCT_I8)

static void fill_i8(st_cpu_narrow *n)
{
    *n = (st_cpu_narrow){.mr = 4, .row_unit = 1, .pack_row = pack_row_i8};
#define SET_I8(R) n->product[R] = product_i8_##R;
    EACH_I8(SET_I8)
#undef SET_I8
}
#endif

static float to_i8(const float *x, int8_t *q, int64_t n)
{
    vf most = v_zero(), check = v_zero();
    for (int64_t i = 0; i < n; i += VL) {
        const vf v = narrow_load(x, i, n);
        check = v_add(check, v_mul(v, v_zero()));
        most = v_max(v_max(v, v_sub(v_zero(), v)), most);
    }
    const float max = v_hmax(most);
    if (v_hsum(check) != 0) /* something is not finite */
        return st_i8_pack(x, q, n);
    if (!(max >= 1e-30f)) {
        memset(q, 0, (size_t)n);
        return 0;
    }
    const vf factor = v_set1(127.0f / max), bound = v_set1(127.0f), least = v_set1(-127.0f);
    for (int64_t i = 0; i < n; i += VL) {
        const vf v = v_min(v_max(v_mul(narrow_load(x, i, n), factor), least), bound);
        const vi level = v_as_int(v_add(v, v_set1(ROUNDER)));
        if (n - i >= VL) {
            vi_store_bytes((uint8_t *)q + i, level);
            continue;
        }
        uint8_t bytes[VL];
        vi_store_bytes(bytes, level);
        memcpy(q + i, bytes, (size_t)(n - i));
    }
    return max / 127.0f;
}

static void pack_row_bf16(const float *x, int64_t k, float *dst, int rows)
{
    const int64_t end = (k + ST_CPU_BLOCK - 1) / ST_CPU_BLOCK * ST_CPU_BLOCK;
    for (int64_t i = 0; i < end; i += 16, dst += 16 * (ptrdiff_t)rows)
        UNROLL for (int j = 0; j < 16; j += VL) v_store(dst + j, v_round_bf16(narrow_load(x, i + j, k)));
}

/* acc - zero * sum of weights; of fine rows 256 times the high one and the low one, a sum of up to 39 bits that is rounded once:
 * of its low 16 bits and what is above them a float holds either */
INL vf finish_i8_sum(const int32_t *acc, int tile_rows, int r, int c, bool fine, int rows, vi sums,
                     const st_cpu_row_scale *scale)
{
    const vi high = vi_sub(vi_load(acc + tile_at(tile_rows, r, c)), vi_mul(sums, vi_set1(scale[r].zero)));
    if (!fine)
        return vi_float(high);
    const vi low = vi_sub(vi_load(acc + tile_at(tile_rows, rows + r, c)), vi_mul(sums, vi_set1(scale[r].fine_zero)));
    const vi carried = vi_add(high, vi_sar(low, 8)), byte = vi_set1(255);
    const vi above = vi_sar(carried, 8), below = vi_or(vi_shl(vi_and(carried, byte), 8), vi_and(low, byte));
    return v_add(v_mul(vi_float(above), v_set1(65536.0f)), vi_float(below));
}

INL void finish_i8_act(sotto_activation act, const st_cpu_epilogue *e, const int32_t *acc, int tile_rows, int rows,
                       bool fine, int64_t row, int64_t col, int cols, const st_cpu_row_scale *scale,
                       const uint8_t *header)
{
    const float *column_scale = (const float *)(const void *)header;
    for (int c = 0; c < cols; c += VL) {
        const int n = cols - c < VL ? cols - c : VL;
        const vf scales = v_load(column_scale + c);
        const vi sums = vi_load(header + 4 * ST_CPU_PANEL + 4 * c);
        const vf bias = e->bias == NULL ? v_zero()
                        : n == VL       ? v_load(e->bias + col + c)
                                        : v_load_n(e->bias + col + c, n);
        for (int r = 0; r < rows; r++) {
            const vf whole = finish_i8_sum(acc, tile_rows, r, c, fine, rows, sums, scale);
            vf x = v_mul(whole, v_mul(v_set1(scale[r].scale), scales));
            if (e->bias != NULL)
                x = v_add(x, bias);
            x = activate(act, x);
            finish_store(e, x, row + r, col + c, n);
        }
    }
}

static void finish_i8(const st_cpu_epilogue *e, const int32_t *acc, int tile_rows, int rows, bool fine, int64_t row,
                      int64_t col, int cols, const st_cpu_row_scale *scale, const uint8_t *header)
{
    if (fine && e->act == SOTTO_ACT_NONE) {
        finish_i8_act(SOTTO_ACT_NONE, e, acc, tile_rows, rows, true, row, col, cols, scale, header);
        return;
    }
    if (fine) {
        finish_i8_act(e->act, e, acc, tile_rows, rows, true, row, col, cols, scale, header);
        return;
    }
    switch (e->act) {
    case SOTTO_ACT_GELU:
        finish_i8_act(SOTTO_ACT_GELU, e, acc, tile_rows, rows, false, row, col, cols, scale, header);
        break;
    case SOTTO_ACT_RELU:
        finish_i8_act(SOTTO_ACT_RELU, e, acc, tile_rows, rows, false, row, col, cols, scale, header);
        break;
    case SOTTO_ACT_SILU:
        finish_i8_act(SOTTO_ACT_SILU, e, acc, tile_rows, rows, false, row, col, cols, scale, header);
        break;
    case SOTTO_ACT_GELU_TANH:
        finish_i8_act(SOTTO_ACT_GELU_TANH, e, acc, tile_rows, rows, false, row, col, cols, scale, header);
        break;
    default:
        finish_i8_act(SOTTO_ACT_NONE, e, acc, tile_rows, rows, false, row, col, cols, scale, header);
    }
}

static void fill_narrow(st_cpu_kernels *k)
{
#if !defined(ST_OWN_I8)
    fill_i8(&k->i8);
#endif
    k->to_i8 = to_i8;
    k->pack_row_bf16 = pack_row_bf16;
    k->finish_i8 = finish_i8;
}
