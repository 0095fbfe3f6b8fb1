/* cpu_chain.h: operations that follow each other and work row by row, done for one block of rows after the other: what one
 * of them writes the next finds in the second-level cache, and results that nobody else reads never get to memory. The
 * numbers are those that the operations give one by one. */
#ifndef SOTTO_SRC_BACKENDS_CPU_CPU_CHAIN_H
#define SOTTO_SRC_BACKENDS_CPU_CPU_CHAIN_H

#include "backends/cpu/cpu_exec.h"

/* Where an operation of a chain finds and leaves its rows: floats into the block's scratch, or -1: in the tensor. */
typedef struct st_cpu_link {
    const sotto_tensor *node;
    ptrdiff_t in, residual, out;
    bool packed; /* the product before has packed the same left side in the same way */
} st_cpu_link;

typedef struct st_cpu_chain {
    st_cpu_link *link;
    int n;
    int64_t rows, units;
    int tile, most;       /* rows of a unit, and units of a block at most */
    size_t block_floats;  /* results that stay in scratch */
    size_t thread_floats; /* all scratch of a thread */
    size_t shared_floats; /* what an attention behind it finds packed */
    int attention;        /* the node of that, which is left to do; -1: none */
} st_cpu_chain;

/* The chain that begins at node `first`: fills `link`, which has room for all nodes from there, and *out. Returns how many
 * nodes of the plan it takes; 0: none begins there. */
int st_cpu_chain_find(const st_cpu_kernels *k, const st_exec_plan *plan, int first, st_cpu_link *link,
                      st_cpu_chain *out);
void st_cpu_chain_run(st_cpu_run *r, const st_cpu_chain *c);

/* Some rows of a linear node (cpu_ops_product.c): row 0 of each pointer is the first of them. */
typedef struct st_cpu_linear_rows {
    const float *x, *residual;
    float *out;
    ptrdiff_t x_stride, residual_stride; /* floats */
    int n;                               /* ST_CPU_ROW_BLOCK at most */
    bool packed;                         /* the rows lie packed in scratch */
} st_cpu_linear_rows;

/* A linear node with packed weights and so many rows that these are shared out, evenly spaced. */
bool st_cpu_linear_in_rows(const sotto_tensor *node);
int st_cpu_linear_tile(const st_cpu_kernels *k, const sotto_tensor *node);
size_t st_cpu_linear_scratch(const sotto_tensor *node);
/* The packed rows of one serve the other. */
bool st_cpu_linear_packs_alike(const sotto_tensor *a, const sotto_tensor *b);
/* An attention node (cpu_ops_attention.c) whose queries, keys and values are columns of `product`, rows [n, dim 0]: what its first
 * phase would pack, and the queries too, can be packed by blocks of rows that begin at multiples of `tile`. Its phase
 * ST_CPU_ATTENTION_PACKED does the rest. */
enum { ST_CPU_ATTENTION_PACKED = 2 };
bool st_cpu_attention_packs(const st_cpu_kernels *k, const sotto_tensor *node, const sotto_tensor *product, int tile);
size_t st_cpu_attention_shared(const st_cpu_kernels *k, const sotto_tensor *node);
/* Rows [row, row + n) of the product, which lie at x, into the shared area of a run. */
void st_cpu_attention_pack_block(const st_cpu_run *r, const sotto_tensor *node, const float *x, ptrdiff_t stride,
                                 int64_t row, int n);
void st_cpu_linear_run(const st_cpu_kernels *k, const sotto_tensor *node, const st_cpu_linear_rows *rows,
                       float *scratch);

#endif
