/* bounds_support.c: how far a result in f32 may be from the exact one; docs/numerics.md has the same bounds in words. */
#include <math.h>
#include <stdlib.h>

#include "backends/scene_support.h"
#include "base/half.h"
#include "tensor/tensor_impl.h"

#define U 0x1p-24
#define U_BF16 0x1p-8
#define U_F16 0x1p-11

/* Error of the activation itself plus what it makes of an error of its argument (slope up to 1.13). */
static double activation_bound(int act, double x, double error)
{
    const double own = act == SOTTO_ACT_GELU                                 ? 2.8e-6 + 5e-7 * fabs(x)
                       : act == SOTTO_ACT_SILU || act == SOTTO_ACT_GELU_TANH ? 4e-7 * fabs(x)
                                                                             : 0;
    return act == SOTTO_ACT_NONE ? error : 1.13 * error + own;
}

/* Row r of [.., n] in x where x has the dimensions of t; broadcasting. */
static const float *row_of(const sotto_tensor *t, const float *x, int64_t i1, int64_t i2, int64_t i3)
{
    i1 = t->dim[1] == 1 ? 0 : i1;
    i2 = t->dim[2] == 1 ? 0 : i2;
    i3 = t->dim[3] == 1 ? 0 : i3;
    return x + ((i3 * t->dim[2] + i2) * t->dim[1] + i1) * t->dim[0];
}

static double product_bound(double k, double magnitude)
{
    return 1.2 * (k + 8) * U * magnitude;
}

static double half(double x)
{
    return st_f16_to_f32(st_f32_to_f16((float)x));
}

static bool may_round_to_bf16(const sotto_tensor *node)
{
    return node->params.compute == SOTTO_COMPUTE_BF16 || node->params.compute == SOTTO_COMPUTE_WORDS;
}

/* What rounding the operands may change: weights of bf16 may meet numbers rounded to bf16; under f16 both sides may be. */
static double rounding(const sotto_tensor *node, double left, double right)
{
    if (node->params.compute == SOTTO_COMPUTE_F16)
        return fabs(left * right - half(left) * half(right));
    const bool may = may_round_to_bf16(node) && node->src[1]->dtype == SOTTO_BF16;
    return may ? fabs((left - (double)st_bf16_to_f32(st_f32_to_bf16((float)left))) * right) : 0;
}

/* With weights of i8 all find the same integers; only what follows the sum is rounded. Those who do not bring the left side
 * to bytes differ by half a step of it from those who do. */
static double i8_bound(const float *left, const float *right, int64_t k, double bias, bool whole_left)
{
    double low = 0, high = 0, magnitude = 0, steps = 0;
    for (int64_t i = 0; i < k; i++) {
        low = fmin(low, left[i]);
        high = fmax(high, left[i]);
    }
    for (int64_t i = 0; i < k; i++) {
        magnitude += (fabs(left[i]) + (high - low) / 255) * fabs(right[i]);
        steps += (high - low) / 255 * fabs(right[i]);
    }
    return 4 * U * (magnitude + fabs(bias)) + (whole_left ? 0.5001 * steps + product_bound((double)k, magnitude) : 0);
}

/* Products of blocks as integers. Weights are sums of a step times a code and of what the smallest code stands for, which is
 * no larger than the largest of their 256, give or take what the quantiser rounded. */
static double bytes_bound(const float *left, const float *right, int64_t k, double bias, bool whole_left)
{
    double magnitude = fabs(bias), steps = 0, whole = fabs(bias);
    for (int64_t i = 0; i < k; i += 32) {
        double most = 0, largest = 0;
        for (int64_t j = i - i % 256; j < i - i % 256 + 256 && j < k; j++)
            largest = fmax(largest, fabs(right[j]));
        for (int64_t j = i; j < i + 32; j++)
            most = fmax(most, fabs(left[j]));
        for (int64_t j = i; j < i + 32; j++) {
            magnitude += (fabs(left[j]) + most / 254) * 3.5 * largest;
            steps += most / 254 * fabs(right[j]);
            whole += fabs((double)left[j] * right[j]);
        }
    }
    const double rest = whole_left ? 1.0001 * steps + product_bound((double)k, whole) : 0;
    return ((double)k / 16 + 12) * U * magnitude + rest + 1e-35;
}

