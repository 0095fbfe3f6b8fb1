/* rows_body.h: kernels over single rows: norms, softmax, elementwise, and attention of single queries over cells. Included
 * by the shells after a vector wrapper; ST_LEVEL names the level. */
#include <float.h>

#include "backends/cpu/cpu_kernels.h"
#include "math_body.h"

/* EACH(n) runs its statement for i = 0, VL, .. with `m` elements left for the statement (VL but for the last). */
#define EACH(n) for (int64_t i = 0, m = (n) < VL ? (n) : VL; i < (n); i += VL, m = (n)-i < VL ? (n)-i : VL)

INL vf row_load(const float *p, int64_t m)
{
    return m == VL ? v_load(p) : v_load_n(p, (int)m);
}
INL void row_store(float *p, vf v, int64_t m)
{
    if (m == VL)
        v_store(p, v);
    else
        v_store_n(p, v, (int)m);
}

/* Zero beyond the first m elements. */
INL vf row_keep(vf v, int64_t m)
{
    if (m == VL)
        return v;
    float t[VL];
    v_store(t, v);
    return v_load_n(t, (int)m);
}

#define MAP(NAME, FUNCTION)                                        \
    static void NAME(const float *x, float *y, int64_t n)          \
    {                                                              \
        EACH(n) row_store(y + i, FUNCTION(row_load(x + i, m)), m); \
    }
MAP(map_gelu, v_gelu)
MAP(map_silu, v_silu)
MAP(map_relu, v_relu)
MAP(map_sigmoid, v_sigmoid)
MAP(map_tanh, v_tanh)
MAP(map_sqrt, v_sqrt)
MAP(map_exp, v_exp)

static void add(const float *a, const float *b, float *y, int64_t n)
{
    EACH(n) row_store(y + i, v_add(row_load(a + i, m), row_load(b + i, m)), m);
}

static void mul(const float *a, const float *b, float *y, int64_t n)
{
    EACH(n) row_store(y + i, v_mul(row_load(a + i, m), row_load(b + i, m)), m);
}

/* y = act(a) * b */
#define GLU(ACT)                                                                                   \
    static void glu_##ACT(const float *a, const float *b, float *y, int64_t n)                     \
    {                                                                                              \
        EACH(n) row_store(y + i, v_mul(activate(ACT, row_load(a + i, m)), row_load(b + i, m)), m); \
    }
GLU(SOTTO_ACT_GELU)
GLU(SOTTO_ACT_RELU)
GLU(SOTTO_ACT_SILU)
GLU(SOTTO_ACT_GELU_TANH)

static void add1(const float *a, float b, float *y, int64_t n)
{
    EACH(n) row_store(y + i, v_add(row_load(a + i, m), v_set1(b)), m);
}

static void scale(const float *x, float a, float b, float *y, int64_t n)
{
    EACH(n) row_store(y + i, v_add(v_mul(row_load(x + i, m), v_set1(a)), v_set1(b)), m);
}

static void log10_floor(const float *x, float floor, float *y, int64_t n)
{
    EACH(n) row_store(y + i, v_log10(v_max(v_set1(floor), row_load(x + i, m))), m);
}

static void power(const float *re, const float *im, float *y, int64_t n)
{
    EACH(n)
    {
        const vf a = row_load(re + i, m), b = row_load(im + i, m);
        row_store(y + i, v_fma(a, a, v_mul(b, b)), m);
    }
}

static void cos_sin(const float *turns, float magnitude, float *cosine, float *sine, int64_t n)
{
    EACH(n)
    {
        vf c, s;
        v_cos_sin(row_load(turns + i, m), &c, &s);
        row_store(cosine + i, v_mul(c, v_set1(magnitude)), m);
        row_store(sine + i, v_mul(s, v_set1(magnitude)), m);
    }
}

static void rotate_halves(const float *x, const float *cosine, const float *sine, int64_t pairs, float *y)
{
    EACH(pairs)
    {
        const vf u = row_load(x + i, m), v = row_load(x + pairs + i, m);
        const vf c = row_load(cosine + i, m), s = row_load(sine + i, m);
        row_store(y + i, v_sub(v_mul(u, c), v_mul(v, s)), m);
        row_store(y + pairs + i, v_add(v_mul(u, s), v_mul(v, c)), m);
    }
}

