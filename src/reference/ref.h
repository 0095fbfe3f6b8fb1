/* ref.h: the scalar oracle: every operation as its definition says, one element after another, sums in double. Kernels
 * are tested against it, and it computes what a backend lacks. */
#ifndef SOTTO_SRC_REFERENCE_REF_H
#define SOTTO_SRC_REFERENCE_REF_H

#include <string.h>

#include "runtime/backend_impl.h"

typedef struct st_ref_run {
    double *scratch; /* as large as the op's scratch() said */
    const st_exec_hooks *hooks;
    bool stopped;
} st_ref_run;

typedef struct st_ref_op {
    void (*run)(st_ref_run *r, const sotto_tensor *node);
    size_t (*scratch)(const sotto_tensor *node); /* in doubles; NULL: none */
} st_ref_op;

extern const st_ref_op st_ref_linear, st_ref_matmul, st_ref_conv_1d;
extern const st_ref_op st_ref_layer_norm, st_ref_rms_norm, st_ref_softmax;
extern const st_ref_op st_ref_attention, st_ref_cache_attention;
extern const st_ref_op st_ref_get_rows, st_ref_set_rows, st_ref_copy, st_ref_concat;
extern const st_ref_op st_ref_add, st_ref_mul, st_ref_glu, st_ref_scale, st_ref_gelu, st_ref_silu, st_ref_relu,
    st_ref_sigmoid, st_ref_tanh, st_ref_sqrt, st_ref_log10;
extern const st_ref_op st_ref_power, st_ref_argmax, st_ref_top_k, st_ref_block_sums;
extern const st_ref_op st_ref_rope, st_ref_im2col, st_ref_conv_2d;

/* Asked once a row of work; true when the caller wants to stop. */
bool st_ref_stop(st_ref_run *r);

/* One element of a plain type as a number, and back: rounded to nearest, integers cut towards zero and to their range. */
double st_ref_load(sotto_dtype dtype, const char *p);
void st_ref_store(sotto_dtype dtype, char *p, double x);
double st_ref_activation(sotto_activation act, double x);

/* Position of an element, innermost first. */
typedef struct st_ref_at {
    int64_t i[SOTTO_MAX_DIMS];
} st_ref_at;

/* Element number n of a tensor, counted row by row. */
static inline st_ref_at st_ref_position(const sotto_tensor *t, int64_t n)
{
    st_ref_at at;
    for (int a = 0; a < SOTTO_MAX_DIMS; a++) {
        at.i[a] = n % t->dim[a];
        n /= t->dim[a];
    }
    return at;
}

/* Address of an element; dimensions of length 1 broadcast. */
static inline char *st_ref_address(const sotto_tensor *t, st_ref_at at)
{
    char *p = st_tensor_data(t);
    for (int a = 0; a < SOTTO_MAX_DIMS; a++)
        if (t->dim[a] != 1)
            p += (size_t)at.i[a] * t->stride[a];
    return p;
}

static inline double st_ref_get(const sotto_tensor *t, st_ref_at at)
{
    return st_ref_load(t->dtype, st_ref_address(t, at));
}

static inline void st_ref_put(const sotto_tensor *t, st_ref_at at, double x)
{
    st_ref_store(t->dtype, st_ref_address(t, at), x);
}

/* A stored matrix of i8: its rows, then their scales. */
static inline bool st_ref_is_scaled(const sotto_tensor *t)
{
    return t->dtype == SOTTO_I8 && (t->flags & ST_TENSOR_MATRIX) != 0;
}
int8_t *st_ref_scaled_row(const sotto_tensor *t, int64_t row);
float *st_ref_row_scale(const sotto_tensor *t, int64_t row);
/* Row `row` of a matrix as f32. */
void st_ref_weights(const sotto_tensor *t, int64_t row, float *out);

/* Element i of an f32 row. */
static inline double st_ref_f32(const char *row, int64_t i)
{
    float x;
    memcpy(&x, row + (size_t)i * sizeof x, sizeof x);
    return x;
}

#endif
