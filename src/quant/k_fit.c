#include "quant/k_fit.h"

#include <math.h>

#include "base/half.h"

enum { GROUPS_MOST = 16 };

/* Without importance: large numbers count more, the others not too little. */
static void weigh(const float *x, const float *importance, float mean_square, int n, float *w)
{
    const float typical = sqrtf(mean_square);
    if (importance)
        st_fit_weights(x, importance, 2 * mean_square, n, w);
    else
        for (int i = 0; i < n; i++)
            w[i] = typical + fabsf(x[i]);
}

static float sum(const float *w, int n)
{
    float s = 0;
    for (int i = 0; i < n; i++)
        s += w[i];
    return s;
}

void st_k_fit_offset(const float *x, const float *importance, const st_k_offset_shape *shape, st_k_offset_block *out)
{
    const int n = shape->group, groups = ST_BLOCK_K / n;
    const float mean_square = st_fit_mean_square(x, ST_BLOCK_K);
    float steps[GROUPS_MOST], offsets[GROUPS_MOST], weights[GROUPS_MOST], w[ST_FIT_MOST];
    for (int g = 0; g < groups; g++) {
        weigh(x + g * n, importance ? importance + g * n : NULL, mean_square, n, w);
        weights[g] = sum(w, n);
        steps[g] = st_fit_offset(x + g * n, w, n, shape->most, importance ? st_fit_fine : shape->range,
                                 out->codes + g * n, &offsets[g]);
    }
    out->d = st_f32_to_f16(st_fit_positive(steps, weights, groups, shape->most_step, out->step));
    out->dmin = st_f32_to_f16(st_fit_positive(offsets, weights, groups, shape->most_step, out->offset));
    const float d = st_f16_to_f32(out->d), dmin = st_f16_to_f32(out->dmin);
    for (int g = 0; g < groups; g++) {
        const float step = d * (float)out->step[g], offset = dmin * (float)out->offset[g];
        for (int i = g * n; i < (g + 1) * n && step != 0; i++)
            out->codes[i] = (uint8_t)st_fit_round((x[i] + offset) / step, 0, (float)shape->most);
    }
}

void st_k_fit_signed(const float *x, const float *importance, int levels, int most_step, st_k_signed_block *out)
{
    enum { N = 16 };
    const float mean_square = st_fit_mean_square(x, ST_BLOCK_K), top = (float)levels;
    float steps[GROUPS_MOST], weights[GROUPS_MOST], w[N];
    for (int g = 0; g < GROUPS_MOST; g++) {
        weigh(x + g * N, importance ? importance + g * N : NULL, mean_square, N, w);
        weights[g] = sum(w, N);
        steps[g] = st_fit_signed(x + g * N, w, N, levels, out->codes + g * N);
    }
    out->d = st_f32_to_f16(st_fit_signed(steps, weights, GROUPS_MOST, most_step, out->step));
    const float d = st_f16_to_f32(out->d);
    for (int g = 0; g < GROUPS_MOST; g++) {
        const float step = d * (float)(out->step[g] - most_step);
        for (int i = g * N; i < (g + 1) * N; i++)
            out->codes[i] = (uint8_t)(step != 0 ? st_fit_round(x[i] / step, -top, top - 1) + top : top);
    }
}
