/* dot_amx.c: products of expanded blocks with AMX (contracts in cpu_kernels.h), for more rows than a tile of AVX-512 VNNI has, of the
 * same packed rows and the same expanded bytes. A product of tiles is 16 columns by as many k as have one scale. While one is
 * multiplied, the one before it is stored, and numbers are made of the one before that. Beside AMX only one of the two vector
 * multipliers works, and the processor has to look far ahead to find work for all: instructions count, so what a row has is read
 * by those that use it. */
#if !defined(__AMX_TILE__) && !defined(__AMXTILE__) /* gcc, clang */
#error "this file needs -mamx-tile -mamx-int8"
#endif
#define ST_LEVEL amx
#include "backends/cpu/cpu_kernels.h"
#include "../vec_v4.h"

#define REGISTER "v"
#define ST_DOT_WIDE plain
#define ST_DOT_FOLD 1
#include "../dot_fused.h"
#include "../dot_kinds.h"
#include "../dot_record.h"

enum { ROWS = 16, COLUMNS = 16 };

typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

/* Tile 0 is the sums of 16 rows, 1 of 8, tiles 2 and 3 are these rows, 4 the columns: of 32 k or of 16. */
static const tile_config of_32 = {.palette = 1, .row_bytes = {64, 64, 32, 32, 64}, .rows = {16, 8, 16, 8, 8}};
static const tile_config of_16 = {.palette = 1, .row_bytes = {64, 64, 16, 16, 64}, .rows = {16, 8, 16, 8, 4}};

static void begin(st_cpu_wtype t)
{
    _tile_loadconfig(t == ST_CPU_W_Q6_K ? &of_16 : &of_32);
}

/* Compilers do not know that tiles are loaded from memory. */
#define ORDER() __asm__ volatile("" ::: "memory")

INL void multiply(int rows, const uint8_t *x, const uint8_t *w)
{
    ORDER();
    _tile_loadd(4, w, 128);
    if (rows == ROWS) {
        _tile_loadd(2, x, RECORD);
        _tile_zero(0);
        _tile_dpbsud(0, 2, 4);
    } else {
        _tile_loadd(3, x, RECORD);
        _tile_zero(1);
        _tile_dpbsud(1, 3, 4);
    }
}

INL void store(int rows, int32_t *out)
{
    if (rows == ROWS)
        _tile_stored(0, out, 64);
    else
        _tile_stored(1, out, 64);
    ORDER();
}

/* Integers [rows][16] of group g as numbers, added to sum: `record` is that of the first row. */
INL void make_numbers(int groups, int mins, int g, int rows, const int32_t *c, const uint8_t *record,
                      const float *heads, vf *sum)
{
    const vf scale = v_load(heads + 32 * g), shift = v_load(heads + 32 * (groups + g));
    vf offset[2];
    UNROLL for (int m = 0; m < mins; m++) offset[m] = v_load(heads + 32 * (2 * groups + m));
    UNROLL for (int r = 0; r < rows; r++, record += RECORD)
    {
        const vi n = vi_add(vi_load(c + r * COLUMNS), dot_start(mins > 0, record, groups == 1 ? 2 : g));
        sum[r] = v_fma(v_fma(vi_as_float(n), scale, shift), left_float(record, RECORD_SCALE), sum[r]);
        UNROLL for (int m = 0; m < mins; m++) sum[r] = v_fma(offset[m], left_float(record, RECORD_FIX + 4 * m), sum[r]);
    }
}

/* What is multiplied is two products ahead of the numbers, at last among the other columns, whose products begin before these end. */
INL void dot_product(int groups, int mins, int rows, const uint8_t *a, const uint8_t *b, int n_part, float *acc,
                     bool first, const st_cpu_dot_ahead *ahead)
{
    int32_t places[2][ROWS * COLUMNS] __attribute__((aligned(64)));
    int32_t *now = places[0], *then = places[1];
    const int head = head_of(groups, mins), lead = 2 / groups; /* in parts */
    const ptrdiff_t a_step = (ptrdiff_t)RECORD * rows, b_step = head + 1024;
    const uint8_t *const other = b + head + 4 * COLUMNS, *lines = ahead->lines;
    if (n_part == 0) {
        if (first)
            memset(acc, 0, sizeof(float) * 2 * COLUMNS * (size_t)rows);
        return;
    }
    multiply(rows, a, b + head);
    store(rows, now);
    if (groups == 2)
        multiply(rows, a + 16, b + head + 512);
    else if (n_part > 1)
        multiply(rows, a + a_step, b + b_step + head);
    else
        multiply(rows, a, other);
    for (int v = 0; v < 2; v++, acc += COLUMNS * rows) {
        const uint8_t *record = a, *of = b + 4 * COLUMNS * v, *x = a + lead * a_step, *w = of + head + lead * b_step;
        const int each = (ahead->each + 1 - v) / 2;
        for (int r = 0; r < ahead->rows; r++)
            __builtin_prefetch(ahead->out + r * ahead->out_stride + v * COLUMNS, 1);
        vf sum[ROWS];
        UNROLL for (int r = 0; r < rows; r++) sum[r] = first ? v_zero() : v_load(acc + r * COLUMNS);
        for (int turn = 0, n = n_part - lead; turn < 2; turn++, n = n_part < lead ? n_part : lead, x = a, w = other) {
            for (int p = 0; p < n; p++, record += a_step, of += b_step, x += a_step, w += b_step) {
                for (int i = 0; i < each; i++, lines += 64)
                    __builtin_prefetch(lines);
                UNROLL for (int g = 0; g < groups; g++)
                {
                    store(rows, then);
                    multiply(rows, x + 16 * g, w + 512 * g);
                    make_numbers(groups, mins, g, rows, now, record, (const float *)(const void *)of, sum);
                    int32_t *const done = now;
                    now = then;
                    then = done;
                }
            }
        }
        UNROLL for (int r = 0; r < rows; r++) v_store(acc + r * COLUMNS, sum[r]);
    }
    ORDER();
}

#define PRODUCT(KIND, R)                                                                                     \
    static void product_##KIND##_##R(const uint8_t *a, const uint8_t *b, int n_part, float *acc, bool first, \
                                     const st_cpu_dot_ahead *ahead)                                          \
    {                                                                                                        \
        dot_product(KIND##_groups, KIND##_mins, R, a, b, n_part, acc, first, ahead);                         \
    }
#define KIND(NAME, GROUPS, MINS, BITS)                       \
    enum { NAME##_groups = (GROUPS), NAME##_mins = (MINS) }; \
    PRODUCT(NAME, 8)                                         \
    PRODUCT(NAME, 16)
EACH_KIND(KIND)

void st_cpu_fill_dot_amx(st_cpu_kernels *k)
{
    st_cpu_dot *d = &k->dot;
    d->mr = ROWS;
    d->begin = begin;
#define SET_PRODUCT(T, KIND, R) d->product[ST_CPU_W_##T][R] = product_##KIND##_##R;
#define SET_TYPE(T, KIND) SET_PRODUCT(T, KIND, 8) SET_PRODUCT(T, KIND, 16)
    EACH_TYPE(SET_TYPE)
#undef SET_TYPE
#undef SET_PRODUCT
}
