/* metal_mock_impl.h: the objects of the stand-in. One struct serves all classes. */
#ifndef SOTTO_TESTS_BACKENDS_METAL_MOCK_IMPL_H
#define SOTTO_TESTS_BACKENDS_METAL_MOCK_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/gpu/api/sim/group.h"
#include "backends/metal_mock.h"

typedef enum kind {
    DEAD,
    CLASS,
    STRING,
    ERROR,
    URL,
    ARRAY,
    DEVICE,
    QUEUE,
    OPTIONS,
    LIBRARY,
    FUNCTION,
    PIPELINE,
    BUFFER,
    EVENT,
    COMMANDS,
    COMPUTE,
    BLIT,
    MANAGER,
    DESCRIPTOR
} kind;

enum { MAX_INDEX = 31, LANES = 32, LOCAL_BYTES = 32768 };

/* What the simulator runs, with the function that the compiler made. */
typedef struct mock_kernel {
    st_sim_kernel sim; /* first: found from it again */
    void (*entry)(void);
} mock_kernel;

typedef enum command_kind { DISPATCH, COPY, FILL, SIGNAL, WAIT } command_kind;

typedef struct command {
    command_kind kind;
    struct object *pipeline, *buffer[MAX_INDEX]; /* retained; copy: 0 to, 1 from */
    size_t offset[MAX_INDEX], bytes;
    uint32_t grid[3], params[ST_GPU_PARAM_BYTES / 4];
    uint64_t value;
    uint8_t fill;
} command;

typedef enum progress { FILLING, COMMITTED, DONE, FAILED } progress;

typedef struct object {
    kind kind;
    int references;
    bool forever; /* neither counted nor freed */
    char *text;   /* string, error, URL, function; name of class, library, device */
    long code;
    struct object *owner; /* retained */

    struct object *element[4]; /* array */
    int n;

    long family; /* device */
    bool unified;

    char *bytes; /* buffer */
    size_t size;
    bool is_private, is_wrapped;

    void *code_handle; /* library: of dlopen */
    mock_kernel kernel;
    int max_group;

    uint64_t value; /* event */

    command *list; /* command buffer */
    int n_list, cap_list;
    progress progress;
    struct object *encoder; /* that is open; not retained */
    bool fails;
    double end;

    struct object *pipeline, *bound[MAX_INDEX]; /* compute encoder */
    size_t offset[MAX_INDEX];
    uint32_t params[ST_GPU_PARAM_BYTES / 4];
    size_t param_bytes;

    bool has_object, has_destination, has_url, busy; /* capture descriptor; queue or manager at work */
} object;

extern metal_mock metal_mock_state;

void problem(const char *fmt, ...) SOTTO_PRINTF(1, 2);
object *make(kind k, const char *text);
object *hold(object *o);
void drop(object *o);
object *autoreleased(object *o);

/* What the backend asks the libraries for; objc_msgSend is assembly around mock_lookup. */
void *objc_autoreleasePoolPush(void);
void objc_autoreleasePoolPop(void *mark);
const char *sel_registerName(const char *name);
void *objc_getClass(const char *name);
void *MTLCopyAllDevices(void);
void (*mock_lookup(object *self, const char *name))(void);

/* metal_mock_run.c */
/* NULL with the compiler's words in `report`. */
void *mock_compile(const char *source, char *report, size_t size);
bool mock_kernel_init(mock_kernel *k, void *code, const char *name);
void mock_commit(object *commands);
/* Runs the queue of `commands` until they are done. */
void mock_run_until(object *commands);

#endif
