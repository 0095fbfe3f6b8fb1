/* cpu_pack_k.c: blocks of the K types between files and panels. A block becomes 256 quants of a byte each, with the scales and
 * minima of its groups, on the way in both directions. */
#include <string.h>

#include "backends/cpu/cpu_pack.h"
#include "base/half.h"
#include "quant/blocks.h"

enum { PARTS = ST_CPU_K_BLOCK / ST_CPU_BLOCK };

/* One column of a block. Groups are 32 elements long in q4_k and q5_k, else 16. */
typedef struct column_block {
    uint16_t d, dmin;
    uint8_t scale[16], min[16]; /* scale: signed in q3_k and q6_k */
    uint8_t q[ST_CPU_K_BLOCK];  /* q3_k and q6_k: less 4 and 32 is the number */
} column_block;

/* What a part of 32 k holds beside its scales; 0 bits: nothing. */
typedef struct part_shape {
    uint16_t file_bytes;
    uint8_t minima, groups;   /* dmin is there; groups in a part */
    uint8_t low, high;        /* bits of a quant in the first area (2 or 4) and above them in the second (1 or 2) */
    uint16_t to_high, to_low; /* offsets in a part */
    uint8_t bias;             /* taken from a quant */
} part_shape;

static const part_shape shapes[ST_CPU_W_COUNT] = {
    [ST_CPU_W_Q2_K] = {sizeof(st_q2_k), 1, 2, 2, 0, 0, 64, 0},
    [ST_CPU_W_Q3_K] = {sizeof(st_q3_k), 0, 2, 2, 1, 64 + 256, 64, 4},
    [ST_CPU_W_Q4_K] = {sizeof(st_q4_k), 1, 1, 4, 0, 0, 64, 0},
    [ST_CPU_W_Q5_K] = {sizeof(st_q5_k), 1, 1, 4, 1, 64, 64 + 128, 0},
    [ST_CPU_W_Q6_K] = {sizeof(st_q6_k), 0, 2, 4, 2, 64, 64 + 256, 32},
};

size_t st_cpu_k_file_bytes(st_cpu_wtype t)
{
    return shapes[t].file_bytes;
}

/* ---- from the file ---- */

static void read_q2(const uint8_t *in, column_block *c)
{
    st_q2_k b;
    memcpy(&b, in, sizeof b);
    c->d = b.d;
    c->dmin = b.dmin;
    memcpy(c->scale, b.scales, 16);
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 32; l++)
            c->q[i * 32 + l] = b.qs[i / 4 * 32 + l] >> i % 4 * 2 & 3;
}

static void read_q3(const uint8_t *in, column_block *c)
{
    st_q3_k b;
    memcpy(&b, in, sizeof b);
    c->d = b.d;
    for (int j = 0; j < 16; j++) {
        const int low = b.scales[j % 8] >> j / 8 * 4 & 15, high = b.scales[8 + j % 4] >> j / 4 * 2 & 3;
        c->scale[j] = (uint8_t)((low | high << 4) - 32);
    }
    for (int i = 0; i < 8; i++)
        for (int l = 0; l < 32; l++)
            c->q[i * 32 + l] = (uint8_t)((b.qs[i / 4 * 32 + l] >> i % 4 * 2 & 3) | (b.hmask[l] >> i & 1) << 2);
}

static void read_q4(const uint8_t *in, column_block *c)
{
    st_q4_k b;
    memcpy(&b, in, sizeof b);
    c->d = b.d;
    c->dmin = b.dmin;
    for (int i = 0; i < 8; i++) {
        st_k_scale(b.scales, i, &c->scale[i], &c->min[i]);
        for (int l = 0; l < 32; l++)
            c->q[i * 32 + l] = b.qs[i / 2 * 32 + l] >> i % 2 * 4 & 15;
    }
}

