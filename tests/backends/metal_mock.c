/* metal_mock.c: a stand-in for Apple's Objective-C runtime and Metal, as a shared object that the backend opens on Linux.
 * It knows the messages that the backend sends and no others, watches how they are used, counts who owns what, and makes a
 * chosen call fail. There are three devices: one that is no Apple GPU, one with the host's memory and one without. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/metal_mock_impl.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct size3 {
    unsigned long width, height, depth;
} size3;
typedef struct range {
    unsigned long location, length;
} range;
typedef const char *selector;

enum { MODE_PRIVATE = 32, MAX_BUFFER = 1 << 30, PAGE = 16384, MAX_DEAD = 4096, MAX_POOL = 65536 };

EXPORT metal_mock metal_mock_state = {.fail_code = 4};
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void unlock(const int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&lock);
}
#define LOCKED __attribute__((cleanup(unlock), unused)) const int locked_ = pthread_mutex_lock(&lock);

void problem(const char *fmt, ...)
{
    LOCKED
    if (metal_mock_state.problem[0])
        return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(metal_mock_state.problem, sizeof metal_mock_state.problem, fmt, args);
    va_end(args);
}

static bool fails(void)
{
    LOCKED
    return ++metal_mock_state.n_calls == metal_mock_state.fail_at;
}

/* ---- objects ---- */

static const char *const kind_name[] = {"(freed)",
                                        "Class",
                                        "NSString",
                                        "NSError",
                                        "NSURL",
                                        "NSArray",
                                        "MTLDevice",
                                        "MTLCommandQueue",
                                        "MTLCompileOptions",
                                        "MTLLibrary",
                                        "MTLFunction",
                                        "MTLComputePipelineState",
                                        "MTLBuffer",
                                        "MTLSharedEvent",
                                        "MTLCommandBuffer",
                                        "MTLComputeCommandEncoder",
                                        "MTLBlitCommandEncoder",
                                        "MTLCaptureManager",
                                        "MTLCaptureDescriptor"};

object *make(kind k, const char *text)
{
    LOCKED
    object *o = calloc(1, sizeof *o);
    o->kind = k;
    o->references = 1;
    o->text = text ? strdup(text) : NULL;
    metal_mock_state.n_alive++;
    return o;
}

object *hold(object *o)
{
    LOCKED
    if (!o)
        return NULL;
    o->references++;
    metal_mock_state.n_alive += o->forever;
    return o;
}

static void drop_command(const command *c)
{
    drop(c->pipeline);
    for (int i = 0; i < MAX_INDEX; i++)
        drop(c->buffer[i]);
}

/* Remembered for a while, so that a message to one shows. */
static void bury(object *o)
{
    static object *dead[MAX_DEAD];
    static int next;
    free(dead[next]);
    dead[next] = o;
    next = (next + 1) % MAX_DEAD;
    *o = (object){.kind = DEAD};
}

void drop(object *o)
{
    LOCKED
    if (!o)
        return;
    if (o->kind == DEAD || o->references < 1) {
        problem("a release too many");
        return;
    }
    if (--o->references > 0) {
        metal_mock_state.n_alive -= o->forever;
        return;
    }
    if (o->forever) {
        problem("%s %s is released more than it was retained", kind_name[o->kind], o->text);
        return;
    }
    if ((o->kind == COMPUTE || o->kind == BLIT) && o->owner->encoder == o)
        problem("%s is released without endEncoding", kind_name[o->kind]);
    for (int i = 0; i < o->n_list; i++)
        drop_command(&o->list[i]);
    for (int i = 0; i < o->n; i++)
        drop(o->element[i]);
    for (int i = 0; i < MAX_INDEX; i++)
        drop(o->bound[i]);
    drop(o->pipeline);
    drop(o->owner);
    if (!o->is_wrapped)
        free(o->bytes);
    free(o->list);
    free(o->text);
    metal_mock_state.n_alive--;
    bury(o);
}

