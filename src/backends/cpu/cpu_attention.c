/* cpu_attention.c: see cpu_attention.h. Both products are those of the linear layers: scores = Q K^T with K as an f32
 * panel of 32 keys, out = P V with V as panels of 32 columns; the tile of scores is the packed left side of the second.
 *
 * Scores are in units of log 2, and their powers of two are taken as they are, without a maximum taken from them: the sum of
 * a row tells afterwards whether f32 had room for them. Rows for which it had not are done again with their maxima, which are
 * then carried from one group of keys to the next.
 *
 * A group of keys meets several tiles of rows while it is in the second cache, which does not hold a whole head. */
#include "backends/cpu/cpu_attention.h"

#include <math.h>
#include <string.h>

enum {
    GROUP_PANELS = 8,
    GROUP = GROUP_PANELS * ST_CPU_PANEL,
    ROWS = 48,            /* taken together at most */
    MOST_TILES = ROWS / 4 /* of any level's mr */
};
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

int st_cpu_attention_tile(const st_cpu_kernels *k)
{
    return ROWS / k->mr * k->mr;
}

/* [queries: ROWS * d] [output tiles: ROWS * d_panels * 32] [scores: mr * GROUP] [queries before packing: d] */
size_t st_cpu_attention_scratch(const st_cpu_attention *a)
{
    const int64_t padded = round_up(a->d, ST_CPU_BLOCK);
    return (size_t)(ROWS * (padded + d_panels(a) * ST_CPU_PANEL) + ST_CPU_MAX_MR * GROUP + padded);
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

/* Rows of queries, at most mr, and what is made of them. */
typedef struct tile {
    const st_cpu_kernels *k;
    const st_cpu_attention *a;
    const float *keys, *values; /* packed */
    int64_t row, end;           /* keys that any of the rows sees */
    int n;
    float *q, *scores, *out;
    float sum[ST_CPU_MAX_MR];
    bool room; /* f32 has had room for the powers of their scores so far */
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

static void meet_group(tile *t, int64_t key)
{
    score_group(t, key);
    t->k->power_tile(t->scores, t->n, 2 * panels_from(t, key), t->sum);
    for (int r = 0; r < t->n; r++)
        t->room = t->room && t->sum[r] <= ROOM;
    if (t->room)
        weigh_group(t, key, NULL);
}

static void by_powers(tile *tiles, int n_tiles, int64_t n_k)
{
    for (int64_t key = 0; key < n_k; key += GROUP)
        for (int i = 0; i < n_tiles; i++)
            if (tiles[i].room)
                meet_group(&tiles[i], key);
    for (int i = 0; i < n_tiles; i++)
        for (int r = 0; r < tiles[i].n; r++)
            tiles[i].room = tiles[i].room && tiles[i].sum[r] >= 1 / ROOM;
}

static void by_maxima(tile *t)
{
    float max[ST_CPU_MAX_MR], rescale[ST_CPU_MAX_MR];
    for (int r = 0; r < t->n; r++) {
        max[r] = -INFINITY;
        t->sum[r] = 0;
    }
    for (int64_t key = 0; key < t->end; key += GROUP) {
        score_group(t, key);
        t->k->softmax_tile(t->scores, t->n, 2 * panels_from(t, key), max, t->sum, rescale);
        weigh_group(t, key, rescale);
    }
}

/* A row's results, and the query of the row that will probably take its place in the next block: whole rows lie far apart. */
static void prefetch(const st_cpu_attention *a, int64_t row, int64_t next)
{
    const float *const q = a->q + (next < a->n_q ? next : row) * a->q_stride, *const out = a->out + row * a->out_stride;
    for (int i = 0; i < a->d; i += 16) {
        __builtin_prefetch(q + i);
        __builtin_prefetch(out + i, 1);
    }
}

static void begin(tile *t, float *line, int n_rows)
{
    const st_cpu_attention *const a = t->a;
    t->end = seen_by(t, t->n - 1); /* the last of these rows sees the most keys */
    t->room = !a->causal;          /* powers may be limited to what is more than nothing: too much for hidden keys */
    for (int r = 0; r < t->n; r++) {
        /* scores come out in units of log 2, for exp2 */
        t->k->scale(a->q + (t->row + r) * a->q_stride, a->scale * 1.44269504f, 0.0f, line, a->d);
        t->k->pack_row(line, a->d, t->q + r * 16, t->n);
        prefetch(a, t->row + r, t->row + r + n_rows);
    }
}

static void finish(tile *t)
{
    const st_cpu_attention *const a = t->a;
    for (int r = 0; r < t->n; r++)
        t->sum[r] = t->sum[r] == 0 ? 0.0f : 1.0f / t->sum[r];
    const st_cpu_epilogue e = {.out = a->out, .out_stride = a->out_stride};
    for (int64_t p = 0; p < d_panels(a); p++) {
        float *acc = t->out + p * t->n * ST_CPU_PANEL;
        const int64_t left = a->d - p * ST_CPU_PANEL;
        if (t->end == 0)
            memset(acc, 0, sizeof(float) * (size_t)t->n * ST_CPU_PANEL);
        t->k->scale_tile(acc, t->n, t->sum);
        t->k->finish(&e, acc, t->n, t->n, t->row, p * ST_CPU_PANEL, (int)(left < ST_CPU_PANEL ? left : ST_CPU_PANEL));
    }
}

void st_cpu_attention_rows(const st_cpu_kernels *k, const st_cpu_attention *a, int64_t row, int n_rows,
                           const float *packed, float *scratch)
{
    const int64_t padded = round_up(a->d, ST_CPU_BLOCK), all = st_cpu_attention_pack_units(a) * ST_CPU_PANEL;
    float *const out = scratch + ROWS * padded, *const scores = out + ROWS * d_panels(a) * ST_CPU_PANEL,
                 *const line = scores + ST_CPU_MAX_MR * GROUP;
    tile tiles[MOST_TILES];
    int n_tiles = 0;
    for (int r = 0; r < n_rows; r += k->mr) {
        tile *const t = &tiles[n_tiles++];
        *t = (tile){.k = k,
                    .a = a,
                    .keys = packed,
                    .values = packed + all * d_steps(a),
                    .row = row + r,
                    .n = n_rows - r < k->mr ? n_rows - r : k->mr,
                    .q = scratch + r * padded,
                    .scores = scores,
                    .out = out + r * d_panels(a) * ST_CPU_PANEL};
        begin(t, line, n_rows);
    }
    if (!a->causal)
        by_powers(tiles, n_tiles, a->n_k);
    for (int i = 0; i < n_tiles; i++) {
        if (!tiles[i].room)
            by_maxima(&tiles[i]);
        finish(&tiles[i]);
    }
}
