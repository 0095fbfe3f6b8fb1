/* cuda_mock.c: a libcuda.so.1 over the host's memory, for tests: devices, memory, streams and events. What is put into a
 * stream runs when somebody waits for it and not before, so that a host that does not wait is found out. */
#define _GNU_SOURCE
#include "backends/cuda_mock_impl.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

EXPORT cuda_mock cuda_mock_state;
int mock_lost[CUDA_MOCK_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static object *alive, *primary[CUDA_MOCK_DEVICES];
static mock_block *blocks;
static bool started;
enum { DEPTH = 16 };
static _Thread_local object *stack[DEPTH];
static _Thread_local int depth;

void mock_lock(void)
{
    pthread_mutex_lock(&lock);
}

void mock_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void mock_problem(const char *fmt, ...)
{
    va_list args;
    if (cuda_mock_state.problem[0])
        return;
    va_start(args, fmt);
    vsnprintf(cuda_mock_state.problem, sizeof cuda_mock_state.problem, fmt, args);
    va_end(args);
}

object *mock_new(mock_kind kind, object *context)
{
    object *o = calloc(1, sizeof *o);
    o->kind = kind;
    o->context = context;
    o->device = context ? context->device : -1;
    o->next = alive;
    alive = o;
    cuda_mock_state.n_alive += kind != FUNCTION && kind != NODE;
    return o;
}

void mock_delete(object *o)
{
    for (object *owned = alive, *next; owned; owned = next) {
        next = owned->next;
        if (owned->owner == o)
            mock_delete(owned); /* owns nothing: next stays */
    }
    object **at = &alive;
    while (*at != o)
        at = &(*at)->next;
    *at = o->next;
    cuda_mock_state.n_alive -= o->kind != FUNCTION && o->kind != NODE;
    for (int64_t i = o->done; i < o->n_command; i++)
        free(o->command[i].own);
    free(o->command);
    free(o->text);
    free(o->node);
    o->kind = DEAD;
    free(o);
}

object *mock_check(const void *handle, mock_kind kind, const char *call)
{
    for (object *o = alive; o; o = o->next)
        if (o == handle && o->kind == kind)
            return o;
    mock_problem("%s: not a handle of the right kind, or given back before", call);
    return NULL;
}

object *mock_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

int mock_enter(const char *call, bool needs_context)
{
    if (!started && strcmp(call, "cuInit") != 0) {
        mock_problem("%s before cuInit", call);
        return 3;
    }
    if (++cuda_mock_state.n_calls == cuda_mock_state.fail_at) {
        const object *context = mock_current();
        const int code = cuda_mock_state.fail_code;
        if (context && code >= 700) /* what a device does not recover from */
            mock_lost[context->device] = code;
        return code;
    }
    if (!needs_context)
        return OK;
    const object *context = mock_current();
    if (!context) {
        mock_problem("%s without a context", call);
        return INVALID_CONTEXT;
    }
    return mock_lost[context->device];
}

/* ---- devices ---- */

static const int archs[CUDA_MOCK_DEVICES] = {86, 75, 90};

EXPORT int cuInit(unsigned flags)
{
    BEGIN(cuInit, false)
    CHECK(flags == 0, "cuInit(%u)", flags)
    started = true;
    END
}

EXPORT int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return OK;
}