static void rotate_neighbours(const float *x, const float *cosine, const float *sine, int64_t n, float *y)
{
    EACH(n)
    {
        const vf v = row_load(x + i, m);
        row_store(y + i, v_add(v_mul(v, row_load(cosine + i, m)), v_mul(v_swap_pairs(v), row_load(sine + i, m))), m);
    }
}

/* Sums over a row, in four parts side by side, to hide how long each takes: of its numbers, or of the squares of what they are
 * more than `mean`. */
INL float row_sum(const float *x, int64_t n, bool squares, float mean)
{
    const vf mv = v_set1(mean);
    vf part[4];
    UNROLL for (int j = 0; j < 4; j++) part[j] = v_zero();
    int64_t i = 0;
    for (; i + 4 * VL <= n; i += 4 * VL)
        UNROLL for (int j = 0; j < 4; j++)
        {
            const vf v = v_load(x + i + j * VL), d = v_sub(v, mv);
            part[j] = squares ? v_fma(d, d, part[j]) : v_add(part[j], v);
        }
    for (; i < n; i += VL) {
        const int64_t m = n - i < VL ? n - i : VL;
        const vf v = row_load(x + i, m), d = row_keep(v_sub(v, mv), m);
        part[0] = squares ? v_fma(d, d, part[0]) : v_add(part[0], v);
    }
    return v_hsum(v_add(v_add(part[0], part[1]), v_add(part[2], part[3])));
}

static void layer_norm(const float *x, const float *w, const float *b, float eps, int64_t n, float *y)
{
    const float mean = row_sum(x, n, false, 0) / (float)n;
    /* a second pass over the row, which is in the cache: the variance as a mean of squares minus a square of the mean
     * would lose all digits for rows far from zero */
    const vf mv = v_set1(mean), inv = v_set1(1.0f / __builtin_sqrtf(row_sum(x, n, true, mean) / (float)n + eps));
    EACH(n)
    row_store(y + i, v_fma(v_mul(v_sub(row_load(x + i, m), mv), inv), row_load(w + i, m), row_load(b + i, m)), m);
}

static void rms_norm(const float *x, const float *w, float eps, int64_t n, float *y)
{
    const vf inv = v_set1(1.0f / __builtin_sqrtf(row_sum(x, n, true, 0) / (float)n + eps));
    EACH(n) row_store(y + i, v_mul(v_mul(row_load(x + i, m), inv), row_load(w + i, m)), m);
}

/* y = scale x + mask; the largest of it, but for what is no number */
INL float softmax_scale(const float *x, const float *mask, float factor, int64_t n, float *y)
{
    const vf f = v_set1(factor);
    vf top[2];
    top[0] = top[1] = v_set1(-__builtin_inff());
    int64_t i = 0;
    for (; i + 2 * VL <= n; i += 2 * VL) {
        UNROLL for (int j = 0; j < 2; j++)
        {
            const int64_t at = i + j * VL;
            const vf p = v_mul(v_load(x + at), f), s = mask != NULL ? v_add(p, v_load(mask + at)) : p;
            v_store(y + at, s);
            top[j] = v_max(s, top[j]);
        }
    }
    float best = v_hmax(v_max(top[0], top[1]));
    for (; i < n; i++) {
        y[i] = x[i] * factor + (mask != NULL ? mask[i] : 0.0f);
        best = y[i] > best ? y[i] : best;
    }
    return best;
}

static void softmax(const float *x, const float *mask, float factor, int64_t n, float *y)
{
    const float top = mask != NULL ? softmax_scale(x, mask, factor, n, y) : softmax_scale(x, NULL, factor, n, y);
    if (!(top > -__builtin_inff())) { /* all masked, or NaN among nothing else */
        bool nan = false;
        for (int64_t i = 0; i < n; i++)
            nan |= y[i] != y[i];
        for (int64_t i = 0; i < n; i++)
            y[i] = nan ? __builtin_nanf("") : 0.0f;
        return;
    }
    const vf t = v_set1(top);
    vf sum = v_zero();
    float total = 0;
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        __builtin_prefetch(x + n + i); /* the next row will probably be wanted next */
        __builtin_prefetch(y + n + i, 1);
        const vf e = v_exp_below(v_sub(v_load(y + i), t));
        v_store(y + i, e);
        sum = v_add(sum, e);
    }
    if (i < n) {
        v_store_n(y + i, v_exp_below(v_sub(v_load_n(y + i, (int)(n - i)), t)), (int)(n - i));
        for (; i < n; i++)
            total += y[i];
    }
    const vf inv = v_set1(1.0f / (total + v_hsum(sum)));
    for (i = 0; i + VL <= n; i += VL)
        v_store(y + i, v_mul(v_load(y + i), inv));
    if (i < n)
        v_store_n(y + i, v_mul(v_load_n(y + i, (int)(n - i)), inv), (int)(n - i));
}

