/* cpu_attention.c: see cpu_attention.h. Both products are those of the linear layers: scores = Q K^T with K as an f32
 * panel of 32 keys, out = P V with V as panels of 32 columns; the tile of scores is the packed left side of the second.
 *
 * Scores are in units of log 2, and their powers of two are taken as they are, without a maximum taken from them: the sum of
 * a row tells afterwards whether f32 had room for them. Rows for which it had not are done again with their maxima, which are
 * then carried from one group of keys to the next. */
#include "backends/cpu/cpu_attention.h"

#include <math.h>
#include <string.h>

enum { GROUP_PANELS = 16, GROUP = GROUP_PANELS * ST_CPU_PANEL };
/* Sums of powers within 1 / ROOM .. ROOM have lost nothing: what is too small for f32 is far below their last bit. */
#define ROOM 0x1p64f

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

/* [queries: mr * d_steps] [scores: mr * GROUP] [output tiles: d_panels * mr * 32] [queries before packing: d] */
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
        if (n < ST_CPU_PANEL || width < ST_CPU_PANEL)
            memset(dst, 0, sizeof(float) * ST_CPU_PANEL * ST_CPU_PANEL);
        for (int i = 0; i < n; i++)
            memcpy(dst + i * ST_CPU_PANEL, a->v + (first + i) * a->v_stride + p * ST_CPU_PANEL,
                   sizeof(float) * (size_t)width);
    }
}

/* Rows of queries and what is made of them. */
typedef struct tile {
    const st_cpu_kernels *k;
    const st_cpu_attention *a;
    const float *keys, *values; /* packed */
    int64_t row, end;           /* keys that any of the rows sees */
    int n;
    float *q, *scores, *out;
} tile;

/* How many keys row r sees. */
static int64_t seen_by(const tile *t, int r)
{
    const int64_t all = t->a->n_k, seen = all - t->a->n_q + t->row + r + 1;
    return t->a->causal && seen < all ? seen < 0 ? 0 : seen : all;
}

/* -infinity for the keys from `visible` on, in a tile [2][rows][16] of one row r; visible counts from the tile's start */
static void hide(float *scores, int rows, int r, int64_t visible)
{
    for (int64_t c = visible < 0 ? 0 : visible; c < ST_CPU_PANEL; c++)
        scores[(c / 16 * rows + r) * 16 + c % 16] = -INFINITY;
}

/* The panels of a group of keys. */
static int panels_from(const tile *t, int64_t key)
{
    return (int)(round_up(t->end - key < GROUP ? t->end - key : GROUP, ST_CPU_PANEL) / ST_CPU_PANEL);
}

static void score_group(const tile *t, int64_t key)
{
    const int64_t steps = d_steps(t->a), all_see = seen_by(t, 0);
    float *scores = t->scores;
    for (int p = panels_from(t, key); p > 0; p--, key += ST_CPU_PANEL, scores += t->n * ST_CPU_PANEL) {
        t->k->product[t->n](t->q, t->keys + key * steps, (int)(steps / 16), scores, true);
        for (int r = 0; key + ST_CPU_PANEL > all_see && r < t->n; r++)
            hide(scores, t->n, r, seen_by(t, r) - key);
    }
}

/* Adds what the values of a group weigh; what was added before is multiplied first where rescale is given. */
static void weigh_group(const tile *t, int64_t key, const float *rescale)
{
    const int64_t all = st_cpu_attention_pack_units(t->a) * ST_CPU_PANEL;
    for (int64_t p = 0; p < d_panels(t->a); p++) {
        float *acc = t->out + p * t->n * ST_CPU_PANEL;
        if (rescale != NULL && key > 0)
            t->k->scale_tile(acc, t->n, rescale);
        t->k->product[t->n](t->scores, t->values + (p * all + key) * ST_CPU_PANEL, 2 * panels_from(t, key), acc,
                            key == 0);
    }
}

/* Whether f32 had room for the powers of the scores; sum gets their sums. */
static bool by_powers(const tile *t, float *sum)
{
    for (int64_t key = 0; key < t->end; key += GROUP) {
        score_group(t, key);
        t->k->power_tile(t->scores, t->n, 2 * panels_from(t, key), sum);
        for (int r = 0; r < t->n; r++)
            if (!(sum[r] <= ROOM))
                return false;
        weigh_group(t, key, NULL);
    }
    bool room = true;
    for (int r = 0; r < t->n; r++)
        room = room && sum[r] >= 1 / ROOM;
    return room;
}

static void by_maxima(const tile *t, float *sum)
{
    float max[ST_CPU_MAX_MR], rescale[ST_CPU_MAX_MR];
    for (int r = 0; r < t->n; r++) {
        max[r] = -INFINITY;
        sum[r] = 0;
    }
    for (int64_t key = 0; key < t->end; key += GROUP) {
        score_group(t, key);
        t->k->softmax_tile(t->scores, t->n, 2 * panels_from(t, key), max, sum, rescale);
        weigh_group(t, key, rescale);
    }
}

/* The rows' queries and results, and the queries of the rows that will probably be next: whole rows lie far apart. */
static void prefetch(const st_cpu_attention *a, int64_t row, int n)
{
    for (int r = 0; r < n; r++) {
        const float *next = a->q + (row + n + r < a->n_q ? row + n + r : row) * a->q_stride;
        const float *out = a->out + (row + r) * a->out_stride;
        for (int i = 0; i < a->d; i += 16) {
            __builtin_prefetch(next + i);
            __builtin_prefetch(out + i, 1);
        }
    }
}

void st_cpu_attention_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                           const float *packed, float *scratch)
{
    const int64_t padded = round_up(a->d, ST_CPU_BLOCK), all = st_cpu_attention_pack_units(a) * ST_CPU_PANEL;
    tile t = {.k = k, .a = a, .row = row, .n = n_rows};
    t.keys = packed;
    t.values = packed + all * d_steps(a);
    t.q = scratch;
    t.scores = t.q + ST_CPU_MAX_MR * padded;
    t.out = t.scores + ST_CPU_MAX_MR * GROUP;
    t.end = seen_by(&t, n_rows - 1); /* the last of these rows sees the most keys */
    float *line = t.out + ST_CPU_MAX_MR * d_panels(a) * ST_CPU_PANEL, sum[ST_CPU_MAX_MR] = {0};
    for (int r = 0; r < n_rows; r++) {
        /* scores come out in units of log 2, for exp2 */
        k->scale(a->q + (row + r) * a->q_stride, a->scale * 1.44269504f, 0.0f, line, a->d);
        k->pack_row(line, a->d, t.q + r * 16, n_rows);
    }
    prefetch(a, row, n_rows);
    if (a->causal ||
        !by_powers(&t, sum)) /* powers may be limited to what is more than nothing: too much for hidden keys */
        by_maxima(&t, sum);
    for (int r = 0; r < n_rows; r++)
        sum[r] = sum[r] == 0 ? 0.0f : 1.0f / sum[r];
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    for (int64_t p = 0; p < d_panels(a); p++) {
        float *acc = t.out + p * n_rows * ST_CPU_PANEL;
        const int64_t left = a->d - p * ST_CPU_PANEL;
        if (t.end == 0)
            memset(acc, 0, sizeof(float) * (size_t)n_rows * ST_CPU_PANEL);
        k->scale_tile(acc, n_rows, sum);
        k->finish(&e, acc, n_rows, n_rows, row, p * ST_CPU_PANEL, (int)(left < ST_CPU_PANEL ? left : ST_CPU_PANEL));
    }
}
