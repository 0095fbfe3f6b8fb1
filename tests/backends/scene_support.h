/* scene_support.h: one operation over made-up data, run on any backend and compared with the reference. */
#ifndef SOTTO_TESTS_BACKENDS_SCENE_SUPPORT_H
#define SOTTO_TESTS_BACKENDS_SCENE_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "sotto/backend.h"

/* How a source lies in memory. */
typedef enum layout {
    PLAIN,
    SLICED,     /* part of a larger tensor: gaps between rows, odd offset */
    PERMUTED,   /* dimensions 1 and 2 swapped: rows whole, out of order */
    TRANSPOSED, /* dimensions 0 and 1 swapped: elements of a row apart */
    N_LAYOUTS
} layout;

/* What a case asks for; fields mean what the op's builder says. */
typedef struct variant {
    layout how;
    sotto_dtype dtype;
    bool matrix; /* weights that may be packed */
    int act;     /* sotto_activation */
    bool bias, residual;
    int64_t dim[4]; /* of the first source, innermost first */
    int64_t n;      /* a second size: columns of the product, keys, rows of a table .. */
    int extra;      /* what the op needs besides */
    int window;     /* of cache_attention */
    float spread;   /* magnitude of the data, 0 = 1 */
    sotto_compute compute;
    bool coarse; /* inputs are exact in bf16 */
} variant;

enum { MAX_SETS = 16 };

/* The same graph, with the same data, is built once a backend. */
typedef struct scene {
    sotto_backend *backend;
    sotto_graph *g;
    sotto_store *weights, *cache;
    sotto_arena *arena;
    sotto_plan *plan;
    uint64_t random;
    float spread;
    bool coarse;
    struct {
        sotto_tensor *t;
        sotto_dtype dtype; /* of the data */
        void *data;
        size_t bytes;
        sotto_store *store; /* NULL: an input */
    } set[MAX_SETS];
    int n_set;
    sotto_tensor *node; /* the operation under test */
    sotto_tensor *y;    /* what is compared */
    bool probing;       /* also copy the node's sources out, for the bound */
    sotto_tensor *probe[8];
} scene;

typedef void build_fn(scene *s, const variant *v);

/* Sources. Data is random in +-spread, from the scene's own sequence. */
sotto_tensor *scene_floats(scene *s, layout how, const int64_t *dim);
sotto_tensor *scene_given(scene *s, sotto_dtype dtype, int n_dims, const int64_t *dim, const void *data);
/* w [n, k] in the weights store: random numbers packed to dtype; i8 is given as f32 */
sotto_tensor *scene_weights(scene *s, sotto_dtype dtype, int64_t k, int64_t n, bool matrix);
/* [n_cell, width] in a cache store, random */
sotto_tensor *scene_cache(scene *s, sotto_dtype dtype, int64_t width, int64_t n_cell);
uint32_t scene_random(scene *s);
float scene_number(scene *s);

/* Builds, plans, fills all compute memory with NaN, sets the data and runs. Fails the cmocka test on any error; false when a
 * tensor is too large for a buffer of the device. */
bool scene_run(scene *s, sotto_backend *b, build_fn *build, const variant *v, uint64_t seed, bool probing);
/* The compared tensor's bytes after a run; free() it. */
void *scene_result(scene *s);
/* Source i of the node as contiguous f32 (NULL when absent); free() it. */
float *scene_source(scene *s, int i);
void scene_end(scene *s);

/* Runs on b and on ref and compares: i32 and copied bits exactly, f32 within the op's bound. */
void scene_compare(sotto_backend *b, sotto_backend *ref, const char *what, build_fn *build, const variant *v);

/* What the reference said is kept for the other devices; call this when no other device comes. */
void scene_forget(void);

uint64_t scene_seed(void); /* of the whole program: SOTTO_TEST_SEED or the time; printed once */

/* For each device, operation and type: how many cases ran there, and how many nodes went to another one. */
void scene_print_coverage(void);

/* Bound on the error of each element of the node's result, from its sources as contiguous f32; false: bits must agree.
 * whole_left: the device does not bring what meets i8 to bytes. */
bool bound_of(const sotto_tensor *node, float *const *src, const float *y, bool whole_left, double *bound);

#endif
