/* plan_impl.h: the parts of a plan. */
#ifndef SOTTO_SRC_RUNTIME_PLAN_IMPL_H
#define SOTTO_SRC_RUNTIME_PLAN_IMPL_H

#include "runtime/runtime_impl.h"

/* A run of nodes on one backend. */
typedef struct st_segment {
    st_runner runner;
    st_exec_plan exec;
    void *prepared;
    bool is_prepared;
} st_segment;

struct sotto_plan {
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_graph *graph;
    size_t compute_bytes, scratch_bytes;
    st_segment *segments;
    int n_segments;
    double *seconds;         /* [n_node], for the trace */
    sotto_trace_node *trace; /* [n_node], filled when the plan is made */
};

/* Gives nodes that the main backend has only over contiguous sources copies of theirs. Before layout. */
sotto_status st_plan_straighten(sotto_plan *plan, sotto_error *err);
/* Places every tensor of the graph in the plan's arena; sets compute_bytes. */
sotto_status st_plan_layout(sotto_plan *plan, sotto_error *err);
/* Assigns every node to a backend and forms segments. */
sotto_status st_plan_split(sotto_plan *plan, sotto_error *err);

#endif
