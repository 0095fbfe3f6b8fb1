/* cpu_cells.c: see cpu_cells.h. A query is a row with a head, numbered row by row; some of them are a tile. Where rounding is
 * allowed and the level has bf16 products these take the place of those in f32; scores are then in units of 1/128 of log 2
 * (cpu_attention_bf16.c), and what is rounded are queries, keys, values and probabilities. */
#include "backends/cpu/cpu_cells.h"

#include <math.h>
#include <string.h>

/* Keys or values of a group take about 128 KiB. */
enum { GROUP_FLOATS = 32768, MOST_GROUP = 512, LEAST_GROUP = 64 };

static int64_t round_up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

static int group_of(int d)
{
    const int fit = GROUP_FLOATS / (int)round_up(d, ST_CPU_PANEL) / ST_CPU_PANEL * ST_CPU_PANEL;
    return fit > MOST_GROUP ? MOST_GROUP : fit < LEAST_GROUP ? LEAST_GROUP : fit;
}

typedef struct areas {
    bool bf16;
    int mr, unit;    /* queries of a tile, and what a tile's rows are filled up to a multiple of */
    int wide, steps; /* d in whole panels, and in whole chunks of the product */
    int group;       /* cells */
    float *q, *acc;  /* tiles of queries and of results: mr * wide floats each */
    float *keys, *values, *scores;
    float *cells, *line; /* 32 cells expanded; a query before packing */
    float *max, *sum;    /* of each query */
    float *product;      /* bf16: a tile to be added to acc */
    uint8_t *weights;    /* bf16: probabilities, [panels][rows][64 bytes] */
} areas;

static int n_tiles(int mr, int share, int n_row)
{
    return (n_row * share + mr - 1) / mr;
}

static bool takes_bf16(const st_cpu_kernels *k, int d, bool bf16)
{
    return bf16 && k->bf16.mr > 0 && k->attend.largest_of != NULL && d % ST_CPU_PANEL == 0;
}

/* The next n floats; NULL when only their number is asked for. */
static float *take(float *scratch, size_t *used, size_t n)
{
    float *at = scratch != NULL ? scratch + *used : NULL;
    *used += (n + 15) / 16 * 16;
    return at;
}

static areas areas_of(const st_cpu_kernels *k, int d, int share, int n_row, bool bf16, float *scratch, size_t *used)
{
    areas a = {.wide = (int)round_up(d, ST_CPU_PANEL), .steps = (int)round_up(d, 16), .group = group_of(d)};
    a.bf16 = takes_bf16(k, d, bf16);
    a.mr = a.bf16 ? k->bf16.mr : k->mr;
    a.unit = a.bf16 ? k->bf16.row_unit : 1;
    const size_t wide = (size_t)a.wide, group = (size_t)a.group, mr = (size_t)round_up(a.mr, a.unit),
                 queries = (size_t)n_tiles(a.mr, share, n_row) * mr;
    *used = 0;
    a.q = take(scratch, used, queries * wide);
    a.acc = take(scratch, used, queries * wide);
    a.keys = take(scratch, used, group * wide);
    a.values = take(scratch, used, group * wide);
    a.scores = take(scratch, used, group * mr);
    a.cells = take(scratch, used, ST_CPU_PANEL * wide);
    a.line = take(scratch, used, wide);
    a.max = take(scratch, used, queries);
    a.sum = take(scratch, used, queries);
    a.product = take(scratch, used, a.bf16 ? mr * ST_CPU_PANEL : 0);
    a.weights = (uint8_t *)take(scratch, used, a.bf16 ? group * mr / 2 : 0);
    return a;
}

size_t st_cpu_prompt_scratch(const st_cpu_kernels *k, int d, int share, int n_row, bool bf16)
{
    size_t used;
    (void)areas_of(k, d, share, n_row, bf16, NULL, &used);
    return used;
}

/* n elements of a cell, whole blocks where there are blocks. */
static void expand(const st_cpu_kernels *k, sotto_dtype type, const char *from, float *to, int n)
{
    if (type == SOTTO_F16)
        k->from_f16((const uint16_t *)(const void *)from, to, n);
    else if (type == SOTTO_BF16)
        k->from_bf16((const uint16_t *)(const void *)from, to, n);
    else if (type == SOTTO_Q8_0)
        k->from_q8_0(from, to, n);
    else
        memcpy(to, from, sizeof *to * (size_t)n);
}

