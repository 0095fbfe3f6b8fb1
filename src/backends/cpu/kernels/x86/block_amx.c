/* block_amx.c: blocks of rows times panels with AMX (contract of block in cpu_kernels.h). Finishing a tile takes the vector
 * units about as long as multiplying one takes the tiles, and neither sees the work of the other unless their instructions
 * alternate. So every product of tiles is followed by a row of the tile before, which is finished from memory: a `step` is the
 * multiplication of one tile of rows with a part of a panel, and what is left of the tile before it.
 *
 * A part of a panel (PART chunks) stays in the first cache while all rows meet it; sums wait in memory between parts. */
#if !defined(__AVX512VBMI__) || (!defined(__AMX_TILE__) && !defined(__AMXTILE__)) /* gcc, clang */
#error "this file needs -mamx-tile -mamx-int8 -mamx-bf16 -mavx512vbmi"
#endif
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/cpu_pack.h"
#include "../vec_v4.h"
#include "../math_body.h"

enum { UNIT = 16, ROWS = 32, TILE = 1024, CHUNK = 2048, PART = 10 };

/* Compilers do not know that tiles are loaded from memory. */
#define ORDER() __asm__ volatile("" ::: "memory")

/* How the steps are compiled: in what numbers, and the activation, or ANY: whichever the epilogue says. */
typedef enum numbers { I8, BF16 } numbers;
enum { ANY = -1 };

/* What finishing needs to know of a panel's columns. */
typedef struct columns {
    vf bias[2], scales[2];
    vi sums[2];
    __mmask16 mask[2];
} columns;

/* A product that waits to be finished: [2][tile_rows][16] sums. */
typedef struct pending {
    const st_cpu_epilogue *e;
    const void *acc;
    int tile_rows, rows; /* rows 0: nothing waits */
    float *out;          /* of its first row and column, like residual */
    const float *next;   /* of the tile that is finished after it */
    const float *residual;
    const st_cpu_row_scale *scale;
    const columns *columns; /* made once for all tiles, and copied into registers where they are needed */
} pending;

/* One row of it. */
INL void finish_row(numbers t, int act, const pending *p, const columns *c, int r)
{
    ORDER();
    UNROLL for (int v = 0; v < 2; v++)
    {
        const int at = (v * p->tile_rows + r) * UNIT;
        vf x;
        if (t == I8) {
            const vi sum = vi_sub(vi_load((const int32_t *)p->acc + at), vi_mul(c->sums[v], vi_set1(p->scale[r].zero)));
            x = v_mul(vi_float(sum), v_mul(v_set1(p->scale[r].scale), c->scales[v]));
        } else {
            x = v_load((const float *)p->acc + at);
        }
        x = activate(act == ANY ? p->e->act : (sotto_activation)act, v_add(x, c->bias[v]));
        if (p->residual != NULL)
            x = v_add(x, _mm512_maskz_loadu_ps(c->mask[v], p->residual + r * p->e->residual_stride + v * VL));
        /* rows so far apart are nobody's to foresee */
        __builtin_prefetch(p->next + r * p->e->out_stride + v * VL, 1);
        _mm512_mask_storeu_ps(p->out + r * p->e->out_stride + v * VL, c->mask[v], x);
    }
    ORDER();
}

/* All of its rows, with nothing beside them. */
INL void finish_rows(numbers t, int act, const pending *p)
{
    if (p->rows == 0)
        return;
    const columns c = *p->columns;
    for (int r = 0; r < p->rows; r++)
        finish_row(t, act, p, &c, r);
}

/* Tiles 0 to 3 are the sums, two of rows by two of columns, 4 and 5 the rows, 6 and 7 the columns. */
INL void load_sums(const uint8_t *acc, bool first, bool two)
{
    if (first) {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        return;
    }
    _tile_loadd(0, acc, 64);
    _tile_loadd(1, acc + (two ? 2 : 1) * TILE, 64);
    if (two) {
        _tile_loadd(2, acc + TILE, 64);
        _tile_loadd(3, acc + 3 * TILE, 64);
    }
}

INL void store_sums(uint8_t *acc, bool two)
{
    _tile_stored(0, acc, 64);
    _tile_stored(1, acc + (two ? 2 : 1) * TILE, 64);
    if (two) {
        _tile_stored(2, acc + TILE, 64);
        _tile_stored(3, acc + 3 * TILE, 64);
    }
}

