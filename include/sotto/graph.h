/* graph.h: describe a computation; nothing is computed or allocated for data until a plan is made from it (backend.h).
 *
 * Building is sticky: an operation given bad shapes or types notes the first error in the graph and returns a poison
 * tensor, which every builder accepts; sotto_graph_finish() reports it. A builder therefore never returns NULL, and model
 * code needs one check. A graph belongs to one thread at a time.
 *
 * Shapes below are outermost first. Missing leading dimensions are 1. Unless said otherwise activations are f32. */
#ifndef SOTTO_GRAPH_H
#define SOTTO_GRAPH_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sotto_graph sotto_graph;

typedef enum sotto_activation {
    SOTTO_ACT_NONE = 0,
    SOTTO_ACT_GELU = 1, /* x/2 (1 + erf(x / sqrt 2)) */
    SOTTO_ACT_RELU = 2,
    SOTTO_ACT_SILU = 3,
    SOTTO_ACT_GELU_TANH = 4 /* x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) */
} sotto_activation;

/* In which numbers products (linear, conv_1d, attention) are computed. Sums are at least 32 bits wide in each. Weights of
 * SOTTO_I8 are always multiplied as integers: the left side is brought to 8 bits row by row. */
typedef enum sotto_compute {
    SOTTO_COMPUTE_F32 = 0,  /* weights of any type are expanded exactly, activations stay f32 */
    SOTTO_COMPUTE_BF16 = 1, /* with bf16 weights, and in attention, a backend may round the operands to bf16 */
    /* The same, but the left side of weights of SOTTO_I8 is brought to 16 bits, and so a backend may bring that of weights of block
     * types, in twice 8 for each 32 elements. */
    SOTTO_COMPUTE_FINE = 2,
    SOTTO_COMPUTE_F16 = 3, /* a backend with matrix units for it may round the operands, and keep intermediates, in f16 */
    /* Weights of block types (q4_0 .. q8_0, q2_k .. q6_k, iq4_nl) are multiplied as integers, as the file holds them: the
     * left side is brought to 8 bits with an f32 scale for each 32 elements; the sum over a block of weights is an exact
     * integer, sums over blocks are f32. A backend without such kernels, or without some for so many rows, treats them as
     * SOTTO_COMPUTE_F32 does. All else is as in SOTTO_COMPUTE_BF16. */
    SOTTO_COMPUTE_INT8 = 4,
    /* Many rows and weights of f16 may be brought to 16 bits with a sign and a scale for each 256 elements of a row or a column,
     * which is a fraction of their root mean square (docs/numerics.md). A backend without such kernels expands the weights
     * exactly. All else is as in SOTTO_COMPUTE_BF16. */
    SOTTO_COMPUTE_WORDS = 5
} sotto_compute;

SOTTO_API SOTTO_NODISCARD sotto_status sotto_graph_create(const char *name, sotto_graph **out, sotto_error *err);
SOTTO_API void sotto_graph_free(sotto_graph *g);

/* For the nodes added from here on; SOTTO_COMPUTE_F32 until then. */
SOTTO_API void sotto_graph_set_compute(sotto_graph *g, sotto_compute compute);

/* Leaves. An input is set by the caller before each run and keeps its value; dim[] is innermost first, n_dims 1..4. */
SOTTO_API sotto_tensor *sotto_graph_input(sotto_graph *g, const char *name, sotto_dtype dtype, int n_dims,
                                          const int64_t *dim);
/* A tensor of a store (backend.h) as a leaf. */
SOTTO_API sotto_tensor *sotto_graph_use(sotto_graph *g, sotto_tensor *stored);
/* Marks a result that the caller reads after a run. */
SOTTO_API void sotto_graph_output(sotto_graph *g, sotto_tensor *t, const char *name);
/* Nodes added after a barrier run after all nodes before it, and memory is never shared across it by nodes that
 * may run at the same time. Between barriers a backend may overlap nodes that do not depend on each other. */
SOTTO_API void sotto_graph_barrier(sotto_graph *g);
/* Returns the first error of building, or SOTTO_OK. After it no node may be added. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_graph_finish(sotto_graph *g, sotto_error *err);

/* Views share the memory of x; strides follow. */
SOTTO_API sotto_tensor *sotto_view_slice(sotto_graph *g, sotto_tensor *x, int axis, int64_t start, int64_t length);
SOTTO_API sotto_tensor *sotto_view_reshape(sotto_graph *g, sotto_tensor *x, int n_dims, const int64_t *dim);
SOTTO_API sotto_tensor *sotto_view_permute(sotto_graph *g, sotto_tensor *x, const int axis[4]);
/* Overlapping rows: x is a contiguous f32 run; row i of the result is elements [i*step, i*step + length). */
SOTTO_API sotto_tensor *sotto_view_frames(sotto_graph *g, sotto_tensor *x, int64_t n_frames, int64_t step,
                                          int64_t length);

