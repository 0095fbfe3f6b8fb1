/* narrow_bytes.h: blocks of rows of bytes times panels, for levels whose products of bytes give sums of two that saturate at 16
 * bits. All sums are exact, whatever rows and weights are:
 * - Once the rows are packed, the least number of each k, at most 128, is taken off them. It meets the panels as a row of its
 *   own, whose sums are added to those of all rows. What is left of numbers is small, as a rule.
 * - For the largest numbers that there are then, and a part of a panel, pairs of weights are found that are too much. They are
 *   made smaller, or leave, and what is lacking is multiplied apart. Most parts lack so little that even sums of four, of two
 *   fours of k, are kept in 16 bits.
 * Weights are read where they lie, but for parts that lack something. Included by narrow_words.h. */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_BYTES_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_X86_NARROW_BYTES_H

enum {
    FOUR = 4 * ST_CPU_PANEL, /* bytes of a panel's four k */
    VECTOR = 4 * VL,
    PART_FOURS = 16 * PART,
    PART_BYTES = PART_FOURS * FOUR,
    PART_VECTORS = PART_BYTES / VECTOR,
    MUCH = 16, /* vectors of a part that lack something */
    TOO_MUCH = 64,
    MOST_REST = PART_VECTORS / 2 * 3
};

/* How a part is multiplied: with sums of four or of two products of bytes in 16 bits, or as words. */
typedef enum part_kind { SUMS_OF_FOUR, SUMS_OF_TWO, WORDS } part_kind;

/* A part of a panel with weights whose products with a block's rows fit 16 bits, and what these lack. */
typedef struct byte_part {
    int chunks;
    bool first;
    part_kind kind;
    const uint8_t *w; /* [chunks][16 fours][32 columns][4], or words as widen() makes them */
    int n;            /* vectors of weights that lack something: what, and where they are */
    uint8_t *rest;    /* [n][VL columns][4] */
    uint16_t at[MOST_REST];
    int32_t more[ST_CPU_PANEL]; /* sums of what was taken off the rows */
} byte_part;

/* ---- rows ---- */

/* Blocks that are settled; the others have few rows. */
INL bool settles(int rows, int chunks)
{
    return rows >= ST_NARROW_ROWS && chunks > 0 && chunks <= MOST_CHUNKS;
}

INL int tile_rows(int rows, int r)
{
    return rows - r < ST_NARROW_ROWS ? rows - r : ST_NARROW_ROWS;
}

/* Of a vector of each row's chunk: takes the least numbers off, which low gets, and high gets the largest there are then. */
INL void settle_vector(uint8_t *packed, int chunks, int chunk, int at, int rows, uint8_t *low, uint8_t *high)
{
    vi least = MM(set1_epi8)(-128), most = vi_set1(0);
    for (int pass = 0; pass < 2; pass++) {
        for (int r = 0; r < rows; r += ST_NARROW_ROWS) {
            const int n = tile_rows(rows, r);
            uint8_t *a = packed + (size_t)(chunks * r + chunk * n) * ROW_CHUNK + at;
            for (const uint8_t *end = a + n * ROW_CHUNK; a < end; a += ROW_CHUNK) {
                const vi x = vi_load(a), left = MM(sub_epi8)(x, least);
                if (pass > 0) {
                    memcpy(a, &left, sizeof left);
                    continue;
                }
                least = MM(min_epu8)(least, x);
                most = MM(max_epu8)(most, x);
            }
        }
    }
    most = MM(max_epu8)(MM(sub_epi8)(most, least), least);
    memcpy(low, &least, sizeof least);
    memcpy(high, &most, sizeof most);
}

/* Takes off the rows what each k's numbers have in common. Behind the rows are then [chunks][64] least and [chunks][64] largest
 * numbers. */
static void settle_bytes(void *packed, int chunks, int rows)
{
    uint8_t *const least = (uint8_t *)packed + (size_t)(chunks * rows) * ROW_CHUNK;
    uint8_t *const most = least + chunks * ROW_CHUNK;
    for (int i = 0; i < chunks && settles(rows, chunks); i++)
        for (int at = i * ROW_CHUNK; at < (i + 1) * ROW_CHUNK; at += VECTOR)
            settle_vector(packed, chunks, i, at % ROW_CHUNK, rows, least + at, most + at);
}

