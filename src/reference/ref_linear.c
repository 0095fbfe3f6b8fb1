/* ref_linear.c: linear, matmul, conv_1d. */
#include <math.h>

#include "reference/ref.h"

enum { BLOCK = 32 };

/* Weights of block types that meet bytes. */
static bool takes_bytes(const sotto_tensor *node)
{
    return node->params.compute == SOTTO_COMPUTE_INT8 && sotto_dtype_block(node->src[1]->dtype) > 1;
}

/* A row of the weights as f32, in scratch; behind it, for products of bytes, the left side. */
static size_t scratch_row(const sotto_tensor *node)
{
    return (size_t)node->src[1]->dim[0];
}

static size_t scratch_linear(const sotto_tensor *node)
{
    return scratch_row(node) + (takes_bytes(node) ? (size_t)(st_tensor_n_rows(node) * node->src[1]->dim[0]) : 0);
}

static const float *weights_row(st_ref_run *r, const sotto_tensor *w, int64_t o)
{
    float *row = (float *)(void *)r->scratch;
    st_ref_weights(w, o, row);
    return row;
}

/* act(sum + bias) + residual. The result may lie where the residual does, so that is read first. */
static void finish(const sotto_tensor *node, st_ref_at at, double sum)
{
    const sotto_tensor *bias = node->src[2], *residual = node->src[3];
    if (bias)
        sum += st_ref_f32(st_tensor_data(bias), at.i[0]);
    sum = st_ref_activation((sotto_activation)node->params.act, sum);
    if (residual)
        sum += st_ref_get(residual, at);
    st_ref_put(node, at, sum);
}

/* A row as whole numbers, x = scale * (q - zero) with q 0 .. steps: in f32, where every step is rounded in one way only, so
 * that all backends find the same integers. A number that is not finite makes the scale NaN. */
static float to_integers(const char *x, int64_t n, float steps, int32_t *q, int32_t *zero)
{
    float low = 0, high = 0, check = 0;
    for (int64_t i = 0; i < n; i++) {
        const float value = (float)st_ref_f32(x, i);
        low = value < low ? value : low;
        high = value > high ? value : high;
        check += value * 0.0f;
    }
    const float range = high - low, inverse = range > 0 ? steps / range : 0.0f;
    const bool usable = range > 0 && range < 3e38f && inverse < 3e38f;
    *zero = usable ? (int32_t)nearbyintf(-low * inverse) : 0;
    for (int64_t i = 0; i < n; i++) {
        float v = usable ? (float)st_ref_f32(x, i) * inverse : 0.0f;
        v = v > (float)-*zero ? v : (float)-*zero;
        v = v < steps - (float)*zero ? v : steps - (float)*zero;
        q[i] = (int32_t)nearbyintf(v) + *zero;
    }
    return (usable ? range / steps : 0.0f) + check;
}

static void linear_i8(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *w = node->src[1];
    const float steps = node->params.compute == SOTTO_COMPUTE_FINE ? 65535.0f : 255.0f;
    int32_t *q = (int32_t *)(void *)r->scratch;
    for (int64_t n = 0; node->dim[0] > 0 && n < st_tensor_n_rows(node) && !st_ref_stop(r); n++) {
        st_ref_at at = st_ref_position(node, n * node->dim[0]);
        int32_t zero;
        const float scale = to_integers(st_ref_address(x, at), x->dim[0], steps, q, &zero);
        for (int64_t o = 0; o < node->dim[0]; o++) {
            const int8_t *weights = st_ref_scaled_row(w, o);
            int64_t sum = 0;
            for (int64_t i = 0; i < x->dim[0]; i++)
                sum += (q[i] - zero) * weights[i];
            at.i[0] = o;
            finish(node, at, (double)sum * (double)(scale * *st_ref_row_scale(w, o)));
        }
    }
}

/* Thirty-two elements brought to 8 bits, as SOTTO_COMPUTE_INT8 says; steps of f32, so that all backends find the same integers.
 * A number that is not finite makes all NaN. */
