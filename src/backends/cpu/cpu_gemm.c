/* cpu_gemm.c: blocking around the product kernels. Narrow products (8-bit, bf16) read the packed weights as they are.
 * Products of block types as integers do so for few rows, and expand a part of a panel to bytes for many.
 * f32 products of many rows expand a part of a panel to f32 once, which meets all packed rows while it is in the cache;
 * of few rows they stream a panel through once, expanded in registers. */
#include "backends/cpu/cpu_gemm.h"

#include <string.h>

/* Blocks of k that are expanded at once: 512 k of 32 columns are 64 KiB. */
enum { EXPAND_BLOCKS = 16, TILE = 2 * 16, CHUNK = 64 };

/* Up to so many rows meet blocks as two bytes each; their accumulators fit then. */
enum { FINE_ROWS = ST_CPU_ROW_BLOCK / 2 };

/* How a product is computed. */
typedef struct route {
    const st_cpu_narrow *narrow; /* NULL: f32, or */
    const st_cpu_dot *dot;       /* block types as integers */
    int tile, unit;              /* rows of a tile at most; packed tiles are padded to whole units */
    int64_t chunks;              /* of a packed row */
    size_t chunk;                /* bytes of one */
    bool few, round;
    int digits;                     /* packed rows of a row */
    bool fine;                      /* 8-bit: 16 bits on the left side, in two digits or as */
    const st_cpu_fine_words *words; /* or NULL */
} route;

/* Rows of a tile of expanded weights. */
static int rows_of(const st_cpu_dot *d, st_cpu_wtype t)
{
    int rows = d->mr;
    while (d->product[t][rows] == NULL)
        rows--;
    return rows;
}

/* Words are for many rows, of one number at least. */
static const st_cpu_narrow *narrow_of(const st_cpu_kernels *k, const st_cpu_right *right, bool few)
{
    if (right->type == ST_CPU_W_I8)
        return &k->i8;
    if (right->type == ST_CPU_W_BF16)
        return right->bf16 && k->bf16.mr > 0 ? &k->bf16 : NULL;
    return right->type == ST_CPU_W_F16 && right->words && k->f16_words.mr > 0 && !few && right->k > 0 ? &k->f16_words
                                                                                                      : NULL;
}

static int64_t chunks_of_scales(const st_cpu_narrow *narrow, int64_t k)
{
    const int64_t parts = narrow->part > 0 ? (k + narrow->part - 1) / narrow->part : 0;
    return (parts + 15) / 16;
}

static route route_of(const st_cpu_kernels *k, const st_cpu_right *right, int64_t n_total)
{
    const bool few = n_total <= ST_CPU_FEW_ROWS;
    const st_cpu_narrow *narrow = narrow_of(k, right, few);
    const int64_t blocks = st_cpu_blocks(right->type, right->k); /* one chunk each */
    const bool fine = right->type == ST_CPU_W_I8 && right->fine;
    const st_cpu_fine_words *words = fine && narrow->fine.pack_row != NULL ? &narrow->fine : NULL;
    const int digits = fine && words == NULL ? 2 : 1;
    if (narrow != NULL)
        return (route){.narrow = narrow,
                       .tile = narrow->mr / digits,
                       .unit = narrow->row_unit,
                       .chunks = blocks + chunks_of_scales(narrow, right->k),
                       .chunk = words != NULL ? 2 * CHUNK : CHUNK,
                       .digits = digits,
                       .fine = fine,
                       .words = words};
    const bool fine_dot = right->fine && n_total <= FINE_ROWS;
    if ((right->int8 || fine_dot) && k->dot.direct[right->type][1] != NULL) {
        const int parts = fine_dot ? 2 : 1;
        const bool direct = n_total * parts <= ST_CPU_DOT_DIRECT;
        return (route){.dot = &k->dot,
                       .tile = (direct ? k->dot.few : rows_of(&k->dot, right->type)) / parts,
                       .unit = 1,
                       .chunks = right->k / ST_CPU_BLOCK,
                       .chunk = sizeof(st_cpu_left8),
                       .few = direct,
                       .digits = parts};
    }
    const bool skinny = few && k->skinny[right->type][1] != NULL;
    return (route){.tile = skinny ? k->skinny_rows : k->mr,
                   .unit = 1,
                   .chunks = 2 * ((right->k + ST_CPU_BLOCK - 1) / ST_CPU_BLOCK),
                   .chunk = CHUNK,
                   .few = skinny,
                   .round = right->type == ST_CPU_W_BF16 && right->bf16,
                   .digits = 1};
}

