/* Packing against llama.cpp's quantisers (tools/make_pack_golden.py): the same bytes where the format's reference is followed,
 * and an error that is no larger where the search is our own. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sotto/quant.h"

enum { ROWS = 24, WIDTH = 768 };

typedef struct rows {
    float x[ROWS][WIDTH], importance[WIDTH];
} rows;

static uint32_t next_number(uint32_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 17;
    *s ^= *s << 5;
    return *s >> 16;
}

static float number(uint32_t *s, int row)
{
    int64_t sum = -131070;
    for (int i = 0; i < 4; i++)
        sum += next_number(s);
    double x = (double)sum / (double)(UINT32_C(1) << (16 + row % 7));
    if (row % 3 == 2)
        x += 0.5;
    if (row % 4 == 3 && next_number(s) % 32 == 0)
        x *= 8;
    return (float)x;
}

static int make_rows(void **state)
{
    rows *r = malloc(sizeof *r);
    uint32_t s = 20240611;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < WIDTH; j++)
            r->x[i][j] = number(&s, i);
    for (int j = 0; j < WIDTH; j++) {
        const double root = (double)(1 + next_number(&s) % 255);
        r->importance[j] = (float)(root * root / 4096);
    }
    *state = r;
    return 0;
}

static int free_rows(void **state)
{
    free(*state);
    return 0;
}

static void hash(uint64_t *h, const uint8_t *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *h = (*h ^ data[i]) * UINT64_C(0x100000001b3);
}

static void check(const rows *r, sotto_dtype dtype, bool weighted, uint64_t want_hash, double want_error)
{
    const bool exact = dtype < SOTTO_Q2_K;
    const size_t size = sotto_dtype_row_bytes(dtype, WIDTH);
    uint8_t packed[WIDTH * 4];
    float y[WIDTH];
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    double error = 0;
    for (int i = 0; i < ROWS; i++) {
        assert_true(sotto_row_from_f32_weighted(dtype, r->x[i], weighted ? r->importance : NULL, packed, WIDTH));
        assert_true(sotto_row_to_f32(dtype, packed, y, WIDTH));
        hash(&h, packed, size);
        for (int j = 0; j < WIDTH; j++) {
            const double off = (double)r->x[i][j] - (double)y[j];
            error += (weighted ? (double)r->importance[j] : 1) * off * off;
        }
    }
    error /= ROWS * WIDTH;
    if (exact && h != want_hash)
        fail_msg("%s, importance %d: other bytes (error %g, expected %g)", sotto_dtype_name(dtype), weighted, error,
                 want_error);
    if (error > want_error * 1.02)
        fail_msg("%s, importance %d: error %g, expected at most %g", sotto_dtype_name(dtype), weighted, error,
                 want_error);
}

static void packing_is_as_good(void **state)
{
    FILE *f = fopen(SOTTO_SOURCE_DIR "/tests/unit/data/pack_golden.tsv", "rb");
    assert_non_null(f);
    char name[16];
    int weighted, n = 0;
    uint64_t h;
    double error;
    while (fscanf(f, "%15s %d %" SCNx64 " %lf", name, &weighted, &h, &error) == 4) {
        sotto_dtype dtype;
        assert_int_equal(sotto_dtype_find(name, &dtype), SOTTO_OK);
        check(*state, dtype, weighted, h, error);
        n++;
    }
    fclose(f);
    assert_int_equal(n, 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(packing_is_as_good)};
    return cmocka_run_group_tests(tests, make_rows, free_rows);
}