/* y[.., n, o] = act(sum_i x[.., n, i] w[o, i] + b[o]) + residual[.., n, o].
 * x [.., n, in] rows may be strided or overlap; w [out, in] any weight type (i8: a stored matrix); b [out] f32 or NULL; residual as y or NULL. */
SOTTO_API sotto_tensor *sotto_linear(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b,
                                     sotto_activation act, sotto_tensor *residual);
/* y[.., n, m] = sum_k a[.., n, k] b[.., m, k]; leading dimensions of b broadcast. */
SOTTO_API sotto_tensor *sotto_matmul(sotto_graph *g, sotto_tensor *a, sotto_tensor *b);
/* Time-major convolution as an implicit GEMM. x [.., t, c_in], w [c_out, kernel * c_in] (kernel outer), b [c_out] or NULL;
 * zero padding of `pad` frames on both sides; y [.., (t + 2 pad - kernel)/stride + 1, c_out] = act(conv) + residual. */
SOTTO_API sotto_tensor *sotto_conv_1d(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b, int kernel,
                                      int stride, int pad, sotto_activation act, sotto_tensor *residual);

/* Over the innermost dimension; w and b are f32 [n]. */
SOTTO_API sotto_tensor *sotto_layer_norm(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b, float eps);
SOTTO_API sotto_tensor *sotto_rms_norm(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, float eps);
/* softmax(scale * x + mask) over the innermost dimension; mask NULL or broadcastable to x. A row whose every entry is
 * -infinity gives zeros. */
SOTTO_API sotto_tensor *sotto_softmax(sotto_graph *g, sotto_tensor *x, sotto_tensor *mask, float scale);

/* A window that moves over an image; [0] along w, [1] along h. Padding is of zeros, on both sides. */
typedef struct sotto_window {
    int kernel[2], stride[2], pad[2], dilation[2];
} sotto_window;

/* Convolution over images as an implicit product. x [b, h, w, c_in], w [c_out, kernel_h * kernel_w * c_in] (c_in innermost)
 * of any weight type but i8, b f32 [c_out] or NULL; y [b, h_out, w_out, c_out] = act(conv), where
 * h_out = (h + 2 pad - dilation (kernel - 1) - 1) / stride + 1. A dilated conv_1d is one of h = 1. */
SOTTO_API sotto_tensor *sotto_conv_2d(sotto_graph *g, sotto_tensor *x, sotto_tensor *w, sotto_tensor *b,
                                      const sotto_window *window, sotto_activation act);
/* What is under the window, side by side: x [b, h, w, c]; y [b, h_out, w_out, kernel_h * kernel_w * c]. */
SOTTO_API sotto_tensor *sotto_im2col(sotto_graph *g, sotto_tensor *x, const sotto_window *window);

typedef enum sotto_rope_pairs {
    SOTTO_ROPE_NEIGHBOURS = 0, /* elements 2i and 2i + 1 */
    SOTTO_ROPE_HALVES = 1      /* elements i and i + n_rot / 2 */
} sotto_rope_pairs;

/* Rotates pair i of each head by the angle scale * position * base^(-2 i / n_rot) / factors[i] and multiplies it with
 * `magnitude` (1: lengths stay). x [b, n, h, d], rows may be strided; positions i32 [n] or [b, n], an input of the device;
 * factors f32 [n_rot / 2] or NULL; n_rot even, at most d: elements behind it stay as they are. */
SOTTO_API sotto_tensor *sotto_rope(sotto_graph *g, sotto_tensor *x, sotto_tensor *positions, sotto_tensor *factors,
                                   sotto_rope_pairs pairs, int n_rot, float base, float scale, float magnitude);

/* Scores never leave the cache. q [b, n_q, h, d], k and v [b, n_k, h_kv, d] (strided views allowed, innermost contiguous,
 * f32), h a multiple of h_kv; causal: query i sees keys 0 .. n_k - n_q + i. Result [b, n_q, h * d]. */
SOTTO_API sotto_tensor *sotto_attention(sotto_graph *g, sotto_tensor *q, sotto_tensor *k, sotto_tensor *v, float scale,
                                        bool causal);
/* Attention of single rows over a cache. q [n_row, h, d]; k and v [n_cell, h_kv, d], f32 f16 bf16 or q8_0, persistent.
 * Row r sees n_kv[r] cells (i32 [n_row], 0 gives a zero row). index NULL: cells base[r] .. base[r] + n_kv[r] - 1 with
 * base i32 [n_row]. Else index is i32 [n_list, max_kv]: the cells index[base[r]][0 .. n_kv[r]). Of these a row sees the
 * last `window` when that is not 0.
 * Lengths and lists are device-side inputs, so one plan serves every step. Values outside the cache are clamped by the
 * backend, never followed. Result [n_row, h * d]. */