/* Whole blocks lie in registers between the two passes. */
static void block_sums(const float *x, int64_t n, float *max, float *sum)
{
    enum { N = SOTTO_SUMS_BLOCK / VL };
    const vf least = v_set1(-FLT_MAX), none = v_set1(-__builtin_inff());
    for (int64_t b = 0; b * SOTTO_SUMS_BLOCK < n; b++) {
        const float *p = x + b * SOTTO_SUMS_BLOCK;
        const int64_t left = n - b * SOTTO_SUMS_BLOCK;
        vf v[N], most = none, total = v_zero();
        if (left >= SOTTO_SUMS_BLOCK)
            UNROLL for (int i = 0; i < N; i++) v[i] = v_load(p + i * VL);
        else {
            float t[SOTTO_SUMS_BLOCK];
            for (int i = 0; i < SOTTO_SUMS_BLOCK; i++)
                t[i] = i < left ? p[i] : -__builtin_inff();
            UNROLL for (int i = 0; i < N; i++) v[i] = v_load(t + i * VL);
        }
        UNROLL for (int i = 0; i < N; i++) most = v_max(v[i], most); /* a NaN is passed over */
        max[b] = v_hmax(most);
        const vf from = v_max(v_set1(max[b]), least); /* -infinity less -infinity would not be a number */
        UNROLL for (int i = 0; i < N; i++) total = v_add(total, v_exp_below(v_sub(v[i], from)));
        sum[b] = v_hsum(total);
    }
}

/* The largest value first, then where it is. */
static int64_t argmax(const float *x, int64_t n)
{
    vf top = v_set1(-__builtin_inff());
    int64_t i = 0;
    for (; i + VL <= n; i += VL)
        top = v_max(v_load(x + i), top); /* NaN loses */
    float best = v_hmax(top);
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    for (i = 0; i < n; i++)
        if (x[i] == best)
            return i;
    return 0;
}

static void to_f16(const float *x, uint16_t *y, int64_t n)
{
    EACH(n) v_store_f16_n(y + i, row_load(x + i, m), (int)m);
}

static void to_bf16(const float *x, uint16_t *y, int64_t n)
{
    EACH(n) v_store_high_n(y + i, v_round_bf16(row_load(x + i, m)), (int)m);
}

static void from_f16(const uint16_t *x, float *y, int64_t n)
{
    EACH(n) row_store(y + i, m == VL ? v_load_f16(x + i) : v_load_f16_n(x + i, (int)m), m);
}

static void from_bf16(const uint16_t *x, float *y, int64_t n)
{
    EACH(n) row_store(y + i, m == VL ? v_load_bf16(x + i) : v_load_bf16_n(x + i, (int)m), m);
}

/* To the nearest whole number, halves away from zero, and limited to 127; NaN becomes 0. */
INL vf q8_level(vf x)
{
    const vf below = v_set1(0.49999997f), zero = v_zero();
    x = v_sel_gt(x, zero, x, v_sel_gt(zero, x, x, zero));
    const vf even = v_round(x), rest = v_sub(x, even);
    const vf up = v_sel_gt(rest, below, v_sel_gt(x, zero, v_add(even, v_set1(1.0f)), even), even);
    const vf r = v_sel_gt(v_sub(zero, below), rest, v_sel_gt(zero, x, v_sub(even, v_set1(1.0f)), even), up);
    return v_min(v_set1(127.0f), v_max(v_set1(-127.0f), r));
}