void st_cpu_expand_cells(const st_cpu_kernels *k, const st_cpu_prompt *p, sotto_dtype type, const char *data,
                         size_t stride, int64_t place, int n, float *to)
{
    for (int i = 0; i < n; i++, to += p->d) {
        const int64_t listed = p->index != NULL ? p->index[place + i] : p->base + place + i;
        const int64_t cell = listed < 0 ? 0 : listed >= p->n_cell ? p->n_cell - 1 : listed;
        expand(k, type, data + (size_t)cell * stride, to, p->d);
    }
}

/* Values [.., d] as the rows of f32 panels of 32 columns; zeros beyond n and d. */
static void pack_values(const st_cpu_prompt *p, const areas *a, int panel, int n)
{
    for (int c = 0; c < a->wide; c += ST_CPU_PANEL) {
        float *to = a->values + (c / ST_CPU_PANEL * a->group + panel * ST_CPU_PANEL) * ST_CPU_PANEL;
        const int width = p->d - c < ST_CPU_PANEL ? p->d - c : ST_CPU_PANEL;
        if (n < ST_CPU_PANEL || width < ST_CPU_PANEL)
            memset(to, 0, sizeof *to * ST_CPU_PANEL * ST_CPU_PANEL);
        for (int i = 0; i < n; i++)
            memcpy(to + i * ST_CPU_PANEL, a->cells + i * p->d + c, sizeof *to * (size_t)width);
    }
}

enum { NARROW_CHUNK = 2048 }; /* bytes of 32 by 32 bf16 */

/* Places [from, from + n) of the list, n <= group; what fills the last panel up is zero. */
static void pack_group(const st_cpu_kernels *k, const st_cpu_prompt *p, const areas *a, int64_t from, int n)
{
    for (int panel = 0; panel * ST_CPU_PANEL < n; panel++) {
        const int first = panel * ST_CPU_PANEL, here = n - first < ST_CPU_PANEL ? n - first : ST_CPU_PANEL;
        const int chunks = a->wide / ST_CPU_PANEL;
        st_cpu_expand_cells(k, p, p->k_type, p->k, p->k_stride, from + first, here, a->cells);
        if (a->bf16)
            k->attend.pack_keys(a->cells, p->d, here, p->d, (uint8_t *)a->keys + panel * chunks * NARROW_CHUNK);
        else
            k->pack_panel(a->cells, p->d, here, p->d, a->steps, a->keys + first * a->steps);
        st_cpu_expand_cells(k, p, p->v_type, p->v, p->v_stride, from + first, here, a->cells);
        for (int c = 0; a->bf16 && c < chunks; c++)
            k->attend.pack_values(a->cells + c * ST_CPU_PANEL, p->d, here,
                                  (uint8_t *)a->values + (c * (a->group / ST_CPU_PANEL) + panel) * NARROW_CHUNK);
        if (!a->bf16)
            pack_values(p, a, panel, here);
    }
}

/* -infinity for the columns [from, to) of row r of a tile [2][rows][16] */
static void hide(float *scores, int rows, int r, int64_t from, int64_t to)
{
    for (int64_t c = from < 0 ? 0 : from; c < to && c < ST_CPU_PANEL; c++)
        scores[(c / 16 * rows + r) * 16 + c % 16] = -INFINITY;
}

/* Some queries and what they see. */
typedef struct tile {
    int first, n, rows; /* queries, and rows of their product tile */
    st_cpu_range seen;  /* by any of them */
    st_cpu_range by_all;
    float *q, *acc;
} tile;

static tile tile_at(const st_cpu_prompt *p, const areas *a, int t)
{
    const int left = p->n_row * p->share - t * a->mr;
    tile x = {.first = t * a->mr, .n = left < a->mr ? left : a->mr, .seen = {INT64_MAX, 0}, .by_all = {0, INT64_MAX}};
    x.rows = (int)round_up(x.n, a->unit);
    x.q = a->q + t * round_up(a->mr, a->unit) * a->wide;
    x.acc = a->acc + t * round_up(a->mr, a->unit) * a->wide;
    for (int r = x.first / p->share; r <= (x.first + x.n - 1) / p->share; r++) {
        const st_cpu_range s = p->seen[r];
        x.by_all.first = s.first > x.by_all.first ? s.first : x.by_all.first;
        x.by_all.end = s.end < x.by_all.end ? s.end : x.by_all.end;
        if (s.first < s.end) {
            x.seen.first = s.first < x.seen.first ? s.first : x.seen.first;
            x.seen.end = s.end > x.seen.end ? s.end : x.seen.end;
        }
    }
    return x;
}

