#include "models/common/logits.h"

#include <float.h>
#include <math.h>

#include "base/half.h"

enum { BLOCK = ST_LOGITS_BLOCK, LANES = 8 };

static int32_t min_i32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

bool st_logits_scan(const float *x, int32_t n, float *block_max)
{
    int bad = 0;
    int32_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        float m[LANES];
        int wrong[LANES] = {0};
        for (int j = 0; j < LANES; j++)
            m[j] = -INFINITY;
        for (int b = 0; b < BLOCK; b += LANES)
            for (int j = 0; j < LANES; j++) {
                const float v = x[i + b + j];
                m[j] = v > m[j] ? v : m[j];
                wrong[j] |= !(v <= FLT_MAX);
            }
        for (int j = 1; j < LANES; j++) {
            m[0] = m[j] > m[0] ? m[j] : m[0];
            wrong[0] |= wrong[j];
        }
        block_max[i / BLOCK] = m[0];
        bad |= wrong[0];
    }
    if (i < n) {
        float m = -INFINITY;
        for (int32_t k = i; k < n; k++) {
            m = x[k] > m ? x[k] : m;
            bad |= !(x[k] <= FLT_MAX);
        }
        block_max[i / BLOCK] = m;
    }
    return !bad;
}

float st_logits_max(const float *x, const float *block_max, st_range r)
{
    float m = -INFINITY;
    for (int32_t i = r.lo; i < r.hi;) {
        if (i % BLOCK == 0 && i + BLOCK <= r.hi) {
            m = block_max[i / BLOCK] > m ? block_max[i / BLOCK] : m;
            i += BLOCK;
        } else {
            m = x[i] > m ? x[i] : m;
            i++;
        }
    }
    return m;
}

/* e^x for x <= 0, relative error below 3e-7; what is below e^-87 becomes e^-87 or less. Written without branches, calls and
 * comparisons of floats, which may trap, so that compilers make vectors of it. */
static inline float exp_negative(float x)
{
    const int32_t bits = (int32_t)(st_f32_bits(x) ^ 0x80000000u), least = 0x42ae0000; /* of -x, and of 87 */
    const int32_t keep = -(bits < least);
    x = st_bits_f32((uint32_t)((bits & keep) | (least & ~keep)) ^ 0x80000000u);
    const float shifted = x * 1.44269504f + 12582912.0f; /* 1.5 * 2^23: the low bits become the nearest integer */
    const float n = shifted - 12582912.0f;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f; /* ln 2 in two parts */
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return st_bits_f32(st_f32_bits(p) + (st_f32_bits(shifted) << 23));
}

static double sum_scaled(const float *x, int32_t lo, int32_t hi, float max, float scale)
{
    double total = 0;
    int32_t i = lo;
    for (; i + BLOCK <= hi; i += BLOCK) {
        float e[BLOCK], s[LANES] = {0};
        for (int b = 0; b < BLOCK; b++)
            e[b] = exp_negative((x[i + b] - max) * scale);
        for (int b = 0; b < BLOCK; b += LANES)
            for (int j = 0; j < LANES; j++)
                s[j] += e[b + j];
        total += (double)(((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7])));
    }
    for (; i < hi; i++)
        total += (double)exp_negative((x[i] - max) * scale);
    return total;
}

/* Of the blocks lo <= b < hi, whose sums are known. */
static double sum_blocks(const float *block_max, const float *block_sum, int32_t lo, int32_t hi, float max)
{
    double total = 0;
    for (int32_t b = lo; b < hi; b += LANES) {
        float e[LANES];
        const int32_t n = min_i32(LANES, hi - b);
        for (int32_t j = 0; j < LANES; j++)
            e[j] = j < n ? block_max[b + j] - max : -INFINITY;
        for (int32_t j = 0; j < LANES; j++)
            e[j] = exp_negative(e[j]);
        for (int32_t j = 0; j < n; j++)
            total += (double)(e[j] * block_sum[b + j]);
    }
    return total;
}

