/* cpu_exec.h: how the CPU backend runs a plan: as one job of its pool. A step is one phase of one node, cut into units that
 * threads take. Steps too small to be shared are done by the thread that ended the one before. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_EXEC_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_EXEC_H

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/pool.h"
#include "runtime/backend_impl.h"

enum { ST_CPU_MAX_PHASES = 2 };

/* The state of one opened backend. */
typedef struct st_cpu {
    st_cpu_kernels kernels;
    st_pool *pool;
    float *scratch; /* for all plans: threads' parts, then the shared part; grows to the largest plan run */
    size_t scratch_bytes;
    sotto_logger logger;
} st_cpu;

/* What a node needs, from shapes alone. */
typedef struct st_cpu_need {
    int n_phase;
    int64_t units[ST_CPU_MAX_PHASES];
    size_t thread_floats; /* each thread's scratch */
    size_t shared_floats; /* lives through the node's phases */
    bool alone;           /* phases behind the first are so little that one thread does them sooner than all */
} st_cpu_need;

/* What an op sees while it runs: one for each thread. */
typedef struct st_cpu_run {
    const st_cpu_kernels *k;
    float *scratch, *shared; /* aligned to 64 bytes */
    int thread;
    st_pool *pool; /* NULL: the thread is alone with units next .. end - 1 */
    int64_t next, end;
    const st_exec_hooks *hooks; /* thread 0 asks abort */
    _Atomic bool *stop;
} st_cpu_run;

/* Takes up to `most` units of the step: their number, and the first in *start; 0 at the end or after an abort. */
int64_t st_cpu_take(st_cpu_run *r, int64_t most, int64_t *start);

typedef struct st_cpu_op {
    bool (*supports)(const sotto_tensor *node); /* pure */
    void (*need)(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need);
    void (*run)(st_cpu_run *r, const sotto_tensor *node, int phase);
} st_cpu_op;

/* Rows of the table, one family a file. */
extern const st_cpu_op st_cpu_op_linear, st_cpu_op_matmul, st_cpu_op_conv_1d;
extern const st_cpu_op st_cpu_op_attention, st_cpu_op_cache_attention;
extern const st_cpu_op st_cpu_op_layer_norm, st_cpu_op_rms_norm, st_cpu_op_softmax, st_cpu_op_argmax, st_cpu_op_power;
extern const st_cpu_op st_cpu_op_add, st_cpu_op_mul, st_cpu_op_glu, st_cpu_op_scale, st_cpu_op_gelu, st_cpu_op_silu,
    st_cpu_op_relu, st_cpu_op_sigmoid, st_cpu_op_tanh, st_cpu_op_sqrt, st_cpu_op_log10;
extern const st_cpu_op st_cpu_op_top_k, st_cpu_op_block_sums, st_cpu_op_rope, st_cpu_op_im2col, st_cpu_op_conv_2d;
extern const st_cpu_op st_cpu_op_get_rows, st_cpu_op_set_rows, st_cpu_op_copy, st_cpu_op_concat;

bool st_cpu_supports(const sotto_tensor *node);
sotto_status st_cpu_prepare(void *state, const st_exec_plan *plan, void **prepared, size_t *scratch_bytes,
                            sotto_error *err);
void st_cpu_release(void *state, void *prepared);
sotto_status st_cpu_run_plan(void *state, const st_exec_plan *plan, void *prepared, const st_exec_hooks *hooks,
                             sotto_error *err);

/* The packed type of a stored matrix. False when the tensor lies in memory row by row. */
bool st_cpu_packed(const sotto_tensor *t, st_cpu_wtype *type);

/* Byte address of row r (all dimensions above the innermost flattened). */
static inline char *st_cpu_row(const sotto_tensor *t, char *data, int64_t r)
{
    const int64_t i1 = r % t->dim[1], rest = r / t->dim[1], i2 = rest % t->dim[2], i3 = rest / t->dim[2];
    return data + (size_t)i1 * t->stride[1] + (size_t)i2 * t->stride[2] + (size_t)i3 * t->stride[3];
}

/* What is under the window of an im2col or conv_2d node at the result's row r: kernel_h * kernel_w * c floats. */
void st_cpu_under_window(const sotto_tensor *node, int64_t r, float *out);

/* Operands of the node may be rounded to bf16. */
static inline bool st_cpu_takes_bf16(const sotto_tensor *node)
{
    return node->params.compute == SOTTO_COMPUTE_BF16 || node->params.compute == SOTTO_COMPUTE_FINE ||
           node->params.compute == SOTTO_COMPUTE_INT8 || node->params.compute == SOTTO_COMPUTE_WORDS;
}

/* f32 whose elements of a row lie side by side. */
static inline bool st_cpu_f32_rows(const sotto_tensor *t)
{
    return t->dtype == SOTTO_F32 && (t->stride[0] == sizeof(float) || t->dim[0] <= 1);
}

#endif
