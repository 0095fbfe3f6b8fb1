/* cuda_mock_impl.h: the objects of the stand-in. */
#ifndef SOTTO_TESTS_BACKENDS_CUDA_MOCK_IMPL_H
#define SOTTO_TESTS_BACKENDS_CUDA_MOCK_IMPL_H

#include "backends/cuda_mock.h"
#include "backends/gpu/api/cuda/driver.h"
#include "backends/gpu/api/sim/group.h"

enum { LOCAL_BYTES = 163 * 1024, LOCAL_UNASKED = 48 * 1024 };
/* CUresult */
enum {
    OK = 0,
    INVALID_VALUE = 1,
    NO_MEMORY = 2,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY = 209,
    UNSUPPORTED_PTX = 222,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    LAUNCH_FAILED = 719
};

#define EXPORT __attribute__((visibility("default")))
#define FUNCTION(field, name, params) EXPORT int name params;
ST_CUDA_FUNCTIONS(FUNCTION)
ST_CUDA_OPTIONAL(FUNCTION)
#undef FUNCTION

/* One struct for every handle. */
typedef enum mock_kind { DEAD, CONTEXT, STREAM, EVENT, MODULE, FUNCTION, GRAPH, NODE, EXEC } mock_kind;

typedef enum command_kind { TO_DEVICE, TO_HOST, COPY, FILL, LAUNCH, RECORD, WAIT } command_kind;

typedef struct command {
    command_kind kind;
    st_cu_address to, from;
    void *host; /* of a copy: pinned memory that is read or written when the command runs, or `own` */
    unsigned char *own;
    size_t bytes;
    int fill, kernel; /* index in st_gpu_kernels */
    uint32_t grid[3], params[ST_GPU_PARAM_BYTES / 4];
    st_cu_address arg[ST_GPU_MAX_ARGS];
    struct object *event, *stream; /* waited for: until command number `number` of the stream has run */
    int64_t number;
    double *when; /* of a record */
} command;

typedef struct object {
    mock_kind kind;
    int device;
    struct object *context;
    struct object *owner; /* of a function its module, of a node its graph: it goes with it */
    int references;       /* of a context */
    /* stream */
    command *command;
    int64_t n_command, capacity, done;
    bool running;
    /* event */
    struct object *stream;
    int64_t number;
    double seconds;
    bool timing;
    /* module, function */
    char *text; /* PTX, or an ELF file of `size` bytes */
    size_t size;
    bool machine_code;
    unsigned char *global[8]; /* variables of the module, blocks of device memory */
    int n_global, kernel, local_bytes, local_allowed;
    /* graph, exec: its launches */
    command *node;
    int64_t n_node, node_capacity, n_edge;
    struct object *last;
    struct object *next; /* of those alive */
} object;

typedef struct mock_block {
    unsigned char *memory;
    size_t bytes;
    int device;   /* -1: pinned host memory, or registered */
    bool foreign; /* registered, not allocated here */
    struct mock_block *next;
} mock_block;

extern EXPORT cuda_mock cuda_mock_state;
extern int mock_lost[CUDA_MOCK_DEVICES]; /* the CUresult of everything from here on, or 0 */

void mock_problem(const char *fmt, ...) SOTTO_PRINTF(1, 2);
object *mock_new(mock_kind kind, object *context);
void mock_delete(object *o);
/* NULL, and a problem, when it is not alive or of another kind. */
object *mock_check(const void *handle, mock_kind kind, const char *call);
object *mock_current(void);
/* What every call begins with: failures to order, a current context, a device that works. */
int mock_enter(const char *call, bool needs_context);
mock_block *mock_find(st_cu_address at, size_t bytes, int device);
#define MOCK_BASE 0x100000000000000ull /* device addresses are those of host memory plus this */

command *mock_put(object *stream, command_kind kind);
/* Runs commands of the stream until `number` of them have. */
int mock_run(object *stream, int64_t number);
int mock_run_all(void);
int mock_launch(object *context, const command *c);

mock_block *mock_add_block(unsigned char *memory, size_t bytes, int device, bool foreign);
bool mock_remove_block(const void *memory, int device, bool foreign);
void mock_lock(void);
void mock_unlock(void);

/* Every function of the driver is BEGIN(name, whether it needs a context) ... END. */
#define BEGIN(name, needs_context)              \
    mock_lock();                                \
    const char *const call = #name;             \
    int code = mock_enter(call, needs_context); \
    if (code == OK)                             \
        do {
#define END        \
    }              \
    while (0)      \
        ;          \
    mock_unlock(); \
    return code;
#define CHECK(condition, ...)      \
    if (!(condition)) {            \
        mock_problem(__VA_ARGS__); \
        code = INVALID_VALUE;      \
        break;                     \
    }

#endif