static object device[] = {
    {.kind = DEVICE, .references = 1, .forever = true, .text = "Other (mock)", .family = 2, .unified = false},
    {.kind = DEVICE, .references = 1, .forever = true, .text = "Apple M3 (mock)", .family = 1009, .unified = true},
    {.kind = DEVICE, .references = 1, .forever = true, .text = "Apple M1 without shared memory (mock)", .family = 1007},
};
static object manager = {.kind = MANAGER, .references = 1, .forever = true, .text = ""};
static object class_of[] = {
    {.kind = CLASS, .references = 1, .forever = true, .text = "NSString"},
    {.kind = CLASS, .references = 1, .forever = true, .text = "NSURL"},
    {.kind = CLASS, .references = 1, .forever = true, .text = "MTLCompileOptions"},
    {.kind = CLASS, .references = 1, .forever = true, .text = "MTLCaptureManager"},
    {.kind = CLASS, .references = 1, .forever = true, .text = "MTLCaptureDescriptor"},
};

/* ---- pools ---- */

static _Thread_local struct {
    object *object[MAX_POOL];
    int n, depth;
} pool;

EXPORT void *objc_autoreleasePoolPush(void)
{
    pool.depth++;
    return (void *)(intptr_t)(pool.n + 1);
}

EXPORT void objc_autoreleasePoolPop(void *mark)
{
    const int n = (int)(intptr_t)mark - 1;
    if (--pool.depth < 0 || n < 0 || n > pool.n)
        problem("a pool is popped that was not pushed");
    while (pool.n > n)
        drop(pool.object[--pool.n]);
}

object *autoreleased(object *o)
{
    if (pool.depth == 0 || pool.n == MAX_POOL)
        problem("%s is autoreleased without a pool", kind_name[o->kind]);
    else
        pool.object[pool.n++] = o;
    return o;
}

static void set_error(object **where, const char *text, long code)
{
    if (!where)
        return;
    object *e = make(ERROR, text);
    e->code = code;
    *where = autoreleased(e);
}

/* ---- messages; the name after the first _ is that of the selector's first word ---- */

static object *any_retain(object *self)
{
    return hold(self);
}

static void any_release(object *self)
{
    drop(self);
}

static object *class_new(object *self)
{
    if (fails())
        return NULL;
    return make(strcmp(self->text, "MTLCompileOptions") == 0 ? OPTIONS : DESCRIPTOR, NULL);
}

static object *class_stringWithUTF8String(object *self, selector s, const char *text)
{
    (void)self, (void)s;
    return fails() ? NULL : autoreleased(make(STRING, text));
}

static object *class_fileURLWithPath(object *self, selector s, object *path)
{
    (void)self, (void)s;
    return autoreleased(make(URL, path->text));
}

static object *class_sharedCaptureManager(object *self)
{
    (void)self;
    return &manager;
}

static const char *string_UTF8String(object *self)
{
    return self->text;
}

static object *error_localizedDescription(object *self)
{
    return autoreleased(make(STRING, self->text));
}

static long error_code(object *self)
{
    return self->code;
}

static unsigned long array_count(object *self)
{
    return (unsigned long)self->n;
}

static object *array_objectAtIndex(object *self, selector s, unsigned long i)
{
    (void)s;
    if (i >= (unsigned long)self->n)
        problem("element %lu of an array of %d", i, self->n);
    return self->element[i];
}

static object *device_name(object *self)
{
    return autoreleased(make(STRING, self->text));
}

static bool device_supportsFamily(object *self, selector s, long family)
{
    (void)s;
    return family >= 1001 && family <= self->family;
}

static bool device_hasUnifiedMemory(object *self)
{
    return self->unified;
}

static uint64_t device_recommendedMaxWorkingSetSize(object *self)
{
    (void)self;
    return 12ull << 30;
}

static unsigned long device_currentAllocatedSize(object *self)
{
    (void)self;
    return 1ul << 30;
}

static unsigned long device_maxBufferLength(object *self)
{
    (void)self;
    return MAX_BUFFER;
}

static unsigned long device_maxThreadgroupMemoryLength(object *self)
{
    (void)self;
    return LOCAL_BYTES;
}

static object *device_newCommandQueue(object *self)
{
    if (fails())
        return NULL;
    object *q = make(QUEUE, NULL);
    q->owner = hold(self);
    return q;
}

static object *device_newSharedEvent(object *self)
{
    (void)self;
    return fails() ? NULL : make(EVENT, NULL);
}