SOTTO_API sotto_tensor *sotto_cache_attention(sotto_graph *g, sotto_tensor *q, sotto_tensor *k, sotto_tensor *v,
                                              sotto_tensor *index, sotto_tensor *base, sotto_tensor *n_kv, float scale,
                                              int window);

/* y[i, :] = table[rows[i], :] as f32; rows i32 [n]. A row outside the table gives zeros. */
SOTTO_API sotto_tensor *sotto_get_rows(sotto_graph *g, sotto_tensor *table, sotto_tensor *rows);
/* table[rows[i], :] = x[i, :], converted to the table's type (f32, f16, bf16, q8_0); rows outside the table are skipped.
 * Returns a view of the table, which orders later readers after the write. */
SOTTO_API sotto_tensor *sotto_set_rows(sotto_graph *g, sotto_tensor *table, sotto_tensor *rows, sotto_tensor *x);

/* Copy with cast to dtype (f32 f16 bf16 i32) into a new contiguous tensor; x may be strided. */
SOTTO_API sotto_tensor *sotto_copy(sotto_graph *g, sotto_tensor *x, sotto_dtype dtype);
/* Copy with cast into an existing tensor of the same shape (a cache, which may be of q8_0 when x is rows of f32); returns a
 * view of dst, ordered after the write. */
SOTTO_API sotto_tensor *sotto_copy_into(sotto_graph *g, sotto_tensor *dst, sotto_tensor *x);
/* Join along an axis. */
SOTTO_API sotto_tensor *sotto_concat(sotto_graph *g, sotto_tensor *a, sotto_tensor *b, int axis);

/* b broadcasts to a: each dimension equal or 1. */
SOTTO_API sotto_tensor *sotto_add(sotto_graph *g, sotto_tensor *a, sotto_tensor *b);
SOTTO_API sotto_tensor *sotto_mul(sotto_graph *g, sotto_tensor *a, sotto_tensor *b);
/* act(gate) * up, the middle of a gated feed-forward. Same shapes; rows may be strided (slices of one fused product). */
SOTTO_API sotto_tensor *sotto_glu(sotto_graph *g, sotto_tensor *gate, sotto_tensor *up, sotto_activation act);
/* a * x + b */
SOTTO_API sotto_tensor *sotto_scale(sotto_graph *g, sotto_tensor *x, float a, float b);
SOTTO_API sotto_tensor *sotto_gelu(sotto_graph *g, sotto_tensor *x);
SOTTO_API sotto_tensor *sotto_silu(sotto_graph *g, sotto_tensor *x);
SOTTO_API sotto_tensor *sotto_relu(sotto_graph *g, sotto_tensor *x);
SOTTO_API sotto_tensor *sotto_sigmoid(sotto_graph *g, sotto_tensor *x);
SOTTO_API sotto_tensor *sotto_tanh(sotto_graph *g, sotto_tensor *x);
/* Not a number below zero. */
SOTTO_API sotto_tensor *sotto_sqrt(sotto_graph *g, sotto_tensor *x);
/* log10(max(x, floor)) */
SOTTO_API sotto_tensor *sotto_log10(sotto_graph *g, sotto_tensor *x, float floor);
/* re^2 + im^2 of a spectrum: x [.., n, 2 m] holding m real then m imaginary parts; y [.., n, m]. */
SOTTO_API sotto_tensor *sotto_power(sotto_graph *g, sotto_tensor *x);
/* Index of the largest element of each row, the first one on ties; NaN is never chosen. y i32 [.., n]. */
SOTTO_API sotto_tensor *sotto_argmax(sotto_graph *g, sotto_tensor *x);
/* The k largest elements of each row in falling order, the first one on ties, NaN never: what samplers and beam search take.
 * x [.., n], three dimensions at most, n up to 2^24; y f32 [.., 2, k]: the values, and their indices as numbers. Places for
 * which there is no number hold -infinity and -1. */
SOTTO_API sotto_tensor *sotto_top_k(sotto_graph *g, sotto_tensor *x, int k);
enum { SOTTO_SUMS_BLOCK = 64 };
/* The largest of every SOTTO_SUMS_BLOCK elements of each row, and the sum of exp(element - largest) of these: what is left to do
 * of a softmax of which few elements are wanted. x [.., n], three dimensions at most; y f32 [.., 2, ceil(n / 64)], the largest
 * first. The sum is not a number where an element is not or is infinity, and 0 where all are -infinity. */
SOTTO_API sotto_tensor *sotto_block_sums(sotto_graph *g, sotto_tensor *x);

#ifdef __cplusplus
}
#endif
#endif