int st_cpu_gemm_tile(const st_cpu_kernels *k, const st_cpu_right *right, int64_t n_total)
{
    return route_of(k, right, n_total).tile;
}

static int padded_rows(const route *t, const st_cpu_right *right, int rows)
{
    int padded = rows * t->digits;
    while (t->dot != NULL && !t->few && t->dot->product[right->type][padded] == NULL)
        padded++;
    return (padded + t->unit - 1) / t->unit * t->unit;
}

/* Panels that are multiplied together in f32: packed rows longer than LONG_ROW do not stay in the cache, but a part of each does,
 * and that meets so many panels. */
enum { LONG_ROW = 1024, GROUP = 8 };

static int group_of(int64_t k)
{
    return k > LONG_ROW ? GROUP : 1;
}

/* Floats of a packed row: f32 needs the most. */
static size_t row_floats(int64_t k)
{
    return (size_t)((k + CHUNK - 1) / CHUNK) * CHUNK;
}

/* scratch: [accumulators: panels of a group * rows * 32] [expanded: 512 * 32] [scales of the rows] [one unclipped row: k] [packed rows] */
typedef struct areas {
    float *acc, *expanded, *unclipped;
    st_cpu_row_scale *scale;
    uint8_t *packed;
} areas;

enum {
    ACC_FLOATS = ST_CPU_ROW_BLOCK * TILE,
    EXPANDED_FLOATS = EXPAND_BLOCKS * 32 * ST_CPU_PANEL,
    SCALE_FLOATS = ST_CPU_ROW_BLOCK * (int)(sizeof(st_cpu_row_scale) / sizeof(float))
};

static areas areas_of(float *scratch, int64_t k)
{
    areas a = {.acc = scratch, .expanded = scratch + ACC_FLOATS * group_of(k)};
    float *scale = a.expanded + EXPANDED_FLOATS;
    a.scale = (st_cpu_row_scale *)(void *)scale;
    a.unclipped = scale + SCALE_FLOATS;
    a.packed = (uint8_t *)(a.unclipped + row_floats(k));
    return a;
}

size_t st_cpu_gemm_scratch(int64_t n_rows, int64_t k)
{
    const int64_t padded = (n_rows + ST_CPU_ROW_UNIT - 1) / ST_CPU_ROW_UNIT * ST_CPU_ROW_UNIT;
    return (size_t)(ACC_FLOATS * group_of(k)) + EXPANDED_FLOATS + SCALE_FLOATS + row_floats(k) * ((size_t)padded + 1);
}

/* Row r of the left side, through `unclipped` where it reaches beyond the edges. */
static const float *left_row(const st_cpu_left *left, int64_t r, int64_t k_size, float *unclipped)
{
    const int64_t i1 = r % left->n1, i2 = r / left->n1 % left->n2, i3 = r / left->n1 / left->n2;
    const ptrdiff_t base = i2 * left->stride2 + i3 * left->stride3;
    const ptrdiff_t start = left->origin + i1 * left->stride1;
    if (left->clip <= 0 || (start >= 0 && start + k_size <= left->clip))
        return left->x + base + start;
    const int64_t from = start < 0 ? -start : 0;
    const int64_t to = start + k_size > left->clip ? left->clip - start : k_size;
    memset(unclipped, 0, sizeof(float) * (size_t)k_size);
    if (to > from)
        memcpy(unclipped + from, left->x + base + start + from, sizeof(float) * (size_t)(to - from));
    return unclipped;
}

/* What the bytes of a packed row, `rows` rows apart, leave of x: a row of its own, with scales that are 254 times as small. */
static void leave_rest(const float *x, int64_t k, const uint8_t *packed, int rows, float *rest)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23: what is added to it is rounded to a whole number */
    for (int64_t c = 0; c < k / ST_CPU_BLOCK; c++, x += ST_CPU_BLOCK, rest += ST_CPU_BLOCK) {
        st_cpu_left8 l;
        memcpy(&l, packed + (size_t)(c * rows) * sizeof l, sizeof l);
        float most = 0;
        for (int i = 0; i < ST_CPU_BLOCK; i++) {
            const float size = x[i] < 0 ? -x[i] : x[i];
            most = size > most ? size : most;
        }
        const float inverse = most < 1e-30f ? 0.0f : 127.0f / most;
        for (int i = 0; i < ST_CPU_BLOCK; i++)
            rest[i] = x[i] - l.scale * (x[i] * inverse + magic - magic);
    }
}

