/* group.h: a group of work items, each a fiber, and what the words of the dialect call. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_GROUP_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_GROUP_H

#include "backends/gpu/api/sim/fiber.h"
#include "backends/gpu/api/sim/sim.h"

/* A tile as one lane holds it; see the layout of PTX's mma.m16n8k16. The 16 columns are two tiles of 8. */
typedef struct tile_a {
    uint32_t v[4];
} tile_a;
typedef struct tile_b {
    uint32_t v[4];
} tile_b;
typedef struct tile_c {
    float v[8];
} tile_c;

/* Where an item stands when it does not run. */
typedef enum st_sim_wait {
    ST_SIM_READY,
    ST_SIM_LEFT,
    ST_SIM_FAILED,
    ST_SIM_BARRIER, /* from here on: with the whole group */
    ST_SIM_WG_SUM,
    ST_SIM_WG_MAX,
    ST_SIM_SG_SUM, /* from here on: with the subgroup */
    ST_SIM_SG_MAX,
    ST_SIM_SG_XOR,
    ST_SIM_ROW_SUM,
    ST_SIM_ROW_MAX,
    ST_SIM_MMA
} st_sim_wait;

enum {
    ST_SIM_MAX_GROUP = 1024,
    ST_SIM_MAX_SUBGROUP = 64,
    ST_SIM_MAX_LOCAL = 32, /* arrays of local memory */
    ST_SIM_LOCAL_GAP = 32, /* bytes behind each that nobody may touch */
    ST_SIM_MAX_COPIES = 64
};

typedef struct st_sim_item {
    struct st_sim_group *group;
    int lid;
    st_fiber fiber;
    st_sim_wait wait;
    const char *file; /* of the word it waits at */
    int line;
    float value; /* given, then the result */
    int mask;
    tile_c *c;
    const tile_a *a;
    const tile_b *b;
    int n_subgroup_words; /* since the last barrier */
    size_t local_used;    /* bytes and arrays of local memory so far */
    int n_local;
    struct {
        void *to;
        const void *from;
        int batch;
    } copy[ST_SIM_MAX_COPIES]; /* asynchronous copies that have not landed */
    int n_copies, batch;
} st_sim_item;

typedef void st_sim_run_fn(const void *params, void *const *arg, st_sim_item *me);

/* One KERNEL...KERNEL_END. */
typedef struct st_sim_kernel {
    const char *name, *file;
    st_sim_run_fn *run; /* NULL: not written yet */
    int group, n_args;
    size_t param_bytes;
    unsigned char alignment[ST_GPU_MAX_ARGS];
} st_sim_kernel;

/* A launch with its memory found. */
typedef struct st_sim_work {
    const st_sim_kernel *kernel;
    uint32_t grid[3], first; /* groups, and the number of the first along x */
    uint32_t params[ST_GPU_PARAM_BYTES / 4];
    void *arg[ST_GPU_MAX_ARGS];
    const char *arg_end[ST_GPU_MAX_ARGS];
} st_sim_work;

/* What runs launches: the fibers and the local memory of one group at a time. */
typedef struct st_sim_group {
    const st_sim_work *work;
    int at[3];
    int subgroup;
    st_sim_order order;
    uint32_t turn; /* changes what "shuffled" is */
    st_fiber_pool pool;
    st_fiber scheduler;
    char *local;
    size_t local_bytes, local_dirty;   /* how much there is; how much may not be poisoned any more */
    char *local_end[ST_SIM_MAX_LOCAL]; /* of each array */
    sotto_error error;
} st_sim_group;

/* Settings may change between launches; local memory may not. */
sotto_status st_sim_group_init(st_sim_group *g, size_t local_bytes, sotto_error *err);
void st_sim_group_free(st_sim_group *g);
/* All groups of the launch. */
sotto_status st_sim_group_run(st_sim_group *g, const st_sim_work *work, sotto_error *err);

/* ---- for the words of the dialect, on a fiber ---- */

static inline st_sim_item *st_sim_self(void)
{
    return st_fiber_self();
}

/* Of the arrays so far, with gaps. */
static inline size_t st_sim_local_size(const st_sim_item *me)
{
    return me->local_used + (size_t)me->n_local * ST_SIM_LOCAL_GAP;
}

/* Ends the launch with an error that names the kernel, the group and the item; does not return. */
_Noreturn void st_sim_stop(st_sim_item *me, const char *file, int line, const char *fmt, ...) SOTTO_PRINTF(4, 5);
void *st_sim_local(st_sim_item *me, size_t bytes, const char *file, int line);
void st_sim_barrier(st_sim_item *me, const char *file, int line);
float st_sim_exchange(st_sim_item *me, st_sim_wait how, float x, int mask, const char *file, int line);
void st_sim_mma(st_sim_item *me, tile_c *c, const tile_a *a, const tile_b *b, const char *file, int line);
void st_sim_load_a(st_sim_item *me, tile_a *a, const void *ptr, int ld, const char *file, int line);
void st_sim_load_b(st_sim_item *me, tile_b *b, const void *ptr, int ld, int step, const char *file, int line);
void st_sim_c_to_a(tile_a *a, const tile_c *c);
void st_sim_copy16(st_sim_item *me, void *to, const void *from, const char *file, int line);
void st_sim_copy_wait(st_sim_item *me, int n);
/* p, which must be aligned to its size and lie in one of the launch's buffers. */
const void *st_sim_checked(st_sim_item *me, const void *p, size_t size, const char *file, int line);

/* What a subgroup whose items all wait at `how` exchanges (tile.c). */
void st_sim_resolve_tile(st_sim_wait how, st_sim_item *const *lane);

#endif
