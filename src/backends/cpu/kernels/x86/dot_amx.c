/* dot_amx.c: products of expanded blocks with AMX (contracts in cpu_kernels.h), for more rows than a tile of AVX-512 VNNI has, of the
 * same packed rows and the same expanded bytes. A product of tiles is 16 columns by the 32 k that have one scale. While one is
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
#include "tile_config.h"

enum { ROWS = 16, COLUMNS = 16 };

/* Tiles 0 to 2 are the sums of 16, 12 and 8 rows, 3 to 5 these rows, 6 the columns. */
static const tile_config tiles = {
    .palette = 1, .row_bytes = {64, 64, 64, 32, 32, 32, 64}, .rows = {16, 12, 8, 16, 12, 8, 8}};

static void begin(void)
{
    _tile_loadconfig(&tiles);
}

/* Compilers do not know that tiles are loaded from memory. */
#define ORDER() __asm__ volatile("" ::: "memory")

/* Bytes from a tile's row to the next. They have to be in registers, and in a loop compilers would rather keep them there all the
 * time: at the price of pointers, which then come from vector registers through the port that everything waits for. */
INL long apart(int bytes)
{
    long n;
    __asm__ volatile("movl %1, %k0" : "=r"(n) : "i"(bytes));
    return n;
}

INL void multiply(int rows, const uint8_t *x, const uint8_t *w)
{
#define MULTIPLY(SUMS, ROWS_OF)             \
    _tile_loadd(ROWS_OF, x, apart(RECORD)); \
    _tile_zero(SUMS);                       \
    _tile_dpbsud(SUMS, ROWS_OF, 6)
    ORDER();
    _tile_loadd(6, w, apart(128));
    if (rows == 16) {
        MULTIPLY(0, 3);
    } else if (rows == 12) {
        MULTIPLY(1, 4);
    } else {
        MULTIPLY(2, 5);
    }
#undef MULTIPLY
}

INL void store(int rows, int32_t *out)
{
    if (rows == 16)
        _tile_stored(0, out, apart(64));
    else if (rows == 12)
        _tile_stored(1, out, apart(64));
    else
        _tile_stored(2, out, apart(64));
    ORDER();
}

/* Integers [rows][16] as numbers, added to sum: `record` is that of the first row. */
INL void make_numbers(int mins, int rows, const int32_t *c, const uint8_t *record, const float *heads, vf *sum)
{
    const vf scale = v_load(heads), shift = v_load(heads + 32);
    vf offset[2];
    UNROLL for (int m = 0; m < mins; m++) offset[m] = v_load(heads + 32 * (2 + m));
    UNROLL for (int r = 0; r < rows; r++, record += RECORD)
    {
        const vi n = vi_add(vi_load(c + r * COLUMNS), dot_start(mins > 0, record, 2));
        sum[r] = v_fma(v_fma(vi_as_float(n), scale, shift), left_float(record, RECORD_SCALE), sum[r]);
        UNROLL for (int m = 0; m < mins; m++) sum[r] = v_fma(offset[m], left_float(record, RECORD_FIX + 4 * m), sum[r]);
    }
}

/* Where a product is: the part whose numbers are made, and that which is multiplied, two products ahead. */
typedef struct cursor {
    const uint8_t *record, *of;
    const uint8_t *x, *w;
    int32_t *now, *then;  /* integers of this product, and of the next */
    const uint8_t *lines; /* to be fetched */
} cursor;

/* n parts. more: something is left to be multiplied. */
INL void run_parts(int mins, int rows, bool more, int n, int each, cursor *c, vf *sum)
{
    const int a_step = RECORD * rows, b_step = head_of(1, mins) + 1024;
    for (int p = 0; p < n; p++, c->record += a_step, c->of += b_step, c->x += a_step, c->w += b_step) {
        for (int i = 0; i < each; i++, c->lines += 64)
            __builtin_prefetch(c->lines);
        store(rows, c->then);
        if (more)
            multiply(rows, c->x, c->w);
        make_numbers(mins, rows, c->now, c->record, (const float *)(const void *)c->of, sum);
        int32_t *const done = c->now;
        c->now = c->then;
        c->then = done;
    }
}

/* The products of the other columns begin before those of the first ones end. */
INL void dot_product(int mins, int rows, const uint8_t *a, const uint8_t *b, int n_part, float *acc, bool first,
                     const st_cpu_dot_ahead *ahead)
{
    int32_t places[2][ROWS * COLUMNS] __attribute__((aligned(64)));
    const int head = head_of(1, mins), lead = 2;
    const ptrdiff_t a_step = (ptrdiff_t)RECORD * rows, b_step = head + 1024;
    const uint8_t *const other = b + head + 4 * COLUMNS;
    const int last = n_part < lead ? n_part : lead;
    cursor c = {.now = places[0], .then = places[1], .lines = ahead->lines};
    if (n_part == 0) {
        if (first)
            memset(acc, 0, sizeof(float) * 2 * COLUMNS * (size_t)rows);
        return;
    }
    multiply(rows, a, b + head);
    store(rows, c.now);
    multiply(rows, n_part > 1 ? a + a_step : a, n_part > 1 ? b + b_step + head : other);
    for (int v = 0; v < 2; v++, acc += COLUMNS * rows) {
        const int each = (ahead->each + 1 - v) / 2;
        for (int r = 0; r < ahead->rows; r++)
            __builtin_prefetch(ahead->out + r * ahead->out_stride + v * COLUMNS, 1);
        vf sum[ROWS];
        UNROLL for (int r = 0; r < rows; r++) sum[r] = first ? v_zero() : v_load(acc + r * COLUMNS);
        c.record = a;
        c.of = b + 4 * COLUMNS * v;
        c.x = a + lead * a_step;
        c.w = c.of + head + lead * b_step;
        run_parts(mins, rows, true, n_part - lead, each, &c, sum);
        c.x = a;
        c.w = other;
        if (v == 0)
            run_parts(mins, rows, true, last, each, &c, sum);
        else
            run_parts(mins, rows, false, last, each, &c, sum);
        UNROLL for (int r = 0; r < rows; r++) v_store(acc + r * COLUMNS, sum[r]);
    }
    ORDER();
}

#define PRODUCT(KIND, R)                                                                                     \
    static void product_##KIND##_##R(const uint8_t *a, const uint8_t *b, int n_part, float *acc, bool first, \
                                     const st_cpu_dot_ahead *ahead)                                          \
    {                                                                                                        \
        dot_product(KIND##_mins, R, a, b, n_part, acc, first, ahead);                                        \
    }
#define KIND(NAME, MINS)           \
    enum { NAME##_mins = (MINS) }; \
    PRODUCT(NAME, 8)               \
    PRODUCT(NAME, 12)              \
    PRODUCT(NAME, 16)
KIND(plain, 0)
KIND(min, 1)
KIND(min2, 2)
/* A scale for every 16 k, twice as many products: nothing is gained. */
#define product_plain2_8 NULL
#define product_plain2_12 NULL
#define product_plain2_16 NULL

void st_cpu_fill_dot_amx(st_cpu_kernels *k)
{
    st_cpu_dot *d = &k->dot;
    d->mr = ROWS;
    d->begin = begin;
#define SET_PRODUCT(T, KIND, R) d->product[ST_CPU_W_##T][R] = product_##KIND##_##R;
#define SET_TYPE(T, KIND) SET_PRODUCT(T, KIND, 8) SET_PRODUCT(T, KIND, 12) SET_PRODUCT(T, KIND, 16)
    EACH_TYPE(SET_TYPE)
#undef SET_TYPE
#undef SET_PRODUCT
}
