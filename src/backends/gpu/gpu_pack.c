#include "backends/gpu/gpu_pack.h"

#include <string.h>

#include "base/alloc.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/status.h"
#include "quant/k_block.h"
#include "quant/quant.h"
#include "sotto/quant.h"

/* A type's block: in the file, and in the planes. */
typedef struct form {
    sotto_dtype dtype;
    uint16_t elements;             /* of a block */
    uint8_t numbers, scales;       /* bytes of it in either plane */
    int8_t minimum, fifth, quants; /* offsets in the file's block; -1 = absent; the f16 scale is at 0 */
    uint8_t zero;                  /* subtracted from the quant */
    uint8_t low, high;             /* of K types: bits of a code in the plane of numbers, and in that of scales */
} form;

enum { K_HEAD = 4, K_HIGH = K_HEAD + ST_K_GROUP_BYTES }; /* what comes before the groups and the high bits of a block */
#define K_FORM(dtype, low, high)                                                                       \
    {                                                                                                  \
        dtype, ST_BLOCK_K, low *ST_BLOCK_K / 8, K_HIGH + high *ST_BLOCK_K / 8, -1, -1, 0, 0, low, high \
    }

static const form forms[] = {
    {SOTTO_F32, 1, 4, 0, -1, -1, 0, 0, 0, 0},
    {SOTTO_F16, 1, 2, 0, -1, -1, 0, 0, 0, 0},
    {SOTTO_BF16, 1, 2, 0, -1, -1, 0, 0, 0, 0},
    {SOTTO_I8, 1, 1, 0, -1, -1, 0, 0, 0, 0},
    {SOTTO_Q8_0, 32, 32, 2, -1, -1, 2, 0, 0, 0},
    {SOTTO_Q4_0, 32, 16, 2, -1, -1, 2, 8, 0, 0},
    {SOTTO_Q4_1, 32, 16, 4, 2, -1, 4, 0, 0, 0},
    {SOTTO_Q5_0, 32, 16, 8, -1, 2, 6, 16, 0, 0},
    {SOTTO_Q5_1, 32, 16, 8, 2, 4, 8, 0, 0, 0},
    {SOTTO_IQ4_NL, 32, 16, 2, -1, -1, 2, 0, 0, 0},
    K_FORM(SOTTO_Q2_K, 2, 0),
    K_FORM(SOTTO_Q3_K, 2, 1),
    K_FORM(SOTTO_Q4_K, 4, 0),
    K_FORM(SOTTO_Q5_K, 4, 1),
    K_FORM(SOTTO_Q6_K, 4, 2),
};
#undef K_FORM

static const form *form_of(sotto_dtype dtype)
{
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].dtype == dtype)
            return &forms[i];
    return NULL;
}

bool st_gpu_layout_of(sotto_dtype dtype, int64_t k, int64_t n, st_gpu_layout *out)
{
    const form *f = form_of(dtype);
    if (!f || k < 0 || n < 0 || k % f->elements != 0)
        return false;
    st_gpu_layout l = {.dtype = dtype, .k = k, .n = n};
    size_t numbers, scales;
    const size_t blocks = (size_t)(k / f->elements);
    if (!st_mul_size(blocks, f->numbers, &l.number_row) || !st_mul_size(blocks, f->scales, &l.scale_row))
        return false;
    l.as_rows = f->elements == 1 && dtype != SOTTO_I8;
    if (dtype == SOTTO_I8)
        l.scale_row = sizeof(float);
    if (!st_mul_size(l.number_row, (size_t)n, &numbers) || !st_mul_size(l.scale_row, (size_t)n, &scales) ||
        !st_align_size(numbers, ST_GPU_PLANE_ALIGNMENT, &l.scale_offset) ||
        !st_add_size(l.scale_row > 0 ? l.scale_offset : numbers, scales, &l.bytes))
        return false;
    *out = l;
    return true;
}

bool st_gpu_is_blocks(sotto_dtype dtype)
{
    return st_k_type_of(dtype) || dtype == SOTTO_IQ4_NL;
}

