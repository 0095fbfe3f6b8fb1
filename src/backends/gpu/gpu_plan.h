/* gpu_plan.h: from nodes to launches. An operation gives the kernels that it needs; the plan keeps them as one list, which
 * is launched, or recorded once and replayed. */
#ifndef SOTTO_SRC_BACKENDS_GPU_GPU_PLAN_H
#define SOTTO_SRC_BACKENDS_GPU_GPU_PLAN_H

#include "backends/gpu/gpu_api.h"

/* The state of one opened backend. */
typedef struct st_gpu {
    const st_gpu_api *api;
    void *device;
    st_gpu_caps caps;
    sotto_logger logger;
    bool (*abort)(void *user); /* NULL, or asked before a kernel is made ready */
    void *abort_user;
    st_buffer scratch;  /* of all plans; grows to the largest that has run */
    uint64_t n_scratch; /* times it was exchanged */
} st_gpu;

/* A tensor as kernels see it. */
typedef struct st_gpu_operand {
    st_gpu_arg at;
    sotto_dtype dtype;     /* of the numbers in memory: f16 for an f32 tensor that the plan keeps in halves */
    int dim[4], stride[4]; /* elements, innermost first */
} st_gpu_operand;

typedef struct st_gpu_builder {
    st_gpu *gpu;
    const st_exec_plan *plan;
    const bool *halves; /* [n_node]: the node's result is kept in halves */
    st_gpu_launch *list;
    int64_t n, cap;
    int node;                 /* in work */
    size_t scratch_bytes;     /* the most that a node asked for */
    const sotto_tensor *left; /* lies in scratch as bytes; NULL: nothing that a later node could read */
    bool left_pairs;          /* how (ops_dot.c) */
} st_gpu_builder;

typedef struct st_gpu_op {
    bool (*supports)(const sotto_tensor *node); /* pure; f32 and contiguity rules of the builders hold already */
    sotto_status (*emit)(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err);
    unsigned half_sources; /* bit i: source i may be kept in halves */
    bool half_result;      /* the result may be */
} st_gpu_op;

/* Rows of the table, one family a file. */
extern const st_gpu_op st_gpu_op_linear, st_gpu_op_matmul, st_gpu_op_conv_1d;
extern const st_gpu_op st_gpu_op_attention, st_gpu_op_cache_attention;
extern const st_gpu_op st_gpu_op_layer_norm, st_gpu_op_rms_norm, st_gpu_op_softmax, st_gpu_op_argmax, st_gpu_op_power;
extern const st_gpu_op st_gpu_op_add, st_gpu_op_mul, st_gpu_op_glu, st_gpu_op_scale, st_gpu_op_gelu, st_gpu_op_silu,
    st_gpu_op_relu, st_gpu_op_sigmoid, st_gpu_op_tanh, st_gpu_op_sqrt, st_gpu_op_log10;
extern const st_gpu_op st_gpu_op_top_k, st_gpu_op_block_sums, st_gpu_op_rope, st_gpu_op_im2col, st_gpu_op_conv_2d;
extern const st_gpu_op st_gpu_op_get_rows, st_gpu_op_set_rows, st_gpu_op_copy, st_gpu_op_concat;

bool st_gpu_supports(const sotto_tensor *node);

st_gpu_operand st_gpu_operand_of(const st_gpu_builder *b, const sotto_tensor *t);
/* The scales of a stored matrix, the quants being its operand; for types without scales the same place. */
st_gpu_arg st_gpu_scales_of(const sotto_tensor *matrix);
/* Rows of whole blocks of q8_0 as in a file; their strides are counted in bytes. */
bool st_gpu_is_q8_0_rows(const sotto_tensor *t);
/* Scratch of the node in work, `bytes` of it in all; contents are lost after the node. */
st_gpu_arg st_gpu_scratch(st_gpu_builder *b, size_t bytes);

/* Copies an operand that matrix units are to read, and which is not kept in halves, to `to` in halves, one element after
 * another; *x is then that copy. st_gpu_halves_bytes() of it are written, limited to what a half holds. */
size_t st_gpu_halves_bytes(const st_gpu_operand *x);
sotto_status st_gpu_halve(st_gpu_builder *b, st_gpu_operand *x, st_gpu_arg to, sotto_error *err);

/* Adds a launch: the parameters are copied. A grid with a zero is nothing to do. */
sotto_status st_gpu_emit(st_gpu_builder *b, st_gpu_kernel kernel, uint32_t x, uint32_t y, uint32_t z,
                         const void *params, size_t param_bytes, const st_gpu_arg *args, int n_args, sotto_error *err);

sotto_status st_gpu_prepare(void *state, const st_exec_plan *plan, void **prepared, size_t *scratch_bytes,
                            sotto_error *err);
void st_gpu_release(void *state, void *prepared);
sotto_status st_gpu_run(void *state, const st_exec_plan *plan, void *prepared, const st_exec_hooks *hooks,
                        sotto_error *err);

#endif
