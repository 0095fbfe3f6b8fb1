/* Memory: what the functions promise at zero, at overflow, in alignment and in growth. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

static void zero_bytes_are_not_null(void **state)
{
    (void)state;
    void *const a = st_alloc(0, 8), *const b = st_calloc(5, 0),
                *c = st_realloc(NULL, 0, 0), *const d = st_alloc_pages(0);
    assert_true(a && b && c && d);
    c = st_realloc(c, 0, 4);
    assert_non_null(c);
    st_free(a);
    st_free(b);
    st_free(c);
    st_free_pages(d, 0);
    st_free(NULL);
    st_free_pages(NULL, 5);
}

static void overflow_is_null(void **state)
{
    (void)state;
    assert_null(st_alloc(SIZE_MAX / 2 + 1, 2));
    assert_null(st_calloc(SIZE_MAX / 2 + 1, 2));
    int *const p = st_alloc(1, sizeof *p);
    *p = 42;
    assert_null(st_realloc(p, SIZE_MAX / 2 + 1, 2));
    assert_int_equal(*p, 42);
    st_free(p);
    assert_null(st_alloc_pages(SIZE_MAX));
    assert_null(st_alloc_pages(SIZE_MAX - (1 << 22)));
}

static void copies_a_string(void **state)
{
    (void)state;
    char *const s = st_strdup("text");
    assert_string_equal(s, "text");
    st_free(s);
}

static void pages_are_aligned_and_zero(void **state)
{
    (void)state;
    const size_t sizes[] = {
        1, 63, 64, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 2 << 20, (2 << 20) + 1, (5 << 20) + 12345};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *const p = st_alloc_pages(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t j = 0; j < sizes[i]; j++)
            if (p[j] != 0)
                fail_msg("byte %zu of %zu is not zero", j, sizes[i]);
        memset(p, 0xa5, sizes[i]);
        st_free_pages(p, sizes[i]);
    }
}

static void arrays_grow_by_doubling(void **state)
{
    (void)state;
    int32_t *a = NULL;
    int64_t capacity = 0, growths = 0;
    for (int64_t i = 0; i < 100000; i++) {
        const int64_t before = capacity;
        assert_true(st_grow(&a, &capacity, i + 1, sizeof *a));
        assert_true(capacity > i);
        growths += capacity != before;
        a[i] = (int32_t)i;
    }
    for (int64_t i = 0; i < 100000; i++)
        assert_int_equal(a[i], i);
    assert_in_range(growths, 10, 20);
    const int64_t before = capacity;
    assert_true(st_grow(&a, &capacity, -5, sizeof *a));
    assert_false(st_grow(&a, &capacity, INT64_MAX, sizeof *a)); /* larger than memory */
    assert_int_equal(capacity, before);
    assert_int_equal(a[99999], 99999);
    st_free(a);
}

static void arena_blocks_are_apart_aligned_and_zero(void **state)
{
    (void)state;
    enum { BLOCKS = 3000 };
    static uint8_t *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    st_arena *const arena = st_arena_create();
    srand(5);
    for (int i = 0; i < BLOCKS; i++) {
        sizes[i] = (size_t)(rand() % 100 == 0 ? rand() % 300000 : rand() % 200);
        blocks[i] = st_arena_alloc(arena, sizes[i]);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        for (size_t j = 0; j < sizes[i]; j++)
            if (blocks[i][j])
                fail_msg("byte %zu of block %d is not zero", j, i);
        memset(blocks[i], i & 255, sizes[i]);
    }
    for (int i = 0; i < BLOCKS; i++)
        for (size_t j = 0; j < sizes[i]; j++)
            if (blocks[i][j] != (i & 255))
                fail_msg("byte %zu of block %d was overwritten", j, i);
    char *const s = st_arena_strdup(arena, "hello", 3);
    assert_string_equal(s, "hel");
    assert_string_equal(st_arena_strdup(arena, NULL, 0), "");
    assert_null(st_arena_alloc(arena, SIZE_MAX));
    assert_null(st_arena_alloc(arena, SIZE_MAX - 15));
    assert_null(st_arena_strdup(arena, "x", SIZE_MAX));
    st_arena_free(arena);
    st_arena_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_bytes_are_not_null), cmocka_unit_test(overflow_is_null),
        cmocka_unit_test(copies_a_string),         cmocka_unit_test(pages_are_aligned_and_zero),
        cmocka_unit_test(arrays_grow_by_doubling), cmocka_unit_test(arena_blocks_are_apart_aligned_and_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
