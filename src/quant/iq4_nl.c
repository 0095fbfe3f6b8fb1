#include <math.h>
#include <string.h>

#include "base/half.h"
#include "quant/fit.h"
#include "quant/quant.h"

const int8_t st_iq4_nl_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

void st_iq4_nl_unpack(const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK, in += sizeof(st_iq4_nl)) {
        st_iq4_nl b;
        memcpy(&b, in, sizeof b);
        const float d = st_f16_to_f32(b.d);
        for (int j = 0; j < 16; j++) {
            dst[i + j] = d * (float)st_iq4_nl_values[b.qs[j] & 15];
            dst[i + j + 16] = d * (float)st_iq4_nl_values[b.qs[j] >> 4];
        }
    }
}

/* Finds the level next to a number. Borders between levels lie half way and more than CELL apart: a cell has one at most. */
enum { CELL = 4, CELLS = 256 / CELL };
typedef struct finder {
    uint8_t first[CELLS]; /* code at the beginning of each cell from -128 on */
    float border[16];     /* from which on a code is the next one */
} finder;

static finder make_finder(void)
{
    finder f = {.border = {0}};
    for (int code = 0; code < 15; code++)
        f.border[code] = (float)(st_iq4_nl_values[code] + st_iq4_nl_values[code + 1]) / 2;
    f.border[15] = INFINITY;
    for (int cell = 1; cell < CELLS; cell++) {
        const float start = (float)(cell * CELL - 128);
        f.first[cell] = f.first[cell - 1];
        while (start >= f.border[f.first[cell]])
            f.first[cell]++;
    }
    return f;
}

static uint8_t code_of(const finder *f, float v)
{
    v = v < 127 ? v : 127;
    v = v > -128 ? v : -128;
    const uint8_t first = f->first[(int)(v + 128) / CELL];
    return (uint8_t)(first + (v >= f->border[first]));
}

/* The step of the least error among those that make the extreme number a level next to one of the ends. */
static float find_step(const finder *f, const float *x, const float *w)
{
    enum { AROUND = 7 };
    const float extreme = st_block_extreme(x), nothing = 1e-15f;
    float step = 0, best = 0;
    if (!(fabsf(extreme) >= nothing))
        return 0;
    for (int k = 0; k < 2 * (2 * AROUND + 1); k++) {
        const float inverse = (float)(st_iq4_nl_values[k % 2 * 15] + k / 2 - AROUND) / extreme;
        float xq = 0, qq = 0;
        for (int j = 0; j < ST_BLOCK; j++) {
            const float q = st_iq4_nl_values[code_of(f, inverse * x[j])];
            xq += w[j] * x[j] * q;
            qq += w[j] * q * q;
        }
        if (qq > 0 && xq * xq > best * qq) {
            step = xq / qq;
            best = step * xq;
        }
    }
    return step;
}

void st_iq4_nl_pack(const float *src, const float *importance, void *dst, int64_t n)
{
    uint8_t *out = dst;
    const finder f = make_finder();
    for (int64_t i = 0; i < n; i += ST_BLOCK, out += sizeof(st_iq4_nl)) {
        const float *const x = src + i, mean_square = st_fit_mean_square(x, ST_BLOCK);
        float w[ST_BLOCK];
        if (importance)
            st_fit_weights(x, importance + i, 2 * mean_square, ST_BLOCK, w);
        for (int j = 0; j < ST_BLOCK && !importance; j++)
            w[j] = mean_square + x[j] * x[j];
        const float step = find_step(&f, x, w), inverse = step != 0 ? 1 / step : 0;
        st_iq4_nl b = {.d = st_f32_to_f16(step)};
        for (int j = 0; j < 16; j++)
            b.qs[j] = (uint8_t)(code_of(&f, inverse * x[j]) | code_of(&f, inverse * x[j + 16]) << 4);
        memcpy(out, &b, sizeof b);
    }
}
