#include "quant/k_block.h"

#include <stddef.h>

#include "base/half.h"

const st_k_type *st_k_type_of(sotto_dtype dtype)
{
    static const st_k_type *const types[] = {&st_q2_k_type, &st_q3_k_type, &st_q4_k_type, &st_q5_k_type, &st_q6_k_type};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (types[i]->dtype == dtype)
            return types[i];
    return NULL;
}

void st_k_get_groups(const st_k_type *type, const st_k_block *b, uint8_t bytes[ST_K_GROUP_BYTES])
{
    for (int i = 0; i < ST_K_GROUP_BYTES; i++) {
        if (type->group == 32)
            bytes[i] = i % 2 ? b->offset[i / 2] : (uint8_t)b->step[i / 2];
        else
            bytes[i] = (uint8_t)(b->step[i] | (type->has_offset ? b->offset[i] << 4 : 0));
    }
}

void st_k_put_groups(const st_k_type *type, const uint8_t bytes[ST_K_GROUP_BYTES], st_k_block *b)
{
    for (int i = 0; i < ST_K_GROUP_BYTES; i++) {
        if (type->group == 16) {
            b->step[i] = (int8_t)(type->has_offset ? bytes[i] & 15 : bytes[i]);
            b->offset[i] = type->has_offset ? bytes[i] >> 4 : 0;
        } else if (i % 2) {
            b->offset[i / 2] = bytes[i];
        } else {
            b->step[i / 2] = (int8_t)bytes[i];
        }
    }
}

void st_k_read_scales(const uint8_t scales[12], st_k_block *out)
{
    for (int group = 0; group < 8; group++) {
        uint8_t step;
        st_k_scale(scales, group, &step, &out->offset[group]);
        out->step[group] = (int8_t)step;
    }
}

void st_k_values(const st_k_type *type, const st_k_block *b, float out[ST_BLOCK_K])
{
    const float d = st_f16_to_f32(b->d), dmin = st_f16_to_f32(b->dmin);
    for (int i = 0, group = 0; i < ST_BLOCK_K; group++) {
        const float step = d * (float)b->step[group], offset = dmin * (float)b->offset[group];
        for (const int end = i + type->group; i < end; i++)
            out[i] = step * (float)(b->codes[i] - type->zero) - offset;
    }
}

void st_k_unpack(const st_k_type *type, const void *src, float *dst, int64_t n)
{
    const uint8_t *in = src;
    for (int64_t i = 0; i < n; i += ST_BLOCK_K, in += type->bytes) {
        st_k_block b;
        type->read(in, &b);
        st_k_values(type, &b, dst + i);
    }
}
