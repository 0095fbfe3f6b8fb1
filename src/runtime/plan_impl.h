/* plan_impl.h: the parts of a plan, and the passes that make them, in this order. Each pass is one file and leaves what
 * describe.c prints. The caller's graph is only read: passes work on copies of its tensors. */
#ifndef SOTTO_SRC_RUNTIME_PLAN_IMPL_H
#define SOTTO_SRC_RUNTIME_PLAN_IMPL_H

#include "runtime/runtime_impl.h"

/* Why a node is where it is. */
typedef enum st_reason {
    ST_REASON_NONE,     /* not assigned yet */
    ST_REASON_WRITES,   /* to where it lives */
    ST_REASON_WEIGHTS,  /* live there */
    ST_REASON_STORED,   /* a cache or a vector lives there */
    ST_REASON_OFFLOAD,  /* many rows are worth a copy of the weights */
    ST_REASON_NEXT,     /* what it reads is there, or what reads it */
    ST_REASON_MAIN,     /* nothing speaks for another */
    ST_REASON_FALLBACK, /* the one it should be on lacks it */
    ST_REASONS
} st_reason;

typedef enum st_copy_kind { ST_COPY_BYTES, ST_COPY_WEIGHTS } st_copy_kind;

/* What is brought from one space to another before a split, or back after it. */
typedef struct st_copy {
    st_copy_kind kind;
    sotto_tensor *from, *to; /* with memory of their own */
    size_t from_offset, to_offset, bytes;
    int from_device, to_device;
    size_t bounce; /* offset in the plan's host memory for copies through the host; SIZE_MAX = none is needed */
    bool no_peer;  /* was tried and refused */
} st_copy;

/* A run of nodes on one device. */
typedef struct st_segment {
    int device;
    st_exec_plan exec;
    void *prepared;
    bool is_prepared;
    int first_in, n_in, first_out, n_out; /* of the plan's copies */
    double copy_seconds, compute_seconds; /* of the last run that was traced */
} st_segment;

/* An input of the caller's graph: the same bytes in each space that reads it. Those in memory that the host cannot write
 * are kept on the host and sent when a run begins, from a second place, so that the first may be filled again meanwhile. */
typedef struct st_input {
    sotto_tensor *t; /* a leaf of the plan's graph */
    int of;          /* number of the leaf that is the original; its own number for that one */
    int space;
    bool written;     /* by nodes */
    size_t staging;   /* offset in either place; SIZE_MAX = set at once */
    size_t low, high; /* bytes set since the last run; none when low >= high */
} st_input;

/* Hash of the caller's tensors to the plan's. */
typedef struct st_map {
    const sotto_tensor **key;
    sotto_tensor **value;
    size_t n_slot; /* power of two */
} st_map;

/* Weights of another device, on this one for the length of a split. */
typedef struct st_visitors {
    st_buffer buffer;
    size_t size;
} st_visitors;

struct sotto_plan {
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_graph *source; /* owned, or NULL */
    sotto_graph *graph;  /* the copy */
    st_map map;
    int *device; /* [graph->cap_node] of each node */
    uint8_t *reason;
    st_copy *copies;
    int64_t n_copies, cap_copies;
    st_segment *segments;
    int64_t n_segments, cap_segments;
    st_input *inputs;
    int64_t n_inputs, cap_inputs;
    size_t *space_bytes;   /* [n_device] */
    bool *space_used;      /* [n_device] */
    size_t *scratch_bytes; /* [n_device + 1] */
    st_visitors *visitors; /* [n_device + 1] */
    float *rows;           /* of weights on their way, as f32; [n_rows] */
    size_t n_rows;
    char *host; /* inputs as set, inputs on their way, and the bounce area */
    size_t staging_bytes, bounce_bytes;
    void **events;   /* [n_device]; NULL where the backend has none */
    bool has_events; /* as far as there are any */
    bool *pinned;    /* [n_device]: the host memory is, for this device */
    bool stores_seen, in_flight;
    double *seconds;         /* [n_node], for the trace */
    sotto_trace_node *trace; /* [n_node], filled when the plan is made */
};

/* The plan's own graph: nodes, leaves and views copied, stored tensors shared. */
sotto_status st_plan_clone(sotto_plan *plan, const sotto_graph *source, sotto_error *err);
/* The plan's tensor for one of the caller's; NULL: not of this graph. Stored tensors are themselves. */
sotto_tensor *st_map_find(const st_map *map, const sotto_tensor *t);
/* Products with matrices in pieces become products with each piece, put together. */
sotto_status st_plan_cut_rows(sotto_plan *plan, sotto_error *err);
/* A device for every node: by what is stored where, then by its neighbours. */
sotto_status st_plan_assign(sotto_plan *plan, sotto_error *err);
/* Gives nodes that their device has only over contiguous sources copies of theirs. */
sotto_status st_plan_straighten(sotto_plan *plan, sotto_error *err);
/* True when the runner has the node, as it is or over contiguous copies of its sources. */
bool st_plan_can_run(const st_runner *r, const sotto_tensor *node, bool *straighten);
/* The type in which weights of a node visit another device: not packed again where that would change them. */
sotto_dtype st_visiting_type(const sotto_tensor *node, sotto_dtype dtype);
/* Segments, and the copies between them. */
sotto_status st_plan_split(sotto_plan *plan, sotto_error *err);
/* Places every tensor of the graph in the plan's arena. */
sotto_status st_plan_layout(sotto_plan *plan, sotto_error *err);

/* Where tensors with memory of their own are: the space's first buffer until layout has placed them. */
sotto_status st_plan_settle(sotto_plan *plan, sotto_tensor *home, int space, sotto_error *err);

/* Memory that copies need, once: before the first run. */
sotto_status st_plan_prepare_copies(sotto_plan *plan, sotto_error *err);
void st_plan_release_copies(sotto_plan *plan);
sotto_status st_plan_copy(sotto_plan *plan, st_copy *copy, sotto_error *err);
/* Sends what was set since the last run. */
sotto_status st_plan_flush(sotto_plan *plan, sotto_error *err);
/* Waits for all devices, also after a failure; the first error counts. */
sotto_status st_plan_sync(sotto_plan *plan, sotto_error *err);

/* A contiguous tensor of the plan's graph, without a place; NULL without memory. */
sotto_tensor *st_plan_new_tensor(sotto_plan *plan, sotto_dtype dtype, const int64_t *dim, const char *name);

#endif
