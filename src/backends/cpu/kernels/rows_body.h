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

/* The same of numbers up to 127. What is added before the cut is the number below 1/2, as of that one 1/2 would make 1. */
INL vi q8_plain_level(vf x)
{
    const vf below = v_set1(0.49999997f), zero = v_zero();
    return v_cut(v_add(x, v_sel_gt(zero, x, v_sub(zero, below), below)));
}

static void to_q8_0(const float *x, void *blocks, int64_t n)
{
    uint8_t *out = blocks;
    for (int64_t i = 0; i < n; i += 32, x += 32, out += 34) {
        vf top = v_zero(), sum = v_zero();
        UNROLL for (int j = 0; j < 32; j += VL)
        {
            const vf v = v_load(x + j);
            top = v_max(v_max(v_sub(v_zero(), v), v), top); /* NaN loses */
            sum = v_add(sum, v);
        }
        const float d = v_hmax(top) / 127.0f, inverse = d != 0 ? 1.0f / d : 0.0f, total = v_hsum(sum);
        const bool plain =
            total - total == 0 && (d == 0 || d > 1e-30f); /* numbers all of them, and no quotient too large */
        uint16_t half;
        v_store_f16_n(&half, v_set1(d), 1);
        memcpy(out, &half, sizeof half);
        UNROLL for (int j = 0; plain && j < 32; j += VL)
            vi_store_bytes(out + 2 + j, q8_plain_level(v_mul(v_load(x + j), v_set1(inverse))));
        for (int j = 0; !plain && j < 32; j += VL) {
            const vf r = q8_level(v_mul(v_load(x + j), v_set1(inverse)));
            vi_store_bytes(out + 2 + j, v_as_int(v_add(r, v_set1(12582912.0f)))); /* the sum's low bits are the number */
        }
    }
}

/* ---- attention of a few queries over listed cells ----
 *
 * A few cells at a time are met by all rows, first their keys and then their values, while the keys and values of the next ones
 * are fetched one by one: what is computed takes about as long as reading. */

enum {
    CELL_CHUNK = 16,                        /* cells that are met at once: whole vectors of scores */
    CELL_ROWS = ST_REGISTERS == 32 ? 8 : 5, /* that a kernel takes together */
    CELL_MARGIN = 16 /* a score may be so far above a row's reference, in units of log 2, before that one is changed */
};

typedef enum cell_type { CELL_F32, CELL_F16, CELL_BF16, CELL_Q8_0 } cell_type;

