/* objc.h: the Objective-C runtime and Metal from plain C. Both are opened at run time, so that the library builds without
 * Apple's SDK. Every message that is sent is a row of ST_MTL_MESSAGES and becomes one typed inline function. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_METAL_OBJC_H
#define SOTTO_SRC_BACKENDS_GPU_API_METAL_OBJC_H

#include <stdbool.h>
#include <stdint.h>

typedef void *mtl_id;
typedef const void *mtl_selector;
typedef unsigned long mtl_uint; /* NSUInteger */
typedef long mtl_int;           /* NSInteger */
typedef struct mtl_size {
    mtl_uint width, height, depth;
} mtl_size;
typedef struct mtl_range {
    mtl_uint location, length;
} mtl_range;

/* M0(result, name, selector), M1(result, name, selector, type of its argument), ... Results that begin with "new" belong to
 * the caller; others live as long as the pool. */
#define ST_MTL_MESSAGES(M0, M1, M2, M3, M4)                                                                         \
    M0(mtl_id, retain, "retain")                                                                                    \
    M0(mtl_id, new_object, "new")                                                                                   \
    M1(bool, responds, "respondsToSelector:", mtl_selector)                                                         \
    M1(mtl_id, string, "stringWithUTF8String:", const char *)                                                       \
    M0(const char *, utf8, "UTF8String")                                                                            \
    M1(mtl_id, file_url, "fileURLWithPath:", mtl_id)                                                                \
    M0(mtl_uint, count, "count")                                                                                    \
    M1(mtl_id, object_at, "objectAtIndex:", mtl_uint)                                                               \
    M0(mtl_id, description, "localizedDescription")                                                                 \
    M0(mtl_int, code, "code")                                                                                       \
    M0(mtl_id, name, "name")                                                                                        \
    M1(bool, supports_family, "supportsFamily:", mtl_int)                                                           \
    M0(bool, has_unified_memory, "hasUnifiedMemory")                                                                \
    M0(uint64_t, working_set, "recommendedMaxWorkingSetSize")                                                       \
    M0(mtl_uint, allocated, "currentAllocatedSize")                                                                 \
    M0(mtl_uint, max_buffer, "maxBufferLength")                                                                     \
    M0(mtl_uint, max_group_memory, "maxThreadgroupMemoryLength")                                                    \
    M0(mtl_id, new_queue, "newCommandQueue")                                                                        \
    M0(mtl_id, new_shared_event, "newSharedEvent")                                                                  \
    M2(mtl_id, new_buffer, "newBufferWithLength:options:", mtl_uint, mtl_uint)                                      \
    M3(mtl_id, new_buffer_of, "newBufferWithBytes:length:options:", const void *, mtl_uint, mtl_uint)               \
    M4(mtl_id, new_buffer_over, "newBufferWithBytesNoCopy:length:options:deallocator:", void *, mtl_uint, mtl_uint, \
       mtl_id)                                                                                                      \
    M3(mtl_id, new_library, "newLibraryWithSource:options:error:", mtl_id, mtl_id, mtl_id *)                        \
    M2(mtl_id, new_pipeline, "newComputePipelineStateWithFunction:error:", mtl_id, mtl_id *)                        \
    M1(mtl_id, new_function, "newFunctionWithName:", mtl_id)                                                        \
    M0(mtl_uint, max_group, "maxTotalThreadsPerThreadgroup")                                                        \
    M0(mtl_uint, lanes, "threadExecutionWidth")                                                                     \
    M0(void *, contents, "contents")                                                                                \
    M0(mtl_id, command_buffer, "commandBuffer")                                                                     \
    M0(mtl_id, compute_encoder, "computeCommandEncoder")                                                            \
    M0(mtl_id, blit_encoder, "blitCommandEncoder")                                                                  \
    M0(mtl_uint, status, "status")                                                                                  \
    M0(mtl_id, error, "error")                                                                                      \
    M0(double, end_time, "GPUEndTime")                                                                              \
    M0(mtl_id, shared_capture, "sharedCaptureManager")                                                              \
    M1(bool, supports_destination, "supportsDestination:", mtl_int)                                                 \
    M2(bool, start_capture, "startCaptureWithDescriptor:error:", mtl_id, mtl_id *)

/* The same for messages without a result. */
#define ST_MTL_COMMANDS(V0, V1, V2, V3, V5)                                                                      \
    V0(release, "release")                                                                                       \
    V1(set_language, "setLanguageVersion:", mtl_uint)                                                            \
    V1(set_math_mode, "setMathMode:", mtl_int)                                                                   \
    V1(set_fast_math, "setFastMathEnabled:", bool)                                                               \
    V0(commit, "commit")                                                                                         \
    V0(wait, "waitUntilCompleted")                                                                               \
    V2(signal_event, "encodeSignalEvent:value:", mtl_id, uint64_t)                                               \
    V2(wait_event, "encodeWaitForEvent:value:", mtl_id, uint64_t)                                                \
    V0(end_encoding, "endEncoding")                                                                              \
    V1(set_pipeline, "setComputePipelineState:", mtl_id)                                                         \
    V3(set_bytes, "setBytes:length:atIndex:", const void *, mtl_uint, mtl_uint)                                  \
    V3(set_buffer, "setBuffer:offset:atIndex:", mtl_id, mtl_uint, mtl_uint)                                      \
    V2(dispatch, "dispatchThreadgroups:threadsPerThreadgroup:", mtl_size, mtl_size)                              \
    V5(copy, "copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size:", mtl_id, mtl_uint, mtl_id, mtl_uint, \
       mtl_uint)                                                                                                 \
    V3(fill, "fillBuffer:range:value:", mtl_id, mtl_range, uint8_t)                                              \
    V1(set_capture_object, "setCaptureObject:", mtl_id)                                                          \
    V1(set_destination, "setDestination:", mtl_int)                                                              \
    V1(set_output_url, "setOutputURL:", mtl_id)                                                                  \
    V0(stop_capture, "stopCapture")

