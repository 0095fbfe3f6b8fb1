/* product_body.h: matrix products of packed operands (layouts in cpu_kernels.h and cpu_pack.h). Included by the shells
 * after a vector wrapper; ST_LEVEL names the level. */
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/cpu_pack.h"
#include "math_body.h"
#include "quads.h"
#include "quant/quant.h"

/* ---- many rows: B is f32 ---- */

INL void product_columns(int rows, const float *a, const float *b, int chunks, float *acc, bool first, int column,
                         const st_cpu_ahead *ahead)
{
    st_cpu_ahead fetch = ahead != NULL ? *ahead : (st_cpu_ahead){.rows = 0};
    vf c[ST_MR][ST_NV];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_NV; v++) c[r][v] =
        first ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
    b += column;
    for (int i = 0; i < chunks; i++, a += 16 * (rows - 1)) {
        if (ahead != NULL && fetch.rows > 0 && i >= chunks - 16) {
            __builtin_prefetch(fetch.out, 1);
            __builtin_prefetch(fetch.out + ST_CPU_PANEL - 1, 1);
            fetch.out += fetch.out_stride;
            fetch.rows--;
        }
        for (int four = 0; four < 4; four++, a += 4, b += 4 * ST_CPU_PANEL) {
            if (ahead != NULL) {
                __builtin_prefetch(fetch.lines, 0, 2);
                fetch.lines += 64;
            }
            UNROLL for (int k = 0; k < 4; k++)
            {
                vf w[ST_NV];
                UNROLL for (int v = 0; v < ST_NV; v++) w[v] = v_load(b + k * ST_CPU_PANEL + v * VL);
                UNROLL for (int r = 0; r < rows; r++)
                {
                    const vf x = v_set1(a[r * 16 + k]);
                    UNROLL for (int v = 0; v < ST_NV; v++) v_add_product(&c[r][v], w[v], x);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_NV; v++)
        v_store(acc + tile_at(rows, r, column + v * VL), c[r][v]);
}

#define PRODUCT(R)                                                                              \
    static void product_##R(const float *a, const float *b, int chunks, float *acc, bool first) \
    {                                                                                           \
        for (int column = 0; column < ST_CPU_PANEL; column += ST_NV * VL)                       \
            product_columns(R, a, b, chunks, acc, first, column, NULL);                         \
    }

static void product_ahead(const float *a, const float *b, int chunks, float *acc, bool first, const st_cpu_ahead *ahead)
{
    product_columns(ST_MR, a, b, chunks, acc, first, 0, ahead);
    for (int column = ST_NV * VL; column < ST_CPU_PANEL; column += ST_NV * VL)
        product_columns(ST_MR, a, b, chunks, acc, first, column, NULL);
}

/* ---- packed types: 32 k of VL columns, in groups that share their loads ---- */

INL int type_groups(st_cpu_wtype t)
{
    return t >= ST_CPU_W_Q4_0 ? 4 : 8;
}

/* What a block of 32 k needs beside its quants, for nv vectors of columns. */
typedef struct block_head {
    vf scale[8], offset[8]; /* weight = quant * scale + offset */
    vi high[8];             /* fifth bits */
} block_head;

INL void head_load(st_cpu_wtype t, const uint8_t *block, int column, int nv, block_head *h)
{
    if (t < ST_CPU_W_Q8_0)
        return;
    UNROLL for (int v = 0; v < nv; v++)
    {
        const int c = column + v * VL;
        h->scale[v] = v_load_f16((const uint16_t *)(const void *)block + c);
        if (t == ST_CPU_W_Q4_1 || t == ST_CPU_W_Q5_1)
            h->offset[v] = v_load_f16((const uint16_t *)(const void *)block + ST_CPU_PANEL + c);
        else
            h->offset[v] = v_mul(h->scale[v], v_set1(t == ST_CPU_W_Q8_0   ? -128.0f
                                                     : t == ST_CPU_W_Q4_0 ? -8.0f
                                                                          : -16.0f));
        if (t == ST_CPU_W_Q5_0)
            h->high[v] = vi_load(block + 64 + c * 4);
        if (t == ST_CPU_W_Q5_1)
            h->high[v] = vi_load(block + 128 + c * 4);
    }
}

INL const uint8_t *quants_of(st_cpu_wtype t, const uint8_t *block)
{
    return block + (t == ST_CPU_W_Q5_1   ? 256
                    : t == ST_CPU_W_Q5_0 ? 192
                    : t == ST_CPU_W_Q4_1 ? 128
                    : t >= ST_CPU_W_Q8_0 ? 64
                                         : 0);
}

/* Element j of group g as floats: j 0..3 is k = 4 g + j; for the 4 and 5-bit types j 4..7 is k = 16 + 4 g + j - 4.
 * raw: the group's dword of each column, for the types that share one. */
INL vf weight(st_cpu_wtype t, const uint8_t *q, int g, int j, int c, vi raw, vi high, vf scale, vf offset)
{
    switch (t) {
    case ST_CPU_W_F32:
        return v_load((const float *)(const void *)q + (4 * g + j) * ST_CPU_PANEL + c);
    case ST_CPU_W_F16:
        return v_load_f16((const uint16_t *)(const void *)q + (4 * g + j) * ST_CPU_PANEL + c);
    case ST_CPU_W_BF16: {
        const vi pair = vi_load(q + (2 * g + j / 2) * 128 + c * 4);
        return vi_as_float(j % 2 ? vi_and(pair, vi_set1((int)0xffff0000)) : vi_shl(pair, 16));
    }
    case ST_CPU_W_Q8_0:
        return v_fma(vi_byte(raw, j), scale, offset);
    case ST_CPU_W_Q4_0:
    case ST_CPU_W_Q4_1:
        return v_fma(vi_low4(j < 4 ? vi_shr(raw, 8 * j) : vi_shr(raw, 8 * (j - 4) + 4)), scale, offset);
    default: { /* the fifth bit, moved to bit 4 */
        const vi h = j == 0 ? vi_shl(high, 4) : vi_shr(high, j < 4 ? 8 * j - 4 : 8 * (j - 4));
        return v_fma(vi_low5(j < 4 ? vi_shr(raw, 8 * j) : vi_shr(raw, 8 * (j - 4) + 4), h), scale, offset);
    }
    }
}

INL void group_load(st_cpu_wtype t, const uint8_t *q, int g, int column, int nv, const block_head *h, vi *raw, vi *high)
{
    UNROLL for (int v = 0; v < nv; v++)
    {
        raw[v] = t >= ST_CPU_W_Q8_0 ? vi_load(q + g * 128 + (column + v * VL) * 4) : vi_set1(0);
        high[v] = t >= ST_CPU_W_Q5_0 ? vi_shr(h->high[v], g) : vi_set1(0);
    }
}

INL void expand_type(st_cpu_wtype t, const uint8_t *block, int n_block, float *out)
{
    const size_t bytes = st_cpu_block_bytes(t);
    const int shared = ST_CPU_BLOCK / type_groups(t);
    for (int i = 0; i < n_block; i++, block += bytes, out += ST_CPU_BLOCK * ST_CPU_PANEL) {
        for (int column = 0; column < ST_CPU_PANEL; column += 2 * VL) {
            block_head h;
            head_load(t, block, column, 2, &h);
            for (int g = 0; g < type_groups(t); g++) {
                vi raw[2], high[2];
                group_load(t, quants_of(t, block), g, column, 2, &h, raw, high);
                UNROLL for (int j = 0; j < shared; j++)
                {
                    const int k = j < 4 ? 4 * g + j : 16 + 4 * g + j - 4;
                    UNROLL for (int v = 0; v < 2; v++) v_store(out + k * ST_CPU_PANEL + column + v * VL,
                                                               weight(t, quants_of(t, block), g, j, column + v * VL,
                                                                      raw[v], high[v], h.scale[v], h.offset[v]));
                }
            }
        }
    }
}

/* ---- few rows: B is expanded in registers; `sets` accumulators a row and vector take turns to hide the latency ----
 *
 * The weights come from memory once, and that must not stop while a few lines are multiplied by many rows: what lies SKINNY_AHEAD
 * further on is fetched into the second cache, each line once. Columns that take several passes do so over parts of a panel, so
 * that each has its share of the lines. */

enum { SKINNY_AHEAD = 4096 }; /* bytes, and those of a part */

/* acc = (first ? 0 : acc) + A B for nv vectors of columns */
INL void skinny_columns(st_cpu_wtype t, int rows, int nv, int sets, const float *a, const uint8_t *block, int n_block,
                        float *acc, int column, bool first)
{
    vf c[4][ST_SKINNY_ROWS][4];
    UNROLL for (int s = 0; s < sets; s++) UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++)
        c[s][r][v] = s > 0 || first ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
    const size_t bytes = st_cpu_block_bytes(t);
    const int shared = ST_CPU_BLOCK / type_groups(t), passes = ST_CPU_PANEL / (nv * VL);
    const int shares = passes * type_groups(t), lines = ((int)bytes / 64 + shares - 1) / shares;
    for (int i = 0; i < n_block; i++, block += bytes, a += 32 * rows) {
        const uint8_t *ahead = block + SKINNY_AHEAD + column / (nv * VL) * lines * type_groups(t) * 64;
        block_head h;
        head_load(t, block, column, nv, &h);
        const uint8_t *q = quants_of(t, block);
        for (int g = 0; g < type_groups(t); g++, ahead += 64 * lines) {
            UNROLL for (int l = 0; l < lines; l++) __builtin_prefetch(ahead + 64 * l, 0, 2);
            vi raw[4], high[4];
            group_load(t, q, g, column, nv, &h, raw, high);
            const float *x = a + g / 4 * 16 * rows + g % 4 * 4;
            UNROLL for (int j = 0; j < shared; j++)
            {
                vf w[4];
                UNROLL for (int v = 0; v < nv; v++) w[v] =
                    weight(t, q, g, j, column + v * VL, raw[v], high[v], h.scale[v], h.offset[v]);
                UNROLL for (int r = 0; r < rows; r++)
                {
                    const vf xr = v_set1(x[j / 4 * 16 * rows + r * 16 + j % 4]);
                    UNROLL for (int v = 0; v < nv; v++) c[j % sets][r][v] = v_fma(w[v], xr, c[j % sets][r][v]);
                }
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++)
    {
        UNROLL for (int v = 0; v < nv; v++)
        {
            vf sum = c[0][r][v];
            UNROLL for (int s = 1; s < sets; s++) sum = v_add(sum, c[s][r][v]);
            v_store(acc + tile_at(rows, r, column + v * VL), sum);
        }
    }
}

INL void skinny(st_cpu_wtype t, int rows, int nv, int sets, const float *a, const uint8_t *blocks, int n_block,
                float *acc)
{
    const int bytes = (int)st_cpu_block_bytes(t), step = SKINNY_AHEAD / bytes;
    if (nv * VL == ST_CPU_PANEL) {
        skinny_columns(t, rows, nv, sets, a, blocks, n_block, acc, 0, true);
        return;
    }
    for (int b = 0; b < n_block || b == 0; b += step, a += 32 * rows * step, blocks += bytes * step) {
        const int n = n_block - b < step ? n_block - b : step;
        for (int column = 0; column < ST_CPU_PANEL; column += nv * VL)
            skinny_columns(t, rows, nv, sets, a, blocks, n, acc, column, b == 0);
    }
}

#define SKINNY_TYPE(T, R, NVEC, SETS)                                                            \
    static void skinny_##T##_##R(const float *a, const uint8_t *blocks, int n_block, float *acc) \
    {                                                                                            \
        skinny(ST_CPU_W_##T, R, NVEC, SETS, a, blocks, n_block, acc);                            \
    }
#define SKINNY(R, NVEC, SETS)        \
    SKINNY_TYPE(F32, R, NVEC, SETS)  \
    SKINNY_TYPE(F16, R, NVEC, SETS)  \
    SKINNY_TYPE(BF16, R, NVEC, SETS) \
    SKINNY_TYPE(Q8_0, R, NVEC, SETS) \
    SKINNY_TYPE(Q4_0, R, NVEC, SETS) \
    SKINNY_TYPE(Q4_1, R, NVEC, SETS) \
    SKINNY_TYPE(Q5_0, R, NVEC, SETS) \
    SKINNY_TYPE(Q5_1, R, NVEC, SETS)
ST_SKINNY(SKINNY)

#define EXPAND_TYPE(T)                                                     \
    static void expand_##T(const uint8_t *blocks, int n_block, float *out) \
    {                                                                      \
        expand_type(ST_CPU_W_##T, blocks, n_block, out);                   \
    }
EXPAND_TYPE(F16)
EXPAND_TYPE(BF16)
EXPAND_TYPE(Q8_0)
EXPAND_TYPE(Q4_0)
EXPAND_TYPE(Q4_1)
EXPAND_TYPE(Q5_0)
EXPAND_TYPE(Q5_1)

/* The types that the integer kernels alone read in registers: their quants as bytes, four k at a time. */
INL void expand_quads(st_cpu_wtype t, const uint8_t *block, int n_block, float *out)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK;
    for (int i = 0; i < n_block * parts; i++, out += ST_CPU_BLOCK * ST_CPU_PANEL) {
        const uint8_t *const head = block + st_cpu_block_bytes(t) * (size_t)(i / parts);
        const uint8_t *const part = part_of(t, head, i % parts);
        for (int c = 0; c < ST_CPU_PANEL; c += VL) {
            for (int g = 0; g < 2; g++) {
                vf scale, offset;
                part_scale(t, head, part, g, c, &scale, &offset);
                offset = type_has_min(t) ? (t >= ST_CPU_W_Q2_K ? v_sub(v_zero(), offset) : offset)
                                         : v_mul(scale, v_set1((float)-type_zero(t)));
                for (int four = 0; four < 4; four++) {
                    const vi w = quad_at(t, part, 4 * g + four, c);
                    UNROLL for (int j = 0; j < 4; j++)
                        v_store(out + (16 * g + 4 * four + j) * ST_CPU_PANEL + c, v_fma(vi_byte(w, j), scale, offset));
                }
            }
        }
    }
}

#define EXPAND_QUADS(T)                                                    \
    static void expand_##T(const uint8_t *blocks, int n_block, float *out) \
    {                                                                      \
        expand_quads(ST_CPU_W_##T, blocks, n_block, out);                  \
    }
EXPAND_QUADS(IQ4_NL)
EXPAND_QUADS(Q2_K)
EXPAND_QUADS(Q3_K)
EXPAND_QUADS(Q4_K)
EXPAND_QUADS(Q5_K)
EXPAND_QUADS(Q6_K)

/* ---- around the products ---- */

static void pack_row(const float *x, int64_t k, float *dst, int rows)
{
    const int64_t end = (k + ST_CPU_BLOCK - 1) / ST_CPU_BLOCK * ST_CPU_BLOCK;
    for (int64_t i = 0; i < end; i += 16, dst += 16 * (ptrdiff_t)rows) {
        UNROLL for (int j = 0; j < 16; j += VL)
        {
            const int64_t left = k - (i + j);
            v_store(dst + j, left >= VL ? v_load(x + i + j) : left > 0 ? v_load_n(x + i + j, (int)left) : v_zero());
        }
    }
}

/* Adds the residual and stores n <= VL columns of a row. */
INL void finish_store(const st_cpu_epilogue *e, vf x, int64_t row, int64_t col, int n)
{
    float *out = e->out + row * e->out_stride + col;
    __builtin_prefetch(out + ST_CPU_PANEL, 1); /* the next panel's columns: so far apart, they are nobody's to foresee */
    const float *residual = e->residual != NULL ? e->residual + row * e->residual_stride + col : NULL;
    if (residual != NULL)
        x = v_add(x, n == VL ? v_load(residual) : v_load_n(residual, n));
    if (n == VL)
        v_store(out, x);
    else
        v_store_n(out, x, n);
}

INL void finish_act(sotto_activation act, const st_cpu_epilogue *e, const float *acc, int tile_rows, int rows,
                    int64_t row, int64_t col, int cols)
{
    for (int c = 0; c < cols; c += VL) {
        const int n = cols - c < VL ? cols - c : VL;
        const vf bias = e->bias == NULL ? v_set1(-0.0f) /* changes no number, not even the sign of a zero */
                        : n == VL       ? v_load(e->bias + col + c)
                                        : v_load_n(e->bias + col + c, n);
        const float *sums = acc + tile_at(tile_rows, 0, c);
        for (int r = 0; r < rows; r++)
            finish_store(e, activate(act, v_add(v_load(sums + r * 16), bias)), row + r, col + c, n);
    }
}

static void finish(const st_cpu_epilogue *e, const float *acc, int tile_rows, int rows, int64_t row, int64_t col,
                   int cols)
{
    switch (e->act) {
    case SOTTO_ACT_GELU:
        finish_act(SOTTO_ACT_GELU, e, acc, tile_rows, rows, row, col, cols);
        break;
    case SOTTO_ACT_RELU:
        finish_act(SOTTO_ACT_RELU, e, acc, tile_rows, rows, row, col, cols);
        break;
    case SOTTO_ACT_SILU:
        finish_act(SOTTO_ACT_SILU, e, acc, tile_rows, rows, row, col, cols);
        break;
    case SOTTO_ACT_GELU_TANH:
        finish_act(SOTTO_ACT_GELU_TANH, e, acc, tile_rows, rows, row, col, cols);
        break;
    default:
        finish_act(SOTTO_ACT_NONE, e, acc, tile_rows, rows, row, col, cols);
    }
}

#include "narrow_body.h"

/* Squares of VL rows and VL columns, transposed in registers. */
static void pack_panel(const float *x, ptrdiff_t stride, int rows, int64_t k, int64_t k_padded, float *panel)
{
    for (int r = 0; r < ST_CPU_PANEL; r += VL) {
        for (int64_t i = 0; i < k; i += VL) {
            const int n = k - i < VL ? (int)(k - i) : VL;
            vf square[VL];
            UNROLL for (int j = 0; j < VL; j++)
            {
                const float *at = x + (r + j) * stride + i;
                square[j] = r + j >= rows ? v_zero() : n == VL ? v_load(at) : v_load_n(at, n);
            }
            v_transpose(square);
            UNROLL for (int j = 0; j < VL; j++) if (j < n) v_store(panel + (i + j) * ST_CPU_PANEL + r, square[j]);
        }
    }
    if (k_padded > k)
        memset(panel + k * ST_CPU_PANEL, 0, sizeof(float) * ST_CPU_PANEL * (size_t)(k_padded - k));
}

static void scale_tile(float *acc, int rows, const float *factor)
{
    for (int half = 0; half < 2; half++)
        for (int r = 0; r < rows; r++, acc += 16)
            UNROLL for (int j = 0; j < 16; j += VL) v_store(acc + j, v_mul(v_load(acc + j), v_set1(factor[r])));
}

static void softmax_tile(float *tile, int rows, int chunks, float *max, float *sum, float *rescale)
{
    for (int r = 0; r < rows; r++) {
        float *p = tile + r * 16;
        const ptrdiff_t step = 16 * (ptrdiff_t)rows;
        vf top[16 / VL];
        UNROLL for (int j = 0; j < 16 / VL; j++) top[j] = v_set1(max[r]);
        for (int i = 0; i < chunks; i++)
            UNROLL for (int j = 0; j < 16 / VL; j++) top[j] = v_max(top[j], v_load(p + i * step + j * VL));
        UNROLL for (int j = 1; j < 16 / VL; j++) top[0] = v_max(top[0], top[j]);
        const float new_max = v_hmax(top[0]);
        /* a row that has seen -infinity only keeps it as its maximum; 0 in its place gives exp2(-infinity) = 0, not NaN */
        const vf m = v_set1(new_max > -3.402823466e38f ? new_max : 0.0f);
        vf total[16 / VL];
        UNROLL for (int j = 0; j < 16 / VL; j++) total[j] = v_zero();
        for (int i = 0; i < chunks; i++) {
            UNROLL for (int j = 0; j < 16 / VL; j++)
            {
                const vf e = v_exp2(v_sub(v_load(p + i * step + j * VL), m));
                v_store(p + i * step + j * VL, e);
                total[j] = v_add(total[j], e);
            }
        }
        UNROLL for (int j = 1; j < 16 / VL; j++) total[0] = v_add(total[0], total[j]);
        float one[VL];
        v_store(one, v_exp2(v_sub(v_set1(max[r]), m)));
        rescale[r] = one[0];
        sum[r] = sum[r] * one[0] + v_hsum(total[0]);
        max[r] = new_max;
    }
}

enum { POWERS = VL == 16 ? 2 : 1 }; /* chunks at a time, as many as there are registers for: they come in pairs */

static void power_tile(float *tile, int rows, int chunks, float *sum)
{
    const ptrdiff_t step = 16 * (ptrdiff_t)rows;
    for (int r = 0; r < rows; r++) {
        float *p = tile + r * 16;
        vf total[POWERS * 16 / VL];
        UNROLL for (int j = 0; j < POWERS * 16 / VL; j++) total[j] = v_zero();
        for (int i = 0; i < chunks; i += POWERS, p += POWERS * step) {
            UNROLL for (int j = 0; j < POWERS * 16 / VL; j++)
            {
                float *at = p + j * VL / 16 * step + j * VL % 16;
                const vf e = v_power(v_load(at));
                v_store(at, e);
                total[j] = v_add(total[j], e);
            }
        }
        UNROLL for (int j = 1; j < POWERS * 16 / VL; j++) total[0] = v_add(total[0], total[j]);
        sum[r] += v_hsum(total[0]);
    }
}

#define PRODUCT_LIST(X) X(1) X(2) X(3) X(4)
PRODUCT_LIST(PRODUCT)
#define PRODUCT_LIST_6(X) X(5) X(6)
#define PRODUCT_LIST_12(X) X(7) X(8) X(9) X(10) X(11) X(12)
#if ST_PRODUCT_ROWS >= 6
PRODUCT_LIST_6(PRODUCT)
#endif
#if ST_PRODUCT_ROWS >= 12
PRODUCT_LIST_12(PRODUCT)
#endif

void LEVEL(st_cpu_fill_product)(st_cpu_kernels *k)
{
    _Static_assert(ST_PRODUCT_ROWS == ST_MR, "the list of product kernels goes to ST_MR");
    k->mr = ST_MR;
    k->skinny_rows = ST_SKINNY_ROWS;
    k->product_ahead = product_ahead;
    memset(k->product, 0, sizeof k->product);
    memset(k->skinny, 0, sizeof k->skinny);
#define SET(R) k->product[R] = product_##R;
    PRODUCT_LIST(SET)
#if ST_PRODUCT_ROWS >= 6
    PRODUCT_LIST_6(SET)
#endif
#if ST_PRODUCT_ROWS >= 12
    PRODUCT_LIST_12(SET)
#endif
#undef SET
#define SET_SKINNY(R, NVEC, SETS)                  \
    k->skinny[ST_CPU_W_F32][R] = skinny_F32_##R;   \
    k->skinny[ST_CPU_W_F16][R] = skinny_F16_##R;   \
    k->skinny[ST_CPU_W_BF16][R] = skinny_BF16_##R; \
    k->skinny[ST_CPU_W_Q8_0][R] = skinny_Q8_0_##R; \
    k->skinny[ST_CPU_W_Q4_0][R] = skinny_Q4_0_##R; \
    k->skinny[ST_CPU_W_Q4_1][R] = skinny_Q4_1_##R; \
    k->skinny[ST_CPU_W_Q5_0][R] = skinny_Q5_0_##R; \
    k->skinny[ST_CPU_W_Q5_1][R] = skinny_Q5_1_##R;
    ST_SKINNY(SET_SKINNY)
#undef SET_SKINNY
    k->expand[ST_CPU_W_F32] = NULL;
    k->expand[ST_CPU_W_F16] = expand_F16;
    k->expand[ST_CPU_W_BF16] = expand_BF16;
    k->expand[ST_CPU_W_Q8_0] = expand_Q8_0;
    k->expand[ST_CPU_W_Q4_0] = expand_Q4_0;
    k->expand[ST_CPU_W_Q4_1] = expand_Q4_1;
    k->expand[ST_CPU_W_Q5_0] = expand_Q5_0;
    k->expand[ST_CPU_W_Q5_1] = expand_Q5_1;
    k->expand[ST_CPU_W_IQ4_NL] = expand_IQ4_NL;
    k->expand[ST_CPU_W_Q2_K] = expand_Q2_K;
    k->expand[ST_CPU_W_Q3_K] = expand_Q3_K;
    k->expand[ST_CPU_W_Q4_K] = expand_Q4_K;
    k->expand[ST_CPU_W_Q5_K] = expand_Q5_K;
    k->expand[ST_CPU_W_Q6_K] = expand_Q6_K;
    k->pack_row = pack_row;
    k->finish = finish;
    k->pack_panel = pack_panel;
    k->softmax_tile = softmax_tile;
    k->power_tile = power_tile;
    k->scale_tile = scale_tile;
    fill_narrow(k);
}
