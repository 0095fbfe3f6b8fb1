/* ref_norm.c: layer_norm, rms_norm, softmax: rows at a time. */
#include <math.h>

#include "reference/ref.h"

static void norm(st_ref_run *r, const sotto_tensor *node, bool centred)
{
    const sotto_tensor *x = node->src[0], *w = node->src[1], *b = node->src[2];
    const int64_t n = node->dim[0];
    for (int64_t row = 0; n > 0 && row < st_tensor_n_rows(node) && !st_ref_stop(r); row++) {
        st_ref_at at = st_ref_position(node, row * n);
        const char *in = st_ref_address(x, at);
        double mean = 0, squares = 0;
        for (int64_t i = 0; centred && i < n; i++)
            mean += st_ref_f32(in, i) / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (st_ref_f32(in, i) - mean) * (st_ref_f32(in, i) - mean);
        const double factor = 1.0 / sqrt(squares / (double)n + node->params.f[0]);
        for (int64_t i = 0; i < n; i++) {
            at.i[0] = i;
            const double shift = b ? st_ref_f32(st_tensor_data(b), i) : 0;
            st_ref_put(node, at, (st_ref_f32(in, i) - mean) * factor * st_ref_f32(st_tensor_data(w), i) + shift);
        }
    }
}

static void layer_norm(st_ref_run *r, const sotto_tensor *node)
{
    norm(r, node, true);
}

static void rms_norm(st_ref_run *r, const sotto_tensor *node)
{
    norm(r, node, false);
}

static size_t scratch_softmax(const sotto_tensor *node)
{
    return (size_t)node->dim[0];
}

static void softmax(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *mask = node->src[1];
    const int64_t n = node->dim[0];
    double *p = r->scratch;
    for (int64_t row = 0; n > 0 && row < st_tensor_n_rows(node) && !st_ref_stop(r); row++) {
        st_ref_at at = st_ref_position(node, row * n);
        double top = -INFINITY, sum = 0;
        bool nan = false;
        for (int64_t i = 0; i < n; i++) {
            at.i[0] = i;
            p[i] = node->params.f[0] * st_ref_get(x, at) + (mask ? st_ref_get(mask, at) : 0);
            top = p[i] > top ? p[i] : top;
            nan = nan || p[i] != p[i];
        }
        /* a row with nothing to choose from gives zeros, not 0 / 0 */
        const bool none = top == -INFINITY && !nan;
        for (int64_t i = 0; i < n; i++) {
            p[i] = none ? 0 : exp(p[i] - top);
            sum += p[i];
        }
        for (int64_t i = 0; i < n; i++) {
            at.i[0] = i;
            st_ref_put(node, at, none ? 0 : p[i] / sum);
        }
    }
}

const st_ref_op st_ref_layer_norm = {layer_norm, NULL};
const st_ref_op st_ref_rms_norm = {rms_norm, NULL};
const st_ref_op st_ref_softmax = {softmax, scratch_softmax};
