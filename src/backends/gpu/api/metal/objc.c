/* objc.c: opens the Objective-C runtime and Metal. */
#include "backends/gpu/api/metal/objc.h"

#include <stddef.h>

#include "base/library.h"

bool st_objc_load(st_objc *o)
{
    /* The bare names come from the loader's path; tests put a stand-in there. */
    static const char *const objc_names[] = {"/usr/lib/libobjc.A.dylib", "libobjc.A.dylib", NULL};
    static const char *const metal_names[] = {"/System/Library/Frameworks/Metal.framework/Metal", "libMetal.dylib",
                                              NULL};
    void *const objc = st_library_open(objc_names), *const metal = objc ? st_library_open(metal_names) : NULL;
    mtl_selector (*selector)(const char *name);
    if (!metal || !st_library_function(objc, "sel_registerName", &selector) ||
        !st_library_function(objc, "objc_msgSend", &o->send) ||
        !st_library_function(objc, "objc_getClass", &o->class_named) ||
        !st_library_function(objc, "objc_autoreleasePoolPush", &o->pool_push) ||
        !st_library_function(objc, "objc_autoreleasePoolPop", &o->pool_pop) ||
        !st_library_function(metal, "MTLCopyAllDevices", &o->all_devices))
        return false;
#define FIRST(text, ...) text
#define MESSAGE(R, name, ...) o->sel.name = selector(FIRST(__VA_ARGS__, 0));
#define COMMAND(name, ...) o->sel.name = selector(FIRST(__VA_ARGS__, 0));
    ST_MTL_MESSAGES(MESSAGE, MESSAGE, MESSAGE, MESSAGE, MESSAGE)
    ST_MTL_COMMANDS(COMMAND, COMMAND, COMMAND, COMMAND, COMMAND)
#undef FIRST
#undef MESSAGE
#undef COMMAND
    return true;
}
