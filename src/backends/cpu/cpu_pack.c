/* cpu_pack.c: weights between the file's rows and the panels of cpu_pack.h. Moves bits only. Both directions go through
 * the same description of where a block of 32 elements of one column lies. */
#include "backends/cpu/cpu_pack.h"

#include <string.h>

#include "base/checked.h"
#include "base/half.h"
#include "quant/blocks.h"

bool st_cpu_wtype_of(sotto_dtype dtype, st_cpu_wtype *out)
{
    static const struct {
        sotto_dtype dtype;
        st_cpu_wtype type;
    } table[] = {{SOTTO_F32, ST_CPU_W_F32},   {SOTTO_F16, ST_CPU_W_F16},   {SOTTO_BF16, ST_CPU_W_BF16},
                 {SOTTO_Q8_0, ST_CPU_W_Q8_0}, {SOTTO_Q4_0, ST_CPU_W_Q4_0}, {SOTTO_Q4_1, ST_CPU_W_Q4_1},
                 {SOTTO_Q5_0, ST_CPU_W_Q5_0}, {SOTTO_Q5_1, ST_CPU_W_Q5_1}, {SOTTO_I8, ST_CPU_W_I8},
                 {SOTTO_Q2_K, ST_CPU_W_Q2_K}, {SOTTO_Q3_K, ST_CPU_W_Q3_K}, {SOTTO_Q4_K, ST_CPU_W_Q4_K},
                 {SOTTO_Q5_K, ST_CPU_W_Q5_K}, {SOTTO_Q6_K, ST_CPU_W_Q6_K}, {SOTTO_IQ4_NL, ST_CPU_W_IQ4_NL}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        if (table[i].dtype == dtype) {
            *out = table[i].type;
            return true;
        }
    }
    return false;
}

size_t st_cpu_packed_bytes(st_cpu_wtype t, int64_t n, int64_t k)
{
    size_t panel, all;
    if (n < 0 || k < 0 || n > INT64_MAX - ST_CPU_PANEL || k > INT64_MAX - ST_CPU_K_BLOCK ||
        !st_mul_size(st_cpu_block_bytes(t), (size_t)st_cpu_blocks(t, k), &panel) ||
        !st_add_size(panel, st_cpu_header_bytes(t), &panel) || !st_mul_size(panel, (size_t)st_cpu_panels(n), &all))
        return 0;
    return all;
}

/* A block type in the file: f16 scale, (f16 minimum), (4 bytes of fifth bits), quants. */
typedef struct block_shape {
    uint8_t file_bytes, minimum, fifth, quants; /* bytes in the file and offsets there; 0 = absent */
    uint16_t to_minimum, to_fifth, to_quants;   /* offsets in the packed block */
    uint8_t groups;                             /* dwords of quants */
} block_shape;

static const block_shape shapes[ST_CPU_W_COUNT] = {
    [ST_CPU_W_Q8_0] = {34, 0, 0, 2, 0, 0, 64, 8},     [ST_CPU_W_Q4_0] = {18, 0, 0, 2, 0, 0, 64, 4},
    [ST_CPU_W_Q4_1] = {20, 2, 0, 4, 64, 0, 128, 4},   [ST_CPU_W_Q5_0] = {22, 0, 2, 6, 0, 64, 192, 4},
    [ST_CPU_W_Q5_1] = {24, 2, 4, 8, 64, 128, 256, 4}, [ST_CPU_W_IQ4_NL] = {18, 0, 0, 2, 0, 0, 64, 4},
};

/* Bit 4g + j of 32 as bit g of byte j, and back. */
static uint32_t bits_to_bytes(uint32_t bits)
{
    uint32_t out = 0;
    for (int k = 0; k < 32; k++)
        out |= (bits >> k & 1u) << (k % 4 * 8 + k / 4);
    return out;
}

static uint32_t bits_of_bytes(uint32_t bytes)
{
    uint32_t out = 0;
    for (int k = 0; k < 32; k++)
        out |= (bytes >> (k % 4 * 8 + k / 4) & 1u) << k;
    return out;
}

