/* ref_rope.c: rotary positions. */
#include <math.h>

#include "reference/ref.h"

/* x [b, n, h, d] */
static void rope(st_ref_run *r, const sotto_tensor *node)
{
    const sotto_tensor *x = node->src[0], *positions = node->src[1], *factors = node->src[2];
    const int64_t n_rot = node->params.i[0], pairs = n_rot / 2;
    const double magnitude = node->params.f[2];
    const bool halves = node->params.i[1] != 0;
    for (int64_t row = 0; node->dim[0] > 0 && row < st_tensor_n_rows(node) && !st_ref_stop(r); row++) {
        st_ref_at at = st_ref_position(node, row * node->dim[0]);
        const double position = st_ref_get(positions, (st_ref_at){{at.i[2], at.i[3], 0, 0}});
        for (int64_t i = 0; i < pairs; i++) {
            const double factor = factors ? st_ref_f32(st_tensor_data(factors), i) : 1;
            const double angle =
                node->params.f[1] * position * pow(node->params.f[0], -2.0 * (double)i / (double)n_rot) / factor;
            st_ref_at a = at, b = at;
            a.i[0] = halves ? i : 2 * i;
            b.i[0] = halves ? i + pairs : 2 * i + 1;
            const double u = magnitude * st_ref_get(x, a), v = magnitude * st_ref_get(x, b);
            st_ref_put(node, a, u * cos(angle) - v * sin(angle));
            st_ref_put(node, b, u * sin(angle) + v * cos(angle));
        }
        for (at.i[0] = n_rot; at.i[0] < node->dim[0]; at.i[0]++)
            st_ref_put(node, at, st_ref_get(x, at));
    }
}

const st_ref_op st_ref_rope = {rope, NULL};
