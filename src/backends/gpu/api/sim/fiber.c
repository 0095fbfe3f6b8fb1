/* fiber.c: switching stacks: assembly on x86-64 and arm64, ucontext elsewhere; sanitizers are told. */
#include "backends/gpu/api/sim/fiber.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backends/gpu/api/sim/sanitizers.h"
#include "base/alloc.h"

/* ---- switch_stack(save, sp): keeps what a function call must keep below the stack pointer, notes that in *save, and takes
 * the same from sp ---- */

#if defined(__x86_64__)
enum { FRAME_WORDS = 6 }; /* before the address to go on at */
void switch_stack(void **save, void *sp) __asm__("st_sim_switch_stack") __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".p2align 4\n"
        "st_sim_switch_stack:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    popq %rcx\n" /* not ret, which the processor would expect to go back to the caller */
        "    jmpq *%rcx\n");

/* As if entry had been called by nobody: its return address is 0. */
static void *first_frame(char *top, void (*entry)(void))
{
    void **sp = (void **)(void *)top - 2 - FRAME_WORDS;
    memset(sp, 0, (FRAME_WORDS + 2) * sizeof *sp);
    memcpy(sp + FRAME_WORDS, &entry, sizeof entry);
    return sp;
}
#elif defined(__aarch64__)
enum { FRAME_WORDS = 20 }; /* x19 to x30, d8 to d15 */
void switch_stack(void **save, void *sp) __asm__("st_sim_switch_stack") __attribute__((visibility("hidden")));
__asm__(".text\n"
        ".p2align 4\n"
        "st_sim_switch_stack:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n");

static void *first_frame(char *top, void (*entry)(void))
{
    void **sp = (void **)(void *)top - FRAME_WORDS;
    memset(sp, 0, FRAME_WORDS * sizeof *sp);
    memcpy(sp + 11, &entry, sizeof entry); /* x30 */
    return sp;
}
#else
#define WITH_UCONTEXT 1
#include <ucontext.h>
#endif

/* ---- stacks ---- */

enum { TOP_BYTES = 64 };

/* Stacks begin at different places in their slots, or they would all want the same lines of the cache and of the table of
 * pages: on one of 16 pages, and there on one of 7 places. */
static size_t colour(int i)
{
    return (size_t)(i % 16) * 4096 + (size_t)(i / 16 % 7) * 576;
}

bool st_fiber_pool_init(st_fiber_pool *pool, int n, size_t owner_size)
{
    const size_t size = (size_t)(n + 1) * ST_FIBER_SLOT;
    char *const owners = st_calloc((size_t)n, owner_size);
    char *const p = owners ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
    *pool = (st_fiber_pool){0};
    if (p == MAP_FAILED) {
        st_free(owners);
        return false;
    }
    char *const slots = p + (ST_FIBER_SLOT - ((uintptr_t)p & (ST_FIBER_SLOT - 1))) % ST_FIBER_SLOT;
    *pool = (st_fiber_pool){p, slots, size, owners, owner_size, n};
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < n; i++) {
        char *const slot = slots + (size_t)i * ST_FIBER_SLOT;
        ((void **)(void *)(slot + ST_FIBER_SLOT))[-1] = st_fiber_owner(pool, i);
        if (page < ST_FIBER_SLOT / 4)
            (void)mprotect(slot, page, PROT_NONE); /* goes without a guard where the system has no room for one */
    }
    return true;
}

void st_fiber_pool_free(st_fiber_pool *pool)
{
    if (pool->mapped) {
        __asan_unpoison_memory_region(pool->mapped, pool->mapped_size);
        munmap(pool->mapped, pool->mapped_size);
    }
    st_free(pool->owners);
    *pool = (st_fiber_pool){0};
}

bool st_fiber_begin(const st_fiber_pool *pool, int i, st_fiber *f, void (*entry)(void))
{
    char *const slot = pool->slots + (size_t)i * ST_FIBER_SLOT;
    char *const top = slot + ST_FIBER_SLOT - TOP_BYTES - colour(i);
    f->bottom = slot;
    f->size = (size_t)(top - slot);
    f->fake = NULL;
    if (!f->thread)
        f->thread = __tsan_create_fiber(0);
#ifdef WITH_UCONTEXT
    if (!f->context && !(f->context = st_alloc(1, sizeof(ucontext_t))))
        return false;
    ucontext_t *const c = f->context;
    getcontext(c);
    c->uc_stack.ss_sp = top - f->size;
    c->uc_stack.ss_size = f->size;
    c->uc_link = NULL;
    makecontext(c, entry, 0);
#else
    f->sp = first_frame(top, entry);
#endif
    return true;
}

static void switch_to(st_fiber *from, st_fiber *to)
{
    if (!from->thread)
        from->thread = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->thread, 0);
#ifdef WITH_UCONTEXT
    ucontext_t here;
    if (!from->context)
        from->context = &here; /* who runs the fibers: its stack stays */
    swapcontext(from->context, to->context);
    if (from->context == &here)
        from->context = NULL;
#else
    switch_stack(&from->sp, to->sp);
#endif
}

void st_fiber_switch(st_fiber *from, st_fiber *to)
{
    __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
    switch_to(from, to);
    __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
}

void st_fiber_leave(st_fiber *f, st_fiber *to)
{
    __sanitizer_start_switch_fiber(NULL, to->bottom, to->size);
    switch_to(f, to);
}

void st_fiber_entered(st_fiber *from)
{
    __sanitizer_finish_switch_fiber(NULL, &from->bottom, &from->size);
    (void)from;
}

void st_fiber_abandon(const st_fiber_pool *pool, int i)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    __asan_unpoison_memory_region(pool->slots + (size_t)i * ST_FIBER_SLOT + page, ST_FIBER_SLOT - TOP_BYTES - page);
}

void st_fiber_end(st_fiber *f)
{
    if (f->thread)
        __tsan_destroy_fiber(f->thread);
#ifdef WITH_UCONTEXT
    st_free(f->context);
#endif
    *f = (st_fiber){0};
}
