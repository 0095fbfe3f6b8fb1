/* dot_body.h: products of block types as integers (contracts in cpu_kernels.h). Included by the shells after a vec_*.h, quads.h
 * and their own
 *   vi dot4(vi c, vi w, vi x, bool wide)  c + the four bytes of each lane of w times those of x: w unsigned (7 bits unless
 *                                         wide), x signed
 *   int dot_run(int bits)                 so many quads may be summed in words before they are added to c, their weights
 *                                         of so many bits; 0: none
 *   vi dot_words(vi w, vi x), vi dot_more(vi words, vi w, vi x), vi dot_flush(vi c, vi words)
 *                                         the first quad in words, a further one, and adding them to c
 *   ST_DOT_PLANES, vi dot_flush_high(vi c, vi words)
 *                                         wide bytes are expanded to two of 4 bits each, and adding 16 times the words
 *   vf dot_scaled(vi c, vf scale, vf shift)  scale times what c counts from ST_DOT_START; shift as dot_shift() makes it
 *   vf dot_add(vf sum, vf a, vf b)        sum + a * b
 *   ST_DOT_START                          what integers start with: 0, or the bits of the float that dot_shift() takes off
 *   ST_DOT_FOLD                           products of small quants with their groups' scales are expanded to bytes
 *   ST_DOT_ROWS, ST_DOT_NV                rows of a tile; vectors of columns side by side
 *   ST_DOT_WIDE                           the kind of wide weights: plain where dot4 and dot_run know no difference
 *   ST_DOT_WIDE_ZERO                      what dot4 leaves in wide bytes: 128, or 0 when it has taken it off */
#include "backends/cpu/cpu_kernels.h"
#include "dot_left.h"

#define ST_DOT_FEW 2          /* rows of a direct tile */
enum { DIRECT_AHEAD = 4096 }; /* bytes; parts of direct products are no longer */

/* An integer n added to ST_DOT_START is the float ROUNDER + n, and one multiply-add makes scale * n of it: ROUNDER * scale is
 * exact, since a scale has 21 bits at most. */
INL vf dot_shift(vf scale)
{
    return v_mul(scale, v_set1(-ROUNDER));
}

/* Quad i of the n of a group: into words, and into c, which begins with `start`. */
INL void dot_step(int bits, int i, int n, vi w, vi x, vi start, vi *c, vi *words)
{
    const int run = dot_run(bits), first = run == 0 ? 0 : run < n ? run - 1 : n - 1;
    if (i == first)
        *c = start;
    if (run == 0) {
        *c = dot4(*c, w, x, bits == 8);
        return;
    }
    *words = i % run == 0 ? dot_words(w, x) : dot_more(*words, w, x);
    if (i % run == run - 1 || i == n - 1)
        *c = dot_flush(*c, *words);
}

/* sums of a row + a group's integers as numbers. The columns take turns: neighbours do not wait for each other. */
INL void dot_finish(vf *sum, const vi *c, int stride, const vf *scale, const vf *shift, const uint8_t *record)
{
    const vf by = left_float(record, RECORD_SCALE);
    vf x[ST_DOT_NV];
    UNROLL for (int v = 0; v < ST_DOT_NV; v++) x[v] = dot_scaled(c[v * stride], scale[v], shift[v]);
    UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[v] = dot_add(sum[v], x[v], by);
}

/* sums of a row + the minima times the row's sum over group g */
INL void dot_offset(vf *sum, const vf *offset, const uint8_t *record, int g)
{
    const vf by = left_float(record, RECORD_FIX + 4 * g);
    UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[v] = dot_add(sum[v], offset[v], by);
}

/* ---- few rows: the bytes are made in registers ---- */

INL void direct_part(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *block, const uint8_t *part, int column,
                     vf sum[ST_DOT_FEW][ST_DOT_NV])
{
    const int groups = type_groups_of_part(t);
    const bool min = type_has_min(t);
    vi c[ST_DOT_FEW][ST_DOT_NV][2], words[ST_DOT_FEW][ST_DOT_NV][2];
    UNROLL for (int i = 0; i < 8; i++)
    {
        const int k = i % 2 * 4 + i / 2; /* quads that share their bytes follow each other */
        const int g = groups == 2 ? k / 4 : 0, at = groups == 2 ? k % 4 : i;
        vi w[ST_DOT_NV];
        UNROLL for (int v = 0; v < ST_DOT_NV; v++) w[v] = quad_at(t, part, k, column + v * VL);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vi x = left_quad(a + r * RECORD, k);
            UNROLL for (int v = 0; v < ST_DOT_NV; v++) dot_step(
                type_bits(t), at, 8 / groups, w[v], x, dot_start(min, a + r * RECORD, g), &c[r][v][g], &words[r][v][g]);
        }
    }
    UNROLL for (int g = 0; g < groups; g++)
    {
        vf scale[ST_DOT_NV], shift[ST_DOT_NV], offset[ST_DOT_NV];
        UNROLL for (int v = 0; v < ST_DOT_NV; v++)
        {
            part_scale(t, block, part, g, column + v * VL, &scale[v], &offset[v]);
            shift[v] = dot_shift(scale[v]);
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            dot_finish(sum[r], &c[r][0][g], 2, scale, shift, a + r * RECORD);
            if (min)
                dot_offset(sum[r], offset, a + r * RECORD, g);
        }
    }
}

