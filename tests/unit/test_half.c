/* f16 and bf16 against arithmetic in double on the formats' definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"

/* Value of f16 bits by definition: (-1)^s * 2^(e - 15) * (1 + m / 1024), denormal 2^-14 * m / 1024. */
static double value_of(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double magnitude = e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h & 0x8000 ? -magnitude : magnitude;
}

/* Nearest f16 of a finite x, ties to even, by counting steps of the format in double. */
static uint16_t nearest(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    const double a = fabs(x);
    if (a == 0)
        return sign;
    int e;
    frexp(a, &e);
    const int exponent = e - 1 < -14 ? -14 : e - 1;
    const double steps = nearbyint(ldexp(a, 10 - exponent)); /* 1024..2048, fewer for denormals */
    const double bits = steps + (exponent + 14) * 1024.0;    /* 2048 steps carry into the exponent by themselves */
    return (uint16_t)(sign | (bits >= 0x7c00 ? 0x7c00 : (uint16_t)bits));
}

static void every_f16_goes_both_ways(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 65536; h++) {
        const float x = st_f16_to_f32((uint16_t)h);
        if ((h & 0x7c00) == 0x7c00 && (h & 1023)) {
            assert_true(isnan(x));
            assert_int_equal(st_f32_to_f16(x), h | 0x200); /* quiet, payload and sign kept */
            continue;
        }
        if ((h & 0x7fff) == 0x7c00)
            assert_true(isinf(x) && !!signbit(x) == (h >> 15));
        else if ((double)x != value_of((uint16_t)h) || !!signbit(x) != (h >> 15))
            fail_msg("f16 %04x became %g", h, (double)x);
        assert_int_equal(st_f32_to_f16(x), h);
    }
}

static void expect_nearest(uint32_t bits)
{
    const float x = st_bits_f32(bits);
    const uint16_t got = st_f32_to_f16(x), want = nearest((double)x);
    if (got != want)
        fail_msg("f32 %08x (%g) became %04x, expected %04x", bits, (double)x, got, want);
}

/* Around every f16 and every midpoint between two, one f32 step either way. */
static void every_boundary_rounds_to_even(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const double here = value_of((uint16_t)h), next = h == 0x7bff ? 65536 : value_of((uint16_t)(h + 1));
        const uint32_t at[2] = {st_f32_bits((float)here), st_f32_bits((float)((here + next) / 2))};
        for (int i = 0; i < 2; i++)
            for (uint32_t bits = at[i] ? at[i] - 1 : 0; bits <= at[i] + 1; bits++) {
                expect_nearest(bits);
                expect_nearest(bits | 0x80000000u);
            }
    }
    assert_int_equal(st_f32_to_f16(65519.996f), 0x7bff);
    assert_int_equal(st_f32_to_f16(65520), 0x7c00);
    assert_int_equal(st_f32_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(st_f32_to_f16(st_bits_f32(0x7fffffff)), 0x7fff);
    assert_int_equal(st_f32_to_f16(st_bits_f32(0xff800001)), 0xfe00);
}

/* Every 4099th f32 reaches all exponents and mantissa patterns. */
static void f32_all_over_round_to_nearest(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4099)
        if (((uint32_t)bits & 0x7f800000u) != 0x7f800000u)
            expect_nearest((uint32_t)bits);
}

/* By definition bf16 is the upper half of an f32; the nearest of the two around x by comparing the distances in double. */
static void bf16_rounds_to_nearest_even(void **state)
{
    (void)state;
    for (uint64_t b = 0; b < UINT64_C(1) << 32; b += 4093) {
        const uint32_t bits = (uint32_t)b, down = bits & 0xffff0000u, up = down + 0x10000u;
        const float x = st_bits_f32(bits);
        const uint16_t got = st_f32_to_bf16(x);
        if ((bits & 0x7f800000u) == 0x7f800000u) {
            assert_true(isnan(x) ? isnan(st_bf16_to_f32(got)) : st_bf16_to_f32(got) == x);
            continue;
        }
        const double ends = (up & 0x7f800000u) == 0x7f800000u ? ldexp(1, 128) : fabs((double)st_bits_f32(up));
        const double below = fabs((double)x) - fabs((double)st_bits_f32(down)), above = ends - fabs((double)x);
        const bool rounds_up = above < below || (above == below && (up >> 16 & 1) == 0);
        assert_int_equal(got, (rounds_up ? up : down) >> 16);
    }
    for (uint32_t h = 0; h < 65536; h++) {
        const bool nan = (h & 0x7f80) == 0x7f80 && (h & 0x7f);
        assert_int_equal(st_f32_to_bf16(st_bf16_to_f32((uint16_t)h)), nan ? h | 0x40 : h);
    }
    assert_int_equal(st_f32_to_bf16(st_bits_f32(0x7f800001)), 0x7fc0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_f16_goes_both_ways),
        cmocka_unit_test(every_boundary_rounds_to_even),
        cmocka_unit_test(f32_all_over_round_to_nearest),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
