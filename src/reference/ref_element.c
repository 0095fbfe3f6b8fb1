/* ref_element.c: elements as numbers. */
#include <math.h>

#include "base/half.h"
#include "reference/ref.h"
#include "sotto/quant.h"

double st_ref_load(sotto_dtype dtype, const char *p)
{
    if (dtype == SOTTO_F32)
        return st_ref_f32(p, 0);
    if (dtype == SOTTO_I32) {
        int32_t i;
        memcpy(&i, p, sizeof i);
        return i;
    }
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return dtype == SOTTO_F16 ? st_f16_to_f32(h) : st_bf16_to_f32(h);
}

static int32_t to_i32(double x)
{
    return x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : x == x ? (int32_t)x : 0;
}

void st_ref_store(sotto_dtype dtype, char *p, double x)
{
    const float f = (float)x;
    const int32_t i = dtype == SOTTO_I32 ? to_i32(x) : 0;
    const uint16_t h = dtype == SOTTO_F16 ? st_f32_to_f16(f) : st_f32_to_bf16(f);
    if (dtype == SOTTO_F32)
        memcpy(p, &f, sizeof f);
    else if (dtype == SOTTO_I32)
        memcpy(p, &i, sizeof i);
    else
        memcpy(p, &h, sizeof h);
}

double st_ref_activation(sotto_activation act, double x)
{
    if (act == SOTTO_ACT_GELU)
        return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440));
    if (act == SOTTO_ACT_GELU_TANH)
        return 0.5 * x * (1.0 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x)));
    if (act == SOTTO_ACT_SILU)
        return x / (1.0 + exp(-x));
    return act == SOTTO_ACT_RELU && x < 0 ? 0 : x;
}

int8_t *st_ref_scaled_row(const sotto_tensor *t, int64_t row)
{
    return (int8_t *)st_tensor_data(t) + row * t->dim[0];
}

float *st_ref_row_scale(const sotto_tensor *t, int64_t row)
{
    char *scales = (char *)st_tensor_data(t) + (sotto_tensor_bytes(t) + 3) / 4 * 4;
    return (float *)(void *)scales + row;
}

void st_ref_weights(const sotto_tensor *t, int64_t row, float *out)
{
    if (!st_ref_is_scaled(t)) {
        (void)sotto_row_to_f32(t->dtype, (const char *)st_tensor_data(t) + (size_t)row * t->stride[1], out, t->dim[0]);
        return;
    }
    const int8_t *q = st_ref_scaled_row(t, row);
    for (int64_t i = 0; i < t->dim[0]; i++)
        out[i] = *st_ref_row_scale(t, row) * (float)q[i];
}