/* acc (+)= `chunks` chunks of a tile of rows times as many of a panel, and all rows of p; what lies ahead is fetched. Sums
 * stay in their tiles until the next step: a tile that is stored right after its last product waits for that, and all
 * that follows waits with it, but beside the next step's first products storing costs nothing. `before` gets the sums
 * of the step before, those that p waits for. */
INL void run_step(numbers t, int act, int each, const uint8_t *a, const uint8_t *b, int chunks, bool first,
                  const uint8_t *acc, uint8_t *before, const uint8_t *ahead, const pending *p)
{
#define START(C, PLACE)                         \
    _tile_stored(C, before + (PLACE)*TILE, 64); \
    if (first)                                  \
        _tile_zero(C);                          \
    else                                        \
        _tile_loadd(C, acc + (PLACE)*TILE, 64)
#define DOT(C, A, B)             \
    if (t == I8)                 \
        _tile_dpbusd(C, A, B);   \
    else                         \
        _tile_dpbf16ps(C, A, B); \
    UNROLL for (int i = 0; i < 2; i++) _mm_prefetch((const char *)ahead + (2 * (C) + i) * 64, _MM_HINT_T1)
#define ROWS_BESIDE UNROLL for (int i = 0; i < each; i++) if (r < rows) finish_row(t, act, p, &of, r++)
    const int rows = each > 0 ? p->rows : 0;
    columns of;
    int r = 0;
    if (each > 0)
        of = *p->columns;
    START(0, 0);
    _tile_loadd(6, b, 128);
    _tile_loadd(4, a, 64);
    DOT(0, 4, 6);
    START(1, 2);
    _tile_loadd(7, b + 64, 128);
    DOT(1, 4, 7);
    START(2, 1);
    _tile_loadd(5, a + TILE, 64);
    DOT(2, 5, 6);
    START(3, 3);
    DOT(3, 5, 7);
    for (int c = 1; c < chunks; c++) {
        a += 2 * TILE;
        b += CHUNK;
        ahead += CHUNK / 4;
        _tile_loadd(6, b, 128);
        _tile_loadd(4, a, 64);
        DOT(0, 4, 6);
        ROWS_BESIDE;
        _tile_loadd(7, b + 64, 128);
        DOT(1, 4, 7);
        ROWS_BESIDE;
        _tile_loadd(5, a + TILE, 64);
        DOT(2, 5, 6);
        ROWS_BESIDE;
        DOT(3, 5, 7);
        ROWS_BESIDE;
    }
    while (r < rows)
        finish_row(t, act, p, &of, r++);
#undef START
#undef DOT
#undef ROWS_BESIDE
}

/* The same for a tile of up to 16 rows, and nothing else. */
INL void short_step(numbers t, const uint8_t *a, const uint8_t *b, int chunks, bool first, uint8_t *acc)
{
    load_sums(acc, first, false);
    for (int c = 0; c < chunks; c++, a += TILE, b += CHUNK) {
        _tile_loadd(4, a, 64);
        _tile_loadd(6, b, 128);
        _tile_loadd(7, b + 64, 128);
        if (t == I8) {
            _tile_dpbusd(0, 4, 6);
            _tile_dpbusd(1, 4, 7);
        } else {
            _tile_dpbf16ps(0, 4, 6);
            _tile_dpbf16ps(1, 4, 7);
        }
    }
    store_sums(acc, false);
    ORDER();
}

INL columns columns_of(numbers t, const st_cpu_narrow_block *b, int64_t panel)
{
    const int64_t col = b->col + panel * ST_CPU_PANEL;
    const int n = (int)(b->n - col < ST_CPU_PANEL ? b->n - col : ST_CPU_PANEL);
    const uint8_t *header = b->panels + b->panel_bytes * (size_t)panel;
    columns c;
    for (int v = 0; v < 2; v++) {
        c.mask[v] = v_first(n > v * VL ? n - v * VL : 0);
        c.bias[v] = b->e->bias != NULL ? _mm512_maskz_loadu_ps(c.mask[v], b->e->bias + col + v * VL)
                                       : v_set1(-0.0f); /* changes no number, not even the sign of a zero */
        c.scales[v] = t == I8 ? v_load((const float *)(const void *)header + v * VL) : v_zero();
        c.sums[v] = t == I8 ? vi_load(header + 4 * ST_CPU_PANEL + 4 * v * VL) : vi_set1(0);
    }
    return c;
}

