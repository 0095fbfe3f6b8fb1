/* tensor_impl.h: what the runtime and the backends see of a tensor and a graph. */
#ifndef SOTTO_SRC_TENSOR_TENSOR_IMPL_H
#define SOTTO_SRC_TENSOR_TENSOR_IMPL_H

#include "sotto/graph.h"

typedef enum st_op {
#define OP(constant, name, n_src) ST_OP_##constant,
#include "tensor/ops.inc"
#undef OP
    ST_OP_COUNT
} st_op;

const char *st_op_name(st_op op);

enum { ST_MAX_SRC = 6, ST_NAME_SIZE = 64 };

enum {
    ST_TENSOR_INPUT = 1 << 0,  /* set by the caller; pinned */
    ST_TENSOR_OUTPUT = 1 << 1, /* read by the caller; pinned */
    ST_TENSOR_STORED = 1 << 2, /* lives in a store, not in the arena */
    ST_TENSOR_MATRIX = 1 << 3, /* a weight that the backend may have packed: only its own kernels read it */
    ST_TENSOR_POISON = 1 << 4, /* result of a failed builder */
    ST_TENSOR_SHARED = 1 << 5, /* set by the plan: read by another segment than its own, or copied out */
    ST_TENSOR_SPLIT = 1 << 6 /* a stored matrix in several pieces by rows; `extra` is its list (runtime/store_impl.h) */
};

/* Parameters of an op; which are used is said at the builder. */
typedef struct st_op_params {
    float f[3]; /* scale / eps / a, b / floor; rope: base, scale, magnitude */
    /* conv: kernel, stride, pad; concat: axis; attention: causal; cache_attention: window; windows: sotto_window's in order */
    int32_t i[8];
    int32_t act;     /* sotto_activation */
    int32_t compute; /* sotto_compute; of every node, used by products */
} st_op_params;

struct st_buffer; /* buffer.h */

struct sotto_tensor {
    sotto_dtype dtype;
    uint32_t flags;
    int64_t dim[SOTTO_MAX_DIMS];   /* innermost first */
    size_t stride[SOTTO_MAX_DIMS]; /* bytes; stride[0] is the size of an element (of a block for block types) */
    st_op op;
    st_op_params params;
    sotto_tensor *src[ST_MAX_SRC]; /* absent sources are NULL */
    sotto_tensor *view_of;         /* whose memory this is, never itself a view; NULL = own memory */
    size_t view_offset;            /* bytes from the start of view_of */
    struct st_buffer *buffer;      /* stored tensors: home; others: set by the plan */
    size_t offset; /* bytes from the start of the buffer, of view_of for views resolved by st_tensor_data */
    void *extra;   /* the backend's own note on a stored matrix (layout); owned by the store's buffer */
    int32_t group; /* number of barriers before it in the graph */
    int32_t id;    /* position in the graph's node list, -1 for leaves */
    char name[ST_NAME_SIZE];
};

struct sotto_graph {
    sotto_error error; /* first error of building */
    struct st_arena *arena;
    sotto_tensor **node; /* in the order of building */
    int n_node, cap_node;
    sotto_tensor **leaf; /* inputs and stored tensors in use */
    int n_leaf, cap_leaf;
    int group;
    sotto_compute compute; /* of the nodes to come */
    bool finished;
    sotto_tensor poison; /* what failed builders return */
    char name[ST_NAME_SIZE];
};

/* Facts */
bool st_tensor_is_contiguous(const sotto_tensor *t);
/* True when rows (innermost dimension) are contiguous, so that row (i1, i2, i3) starts at the sum of i * stride. */
bool st_tensor_has_rows(const sotto_tensor *t);
int64_t st_tensor_n_rows(const sotto_tensor *t); /* product of dim[1..3] */
/* Host address of the first element; valid for tensors whose buffer is host memory and is allocated. */
void *st_tensor_data(const sotto_tensor *t);
/* "[1500, 512]", outermost first, into out (at least 96 bytes). Returns out. */
char *st_tensor_shape_text(const sotto_tensor *t, char *out, size_t size);

/* Shape a leaf: dims and contiguous strides. False when a dimension is negative, not whole blocks, or the size overflows. */
bool st_tensor_init(sotto_tensor *t, sotto_dtype dtype, int n_dims, const int64_t *dim);

/* For builders (op_<family>.c) */
sotto_tensor *st_graph_new_node(sotto_graph *g, st_op op, sotto_dtype dtype, int n_dims, const int64_t *dim);
sotto_tensor *st_graph_fail(sotto_graph *g, sotto_status code, const char *fmt, ...) SOTTO_PRINTF(3, 4);
bool st_graph_poisoned(sotto_graph *g, sotto_tensor *const *src, int n_src);

#endif