/* Scores of the tile with the places of one panel of the group, -infinity where a row does not see one. */
static void score_panel(const st_cpu_kernels *k, const st_cpu_prompt *p, const areas *a, const tile *t, int panel,
                        int64_t at, float *scores)
{
    const int chunks = a->wide / ST_CPU_PANEL;
    if (a->bf16)
        k->bf16.product[t->n](t->q, (const uint8_t *)a->keys + panel * chunks * NARROW_CHUNK, chunks, scores);
    else
        k->product[t->n](t->q, a->keys + panel * ST_CPU_PANEL * a->steps, a->steps / 16, scores, true);
    if (at >= t->by_all.first && at + ST_CPU_PANEL <= t->by_all.end)
        return;
    for (int r = 0; r < t->n; r++) {
        const st_cpu_range s = p->seen[(t->first + r) / p->share];
        hide(scores, t->rows, r, 0, s.first - at);
        hide(scores, t->rows, r, s.end - at, ST_CPU_PANEL);
    }
}

static void weigh_f32(const st_cpu_kernels *k, const areas *a, const tile *t, int panel, int panels, bool begins)
{
    float rescale[ST_CPU_MAX_MR], *acc = t->acc;
    k->softmax_tile(a->scores, t->n, 2 * panels, a->max + t->first, a->sum + t->first, rescale);
    for (int c = 0; c < a->wide / ST_CPU_PANEL; c++, acc += t->n * ST_CPU_PANEL) {
        if (!begins)
            k->scale_tile(acc, t->n, rescale);
        k->product[t->n](a->scores, a->values + (c * a->group + panel * ST_CPU_PANEL) * ST_CPU_PANEL, 2 * panels, acc,
                         begins);
    }
}

static void weigh_bf16(const st_cpu_kernels *k, const areas *a, const tile *t, int panel, int panels, bool begins)
{
    float *max = a->max + t->first, *sum = a->sum + t->first, *acc = t->acc;
    float base[ST_CPU_MAX_NARROW_MR], rescale[ST_CPU_MAX_NARROW_MR] = {0}, parts[ST_CPU_MAX_NARROW_MR * 16] = {0};
    for (int r = 0; r < t->n; r++)
        base[r] = max[r];
    k->attend.largest_of(a->scores, panels, t->rows, t->n, max);
    for (int r = 0; r < t->n; r++) {
        const float top = max[r] > -INFINITY ? max[r] : 0.0f; /* a row that has seen nothing yet gives zeros */
        rescale[r] = exp2f((base[r] - top) / 128);
        base[r] = top - 100 * 128.0f; /* so that the largest weight is 1 */
    }
    for (int i = 0; i < panels; i++)
        k->attend.probabilities(a->scores + i * t->rows * ST_CPU_PANEL, t->rows, t->n, ST_CPU_PANEL, base,
                                a->weights + i * t->rows * 64, parts);
    for (int r = 0; r < t->n; r++) {
        sum[r] *= rescale[r];
        for (int i = 0; i < 16; i++)
            sum[r] += parts[r * 16 + i];
    }
    for (int c = 0; c < a->wide / ST_CPU_PANEL; c++, acc += t->rows * ST_CPU_PANEL) {
        const uint8_t *values = (const uint8_t *)a->values + (c * (a->group / ST_CPU_PANEL) + panel) * NARROW_CHUNK;
        k->bf16.product[t->n](a->weights, values, panels, begins ? acc : a->product);
        if (begins)
            continue;
        k->scale_tile(acc, t->rows, rescale);
        k->add(acc, a->product, acc, t->rows * ST_CPU_PANEL);
    }
}

