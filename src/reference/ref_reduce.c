/* ref_reduce.c: power, argmax, top_k, block_sums. */
#include <math.h>

#include "reference/ref.h"

/* x [.., 2 m]: m real parts, then m imaginary ones */
static void power(st_ref_run *r, const sotto_tensor *node)
{
    (void)r;
    for (int64_t n = 0; n < sotto_tensor_count(node); n++) {
        const st_ref_at at = st_ref_position(node, n);
        const st_ref_at other = {{at.i[0] + node->dim[0], at.i[1], at.i[2], at.i[3]}};
        const double re = st_ref_get(node->src[0], at), im = st_ref_get(node->src[0], other);
        st_ref_put(node, at, re * re + im * im);
    }
}

static void argmax(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0]; /* [.., n]; the result has one dimension less */
    for (int64_t row = 0; row < sotto_tensor_count(node) && !st_ref_stop(r); row++) {
        const st_ref_at to = st_ref_position(node, row);
        const char *in = st_ref_address(x, (st_ref_at){{0, to.i[0], to.i[1], to.i[2]}});
        int64_t best = -1;
        for (int64_t i = 0; i < x->dim[0]; i++)
            if (st_ref_f32(in, i) == st_ref_f32(in, i) && (best < 0 || st_ref_f32(in, i) > st_ref_f32(in, best)))
                best = i;
        st_ref_put(node, to, best < 0 ? 0 : (double)best); /* nothing but NaN: the first */
    }
}

/* Element i comes before element j (-1: none): larger, or the first of equals. NaN comes never. */
static bool before(const char *row, int64_t i, int64_t j)
{
    const double a = st_ref_f32(row, i);
    return a == a && (j < 0 || a > st_ref_f32(row, j) || (a == st_ref_f32(row, j) && i < j));
}

static void top_k(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0];
    const int64_t k = node->dim[0];
    for (int64_t row = 0; row < x->dim[1] * x->dim[2] && !st_ref_stop(r); row++) {
        const int64_t i1 = row % x->dim[1], i2 = row / x->dim[1];
        const char *in = st_ref_address(x, (st_ref_at){{0, i1, i2, 0}});
        int64_t last = -1;
        for (int64_t n = 0; n < k; n++) {
            int64_t best = -1;
            for (int64_t i = 0; i < x->dim[0]; i++)
                if ((n == 0 || (last >= 0 && before(in, last, i) && i != last)) && before(in, i, best))
                    best = i;
            st_ref_put(node, (st_ref_at){{n, 0, i1, i2}}, best < 0 ? -INFINITY : st_ref_f32(in, best));
            st_ref_put(node, (st_ref_at){{n, 1, i1, i2}}, (double)best);
            last = best;
        }
    }
}

static void block_sums(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0];
    const int64_t n_blocks = node->dim[0], n = x->dim[0];
    for (int64_t b = 0; b < n_blocks * x->dim[1] * x->dim[2] && !st_ref_stop(r); b++) {
        const int64_t block = b % n_blocks, i1 = b / n_blocks % x->dim[1], i2 = b / n_blocks / x->dim[1];
        const char *in = st_ref_address(x, (st_ref_at){{0, i1, i2, 0}});
        const int64_t lo = block * SOTTO_SUMS_BLOCK, hi = n - lo < SOTTO_SUMS_BLOCK ? n : lo + SOTTO_SUMS_BLOCK;
        double max = -INFINITY, sum = 0;
        for (int64_t i = lo; i < hi; i++)
            max = st_ref_f32(in, i) > max ? st_ref_f32(in, i) : max;
        for (int64_t i = lo; i < hi; i++)
            sum += st_ref_f32(in, i) == -INFINITY ? 0 : exp(st_ref_f32(in, i) - max);
        st_ref_put(node, (st_ref_at){{block, 0, i1, i2}}, max);
        st_ref_put(node, (st_ref_at){{block, 1, i1, i2}}, sum);
    }
}

const st_ref_op st_ref_power = {power, NULL};
const st_ref_op st_ref_argmax = {argmax, NULL};
const st_ref_op st_ref_top_k = {top_k, NULL};
const st_ref_op st_ref_block_sums = {block_sums, NULL};
