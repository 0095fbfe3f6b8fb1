/* Packing and unpacking against the numpy quantisers of the `gguf` package (tools/make_quant_golden.py), bit for bit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/file.h"
#include "sotto/quant.h"

typedef struct record {
    int kind;
    sotto_dtype dtype;
    uint32_t n, bytes;
    const void *floats;
    const uint8_t *data;
} record;

enum { PACK = 0, UNPACK = 1 };

static record next_record(st_bytes *b)
{
    record r = {.kind = st_bytes_u8(b), .dtype = (sotto_dtype)st_bytes_u8(b)};
    r.n = st_bytes_u32(b);
    r.bytes = st_bytes_u32(b);
    r.floats = st_bytes_take(b, (size_t)r.n * sizeof(float));
    r.data = st_bytes_take(b, r.bytes);
    assert_false(b->failed);
    return r;
}

static void expect_same(const record *r, const void *got, const void *want, size_t size)
{
    const uint8_t *const a = got, *const b = want;
    for (size_t i = 0; i < size; i++)
        if (a[i] != b[i])
            fail_msg("type %d, kind %d, byte %zu of %zu: %d, expected %d", (int)r->dtype, r->kind, i, size, a[i], b[i]);
}

static void check(const record *r)
{
    float *const floats = malloc((size_t)r->n * sizeof(float));
    uint8_t *const data = malloc(r->bytes);
    if (r->kind == PACK) {
        memcpy(floats, r->floats, (size_t)r->n * sizeof(float));
        assert_true(sotto_row_from_f32(r->dtype, floats, data, r->n));
        expect_same(r, data, r->data, r->bytes);
    } else {
        memcpy(data, r->data, r->bytes);
        assert_true(sotto_row_to_f32(r->dtype, data, floats, r->n));
        for (uint32_t i = 0; i < r->n; i++) { /* the sign of a NaN that a product makes is the processor's own */
            float want;
            memcpy(&want, (const char *)r->floats + i * sizeof want, sizeof want);
            if (!isnan(floats[i]) || !isnan(want))
                expect_same(r, floats + i, &want, sizeof want);
        }
    }
    free(floats);
    free(data);
}

static void every_record_agrees(void **state)
{
    (void)state;
    st_file_map map;
    sotto_error err;
    if (st_file_map_open(SOTTO_SOURCE_DIR "/tests/unit/data/quant_golden.bin", &map, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    st_bytes b = st_bytes_over(map.data, map.size);
    const char *const magic = st_bytes_take(&b, 4);
    assert_non_null(magic);
    assert_memory_equal(magic, "SQG1", 4);
    uint32_t packed = 0, unpacked = 0;
    while (st_bytes_left(&b) > 0) {
        const record r = next_record(&b);
        check(&r);
        *(r.kind == PACK ? &packed : &unpacked) |= UINT32_C(1) << r.dtype;
    }
    const uint32_t plain = 1u << SOTTO_F16 | 1u << SOTTO_BF16 | 1u << SOTTO_Q4_0 | 1u << SOTTO_Q4_1 | 1u << SOTTO_Q5_0 |
                           1u << SOTTO_Q5_1 | 1u << SOTTO_Q8_0;
    assert_int_equal(packed, plain);
    assert_int_equal(unpacked, plain | 1u << SOTTO_Q2_K | 1u << SOTTO_Q3_K | 1u << SOTTO_Q4_K | 1u << SOTTO_Q5_K |
                                   1u << SOTTO_Q6_K | 1u << SOTTO_IQ4_NL);
    st_file_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_record_agrees)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
