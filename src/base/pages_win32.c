/* pages_win32.c: large zeroed blocks from VirtualAlloc. Large pages need a privilege that users do not have by default, so
 * none are asked for. */
#ifdef _WIN32
#include <malloc.h>
#include <string.h>
#include <windows.h>

#include "base/alloc.h"

enum { SMALL_ALIGNMENT = 64, LARGE = 1 << 20 };

void *st_alloc_pages(size_t size)
{
    if (size >= LARGE)
        return VirtualAlloc(NULL, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    void *const block = _aligned_malloc(size ? size : 1, SMALL_ALIGNMENT);
    return block ? memset(block, 0, size ? size : 1) : NULL;
}

void st_free_pages(void *block, size_t size)
{
    if (!block)
        return;
    if (size >= LARGE)
        VirtualFree(block, 0, MEM_RELEASE);
    else
        _aligned_free(block);
}
#else
typedef int st_pages_win32_unused;
#endif