static void round_block(const char *x, int64_t first, double *out)
{
    float most = 0, check = 0;
    for (int i = 0; i < BLOCK; i++) {
        const float value = (float)st_ref_f32(x, first + i);
        most = fabsf(value) > most ? fabsf(value) : most;
        check += value * 0.0f;
    }
    const float factor = most >= 1e-30f ? 127.0f / most : 0.0f;
    const double scale = (double)(most >= 1e-30f ? most / 127.0f : 0.0f);
    for (int i = 0; i < BLOCK; i++) {
        const float value = (float)st_ref_f32(x, first + i);
        out[i] = check == 0 ? (double)nearbyintf(value * factor) * scale : NAN;
    }
}

static void linear_bytes(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *w = node->src[1];
    const int64_t k = w->dim[0], rows = st_tensor_n_rows(node);
    double *const left = r->scratch + k;
    for (int64_t n = 0; node->dim[0] > 0 && n < rows; n++)
        for (int64_t i = 0; i < k; i += BLOCK)
            round_block(st_ref_address(x, st_ref_position(node, n * node->dim[0])), i, left + n * k + i);
    for (int64_t o = 0; o < node->dim[0] && !st_ref_stop(r); o++) {
        const float *weights = weights_row(r, w, o);
        for (int64_t n = 0; n < rows; n++) {
            const st_ref_at row = st_ref_position(node, n * node->dim[0]);
            double sum = 0;
            for (int64_t i = 0; i < k; i++)
                sum += left[n * k + i] * weights[i];
            finish(node, (st_ref_at){{o, row.i[1], row.i[2], row.i[3]}}, sum);
        }
    }
}

static void linear(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *w = node->src[1];
    if (st_ref_is_scaled(w)) {
        linear_i8(r, node);
        return;
    }
    if (takes_bytes(node)) {
        linear_bytes(r, node);
        return;
    }
    for (int64_t o = 0; o < node->dim[0] && !st_ref_stop(r); o++) {
        const float *weights = weights_row(r, w, o);
        for (int64_t n = 0; n < st_tensor_n_rows(node); n++) {
            const st_ref_at row = st_ref_position(node, n * node->dim[0]);
            const char *in = st_ref_address(x, row);
            double sum = 0;
            for (int64_t i = 0; i < x->dim[0]; i++)
                sum += st_ref_f32(in, i) * weights[i];
            finish(node, (st_ref_at){{o, row.i[1], row.i[2], row.i[3]}}, sum);
        }
    }
}

/* x [.., t, c_in]; w [c_out, kernel * c_in] with the kernel outer */
static void conv_1d(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *w = node->src[1];
    const int64_t kernel = node->params.i[0], stride = node->params.i[1], pad = node->params.i[2], c_in = x->dim[0];
    for (int64_t o = 0; o < node->dim[0] && !st_ref_stop(r); o++) {
        const float *weights = weights_row(r, w, o);
        for (int64_t n = 0; n < st_tensor_n_rows(node); n++) {
            const st_ref_at row = st_ref_position(node, n * node->dim[0]);
            double sum = 0;
            for (int64_t k = 0; k < kernel; k++) {
                const int64_t t = row.i[1] * stride + k - pad;
                if (t < 0 || t >= x->dim[1])
                    continue;
                const char *in = st_ref_address(x, (st_ref_at){{0, t, row.i[2], row.i[3]}});
                for (int64_t c = 0; c < c_in; c++)
                    sum += st_ref_f32(in, c) * weights[k * c_in + c];
            }
            finish(node, (st_ref_at){{o, row.i[1], row.i[2], row.i[3]}}, sum);
        }
    }
}

static void matmul(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *a = node->src[0], *b = node->src[1];
    for (int64_t n = 0; node->dim[0] > 0 && n < st_tensor_n_rows(node) && !st_ref_stop(r); n++) {
        st_ref_at at = st_ref_position(node, n * node->dim[0]);
        const char *left = st_ref_address(a, at);
        for (int64_t m = 0; m < node->dim[0]; m++) {
            const char *right = st_ref_address(b, (st_ref_at){{0, m, at.i[2], at.i[3]}});
            double sum = 0;
            for (int64_t k = 0; k < a->dim[0]; k++)
                sum += st_ref_f32(left, k) * st_ref_f32(right, k);
            at.i[0] = m;
            st_ref_put(node, at, sum);
        }
    }
}

const st_ref_op st_ref_linear = {linear, scratch_linear};
const st_ref_op st_ref_conv_1d = {conv_1d, scratch_row};
const st_ref_op st_ref_matmul = {matmul, NULL};