EXPORT int cuGetErrorName(int code, const char **name)
{
    static const struct {
        int code;
        const char *name;
    } names[] = {{NO_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
                 {LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"},
                 {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                 {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"}};
    *name = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].code == code)
            *name = names[i].name;
    return *name ? OK : INVALID_VALUE;
}

EXPORT int cuGetErrorString(int code, const char **text)
{
    *text = "as ordered";
    return code ? OK : INVALID_VALUE;
}

EXPORT int cuDeviceGetCount(int *count)
{
    BEGIN(cuDeviceGetCount, false)
    *count = CUDA_MOCK_DEVICES;
    END
}

EXPORT int cuDeviceGet(st_cu_device *device, int index)
{
    BEGIN(cuDeviceGet, false)
    CHECK(index >= 0 && index < CUDA_MOCK_DEVICES, "cuDeviceGet(%d)", index)
    *device = index + 40; /* a device is no index */
    END
}

static int index_of(st_cu_device device, const char *call)
{
    if (device >= 40 && device < 40 + CUDA_MOCK_DEVICES)
        return device - 40;
    mock_problem("%s: %d is no device", call, device);
    return 0;
}

EXPORT int cuDeviceGetName(char *out, int size, st_cu_device device)
{
    BEGIN(cuDeviceGetName, false)
    snprintf(out, (size_t)size, "Mock sm_%d", archs[index_of(device, call)]);
    END
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, st_cu_device device)
{
    BEGIN(cuDeviceTotalMem, false)
    *bytes = (size_t)(index_of(device, call) + 1) << 30;
    END
}

EXPORT int cuDeviceGetAttribute(int *value, int which, st_cu_device device)
{
    BEGIN(cuDeviceGetAttribute, false)
    const int arch = archs[index_of(device, call)];
    const int values[][2] = {{1, 1024},
                             {8, LOCAL_UNASKED},
                             {16, 4},
                             {18, cuda_mock_state.integrated},
                             {75, arch / 10},
                             {76, arch % 10},
                             {113, cuda_mock_state.integrated}};
    code = INVALID_VALUE;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (values[i][0] == which) {
            *value = values[i][1];
            code = OK;
        }
    if (code != OK)
        mock_problem("cuDeviceGetAttribute(%d)", which);
    END
}

EXPORT int cuDevicePrimaryCtxRetain(st_cu_context *context, st_cu_device device)
{
    BEGIN(cuDevicePrimaryCtxRetain, false)
    const int index = index_of(device, call);
    if (!primary[index]) {
        primary[index] = mock_new(CONTEXT, NULL);
        primary[index]->device = index;
    }
    primary[index]->references++;
    *context = (st_cu_context)primary[index];
    END
}

EXPORT int cuDevicePrimaryCtxRelease_v2(st_cu_device device)
{
    mock_lock();
    const int index = index_of(device, "cuDevicePrimaryCtxRelease");
    if (!primary[index])
        mock_problem("cuDevicePrimaryCtxRelease: once too often");
    else if (--primary[index]->references == 0) {
        for (const object *o = alive; o; o = o->next)
            if (o->context == primary[index] && o->kind != FUNCTION && o->kind != NODE)
                mock_problem("a context went before an object of kind %d in it", (int)o->kind);
        mock_delete(primary[index]);
        primary[index] = NULL;
        mock_lost[index] = OK; /* a new context works again */
    }
    mock_unlock();
    return OK;
}

EXPORT int cuCtxPushCurrent_v2(st_cu_context context)
{
    BEGIN(cuCtxPushCurrent, false)
    object *o = mock_check(context, CONTEXT, call);
    CHECK(o && depth < DEPTH, "cuCtxPushCurrent: no context, or pushed too often")
    stack[depth++] = o;
    END
}

EXPORT int cuCtxPopCurrent_v2(st_cu_context *context)
{
    mock_lock();
    if (depth == 0)
        mock_problem("cuCtxPopCurrent of nothing");
    else
        *context = (st_cu_context)stack[--depth];
    mock_unlock();
    return OK;
}

/* ---- memory ---- */

mock_block *mock_find(st_cu_address at, size_t bytes, int device)
{
    for (mock_block *b = blocks; b; b = b->next) {
        const st_cu_address begin = (st_cu_address)(uintptr_t)b->memory + (b->device >= 0 ? MOCK_BASE : 0);
        if ((b->device == device || device == -2) && at >= begin && at - begin <= b->bytes &&
            bytes <= b->bytes - (size_t)(at - begin))
            return b;
    }
    return NULL;
}

mock_block *mock_add_block(unsigned char *memory, size_t bytes, int device, bool foreign)
{
    mock_block *b = calloc(1, sizeof *b);
    *b = (mock_block){memory, bytes, device, foreign, blocks};
    blocks = b;
    cuda_mock_state.n_alive++;
    return b;
}

bool mock_remove_block(const void *memory, int device, bool foreign)
{
    for (mock_block **at = &blocks; *at; at = &(*at)->next) {
        mock_block *b = *at;
        if (b->memory == memory && (b->device >= 0) == (device >= 0) && b->foreign == foreign) {
            *at = b->next;
            if (!foreign)
                free(b->memory);
            free(b);
            cuda_mock_state.n_alive--;
            return true;
        }
    }
    return false;
}

static size_t used(int device)
{
    size_t sum = 0;
    for (const mock_block *b = blocks; b; b = b->next)
        sum += b->device == device && !b->foreign ? b->bytes : 0;
    return sum;
}

static size_t capacity(int device)
{
    return cuda_mock_state.memory ? (size_t)cuda_mock_state.memory : (size_t)(device + 1) << 30;
}

EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    BEGIN(cuMemGetInfo, true)
    *total = capacity(mock_current()->device);
    *free_bytes = *total - used(mock_current()->device);
    END
}

EXPORT int cuMemAlloc_v2(st_cu_address *address, size_t bytes)
{
    BEGIN(cuMemAlloc, true)
    const int device = mock_current()->device;
    CHECK(bytes > 0, "cuMemAlloc of nothing")
    if (used(device) > capacity(device) || bytes > capacity(device) - used(device)) {
        code = NO_MEMORY;
        break;
    }
    unsigned char *memory = aligned_alloc(256, (bytes + 255) & ~(size_t)255);
    memset(memory, 0xff, bytes);
    mock_add_block(memory, bytes, device, false);
    *address = (st_cu_address)(uintptr_t)memory + MOCK_BASE;
    END
}

EXPORT int cuMemFree_v2(st_cu_address address)
{
    mock_lock();
    int code = mock_current() ? mock_run_all() : INVALID_CONTEXT;
    if (!mock_remove_block((void *)(uintptr_t)(address - MOCK_BASE), 0, false))
        mock_problem("cuMemFree of what is not allocated");
    mock_unlock();
    return code;
}

EXPORT int cuMemAllocHost_v2(void **memory, size_t bytes)
{
    BEGIN(cuMemAllocHost, true)
    if (cuda_mock_state.no_pinning) {
        code = NO_MEMORY;
        break;
    }
    *memory = malloc(bytes);
    mock_add_block(*memory, bytes, -1, false);
    END
}

EXPORT int cuMemFreeHost(void *memory)
{
    mock_lock();
    mock_run_all();
    if (!mock_remove_block(memory, -1, false))
        mock_problem("cuMemFreeHost of what is not allocated");
    mock_unlock();
    return OK;
}

EXPORT int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags)
{
    BEGIN(cuMemHostRegister, true)
    const bool mapped = flags == 11 && cuda_mock_state.integrated; /* also mapped and read-only */
    CHECK((flags == 1 || mapped) && bytes > 0, "cuMemHostRegister of %zu bytes with flags %u", bytes, flags)
    mock_add_block(memory, bytes, -1, true);
    if (mapped)
        mock_add_block(memory, bytes, mock_current()->device, true);
    END
}

EXPORT int cuMemHostGetDevicePointer_v2(st_cu_address *address, void *memory, unsigned flags)
{
    BEGIN(cuMemHostGetDevicePointer, true)
    const st_cu_address at = (st_cu_address)(uintptr_t)memory + MOCK_BASE;
    CHECK(flags == 0 && mock_find(at, 1, mock_current()->device), "cuMemHostGetDevicePointer of what is not mapped")
    *address = at;
    END
}

EXPORT int cuMemHostUnregister(void *memory)
{
    mock_lock();
    mock_run_all();
    if (!mock_remove_block(memory, -1, true))
        mock_problem("cuMemHostUnregister of what is not registered");
    mock_remove_block(memory, 0, true); /* where it is mapped */
    mock_unlock();
    return OK;
}

/* ---- streams ---- */

command *mock_put(object *stream, command_kind kind)
{
    if (stream->n_command == stream->capacity) {
        stream->capacity = stream->capacity ? 2 * stream->capacity : 64;
        stream->command = realloc(stream->command, (size_t)stream->capacity * sizeof *stream->command);
    }
    command *c = &stream->command[stream->n_command++];
    *c = (command){.kind = kind};
    return c;
}

static unsigned char *at(st_cu_address address)
{
    return (unsigned char *)(uintptr_t)(address - MOCK_BASE);
}

static int run_one(object *stream, int64_t i)
{
    command *c = &stream->command[i];
    struct timespec now;
    int code = OK;
    if (c->kind <= FILL) {
        if ((c->kind != TO_HOST && !mock_find(c->to, c->bytes, -2)) ||
            ((c->kind == TO_HOST || c->kind == COPY) && !mock_find(c->from, c->bytes, -2))) {
            mock_problem("a copy of %zu bytes beyond what is allocated", c->bytes);
            return ILLEGAL_ADDRESS;
        }
    }
    if (c->kind == TO_DEVICE)
        memcpy(at(c->to), c->own ? c->own : c->host, c->bytes);
    else if (c->kind == TO_HOST)
        memcpy(c->host, at(c->from), c->bytes);
    else if (c->kind == COPY)
        memmove(at(c->to), at(c->from), c->bytes);
    else if (c->kind == FILL)
        memset(at(c->to), c->fill, c->bytes);
    else if (c->kind == LAUNCH)
        code = mock_launch(stream->context, c);
    else if (c->kind == RECORD) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (mock_check(c->event, EVENT, "an event in a stream"))
            c->event->seconds = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    } else if (c->kind == WAIT && c->stream)
        code = mock_run(c->stream, c->number);
    free(stream->command[i].own);
    return code;
}