static void pack_quants(st_cpu_wtype t, const uint8_t *in, int column, uint8_t *block)
{
    const block_shape *s = &shapes[t];
    memcpy(block + 2 * column, in, 2);
    if (s->minimum)
        memcpy(block + s->to_minimum + 2 * column, in + s->minimum, 2);
    if (s->fifth) {
        uint32_t bits;
        memcpy(&bits, in + s->fifth, 4);
        bits = bits_to_bytes(bits);
        memcpy(block + s->to_fifth + 4 * column, &bits, 4);
    }
    const uint32_t flip = t == ST_CPU_W_Q8_0 ? 0x80808080u : 0;
    for (int g = 0; g < s->groups; g++) {
        uint32_t q;
        memcpy(&q, in + s->quants + 4 * g, 4);
        q ^= flip;
        memcpy(block + s->to_quants + g * 128 + column * 4, &q, 4);
    }
}

size_t st_cpu_row_bytes(st_cpu_wtype t, int64_t k)
{
    if (t == ST_CPU_W_I8)
        return sizeof(float) + (size_t)k;
    if (t >= ST_CPU_W_Q2_K)
        return (size_t)st_cpu_blocks(t, k) * st_cpu_k_file_bytes(t);
    const size_t element = t == ST_CPU_W_F32 ? 4 : 2;
    return t >= ST_CPU_W_Q8_0 ? (size_t)st_cpu_blocks(t, k) * shapes[t].file_bytes : (size_t)k * element;
}

/* Rows of one panel, from column `column` on. Sixteen numbers of every row at a time: what is written stays in the first-level
 * cache however long the rows are. */
static void pack_i8(int64_t k, const uint8_t *rows, int column, int n_rows, uint8_t *panel)
{
    const size_t row_bytes = st_cpu_row_bytes(ST_CPU_W_I8, k);
    for (int r = 0; r < n_rows; r++) {
        const int8_t *const q = (const int8_t *)rows + (size_t)r * row_bytes + sizeof(float);
        int32_t sum = 0;
        for (int64_t i = 0; i < k; i++)
            sum += q[i];
        memcpy(panel + 4 * (column + r), rows + (size_t)r * row_bytes, sizeof(float));
        memcpy(panel + 128 + 4 * (column + r), &sum, sizeof sum);
    }
    uint8_t *dst = panel + ST_CPU_I8_HEADER + 4 * column;
    for (int64_t i = 0; i < k; i += 16, dst += 4 * 128) {
        for (int r = 0; r < n_rows; r++) {
            const uint8_t *const q = rows + (size_t)r * row_bytes + sizeof(float) + i;
            if (k - i >= 16)
                for (int j = 0; j < 4; j++)
                    memcpy(dst + j * 128 + 4 * r, q + 4 * j, 4);
            else
                for (int64_t j = 0; j < k - i; j++)
                    dst[j / 4 * 128 + 4 * r + j % 4] = q[j];
        }
    }
}

void st_cpu_pack_rows(st_cpu_wtype t, int64_t k, const void *rows, int64_t row, int64_t n_rows, uint8_t *packed)
{
    const size_t panel_bytes = st_cpu_panel_bytes(t, k), block_bytes = st_cpu_block_bytes(t);
    const int64_t n_block = st_cpu_blocks(t, k);
    const size_t element = t == ST_CPU_W_F32 ? 4 : 2, row_bytes = st_cpu_row_bytes(t, k);
    for (int64_t first = row; first < row + n_rows;) {
        const int64_t panel = first / ST_CPU_PANEL;
        const int64_t end = (panel + 1) * ST_CPU_PANEL < row + n_rows ? (panel + 1) * ST_CPU_PANEL : row + n_rows;
        uint8_t *block = packed + panel_bytes * (size_t)panel;
        if (t == ST_CPU_W_I8) {
            pack_i8(k, (const uint8_t *)rows + (size_t)(first - row) * row_bytes, (int)(first % ST_CPU_PANEL),
                    (int)(end - first), block);
            first = end;
            continue;
        }
        /* block by block: what is written stays in the first-level cache while the rows come in */
        for (int64_t b = 0; b < n_block; b++, block += block_bytes) {
            const int64_t left = k - b * ST_CPU_BLOCK, n = left < ST_CPU_BLOCK ? left : ST_CPU_BLOCK;
            for (int64_t r = first; r < end; r++) {
                const int column = (int)(r % ST_CPU_PANEL);
                const uint8_t *in = (const uint8_t *)rows + (size_t)(r - row) * row_bytes;
                if (t >= ST_CPU_W_Q2_K) {
                    st_cpu_pack_k(t, in + (size_t)b * st_cpu_k_file_bytes(t), column, block);
                    continue;
                }
                if (t >= ST_CPU_W_Q8_0) {
                    pack_quants(t, in + (size_t)b * shapes[t].file_bytes, column, block);
                    continue;
                }
                in += (size_t)b * ST_CPU_BLOCK * element;
                for (int64_t i = 0; i < n; i++) {
                    if (t == ST_CPU_W_F32)
                        memcpy(block + i * 128 + column * 4, in + 4 * i, 4);
                    else if (t == ST_CPU_W_F16)
                        memcpy(block + i * 64 + column * 2, in + 2 * i, 2);
                    else
                        memcpy(block + i / 2 * 128 + column * 4 + i % 2 * 2, in + 2 * i, 2);
                }
            }
        }
        first = end;
    }
}

