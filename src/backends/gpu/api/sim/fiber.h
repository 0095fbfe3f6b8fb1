/* fiber.h: stacks that a program switches between itself. A fiber keeps what it was doing while another runs. */
#ifndef SOTTO_SRC_BACKENDS_GPU_API_SIM_FIBER_H
#define SOTTO_SRC_BACKENDS_GPU_API_SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each stack is a slot at a multiple of its size: the lowest page is a guard, the highest bytes point to the fiber's owner.
 * So code on a fiber finds its owner from the address of anything on its stack. */
enum { ST_FIBER_SLOT = 128 * 1024 };

typedef struct st_fiber {
    void *sp;           /* where the rest of the registers lie while another runs */
    const void *bottom; /* of its stack, and the stack's size: for sanitizers */
    size_t size;
    void *fake;    /* AddressSanitizer's own stack */
    void *thread;  /* ThreadSanitizer's name for it */
    void *context; /* where there is no assembly for the processor */
} st_fiber;

typedef struct st_fiber_pool {
    char *mapped, *slots;
    size_t mapped_size;
    char *owners; /* zeroed when the pool is made */
    size_t owner_size;
    int n;
} st_fiber_pool;

/* False without memory; nothing is in the pool then. */
bool st_fiber_pool_init(st_fiber_pool *pool, int n, size_t owner_size);
void st_fiber_pool_free(st_fiber_pool *pool);

static inline void *st_fiber_owner(const st_fiber_pool *pool, int i)
{
    return pool->owners + (size_t)i * pool->owner_size;
}

/* Of the fiber that calls. */
static inline void *st_fiber_self(void)
{
    const uintptr_t slot = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)(ST_FIBER_SLOT - 1);
    return ((void **)(slot + ST_FIBER_SLOT))[-1];
}

/* The fiber of slot i begins at entry when it is next switched to; entry never returns. False without memory. */
bool st_fiber_begin(const st_fiber_pool *pool, int i, st_fiber *f, void (*entry)(void));
/* From the code that runs now, which `from` then stands for, to `to`; returns when something switches back. */
void st_fiber_switch(st_fiber *from, st_fiber *to);
/* The first thing that entry does: `from` is who switched to it. */
void st_fiber_entered(st_fiber *from);
/* The same as switch, for the last time: `f` is not switched to again before st_fiber_begin. */
void st_fiber_leave(st_fiber *f, st_fiber *to);
/* A fiber that is given up in the middle. */
void st_fiber_abandon(const st_fiber_pool *pool, int i);
void st_fiber_end(st_fiber *f);

#endif