int mock_run(object *stream, int64_t number)
{
    int code = mock_lost[stream->context->device];
    if (stream->done >= number)
        return code;
    if (stream->running) {
        mock_problem("two streams wait for each other");
        return LAUNCH_FAILED;
    }
    stream->running = true;
    while (code == OK && stream->done < number) {
        code = run_one(stream, stream->done++);
        if (code != OK)
            mock_lost[stream->context->device] = code;
    }
    stream->running = false;
    return code;
}

int mock_run_all(void)
{
    int code = OK;
    for (object *o = alive; o; o = o->next)
        if (o->kind == STREAM && !o->running) {
            const int mine = mock_run(o, o->n_command);
            code = code ? code : mine;
        }
    return code;
}

EXPORT int cuStreamCreate(st_cu_stream *stream, unsigned flags)
{
    BEGIN(cuStreamCreate, true)
    CHECK(flags == 1, "cuStreamCreate(%u)", flags)
    *stream = (st_cu_stream)mock_new(STREAM, mock_current());
    END
}

EXPORT int cuStreamDestroy_v2(st_cu_stream stream)
{
    mock_lock();
    object *o = mock_check(stream, STREAM, "cuStreamDestroy");
    if (o) {
        mock_run(o, o->n_command);
        for (object *other = alive; other; other = other->next) { /* what is recorded in it has happened */
            if (other->stream == o)
                other->stream = NULL;
            for (int64_t i = other->done; other->kind == STREAM && i < other->n_command; i++)
                if (other->command[i].stream == o)
                    other->command[i].stream = NULL;
        }
        mock_delete(o);
    }
    mock_unlock();
    return OK;
}