void st_cpu_gemm_pack(const st_cpu_kernels *k, const st_cpu_left *left, const st_cpu_right *right, int64_t n_total,
                      int64_t row, int n_rows, float *scratch)
{
    const route t = route_of(k, right, n_total);
    const areas a = areas_of(scratch, right->k);
    for (int first = 0; first < n_rows; first += t.tile) {
        const int rows = n_rows - first < t.tile ? n_rows - first : t.tile, padded = padded_rows(&t, right, rows);
        uint8_t *tile = a.packed + t.chunk * (size_t)(t.chunks * t.digits) * (size_t)first;
        for (int r = 0; r < padded; r++) {
            uint8_t *dst = tile + (size_t)r * t.chunk;
            if (r >= rows * t.digits) {
                for (int64_t c = 0; c < t.chunks; c++)
                    memset(dst + t.chunk * (size_t)(c * padded), 0, t.chunk);
                continue;
            }
            if (r >= rows)
                continue; /* second bytes */
            const float *x = left_row(left, row + first + r, right->k, a.unclipped);
            if (t.dot != NULL) {
                t.dot->pack_row(right->type, x, right->k, dst, padded);
                if (t.digits == 1)
                    continue;
                leave_rest(x, right->k, dst, padded, a.unclipped);
                t.dot->pack_row(right->type, a.unclipped, right->k, dst + (size_t)rows * t.chunk, padded);
            } else if (t.words != NULL)
                t.words->pack_row(x, right->k, dst, padded, &a.scale[first + r]);
            else if (t.narrow != NULL)
                t.narrow->pack_row(x, right->k, dst, t.digits > 1 ? dst + t.chunk * (size_t)rows : NULL, padded,
                                   &a.scale[first + r]);
            else
                (t.round ? k->pack_row_bf16 : k->pack_row)(x, right->k, (float *)(void *)dst, padded);
        }
        if (t.dot != NULL && t.dot->arrange != NULL)
            t.dot->arrange(tile, t.chunks, padded, t.few);
        else if (t.narrow != NULL && t.narrow->arrange != NULL)
            t.narrow->arrange(tile, t.chunks, padded);
    }
    if (t.narrow != NULL && t.narrow->settle != NULL && !t.fine)
        t.narrow->settle(a.packed, (int)t.chunks, n_rows);
}

/* A part of a panel: `blocks` blocks from b on. */
typedef struct part {
    const uint8_t *panel;
    int64_t b;
    int blocks;
} part;

/* A part for all packed rows: acc [rows / mr][2][mr][16] = (first ? 0 : acc) + .. Each tile has its share of the next part
 * fetched, and in the last part the places of its results, `out`. */
static void panel_part(const st_cpu_kernels *k, const st_cpu_right *right, const part *at, const part *next, int n_rows,
                       const areas *s, float *acc, const float *out, ptrdiff_t out_stride)
{
    const int64_t n_block = st_cpu_blocks(right->type, right->k), parts = st_cpu_block_k(right->type) / ST_CPU_BLOCK;
    const size_t row_bytes = (size_t)(n_block * parts) * 2 * CHUNK, block_bytes = st_cpu_block_bytes(right->type);
    const uint8_t *packed = at->panel + block_bytes * (size_t)at->b;
    const int chunks = 2 * at->blocks * (int)parts;
    const float *w = s->expanded;
    if (right->type == ST_CPU_W_F32)
        w = (const float *)(const void *)packed;
    else
        k->expand[right->type](packed, at->blocks, s->expanded);
    const char *const lines = (const char *)next->panel + block_bytes * (size_t)next->b;
    const size_t ahead_bytes = block_bytes * (size_t)next->blocks, share = (size_t)chunks * 4 * CHUNK;
    const bool last = at->b + at->blocks == n_block;
    for (int r = 0, i = 0; r < n_rows; r += k->mr, i++) {
        const int rows = n_rows - r < k->mr ? n_rows - r : k->mr;
        const float *a = (const float *)(const void *)(s->packed + row_bytes * (size_t)r) +
                         (size_t)(at->b * parts) * ST_CPU_BLOCK * (size_t)rows;
        float *sums = acc + (size_t)r * TILE;
        if (rows < k->mr) {
            k->product[rows](a, w, chunks, sums, at->b == 0);
            continue;
        }
        const st_cpu_ahead ahead = {.lines =
                                        share * (size_t)i < ahead_bytes ? lines + share * (size_t)i : (const char *)w,
                                    .out = out + r * out_stride,
                                    .out_stride = out_stride,
                                    .rows = last ? rows : 0};
        k->product_ahead(a, w, chunks, sums, at->b == 0, &ahead);
    }
}