/* What words instead of the operands may change: in each 256 elements a word of either side stands for at most the larger of
 * its 32767th part of the largest and the 65500th, or 2^-14th, of the root of the sum of squares; numbers below 1e-30 may count as 0. */
static double words_bound(const double *left, const float *right, int64_t k)
{
    double bound = 0;
    for (int64_t from = 0; from < k; from += 256) {
        double l = 0, r = 0, l_squares = 0, r_squares = 0, most = 0;
        const int64_t n = k - from < 256 ? k - from : 256;
        for (int64_t i = from; i < from + n; i++) {
            l += fabs(left[i]);
            r += fabs(right[i]);
            l_squares += left[i] * left[i];
            r_squares += (double)right[i] * right[i];
            most = fmax(most, fabs(left[i]));
        }
        const double l_half = 0.501 * fmax(most / 32767, sqrt(l_squares) / 65500) + 1e-30,
                     r_half = 0.501 * sqrt(r_squares) / 16384;
        bound += l * r_half + r * l_half + (double)n * l_half * r_half;
    }
    return bound;
}

static void bound_product(const sotto_tensor *node, float *const *src, const float *y, bool whole_left, double *bound)
{
    const sotto_tensor *x = node->src[0], *w = node->src[1];
    const bool conv = node->op == ST_OP_CONV_1D, matmul = node->op == ST_OP_MATMUL;
    const int64_t stride = conv ? node->params.i[1] : 1, pad = conv ? node->params.i[2] : 0, k = w->dim[0];
    const bool words = node->params.compute == SOTTO_COMPUTE_WORDS && w->dtype == SOTTO_F16;
    double *seen = malloc(sizeof *seen * (size_t)k + 1);
    int64_t at = 0;
    for (int64_t i3 = 0; i3 < node->dim[3]; i3++)
        for (int64_t i2 = 0; i2 < node->dim[2]; i2++)
            for (int64_t i1 = 0; i1 < node->dim[1]; i1++)
                for (int64_t o = 0; o < node->dim[0]; o++, at++) {
                    const float *right = row_of(w, src[1], o, i2, i3);
                    const int64_t first = (i1 * stride - pad) * x->dim[0]; /* a row, or the frames under the kernel */
                    const float *left = row_of(x, src[0], conv ? 0 : i1, i2, i3);
                    double sum = 0, magnitude = 0, rounded = 0;
                    for (int64_t i = 0; i < k; i++) {
                        const bool inside = !conv || (first + i >= 0 && first + i < x->dim[0] * x->dim[1]);
                        seen[i] = inside ? left[conv ? first + i : i] : 0;
                        const double p = seen[i] * right[i];
                        sum += p;
                        magnitude += fabs(p);
                        rounded += rounding(node, seen[i], right[i]);
                    }
                    rounded += words ? words_bound(seen, right, k) : 0;
                    if (!matmul && src[2]) {
                        sum += src[2][o];
                        magnitude += fabs(src[2][o]);
                    }
                    double error = product_bound((double)k, magnitude) + rounded;
                    if (w->dtype == SOTTO_I8)
                        error = i8_bound(left, right, k, src[2] ? src[2][o] : 0, whole_left) + rounded;
                    if (node->op == ST_OP_LINEAR && node->params.compute == SOTTO_COMPUTE_INT8 &&
                        sotto_dtype_block(w->dtype) > 1)
                        error = bytes_bound(left, right, k, src[2] ? src[2][o] : 0, whole_left);
                    bound[at] = activation_bound(node->params.act, sum, error);
                    if (!matmul && src[3])
                        bound[at] += U * (fabs(y[at]) + fabs(src[3][at]));
                }
    free(seen);
}

