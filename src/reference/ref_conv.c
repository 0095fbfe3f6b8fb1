/* ref_conv.c: windows over images: im2col and conv_2d. */
#include "reference/ref.h"

/* Element e of what is under the window of the result's place (ox, oy) in image b; 0 in the padding. */
static double under(const sotto_tensor *node, int64_t e, int64_t ox, int64_t oy, int64_t b)
{
    const sotto_tensor *x = node->src[0]; /* [b, h, w, c] */
    const int32_t *p = node->params.i;    /* kernel, stride, pad, dilation, each along w and h */
    const int64_t c = e % x->dim[0], kx = e / x->dim[0] % p[0], ky = e / x->dim[0] / p[0];
    const int64_t ix = ox * p[2] - p[4] + kx * p[6], iy = oy * p[3] - p[5] + ky * p[7];
    if (ix < 0 || ix >= x->dim[1] || iy < 0 || iy >= x->dim[2])
        return 0;
    return st_ref_get(x, (st_ref_at){{c, ix, iy, b}});
}

static void im2col(st_ref_run *r, const sotto_tensor *node)
{
    (void)r;
    for (int64_t n = 0; n < sotto_tensor_count(node); n++) {
        const st_ref_at at = st_ref_position(node, n);
        st_ref_put(node, at, under(node, at.i[0], at.i[1], at.i[2], at.i[3]));
    }
}

static size_t scratch_row(const sotto_tensor *node)
{
    return (size_t)node->src[1]->dim[0];
}

static void conv_2d(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *w = node->src[1], *bias = node->src[2];
    float *weights = (float *)(void *)r->scratch;
    for (int64_t o = 0; o < node->dim[0] && !st_ref_stop(r); o++) {
        st_ref_weights(w, o, weights);
        for (int64_t n = 0; n < st_tensor_n_rows(node); n++) {
            st_ref_at at = st_ref_position(node, n * node->dim[0]);
            double sum = bias ? st_ref_f32(st_tensor_data(bias), o) : 0;
            for (int64_t e = 0; e < w->dim[0]; e++)
                sum += under(node, e, at.i[1], at.i[2], at.i[3]) * weights[e];
            at.i[0] = o;
            st_ref_put(node, at, st_ref_activation((sotto_activation)node->params.act, sum));
        }
    }
}

const st_ref_op st_ref_im2col = {im2col, NULL};
const st_ref_op st_ref_conv_2d = {conv_2d, scratch_row};