static inline void put_some_bits(const uint8_t codes[ST_BLOCK_K], int bits, int shift, uint8_t *out)
{
    const int each = 8 / bits, mask = (1 << bits) - 1;
    for (int i = 0; i < ST_BLOCK_K / each; i++) {
        int byte = 0;
        for (int j = 0; j < each; j++)
            byte |= (codes[i * each + j] >> shift & mask) << j * bits;
        out[i] = (uint8_t)byte;
    }
}

/* `bits` of each code from `shift` on, one after another: 1, 2 or 4, which compilers make loops of their own for. */
static void put_bits(const uint8_t codes[ST_BLOCK_K], int bits, int shift, uint8_t *out)
{
    if (bits == 4)
        put_some_bits(codes, 4, shift, out);
    else if (bits == 2)
        put_some_bits(codes, 2, shift, out);
    else
        put_some_bits(codes, 1, shift, out);
}

static void get_bits(const uint8_t *in, int bits, int shift, uint8_t codes[ST_BLOCK_K])
{
    for (int e = 0; e < ST_BLOCK_K; e++)
        codes[e] |= (uint8_t)((in[e * bits / 8] >> e * bits % 8 & ((1 << bits) - 1)) << shift);
}

static void pack_k_block(const form *f, const uint8_t *block, uint8_t *numbers, uint8_t *scales)
{
    const st_k_type *const type = st_k_type_of(f->dtype);
    st_k_block b;
    type->read(block, &b);
    memcpy(scales, &b.d, 2);
    memcpy(scales + 2, &b.dmin, 2);
    st_k_get_groups(type, &b, scales + K_HEAD);
    put_bits(b.codes, f->low, 0, numbers);
    if (f->high > 0)
        put_bits(b.codes, f->high, f->low, scales + K_HIGH);
}

static void unpack_k_block(const form *f, const uint8_t *numbers, const uint8_t *scales, float *out)
{
    const st_k_type *const type = st_k_type_of(f->dtype);
    st_k_block b;
    memset(&b, 0, sizeof b);
    memcpy(&b.d, scales, 2);
    memcpy(&b.dmin, scales + 2, 2);
    st_k_put_groups(type, scales + K_HEAD, &b);
    get_bits(numbers, f->low, 0, b.codes);
    if (f->high > 0)
        get_bits(scales + K_HIGH, f->high, f->low, b.codes);
    st_k_values(type, &b, out);
}

/* One block of the file into its places. */
static void pack_block(const form *f, const uint8_t *block, uint8_t *numbers, uint8_t *scales)
{
    if (f->low > 0) {
        pack_k_block(f, block, numbers, scales);
        return;
    }
    memcpy(scales, block, 2);
    if (f->scales > 2)
        memset(scales + 2, 0, (size_t)f->scales - 2);
    if (f->minimum >= 0)
        memcpy(scales + 2, block + f->minimum, 2);
    if (f->fifth >= 0)
        memcpy(scales + 4, block + f->fifth, 4);
    const uint8_t *const q = block + f->quants;
    if (f->numbers == f->elements) {
        memcpy(numbers, q, f->numbers);
        return;
    }
    /* in the file element i and element i + 16 share a byte */
    for (int i = 0; i < 8; i++) {
        numbers[i] = (uint8_t)((q[2 * i] & 15) | (q[2 * i + 1] & 15) << 4);
        numbers[i + 8] = (uint8_t)(q[2 * i] >> 4 | (q[2 * i + 1] & 0xf0));
    }
}

static void pack_row(const st_gpu_layout *l, const form *f, const void *row, uint8_t *numbers, uint8_t *scales)
{
    if (f->elements == 1) {
        memcpy(numbers, row, l->number_row);
        return;
    }
    const uint8_t *block = row;
    for (int64_t k = 0; k < l->k; k += f->elements) {
        pack_block(f, block, numbers, scales);
        block += sotto_dtype_bytes(l->dtype);
        numbers += f->numbers;
        scales += f->scales;
    }
}

