/* pages_posix.c: large zeroed blocks from mmap, aligned for huge pages. */
#ifndef _WIN32
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/checked.h"

enum { SMALL_ALIGNMENT = 64, HUGE_PAGE = 2 << 20, LARGE = 1 << 20 };

/* What mmap is asked for; st_free_pages computes it again. */
static bool mapped_size(size_t size, size_t *out)
{
    return st_align_size(size, size < HUGE_PAGE ? 65536 : HUGE_PAGE, out);
}

/* Whole huge pages need an address that is a multiple of them: map more and cut off both ends. */
static void *map_aligned(size_t size)
{
    size_t more;
    if (!st_add_size(size, HUGE_PAGE, &more))
        return NULL;
    uint8_t *const p = mmap(NULL, more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    const size_t before = (HUGE_PAGE - ((uintptr_t)p & (HUGE_PAGE - 1))) & (HUGE_PAGE - 1);
    if (before)
        munmap(p, before);
    if (HUGE_PAGE - before)
        munmap(p + before + size, HUGE_PAGE - before);
#ifdef MADV_HUGEPAGE
    madvise(p + before, size, MADV_HUGEPAGE); /* a wish: without it the pages are small */
#endif
    return p + before;
}

void *st_alloc_pages(size_t size)
{
    size_t rounded;
    if (size >= LARGE)
        return mapped_size(size, &rounded) ? map_aligned(rounded) : NULL;
    void *block = NULL;
    if (posix_memalign(&block, SMALL_ALIGNMENT, size ? size : 1) != 0)
        return NULL;
    return memset(block, 0, size ? size : 1);
}

void st_free_pages(void *block, size_t size)
{
    size_t rounded;
    if (!block)
        return;
    if (size < LARGE)
        free(block);
    else if (mapped_size(size, &rounded))
        munmap(block, rounded);
}
#else
typedef int st_pages_posix_unused;
#endif