#define ST_MTL_FIELD(R, name, ...) mtl_selector name;
#define ST_MTL_COMMAND_FIELD(name, ...) mtl_selector name;
typedef struct st_objc {
    void (*send)(void); /* objc_msgSend, called through the type of the message */
    mtl_id (*class_named)(const char *name);
    void *(*pool_push)(void);
    void (*pool_pop)(void *pool);
    mtl_id (*all_devices)(void); /* MTLCopyAllDevices: the array is the caller's */
    struct {
        ST_MTL_MESSAGES(ST_MTL_FIELD, ST_MTL_FIELD, ST_MTL_FIELD, ST_MTL_FIELD, ST_MTL_FIELD)
        ST_MTL_COMMANDS(ST_MTL_COMMAND_FIELD, ST_MTL_COMMAND_FIELD, ST_MTL_COMMAND_FIELD, ST_MTL_COMMAND_FIELD,
                        ST_MTL_COMMAND_FIELD)
    } sel;
} st_objc;
#undef ST_MTL_FIELD
#undef ST_MTL_COMMAND_FIELD

/* False where there is no Metal. */
bool st_objc_load(st_objc *o);

#define ST_MTL_M0(R, name, text)                                         \
    static inline R mtl_##name(const st_objc *o, mtl_id self)            \
    {                                                                    \
        return ((R(*)(mtl_id, mtl_selector))o->send)(self, o->sel.name); \
    }
#define ST_MTL_M1(R, name, text, A)                                            \
    static inline R mtl_##name(const st_objc *o, mtl_id self, A a)             \
    {                                                                          \
        return ((R(*)(mtl_id, mtl_selector, A))o->send)(self, o->sel.name, a); \
    }
#define ST_MTL_M2(R, name, text, A, B)                                               \
    static inline R mtl_##name(const st_objc *o, mtl_id self, A a, B b)              \
    {                                                                                \
        return ((R(*)(mtl_id, mtl_selector, A, B))o->send)(self, o->sel.name, a, b); \
    }
#define ST_MTL_M3(R, name, text, A, B, C)                                                  \
    static inline R mtl_##name(const st_objc *o, mtl_id self, A a, B b, C c)               \
    {                                                                                      \
        return ((R(*)(mtl_id, mtl_selector, A, B, C))o->send)(self, o->sel.name, a, b, c); \
    }
#define ST_MTL_M4(R, name, text, A, B, C, D)                                                     \
    static inline R mtl_##name(const st_objc *o, mtl_id self, A a, B b, C c, D d)                \
    {                                                                                            \
        return ((R(*)(mtl_id, mtl_selector, A, B, C, D))o->send)(self, o->sel.name, a, b, c, d); \
    }
ST_MTL_MESSAGES(ST_MTL_M0, ST_MTL_M1, ST_MTL_M2, ST_MTL_M3, ST_MTL_M4)

#define ST_MTL_V0(name, text)                                         \
    static inline void mtl_##name(const st_objc *o, mtl_id self)      \
    {                                                                 \
        ((void (*)(mtl_id, mtl_selector))o->send)(self, o->sel.name); \
    }
#define ST_MTL_V1(name, text, A)                                            \
    static inline void mtl_##name(const st_objc *o, mtl_id self, A a)       \
    {                                                                       \
        ((void (*)(mtl_id, mtl_selector, A))o->send)(self, o->sel.name, a); \
    }
#define ST_MTL_V2(name, text, A, B)                                               \
    static inline void mtl_##name(const st_objc *o, mtl_id self, A a, B b)        \
    {                                                                             \
        ((void (*)(mtl_id, mtl_selector, A, B))o->send)(self, o->sel.name, a, b); \
    }
#define ST_MTL_V3(name, text, A, B, C)                                                  \
    static inline void mtl_##name(const st_objc *o, mtl_id self, A a, B b, C c)         \
    {                                                                                   \
        ((void (*)(mtl_id, mtl_selector, A, B, C))o->send)(self, o->sel.name, a, b, c); \
    }
#define ST_MTL_V5(name, text, A, B, C, D, E)                                                        \
    static inline void mtl_##name(const st_objc *o, mtl_id self, A a, B b, C c, D d, E e)           \
    {                                                                                               \
        ((void (*)(mtl_id, mtl_selector, A, B, C, D, E))o->send)(self, o->sel.name, a, b, c, d, e); \
    }
ST_MTL_COMMANDS(ST_MTL_V0, ST_MTL_V1, ST_MTL_V2, ST_MTL_V3, ST_MTL_V5)

#endif
