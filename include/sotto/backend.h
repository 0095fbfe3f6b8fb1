/* backend.h: devices, buffers and plans: where tensors live and how a graph is run. */
#ifndef SOTTO_BACKEND_H
#define SOTTO_BACKEND_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum sotto_device_kind {
    SOTTO_DEVICE_CPU = 0,
    SOTTO_DEVICE_GPU = 1,
    SOTTO_DEVICE_REFERENCE = 2, /* the scalar oracle: slow, for tests */
    SOTTO_DEVICE_SIMULATOR = 3  /* a GPU played by the processor: slow, for tests */
} sotto_device_kind;

typedef struct sotto_device_info {
    char id[32];        /* "cpu", "reference", "sim", "cuda:0", "opencl:1" */
    char name[128];     /* what a person calls it */
    char features[256]; /* space-separated, e.g. "avx2 fma f16c avx512f" */
    sotto_device_kind kind;
    uint64_t memory_total; /* bytes, 0 = unknown */
    uint64_t memory_free;
    uint64_t max_buffer;    /* bytes of the largest piece of memory; 0 = no limit of its own */
    bool wraps_host_memory; /* reads memory of the host in place */
    bool unified;           /* its memory is the host's */
    bool asynchronous;      /* works while the host goes on */
    bool events;            /* another device can wait for it without the host */
    bool f16;               /* computes with 16-bit floats */
    bool matrix_units;
    int rank;             /* "auto" prefers the highest; 0 = only when it is named. The CPU has 1 */
    uint32_t api_version; /* of the backend interface it was built with */
} sotto_device_info;

/* Devices of all compiled-in backends, in order of preference. Thread-safe. */
SOTTO_API int sotto_device_count(void);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_device_get(int index, sotto_device_info *out, sotto_error *err);

/* Calls row() for every operation and each type of number (of its weights, its cache or its data) that it may meet: whether
 * the device has it. What it lacks is computed elsewhere. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_device_ops(
    int index, void (*row)(void *user, const char *op, sotto_dtype dtype, bool has), void *user, sotto_error *err);

/* A backend is a set of opened devices, each an ordered queue with its own state (thread pool, scratch), and a placement:
 * which layers of a model live on which. Devices are counted from 0: accelerators in the order named, and last the CPU,
 * which takes what the others lack; a backend on the CPU (or the reference) alone has only that. One thread at a time. */
typedef struct sotto_backend sotto_backend;

typedef enum sotto_split {
    SOTTO_SPLIT_LAYER = 0, /* layers are shared out over the accelerators */
    SOTTO_SPLIT_ROW = 1    /* every matrix is, by rows; the rest lives on the main device */
} sotto_split;

enum { SOTTO_LAYERS_ALL = 0, SOTTO_LAYERS_NONE = -1 };

typedef struct sotto_backend_options {
    /* NULL or "auto": the fastest device that works, with the CPU as the last. Else an id of sotto_device_get(), or several
     * with commas between. A named device that is not there or does not work is an error. */
    const char *device;
    int n_threads;         /* 0 = the cores at hand; 1 .. 1024, of which twice the cores are used at most */
    const char *cpu_level; /* "auto" or NULL, "portable", "v2", "v3", "avxvnni", "v4", "avx512vnni", "vnni", "amx", "neon",
                              "dotprod", "i8mm", "bf16mm" */
    sotto_logger logger;
    const char *main_device;  /* id of the device that computes what belongs to no layer; NULL = the first */
    int gpu_layers;           /* layers on accelerators: the first so many, 0 = all, negative = none */
    const char *device_split; /* shares of the accelerators in order, "3,1"; NULL = by free memory */
    sotto_split split;
    const char *kv_device; /* id of the device where caches live; NULL = with their layers */
    bool no_offload;       /* large batches do not leave the device where their weights live */
    /* An accelerator is tried before it is used: every operation with each type of number (as sotto_device_ops() names
     * them) on a small case, for which its kernels may have to be compiled. Only those for which this says true; NULL: all
     * of them. Asked by sotto_backend_open() only. Models ask for what their graphs need. */
    bool (*needs)(void *user, const char *op, sotto_dtype dtype);
    void *needs_user;
    /* Asked from the calling thread while devices are tried, and between kernels that are compiled, also when plans are
     * made later on this backend and those opened like it; while a model is loaded, between its weights, too. True ends the
     * call with SOTTO_E_ABORTED. */
    bool (*abort)(void *user);
    void *abort_user;
} sotto_backend_options;