/* ---- weights ---- */

INL vi sums_of_two(vi rows, vi weights)
{
    return MM(maddubs_epi16)(rows, weights);
}

/* The words of `high` and `low` that are at the upper and the lower end of their range are below zero then, and no others. */
INL vi at_ends(vi high, vi low)
{
    return MM(add_epi16)(MM(max_epi16)(high, vi_xor(low, vi_set1(-1))), MM(set1_epi16)(1));
}

/* The largest and the least sums of four that two fours of a vector can give with the rows' largest numbers. */
INL void sums_of_four(const vi most[2], vi w0, vi w1, vi *high, vi *low)
{
    const vi zero = vi_set1(0);
    *high = MM(adds_epi16)(sums_of_two(most[0], MM(max_epi8)(w0, zero)), sums_of_two(most[1], MM(max_epi8)(w1, zero)));
    *low = MM(adds_epi16)(sums_of_two(most[0], MM(min_epi8)(w0, zero)), sums_of_two(most[1], MM(min_epi8)(w1, zero)));
}

INL bool eight_saturates(const vi most[2], const uint8_t *w)
{
    vi high = vi_set1(0), low = high;
    UNROLL for (int at = 0; at < FOUR; at += VECTOR)
    {
        vi more, less;
        sums_of_four(most, vi_load(w + at), vi_load(w + FOUR + at), &more, &less);
        high = MM(max_epi16)(high, more);
        low = MM(min_epi16)(low, less);
    }
    return any_below_zero(at_ends(high, low));
}

static void add_lack(byte_part *part, int at, vi lack)
{
    memcpy(part->rest + VECTOR * part->n, &lack, sizeof lack);
    part->at[part->n++] = (uint16_t)(at / VECTOR);
}

/* Weights whose products with `most` do not saturate: of pairs that are too large the first is made smaller. */
INL vi lessen(byte_part *part, int at, vi most, vi weights)
{
    const vi product = sums_of_two(most, weights), ends = at_ends(product, product);
    if (!any_below_zero(ends))
        return weights;
    const vi sum = sums_of_two(MM(set1_epi8)(1), weights), limit = MM(set1_epi16)(128);
    const vi within = MM(max_epi16)(MM(min_epi16)(sum, limit), MM(sub_epi16)(vi_set1(0), limit));
    const vi over = vi_and(MM(sub_epi16)(sum, within), MM(srai_epi16)(ends, 15));
    const vi lack = vi_and(over, MM(set1_epi16)(255));
    add_lack(part, at, lack);
    return MM(sub_epi8)(weights, lack);
}

/* Two fours of a vector without the pairs of the second that are too much with those of the first. */
INL void part_with(byte_part *part, int at, const vi most[2], uint8_t *w)
{
    vi first = vi_load(w), second = vi_load(w + FOUR), high, low;
    sums_of_four(most, first, second, &high, &low);
    const vi ends = at_ends(high, low), marks = MM(srai_epi16)(ends, 15), over = vi_and(second, marks);
    if (!any_below_zero(ends))
        return;
    first = lessen(part, at, most[0], first);
    second = MM(sub_epi8)(second, over);
    add_lack(part, at + FOUR, lessen(part, at + FOUR, most[1], over));
    memcpy(w, &first, sizeof first);
    memcpy(w + FOUR, &second, sizeof second);
}

/* The part at w, which may be copied to `wide`, 3 * PART_BYTES; most [chunks][64]. Sums of four take fewer instructions than sums
 * of two, but not where much is lacking then, and words the most. */