static void bound_norm(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    const int64_t n = node->dim[0];
    const double slack = ((double)n / 4 + 8) * U;
    for (int64_t r = 0; n > 0 && r < st_tensor_n_rows(node); r++) {
        const float *x = src[0] + r * n;
        double mean = 0, squares = 0, top = 0;
        for (int64_t i = 0; i < n; i++) {
            mean += node->op == ST_OP_LAYER_NORM ? x[i] / (double)n : 0;
            top = fmax(top, fabs(x[i]));
        }
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - mean) * (x[i] - mean);
        const double factor = 1 / sqrt(squares / (double)n + node->params.f[0]);
        for (int64_t i = 0; i < n; i++)
            bound[r * n + i] = node->op == ST_OP_LAYER_NORM
                                   ? slack * (2 * top * factor * fabs(src[1][i]) + fabs(src[2][i])) + 1e-7
                                   : slack * fabs(y[r * n + i]);
    }
}

/* exp(s - top) carries the rounding of s and of the difference, then the sum's. */
static void bound_softmax(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    const sotto_tensor *mask = node->src[1];
    const int64_t n = node->dim[0];
    for (int64_t at = 0; n > 0 && at < sotto_tensor_count(node); at++) {
        const int64_t r = at / n, i1 = r % node->dim[1], i2 = r / node->dim[1] % node->dim[2],
                      i3 = r / node->dim[1] / node->dim[2];
        double s = 0;
        for (int64_t i = 0; i < n; i++) {
            const double m = mask ? row_of(mask, src[1], i1, i2, i3)[i] : 0;
            s = fmax(s, isinf(m) ? 0 : fabs((double)src[0][r * n + i] * node->params.f[0]) + fabs(m));
        }
        bound[at] = ((double)n / 4 + 64 + 6 * s) * U * y[at] + 1e-37;
    }
}

/* the largest are exact */
static void bound_block_sums(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    const int64_t n = node->src[0]->dim[0], n_blocks = node->dim[0];
    for (int64_t at = 0; at < sotto_tensor_count(node); at++) {
        const int64_t r = at / n_blocks / 2;
        double s = 0;
        for (int64_t i = 0; i < n; i++)
            s = fmax(s, fabs((double)src[0][r * n + i]));
        bound[at] = at / n_blocks % 2 == 0 ? 0 : (SOTTO_SUMS_BLOCK / 4 + 64 + 12 * s) * U * y[at];
    }
}

static void bound_linear(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    bound_product(node, src, y, false, bound);
}

/* One row of one head: q, and for each key its k and v rows; fills d bounds. `unit` is 0, or half a step of the numbers
 * that queries, keys, values, scores and probabilities are rounded to; what that does to a score becomes a factor of its
 * weight. In bf16 scores have steps of 1/128 of log 2; in f16 small probabilities have steps of 2^-24. */
static void attention_bound(const float *q, const float *k, const float *v, int64_t step, const int32_t *keys,
                            int64_t n, int64_t d, double scale, double unit, double *bound)
{
    double top = -INFINITY, s_max = 0, sum = 0;
    double *p = malloc((size_t)n * sizeof *p + 1);
    for (int64_t j = 0; j < n; j++) {
        double s = 0, absolute = 0;
        for (int64_t i = 0; i < d; i++) {
            s += (double)q[i] * k[keys[j] * step + i];
            absolute += fabs((double)q[i] * k[keys[j] * step + i]);
        }
        p[j] = s * scale;
        top = fmax(top, p[j]);
        s_max = fmax(s_max, fabs(scale) * absolute);
    }
    for (int64_t j = 0; j < n; j++)
        sum += p[j] = exp(p[j] - top);
    for (int64_t e = 0; e < d; e++) {
        double magnitude = 0;
        for (int64_t j = 0; j < n; j++)
            magnitude += p[j] / sum * fabs(v[keys[j] * step + e]);
        bound[e] = 2 * U * (2 * ((double)d + 8) * s_max + (double)n + 32) * magnitude;
        if (unit > 0)
            bound[e] += (2 * expm1(2 * unit * s_max + unit) + 3 * unit) * magnitude;
        for (int64_t j = 0; unit == U_F16 && j < n; j++)
            bound[e] += 0x1p-25 / sum * fabs(v[keys[j] * step + e]);
    }
    free(p);
}

