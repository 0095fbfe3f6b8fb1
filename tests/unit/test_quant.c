/* Quantised rows against blocks calculated by hand, and what no reference defines: NaN, infinities, bad arguments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "quant/blocks.h"
#include "sotto/quant.h"

static const struct {
    sotto_dtype dtype;
    int block, bytes, levels; /* levels: a bound of the steps between the block's extremes, 0 when there is none */
} types[] = {
    {SOTTO_F32, 1, 4, 1},      {SOTTO_F16, 1, 2, 1},      {SOTTO_BF16, 1, 2, 1},     {SOTTO_Q4_0, 32, 18, 15},
    {SOTTO_Q4_1, 32, 20, 15},  {SOTTO_Q5_0, 32, 22, 31},  {SOTTO_Q5_1, 32, 24, 31},  {SOTTO_Q8_0, 32, 34, 254},
    {SOTTO_Q2_K, 256, 84, 0},  {SOTTO_Q3_K, 256, 110, 0}, {SOTTO_Q4_K, 256, 144, 0}, {SOTTO_Q5_K, 256, 176, 0},
    {SOTTO_Q6_K, 256, 210, 0}, {SOTTO_IQ4_NL, 32, 18, 0}, {SOTTO_I8, 1, 1, 0},       {SOTTO_I32, 1, 4, 0},
};
enum { N_TYPES = sizeof types / sizeof types[0] };

static void expect_bytes(const void *got, const uint8_t *want, size_t n)
{
    assert_memory_equal(got, want, n);
}

/* -8, -7, .. 7, twice: d = -8 / -8 = 1 (f16 0x3c00), q = x + 8, so 0..15 in both nibbles. */
static void q4_0_by_hand(void **state)
{
    (void)state;
    float x[32], y[32];
    uint8_t want[18] = {0x00, 0x3c}, got[18];
    for (int i = 0; i < 16; i++) {
        x[i] = x[i + 16] = (float)(i - 8);
        want[2 + i] = (uint8_t)(i | i << 4);
    }
    assert_true(sotto_row_from_f32(SOTTO_Q4_0, x, got, 32));
    expect_bytes(got, want, sizeof want);
    assert_true(sotto_row_to_f32(SOTTO_Q4_0, got, y, 32));
    assert_memory_equal(x, y, sizeof x);

    /* 16 is the extreme: d = -2 (0xc000); 16 -> 8.5 - 8 -> 0, 3 -> 8.5 - 1.5 = 7, -15 -> 16 cut to 15 */
    memset(x, 0, sizeof x);
    x[0] = 16, x[1] = 3, x[16] = -15;
    const uint8_t other[18] = {0x00, 0xc0, 0xf0, 0x87, 0x88, 0x88, 0x88, 0x88, 0x88,
                               0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88, 0x88};
    assert_true(sotto_row_from_f32(SOTTO_Q4_0, x, got, 32));
    expect_bytes(got, other, sizeof other);
}

/* 10 + i / 2 for i = 0..15, twice: m = 10 (0x4900), d = 7.5 / 15 = 0.5 (0x3800), q = i. */
static void q4_1_by_hand(void **state)
{
    (void)state;
    float x[32], y[32];
    uint8_t want[20] = {0x00, 0x38, 0x00, 0x49}, got[20];
    for (int i = 0; i < 16; i++) {
        x[i] = x[i + 16] = 10 + (float)i / 2;
        want[4 + i] = (uint8_t)(i | i << 4);
    }
    assert_true(sotto_row_from_f32(SOTTO_Q4_1, x, got, 32));
    expect_bytes(got, want, sizeof want);
    assert_true(sotto_row_to_f32(SOTTO_Q4_1, got, y, 32));
    assert_memory_equal(x, y, sizeof x);
}