static void take_part(const uint8_t *w, const uint8_t *most, uint8_t *wide, byte_part *part)
{
    const int fours = 16 * part->chunks;
    part->w = w;
    part->n = 0;
    part->rest = wide + PART_BYTES;
    for (int four = 0; four < fours && part->n <= MUCH; four += 2) {
        const vi largest[2] = {row_words(most + 4 * four), row_words(most + 4 * four + 4)};
        if (!eight_saturates(largest, w + FOUR * four))
            continue;
        if (part->n == 0)
            part->w = memcpy(wide, w, (size_t)part->chunks * BYTE_CHUNK);
        for (int at = FOUR * four; at < FOUR * (four + 1); at += VECTOR)
            part_with(part, at, largest, wide + at);
    }
    part->kind = SUMS_OF_FOUR;
    if (part->n <= MUCH)
        return;
    part->kind = SUMS_OF_TWO;
    part->n = 0;
    for (int at = 0; at < FOUR * fours && part->n <= TOO_MUCH; at += VECTOR) {
        const vi weights = lessen(part, at, row_words(most + at / FOUR * 4), vi_load(w + at));
        memcpy(wide + at, &weights, sizeof weights);
    }
    if (part->n <= TOO_MUCH)
        return;
    part->kind = WORDS;
    part->n = 0;
    widen(w, part->chunks, wide);
}

/* ---- products ---- */

/* Written out, since compilers would read weights once for all rows, and have no registers for them. */
INL vi sums_from(vi x, const uint8_t *w)
{
    typedef vi unaligned __attribute__((aligned(1)));
    vi out;
    __asm__("vpmaddubsw %2, %1, %0" : "=v"(out) : "v"(x), "m"(*(const unaligned *)(const void *)w));
    return out;
}

/* PASS_FOURS fours of k of the rows at a, ROW_CHUNK bytes apart, times PASS_VECTORS vectors of columns */
INL void bytes_fours(int rows, bool of_four, vi c[][PASS_VECTORS], const uint8_t *a, const uint8_t *w, vi ones)
{
    UNROLL for (int four = 0; four < PASS_FOURS; four += 2, w += 2 * FOUR)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vi x = row_words(a + ROW_CHUNK * r + 4 * four), y = row_words(a + ROW_CHUNK * r + 4 * four + 4);
            UNROLL for (int v = 0; v < PASS_VECTORS; v++)
            {
                const vi sums[2] = {sums_from(x, w + VECTOR * v), sums_from(y, w + FOUR + VECTOR * v)};
                if (of_four) {
                    c[r][v] = add_to(c[r][v], MM(madd_epi16)(MM(add_epi16)(sums[0], sums[1]), ones));
                } else {
                    c[r][v] = add_to(c[r][v], MM(madd_epi16)(sums[0], ones));
                    c[r][v] = add_to(c[r][v], MM(madd_epi16)(sums[1], ones));
                }
            }
        }
    }
}

/* The same with weights that are words. */
INL void wide_fours(int rows, vi c[][PASS_VECTORS], const uint8_t *a, const uint8_t *w)
{
    UNROLL for (int pair = 0; pair < 2 * PASS_FOURS; pair++, w += FOUR)
    {
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vi x = row_bytes(a + ROW_CHUNK * r + pair / 2 * 4, pair % 2);
            UNROLL for (int v = 0; v < PASS_VECTORS; v++) c[r][v] = add_to(c[r][v], words_from(x, w + VECTOR * v));
        }
    }
}

/* Some of a tile's rows, from `row` on, times a part; t->a: where it begins. */
INL void bytes_pass(int rows, part_kind kind, const tile_job *t, int row, const byte_part *part)
{
    const vi ones = MM(set1_epi16)(1);
    for (int column = 0; column < ST_CPU_PANEL; column += PASS_VECTORS * VL) {
        vi c[PASS_ROWS][PASS_VECTORS], sums[PASS_VECTORS];
        UNROLL for (int v = 0; v < PASS_VECTORS; v++) sums[v] = split_sums(t->panel, column + v * VL);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < PASS_VECTORS; v++) c[r][v] =
            vi_add(part->first ? first_sums(t->scale[row + r].zero, sums[v])
                               : vi_load(t->acc + 4 * tile_at(t->rows, row + r, column + v * VL)),
                   vi_load(part->more + column + v * VL));
        const uint8_t *a = t->a + ROW_CHUNK * row, *w = part->w + 4 * column;
        for (int i = 0; i < part->chunks; i++, a += ROW_CHUNK * (t->rows - 1)) {
            for (int four = 0; four < 16; four += PASS_FOURS, a += 4 * PASS_FOURS) {
                if (kind == WORDS)
                    wide_fours(rows, c, a, w);
                else
                    bytes_fours(rows, kind == SUMS_OF_FOUR, c, a, w, ones);
                w += FOUR * PASS_FOURS * (kind == WORDS ? 2 : 1);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < PASS_VECTORS; v++)
            memcpy(t->acc + 4 * tile_at(t->rows, row + r, column + v * VL), &c[r][v], sizeof(vi));
    }
}