static void bound_attention(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    (void)y;
    const sotto_tensor *q = node->src[0], *k = node->src[1]; /* [b, n, h, d] */
    const double unit = may_round_to_bf16(node) ? U_BF16 : node->params.compute == SOTTO_COMPUTE_F16 ? U_F16 : 0;
    const int64_t d = q->dim[0], h = q->dim[1], n_q = q->dim[2], h_kv = k->dim[1], n_k = k->dim[2];
    int32_t *keys = malloc((size_t)n_k * sizeof *keys + 1);
    for (int64_t j = 0; j < n_k; j++)
        keys[j] = (int32_t)j;
    for (int64_t row = 0; row < sotto_tensor_count(node) / d; row++) {
        const int64_t hi = row % h, i = row / h % n_q, b = row / h / n_q;
        const int64_t seen = node->params.i[0] ? n_k - n_q + i + 1 : n_k;
        const int64_t kv = (b * n_k * h_kv + hi / (h / h_kv)) * d;
        attention_bound(src[0] + row * d, src[1] + kv, src[2] + kv, h_kv * d, keys, seen < 0 ? 0 : seen, d,
                        node->params.f[0], unit, bound + row * d);
    }
    free(keys);
}

static void bound_cache_attention(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    (void)y;
    const sotto_tensor *q = node->src[0], *k = node->src[1], *index = node->src[3];
    const int64_t d = q->dim[0], h = q->dim[1], h_kv = k->dim[1], n_cell = k->dim[2];
    const int64_t most = index ? index->dim[0] : n_cell;
    /* prompts, and neighbouring cells of bf16, may be rounded to it */
    const bool bf16 = may_round_to_bf16(node) && ((k->dtype == SOTTO_BF16 && !index) || h != h_kv || q->dim[2] >= 32);
    const double unit = bf16 ? U_BF16 : node->params.compute == SOTTO_COMPUTE_F16 ? U_F16 : 0;
    int32_t *keys = malloc((size_t)most * sizeof *keys + 1);
    for (int64_t at = 0; at < q->dim[2] * h; at++) {
        const int64_t row = at / h, kv = at % h / (h / h_kv) * d;
        int64_t base = (int64_t)src[4][row], n = (int64_t)src[5][row];
        base = base < 0 ? 0 : base;
        n = n < 0 ? 0 : n > most ? most : n;
        if (!index)
            n = base > n_cell ? 0 : n > n_cell - base ? n_cell - base : n;
        else
            base = base >= index->dim[1] ? index->dim[1] - 1 : base;
        const int64_t window = node->params.i[0], unseen = window > 0 && n > window ? n - window : 0;
        n -= unseen;
        for (int64_t j = 0; j < n; j++) {
            const int64_t at_list = base * (index ? index->dim[0] : 1) + unseen + j;
            const int64_t c = index ? (int64_t)src[3][at_list] : at_list;
            keys[j] = (int32_t)(c < 0 ? 0 : c >= n_cell ? n_cell - 1 : c);
        }
        attention_bound(src[0] + at * d, src[1] + kv, src[2] + kv, h_kv * d, keys, n, d, node->params.f[0], unit,
                        bound + at * d);
    }
    free(keys);
}

static void bound_element(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    for (int64_t i = 0; i < sotto_tensor_count(node); i++) {
        const double a = fabs(y[i]), x = node->op == ST_OP_POWER ? 0 : src[0][i];
        switch (node->op) {
        case ST_OP_SCALE:
            bound[i] = 2 * U * (fabs(x * node->params.f[0]) + fabs(node->params.f[1]));
            break;
        case ST_OP_GELU:
            bound[i] = activation_bound(SOTTO_ACT_GELU, x, 0);
            break;
        case ST_OP_GLU:
            bound[i] = activation_bound(node->params.act, x, 0) * fabs(src[1][i]) + 2 * U * a + 1e-37;
            break;
        case ST_OP_SILU:
        case ST_OP_SIGMOID:
            bound[i] = 4e-7 * a + 1e-37;
            break;
        case ST_OP_TANH:
            bound[i] = 3e-7 * a + 1e-37;
            break;
        case ST_OP_LOG10:
            bound[i] = 2 * U * a + 1e-7;
            break;
        default:
            bound[i] = 2 * U * a;
        }
    }
}