static object *make_buffer(object *self, unsigned long size, unsigned long options)
{
    LOCKED
    if (options != 0 && options != MODE_PRIVATE)
        problem("buffer options %lu", options);
    if (size == 0 || size > MAX_BUFFER)
        problem("a buffer of %lu bytes", size);
    if (fails())
        return NULL;
    object *b = make(BUFFER, NULL);
    b->owner = hold(self);
    b->size = size;
    b->is_private = options == MODE_PRIVATE;
    return b;
}

static object *device_newBufferWithLength(object *self, selector s, unsigned long size, unsigned long options)
{
    (void)s;
    object *b = make_buffer(self, size, options);
    if (!b)
        return NULL;
    b->bytes = malloc(size);
    memset(b->bytes, 0xff, size);
    *(b->is_private ? &metal_mock_state.private_bytes : &metal_mock_state.shared_bytes) += (long)size;
    return b;
}

static object *device_newBufferWithBytes(object *self, selector s, const void *bytes, unsigned long size,
                                         unsigned long options)
{
    object *b = device_newBufferWithLength(self, s, size, options);
    if (b)
        memcpy(b->bytes, bytes, size);
    if (options != 0)
        problem("a private buffer with bytes of the host");
    return b;
}

static object *device_newBufferWithBytesNoCopy(object *self, selector s, void *bytes, unsigned long size,
                                               unsigned long options, void *deallocator)
{
    (void)s;
    if (deallocator || options != 0 || (uintptr_t)bytes % PAGE != 0 || size % PAGE != 0)
        problem("a buffer over %lu bytes at %p that are not whole pages", size, bytes);
    object *b = make_buffer(self, size, options);
    if (!b)
        return NULL;
    b->bytes = bytes;
    b->is_wrapped = true;
    metal_mock_state.wrapped_bytes += (long)size;
    return b;
}

static object *device_newLibraryWithSource(object *self, selector s, object *source, object *options, object **error)
{
    LOCKED(void) s;
    char report[2000] = "injected failure";
    if (options->kind != OPTIONS || options->value != 7)
        problem("a library without a language version or with fast mathematics");
    void *const code = fails() ? NULL : mock_compile(source->text, report, sizeof report);
    if (!code) {
        set_error(error, report, 3);
        return NULL;
    }
    object *l = make(LIBRARY, NULL);
    l->owner = hold(self);
    l->code_handle = code;
    return l;
}

static bool options_respondsToSelector(object *self, selector s, selector asked)
{
    (void)self, (void)s;
    return strcmp(asked, "setMathMode:") != 0 || !metal_mock_state.old_system;
}

/* value: 1 the language is set, 2 and 4 the mathematics are */
static void options_setLanguageVersion(object *self, selector s, unsigned long version)
{
    (void)s;
    self->value |= version == (2ul << 16) + 4;
}

static void options_setMathMode(object *self, selector s, long mode)
{
    (void)s;
    if (metal_mock_state.old_system)
        problem("setMathMode: on a system without it");
    self->value |= mode == 0 ? 6 : 0;
}

static void options_setFastMathEnabled(object *self, selector s, bool fast)
{
    (void)s;
    self->value |= fast ? 0 : 6;
}

static object *library_newFunctionWithName(object *self, selector s, object *name)
{
    (void)s;
    object *f = make(FUNCTION, name->text);
    f->owner = hold(self);
    const bool there = mock_kernel_init(&f->kernel, self->code_handle, name->text);
    if (fails() || !there) {
        drop(f);
        return NULL;
    }
    return f;
}

static object *device_newComputePipelineState(object *self, selector s, object *function, object **error)
{
    (void)s, (void)self;
    if (fails()) {
        set_error(error, "injected failure", 2);
        return NULL;
    }
    object *p = make(PIPELINE, NULL);
    p->owner = hold(function);
    p->kernel = function->kernel;
    return p;
}

static unsigned long pipeline_maxTotalThreadsPerThreadgroup(object *self)
{
    return (unsigned long)self->kernel.sim.group;
}

static unsigned long pipeline_threadExecutionWidth(object *self)
{
    (void)self;
    return LANES;
}