/* The places [from, from + n) that lie packed in the areas. */
static void tile_over_group(const st_cpu_kernels *k, const st_cpu_prompt *p, const areas *a, const tile *t,
                            int64_t from, int n)
{
    const int64_t low = t->seen.first > from ? t->seen.first - from : 0,
                  high = t->seen.end - from < n ? t->seen.end - from : n;
    if (low >= high)
        return;
    const int panel = (int)(low / ST_CPU_PANEL), panels = (int)(round_up(high, ST_CPU_PANEL) / ST_CPU_PANEL) - panel;
    for (int i = 0; i < panels; i++)
        score_panel(k, p, a, t, panel + i, from + (panel + i) * ST_CPU_PANEL, a->scores + i * t->rows * ST_CPU_PANEL);
    (a->bf16 ? weigh_bf16 : weigh_f32)(k, a, t, panel, panels, t->seen.first >= from);
}

static void pack_queries(const st_cpu_kernels *k, const st_cpu_prompt *p, const areas *a, const tile *t)
{
    /* scores come out in units of log 2, for exp2 */
    const float scale = p->scale * 1.44269504f * (a->bf16 ? 128.0f : 1.0f);
    for (int r = 0; r < t->rows; r++) {
        const int i = t->first + (r < t->n ? r : t->n - 1); /* what fills the tile up is computed and thrown away */
        k->scale(p->q + i / p->share * p->q_row + i % p->share * p->q_head, scale, 0.0f, a->line, p->d);
        if (a->bf16)
            k->bf16.pack_row(a->line, p->d, (uint8_t *)t->q + r * 64, NULL, t->rows, NULL);
        else
            k->pack_row(a->line, p->d, t->q + r * 16, t->rows);
        a->max[i] = -INFINITY;
        a->sum[i] = 0;
    }
}

static void write_out(const st_cpu_kernels *k, const st_cpu_prompt *p, const areas *a, const tile *t)
{
    float factor[ST_CPU_MAX_NARROW_MR] = {0}, *acc = t->acc;
    const bool none = t->seen.first >= t->seen.end;
    for (int r = 0; r < t->n; r++) {
        const float sum = a->sum[t->first + r], max = a->max[t->first + r];
        factor[r] = sum == 0 ? 0.0f : 1.0f / sum;
        if (a->bf16 && !(max < INFINITY)) /* a score that is no number, or infinite, gives no number */
            factor[r] = NAN;
    }
    for (int c = 0; c < p->d; c += ST_CPU_PANEL, acc += t->rows * ST_CPU_PANEL) {
        if (none)
            memset(acc, 0, sizeof *acc * (size_t)t->rows * ST_CPU_PANEL);
        else
            k->scale_tile(acc, t->rows, factor);
        for (int r = 0; r < t->n; r++) {
            const int i = t->first + r;
            float *out = p->out + i / p->share * p->out_row + i % p->share * p->d + c;
            for (int half = 0; half < 2 && c + half * 16 < p->d; half++) {
                const int left = p->d - c - half * 16;
                memcpy(out + half * 16, acc + (half * t->rows + r) * 16, sizeof *out * (size_t)(left < 16 ? left : 16));
            }
        }
    }
}

void st_cpu_prompt_rows(const st_cpu_kernels *k, const st_cpu_prompt *p, float *scratch)
{
    size_t used;
    const areas a = areas_of(k, p->d, p->share, p->n_row, p->bf16, scratch, &used);
    const int tiles = n_tiles(a.mr, p->share, p->n_row);
    st_cpu_range all = {INT64_MAX, 0};
    for (int i = 0; i < tiles; i++) {
        const tile t = tile_at(p, &a, i);
        pack_queries(k, p, &a, &t);
        all.first = t.seen.first < all.first ? t.seen.first : all.first;
        all.end = t.seen.end > all.end ? t.seen.end : all.end;
    }
    for (int64_t from = all.first; from < all.end; from += a.group) {
        const int n = (int)(all.end - from < a.group ? all.end - from : a.group);
        pack_group(k, p, &a, from, n);
        for (int i = 0; i < tiles; i++) {
            const tile t = tile_at(p, &a, i);
            tile_over_group(k, p, &a, &t, from, n);
        }
    }
    for (int i = 0; i < tiles; i++) {
        const tile t = tile_at(p, &a, i);
        write_out(k, p, &a, &t);
    }
}
