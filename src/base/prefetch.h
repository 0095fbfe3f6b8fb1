/* prefetch.h: memory that will be wanted soon. */
#ifndef SOTTO_SRC_BASE_PREFETCH_H
#define SOTTO_SRC_BASE_PREFETCH_H

/* Any address will do. */
static inline void st_prefetch(const void *address)
{
    __builtin_prefetch(address);
}

#endif
