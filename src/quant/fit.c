#include "quant/fit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

const st_fit_range st_fit_fine = {-0.9f, 0.05f, 36};

static const float nothing = 1e-15f; /* groups of smaller numbers are zeros */

static void zeros(uint8_t *codes, int n)
{
    for (int i = 0; i < n; i++)
        codes[i] = 0;
}

float st_fit_mean_square(const float *x, int64_t n)
{
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum / (float)n;
}

void st_fit_weights(const float *x, const float *importance, float mean_square, int n, float *w)
{
    for (int i = 0; i < n; i++)
        w[i] = importance[i] * sqrtf(mean_square + x[i] * x[i]);
}

/* ---- signed codes ---- */

/* For one scale 1 / step: the sums from which follow the best step, xq / qq, and how much it leaves of the squares. */
typedef struct sums {
    float xq, qq;
} sums;

static sums try_signed(const float *x, const float *w, int n, float levels, float inverse)
{
    sums s = {0, 0};
    for (int i = 0; i < n; i++) {
        const float q = st_fit_round(inverse * x[i], -levels, levels - 1);
        s.xq += w[i] * x[i] * q;
        s.qq += w[i] * q * q;
    }
    return s;
}

float st_fit_signed(const float *x, const float *w, int n, int levels, uint8_t *codes)
{
    enum { AROUND = 9 };
    const float top = (float)levels;
    float largest = 0, extreme = 0;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > largest) {
            largest = fabsf(x[i]);
            extreme = x[i];
        }
    if (!(largest >= nothing)) {
        zeros(codes, n);
        return 0;
    }
    float inverse = -top / extreme;
    sums s = try_signed(x, w, n, top, inverse);
    float step = s.qq != 0 ? s.xq / s.qq : 0, best = step * s.xq;
    for (int i = -AROUND; i <= AROUND; i++) {
        const float candidate = -(top + 0.1f * (float)i) / extreme;
        s = try_signed(x, w, n, top, candidate);
        if (i != 0 && s.qq > 0 && s.xq * s.xq > best * s.qq) {
            step = s.xq / s.qq;
            best = step * s.xq;
            inverse = candidate;
        }
    }
    for (int i = 0; i < n; i++)
        codes[i] = (uint8_t)(st_fit_round(inverse * x[i], -top, top - 1) + top);
    return step;
}

/* ---- codes above an offset ---- */

static float error_of(const float *x, const float *w, const float *q, int n, float step, float least)
{
    float sum = 0;
    for (int i = 0; i < n; i++) {
        const float off = step * q[i] + least - x[i];
        sum += w[i] * (off * off);
    }
    return sum;
}

typedef struct line {
    float step, least;
} line;

/* Step and least value that suit the codes best, by the normal equations; the least value is 0 at most. False when the
 * codes determine none. `w` and `x`: the sums of w and of w * x. */
static bool solve(const float *x, const float *w, const float *q, int n, float sum_w, float sum_x, line *out)
{
    float sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (int i = 0; i < n; i++) {
        sum_q += w[i] * q[i];
        sum_qq += w[i] * q[i] * q[i];
        sum_xq += w[i] * q[i] * x[i];
    }
    const float determinant = sum_w * sum_qq - sum_q * sum_q;
    if (!(determinant > 0))
        return false;
    out->step = (sum_w * sum_xq - sum_x * sum_q) / determinant;
    out->least = (sum_qq * sum_x - sum_q * sum_xq) / determinant;
    if (out->least > 0)
        *out = (line){sum_xq / sum_qq, 0};
    return true;
}

float st_fit_offset(const float *x, const float *w, int n, int most, st_fit_range range, uint8_t *codes, float *offset)
{
    float least = x[0], greatest = x[0], sum_w = 0, sum_x = 0;
    for (int i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        greatest = x[i] > greatest ? x[i] : greatest;
        sum_w += w[i];
        sum_x += w[i] * x[i];
    }
    least = least > 0 ? 0 : least;
    *offset = -least;
    if (!(greatest > least)) {
        zeros(codes, n);
        return 0;
    }
    const float top = (float)most;
    float q[ST_FIT_MOST], best_q[ST_FIT_MOST];
    for (int i = 0; i < n; i++)
        best_q[i] = st_fit_round(top / (greatest - least) * (x[i] - least), 0, top);
    line best = {1 / (top / (greatest - least)), least};
    float best_error = error_of(x, w, best_q, n, best.step, best.least);
    for (int k = 0; k <= range.n; k++) {
        const float inverse = (range.first + range.step * (float)k + top) / (greatest - best.least);
        for (int i = 0; i < n; i++)
            q[i] = st_fit_round(inverse * (x[i] - best.least), 0, top);
        line candidate;
        if (!solve(x, w, q, n, sum_w, sum_x, &candidate))
            continue;
        const float error = error_of(x, w, q, n, candidate.step, candidate.least);
        if (error < best_error) {
            best_error = error;
            best = candidate;
            memcpy(best_q, q, sizeof q[0] * (size_t)n);
        }
    }
    for (int i = 0; i < n; i++)
        codes[i] = (uint8_t)best_q[i];
    *offset = -best.least;
    return best.step;
}

/* ---- codes of steps and offsets themselves ---- */

float st_fit_positive(const float *x, const float *w, int n, int most, uint8_t *codes)
{
    enum { AROUND = 8 };
    const float top = (float)most;
    float greatest = 0;
    for (int i = 0; i < n; i++)
        greatest = x[i] > greatest ? x[i] : greatest;
    if (greatest < nothing) {
        zeros(codes, n);
        return 0;
    }
    float inverse = top / greatest, step = 0, best = -1;
    for (int k = -AROUND; k <= AROUND; k++) {
        const float candidate = (top + 0.1f * (float)k) / greatest;
        sums s = {0, 0};
        for (int i = 0; i < n; i++) {
            const float q = st_fit_round(candidate * x[i], 0, top);
            s.xq += w[i] * x[i] * q;
            s.qq += w[i] * q * q;
        }
        if (s.qq > 0 && s.xq * s.xq > best * s.qq) {
            step = s.xq / s.qq;
            best = step * s.xq;
            inverse = candidate;
        }
    }
    if (best < 0) /* no weight counts */
        step = 1 / inverse;
    for (int i = 0; i < n; i++)
        codes[i] = (uint8_t)st_fit_round(inverse * x[i], 0, top);
    return step;
}