static void to_q8_0(const float *x, void *blocks, int64_t n)
{
    uint8_t *out = blocks;
    for (int64_t i = 0; i < n; i += 32, x += 32, out += 34) {
        vf top = v_zero();
        UNROLL for (int j = 0; j < 32; j += VL)
        {
            const vf v = v_load(x + j);
            top = v_max(v_max(v_sub(v_zero(), v), v), top); /* NaN loses */
        }
        const float d = v_hmax(top) / 127.0f, inverse = d != 0 ? 1.0f / d : 0.0f;
        uint16_t half;
        v_store_f16_n(&half, v_set1(d), 1);
        memcpy(out, &half, sizeof half);
        UNROLL for (int j = 0; j < 32; j += VL)
        {
            const vf r = q8_level(v_mul(v_load(x + j), v_set1(inverse)));
            vi_store_bytes(out + 2 + j, v_as_int(v_add(r, v_set1(12582912.0f)))); /* the sum's low bits are the number */
        }
    }
}

/* ---- attention of a few queries over listed cells ---- */

/* CELL_MIXED: keys and values are of the two types that c->k_type and c->v_type say. */
typedef enum cell_type { CELL_F32, CELL_F16, CELL_BF16, CELL_Q8_0, CELL_MIXED } cell_type;

INL vf cell_load(cell_type t, const char *row, int i, int n)
{
    const uint16_t *h = (const uint16_t *)(const void *)row + i;
    const float *f = (const float *)(const void *)row + i;
    if (t == CELL_Q8_0) { /* d is whole blocks: there are VL left */
        const char *block = row + i / 32 * 34;
        float d[VL];
        v_store(d, v_load_f16_n((const uint16_t *)(const void *)block, 1));
        return v_mul(v_load_i8(block + 2 + i % 32), v_set1(d[0]));
    }
    if (t == CELL_F16)
        return n == VL ? v_load_f16(h) : v_load_f16_n(h, n);
    if (t == CELL_BF16)
        return n == VL ? v_load_bf16(h) : v_load_bf16_n(h, n);
    return n == VL ? v_load(f) : v_load_n(f, n);
}

static void from_q8_0(const void *blocks, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i += VL)
        v_store(y + i, cell_load(CELL_Q8_0, (const char *)blocks + i / 32 * 34, (int)(i % 32), VL));
}

INL int64_t cell_of(const st_cpu_cells *c, int64_t i)
{
    const int64_t cell = c->index != NULL ? c->index[i] : c->base + i;
    return cell < 0 ? 0 : cell >= c->n_cell ? c->n_cell - 1 : cell;
}

/* Heads lie side by side in a cell, so one head's rows are far apart: the hardware's prefetchers do not see them coming. */
enum { CELLS_AHEAD = 12 };

/* The cells [first, first + n), and behind them those that are fetched before they are met. */
INL void cell_list(const st_cpu_cells *c, int64_t first, int n, size_t *cell)
{
    for (int j = 0; j < n; j++)
        cell[j] = (size_t)cell_of(c, first + j);
    for (int j = 0; j < CELLS_AHEAD; j++)
        cell[n + j] = (size_t)cell_of(c, first + n + j < c->n_kv ? first + n + j : c->n_kv - 1);
}

INL void cell_prefetch(const char *row, int bytes)
{
    for (int line = 0; line < bytes; line += 64)
        __builtin_prefetch(row + line);
}

/* Of n elements, whole blocks where there are blocks. */
INL int cell_bytes(cell_type t, int n)
{
    return t == CELL_Q8_0 ? n / 32 * 34 : n * (t == CELL_F32 ? 4 : 2);
}

enum { CELL_ROWS = VL == 16 ? 8 : 4 }; /* that meet a cell together: as many as there are registers for */