static void read_q5(const uint8_t *in, column_block *c)
{
    st_q5_k b;
    memcpy(&b, in, sizeof b);
    c->d = b.d;
    c->dmin = b.dmin;
    for (int i = 0; i < 8; i++) {
        st_k_scale(b.scales, i, &c->scale[i], &c->min[i]);
        for (int l = 0; l < 32; l++)
            c->q[i * 32 + l] = (uint8_t)((b.qs[i / 2 * 32 + l] >> i % 2 * 4 & 15) | (b.qh[l] >> i & 1) << 4);
    }
}

static void read_q6(const uint8_t *in, column_block *c)
{
    st_q6_k b;
    memcpy(&b, in, sizeof b);
    c->d = b.d;
    memcpy(c->scale, b.scales, 16);
    for (int i = 0; i < 8; i++) {
        const uint8_t *const low = b.ql + i / 4 * 64 + i % 2 * 32, *const high = b.qh + i / 4 * 32;
        for (int l = 0; l < 32; l++)
            c->q[i * 32 + l] = (uint8_t)((low[l] >> i % 4 / 2 * 4 & 15) | (high[l] >> i % 4 * 2 & 3) << 4);
    }
}

static void read_block(st_cpu_wtype t, const uint8_t *in, column_block *c)
{
    static void (*const read[ST_CPU_W_COUNT])(const uint8_t *in, column_block *c) = {
        [ST_CPU_W_Q2_K] = read_q2, [ST_CPU_W_Q3_K] = read_q3, [ST_CPU_W_Q4_K] = read_q4, [ST_CPU_W_Q5_K] = read_q5, [ST_CPU_W_Q6_K] = read_q6};
    read[t](in, c);
}

/* ---- panels ---- */

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
    return s->minima ? 128 : 64;
}

void st_cpu_pack_k(st_cpu_wtype t, const uint8_t *in, int column, uint8_t *block)
{
    const part_shape *s = &shapes[t];
    column_block c;
    read_block(t, in, &c);
    memcpy(block + 2 * column, &c.d, 2);
    if (s->minima)
        memcpy(block + 64 + 2 * column, &c.dmin, 2);
    const size_t part_bytes = (st_cpu_block_bytes(t) - head_bytes(s)) / PARTS;
    uint8_t *part = block + head_bytes(s);
    for (int p = 0; p < PARTS; p++, part += part_bytes) {
        part[column] = c.scale[p * s->groups];
        part[32 + column] = s->groups == 2 ? c.scale[p * 2 + 1] : c.min[p];
        put_bits(s->low, c.q + p * 32, 0, part + s->to_low + 4 * column);
        if (s->high > 0)
            put_bits(s->high, c.q + p * 32, s->low, part + s->to_high + 4 * column);
    }
}

void st_cpu_unpack_k(st_cpu_wtype t, const uint8_t *block, int column, float *out)
{
    const part_shape *s = &shapes[t];
    uint16_t half[2] = {0, 0};
    memcpy(&half[0], block + 2 * column, 2);
    if (s->minima)
        memcpy(&half[1], block + 64 + 2 * column, 2);
    const float d = st_f16_to_f32(half[0]), dmin = st_f16_to_f32(half[1]);
    const size_t part_bytes = (st_cpu_block_bytes(t) - head_bytes(s)) / PARTS;
    const uint8_t *part = block + head_bytes(s);
    for (int p = 0; p < PARTS; p++, part += part_bytes, out += 32) {
        uint8_t q[32] = {0};
        get_bits(s->low, part + s->to_low + 4 * column, 0, q);
        if (s->high > 0)
            get_bits(s->high, part + s->to_high + 4 * column, s->low, q);
        for (int g = 0; g < s->groups; g++) {
            const uint8_t byte = part[32 * g + column];
            const int scale = !s->minima ? (int8_t)byte : s->groups == 2 ? byte & 15 : byte;
            const int min = !s->minima ? 0 : s->groups == 2 ? byte >> 4 : part[32 + column];
            const float step = d * (float)scale, offset = dmin * (float)min;
            const int n = 32 / s->groups;
            for (int i = g * n; i < (g + 1) * n; i++) {
                const float x = step * (float)(q[i] - s->bias);
                out[i] = s->minima ? x - offset : x;
            }
        }
    }
}
