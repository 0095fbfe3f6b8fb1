/* runtime_impl.h: backends, stores, arenas and plans as the runtime's own files see them. */
#ifndef SOTTO_SRC_RUNTIME_RUNTIME_IMPL_H
#define SOTTO_SRC_RUNTIME_RUNTIME_IMPL_H

#include "runtime/backend_impl.h"

/* What runs nodes: a backend's implementation and its state. */
typedef struct st_runner {
    const st_backend_impl *impl;
    void *state;
} st_runner;

struct sotto_backend {
    st_runner main;
    st_runner fallback; /* the reference, for operations that main lacks on host memory; opened when first needed */
    sotto_logger logger;
    char description[160];
};

/* The runner for nodes that main does not support; opens it. */
sotto_status st_backend_fallback(sotto_backend *backend, st_runner *out, sotto_error *err);

struct sotto_arena {
    sotto_backend *backend;
    st_buffer buffer; /* the same struct for life: tensors point at it while its memory is replaced */
};

/* At least `size` bytes; what was in it is lost when it grows. */
sotto_status st_arena_reserve(sotto_arena *arena, size_t size, sotto_error *err);

/* Sources that the result may share memory with, element by element. */
int st_op_in_place_source(const sotto_tensor *node);

#endif