sotto_status st_gpu_pack_rows(const st_gpu_layout *l, const char *name, sotto_dtype from, const void *rows,
                              int64_t n_rows, void *numbers, void *scales, sotto_error *err)
{
    if (n_rows <= 0 || l->k == 0)
        return SOTTO_OK;
    const form *const f = form_of(l->dtype);
    const bool scaled = l->dtype == SOTTO_I8, as_is = from == l->dtype && !scaled;
    const size_t from_bytes = sotto_dtype_row_bytes(from, l->k), to_bytes = sotto_dtype_row_bytes(l->dtype, l->k);
    float *line = NULL; /* a row as f32, then as the file would hold it */
    if (!as_is) {
        size_t bytes;
        if (!st_mul_size((size_t)l->k, sizeof *line, &bytes) || !st_add_size(bytes, to_bytes, &bytes) ||
            !(line = st_alloc(1, bytes)))
            return st_fail_memory(err, (uint64_t)l->k * sizeof *line, name);
    }
    uint8_t *const converted = (uint8_t *)line + (line ? (size_t)l->k * sizeof *line : 0);
    bool good = from_bytes > 0 && (!scaled || from != SOTTO_I8);
    for (int64_t r = 0; r < n_rows && good; r++) {
        const uint8_t *row = (const uint8_t *)rows + (size_t)r * from_bytes;
        uint8_t *const to = (uint8_t *)numbers + (size_t)r * l->number_row;
        uint8_t *const to_scales = scales ? (uint8_t *)scales + (size_t)r * l->scale_row : NULL;
        if (!as_is)
            good = sotto_row_to_f32(from, row, line, l->k);
        if (good && scaled) {
            const float scale = st_i8_pack(line, (int8_t *)to, l->k);
            memcpy(to_scales, &scale, sizeof scale);
            continue;
        }
        if (good && !as_is) {
            good = sotto_row_from_f32(l->dtype, line, converted, l->k);
            row = converted;
        }
        if (good)
            pack_row(l, f, row, to, to_scales);
    }
    st_free(line);
    return good ? SOTTO_OK
                : st_fail(err, SOTTO_E_UNSUPPORTED, "%s: rows of %s cannot be stored as %s", name,
                          sotto_dtype_name(from), sotto_dtype_name(l->dtype));
}

static float half_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return st_f16_to_f32(h);
}

static void unpack_block(const form *f, const uint8_t *numbers, const uint8_t *scales, float *out)
{
    if (f->low > 0) {
        unpack_k_block(f, numbers, scales, out);
        return;
    }
    const float d = half_at(scales), m = f->minimum >= 0 ? half_at(scales + 2) : 0;
    uint32_t fifth = 0;
    if (f->fifth >= 0)
        memcpy(&fifth, scales + 4, sizeof fifth);
    for (int e = 0; e < f->elements; e++) {
        const int nibble = numbers[e / 2] >> e % 2 * 4 & 15;
        const int q = f->dtype == SOTTO_IQ4_NL    ? st_iq4_nl_values[nibble]
                      : f->numbers == f->elements ? (int8_t)numbers[e]
                                                  : (nibble | (int)(fifth >> e & 1u) << 4) - f->zero;
        out[e] = f->minimum >= 0 ? (float)q * d + m : (float)q * d;
    }
}

void st_gpu_unpack_rows(const st_gpu_layout *l, const void *numbers, const void *scales, int64_t n_rows, float *out)
{
    const form *const f = form_of(l->dtype);
    for (int64_t r = 0; r < n_rows; r++, out += l->k) {
        const uint8_t *in = (const uint8_t *)numbers + (size_t)r * l->number_row;
        const uint8_t *in_scales = scales ? (const uint8_t *)scales + (size_t)r * l->scale_row : NULL;
        if (f->elements > 1) {
            for (int64_t k = 0; k < l->k; k += f->elements, in += f->numbers, in_scales += f->scales)
                unpack_block(f, in, in_scales, out + k);
            continue;
        }
        if (l->k > 0)
            sotto_row_to_f32(l->dtype, in, out, l->k); /* cannot fail: a plain type */
        if (l->dtype == SOTTO_I8) {
            float scale;
            memcpy(&scale, in_scales, sizeof scale);
            for (int64_t k = 0; k < l->k; k++)
                out[k] *= scale;
        }
    }
}
