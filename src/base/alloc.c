#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

void *st_alloc(size_t count, size_t size)
{
    size_t bytes;
    if (!st_mul_size(count, size, &bytes))
        return NULL;
    return malloc(bytes ? bytes : 1);
}

void *st_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (!st_mul_size(count, size, &bytes))
        return NULL;
    return calloc(bytes ? bytes : 1, 1);
}

void *st_realloc(void *block, size_t count, size_t size)
{
    size_t bytes;
    if (!st_mul_size(count, size, &bytes))
        return NULL;
    return realloc(block, bytes ? bytes : 1);
}

void st_free(void *block)
{
    free(block);
}

char *st_strdup(const char *text)
{
    const size_t n = strlen(text) + 1;
    char *const copy = st_alloc(n, 1);
    if (copy)
        memcpy(copy, text, n);
    return copy;
}

bool st_grow(void *array_pointer, int64_t *capacity, int64_t need, size_t element)
{
    if (need <= *capacity)
        return true;
    int64_t larger = *capacity > INT64_MAX / 2 ? INT64_MAX : *capacity * 2;
    if (larger < 8)
        larger = 8;
    if (larger < need)
        larger = need;
    if ((uint64_t)larger > SIZE_MAX)
        return false;
    void *block; /* array_pointer is the address of a pointer of any type, so its bytes are copied, not the pointer */
    memcpy(&block, array_pointer, sizeof block);
    block = st_realloc(block, (size_t)larger, element);
    if (!block)
        return false;
    memcpy(array_pointer, &block, sizeof block);
    *capacity = larger;
    return true;
}
