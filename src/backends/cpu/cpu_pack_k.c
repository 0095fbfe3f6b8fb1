/* cpu_pack_k.c: blocks of the K types between files and panels. A block becomes 256 codes of a byte each, with the steps and
 * offsets of its groups, on the way in both directions. */
#include <string.h>

#include "backends/cpu/cpu_pack.h"
#include "base/half.h"
#include "quant/k_block.h"

enum { PARTS = ST_CPU_K_BLOCK / ST_CPU_BLOCK };

/* What a part of 32 k holds beside its scales; 0 bits: nothing. */
typedef struct part_shape {
    const st_k_type *type;
    uint8_t low, high;        /* bits of a quant in the first area (2 or 4) and above them in the second (1 or 2) */
    uint16_t to_high, to_low; /* offsets in a part */
} part_shape;

static const part_shape shapes[ST_CPU_W_COUNT] = {
    [ST_CPU_W_Q2_K] = {&st_q2_k_type, 2, 0, 0, 64},        [ST_CPU_W_Q3_K] = {&st_q3_k_type, 2, 1, 64 + 256, 64},
    [ST_CPU_W_Q4_K] = {&st_q4_k_type, 4, 0, 0, 64},        [ST_CPU_W_Q5_K] = {&st_q5_k_type, 4, 1, 64, 64 + 128},
    [ST_CPU_W_Q6_K] = {&st_q6_k_type, 4, 2, 64, 64 + 256},
};

size_t st_cpu_k_file_bytes(st_cpu_wtype t)
{
    return shapes[t].type->bytes;
}

/* Bits of 32 quants, from `shift` on, as dwords of one column 128 bytes apart. Of 4: k = 4g + j and k = 16 + 4g + j share byte j of
 * dword g. Of 2: bits 2i, 2i + 1 of byte j of dword g are those of k = 16g + 4i + j. Of 1: bit i of byte j is that of k = 4i + j. */
static void put_bits(int bits, const uint8_t q[32], int shift, uint8_t *out)
{
    const int each = 8 / bits, mask = (1 << bits) - 1; /* numbers in a byte */
    for (int g = 0; g < 8 / each; g++) {
        uint8_t byte[4] = {0};
        for (int i = 0; i < each; i++) {
            const int k = bits == 4 ? i * 16 + 4 * g : g * 4 * each + 4 * i;
            for (int j = 0; j < 4; j++)
                byte[j] = (uint8_t)(byte[j] | (q[k + j] >> shift & mask) << i * bits);
        }
        memcpy(out + (ptrdiff_t)g * 128, byte, 4);
    }
}

static void get_bits(int bits, const uint8_t *in, int shift, uint8_t q[32])
{
    const int each = 8 / bits, mask = (1 << bits) - 1;
    for (int g = 0; g < 8 / each; g++) {
        for (int i = 0; i < each; i++) {
            const int k = bits == 4 ? i * 16 + 4 * g : g * 4 * each + 4 * i;
            for (int j = 0; j < 4; j++)
                q[k + j] = (uint8_t)(q[k + j] | (in[g * 128 + j] >> i * bits & mask) << shift);
        }
    }
}

static size_t head_bytes(const part_shape *s)
{
    return s->type->has_offset ? 128 : 64;
}

void st_cpu_pack_k(st_cpu_wtype t, const uint8_t *in, int column, uint8_t *block)
{
    const part_shape *s = &shapes[t];
    st_k_block c;
    uint8_t groups[ST_K_GROUP_BYTES];
    s->type->read(in, &c);
    st_k_get_groups(s->type, &c, groups);
    memcpy(block + 2 * column, &c.d, 2);
    if (s->type->has_offset)
        memcpy(block + 64 + 2 * column, &c.dmin, 2);
    const size_t part_bytes = (st_cpu_block_bytes(t) - head_bytes(s)) / PARTS;
    uint8_t *part = block + head_bytes(s);
    for (int p = 0; p < PARTS; p++, part += part_bytes) {
        part[column] = groups[2 * p];
        part[32 + column] = groups[2 * p + 1];
        put_bits(s->low, c.codes + p * 32, 0, part + s->to_low + 4 * column);
        if (s->high > 0)
            put_bits(s->high, c.codes + p * 32, s->low, part + s->to_high + 4 * column);
    }
}

void st_cpu_unpack_k(st_cpu_wtype t, const uint8_t *block, int column, float *out)
{
    const part_shape *s = &shapes[t];
    st_k_block c;
    uint8_t groups[ST_K_GROUP_BYTES];
    memset(&c, 0, sizeof c);
    memcpy(&c.d, block + 2 * column, 2);
    if (s->type->has_offset)
        memcpy(&c.dmin, block + 64 + 2 * column, 2);
    const size_t part_bytes = (st_cpu_block_bytes(t) - head_bytes(s)) / PARTS;
    const uint8_t *part = block + head_bytes(s);
    for (int p = 0; p < PARTS; p++, part += part_bytes) {
        groups[2 * p] = part[column];
        groups[2 * p + 1] = part[32 + column];
        get_bits(s->low, part + s->to_low + 4 * column, 0, c.codes + p * 32);
        if (s->high > 0)
            get_bits(s->high, part + s->to_high + 4 * column, s->low, c.codes + p * 32);
    }
    st_k_put_groups(s->type, groups, &c);
    st_k_values(s->type, &c, out);
}