EXPORT int cuStreamSynchronize(st_cu_stream stream)
{
    BEGIN(cuStreamSynchronize, false)
    object *o = mock_check(stream, STREAM, call);
    code = o ? mock_run(o, o->n_command) : INVALID_HANDLE;
    END
}

EXPORT int cuStreamWaitEvent(st_cu_stream stream, st_cu_event event, unsigned flags)
{
    BEGIN(cuStreamWaitEvent, true)
    object *s = mock_check(stream, STREAM, call), *e = mock_check(event, EVENT, call);
    CHECK(s && e && flags == 0, "cuStreamWaitEvent: flags %u", flags)
    if (e->stream) {
        command *c = mock_put(s, WAIT);
        c->stream = e->stream;
        c->number = e->number;
    }
    END
}

EXPORT int cuEventCreate(st_cu_event *event, unsigned flags)
{
    BEGIN(cuEventCreate, true)
    CHECK(flags == 0 || flags == 2, "cuEventCreate(%u)", flags)
    object *e = mock_new(EVENT, mock_current());
    e->timing = flags == 0;
    *event = (st_cu_event)e;
    END
}

EXPORT int cuEventDestroy_v2(st_cu_event event)
{
    mock_lock();
    object *e = mock_check(event, EVENT, "cuEventDestroy");
    if (e) {
        mock_run_all();
        mock_delete(e);
    }
    mock_unlock();
    return OK;
}