/* `panels` panels, whose sums lie one behind the other; `out`: where the results of the first row and column go. */
static void panel_many(const st_cpu_kernels *k, const st_cpu_right *right, const uint8_t *panel, int panels, bool more,
                       int n_rows, const areas *s, const float *out, ptrdiff_t out_stride)
{
    const size_t panel_bytes = st_cpu_panel_bytes(right->type, right->k);
    const int64_t n_block = st_cpu_blocks(right->type, right->k), parts = st_cpu_block_k(right->type) / ST_CPU_BLOCK;
    const int64_t step = (right->type == ST_CPU_W_F32 && panels == 1 ? n_block * parts : EXPAND_BLOCKS) / parts;
    if (n_block == 0)
        memset(s->acc, 0, sizeof(float) * (size_t)(panels * ACC_FLOATS));
    const int64_t steps = (n_block + step - 1) / step * panels;
    part at = {panel, 0, (int)(n_block < step ? n_block : step)};
    for (int64_t i = 0; i < steps; i++) {
        const bool over = i + 1 == steps; /* then another group follows, or nothing */
        const int64_t p = over ? panels : (i + 1) % panels, b = over ? 0 : (i + 1) / panels * step;
        const int64_t blocks = over && !more ? 0 : n_block - b < step ? n_block - b : step;
        const part next = {panel + panel_bytes * (size_t)(p < panels || more ? p : 0), b, (int)blocks};
        panel_part(k, right, &at, &next, n_rows, s, s->acc + i % panels * ACC_FLOATS, out + i % panels * ST_CPU_PANEL,
                   out_stride);
        at = next;
    }
}

/* Of a tile [2][tile_rows][16]: the sums of the second bytes to those of the first, `rows` rows before. */
static void add_second(float *acc, int tile_rows, int rows)
{
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < rows * 16; i++)
            acc[half * tile_rows * 16 + i] += acc[half * tile_rows * 16 + rows * 16 + i];
}

/* Where a panel lies in the product. */
typedef struct place {
    const st_cpu_epilogue *e;
    int64_t row, col;
    int cols;
} place;

/* All rows times a panel. A tile is finished as soon as it has met the last part of the panel, while its sums are at hand. */
static void panel_dot(const st_cpu_kernels *k, const st_cpu_right *right, const route *t, const uint8_t *panel,
                      int n_rows, const areas *s, const place *at)
{
    const st_cpu_dot *d = &k->dot;
    const int64_t n_block = st_cpu_blocks(right->type, right->k), parts = st_cpu_block_k(right->type) / ST_CPU_BLOCK;
    /* for one tile in smaller parts: what comes from memory for the next one is as much as is computed with meanwhile */
    const int64_t step = (n_rows > t->tile ? EXPAND_BLOCKS : EXPAND_BLOCKS / 2) / parts;
    const size_t block_bytes = st_cpu_block_bytes(right->type);
    uint8_t *const expanded = (uint8_t *)s->expanded;
    const int tiles = (n_rows + t->tile - 1) / t->tile;
    for (int64_t b = 0; b < n_block || b == 0; b += step) {
        const int blocks = (int)(n_block - b < step ? n_block - b : step), n_part = blocks * (int)parts;
        const uint8_t *now = panel + block_bytes * (size_t)b, *next = now + block_bytes * (size_t)blocks;
        const bool last = b + blocks >= n_block;
        /* the next part, from tile to tile some of its lines, and the places of the next panel's results */
        st_cpu_dot_ahead ahead = {.lines = next, .out_stride = at->e->out_stride};
        const int shares = tiles * n_part, lines = (int)(block_bytes * (size_t)blocks / 64);
        ahead.each = shares > 0 ? (lines + shares - 1) / shares : 0;
        d->expand[right->type](now, blocks, expanded);
        for (int r = 0; r < n_rows; r += t->tile) {
            const int rows = n_rows - r < t->tile ? n_rows - r : t->tile, packed = padded_rows(t, right, rows);
            const uint8_t *tile =
                s->packed + sizeof(st_cpu_left8) * (size_t)(n_block * parts * r * t->digits + b * parts * packed);
            float *acc = s->acc + (size_t)(r * t->digits) * TILE;
            ahead.rows = last ? rows : 0;
            ahead.out = at->e->out + (at->row + r) * at->e->out_stride + at->col + ST_CPU_PANEL;
            d->product[right->type][packed](tile, expanded, n_part, acc, b == 0, &ahead);
            ahead.lines += (ptrdiff_t)64 * ahead.each * n_part;
            if (ahead.lines >= next + block_bytes * (size_t)blocks)
                ahead.each = 0;
            if (!last)
                continue;
            if (t->digits > 1)
                add_second(acc, packed, rows);
            k->finish(at->e, acc, packed, rows, at->row + r, at->col, at->cols);
        }
    }
}