/* -16..15: d = 1, q = i; elements 16..31 have the fifth bit. */
static void q5_0_by_hand(void **state)
{
    (void)state;
    float x[32], y[32];
    uint8_t want[22] = {0x00, 0x3c, 0x00, 0x00, 0xff, 0xff}, got[22];
    for (int i = 0; i < 32; i++)
        x[i] = (float)(i - 16);
    for (int i = 0; i < 16; i++)
        want[6 + i] = (uint8_t)(i | i << 4);
    assert_true(sotto_row_from_f32(SOTTO_Q5_0, x, got, 32));
    expect_bytes(got, want, sizeof want);
    assert_true(sotto_row_to_f32(SOTTO_Q5_0, got, y, 32));
    assert_memory_equal(x, y, sizeof x);
}

/* -1 + i / 4: m = -1 (0xbc00), d = 7.75 / 31 = 0.25 (0x3400), q = i; odd and even swapped so that qh is 0xffff0000 still. */
static void q5_1_by_hand(void **state)
{
    (void)state;
    float x[32], y[32];
    uint8_t want[24] = {0x00, 0x34, 0x00, 0xbc, 0x00, 0x00, 0xff, 0xff}, got[24];
    for (int i = 0; i < 32; i++)
        x[i] = -1 + (float)(i ^ 1) / 4;
    for (int i = 0; i < 16; i++)
        want[8 + i] = (uint8_t)((i ^ 1) | (i ^ 1) << 4);
    assert_true(sotto_row_from_f32(SOTTO_Q5_1, x, got, 32));
    expect_bytes(got, want, sizeof want);
    assert_true(sotto_row_to_f32(SOTTO_Q5_1, got, y, 32));
    assert_memory_equal(x, y, sizeof x);
}

/* Extreme -63.5: d = 0.5; halves round away from zero: 0.25 -> 0.5 -> 1, -0.25 -> -1, 0.74 -> 1.48 -> 1. */
static void q8_0_by_hand(void **state)
{
    (void)state;
    float x[32] = {-63.5f, 0.25f, -0.25f, 0.74f, 63.5f}, y[32];
    const uint8_t want[34] = {0x00, 0x38, 0x81, 1, 0xff, 1, 0x7f};
    uint8_t got[34];
    assert_true(sotto_row_from_f32(SOTTO_Q8_0, x, got, 32));
    expect_bytes(got, want, sizeof want);
    assert_true(sotto_row_to_f32(SOTTO_Q8_0, got, y, 32));
    assert_float_equal(y[0], -63.5f, 0);
    assert_float_equal(y[1], 0.5f, 0);
    assert_float_equal(y[4], 63.5f, 0);
    assert_float_equal(y[31], 0, 0);
}

/* One element of each K block told apart from the others by its place. */
static void k_types_by_hand(void **state)
{
    (void)state;
    float y[256];
    st_q2_k q2 = {.d = 0x3c00, .dmin = 0x4000}; /* 1 and 2 */
    q2.scales[9] = 0x53;                        /* group 9: elements 144..159; scale 3, min 5 */
    q2.qs[32 + 16] = 2 << 2 | 1;                /* second half, byte 16: element 128 + 16 gets 1, 128 + 48 gets 2 */
    assert_true(sotto_row_to_f32(SOTTO_Q2_K, &q2, y, 256));
    assert_float_equal(y[144], 3 * 1 - 2 * 5, 0);
    assert_float_equal(y[145], -10, 0);
    assert_float_equal(y[176], 0, 0); /* its group 11 has scale 0 */

    st_q3_k q3 = {.d = 0x3c00};
    q3.scales[1] = 0x07; /* group 1: low nibble 7; group 9 uses the high one */
    q3.scales[9] = 0x03; /* group 1: high bits 3: 7 + 48 - 32 = 23 */
    q3.qs[17] = 2;       /* element 17 */
    q3.hmask[17] = 1;    /* its third bit: 2 + 4 - 4 = 2 */
    assert_true(sotto_row_to_f32(SOTTO_Q3_K, &q3, y, 256));
    assert_float_equal(y[17], 46, 0);
    assert_float_equal(y[16], 23 * -4, 0);
    assert_float_equal(y[0], -32 * -4, 0);

    st_q4_k q4 = {.d = 0x3c00, .dmin = 0x3c00};
    q4.scales[9] = 0x21;  /* group 5: low bits of scale 1, of min 2 */
    q4.scales[1] = 0x80;  /* group 5: high bits of scale 2: 33 */
    q4.scales[5] = 0x40;  /* group 5: high bits of min 1: 18 */
    q4.qs[64 + 3] = 0xb0; /* element 163, upper nibble: 11 */
    assert_true(sotto_row_to_f32(SOTTO_Q4_K, &q4, y, 256));
    assert_float_equal(y[163], 33 * 11 - 18, 0);
    assert_float_equal(y[162], -18, 0);
    assert_float_equal(y[131], 0, 0);

    st_q5_k q5 = {.d = 0x3c00, .dmin = 0x3c00};
    memcpy(q5.scales, q4.scales, sizeof q5.scales);
    q5.qs[64 + 3] = 0xb0;
    q5.qh[3] = 1 << 5;
    assert_true(sotto_row_to_f32(SOTTO_Q5_K, &q5, y, 256));
    assert_float_equal(y[163], 33 * 27 - 18, 0);
    assert_float_equal(y[162], -18, 0);

    st_q6_k q6 = {.d = 0x3c00};
    q6.scales[14] = -2;     /* elements 224..239 */
    q6.ql[64 + 32] = 0xd0;  /* second half: element 128 + 96 = 224, low bits 13 */
    q6.qh[32] = 3 << 6 | 1; /* 224 has high bits 3: 61 - 32 = 29 */
    assert_true(sotto_row_to_f32(SOTTO_Q6_K, &q6, y, 256));
    assert_float_equal(y[224], -58, 0);
    assert_float_equal(y[225], 64, 0);
    assert_float_equal(y[0], 0, 0);
}