static void *buffer_contents(object *self)
{
    if (self->is_private)
        problem("the contents of a private buffer");
    return self->is_private ? NULL : self->bytes;
}

/* ---- command buffers and encoders ---- */

static object *queue_commandBuffer(object *self)
{
    if (fails())
        return NULL;
    object *c = make(COMMANDS, NULL);
    c->owner = hold(self);
    return autoreleased(c);
}

static object *begin_encoder(object *self, kind k)
{
    if (self->progress != FILLING || self->encoder)
        problem("an encoder of a command buffer that is committed or has another one open");
    if (fails())
        return NULL;
    object *e = make(k, NULL);
    e->owner = hold(self);
    self->encoder = e;
    return autoreleased(e);
}

static object *commands_computeCommandEncoder(object *self)
{
    return begin_encoder(self, COMPUTE);
}

static object *commands_blitCommandEncoder(object *self)
{
    return begin_encoder(self, BLIT);
}

static void encoder_endEncoding(object *self)
{
    if (self->owner->encoder != self)
        problem("endEncoding twice");
    self->owner->encoder = NULL;
}

static command *append(object *commands, command_kind k)
{
    if (commands->progress != FILLING)
        problem("a command after the commit");
    if (commands->n_list == commands->cap_list) {
        commands->cap_list = commands->cap_list * 2 + 16;
        commands->list = realloc(commands->list, (size_t)commands->cap_list * sizeof *commands->list);
    }
    command *c = &commands->list[commands->n_list++];
    memset(c, 0, sizeof *c);
    c->kind = k;
    return c;
}

static void commands_commit(object *self)
{
    LOCKED
    if (self->encoder)
        problem("a commit with an open encoder");
    if (self->progress != FILLING)
        problem("a commit for the second time");
    self->fails = fails();
    mock_commit(self);
}

static void commands_waitUntilCompleted(object *self)
{
    LOCKED
    mock_run_until(self);
}

static unsigned long commands_status(object *self)
{
    LOCKED
    static const unsigned long value[] = {0, 2, 4, 5};
    return value[self->progress];
}

static object *commands_error(object *self)
{
    if (self->progress != FAILED)
        return NULL;
    object *e = make(ERROR, self->text);
    e->code = self->code;
    return autoreleased(e);
}

static double commands_GPUEndTime(object *self)
{
    return self->end;
}

static void signal_or_wait(object *self, command_kind k, object *event, uint64_t value)
{
    if (self->encoder)
        problem("an event with an open encoder");
    command *c = append(self, k);
    c->buffer[0] = hold(event);
    c->value = value;
}

static void commands_encodeSignalEvent(object *self, selector s, object *event, uint64_t value)
{
    (void)s;
    signal_or_wait(self, SIGNAL, event, value);
}

static void commands_encodeWaitForEvent(object *self, selector s, object *event, uint64_t value)
{
    (void)s;
    signal_or_wait(self, WAIT, event, value);
}

/* Buffers of one device are strangers to another. */
static void check_home(const object *encoder, const object *buffer)
{
    if (buffer && buffer->owner != encoder->owner->owner->owner)
        problem("a buffer of another device");
}

/* What was bound for the last pipeline does not count for this one. */
static void compute_setComputePipelineState(object *self, selector s, object *pipeline)
{
    (void)s;
    if (!pipeline || pipeline->kind != PIPELINE) {
        problem("no pipeline");
        return;
    }
    drop(self->pipeline);
    self->pipeline = hold(pipeline);
    for (int i = 0; i < MAX_INDEX; i++) {
        drop(self->bound[i]);
        self->bound[i] = NULL;
    }
    self->param_bytes = 0;
}

static void compute_setBytes(object *self, selector s, const void *bytes, unsigned long size, unsigned long index)
{
    (void)s;
    if (index != 0 || size > sizeof self->params) {
        problem("%lu bytes of parameters at index %lu", size, index);
        return;
    }
    memcpy(self->params, bytes, size);
    self->param_bytes = size;
}

static void compute_setBuffer(object *self, selector s, object *buffer, unsigned long offset, unsigned long index)
{
    (void)s;
    if (!buffer || buffer->kind != BUFFER || index >= MAX_INDEX || offset > buffer->size || offset % 2 != 0) {
        problem("buffer %p with offset %lu at index %lu", (void *)buffer, offset, index);
        return;
    }
    check_home(self, buffer);
    drop(self->bound[index]);
    self->bound[index] = hold(buffer);
    self->offset[index] = offset;
}