/* The tile of `rows` rows from r on, and the columns of a panel. */
INL pending pending_of(const st_cpu_narrow_block *b, const void *acc, int r, int rows, int64_t panel, const columns *c)
{
    const st_cpu_epilogue *e = b->e;
    const int64_t col = b->col + panel * ST_CPU_PANEL, row = b->row + r;
    const bool last = r + rows == b->rows;
    return (pending){.e = e,
                     .acc = acc,
                     .tile_rows = rows > UNIT ? ROWS : UNIT,
                     .rows = rows,
                     .out = e->out + row * e->out_stride + col,
                     .next = e->out + (last ? b->row : row + ROWS) * e->out_stride + col + (last ? ST_CPU_PANEL : 0),
                     .residual = e->residual != NULL ? e->residual + row * e->residual_stride + col : NULL,
                     .scale = b->scale + r,
                     .columns = c};
}

INL void run_block(numbers t, int act, const st_cpu_narrow_block *b)
{
    const int parts = b->chunks > PART ? (b->chunks + PART - 1) / PART : 1, tiles = (b->rows + ROWS - 1) / ROWS;
    columns of[2]; /* of this panel, and of the one before, whose last tile may still wait */
    pending p = {.rows = 0};
    uint8_t *before = NULL; /* where sums belong that are still in their tiles */
    int turn = 0;
    for (int64_t i = 0; i < b->n_panels; i++) {
        const uint8_t *panel = b->panels + b->panel_bytes * (size_t)i + (t == I8 ? ST_CPU_I8_HEADER : 0);
        of[i & 1] = columns_of(t, b, i);
        for (int part = 0; part < parts; part++) {
            const int from = b->chunks * part / parts, chunks = b->chunks * (part + 1) / parts - from;
            const uint8_t *w = panel + (ptrdiff_t)from * CHUNK;
            for (int tile = 0; tile < tiles; tile++) {
                const int r = tile * ROWS, rows = b->rows - r < ROWS ? b->rows - r : ROWS;
                const uint8_t *a = b->a + (ptrdiff_t)b->chunks * 64 * r + (ptrdiff_t)from * (rows > UNIT ? 2 : 1) * TILE;
                /* each of four tiles has a quarter of the next part fetched into the second cache */
                const uint8_t *ahead = w + (ptrdiff_t)chunks * CHUNK / 4 * (4 + (tile & 3));
                /* one tile waits while the next is multiplied, so two places take turns; where there are parts to be
                 * added, every tile has its own */
                const int place = parts == 1 ? turn++ & 1 : tiles > 1 ? tile : (int)(i & 1);
                uint8_t *acc = (uint8_t *)b->acc + place * 4 * TILE;
                if (before == NULL && rows > UNIT) { /* gets back what it has */
                    load_sums(acc, part == 0, true);
                    before = acc;
                }
                if (rows <= UNIT) {
                    if (before != NULL)
                        store_sums(before, true);
                    finish_rows(t, act, &p);
                    short_step(t, a, w, chunks, part == 0, acc);
                    before = NULL;
                } else if (p.rows == 0) {
                    run_step(t, act, 0, a, w, chunks, part == 0, acc, before, ahead, &p);
                    before = acc;
                } else if (4 * chunks >= p.rows) {
                    run_step(t, act, 1, a, w, chunks, part == 0, acc, before, ahead, &p);
                    before = acc;
                } else {
                    run_step(t, act, 2, a, w, chunks, part == 0, acc, before, ahead, &p);
                    before = acc;
                }
                p.rows = 0;
                if (part == parts - 1)
                    p = pending_of(b, acc, r, rows, i, &of[i & 1]);
            }
        }
    }
    if (before != NULL)
        store_sums(before, true);
    finish_rows(t, act, &p);
}

#define BLOCK(NAME, NUMBERS)                       \
    static void NAME(const st_cpu_narrow_block *b) \
    {                                              \
        if (b->e->act == SOTTO_ACT_NONE)           \
            run_block(NUMBERS, SOTTO_ACT_NONE, b); \
        else if (b->e->act == SOTTO_ACT_GELU)      \
            run_block(NUMBERS, SOTTO_ACT_GELU, b); \
        else                                       \
            run_block(NUMBERS, ANY, b);            \
    }
BLOCK(block_i8, I8)
BLOCK(block_bf16, BF16)

void st_cpu_fill_block_amx(st_cpu_kernels *k)
{
    k->i8.block = block_i8;
    k->bf16.block = block_bf16;
}
