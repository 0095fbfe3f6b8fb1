/* runtime_impl.h: backends, stores and arenas as the runtime's own files see them. */
#ifndef SOTTO_SRC_RUNTIME_RUNTIME_IMPL_H
#define SOTTO_SRC_RUNTIME_RUNTIME_IMPL_H

#include "runtime/backend_impl.h"

/* An opened device: what runs nodes. */
typedef struct st_runner {
    const st_backend_impl *impl; /* NULL: not opened */
    void *state;
    int index; /* of the device, counted by impl */
    char id[32];
    double share; /* of layers or rows; 0 = no accelerator. Those of all devices add up to 1 or 0 */
    bool busy;    /* something may be queued */
} st_runner;

struct sotto_backend {
    st_runner *device;      /* [n_device + 1]; the last is the reference, for operations that no other has, opened
                                when first needed */
    int n_device, main, kv; /* kv -1: with the layers */
    int host;               /* the device that allocates host memory; -1: none has such */
    int gpu_layers;         /* as in the options */
    sotto_split split;
    bool no_offload, is_auto;
    int n_threads;
    char cpu_level[16];
    sotto_logger logger;
    bool (*abort)(void *user); /* as in the options */
    void *abort_user;
    char description[192];
};

/* A device to open, by implementation: how tests get devices that are in no list. */
typedef struct st_device_pick {
    const st_backend_impl *impl;
    int index;
} st_device_pick;

typedef struct st_ranked_device {
    st_device_pick pick;
    int rank, order;
} st_ranked_device;

/* Device `index` counted over all backends of this interface version; NULL: there are fewer. */
const st_backend_impl *st_registry_find(int index, int *own);
const st_backend_impl *st_registry_last(void);
/* The devices that auto may take, those with a rank: the first `most` of them, and how many there are. Drivers that have none
 * here are not loaded for it. */
int st_registry_ranked(st_ranked_device *out, int most);
/* The device of a name ("cuda" is "cuda:0"). Only its own backend is asked, so that no other driver is opened. */
bool st_registry_named(const char *id, size_t n_id, const st_backend_impl **impl, int *own);
/* Why a device of such a name ("cuda:0") is not there, when its backend knows; else "". */
void st_registry_why_none(const char *id, size_t n_id, char *out, size_t size);
/* The devices of a list with commas, and the last resort behind them; *out is freed by the caller. */
sotto_status st_registry_pick(const char *list, st_device_pick **out, int *n, sotto_error *err);
sotto_status st_backend_open_auto(const sotto_backend_options *options, sotto_backend **out, sotto_error *err);
sotto_status st_backend_set_placement(sotto_backend *b, const sotto_backend_options *options, sotto_error *err);
/* Opens these and no others; shares, main device and the rest come from the options. */
sotto_status st_backend_open_picks(const st_device_pick *picks, int n, const sotto_backend_options *options,
                                   sotto_backend **out, sotto_error *err);

/* Opens the reference behind the last device. */
sotto_status st_backend_fallback(sotto_backend *backend, sotto_error *err);
st_device_traits st_runner_traits(const st_runner *r);
/* The op is there, for this device in particular. */
bool st_runner_supports(const st_runner *r, const sotto_tensor *node);
sotto_status st_runner_sync(st_runner *r, sotto_error *err);
/* Devices that read each other's memory are one space, named by the device that allocates it: the host's, or one alone. */
int st_backend_space(const sotto_backend *b, int device);
/* Of a buffer, which may be another backend's; -1: of none of these devices. */
int st_backend_space_of(const sotto_backend *b, const st_buffer *buffer);
/* The device whose implementation made the buffer; -1: none. */
int st_backend_device_of(const sotto_backend *b, const st_buffer *buffer);

/* Memory of a space: one range of addresses from 0 on, cut at multiples of `chunk` into buffers. */
typedef struct st_space {
    st_buffer **part; /* the same structs for life: tensors point at them while their memory is replaced */
    int64_t n_part, cap_part;
    size_t chunk;
} st_space;

struct sotto_arena {
    sotto_backend *backend;
    st_space *space; /* [n_device] */
    uint64_t epoch;  /* how often memory was replaced */
};

/* A buffer of the device with all that the runtime notes on it. */
sotto_status st_buffer_allocate(const st_runner *r, st_buffer_usage usage, size_t size, st_buffer *buffer,
                                sotto_error *err);
/* The buffer struct of chunk number `part`; NULL without memory. */
st_buffer *st_arena_part(sotto_arena *arena, int space, int64_t part);
/* At least `size` bytes; what was in a buffer is lost when it grows. */
sotto_status st_arena_reserve(sotto_arena *arena, int space, size_t size, sotto_error *err);

/* Fills all memory with NaN, for tests: nothing may be read before it is written. */
sotto_status st_arena_poison(sotto_arena *arena, sotto_error *err);

/* The pieces of a matrix that is kept in several buffers by rows: `extra` of a tensor with ST_TENSOR_SPLIT. */
typedef struct st_split {
    int n;
    struct st_piece {
        sotto_tensor *t; /* a stored matrix */
        int64_t row;     /* its first */
    } * piece;
} st_split;

/* Result of a node that the result may share memory with, element by element. */
int st_op_in_place_source(const sotto_tensor *node);

static inline sotto_tensor *st_home(sotto_tensor *t)
{
    return t->view_of ? t->view_of : t;
}

/* Number of the source that the node writes into, -1 = it has memory of its own. */
static inline int st_written_source(const sotto_tensor *node)
{
    return node->op == ST_OP_SET_ROWS ? 0 : node->op == ST_OP_COPY && node->src[1] ? 1 : -1;
}

#endif