INL vf cell_load(cell_type t, const char *row, int i, int n)
{
    const uint16_t *h = (const uint16_t *)(const void *)row + i;
    const float *f = (const float *)(const void *)row + i;
    if (t == CELL_Q8_0) { /* d is whole blocks: there are VL left */
        const char *block = row + i / 32 * 34;
        return v_mul(v_load_i8(block + 2 + i % 32), v_set1_f16(block));
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

/* 2 VL elements. Those of bf16 lie in pairs in a lane: they come as the even ones and the odd ones. */
INL void cell_load_two(cell_type t, const char *row, int i, vf x[2])
{
    if (t == CELL_BF16) {
        const vi pairs = vi_load(row + 2 * i);
        x[0] = vi_as_float(vi_shl(pairs, 16));
        x[1] = vi_as_float(vi_and(pairs, vi_set1((int)0xffff0000)));
    } else {
        x[0] = cell_load(t, row, i, VL);
        x[1] = cell_load(t, row, i + VL, VL);
    }
}

/* Queries and sums lie as vectors [d / VL][rows][VL], each two vectors in the order of cell_load_two; zeros beyond d. */
static void cell_query(bool pairs, const float *restrict q, int d, float factor, int rows, float *restrict x)
{
    const vf f = v_set1(factor);
    for (int i = 0; i < d; i += 2 * VL, x += 2 * rows * VL) {
        if (pairs && i + 2 * VL <= d)
            for (int j = 0; j < VL; j++) {
                x[j] = q[i + 2 * j] * factor;
                x[rows * VL + j] = q[i + 2 * j + 1] * factor;
            }
        else
            for (int j = i; j < d && j < i + 2 * VL; j += VL)
                v_store(x + (j - i) * rows, v_mul(row_load(q + j, d - j < VL ? d - j : VL), f));
    }
}

static void cell_result(bool pairs, const float *restrict x, int d, float factor, int rows, float *restrict out)
{
    const vf f = v_set1(factor);
    for (int i = 0; i < d; i += 2 * VL, x += 2 * rows * VL) {
        if (pairs && i + 2 * VL <= d)
            for (int j = 0; j < VL; j++) {
                out[i + 2 * j] = x[j] * factor;
                out[i + 2 * j + 1] = x[rows * VL + j] * factor;
            }
        else
            for (int j = i; j < d && j < i + 2 * VL; j += VL)
                row_store(out + j, v_mul(v_load(x + (j - i) * rows), f), d - j < VL ? d - j : VL);
    }
}

INL int64_t cell_of(const st_cpu_cells *c, int64_t i)
{
    const int64_t cell = c->index != NULL ? c->index[i] : c->base + i;
    return cell < 0 ? 0 : cell >= c->n_cell ? c->n_cell - 1 : cell;
}

/* Where n cells lie; the places behind them may be fetched, but not read. */
typedef struct cell_places {
    int n;
    const char *k[CELL_CHUNK], *v[CELL_CHUNK];
} cell_places;

/* Those from place `first` of the list on, of which there are some. */
static void find_cells(const st_cpu_cells *c, int64_t first, cell_places *p)
{
    const int64_t left = c->n_kv - first, start = c->base + first;
    p->n = left < CELL_CHUNK ? (int)left : CELL_CHUNK;
    if (c->index == NULL && start >= 0 && start + p->n <= c->n_cell) {
        const char *k = c->k + (size_t)start * c->k_stride, *v = c->v + (size_t)start * c->v_stride;
        for (int j = 0; j < CELL_CHUNK; j++) {
            p->k[j] = k + (size_t)j * c->k_stride;
            p->v[j] = v + (size_t)j * c->v_stride;
        }
        return;
    }
    for (int j = 0; j < CELL_CHUNK; j++) {
        const size_t cell = (size_t)(j < p->n ? cell_of(c, first + j) : 0);
        p->k[j] = c->k + cell * c->k_stride;
        p->v[j] = c->v + cell * c->v_stride;
    }
}

/* The lines that begin in bytes [from, to) of a cell. */
INL void cell_fetch(const char *cell, int from, int to)
{
    for (int line = (from + 63) / 64 * 64; line < to; line += 64)
        __builtin_prefetch(cell + line);
}

/* Of n elements, whole blocks where there are blocks. */
INL int cell_bytes(cell_type t, int n)
{
    return t == CELL_Q8_0 ? n / 32 * 34 : n * (t == CELL_F32 ? 4 : 2);
}

/* One half of the work for some rows: score[r][j] = q_r . k_j, or acc_r += sum_j score[r][j] v_j. */
typedef struct cell_work {
    int rows, d, wide; /* wide: d in whole vectors */
    const cell_places *now, *next;
    float *q, *acc; /* [vectors][rows][VL] */
    float *score;   /* [rows][CELL_CHUNK] */
    float *lanes;   /* scratch: [rows][VL][VL], of sums whose lanes are not added yet */
    float *sum;     /* of the scores' powers, [rows][VL] */
    float *base;    /* [rows]: the references */
} cell_work;

/* To the sums of two cells: vector v of their keys times those of the queries, each of which is loaded once. */
INL void score_add(int rows, const float *q, vf x[2][2], int v, vf sum[2][CELL_ROWS])
{
    UNROLL for (int r = 0; r < rows; r++)
    {
        const vf a = v_load(q + r * VL);
        UNROLL for (int u = 0; u < 2; u++) v_add_product(&sum[u][r], a, x[u][v]);
    }
}

/* Scores beyond the last cell are -infinity. A row's are the same whatever rows are with it. */
INL void cell_scores(cell_type t, int rows, int d, const cell_work *w)
{
    float *const lanes = w->lanes, *const score = w->score;
    const cell_places *now = w->now, *next = w->next;
    const int n = now->n;
    for (int j = 0; j < n; j += 2) {
        const char *const k[2] = {now->k[j], now->k[j + 1 < n ? j + 1 : j]};
        const float *q = w->q;
        vf sum[2][CELL_ROWS], x[2][2];
        UNROLL for (int u = 0; u < 2; u++)
        {
            cell_fetch(next->k[j + u], 0, cell_bytes(t, d));
            UNROLL for (int r = 0; r < rows; r++) sum[u][r] = v_zero();
        }
        int i = 0;
        for (; i + 2 * VL <= d; i += 2 * VL, q += 2 * rows * VL) {
            UNROLL for (int u = 0; u < 2; u++) cell_load_two(t, k[u], i, x[u]);
            UNROLL for (int v = 0; v < 2; v++) score_add(rows, q + v * rows * VL, x, v, sum);
        }
        for (; i < d; i += VL, q += rows * VL) {
            UNROLL for (int u = 0; u < 2; u++) x[u][0] = cell_load(t, k[u], i, d - i < VL ? d - i : VL);
            score_add(rows, q, x, 0, sum);
        }
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int u = 0; u < 2; u++)
            v_store(lanes + (r * VL + j % VL + u) * VL, sum[u][r]);
        if (j % VL == VL - 2)
            for (int r = 0; r < rows; r++)
                v_hsums(lanes + r * VL * VL, score + r * CELL_CHUNK + j - (VL - 2));
    }
    for (int j = n / VL * VL; j < CELL_CHUNK; j++)
        for (int r = 0; r < rows; r++)
            score[r * CELL_CHUNK + j] = j < n ? v_hsum(v_load(lanes + (r * VL + j % VL) * VL)) : -__builtin_inff();
}

/* nv vectors of the sums from element i on, or one of m elements */
INL void cell_slice(cell_type t, int rows, const cell_work *w, int i, int nv, int m)
{
    const cell_places *now = w->now, *next = w->next;
    float *const acc = w->acc + i * rows;
    const float *const score = w->score;
    vf sum[CELL_ROWS][8];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++) sum[r][v] =
        v_load(acc + (v * rows + r) * VL);
    for (int j = 0; j < now->n; j++) {
        cell_fetch(next->v[j], cell_bytes(t, i), cell_bytes(t, i + nv * m));
        UNROLL for (int v = 0; v < nv; v += 2)
        {
            vf x[2];
            if (nv == 1)
                x[0] = cell_load(t, now->v[j], i, m);
            else
                cell_load_two(t, now->v[j], i + v * VL, x);
            UNROLL for (int r = 0; r < rows; r++)
            {
                const vf p = v_set1(score[r * CELL_CHUNK + j]);
                UNROLL for (int u = 0; u < 2 && u < nv; u++) v_add_product(&sum[r][v + u], p, x[u]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < nv; v++)
        v_store(acc + (v * rows + r) * VL, sum[r][v]);
}

/* Vectors of sums that there are registers for beside a cell's, a weight and a mask. */
INL int slice_vectors(int rows)
{
    return 8 * rows + 4 <= ST_REGISTERS ? 8 : 4 * rows + 4 <= ST_REGISTERS ? 4 : 2;
}

INL void cell_values(cell_type t, int rows, int d, const cell_work *w)
{
    const int nv = slice_vectors(rows);
    int i = 0;
    for (; i + nv * VL <= d; i += nv * VL)
        cell_slice(t, rows, w, i, nv, VL);
    for (; i + 2 * VL <= d; i += 2 * VL)
        cell_slice(t, rows, w, i, 2, VL);
    for (; i < d; i += VL)
        cell_slice(t, rows, w, i, 1, d - i < VL ? d - i : VL);
}

/* A reference for the rows that have a score too far above theirs: what they have summed until now is brought to it. */
static void cell_raise(const cell_work *w)
{
    for (int r = 0; r < w->rows; r++) {
        vf top = v_set1(-FLT_MAX);
        for (int i = 0; i < CELL_CHUNK; i += VL)
            top = v_max(v_load(w->score + r * CELL_CHUNK + i), top);
        const float most = v_hmax(top);
        if (!(most > w->base[r] + CELL_MARGIN))
            continue;
        const vf factor = v_exp2(v_set1(w->base[r] - most));
        w->base[r] = most;
        v_store(w->sum + r * VL, v_mul(v_load(w->sum + r * VL), factor));
        for (int i = r * VL; i < w->wide * w->rows; i += w->rows * VL)
            v_store(w->acc + i, v_mul(v_load(w->acc + i), factor));
    }
}

/* Scores become exp2(score - base), and are added to the sums. */
static void cell_powers(const cell_work *w)
{
    vf above = v_set1(-FLT_MAX);
    for (int r = 0; r < w->rows; r++)
        UNROLL for (int i = 0; i < CELL_CHUNK; i += VL) above =
            v_max(v_sub(v_load(w->score + r * CELL_CHUNK + i), v_set1(w->base[r])), above); /* NaN is passed over */
    if (v_hmax(above) > CELL_MARGIN)
        cell_raise(w);
    for (int r = 0; r < w->rows; r++) {
        vf sum = v_load(w->sum + r * VL);
        UNROLL for (int i = 0; i < CELL_CHUNK; i += VL)
        {
            float *const p = w->score + r * CELL_CHUNK + i;
            const vf e = v_exp2(v_sub(v_load(p), v_set1(w->base[r])));
            v_store(p, e);
            sum = v_add(sum, e);
        }
        v_store(w->sum + r * VL, sum);
    }
}

/* Heads of 64 have kernels of their own, without loops over d. */
#define CELL_HALVES(T, R)                            \
    static void scores_##T##_##R(const cell_work *w) \
    {                                                \
        if (w->d == 64)                              \
            cell_scores(CELL_##T, R, 64, w);         \
        else                                         \
            cell_scores(CELL_##T, R, w->d, w);       \
    }                                                \
    static void values_##T##_##R(const cell_work *w) \
    {                                                \
        if (w->d == 64)                              \
            cell_values(CELL_##T, R, 64, w);         \
        else                                         \
            cell_values(CELL_##T, R, w->d, w);       \
    }
#if ST_REGISTERS == 32
#define CELL_COUNTS(X, T) X(T, 1) X(T, 2) X(T, 3) X(T, 4) X(T, 5) X(T, 6) X(T, 7) X(T, 8)
#else
#define CELL_COUNTS(X, T) X(T, 1) X(T, 2) X(T, 3) X(T, 4) X(T, 5)
#endif
CELL_COUNTS(CELL_HALVES, F32)
CELL_COUNTS(CELL_HALVES, F16)
CELL_COUNTS(CELL_HALVES, BF16)
CELL_COUNTS(CELL_HALVES, Q8_0)

/* By rows less one. */
typedef struct cell_kernels {
    sotto_dtype dtype;
    void (*scores[CELL_ROWS])(const cell_work *w);
    void (*values[CELL_ROWS])(const cell_work *w);
} cell_kernels;

#define CELL_SCORES(T, R) scores_##T##_##R,
#define CELL_VALUES(T, R) values_##T##_##R,
#define CELL_KERNELS(T)                           \
    {                                             \
        SOTTO_##T, {CELL_COUNTS(CELL_SCORES, T)}, \
        {                                         \
            CELL_COUNTS(CELL_VALUES, T)           \
        }                                         \
    }
static const cell_kernels cell_types[] = {CELL_KERNELS(F32), CELL_KERNELS(F16), CELL_KERNELS(BF16), CELL_KERNELS(Q8_0)};

static const cell_kernels *kernels_of(sotto_dtype t)
{
    size_t i = 0;
    while (i + 1 < sizeof cell_types / sizeof *cell_types && cell_types[i].dtype != t)
        i++;
    return &cell_types[i];
}

/* Rows [row, row + rows) of c, which have nothing summed yet; `wide` floats of each, and the scratch. */
static cell_work cell_begin(const st_cpu_cells *c, int row, int rows, int wide, float *scratch)
{
    cell_work w = {.rows = rows, .d = c->d, .wide = wide, .q = scratch + row * wide};
    float *const acc = scratch + ST_CPU_MAX_SKINNY * wide, *const score = acc + ST_CPU_MAX_SKINNY * wide,
                 *const sum = score + ST_CPU_MAX_SKINNY * CELL_CHUNK, *const base = sum + ST_CPU_MAX_SKINNY * VL;
    w.acc = acc + row * wide;
    w.score = score + row * CELL_CHUNK;
    w.sum = sum + row * VL;
    w.base = base + row;
    w.lanes = base + ST_CPU_ROW_UNIT;
    memset(w.acc, 0, sizeof(float) * (size_t)(rows * wide));
    memset(w.sum, 0, sizeof(float) * (size_t)(rows * VL));
    for (int r = 0; r < rows; r++) {
        cell_query(c->k_type == SOTTO_BF16, c->q[row + r], c->d, c->scale * 1.44269504f, rows, w.q + r * VL);
        w.base[r] = -FLT_MAX;
    }
    return w;
}

static void cell_end(const st_cpu_cells *c, int row, const cell_work *w)
{
    for (int r = 0; r < w->rows; r++) {
        float *const out = c->out[row + r], sum = v_hsum(v_load(w->sum + r * VL));
        const float factor = c->part ? 1.0f : sum == 0 ? 0.0f : 1.0f / sum;
        cell_result(c->v_type == SOTTO_BF16, w->acc + r * VL, c->d, factor, w->rows, out);
        if (c->part) {
            out[c->d] = w->base[r];
            out[c->d + 1] = sum;
        }
    }
}

static void cells(const st_cpu_cells *c)
{
    const cell_kernels *keys = kernels_of(c->k_type), *values = kernels_of(c->v_type);
    const int wide = (c->d + VL - 1) / VL * VL, groups = (c->n_row + CELL_ROWS - 1) / CELL_ROWS;
    cell_work w[(ST_CPU_MAX_SKINNY + CELL_ROWS - 1) / CELL_ROWS];
    cell_places places[2], *now = &places[0], *next = &places[1];
    for (int g = 0, row = 0; g < groups; g++, row += CELL_ROWS)
        w[g] = cell_begin(c, row, c->n_row - row < CELL_ROWS ? c->n_row - row : CELL_ROWS, wide, c->scratch);
    if (c->n_kv > 0) {
        const int k_bytes = (int)sotto_dtype_row_bytes(c->k_type, c->d),
                  v_bytes = (int)sotto_dtype_row_bytes(c->v_type, c->d);
        find_cells(c, 0, now);
        for (int j = 0; j < now->n; j++) {
            cell_fetch(now->k[j], 0, k_bytes);
            cell_fetch(now->v[j], 0, v_bytes);
        }
    }
    for (int64_t first = 0; first < c->n_kv; first += CELL_CHUNK) {
        if (first + CELL_CHUNK < c->n_kv)
            find_cells(c, first + CELL_CHUNK, next);
        else
            next = now; /* there is nothing to fetch */
        for (int g = 0; g < groups; g++) {
            w[g].now = now;
            w[g].next = next;
            keys->scores[w[g].rows - 1](&w[g]);
            cell_powers(&w[g]);
        }
        for (int g = 0; g < groups; g++)
            values->values[w[g].rows - 1](&w[g]);
        cell_places *const met = now;
        now = next;
        next = met;
    }
    for (int g = 0; g < groups; g++)
        cell_end(c, g * CELL_ROWS, &w[g]);
}

void LEVEL(st_cpu_fill_rows)(st_cpu_kernels *k)
{
    k->cells = cells;
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