/* Functions of their own, as compilers move sums about in larger ones. */
#define PASS(R)                                                                                            \
    __attribute__((noinline)) static void four_pass_##R(const tile_job *t, int row, const byte_part *part) \
    {                                                                                                      \
        bytes_pass(R, SUMS_OF_FOUR, t, row, part);                                                         \
    }                                                                                                      \
    __attribute__((noinline)) static void two_pass_##R(const tile_job *t, int row, const byte_part *part)  \
    {                                                                                                      \
        bytes_pass(R, SUMS_OF_TWO, t, row, part);                                                          \
    }                                                                                                      \
    __attribute__((noinline)) static void word_pass_##R(const tile_job *t, int row, const byte_part *part) \
    {                                                                                                      \
        bytes_pass(R, WORDS, t, row, part);                                                                \
    }
EACH_PASS(PASS)
#undef PASS

/* What the part's weights lack, times a tile. */
INL void add_rest(int rows, const tile_job *t, const byte_part *part)
{
    const vi ones = MM(set1_epi16)(1);
    for (int i = 0; i < part->n; i++) {
        const int four = part->at[i] / (FOUR / VECTOR), column = part->at[i] % (FOUR / VECTOR) * VL;
        const vi rest = vi_load(part->rest + VECTOR * i);
        const uint8_t *a = t->a + ROW_CHUNK * rows * (four / 16) + 4 * (four % 16);
        uint8_t *acc = t->acc + 4 * tile_at(rows, 0, column);
        UNROLL for (int r = 0; r < rows; r++)
            few_sum(acc + 64 * r, MM(madd_epi16)(sums_of_two(row_words(a + ROW_CHUNK * r), rest), ones));
    }
}