SOTTO_API SOTTO_NODISCARD sotto_status sotto_backend_open(const sotto_backend_options *options, sotto_backend **out,
                                                          sotto_error *err);
/* Another backend on the devices of `base`, which outlives it: same placement, own queues, and memory that both read.
 * n_threads 0 and cpu_level NULL: as the base's. May be called by several threads at once. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_backend_open_like(const sotto_backend *base, int n_threads,
                                                               const char *cpu_level, sotto_backend **out,
                                                               sotto_error *err);
SOTTO_API void sotto_backend_free(sotto_backend *backend);
/* "cpu v4, 2 threads"; valid as long as the backend. */
SOTTO_API const char *sotto_backend_description(const sotto_backend *backend);
/* Threads that the CPU computes with, if that is one of its devices. */
SOTTO_API int sotto_backend_threads(const sotto_backend *backend);
SOTTO_API int sotto_backend_device_count(const sotto_backend *backend);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_backend_device(const sotto_backend *backend, int device,
                                                            sotto_device_info *out, sotto_error *err);
/* Number of the device where layer i of n lives (the output counts to the last), where its caches do, and where goes what
 * belongs to no layer. */
SOTTO_API int sotto_backend_layer_device(const sotto_backend *backend, int layer, int n_layers);
SOTTO_API int sotto_backend_cache_device(const sotto_backend *backend, int layer, int n_layers);
SOTTO_API int sotto_backend_main_device(const sotto_backend *backend);
/* True when the device was left to the library, which may then go on with fewer layers on it. */
SOTTO_API bool sotto_backend_is_auto(const sotto_backend *backend);
/* What the options' abort says now; false without one. */
SOTTO_API bool sotto_backend_aborted(const sotto_backend *backend);
/* Another number of layers on accelerators, as in the options; before anything is declared. Negative: large batches do not
 * go there either. */
SOTTO_API void sotto_backend_set_layers(sotto_backend *backend, int gpu_layers);
/* Another device for caches, -1 = with their layers; before anything is declared. */
SOTTO_API void sotto_backend_set_cache_device(sotto_backend *backend, int device);

/* The type in which the backend multiplies large float matrices fastest at an error that does not matter for networks
 * trained in f16: SOTTO_I8, SOTTO_BF16 or SOTTO_F32. */
SOTTO_API sotto_dtype sotto_backend_preferred_weights(const sotto_backend *backend);
/* The type of caches over which the backend computes attention fastest, at an error that does not matter beside that of 8-bit
 * weights: SOTTO_Q8_0 or SOTTO_BF16. */
SOTTO_API sotto_dtype sotto_backend_preferred_caches(const sotto_backend *backend);
/* Large matrices of 16 bits are multiplied fastest as SOTTO_F16 under SOTTO_COMPUTE_WORDS, else as SOTTO_BF16. */
SOTTO_API bool sotto_backend_prefers_words(const sotto_backend *backend);
/* True when the device multiplies with a stored matrix of this type. One it does not is better stored in another type: its
 * products would be computed by another device, or by the reference. */
SOTTO_API bool sotto_backend_multiplies(const sotto_backend *backend, int device, sotto_dtype dtype);

/* ---- tensors that outlive graphs: weights and caches ---- */

typedef enum sotto_usage {
    SOTTO_USAGE_WEIGHTS = 0, /* uploaded once, then read; the device may keep matrices in a layout of its own */
    SOTTO_USAGE_CACHE = 1    /* read and written by graphs; zeroed when allocated */
} sotto_usage;

