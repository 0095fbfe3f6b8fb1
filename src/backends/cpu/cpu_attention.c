/* cpu_attention.c: see cpu_attention.h. Both products are those of the linear layers: scores = Q K^T with K as an f32
 * panel of 32 keys, out = P V with V as panels of 32 columns; the tile of scores is the packed left side of the second. */
#include "backends/cpu/cpu_attention.h"

#include <math.h>
#include <string.h>

enum { GROUP_PANELS = 16, GROUP = GROUP_PANELS * ST_CPU_PANEL };

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* d padded for the product kernels, and columns of the output in whole panels */
static int64_t d_steps(const st_cpu_attention *a)
{
    return round_up(a->d, 16);
}

static int64_t d_panels(const st_cpu_attention *a)
{
    return round_up(a->d, ST_CPU_PANEL) / ST_CPU_PANEL;
}

int64_t st_cpu_attention_pack_units(const st_cpu_attention *a)
{
    return round_up(a->n_k, ST_CPU_PANEL) / ST_CPU_PANEL;
}

size_t st_cpu_attention_packed(const st_cpu_attention *a)
{
    return (size_t)(st_cpu_attention_pack_units(a) * ST_CPU_PANEL * (d_steps(a) + d_panels(a) * ST_CPU_PANEL));
}

/* [queries: mr * d_steps] [scores: mr * 512] [output tiles: d_panels * mr * 32] [queries before packing: d] */
size_t st_cpu_attention_scratch(const st_cpu_attention *a)
{
    return (size_t)(ST_CPU_MAX_MR * (round_up(a->d, ST_CPU_BLOCK) + GROUP + d_panels(a) * ST_CPU_PANEL) +
                    round_up(a->d, ST_CPU_BLOCK));
}

void st_cpu_attention_pack(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t unit, float *packed)
{
    const int64_t first = unit * ST_CPU_PANEL, all = st_cpu_attention_pack_units(a) * ST_CPU_PANEL;
    const int n = (int)(a->n_k - first < ST_CPU_PANEL ? a->n_k - first : ST_CPU_PANEL);
    k->pack_panel(a->k + first * a->k_stride, a->k_stride, n, a->d, d_steps(a), packed + first * d_steps(a));
    float *v = packed + all * d_steps(a);
    for (int64_t p = 0; p < d_panels(a); p++) {
        float *dst = v + (p * all + first) * ST_CPU_PANEL;
        const int64_t left = a->d - p * ST_CPU_PANEL, width = left < ST_CPU_PANEL ? left : ST_CPU_PANEL;
        memset(dst, 0, sizeof(float) * ST_CPU_PANEL * ST_CPU_PANEL);
        for (int i = 0; i < n; i++)
            memcpy(dst + i * ST_CPU_PANEL, a->v + (first + i) * a->v_stride + p * ST_CPU_PANEL,
                   sizeof(float) * (size_t)width);
    }
}

/* -infinity for the keys from `visible` on, in a tile [2][rows][16] of one row r; visible counts from the tile's start */
static void hide(float *tile, int rows, int r, int64_t visible)
{
    for (int64_t c = visible < 0 ? 0 : visible; c < ST_CPU_PANEL; c++)
        tile[(c / 16 * rows + r) * 16 + c % 16] = -INFINITY;
}

void st_cpu_attention_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                           const float *packed, float *scratch)
{
    const int64_t steps = d_steps(a), padded = round_up(a->d, ST_CPU_BLOCK),
                  all = st_cpu_attention_pack_units(a) * ST_CPU_PANEL;
    float *q = scratch, *scores = q + ST_CPU_MAX_MR * padded, *out = scores + ST_CPU_MAX_MR * GROUP;
    float *line = out + ST_CPU_MAX_MR * d_panels(a) * ST_CPU_PANEL;
    const float *v = packed + all * steps;
    float max[ST_CPU_MAX_MR], sum[ST_CPU_MAX_MR], rescale[ST_CPU_MAX_MR];
    for (int r = 0; r < n_rows; r++) {
        /* scores come out in units of log 2, for exp2 */
        k->scale(a->q + (row + r) * a->q_stride, a->scale * 1.44269504f, 0.0f, line, a->d);
        k->pack_row(line, a->d, q + r * 16, n_rows);
        max[r] = -INFINITY;
        sum[r] = 0;
    }
    /* the last of these rows sees the most keys */
    const int64_t offset = a->n_k - a->n_q;
    int64_t end = a->causal ? offset + row + n_rows : a->n_k;
    end = end < 0 ? 0 : end > a->n_k ? a->n_k : end;
    for (int64_t key = 0; key < end; key += GROUP) {
        const int64_t panels = round_up(end - key < GROUP ? end - key : GROUP, ST_CPU_PANEL) / ST_CPU_PANEL;
        for (int64_t p = 0; p < panels; p++) {
            const int64_t at = key + p * ST_CPU_PANEL;
            float *tile = scores + p * n_rows * ST_CPU_PANEL;
            k->product[n_rows](q, packed + at * steps, (int)(steps / 16), tile, true);
            if (at + ST_CPU_PANEL > a->n_k || a->causal)
                for (int r = 0; r < n_rows; r++) {
                    const int64_t limit = a->causal && offset + row + r + 1 < a->n_k ? offset + row + r + 1 : a->n_k;
                    hide(tile, n_rows, r, limit - at);
                }
        }
        k->softmax_tile(scores, n_rows, (int)(2 * panels), max, sum, rescale);
        for (int64_t p = 0; p < d_panels(a); p++) {
            float *acc = out + p * n_rows * ST_CPU_PANEL;
            if (key > 0)
                k->scale_tile(acc, n_rows, rescale);
            k->product[n_rows](scores, v + (p * all + key) * ST_CPU_PANEL, (int)(2 * panels), acc, key == 0);
        }
    }
    for (int r = 0; r < n_rows; r++)
        sum[r] = sum[r] == 0 ? 0.0f : 1.0f / sum[r];
    for (int64_t p = 0; p < d_panels(a); p++) {
        float *acc = out + p * n_rows * ST_CPU_PANEL;
        const int64_t left = a->d - p * ST_CPU_PANEL;
        if (end == 0)
            memset(acc, 0, sizeof(float) * (size_t)n_rows * ST_CPU_PANEL);
        k->scale_tile(acc, n_rows, sum);
        const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
        k->finish(&e, acc, n_rows, n_rows, row, p * ST_CPU_PANEL, (int)(left < ST_CPU_PANEL ? left : ST_CPU_PANEL));
    }
}