static void compute_dispatchThreadgroups(object *self, selector s, size3 grid, size3 group)
{
    LOCKED(void) s;
    if (!self->pipeline) {
        problem("a dispatch without a pipeline");
        return;
    }
    const st_sim_kernel *k = &self->pipeline->kernel.sim;
    if (self->param_bytes != k->param_bytes)
        problem("%s: %zu bytes of parameters, it has %zu", k->name, self->param_bytes, k->param_bytes);
    if (group.width != (unsigned long)k->group || group.height != 1 || group.depth != 1)
        problem("%s: groups of %lu x %lu x %lu, it has %d", k->name, group.width, group.height, group.depth, k->group);
    if (grid.width * grid.height * grid.depth == 0)
        problem("%s: an empty grid", k->name);
    for (int i = 0; i < MAX_INDEX; i++)
        if ((self->bound[i] != NULL) != (i >= 1 && i <= k->n_args))
            problem("%s: %s at index %d, it has %d", k->name, self->bound[i] ? "a buffer" : "no buffer", i, k->n_args);
    if (metal_mock_state.problem[0])
        return;
    command *c = append(self->owner, DISPATCH);
    c->pipeline = hold(self->pipeline);
    memcpy(c->params, self->params, sizeof c->params);
    c->grid[0] = (uint32_t)grid.width;
    c->grid[1] = (uint32_t)grid.height;
    c->grid[2] = (uint32_t)grid.depth;
    for (int i = 1; i <= k->n_args; i++) {
        c->buffer[i] = hold(self->bound[i]);
        c->offset[i] = self->offset[i];
    }
}

static void check_blit(const object *encoder, const object *buffer, unsigned long offset, unsigned long size)
{
    if (!buffer || buffer->kind != BUFFER || offset > buffer->size || size > buffer->size - offset)
        problem("a blit of %lu bytes at %lu beyond its buffer", size, offset);
    if (offset % 4 != 0 || size % 4 != 0 || size == 0)
        problem("a blit of %lu bytes at %lu", size, offset);
    check_home(encoder, buffer);
}

static void blit_copyFromBuffer(object *self, selector s, object *from, unsigned long from_offset, object *to,
                                unsigned long to_offset, unsigned long size)
{
    (void)s;
    check_blit(self, from, from_offset, size);
    check_blit(self, to, to_offset, size);
    command *c = append(self->owner, COPY);
    c->buffer[0] = hold(to);
    c->buffer[1] = hold(from);
    c->offset[0] = to_offset;
    c->offset[1] = from_offset;
    c->bytes = size;
}

static void blit_fillBuffer(object *self, selector s, object *buffer, range r, uint8_t value)
{
    (void)s;
    check_blit(self, buffer, r.location, r.length);
    command *c = append(self->owner, FILL);
    c->buffer[0] = hold(buffer);
    c->offset[0] = r.location;
    c->bytes = r.length;
    c->fill = value;
}

/* ---- captures ---- */

static bool manager_supportsDestination(object *self, selector s, long destination)
{
    (void)self, (void)s;
    return destination == 2;
}

static void descriptor_setCaptureObject(object *self, selector s, object *o)
{
    (void)s;
    self->has_object = o->kind == QUEUE;
}

static void descriptor_setDestination(object *self, selector s, long destination)
{
    (void)s;
    self->has_destination = destination == 2;
}

static void descriptor_setOutputURL(object *self, selector s, object *url)
{
    (void)s;
    self->has_url = url->kind == URL;
}

static bool manager_startCapture(object *self, selector s, object *descriptor, object **error)
{
    (void)s;
    if (!descriptor->has_object || !descriptor->has_destination || !descriptor->has_url || self->busy)
        problem("a capture of nothing, to nowhere or within another");
    if (fails()) {
        set_error(error, "injected failure", 1);
        return false;
    }
    self->busy = true;
    return true;
}

static void manager_stopCapture(object *self)
{
    if (!self->busy)
        problem("no capture to stop");
    self->busy = false;
    metal_mock_state.n_captures++;
}