/* A store is a set of named tensors in buffers of the backend's devices. Declare all tensors, ask for the size, allocate,
 * fill. After the last upload a weights store may be read by several backends of its devices at once, from any thread. */
typedef struct sotto_store sotto_store;

SOTTO_API SOTTO_NODISCARD sotto_status sotto_store_create(sotto_backend *backend, sotto_usage usage, sotto_store **out,
                                                          sotto_error *err);
SOTTO_API void sotto_store_free(sotto_store *store);
/* On which device the tensors declared next live; at first the main device. */
SOTTO_API void sotto_store_set_device(sotto_store *store, int device);
/* Declare. `matrix` says that the tensor is used as the w of sotto_linear or sotto_conv_1d (and get_rows at most), so it
 * may be repacked. Returns NULL only when the store notes a sticky error (bad shape, no memory), reported by allocate. */
SOTTO_API sotto_tensor *sotto_store_add(sotto_store *store, const char *name, sotto_dtype dtype, int n_dims,
                                        const int64_t *dim, bool matrix);
/* Where the rows of a tensor are already, contiguous and of its type, in memory of the host that stays as it is until the
 * store is freed: a mapped file. `memory` is all of it, of which whole pages around the tensor may be read. */
typedef struct sotto_host_rows {
    const void *rows, *memory;
    size_t bytes; /* of memory */
} sotto_host_rows;
/* As sotto_store_add() for a weights store. Where the device can read the rows at their place, and keeps them in no other
 * layout, they are not copied: uploading them changes nothing, and they take no memory of the store. */
SOTTO_API sotto_tensor *sotto_store_add_over(sotto_store *store, const char *name, sotto_dtype dtype, int n_dims,
                                             const int64_t *dim, bool matrix, const sotto_host_rows *at);
/* True when any rows of the tensor are read at their place; certain once the store is allocated. */
SOTTO_API bool sotto_store_in_place(const sotto_store *store, const sotto_tensor *t);
/* Bytes of tensors that one device reads at their place, or all devices together: -1. */
SOTTO_API uint64_t sotto_store_in_place_bytes(const sotto_store *store, int device);
/* The error that a declaration noted, before tensors that may be NULL are put into graphs. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_store_check(const sotto_store *store, sotto_error *err);
/* Bytes that sotto_store_allocate() will take; nothing is allocated before it. */
SOTTO_API uint64_t sotto_store_bytes(const sotto_store *store);
/* Of these, the bytes on one device. */
SOTTO_API uint64_t sotto_store_device_bytes(const sotto_store *store, int device);
/* True when rows of a matrix of this shape, declared now, would be shared out over several buffers. Such a matrix is good
 * for sotto_linear and sotto_conv_1d only, not for sotto_get_rows. */
SOTTO_API bool sotto_store_would_split(const sotto_store *store, sotto_dtype dtype, int n_dims, const int64_t *dim);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_store_allocate(sotto_store *store, sotto_error *err);
/* Fill rows [row, row + n_rows) (all dimensions above the innermost flattened) from contiguous rows of type `dtype`,
 * which may differ from the tensor's only when both are f32, f16 or bf16, or when the source is of a block type and the
 * tensor f32; a matrix of i8 takes f32, f16, bf16 and block types, and finds each row's scale. Several sources may thus
 * form one fused matrix. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_store_upload(sotto_store *store, sotto_tensor *t, int64_t row,
                                                          int64_t n_rows, sotto_dtype dtype, const void *data,
                                                          sotto_error *err);
/* Read back all rows as f32 (count elements). */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_store_download(sotto_store *store, const sotto_tensor *t, float *out,
                                                            sotto_error *err);
/* Zero every tensor of a cache store. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_store_clear(sotto_store *store, sotto_error *err);

/* ---- plans ---- */

/* A plan is a graph placed in memory on a backend. Creating it is a dry run: it tells the compute memory it needs.
 * Plans of one backend that never run at the same time may share an arena; a plan's inputs and outputs are valid until
 * another plan of the arena runs. After its first run a plan allocates nothing. */
typedef struct sotto_plan sotto_plan;
typedef struct sotto_arena sotto_arena;

