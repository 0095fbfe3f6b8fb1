#include "alloc_fail.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

static atomic_long count, fail_at;
static atomic_bool stay_failed;

void alloc_fail_at(long n, bool on)
{
    atomic_store(&count, 0);
    atomic_store(&stay_failed, on);
    atomic_store(&fail_at, n);
}

long alloc_fail_count(void)
{
    return atomic_load(&count);
}

static bool fails(void)
{
    const long number = atomic_fetch_add(&count, 1) + 1, at = atomic_load(&fail_at);
    const bool now = at > 0 && (number == at || (number > at && atomic_load(&stay_failed)));
    if (now)
        errno = ENOMEM;
    return now;
}

long alloc_fail_sweep(sotto_status (*run)(void *user), void *user)
{
    long requests = 0;
    for (int on = 0; on < 2; on++) {
        for (long n = 1;; n++) {
            alloc_fail_at(n, on);
            const sotto_status status = run(user);
            requests = alloc_fail_count();
            alloc_fail_at(0, false);
            const bool whole = requests < n;
            if (status != SOTTO_OK && (whole || status != SOTTO_E_MEMORY))
                fail_msg("with request %ld failing: status %d (%s)", n, (int)status, sotto_status_name(status));
            if (whole)
                break;
        }
    }
    return requests;
}

/* The linker's names for the functions that are wrapped and the wrappers. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *block, size_t size);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void *__real_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *block, size_t size);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    return fails() ? NULL : __real_realloc(block, size);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
    return fails() ? ENOMEM : __real_posix_memalign(out, alignment, size);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails() ? MAP_FAILED : __real_mmap(address, size, protection, flags, fd, offset);
}
