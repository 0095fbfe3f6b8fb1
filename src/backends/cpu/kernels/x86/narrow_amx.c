/* narrow_amx.c: narrow products with AMX (contracts in cpu_kernels.h). Its registers are tiles of 16 rows of 64 bytes, and
 * every tile keeps that shape, so that one configuration serves all: packed rows come in sixteens. A product of up to 32
 * rows is 2 x 2 tiles of sums, two of the left side and two of the right: 16 columns of a panel, row by row 128 bytes
 * apart, are a tile as they lie. */
#if !defined(__AMX_TILE__) && !defined(__AMXTILE__) /* gcc, clang */
#error "this file needs -mamx-tile -mamx-int8 -mamx-bf16"
#endif
#include <immintrin.h>
#include <string.h>

#include "backends/cpu/cpu_kernels.h"
#include "../vec.h"
#include "tile_config.h"

enum { UNIT = 16, MR = 32, CHUNK_BYTES = 2048 };

static const tile_config eight_tiles = {
    .palette = 1, .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};

static void enter(void)
{
    _tile_loadconfig(&eight_tiles);
}

static void leave(void)
{
    _tile_release();
}

/* one tile of rows: acc [2][16][16] */
#define ONE(DOT)                                                         \
    const uint8_t *x = a, *w = b;                                        \
    _tile_zero(0);                                                       \
    _tile_zero(1);                                                       \
    for (int i = 0; i < chunks; i++, x += UNIT * 64, w += CHUNK_BYTES) { \
        _tile_loadd(4, x, 64);                                           \
        _tile_loadd(6, w, 128);                                          \
        _tile_loadd(7, w + 64, 128);                                     \
        DOT(0, 4, 6);                                                    \
        DOT(1, 4, 7);                                                    \
    }                                                                    \
    _tile_stored(0, acc, 64);                                            \
    _tile_stored(1, (uint8_t *)acc + UNIT * 64, 64)

/* two tiles of rows: acc [2][32][16] */
#define TWO(DOT)                                                             \
    const uint8_t *x = a, *w = b;                                            \
    uint8_t *out = acc;                                                      \
    _tile_zero(0);                                                           \
    _tile_zero(1);                                                           \
    _tile_zero(2);                                                           \
    _tile_zero(3);                                                           \
    for (int i = 0; i < chunks; i++, x += 2 * UNIT * 64, w += CHUNK_BYTES) { \
        _tile_loadd(6, w, 128);                                              \
        _tile_loadd(4, x, 64);                                               \
        DOT(0, 4, 6);                                                        \
        _tile_loadd(7, w + 64, 128);                                         \
        DOT(1, 4, 7);                                                        \
        _tile_loadd(5, x + UNIT * 64, 64);                                   \
        DOT(2, 5, 6);                                                        \
        DOT(3, 5, 7);                                                        \
    }                                                                        \
    _tile_stored(0, out, 64);                                                \
    _tile_stored(2, out + UNIT * 64, 64);                                    \
    _tile_stored(1, out + 2 * UNIT * 64, 64);                                \
    _tile_stored(3, out + 3 * UNIT * 64, 64)

static void i8_one(const void *a, const void *b, int chunks, void *acc)
{
    ONE(_tile_dpbusd);
}

static void i8_two(const void *a, const void *b, int chunks, void *acc)
{
    TWO(_tile_dpbusd);
}

static void bf16_one(const void *a, const void *b, int chunks, void *acc)
{
    ONE(_tile_dpbf16ps);
}

static void bf16_two(const void *a, const void *b, int chunks, void *acc)
{
    TWO(_tile_dpbf16ps);
}

void st_cpu_fill_narrow_amx(st_cpu_kernels *k)
{
    k->i8.mr = k->bf16.mr = MR;
    k->i8.row_unit = k->bf16.row_unit = UNIT;
    for (int rows = 1; rows <= MR; rows++) {
        k->i8.product[rows] = rows <= UNIT ? i8_one : i8_two;
        k->bf16.product[rows] = rows <= UNIT ? bf16_one : bf16_two;
    }
    st_cpu_fill_block_amx(k);
    st_cpu_fill_window_amx(k);
    st_cpu_fill_attention_amx(k);
    k->enter = enter;
    k->leave = leave;
}