/* ---- sending ---- */

#define ROW(kind, text, function)            \
    {                                        \
        kind, text, (void (*)(void))function \
    }
static const struct {
    kind kind;
    const char *selector;
    void (*function)(void);
} method[] = {
    ROW(CLASS, "new", class_new),
    ROW(CLASS, "stringWithUTF8String:", class_stringWithUTF8String),
    ROW(CLASS, "fileURLWithPath:", class_fileURLWithPath),
    ROW(CLASS, "sharedCaptureManager", class_sharedCaptureManager),
    ROW(STRING, "UTF8String", string_UTF8String),
    ROW(ERROR, "localizedDescription", error_localizedDescription),
    ROW(ERROR, "code", error_code),
    ROW(ARRAY, "count", array_count),
    ROW(ARRAY, "objectAtIndex:", array_objectAtIndex),
    ROW(DEVICE, "name", device_name),
    ROW(DEVICE, "supportsFamily:", device_supportsFamily),
    ROW(DEVICE, "hasUnifiedMemory", device_hasUnifiedMemory),
    ROW(DEVICE, "recommendedMaxWorkingSetSize", device_recommendedMaxWorkingSetSize),
    ROW(DEVICE, "currentAllocatedSize", device_currentAllocatedSize),
    ROW(DEVICE, "maxBufferLength", device_maxBufferLength),
    ROW(DEVICE, "maxThreadgroupMemoryLength", device_maxThreadgroupMemoryLength),
    ROW(DEVICE, "newCommandQueue", device_newCommandQueue),
    ROW(DEVICE, "newSharedEvent", device_newSharedEvent),
    ROW(DEVICE, "newBufferWithLength:options:", device_newBufferWithLength),
    ROW(DEVICE, "newBufferWithBytes:length:options:", device_newBufferWithBytes),
    ROW(DEVICE, "newBufferWithBytesNoCopy:length:options:deallocator:", device_newBufferWithBytesNoCopy),
    ROW(DEVICE, "newLibraryWithSource:options:error:", device_newLibraryWithSource),
    ROW(DEVICE, "newComputePipelineStateWithFunction:error:", device_newComputePipelineState),
    ROW(OPTIONS, "respondsToSelector:", options_respondsToSelector),
    ROW(OPTIONS, "setLanguageVersion:", options_setLanguageVersion),
    ROW(OPTIONS, "setMathMode:", options_setMathMode),
    ROW(OPTIONS, "setFastMathEnabled:", options_setFastMathEnabled),
    ROW(LIBRARY, "newFunctionWithName:", library_newFunctionWithName),
    ROW(PIPELINE, "maxTotalThreadsPerThreadgroup", pipeline_maxTotalThreadsPerThreadgroup),
    ROW(PIPELINE, "threadExecutionWidth", pipeline_threadExecutionWidth),
    ROW(BUFFER, "contents", buffer_contents),
    ROW(QUEUE, "commandBuffer", queue_commandBuffer),
    ROW(COMMANDS, "computeCommandEncoder", commands_computeCommandEncoder),
    ROW(COMMANDS, "blitCommandEncoder", commands_blitCommandEncoder),
    ROW(COMMANDS, "commit", commands_commit),
    ROW(COMMANDS, "waitUntilCompleted", commands_waitUntilCompleted),
    ROW(COMMANDS, "status", commands_status),
    ROW(COMMANDS, "error", commands_error),
    ROW(COMMANDS, "GPUEndTime", commands_GPUEndTime),
    ROW(COMMANDS, "encodeSignalEvent:value:", commands_encodeSignalEvent),
    ROW(COMMANDS, "encodeWaitForEvent:value:", commands_encodeWaitForEvent),
    ROW(COMPUTE, "endEncoding", encoder_endEncoding),
    ROW(BLIT, "endEncoding", encoder_endEncoding),
    ROW(COMPUTE, "setComputePipelineState:", compute_setComputePipelineState),
    ROW(COMPUTE, "setBytes:length:atIndex:", compute_setBytes),
    ROW(COMPUTE, "setBuffer:offset:atIndex:", compute_setBuffer),
    ROW(COMPUTE, "dispatchThreadgroups:threadsPerThreadgroup:", compute_dispatchThreadgroups),
    ROW(BLIT, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", blit_copyFromBuffer),
    ROW(BLIT, "fillBuffer:range:value:", blit_fillBuffer),
    ROW(MANAGER, "supportsDestination:", manager_supportsDestination),
    ROW(MANAGER, "startCaptureWithDescriptor:error:", manager_startCapture),
    ROW(MANAGER, "stopCapture", manager_stopCapture),
    ROW(DESCRIPTOR, "setCaptureObject:", descriptor_setCaptureObject),
    ROW(DESCRIPTOR, "setDestination:", descriptor_setDestination),
    ROW(DESCRIPTOR, "setOutputURL:", descriptor_setOutputURL),
};

static void *nothing(void)
{
    return NULL;
}

/* Called by objc_msgSend. Only retain and release may go to nil. */
__attribute__((used, visibility("hidden"))) void (*mock_lookup(object *self, selector name))(void)
{
    if (strcmp(name, "retain") == 0)
        return (void (*)(void))any_retain;
    if (strcmp(name, "release") == 0)
        return (void (*)(void))any_release;
    if (!self) {
        problem("%s is sent to nil", name);
        return (void (*)(void))nothing;
    }
    for (size_t i = 0; i < sizeof method / sizeof method[0]; i++)
        if (method[i].kind == self->kind && strcmp(method[i].selector, name) == 0)
            return method[i].function;
    problem("%s does not know %s", kind_name[self->kind], name);
    return (void (*)(void))nothing;
}

/* Keeps what carries arguments, finds the method and goes on there. */
#if defined(__x86_64__)
__asm__(".text\n"
        ".globl objc_msgSend\n"
        ".type objc_msgSend, @function\n"
        "objc_msgSend:\n"
        "    push %rdi\n"
        "    push %rsi\n"
        "    push %rdx\n"
        "    push %rcx\n"
        "    push %r8\n"
        "    push %r9\n"
        "    sub $8, %rsp\n"
        "    call mock_lookup\n"
        "    add $8, %rsp\n"
        "    pop %r9\n"
        "    pop %r8\n"
        "    pop %rcx\n"
        "    pop %rdx\n"
        "    pop %rsi\n"
        "    pop %rdi\n"
        "    jmp *%rax\n"
        ".size objc_msgSend, .-objc_msgSend\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl objc_msgSend\n"
        ".type objc_msgSend, %function\n"
        "objc_msgSend:\n"
        "    stp x29, x30, [sp, #-80]!\n"
        "    stp x0, x1, [sp, #16]\n"
        "    stp x2, x3, [sp, #32]\n"
        "    stp x4, x5, [sp, #48]\n"
        "    stp x6, x7, [sp, #64]\n"
        "    bl mock_lookup\n"
        "    mov x16, x0\n"
        "    ldp x0, x1, [sp, #16]\n"
        "    ldp x2, x3, [sp, #32]\n"
        "    ldp x4, x5, [sp, #48]\n"
        "    ldp x6, x7, [sp, #64]\n"
        "    ldp x29, x30, [sp], #80\n"
        "    br x16\n"
        ".size objc_msgSend, .-objc_msgSend\n");
#endif

EXPORT selector sel_registerName(const char *name)
{
    return name; /* literals of the backend, which stay */
}

EXPORT void *objc_getClass(const char *name)
{
    for (size_t i = 0; i < sizeof class_of / sizeof class_of[0]; i++)
        if (strcmp(class_of[i].text, name) == 0)
            return &class_of[i];
    problem("no class %s", name);
    return NULL;
}

EXPORT void *MTLCopyAllDevices(void)
{
    object *all = make(ARRAY, NULL);
    for (int i = 0; i < 3; i++)
        all->element[all->n++] = hold(&device[i]);
    return all;
}

/* Programs that do not look at the state still fail when something was wrong or was not given back. */
__attribute__((destructor)) static void check_at_exit(void)
{
    if (metal_mock_state.problem[0] || metal_mock_state.n_alive != 0) {
        fprintf(stderr, "metal_mock: %d objects alive; %s\n", metal_mock_state.n_alive, metal_mock_state.problem);
        _exit(3);
    }
}