static float half_at(const uint8_t *p, bool brain)
{
    uint16_t h;
    memcpy(&h, p, 2);
    return brain ? st_bf16_to_f32(h) : st_f16_to_f32(h);
}

static void unpack_quants(st_cpu_wtype t, const uint8_t *block, int column, float *out)
{
    const block_shape *s = &shapes[t];
    const float scale = half_at(block + 2 * column, false);
    const float minimum = s->minimum ? half_at(block + s->to_minimum + 2 * column, false) : 0.0f;
    uint32_t fifth = 0;
    if (s->fifth)
        memcpy(&fifth, block + s->to_fifth + 4 * column, 4);
    fifth = bits_of_bytes(fifth);
    const int zero = s->minimum ? 0 : t == ST_CPU_W_Q8_0 ? 128 : t == ST_CPU_W_Q5_0 ? 16 : 8;
    for (int k = 0; k < ST_CPU_BLOCK; k++) {
        const int at = s->groups == 8 ? k : k % 16;
        int q = block[s->to_quants + at / 4 * 128 + column * 4 + at % 4];
        if (s->groups == 4)
            q = (k < 16 ? q & 15 : q >> 4) | (int)(fifth >> k & 1u) << 4;
        if (t == ST_CPU_W_IQ4_NL)
            q = st_iq4_nl_values[q] + zero;
        const float x = (float)(q - zero) * scale;
        out[k] = s->minimum ? x + minimum : x;
    }
}

void st_cpu_unpack_row(st_cpu_wtype t, int64_t k, const uint8_t *packed, int64_t row, float *out)
{
    const int column = (int)(row % ST_CPU_PANEL);
    const uint8_t *block = packed + st_cpu_panel_bytes(t, k) * (size_t)(row / ST_CPU_PANEL);
    if (t == ST_CPU_W_I8) {
        float scale;
        memcpy(&scale, block + 4 * column, sizeof scale);
        const int8_t *q = (const int8_t *)block + ST_CPU_I8_HEADER + 4 * column;
        for (int64_t i = 0; i < k; i++)
            out[i] = scale * (float)q[i / 4 * 128 + i % 4];
        return;
    }
    if (t >= ST_CPU_W_Q2_K) {
        for (int64_t b = 0; b < st_cpu_blocks(t, k); b++, block += st_cpu_block_bytes(t), out += ST_CPU_K_BLOCK)
            st_cpu_unpack_k(t, block, column, out);
        return;
    }
    for (int64_t b = 0; b < st_cpu_blocks(t, k); b++, block += st_cpu_block_bytes(t), out += ST_CPU_BLOCK) {
        const int64_t left = k - b * ST_CPU_BLOCK, n = left < ST_CPU_BLOCK ? left : ST_CPU_BLOCK;
        if (t >= ST_CPU_W_Q8_0) {
            unpack_quants(t, block, column, out);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            if (t == ST_CPU_W_F32)
                memcpy(out + i, block + i * 128 + column * 4, 4);
            else if (t == ST_CPU_W_F16)
                out[i] = half_at(block + i * 64 + column * 2, false);
            else
                out[i] = half_at(block + i / 2 * 128 + column * 4 + i % 2 * 2, true);
        }
    }
}
