/* Any bytes as a row of each type, and any floats into each type: defined and within bounds. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "sotto/quant.h"

static const struct {
    sotto_dtype dtype;
    size_t block, bytes;
} types[] = {{SOTTO_F16, 1, 2},      {SOTTO_BF16, 1, 2},     {SOTTO_Q4_0, 32, 18},   {SOTTO_Q4_1, 32, 20},
             {SOTTO_Q5_0, 32, 22},   {SOTTO_Q5_1, 32, 24},   {SOTTO_Q8_0, 32, 34},   {SOTTO_Q2_K, 256, 84},
             {SOTTO_Q3_K, 256, 110}, {SOTTO_Q4_K, 256, 144}, {SOTTO_Q5_K, 256, 176}, {SOTTO_Q6_K, 256, 210},
             {SOTTO_IQ4_NL, 32, 18}, {SOTTO_I8, 1, 1},       {SOTTO_I32, 1, 4}};

static void unpack(size_t type, const uint8_t *data, size_t size)
{
    const size_t blocks = size / types[type].bytes, n = blocks * types[type].block;
    float *const x = malloc(n * sizeof(float) + 1);
    if (x)
        FUZZ_CHECK(sotto_row_to_f32(types[type].dtype, data, x, (int64_t)n));
    free(x);
}

static void pack(size_t type, const uint8_t *data, size_t size)
{
    const size_t blocks = size / (types[type].block * sizeof(float)), n = blocks * types[type].block;
    float *const x = malloc(n * sizeof(float) + 1);
    uint8_t *const packed = malloc(blocks * types[type].bytes + 1);
    if (x && packed) {
        memcpy(x, data, n * sizeof(float));
        FUZZ_CHECK(sotto_row_from_f32(types[type].dtype, x, packed, (int64_t)n));
        FUZZ_CHECK(sotto_row_to_f32(types[type].dtype, packed, x, (int64_t)n));
    }
    free(x);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        unpack(i, data, size);
        if (sotto_dtype_can_pack(types[i].dtype))
            pack(i, data, size);
    }
    return 0;
}