EXPORT int cuEventRecord(st_cu_event event, st_cu_stream stream)
{
    BEGIN(cuEventRecord, true)
    object *s = mock_check(stream, STREAM, call), *e = mock_check(event, EVENT, call);
    CHECK(s && e && s->context == e->context, "cuEventRecord: event and stream of different contexts")
    command *c = mock_put(s, RECORD);
    c->event = e;
    e->stream = s;
    e->number = s->n_command;
    END
}

EXPORT int cuEventSynchronize(st_cu_event event)
{
    BEGIN(cuEventSynchronize, true)
    object *e = mock_check(event, EVENT, call);
    CHECK(e, "cuEventSynchronize")
    code = e->stream ? mock_run(e->stream, e->number) : OK;
    END
}

EXPORT int cuEventElapsedTime(float *ms, st_cu_event from, st_cu_event to)
{
    BEGIN(cuEventElapsedTime, true)
    const object *a = mock_check(from, EVENT, call), *b = mock_check(to, EVENT, call);
    CHECK(a && b && a->timing && b->timing, "cuEventElapsedTime of events that take no time")
    if (a->seconds <= 0 || b->seconds <= 0) {
        code = NOT_READY;
        break;
    }
    *ms = (float)((b->seconds - a->seconds) * 1e3);
    END
}

EXPORT int cuMemcpyHtoDAsync_v2(st_cu_address to, const void *from, size_t bytes, st_cu_stream stream)
{
    BEGIN(cuMemcpyHtoDAsync, true)
    object *s = mock_check(stream, STREAM, call);
    CHECK(s && mock_find(to, bytes, s->device), "cuMemcpyHtoDAsync beyond what is allocated")
    command *c = mock_put(s, TO_DEVICE);
    c->to = to;
    c->bytes = bytes;
    c->host = (void *)(uintptr_t)from;
    if (!mock_find((st_cu_address)(uintptr_t)from, bytes, -1)) { /* the driver stages what is not pinned */
        c->own = malloc(bytes);
        memcpy(c->own, from, bytes);
    }
    cuda_mock_state.n_copies++;
    END
}

EXPORT int cuMemcpyDtoHAsync_v2(void *to, st_cu_address from, size_t bytes, st_cu_stream stream)
{
    BEGIN(cuMemcpyDtoHAsync, true)
    object *s = mock_check(stream, STREAM, call);
    CHECK(s && mock_find(from, bytes, s->device), "cuMemcpyDtoHAsync beyond what is allocated")
    command *c = mock_put(s, TO_HOST);
    c->from = from;
    c->bytes = bytes;
    c->host = to;
    if (!mock_find((st_cu_address)(uintptr_t)to, bytes, -1))
        code = mock_run(s, s->n_command);
    cuda_mock_state.n_copies++;
    END
}

EXPORT int cuMemcpyDtoDAsync_v2(st_cu_address to, st_cu_address from, size_t bytes, st_cu_stream stream)
{
    BEGIN(cuMemcpyDtoDAsync, true)
    object *s = mock_check(stream, STREAM, call);
    CHECK(s && mock_find(to, bytes, s->device) && mock_find(from, bytes, s->device),
          "cuMemcpyDtoDAsync beyond what is allocated")
    command *c = mock_put(s, COPY);
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    END
}

EXPORT int cuMemcpyPeerAsync(st_cu_address to, st_cu_context to_context, st_cu_address from, st_cu_context from_context,
                             size_t bytes, st_cu_stream stream)
{
    BEGIN(cuMemcpyPeerAsync, true)
    object *s = mock_check(stream, STREAM, call);
    const object *t = mock_check(to_context, CONTEXT, call), *f = mock_check(from_context, CONTEXT, call);
    CHECK(s && t && f && mock_find(to, bytes, t->device) && mock_find(from, bytes, f->device),
          "cuMemcpyPeerAsync beyond what is allocated")
    command *c = mock_put(s, COPY);
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    cuda_mock_state.n_peer_copies++;
    END
}

EXPORT int cuMemsetD8Async(st_cu_address to, unsigned char value, size_t bytes, st_cu_stream stream)
{
    BEGIN(cuMemsetD8Async, true)
    object *s = mock_check(stream, STREAM, call);
    CHECK(s && mock_find(to, bytes, s->device), "cuMemsetD8Async beyond what is allocated")
    command *c = mock_put(s, FILL);
    c->to = to;
    c->fill = value;
    c->bytes = bytes;
    END
}