/* score[r][j] = q_r . k_cell for n cells. The sums' lanes lie in `lanes` [rows][VL][VL] until there are VL cells of them. */
INL void cell_scores(cell_type t, const st_cpu_cells *c, int rows, const size_t *cell, int n, float *lanes, float *score)
{
    const int bytes = cell_bytes(t, c->d);
    for (int j = 0; j < n; j++) {
        const char *k = c->k + cell[j] * c->k_stride;
        cell_prefetch(c->k + cell[j + CELLS_AHEAD] * c->k_stride, bytes);
        cell_prefetch(c->v + cell[j + CELLS_AHEAD] * c->v_stride, bytes); /* wanted after the scores */
        vf sum[CELL_ROWS][2];
        UNROLL for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = v_zero();
        int i = 0;
        for (; i + 2 * VL <= c->d; i += 2 * VL) {
            const vf k0 = cell_load(t, k, i, VL), k1 = cell_load(t, k, i + VL, VL);
            UNROLL for (int r = 0; r < rows; r++)
            {
                sum[r][0] = v_fma(v_load(c->q[r] + i), k0, sum[r][0]);
                sum[r][1] = v_fma(v_load(c->q[r] + i + VL), k1, sum[r][1]);
            }
        }
        for (; i < c->d; i += VL) {
            const int m = c->d - i < VL ? c->d - i : VL;
            const vf k0 = cell_load(t, k, i, m);
            UNROLL for (int r = 0; r < rows; r++) sum[r][0] = v_fma(row_load(c->q[r] + i, m), k0, sum[r][0]);
        }
        UNROLL for (int r = 0; r < rows; r++) v_store(lanes + (r * VL + j % VL) * VL, v_add(sum[r][0], sum[r][1]));
        if (j % VL == VL - 1)
            for (int r = 0; r < rows; r++)
                v_hsums(lanes + r * VL * VL, score + r * ST_CPU_CELL_CHUNK + j - (VL - 1));
    }
    for (int j = n / VL * VL; j < n; j++)
        for (int r = 0; r < rows; r++)
            score[r * ST_CPU_CELL_CHUNK + j] = v_hsum(v_load(lanes + (r * VL + j % VL) * VL));
}

/* acc[r][i ..] = acc * rescale[r] + sum_j p[r][j] v_cell[i ..], for nv whole vectors or, with nv 1, for m elements */
INL void cell_slice(cell_type t, const st_cpu_cells *c, int rows, const size_t *cell, int n, const float *p,
                    const float *rescale, float *acc, int i, int nv, int m)
{
    vf sum[CELL_ROWS][4];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++) sum[r][v] =
        v_mul(row_load(acc + r * c->d + i + v * VL, m), v_set1(rescale[r]));
    for (int j = 0; j < n; j++) {
        const char *row = c->v + cell[j] * c->v_stride;
        cell_prefetch(c->v + cell[j + CELLS_AHEAD] * c->v_stride + cell_bytes(t, i), cell_bytes(t, nv * m));
        vf x[4];
        UNROLL for (int v = 0; v < nv; v++) x[v] = cell_load(t, row, i + v * VL, m);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vf w = v_set1(p[r * ST_CPU_CELL_CHUNK + j]);
            UNROLL for (int v = 0; v < nv; v++) sum[r][v] = v_fma(w, x[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++)
        row_store(acc + r * c->d + i + v * VL, sum[r][v], m);
}

INL void cell_values(cell_type t, const st_cpu_cells *c, int rows, const size_t *cell, int n, const float *p,
                     const float *rescale, float *acc)
{
    int i = 0;
    if (rows <= (VL == 16 ? 6 : 4)) /* as there are registers for */
        for (; i + 4 * VL <= c->d; i += 4 * VL)
            cell_slice(t, c, rows, cell, n, p, rescale, acc, i, 4, VL);
    else
        for (; i + 2 * VL <= c->d; i += 2 * VL)
            cell_slice(t, c, rows, cell, n, p, rescale, acc, i, 2, VL);
    for (; i < c->d; i += VL)
        cell_slice(t, c, rows, cell, n, p, rescale, acc, i, 1, c->d - i < VL ? c->d - i : VL);
}

/* The scores of one row become exp2(score * factor - max). Online: see softmax_tile. */
INL void cell_softmax(float *p, int n, float factor, float *max, float *sum, float *rescale)
{
    float top = *max;
    vf t = v_set1(top);
    int i = 0;
    for (; i + VL <= n; i += VL) {
        const vf s = v_mul(v_load(p + i), v_set1(factor));
        v_store(p + i, s);
        t = v_max(t, s);
    }
    top = v_hmax(t);
    for (; i < n; i++) {
        p[i] *= factor;
        top = p[i] > top ? p[i] : top;
    }
    const vf m = v_set1(top > -3.402823466e38f ? top : 0.0f);
    vf total = v_zero();
    float tail = 0;
    for (i = 0; i < n; i += VL) {
        const int left = n - i < VL ? n - i : VL;
        const vf e = v_exp2(v_sub(row_load(p + i, left), m));
        row_store(p + i, e, left);
        if (left == VL)
            total = v_add(total, e);
        else
            for (int j = 0; j < left; j++)
                tail += p[i + j];
    }
    float one[VL];
    v_store(one, v_exp2(v_sub(v_set1(*max), m)));
    *rescale = one[0];
    *sum = *sum * one[0] + (v_hsum(total) + tail);
    *max = top;
}

/* Both halves of the work for cells of one type, for 1 or CELL_ROWS rows. */
typedef struct cell_halves {
    sotto_dtype dtype;
    void (*scores)(const st_cpu_cells *c, bool one, const size_t *cell, int n, float *lanes, float *score);
    void (*values)(const st_cpu_cells *c, bool one, const size_t *cell, int n, const float *p, const float *rescale,
                   float *acc);
} cell_halves;

#define CELL_HALVES(NAME, TYPE)                                                                                       \
    static void NAME##_scores(const st_cpu_cells *c, bool one, const size_t *cell, int n, float *lanes, float *score) \
    {                                                                                                                 \
        if (one)                                                                                                      \
            cell_scores(TYPE, c, 1, cell, n, lanes, score);                                                           \
        else                                                                                                          \
            cell_scores(TYPE, c, CELL_ROWS, cell, n, lanes, score);                                                   \
    }                                                                                                                 \
    static void NAME##_values(const st_cpu_cells *c, bool one, const size_t *cell, int n, const float *p,             \
                              const float *rescale, float *acc)                                                       \
    {                                                                                                                 \
        if (one)                                                                                                      \
            cell_values(TYPE, c, 1, cell, n, p, rescale, acc);                                                        \
        else                                                                                                          \
            cell_values(TYPE, c, CELL_ROWS, cell, n, p, rescale, acc);                                                \
    }
