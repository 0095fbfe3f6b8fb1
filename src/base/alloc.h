/* alloc.h: memory. All of the library's heap memory comes from here, so that tests can make it fail. */
#ifndef SOTTO_SRC_BASE_ALLOC_H
#define SOTTO_SRC_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when there is no memory or count * size overflows; never a NULL for zero bytes. */
void *st_alloc(size_t count, size_t size);
void *st_calloc(size_t count, size_t size);
/* On failure returns NULL and leaves the old block. */
void *st_realloc(void *block, size_t count, size_t size);
void st_free(void *block);
char *st_strdup(const char *text);
/* Zeroed, aligned to 64 bytes; blocks of 1 MiB and more come in huge pages where the system has them. */
void *st_alloc_pages(size_t size);
void st_free_pages(void *block, size_t size);

/* Grow an array to hold at least `need` elements (doubling). False without memory; the array is then as before. */
bool st_grow(void *array_pointer, int64_t *capacity, int64_t need, size_t element);

/* An arena gives many small blocks that are freed together. */
typedef struct st_arena st_arena;
st_arena *st_arena_create(void);
void st_arena_free(st_arena *arena);
void *st_arena_alloc(st_arena *arena, size_t size); /* zeroed, aligned to 16; NULL without memory */
char *st_arena_strdup(st_arena *arena, const char *text, size_t n);

#endif
