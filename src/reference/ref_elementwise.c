/* ref_elementwise.c: one element of the result from one element of each source. */
#include <math.h>

#include "reference/ref.h"

/* f of the element of the first source, that of the second (0 without one), and the node's parameters. */
typedef double element_fn(double x, double y, const st_op_params *params);

static void each(st_ref_run *r, const sotto_tensor *node, element_fn *f)
{
    (void)r;
    const sotto_tensor *x = node->src[0], *y = node->src[1];
    for (int64_t n = 0; n < sotto_tensor_count(node); n++) {
        const st_ref_at at = st_ref_position(node, n);
        st_ref_put(node, at, f(st_ref_get(x, at), y ? st_ref_get(y, at) : 0, &node->params));
    }
}

/* ELEMENT(name, expression in x, y and the parameters p) */
#define ELEMENT(NAME, EXPRESSION)                                      \
    static double NAME##_of(double x, double y, const st_op_params *p) \
    {                                                                  \
        (void)y;                                                       \
        (void)p;                                                       \
        return EXPRESSION;                                             \
    }                                                                  \
    static void run_##NAME(st_ref_run *r, const sotto_tensor *node)    \
    {                                                                  \
        each(r, node, NAME##_of);                                      \
    }                                                                  \
    const st_ref_op st_ref_##NAME = {run_##NAME, NULL};

ELEMENT(add, x + y)
ELEMENT(mul, x *y)
ELEMENT(glu, st_ref_activation((sotto_activation)p->act, x) * y)
ELEMENT(scale, p->f[0] * x + p->f[1])
ELEMENT(gelu, st_ref_activation(SOTTO_ACT_GELU, x))
ELEMENT(silu, st_ref_activation(SOTTO_ACT_SILU, x))
ELEMENT(relu, st_ref_activation(SOTTO_ACT_RELU, x))
ELEMENT(sigmoid, 1.0 / (1.0 + exp(-x)))
ELEMENT(tanh, tanh(x))
ELEMENT(sqrt, sqrt(x))
ELEMENT(log10, log10(x > p->f[0] ? x : x == x ? p->f[0] : x))