void st_cpu_gemm_panels(const st_cpu_kernels *k, const st_cpu_right *right, const st_cpu_epilogue *e, int64_t n_total,
                        int64_t row, int n_rows, int64_t panel, int64_t n_panels, float *scratch)
{
    const route t = route_of(k, right, n_total);
    const areas s = areas_of(scratch, right->k);
    const size_t panel_bytes = st_cpu_panel_bytes(right->type, right->k),
                 row_bytes = t.chunk * (size_t)(t.chunks * t.digits);
    if (t.narrow != NULL && t.narrow->block != NULL && !t.fine) {
        const st_cpu_narrow_block block = {.k = k,
                                           .e = e,
                                           .a = s.packed,
                                           .chunks = (int)t.chunks,
                                           .rows = n_rows,
                                           .scale = s.scale,
                                           .panels = right->packed + panel_bytes * (size_t)panel,
                                           .panel_bytes = panel_bytes,
                                           .n_panels = n_panels,
                                           .row = row,
                                           .col = panel * ST_CPU_PANEL,
                                           .n = right->n,
                                           .acc = s.acc,
                                           .acc_panels = group_of(right->k),
                                           .wide = (uint8_t *)s.expanded};
        t.narrow->block(&block);
        return;
    }
    const bool begins = t.dot != NULL && !t.few && t.dot->begin != NULL;
    if (begins)
        t.dot->begin();
    const int64_t group = group_of(right->k);
    for (int64_t p = panel; p < panel + n_panels; p++) {
        const uint8_t *w = right->packed + panel_bytes * (size_t)p;
        const int64_t col = p * ST_CPU_PANEL;
        const int64_t left = panel + n_panels - p;
        float *sums = s.acc + (t.dot != NULL ? 0 : (p - panel) % group * ACC_FLOATS);
        const int cols = (int)(right->n - col < ST_CPU_PANEL ? right->n - col : ST_CPU_PANEL);
        if (t.dot != NULL && !t.few) {
            panel_dot(k, right, &t, w, n_rows, &s, &(place){e, row, col, cols});
            continue;
        }
        if (t.narrow == NULL && !t.few && (p - panel) % group == 0)
            panel_many(k, right, w, (int)(left < group ? left : group), left > group, n_rows, &s,
                       e->out + row * e->out_stride + col, e->out_stride);
        for (int r = 0; r < n_rows; r += t.tile) {
            const int rows = n_rows - r < t.tile ? n_rows - r : t.tile, padded = padded_rows(&t, right, rows);
            const uint8_t *a = s.packed + row_bytes * (size_t)r;
            float *acc = t.narrow != NULL ? s.acc : sums + (size_t)(r * t.digits) * TILE;
            if (right->type == ST_CPU_W_I8) {
                const st_cpu_narrow_product product =
                    t.words != NULL ? t.words->product[rows] : t.narrow->product[rows * t.digits];
                product(a, w + ST_CPU_I8_HEADER, (int)t.chunks, acc);
                k->finish_i8(e, (const int32_t *)(const void *)acc, t.words != NULL ? 2 * rows : padded, rows, t.fine,
                             row + r, col, cols, s.scale + r, w);
                continue;
            }
            if (t.narrow != NULL)
                t.narrow->product[rows](a, w, (int)t.chunks, acc);
            else if (t.few && t.dot != NULL)
                t.dot->direct[right->type][padded](a, w, (int)st_cpu_blocks(right->type, right->k), acc);
            else if (t.few)
                k->skinny[right->type][rows]((const float *)(const void *)a, w, (int)(t.chunks / 2), acc);
            if (t.dot != NULL && t.digits > 1)
                add_second(acc, padded, rows);
            k->finish(e, acc, padded, rows, row + r, col, cols);
        }
    }
    if (begins && k->enter != NULL)
        k->enter();
}