/* Each of the sixteen levels, below and above. */
static void iq4_nl_by_hand(void **state)
{
    (void)state;
    static const float levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
    st_iq4_nl b = {.d = 0xb800}; /* -0.5 */
    for (int i = 0; i < 16; i++)
        b.qs[i] = (uint8_t)(i | (15 - i) << 4);
    float y[32];
    assert_true(sotto_row_to_f32(SOTTO_IQ4_NL, &b, y, 32));
    for (int i = 0; i < 16; i++) {
        assert_float_equal(y[i], -0.5f * levels[i], 0);
        assert_float_equal(y[i + 16], -0.5f * levels[15 - i], 0);
    }
}

static void plain_integers_become_numbers(void **state)
{
    (void)state;
    const int8_t a[3] = {-128, 0, 127};
    const int32_t b[3] = {INT32_MIN, 5, 16777216};
    float y[3];
    assert_true(sotto_row_to_f32(SOTTO_I8, a, y, 3));
    assert_true(y[0] == -128 && y[1] == 0 && y[2] == 127);
    assert_true(sotto_row_to_f32(SOTTO_I32, b, y, 3));
    assert_true(y[0] == -2147483648.0f && y[1] == 5 && y[2] == 16777216);
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    float x[256] = {0};
    uint8_t data[1024] = {0};
    for (int i = 0; i < N_TYPES; i++) {
        const sotto_dtype t = types[i].dtype;
        const bool packs = t != SOTTO_I8 && t != SOTTO_I32;
        assert_int_equal(sotto_dtype_can_pack(t), packs);
        assert_true(sotto_row_to_f32(t, data, x, types[i].block));
        assert_int_equal(sotto_row_from_f32(t, x, data, types[i].block), packs);
        assert_true(sotto_row_to_f32(t, NULL, NULL, 0));
        assert_false(sotto_row_to_f32(t, data, x, -types[i].block));
        assert_false(sotto_row_from_f32(t, x, data, INT64_MIN));
        if (types[i].block > 1) {
            assert_false(sotto_row_to_f32(t, data, x, types[i].block - 1));
            assert_false(sotto_row_from_f32(t, x, data, types[i].block + 1));
        }
    }
    const int unknown[] = {-1, 4, 5, 9, 15, 25, 29, 31, 1000, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        assert_false(sotto_row_to_f32((sotto_dtype)unknown[i], data, x, 0));
        assert_false(sotto_row_from_f32((sotto_dtype)unknown[i], x, data, 0));
        assert_false(sotto_dtype_can_pack((sotto_dtype)unknown[i]));
    }
}