static void bytes_tile(const tile_job *t, const byte_part *part)
{
    int row = 0;
#define ROWS_OF(R)                                   \
    for (; row + R <= t->rows; row += R)             \
        (part->kind == SUMS_OF_FOUR  ? four_pass_##R \
         : part->kind == SUMS_OF_TWO ? two_pass_##R  \
                                     : word_pass_##R)(t, row, part);
    EACH_PASS(ROWS_OF)
#undef ROWS_OF
    if (t->rows == ST_NARROW_ROWS)
        add_rest(ST_NARROW_ROWS, t, part);
    else
        add_rest(t->rows, t, part);
}

/* ---- blocks ---- */

/* Row r and those behind it, from chunk `from` on, times panel p; `acc` is that of the panel. */
INL tile_job bytes_job(const st_cpu_narrow_block *b, int64_t p, int from, int r, uint8_t *acc)
{
    const int64_t col = b->col + p * ST_CPU_PANEL;
    return (tile_job){.a = b->a + (size_t)(b->chunks * r + from * tile_rows(b->rows, r)) * ROW_CHUNK,
                      .panel = b->panels + b->panel_bytes * (size_t)p,
                      .chunks = b->chunks,
                      .rows = tile_rows(b->rows, r),
                      .scale = b->scale + r,
                      .out = b->e->out + (b->row + r) * b->e->out_stride + col,
                      .out_stride = b->e->out_stride,
                      .acc = acc + (size_t)r * 4 * ST_CPU_PANEL};
}

/* Tiles whose sums began with what the rows' zeros take from them. */
static void bytes_finish(const st_cpu_narrow_block *b, const tile_job *t, int r, int64_t col)
{
    st_cpu_row_scale scale[ST_NARROW_ROWS];
    if (b->n - col >= ST_CPU_PANEL) {
        block_finish_tile(b->e, t, b->row + r, col);
        return;
    }
    for (int i = 0; i < t->rows; i++)
        scale[i] = (st_cpu_row_scale){.scale = t->scale[i].scale};
    b->k->finish_i8(b->e, (const int32_t *)(const void *)t->acc, t->rows, t->rows, false, b->row + r, col,
                    (int)(b->n - col), scale, t->panel);
}

/* The part of panel p from chunk `from` on. */
static void begin_part(const st_cpu_narrow_block *b, int64_t p, int from, byte_part *part)
{
    const uint8_t *const least = b->a + (size_t)(b->chunks * b->rows + from) * ROW_CHUNK;
    const st_cpu_row_scale none = {0};
    int32_t more[ST_CPU_PANEL];
    const tile_job t = {
        .a = least, .panel = b->panels + b->panel_bytes * (size_t)p, .rows = 1, .scale = &none, .acc = (uint8_t *)more};
    part->chunks = b->chunks - from < PART ? b->chunks - from : PART;
    part->first = true;
    memset(part->more, 0, sizeof part->more);
    take_part(panel_chunk(b, p, from), least + b->chunks * ROW_CHUNK, b->wide, part);
    bytes_tile(&t, part);
    memcpy(part->more, more, sizeof more);
    part->first = from == 0;
}

/* All rows times a part of a panel. Each tile has its share of the next part fetched, and in the last part the places of its
 * results. */
static void bytes_part(const st_cpu_narrow_block *b, int64_t p, int from, const uint8_t *next, uint8_t *acc)
{
    const int tiles = (b->rows + ST_NARROW_ROWS - 1) / ST_NARROW_ROWS;
    const int lines = (PART_BYTES / 64 + tiles - 1) / tiles;
    byte_part part;
    begin_part(b, p, from, &part);
    const bool last = from + part.chunks == b->chunks;
    for (int r = 0; r < b->rows; r += ST_NARROW_ROWS) {
        const tile_job t = bytes_job(b, p, from, r, acc);
        for (int i = 0; i < lines; i++, next += 64)
            __builtin_prefetch(next, 0, 2);
        for (int i = 0; i < t.rows && last; i++) {
            __builtin_prefetch(t.out + i * t.out_stride);
            __builtin_prefetch(t.out + i * t.out_stride + ST_CPU_PANEL - 1);
        }
        bytes_tile(&t, &part);
        if (last)
            bytes_finish(b, &t, r, b->col + p * ST_CPU_PANEL);
    }
}

/* `n` panels from p on, which have sums of their own. */
static void bytes_panels(const st_cpu_narrow_block *b, int64_t p, int64_t n)
{
    for (int from = 0; from < b->chunks; from += PART) {
        for (int64_t i = 0; i < n; i++) {
            const bool over = i + 1 == n;
            const int chunk = over ? from + PART : from;
            const uint8_t *next =
                chunk < b->chunks ? panel_chunk(b, over ? p : p + i + 1, chunk) : panel_chunk(b, p + n, 0);
            bytes_part(b, p + i, from, next, (uint8_t *)b->acc + i * 4 * ST_CPU_ROW_BLOCK * ST_CPU_PANEL);
        }
    }
}

static void block_bytes(const st_cpu_narrow_block *b)
{
    if (settles(b->rows, b->chunks)) {
        for (int64_t p = 0; p < b->n_panels; p += b->acc_panels)
            bytes_panels(b, p, b->n_panels - p < b->acc_panels ? b->n_panels - p : b->acc_panels);
        return;
    }
    for (int64_t p = 0; p < b->n_panels; p++) {
        const int64_t col = b->col + p * ST_CPU_PANEL;
        const int cols = (int)(b->n - col < ST_CPU_PANEL ? b->n - col : ST_CPU_PANEL);
        for (int r = 0; r < b->rows; r += ST_NARROW_ROWS) {
            const tile_job t = bytes_job(b, p, 0, r, b->acc);
            b->k->i8.product[t.rows](t.a, t.panel + ST_CPU_I8_HEADER, b->chunks, t.acc);
            b->k->finish_i8(b->e, (const int32_t *)(const void *)t.acc, t.rows, t.rows, false, b->row + r, col, cols,
                            t.scale, t.panel);
        }
    }
}

#endif