/* acc = (from == 0 ? 0 : acc) + A B for ST_DOT_NV vectors of columns and blocks [from, to). Each pass over the columns fetches its
 * share of the lines that lie DIRECT_AHEAD further on, into the second cache. */
INL void direct_columns(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int from, int to, float *acc,
                        int column)
{
    const int bytes = (int)st_cpu_block_bytes(t), parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK;
    const int shares = ST_CPU_PANEL / (ST_DOT_NV * VL) * parts, lines = (bytes / 64 + shares - 1) / shares;
    vf sum[ST_DOT_FEW][ST_DOT_NV];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[r][v] =
        from == 0 ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
    const uint8_t *x = a + (ptrdiff_t)from * parts * RECORD * rows, *block = blocks + (ptrdiff_t)from * bytes;
    for (int b = from; b < to; b++, block += bytes) {
        const uint8_t *ahead = block + DIRECT_AHEAD + column / (ST_DOT_NV * VL) * parts * lines * 64;
        for (int p = 0; p < parts; p++, x += RECORD * rows, ahead += 64 * lines) {
            UNROLL for (int l = 0; l < lines; l++) __builtin_prefetch(ahead + 64 * l, 0, 2);
            direct_part(t, rows, x, block, part_of(t, block, p), column, sum);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++)
        v_store(acc + tile_at(rows, r, column + v * VL), sum[r][v]);
}

/* Where columns take several passes they do so part by part: memory is not idle during all but the first. */
INL void direct(st_cpu_wtype t, int rows, const uint8_t *a, const uint8_t *blocks, int n_block, float *acc)
{
    const int most = DIRECT_AHEAD / (int)st_cpu_block_bytes(t);
    const int step = ST_DOT_NV * VL == ST_CPU_PANEL ? n_block : most > 0 ? most : 1;
    int from = 0;
    do {
        for (int column = 0; column < ST_CPU_PANEL; column += ST_DOT_NV * VL)
            direct_columns(t, rows, a, blocks, from, n_block - from < step ? n_block : from + step, acc, column);
        from += step;
    } while (from < n_block);
}

/* ---- many rows: the bytes are made once for all of them ---- */

/* Small quants: their products with the scales of their groups fit a byte, so that all 32 k have one scale. */
INL bool folds(st_cpu_wtype t)
{
    return ST_DOT_FOLD && (t == ST_CPU_W_Q2_K || t == ST_CPU_W_Q3_K);
}

/* What such a quant becomes: by * q + plus, in words, which do it for two bytes at once, since none carries into the next in the
 * end. Products of q3_k have a sign, they are -124 to 128, and ST_DOT_FOLD_ZERO is added. */
typedef struct fold {
    vi by, plus;
} fold;

/* Of group g of a part. */
INL fold fold_of(st_cpu_wtype t, const uint8_t *part, int g, int c)
{
    const vi both = vi_load_u8(part + 32 * g + c);
    if (t == ST_CPU_W_Q2_K) {
        const vi scale = vi_and(both, vi_set1(15));
        return (fold){vi_or(scale, vi_shl(scale, 16)), vi_set1(0)};
    }
    const vi scale = vi_sub(vi_xor(both, vi_set1(128)), vi_set1(128));
    const vi zero = vi_sub(vi_set1(ST_DOT_FOLD_ZERO), vi_shl(scale, 2)); /* a byte */
    const vi two = vi_or(zero, vi_shl(zero, 8));
    return (fold){vi_or(vi_and(scale, vi_set1(0xffff)), vi_shl(scale, 16)), vi_or(two, vi_shl(two, 16))};
}

INL void spread(st_cpu_wtype t, const uint8_t *blocks, int n_block, uint8_t *out)
{
    const int parts = (int)st_cpu_block_k(t) / ST_CPU_BLOCK, mins = type_has_min(t) ? type_groups_of_part(t) : 0;
    const int groups = folds(t) ? 1 : type_groups_of_part(t), head = head_of(groups, mins);
    const bool planes = ST_DOT_PLANES && type_is_wide(t);
    for (int b = 0; b < n_block; b++, blocks += st_cpu_block_bytes(t)) {
        for (int p = 0; p < parts; p++, out += head + (planes ? 2048 : 1024)) {
            const uint8_t *const part = part_of(t, blocks, p);
            for (int c = 0; c < ST_CPU_PANEL; c += VL) {
                float *const heads = (float *)(void *)out + c;
                UNROLL for (int g = 0; g < (mins > groups ? mins : groups); g++)
                {
                    vf scale, offset;
                    part_scale(t, blocks, part, g, c, &scale, &offset);
                    if (folds(t))
                        scale = v_load_f16((const uint16_t *)(const void *)blocks + c);
                    if (g < groups)
                        v_store(heads + 32 * g, scale);
                    if (g < groups && ST_DOT_START != 0)
                        v_store(heads + 32 * (groups + g), dot_shift(scale));
                    if (g < mins)
                        v_store(heads + 32 * (head / 128 - mins + g), offset);
                }
                fold f[2];
                for (int g = 0; folds(t) && g < 2; g++)
                    f[g] = fold_of(t, part, g, c);
                UNROLL for (int i = 0; i < 8; i++)
                {
                    vi w = quad_at(t, part, i, c);
                    if (folds(t))
                        w = vi_add_words(vi_mul_words(w, f[i / 4].by), f[i / 4].plus);
                    const vi low = planes ? vi_and(w, vi_set1(0x0f0f0f0f)) : w;
                    memcpy(out + head + 128 * i + 4 * c, &low, sizeof low);
                    if (planes) {
                        const vi high = vi_and(vi_shr(w, 4), vi_set1(0x0f0f0f0f));
                        memcpy(out + head + 1024 + 128 * i + 4 * c, &high, sizeof high);
                    }
                }
            }
        }
    }
}

/* The integers of group g of all rows, from bytes at w. */
INL void dot_group(int groups, int mins, int bits, int rows, const uint8_t *a, const uint8_t *w, int g,
                   vi c[ST_DOT_ROWS][ST_DOT_NV])
{
    const bool planes = ST_DOT_PLANES && bits == 8;
    vi words[ST_DOT_ROWS][ST_DOT_NV], high[ST_DOT_ROWS][ST_DOT_NV];
    UNROLL for (int at = 0; at < 8 / groups; at++)
    {
        const int i = g * (8 / groups) + at;
        vi q[ST_DOT_NV], h[ST_DOT_NV];
        UNROLL for (int v = 0; v < ST_DOT_NV; v++)
        {
            q[v] = vi_load(w + i * 128 + v * VL * 4);
            h[v] = planes ? vi_load(w + 1024 + i * 128 + v * VL * 4) : q[v];
        }
        UNROLL for (int r = 0; r < rows; r++)
        {
            const uint8_t *const record = a + r * RECORD;
            const vi x = left_quad(record, i);
            UNROLL for (int v = 0; v < ST_DOT_NV; v++)
            {
                dot_step(planes ? 4 : bits, at, 8 / groups, q[v], x, dot_start(mins > 0, record, groups == 1 ? 2 : g),
                         &c[r][v], &words[r][v]);
                if (planes)
                    high[r][v] = at == 0 ? dot_words(h[v], x) : dot_more(high[r][v], h[v], x);
                if (planes && at == 7)
                    c[r][v] = dot_flush_high(c[r][v], high[r][v]);
            }
        }
    }
}

INL void dot_product(int groups, int mins, int bits, int rows, const uint8_t *a, const uint8_t *b, int n_part,
                     float *acc, bool first, const st_cpu_dot_ahead *ahead)
{
    const uint8_t *const a0 = a, *const b0 = b, *lines = ahead->lines;
    const int head = head_of(groups, mins), bytes = head + (ST_DOT_PLANES && bits == 8 ? 2048 : 1024);
    for (int column = 0; column < ST_CPU_PANEL; column += ST_DOT_NV * VL) {
        vf sum[ST_DOT_ROWS][ST_DOT_NV];
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++) sum[r][v] =
            first ? v_zero() : v_load(acc + tile_at(rows, r, column + v * VL));
        a = a0;
        b = b0 + 4 * column;
        for (int p = 0; p < n_part; p++, a += RECORD * rows, b += bytes) {
            for (int i = 0; column == 0 && i < ahead->each; i++, lines += 64)
                __builtin_prefetch(lines);
            if (column == 0 && p < 2 * ahead->rows)
                __builtin_prefetch(ahead->out + (p >> 1) * ahead->out_stride + (p & 1) * 16, 1);
            UNROLL for (int g = 0; g < groups; g++)
            {
                vi c[ST_DOT_ROWS][ST_DOT_NV];
                dot_group(groups, mins, bits, rows, a, b + head, g, c);
                vf scale[ST_DOT_NV], shift[ST_DOT_NV];
                UNROLL for (int v = 0; v < ST_DOT_NV; v++)
                {
                    scale[v] = v_load((const float *)(const void *)(b + 128 * g) + v * VL);
                    shift[v] = ST_DOT_START != 0 ? v_load((const float *)(const void *)(b + 128 * (groups + g)) + v * VL)
                                                 : v_zero();
                }
                UNROLL for (int r = 0; r < rows; r++) dot_finish(sum[r], c[r], 1, scale, shift, a + r * RECORD);
            }
            UNROLL for (int g = 0; g < mins; g++)
            {
                vf offset[ST_DOT_NV];
                UNROLL for (int v = 0; v < ST_DOT_NV; v++) offset[v] =
                    v_load((const float *)(const void *)(b + head - 128 * (mins - g)) + v * VL);
                UNROLL for (int r = 0; r < rows; r++) dot_offset(sum[r], offset, a + r * RECORD, g);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < ST_DOT_NV; v++)
            v_store(acc + tile_at(rows, r, column + v * VL), sum[r][v]);
    }
}

#include "dot_table.h"