CELL_HALVES(f32, CELL_F32)
CELL_HALVES(f16, CELL_F16)
CELL_HALVES(bf16, CELL_BF16)
CELL_HALVES(q8_0, CELL_Q8_0)

static const cell_halves halves[] = {{SOTTO_F32, f32_scores, f32_values},
                                     {SOTTO_F16, f16_scores, f16_values},
                                     {SOTTO_BF16, bf16_scores, bf16_values},
                                     {SOTTO_Q8_0, q8_0_scores, q8_0_values}};

static const cell_halves *halves_of(sotto_dtype t)
{
    size_t i = 0;
    while (i + 1 < sizeof halves / sizeof *halves && halves[i].dtype != t)
        i++;
    return &halves[i];
}

INL void cell_group(cell_type t, const st_cpu_cells *c, int rows)
{
    float *score = c->scratch, *lanes = score + CELL_ROWS * ST_CPU_CELL_CHUNK, *acc = lanes + CELL_ROWS * VL * VL;
    float max[CELL_ROWS], sum[CELL_ROWS], rescale[CELL_ROWS];
    UNROLL for (int r = 0; r < rows; r++)
    {
        max[r] = -__builtin_inff();
        sum[r] = 0;
    }
    memset(acc, 0, sizeof(float) * (size_t)rows * (size_t)c->d);
    for (int64_t first = 0; first < c->n_kv; first += ST_CPU_CELL_CHUNK) {
        const int n = c->n_kv - first < ST_CPU_CELL_CHUNK ? (int)(c->n_kv - first) : ST_CPU_CELL_CHUNK;
        size_t cell[ST_CPU_CELL_CHUNK + CELLS_AHEAD];
        cell_list(c, first, n, cell);
        if (t == CELL_MIXED)
            halves_of(c->k_type)->scores(c, rows == 1, cell, n, lanes, score);
        else
            cell_scores(t, c, rows, cell, n, lanes, score);
        for (int r = 0; r < rows; r++)
            cell_softmax(score + r * ST_CPU_CELL_CHUNK, n, c->scale * 1.44269504f, &max[r], &sum[r], &rescale[r]);
        if (t == CELL_MIXED)
            halves_of(c->v_type)->values(c, rows == 1, cell, n, score, rescale, acc);
        else
            cell_values(t, c, rows, cell, n, score, rescale, acc);
    }
    for (int r = 0; r < rows; r++) {
        if (c->part) {
            memcpy(c->out[r], acc + r * c->d, sizeof(float) * (size_t)c->d);
            c->out[r][c->d] = max[r];
            c->out[r][c->d + 1] = sum[r];
            continue;
        }
        const vf inv = v_set1(sum[r] == 0 ? 0.0f : 1.0f / sum[r]);
        EACH(c->d) row_store(c->out[r] + i, v_mul(row_load(acc + r * c->d + i, m), inv), m);
    }
}