SOTTO_API SOTTO_NODISCARD sotto_status sotto_arena_create(sotto_backend *backend, sotto_arena **out, sotto_error *err);
SOTTO_API void sotto_arena_free(sotto_arena *arena);
SOTTO_API uint64_t sotto_arena_bytes(const sotto_arena *arena);

/* A graph is read, never changed: it may serve several plans. It must live as long as its tensors are named in calls. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_create(sotto_backend *backend, sotto_arena *arena,
                                                         const sotto_graph *graph, sotto_plan **out, sotto_error *err);
/* The same, but the plan keeps the graph (takes ownership, also on failure). */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_create_take(sotto_backend *backend, sotto_arena *arena,
                                                              sotto_graph *graph, sotto_plan **out, sotto_error *err);
SOTTO_API void sotto_plan_free(sotto_plan *plan);
/* Bytes of activations and of the backend's scratch, known before anything is allocated. */
SOTTO_API uint64_t sotto_plan_bytes(const sotto_plan *plan);
/* Of these, the bytes on one device. */
SOTTO_API uint64_t sotto_plan_device_bytes(const sotto_plan *plan, int device);
/* Grow the arena to hold the plan (done by the first set or run otherwise). Growing moves other plans' data away. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_allocate(sotto_plan *plan, sotto_error *err);
/* Copy into an input / out of an output or input; `bytes` counts from byte `offset` of the contiguous tensor. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_set(sotto_plan *plan, sotto_tensor *t, size_t offset,
                                                      const void *data, size_t bytes, sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_get(sotto_plan *plan, const sotto_tensor *t, size_t offset, void *out,
                                                      size_t bytes, sotto_error *err);
/* An output where it lies, when that is memory that the host computes in; NULL: it has to be copied. Valid after a run, and may
 * be written to, until a plan of the same arena is set, run or allocated. */
SOTTO_API void *sotto_plan_view(sotto_plan *plan, const sotto_tensor *t);

typedef struct sotto_trace_node {
    const char *op, *name, *backend; /* valid during the call */
    sotto_dtype dtype;
    int64_t dim[4];
    double seconds;
} sotto_trace_node;

/* A run of nodes on one device and what was copied for it. */
typedef struct sotto_trace_split {
    const char *graph, *device; /* valid during the call */
    int index, n_nodes, n_copies;
    uint64_t copied_bytes;
    double copy_seconds, compute_seconds;
} sotto_trace_split;

typedef struct sotto_run_options {
    bool (*abort)(void *user); /* asked between nodes and pieces of them, from the calling thread; true stops */
    void *abort_user;
    void (*trace)(void *user, const sotto_trace_node *node); /* called for each node after the run */
    void *trace_user;
    void (*trace_split)(void *user, const sotto_trace_split *split); /* called for each split after the run */
} sotto_run_options;

/* Runs and waits. Returns SOTTO_E_ABORTED when abort said so, SOTTO_E_DEVICE or SOTTO_E_MEMORY. options may be NULL. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_run(sotto_plan *plan, const sotto_run_options *options,
                                                      sotto_error *err);
/* The same without the waiting: devices that work by themselves may not be done yet. Until sotto_plan_wait() the plan's
 * inputs may be set for the next run; getting an output waits. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_submit(sotto_plan *plan, const sotto_run_options *options,
                                                         sotto_error *err);
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_wait(sotto_plan *plan, sotto_error *err);
/* What the scheduler decided, as text, piece by piece to `write`: where each node is assigned and why, splits, copies, and
 * memory by device. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_describe(const sotto_plan *plan,
                                                           void (*write)(void *user, const char *text, size_t n),
                                                           void *user, sotto_error *err);
/* The graph in Graphviz's language, piece by piece to `write`. */
SOTTO_API SOTTO_NODISCARD sotto_status sotto_plan_dot(const sotto_plan *plan,
                                                      void (*write)(void *user, const char *text, size_t n), void *user,
                                                      sotto_error *err);

#ifdef __cplusplus
}
#endif
#endif