/* Whatever the numbers, packing is defined, writes its own bytes only, and unpacking takes any bytes: sanitizers watch. */
static void any_numbers_can_be_packed(void **state)
{
    (void)state;
    const float odd[] = {NAN,    -NAN,    INFINITY, -INFINITY, 0.0f,    -0.0f,   3.4e38f, -3.4e38f,
                         1e-45f, -1e-45f, 1e-39f,   1e-37f,    65504.f, 65520.f, 1.0f,    -8.5f};
    enum { ODD = sizeof odd / sizeof odd[0] };
    srand(7);
    for (int round = 0; round < 500; round++) {
        float x[256], y[256], importance[256];
        const int few = 1 + rand() % ODD; /* blocks of all kinds mixed, and of a few kinds */
        const int first = rand() % ODD;
        for (int i = 0; i < 256; i++) {
            x[i] = odd[(first + rand() % few) % ODD];
            importance[i] = fabsf(odd[rand() % ODD]);
        }
        for (int i = 0; i < N_TYPES; i++) {
            if (!sotto_dtype_can_pack(types[i].dtype))
                continue;
            const size_t size = (size_t)(256 / types[i].block * types[i].bytes);
            uint8_t *const data = malloc(size); /* exact, so that a sanitizer sees a byte too many */
            assert_true(sotto_row_from_f32(types[i].dtype, x, data, 256));
            assert_true(sotto_row_to_f32(types[i].dtype, data, y, 256));
            assert_true(sotto_row_from_f32_weighted(types[i].dtype, x, importance, data, 256));
            free(data);
        }
    }
}

/* What every search has to find: rows of zeros, of one number, of the levels themselves. */
static void plain_rows_stay(void **state)
{
    (void)state;
    static const sotto_dtype searched[] = {SOTTO_Q2_K, SOTTO_Q3_K, SOTTO_Q4_K, SOTTO_Q5_K, SOTTO_Q6_K, SOTTO_IQ4_NL};
    for (size_t t = 0; t < sizeof searched / sizeof *searched; t++) {
        uint8_t data[256];
        float x[256] = {0}, y[256], importance[256] = {0};
        assert_true(sotto_row_from_f32(searched[t], x, data, 256));
        assert_true(sotto_row_to_f32(searched[t], data, y, 256));
        for (int i = 0; i < 256; i++)
            assert_true(y[i] == 0);
        for (int sign = -1; sign <= 1; sign += 2) {
            for (int i = 0; i < 256; i++)
                x[i] = (float)sign * 0.75f;
            assert_true(sotto_row_from_f32(searched[t], x, data, 256));
            assert_true(sotto_row_to_f32(searched[t], data, y, 256));
            for (int i = 0; i < 256; i++)
                assert_float_equal(y[i], x[i], 0.002f);
            /* without any importance whatever comes is finite */
            assert_true(sotto_row_from_f32_weighted(searched[t], x, importance, data, 256));
            assert_true(sotto_row_to_f32(searched[t], data, y, 256));
            for (int i = 0; i < 256; i++)
                assert_true(isfinite(y[i]));
        }
    }
}

/* Only the columns that matter: there the error gets smaller. */
static void importance_moves_the_error(void **state)
{
    (void)state;
    static const sotto_dtype weighted[] = {SOTTO_Q4_0, SOTTO_Q4_1, SOTTO_Q5_0, SOTTO_Q5_1, SOTTO_IQ4_NL,
                                           SOTTO_Q2_K, SOTTO_Q3_K, SOTTO_Q4_K, SOTTO_Q5_K, SOTTO_Q6_K};
    srand(5);
    for (size_t t = 0; t < sizeof weighted / sizeof *weighted; t++) {
        double plain = 0, better = 0;
        for (int round = 0; round < 50; round++) {
            float x[256], y[256], importance[256];
            uint8_t data[256];
            for (int i = 0; i < 256; i++) {
                x[i] = (float)rand() / (float)RAND_MAX - 0.5f;
                importance[i] = i % 8 == 0 ? 1 : 1e-4f;
            }
            assert_true(sotto_row_from_f32(weighted[t], x, data, 256));
            assert_true(sotto_row_to_f32(weighted[t], data, y, 256));
            for (int i = 0; i < 256; i += 8)
                plain += (double)((x[i] - y[i]) * (x[i] - y[i]));
            assert_true(sotto_row_from_f32_weighted(weighted[t], x, importance, data, 256));
            assert_true(sotto_row_to_f32(weighted[t], data, y, 256));
            for (int i = 0; i < 256; i += 8)
                better += (double)((x[i] - y[i]) * (x[i] - y[i]));
        }
        if (!(better < 0.8 * plain))
            fail_msg("type %d: %g with importance, %g without", (int)weighted[t], better, plain);
    }
}