double st_logits_sum_exp(const float *x, const float *block_max, const float *block_sum, st_range r, float max)
{
    double total = 0;
    const int32_t lo = (r.lo + BLOCK - 1) / BLOCK, hi = r.hi / BLOCK; /* blocks that lie in the range */
    const bool known = block_sum && lo < hi && max != -INFINITY;
    if (known)
        total = sum_blocks(block_max, block_sum, lo, hi, max);
    for (int32_t i = r.lo; max != -INFINITY && i < r.hi;) {
        if (known && i == lo * BLOCK)
            i = hi * BLOCK;
        const int32_t end = min_i32((i / BLOCK + 1) * BLOCK, r.hi);
        if (i >= end)
            break;
        if (block_max[i / BLOCK] > max - 27.0f)
            total += sum_scaled(x, i, end, max, 1.0f);
        i = end;
    }
    return total;
}

bool st_logits_are_numbers(const float *block_sum, int32_t n_blocks)
{
    int bad = 0;
    for (int32_t b = 0; b < n_blocks; b++)
        bad |= !(block_sum[b] <= FLT_MAX);
    return !bad;
}

void st_logits_forbid(float *x, int32_t n, float *block_max, float *block_sum, int32_t t)
{
    const int32_t b = t / BLOCK, lo = b * BLOCK, hi = min_i32(lo + BLOCK, n);
    const float was = x[t], part = was == -INFINITY ? 0.0f : exp_negative(was - block_max[b]);
    x[t] = -INFINITY;
    if (block_sum[b] - part > 0.25f * block_sum[b] && was < block_max[b]) {
        block_sum[b] -= part;
        return;
    }
    /* a difference would have few digits, or the largest is gone */
    block_max[b] = -INFINITY;
    for (int32_t i = lo; i < hi; i++)
        block_max[b] = x[i] > block_max[b] ? x[i] : block_max[b];
    block_sum[b] = block_max[b] == -INFINITY ? 0.0f : (float)sum_scaled(x, lo, hi, block_max[b], 1.0f);
}

static int insert(st_scored *out, int n, int k, int32_t id, float logit)
{
    int at = n < k ? n : k - 1;
    for (; at > 0 && logit > out[at - 1].logit; at--)
        out[at] = out[at - 1];
    out[at] = (st_scored){id, logit};
    return n < k ? n + 1 : k;
}

int st_logits_top(const float *x, const float *block_max, const st_range *ranges, int n_ranges, int k, st_scored *out)
{
    int n = 0;
    float bar = -INFINITY; /* entries must be above it */
    for (int r = 0; r < n_ranges; r++)
        for (int32_t i = ranges[r].lo; i < ranges[r].hi;) {
            const int32_t end = min_i32((i / BLOCK + 1) * BLOCK, ranges[r].hi);
            if (block_max[i / BLOCK] > bar)
                for (int32_t t = i; t < end; t++)
                    if (x[t] > bar) {
                        n = insert(out, n, k, t, x[t]);
                        bar = n == k ? out[k - 1].logit : -INFINITY;
                    }
            i = end;
        }
    return n;
}

int32_t st_logits_sample(const float *x, const st_range *ranges, int n_ranges, float max, float temperature,
                         st_rng *rng, double *block_sum)
{
    if (max == -INFINITY)
        return -1;
    const float scale = 1.0f / temperature;
    double total = 0;
    int64_t n = 0;
    for (int r = 0; r < n_ranges; r++)
        for (int32_t i = ranges[r].lo; i < ranges[r].hi; i += BLOCK)
            total += block_sum[n++] = sum_scaled(x, i, min_i32(i + BLOCK, ranges[r].hi), max, scale);
    double left = st_rng_uniform(rng) * total;
    int32_t last = -1; /* rounding may leave a little at the end */
    n = 0;
    for (int r = 0; r < n_ranges; r++)
        for (int32_t i = ranges[r].lo; i < ranges[r].hi; i += BLOCK, n++) {
            const int32_t end = min_i32(i + BLOCK, ranges[r].hi);
            if (left >= block_sum[n] && end < ranges[n_ranges - 1].hi) {
                left -= block_sum[n];
                continue;
            }
            for (int32_t t = i; t < end; t++) {
                if (x[t] == -INFINITY)
                    continue;
                last = t;
                left -= (double)exp_negative((x[t] - max) * scale);
                if (left < 0)
                    return t;
            }
        }
    for (int r = 0; r < n_ranges && last < 0; r++)
        for (int32_t t = ranges[r].lo; t < ranges[r].hi && last < 0; t++)
            last = x[t] == max ? t : -1;
    return last;
}
