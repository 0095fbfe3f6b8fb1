/* Memory that runs out at every place of what src/base allocates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "base/alloc.h"
#include "base/file.h"

static sotto_status use_arena(void *user)
{
    (void)user;
    st_arena *const arena = st_arena_create();
    if (!arena)
        return SOTTO_E_MEMORY;
    sotto_status status = SOTTO_OK;
    char *blocks[200];
    for (int i = 0; i < 200 && status == SOTTO_OK; i++) {
        blocks[i] = st_arena_alloc(arena, (size_t)(i % 7 ? 100 : 20000));
        if (!blocks[i])
            status = SOTTO_E_MEMORY;
        else
            snprintf(blocks[i], 100, "%d", i);
    }
    /* a failure must leave the arena usable, with what it gave before */
    st_arena_strdup(arena, "text", 4);
    for (int i = 0; i < 200 && status == SOTTO_OK; i++)
        if (atoi(blocks[i]) != i)
            status = SOTTO_E_INTERNAL;
    st_arena_free(arena);
    return status;
}

static sotto_status use_array(void *user)
{
    (void)user;
    int32_t *a = NULL;
    int64_t capacity = 0;
    sotto_status status = SOTTO_OK;
    for (int32_t i = 0; i < 1000; i++) {
        if (!st_grow(&a, &capacity, i + 1, sizeof *a)) {
            status = i > 0 && a[i - 1] != i - 1 ? SOTTO_E_INTERNAL : SOTTO_E_MEMORY;
            break;
        }
        a[i] = i;
    }
    st_free(a);
    return status;
}

static sotto_status use_pages(void *user)
{
    (void)user;
    const size_t sizes[] = {100, 3 << 20};
    void *const small = st_alloc_pages(sizes[0]), *const large = st_alloc_pages(sizes[1]);
    char *const text = st_strdup("text"), *const path = st_path_join("a", "b");
    const sotto_status status = small && large && text && path ? SOTTO_OK : SOTTO_E_MEMORY;
    st_free_pages(small, sizes[0]);
    st_free_pages(large, sizes[1]);
    st_free(text);
    st_free(path);
    return status;
}

/* Writes, maps and compares a file; after a failure neither it nor a temporary one may be there. */
static sotto_status use_files(void *user)
{
    const char *const folder = user;
    char path[128];
    snprintf(path, sizeof path, "%s/out", folder);
    sotto_error err = {0};
    st_file_writer *w = NULL;
    sotto_status status = st_file_writer_open(path, &w, &err);
    if (status == SOTTO_OK) {
        status = st_file_writer_write(w, "hello", 5, &err);
        if (status == SOTTO_OK)
            status = st_file_writer_commit(w, &err);
        else
            st_file_writer_discard(w);
    }
    if (status == SOTTO_OK) {
        st_file_map map;
        status = st_file_map_open(path, &map, &err);
        if (status == SOTTO_OK && (map.size != 5 || memcmp(map.data, "hello", 5) != 0))
            status = SOTTO_E_INTERNAL;
        st_file_map_close(&map);
    }
    if (status != SOTTO_OK && (err.code != status || !strstr(err.text, "no memory")))
        status = SOTTO_E_INTERNAL;
    unlink(path);
    return status;
}

static void an_arena(void **state)
{
    (void)state;
    assert_in_range(alloc_fail_sweep(use_arena, NULL), 20, 200);
}

static void an_array(void **state)
{
    (void)state;
    assert_int_equal(alloc_fail_sweep(use_array, NULL), 8); /* 8, 16, .. 1024 */
}

static void pages(void **state)
{
    (void)state;
    assert_int_equal(alloc_fail_sweep(use_pages, NULL), 4);
}

static void files(void **state)
{
    (void)state;
    char folder[] = "/tmp/sotto-alloc-XXXXXX";
    assert_non_null(mkdtemp(folder));
    assert_in_range(alloc_fail_sweep(use_files, folder), 4, 10);
    assert_int_equal(rmdir(folder), 0); /* empty, so no temporary file was left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena),
        cmocka_unit_test(an_array),
        cmocka_unit_test(pages),
        cmocka_unit_test(files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