/* The angle may be wrong by a few units in its last place. */
static void bound_rope(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    (void)y;
    const int64_t d = node->dim[0], n_rot = node->params.i[0], pairs = n_rot / 2;
    const sotto_tensor *positions = node->src[1];
    for (int64_t at = 0; at < sotto_tensor_count(node); at++) {
        const int64_t e = at % d, place = at / d / node->dim[1] % (positions->dim[0] * positions->dim[1]);
        if (e >= n_rot)
            continue;
        const int64_t i = node->params.i[1] ? e % pairs : e / 2;
        const int64_t first = node->params.i[1] ? i : 2 * i, second = node->params.i[1] ? i + pairs : 2 * i + 1;
        const double factor = src[2] ? src[2][i] : 1;
        const double angle = node->params.f[1] * (double)src[1][place] *
                             pow(node->params.f[0], -2.0 * (double)i / (double)n_rot) / factor;
        const float *x = src[0] + at - e;
        bound[at] = fabs(node->params.f[2]) * (fabs(x[first]) + fabs(x[second])) * U * (7 + 10 * fabs(angle));
    }
}

/* The sum's magnitude is found with the places under the window, as the reference does. */
static void bound_conv_2d(const sotto_tensor *node, float *const *src, const float *y, double *bound)
{
    (void)y;
    const sotto_tensor *x = node->src[0], *w = node->src[1];
    const int32_t *p = node->params.i;
    for (int64_t at = 0; at < sotto_tensor_count(node); at++) {
        const int64_t o = at % node->dim[0], r = at / node->dim[0], ox = r % node->dim[1],
                      oy = r / node->dim[1] % node->dim[2], b = r / node->dim[1] / node->dim[2];
        double sum = src[2] ? src[2][o] : 0, magnitude = fabs(sum), rounded = 0;
        for (int64_t e = 0; e < w->dim[0]; e++) {
            const int64_t ix = ox * p[2] - p[4] + e / x->dim[0] % p[0] * p[6],
                          iy = oy * p[3] - p[5] + e / x->dim[0] / p[0] * p[7];
            if (ix < 0 || ix >= x->dim[1] || iy < 0 || iy >= x->dim[2])
                continue;
            const double left = src[0][((b * x->dim[2] + iy) * x->dim[1] + ix) * x->dim[0] + e % x->dim[0]];
            const double right = src[1][o * w->dim[0] + e];
            sum += left * right;
            magnitude += fabs(left * right);
            rounded += rounding(node, left, right);
        }
        bound[at] = activation_bound(node->params.act, sum, product_bound((double)w->dim[0], magnitude) + rounded);
    }
}

typedef void bound_fn(const sotto_tensor *node, float *const *src, const float *y, double *bound);

static bound_fn *const bounds[ST_OP_COUNT] = {
    [ST_OP_LINEAR] = bound_linear,       [ST_OP_MATMUL] = bound_linear,
    [ST_OP_CONV_1D] = bound_linear,      [ST_OP_LAYER_NORM] = bound_norm,
    [ST_OP_RMS_NORM] = bound_norm,       [ST_OP_SOFTMAX] = bound_softmax,
    [ST_OP_ATTENTION] = bound_attention, [ST_OP_CACHE_ATTENTION] = bound_cache_attention,
    [ST_OP_SCALE] = bound_element,       [ST_OP_GELU] = bound_element,
    [ST_OP_SILU] = bound_element,        [ST_OP_SIGMOID] = bound_element,
    [ST_OP_TANH] = bound_element,        [ST_OP_LOG10] = bound_element,
    [ST_OP_POWER] = bound_element,       [ST_OP_SQRT] = bound_element,
    [ST_OP_GLU] = bound_element,         [ST_OP_ROPE] = bound_rope,
    [ST_OP_CONV_2D] = bound_conv_2d,     [ST_OP_BLOCK_SUMS] = bound_block_sums,
};

bool bound_of(const sotto_tensor *node, float *const *src, const float *y, bool whole_left, double *bound)
{
    if (!bounds[node->op])
        return false;
    if (whole_left && bounds[node->op] == bound_linear)
        bound_product(node, src, y, true, bound);
    else
        bounds[node->op](node, src, y, bound);
    return true;
}