static void any_bytes_can_be_unpacked(void **state)
{
    (void)state;
    srand(11);
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < N_TYPES; i++) {
            float y[256];
            const size_t size = (size_t)(256 / types[i].block * types[i].bytes);
            uint8_t *const room = malloc(size + 1), *const data = room + 1; /* an odd address, as in a file */
            for (size_t j = 0; j < size; j++)
                data[j] = (uint8_t)(rand() >> 7);
            if (types[i].dtype != SOTTO_F32 && types[i].dtype != SOTTO_I32)
                assert_true(sotto_row_to_f32(types[i].dtype, data, y, 256));
            free(room);
        }
    }
}

/* No element is off by more than half a step of its block, plus what rounding the f16 scale and offset adds. */
static void round_trips_stay_within_half_a_step(void **state)
{
    (void)state;
    srand(3);
    for (int round = 0; round < 500; round++) {
        float x[32], y[32], low = INFINITY, high = -INFINITY, largest = 0;
        const float scale = powf(10, (float)(rand() % 7 - 3));
        for (int i = 0; i < 32; i++) {
            x[i] = scale * ((float)rand() / (float)RAND_MAX - 0.4f);
            low = fminf(low, x[i]);
            high = fmaxf(high, x[i]);
            largest = fmaxf(largest, fabsf(x[i]));
        }
        for (int i = 0; i < N_TYPES; i++) {
            if (types[i].levels == 0)
                continue;
            uint8_t data[32 * 4];
            assert_true(sotto_row_from_f32(types[i].dtype, x, data, 32));
            assert_true(sotto_row_to_f32(types[i].dtype, data, y, 32));
            const bool offset = types[i].dtype == SOTTO_Q4_1 || types[i].dtype == SOTTO_Q5_1;
            const float span = offset ? high - low : 2 * largest;
            /* of a signed type the side away from the extreme lacks the last level: a whole step there */
            const bool lopsided = types[i].dtype == SOTTO_Q4_0 || types[i].dtype == SOTTO_Q5_0;
            const float step = span / (float)(lopsided ? types[i].levels + 1 : types[i].levels);
            const float half_step = step * (lopsided ? 1.0f : 0.5f);
            /* an f16 is off by 2^-11 of itself, or 2^-25; the scale's error counts once for each level */
            const float rounding = 3 * largest * 0x1p-11f + (float)types[i].levels * 0x1p-25f;
            const float plain = types[i].dtype == SOTTO_F32 ? 0 : largest * 0x1p-8f;
            const float bound = types[i].block == 1 ? plain : half_step + rounding;
            for (int j = 0; j < 32; j++)
                if (!(fabsf(x[j] - y[j]) <= bound))
                    fail_msg("type %d: %g became %g, bound %g", (int)types[i].dtype, (double)x[j], (double)y[j],
                             (double)bound);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(q4_0_by_hand),
        cmocka_unit_test(q4_1_by_hand),
        cmocka_unit_test(q5_0_by_hand),
        cmocka_unit_test(q5_1_by_hand),
        cmocka_unit_test(q8_0_by_hand),
        cmocka_unit_test(k_types_by_hand),
        cmocka_unit_test(iq4_nl_by_hand),
        cmocka_unit_test(plain_integers_become_numbers),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(any_numbers_can_be_packed),
        cmocka_unit_test(plain_rows_stay),
        cmocka_unit_test(importance_moves_the_error),
        cmocka_unit_test(any_bytes_can_be_unpacked),
        cmocka_unit_test(round_trips_stay_within_half_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