#define CELL_CASE(TYPE, R)       \
    case R:                      \
        cell_group(TYPE, &c, R); \
        break;
#if ST_PRODUCT_ROWS >= 12 /* with 32 registers */
#define CELL_MORE(TYPE) CELL_CASE(TYPE, 4) CELL_CASE(TYPE, 5) CELL_CASE(TYPE, 6) CELL_CASE(TYPE, 7)
#else
#define CELL_MORE(TYPE)
#endif
/* Up to CELL_ROWS at a time. */
#define CELLS(NAME, TYPE)                                            \
    static void NAME(const st_cpu_cells *cells)                      \
    {                                                                \
        st_cpu_cells c = *cells;                                     \
        for (int done = 0; done < cells->n_row; done += CELL_ROWS) { \
            const int left = cells->n_row - done;                    \
            for (int r = 0; r < CELL_ROWS && r < left; r++) {        \
                c.q[r] = cells->q[done + r];                         \
                c.out[r] = cells->out[done + r];                     \
            }                                                        \
            switch (left < CELL_ROWS ? left : CELL_ROWS) {           \
                CELL_CASE(TYPE, 1)                                   \
                CELL_CASE(TYPE, 2)                                   \
                CELL_CASE(TYPE, 3)                                   \
                CELL_MORE(TYPE)                                      \
            default:                                                 \
                cell_group(TYPE, &c, CELL_ROWS);                     \
            }                                                        \
        }                                                            \
    }
CELLS(cells_f32, CELL_F32)
CELLS(cells_f16, CELL_F16)
CELLS(cells_bf16, CELL_BF16)
CELLS(cells_q8_0, CELL_Q8_0)

/* More rows than one are filled up with the last of them, whose result is then written more than once. */
static void cells_mixed(const st_cpu_cells *cells)
{
    st_cpu_cells c = *cells;
    for (int done = 0; done < cells->n_row; done += CELL_ROWS) {
        const int left = cells->n_row - done;
        for (int r = 0; r < CELL_ROWS; r++) {
            c.q[r] = cells->q[done + (r < left ? r : left - 1)];
            c.out[r] = cells->out[done + (r < left ? r : left - 1)];
        }
        if (left == 1)
            cell_group(CELL_MIXED, &c, 1);
        else
            cell_group(CELL_MIXED, &c, CELL_ROWS);
    }
}

void LEVEL(st_cpu_fill_rows)(st_cpu_kernels *k)
{
    k->cells_f32 = cells_f32;
    k->cells_f16 = cells_f16;
    k->cells_bf16 = cells_bf16;
    k->cells_q8_0 = cells_q8_0;
    k->cells_mixed = cells_mixed;
    k->cos_sin = cos_sin;
    k->rotate_halves = rotate_halves;
    k->rotate_neighbours = rotate_neighbours;
    k->layer_norm = layer_norm;
    k->rms_norm = rms_norm;
    k->softmax = softmax;
    k->add = add;
    k->mul = mul;
    k->glu[SOTTO_ACT_NONE] = mul;
    k->glu[SOTTO_ACT_GELU] = glu_SOTTO_ACT_GELU;
    k->glu[SOTTO_ACT_RELU] = glu_SOTTO_ACT_RELU;
    k->glu[SOTTO_ACT_SILU] = glu_SOTTO_ACT_SILU;
    k->glu[SOTTO_ACT_GELU_TANH] = glu_SOTTO_ACT_GELU_TANH;
    k->add1 = add1;
    k->scale = scale;
    k->log10 = log10_floor;
    k->power = power;
    k->gelu = map_gelu;
    k->silu = map_silu;
    k->relu = map_relu;
    k->sigmoid = map_sigmoid;
    k->tanh = map_tanh;
    k->sqrt = map_sqrt;
    k->exp = map_exp;
    k->argmax = argmax;
    k->block_sums = block_sums;
    k->to_f16 = to_f16;
    k->to_bf16 = to_bf16;
    k->from_f16 = from_f16;
    k->from_bf16 = from_bf16;
    k->to_q8_0 = to_q8_0;
    k->from_q8_0 = from_q8_0;
}
