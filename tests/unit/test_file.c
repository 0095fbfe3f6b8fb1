/* Files: mapping, kinds, and writing that shows nothing until it is complete. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/file.h"

typedef struct folder {
    char path[64];
} folder;

static int make_folder(void **state)
{
    folder *const f = malloc(sizeof *f);
    strcpy(f->path, "/tmp/sotto-file-XXXXXX");
    *state = f;
    return mkdtemp(f->path) ? 0 : -1;
}

/* Number of entries; the last name is left in name. */
static int entries(const char *path, char name[256], bool remove_them)
{
    DIR *const d = opendir(path);
    int count = 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        count++;
        if (name)
            strcpy(name, e->d_name);
        if (remove_them && unlinkat(dirfd(d), e->d_name, 0) != 0)
            unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR);
    }
    closedir(d);
    return count;
}

static int remove_folder(void **state)
{
    folder *const f = *state;
    entries(f->path, NULL, true);
    rmdir(f->path);
    free(f);
    return 0;
}

static char *in(const folder *f, const char *name)
{
    static char path[512]; /* one at a time */
    strcpy(path, f->path);
    strcat(path, "/");
    return strcat(path, name);
}

static void put(const char *path, const void *data, size_t n)
{
    FILE *const f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void expect_content(const char *path, const void *data, size_t n)
{
    st_file_map map;
    sotto_error err;
    if (st_file_map_open(path, &map, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    assert_int_equal(map.size, n);
    if (n)
        assert_memory_equal(map.data, data, n);
    else
        assert_null(map.data);
    st_file_map_close(&map);
    assert_null(map.data);
    st_file_map_close(&map); /* twice does no harm */
}

static void expect_map_error(const char *path, sotto_status code, const char *reason)
{
    st_file_map map = {.data = (const uint8_t *)"x", .size = 1};
    sotto_error err = {0};
    assert_int_equal(st_file_map_open(path, &map, &err), code);
    assert_int_equal(err.code, code);
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    if (strncmp(err.text, path, strlen(path)) != 0 || !strstr(err.text, reason))
        fail_msg("\"%s\" should name %s and say \"%s\"", err.text, path, reason);
    assert_int_equal(st_file_map_open(path, &map, NULL), code);
}

static void maps_what_was_written(void **state)
{
    const folder *const f = *state;
    put(in(f, "a"), "content", 7);
    expect_content(in(f, "a"), "content", 7);
    put(in(f, "empty"), "", 0);
    expect_content(in(f, "empty"), "", 0);
    put(in(f, "gr\xc3\xbc\xc3\x9f dich.bin"), "x", 1);
    expect_content(in(f, "gr\xc3\xbc\xc3\x9f dich.bin"), "x", 1);
}

static void names_what_is_wrong(void **state)
{
    const folder *const f = *state;
    expect_map_error(in(f, "missing"), SOTTO_E_NOT_FOUND, "cannot open: No such file");
    put(in(f, "file"), "x", 1);
    expect_map_error(in(f, "file/below"), SOTTO_E_NOT_FOUND, "cannot open");
    expect_map_error(f->path, SOTTO_E_IO, "is a folder");
    assert_int_equal(mkfifo(in(f, "pipe"), 0600), 0);
    expect_map_error(in(f, "pipe"), SOTTO_E_IO, "a device or a pipe"); /* and does not wait for a writer */
    expect_map_error("/dev/null", SOTTO_E_IO, "a device or a pipe");
    expect_map_error("", SOTTO_E_NOT_FOUND, "cannot open");
    if (geteuid() != 0) {
        chmod(in(f, "file"), 0);
        expect_map_error(in(f, "file"), SOTTO_E_IO, "cannot open: Permission denied");
    }
}

static void released_pages_read_the_same(void **state)
{
    const folder *const f = *state;
    enum { SIZE = 1 << 20 | 123 };
    uint8_t *const data = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        data[i] = (uint8_t)(i * 7 + i / 4096);
    put(in(f, "large"), data, SIZE);
    st_file_map map;
    assert_int_equal(st_file_map_open(in(f, "large"), &map, NULL), SOTTO_OK);
    const size_t ranges[][2] = {
        {0, SIZE},     {0, 0},        {1, 4096},          {4095, 2},        {4096, 4096},
        {100, 100000}, {SIZE - 1, 1}, {SIZE, SIZE_MAX},   {5000, SIZE_MAX}, {SIZE_MAX, SIZE_MAX},
        {SIZE + 1, 1}, {SIZE, 0},     {SIZE - 4096, 4096}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        st_file_map_release(&map, ranges[i][0], ranges[i][1]);
        assert_memory_equal(map.data, data, SIZE);
    }
    st_file_map_close(&map);
    const st_file_map none = {0};
    st_file_map_release(&none, 0, 100);
    free(data);
}

/* A copy outlives the file and is not released; locking works or is refused, and changes nothing either way. */
static void copies_and_locks(void **state)
{
    const folder *const f = *state;
    st_file_map copy, map;
    sotto_error err = {0};
    put(in(f, "a"), "content", 7);
    assert_int_equal(st_file_map_read(in(f, "a"), &copy, NULL), SOTTO_OK);
    assert_int_equal(st_file_map_open(in(f, "a"), &map, NULL), SOTTO_OK);
    const st_file_map *const both[] = {&copy, &map};
    for (int i = 0; i < 2; i++) {
        if (st_file_map_lock(both[i], "a", &err) != SOTTO_OK)
            assert_non_null(strstr(err.text, "a: cannot keep 7 bytes in memory"));
        st_file_map_release(both[i], 0, SIZE_MAX);
        assert_memory_equal(both[i]->data, "content", 7);
    }
    st_file_map_close(&map);
    put(in(f, "a"), "other", 5);
    assert_int_equal(copy.size, 7);
    assert_memory_equal(copy.data, "content", 7);
    st_file_map_close(&copy);
    st_file_map_close(&copy);
    put(in(f, "empty"), "", 0);
    assert_int_equal(st_file_map_read(in(f, "empty"), &copy, NULL), SOTTO_OK);
    assert_null(copy.data);
    assert_int_equal(st_file_map_lock(&copy, "empty", NULL), SOTTO_OK);
    assert_int_equal(st_file_map_read(in(f, "missing"), &copy, NULL), SOTTO_E_NOT_FOUND);
    assert_int_equal(st_file_map_read(f->path, &copy, NULL), SOTTO_E_IO);
}

static void kinds_and_joined_paths(void **state)
{
    const folder *const f = *state;
    put(in(f, "file"), "x", 1);
    assert_int_equal(st_path_kind_of(in(f, "file")), ST_PATH_FILE);
    assert_int_equal(st_path_kind_of(f->path), ST_PATH_FOLDER);
    assert_int_equal(st_path_kind_of("/dev/null"), ST_PATH_OTHER);
    assert_int_equal(st_path_kind_of(in(f, "none")), ST_PATH_NONE);
    const char *const cases[][3] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"},
                                    {"", "b", "b"},    {"a", "", "a"},     {"", "", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *const path = st_path_join(cases[i][0], cases[i][1]);
        assert_string_equal(path, cases[i][2]);
        st_free(path);
    }
}

static st_file_writer *open_writer(const char *path)
{
    st_file_writer *w;
    sotto_error err;
    if (st_file_writer_open(path, &w, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return w;
}

static void a_file_appears_only_when_complete(void **state)
{
    const folder *const f = *state;
    const mode_t mask = umask(027);
    st_file_writer *const w = open_writer(in(f, "out"));
    umask(mask);
    assert_int_equal(st_file_writer_write(w, "hello ", 6, NULL), SOTTO_OK);
    assert_int_equal(st_file_writer_write(w, NULL, 0, NULL), SOTTO_OK);
    assert_int_equal(st_file_writer_write(w, "world", 5, NULL), SOTTO_OK);
    assert_true(st_file_writer_at(w) == 11);
    assert_int_equal(st_path_kind_of(in(f, "out")), ST_PATH_NONE);
    char name[256];
    assert_int_equal(entries(f->path, name, false), 1);
    assert_int_equal(name[0], '.'); /* hidden while incomplete */
    assert_int_equal(st_file_writer_commit(w, NULL), SOTTO_OK);
    expect_content(in(f, "out"), "hello world", 11);
    assert_int_equal(entries(f->path, name, false), 1);
    struct stat info;
    assert_int_equal(stat(in(f, "out"), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640); /* what any new file gets */
}

static void discarding_leaves_the_old_file(void **state)
{
    const folder *const f = *state;
    put(in(f, "out"), "old", 3);
    st_file_writer *w = open_writer(in(f, "out"));
    st_file_writer_write(w, "new", 3, NULL);
    st_file_writer_discard(w);
    st_file_writer_discard(NULL);
    expect_content(in(f, "out"), "old", 3);
    assert_int_equal(entries(f->path, NULL, false), 1);
    w = open_writer(in(f, "out"));
    st_file_writer_write(w, "new", 3, NULL);
    assert_int_equal(st_file_writer_commit(w, NULL), SOTTO_OK);
    expect_content(in(f, "out"), "new", 3);
}

/* Two writers of one name at once, and left-overs of a process that died: names differ, the last commit wins. */
static void writers_do_not_meet(void **state)
{
    const folder *const f = *state;
    char stale[64];
    snprintf(stale, sizeof stale, ".sotto-%ld-0.tmp", (long)getpid());
    put(in(f, stale), "left over", 9);
    st_file_writer *const a = open_writer(in(f, "out")), *const b = open_writer(in(f, "out"));
    st_file_writer_write(a, "first", 5, NULL);
    st_file_writer_write(b, "second", 6, NULL);
    assert_int_equal(st_file_writer_commit(b, NULL), SOTTO_OK);
    assert_int_equal(st_file_writer_commit(a, NULL), SOTTO_OK);
    expect_content(in(f, "out"), "first", 5);
    expect_content(in(f, stale), "left over", 9);
}

static void a_link_stays_a_link(void **state)
{
    const folder *const f = *state;
    put(in(f, "real"), "old", 3);
    assert_int_equal(symlink("real", in(f, "link")), 0);
    st_file_writer *const w = open_writer(in(f, "link"));
    st_file_writer_write(w, "new", 3, NULL);
    assert_int_equal(st_file_writer_commit(w, NULL), SOTTO_OK);
    struct stat info;
    assert_int_equal(lstat(in(f, "link"), &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    expect_content(in(f, "real"), "new", 3);
}

static void expect_writer_error(const char *path, sotto_status code, const char *reason)
{
    st_file_writer *w = (st_file_writer *)1;
    sotto_error err = {0};
    assert_int_equal(st_file_writer_open(path, &w, &err), code);
    assert_null(w);
    if (!strstr(err.text, path) || !strstr(err.text, reason))
        fail_msg("\"%s\" should name %s and say \"%s\"", err.text, path, reason);
    assert_int_equal(st_file_writer_open(path, &w, NULL), code);
}

static void writers_name_what_is_wrong(void **state)
{
    const folder *const f = *state;
    expect_writer_error(f->path, SOTTO_E_IO, "is a folder");
    expect_writer_error(in(f, "none/out"), SOTTO_E_NOT_FOUND, "cannot write: No such file");
    put(in(f, "file"), "x", 1);
    expect_writer_error(in(f, "file/out"), SOTTO_E_NOT_FOUND, "cannot write: Not a directory");
    if (geteuid() != 0) {
        chmod(f->path, 0500);
        expect_writer_error(in(f, "out"), SOTTO_E_IO, "cannot write: Permission denied");
        chmod(f->path, 0700);
    }
    assert_int_equal(entries(f->path, NULL, false), 1);
}

/* A folder that comes to stand in the place before the end: nothing is left behind. */
static void a_commit_that_fails_cleans_up(void **state)
{
    const folder *const f = *state;
    st_file_writer *const w = open_writer(in(f, "out"));
    st_file_writer_write(w, "x", 1, NULL);
    assert_int_equal(mkdir(in(f, "out"), 0700), 0);
    sotto_error err = {0};
    assert_int_equal(st_file_writer_commit(w, &err), SOTTO_E_IO);
    assert_non_null(strstr(err.text, "out: cannot write: "));
    assert_int_equal(entries(f->path, NULL, false), 1);
}

/* /dev/full fails every write that reaches it: small ones at the commit, large ones at once, and from then on all. */
static void a_full_disk_is_noticed(void **state)
{
    (void)state;
    if (st_path_kind_of("/dev/full") != ST_PATH_OTHER)
        skip();
    sotto_error err = {0};
    st_file_writer *w = open_writer("/dev/full");
    assert_int_equal(st_file_writer_write(w, "x", 1, &err), SOTTO_OK);
    assert_int_equal(st_file_writer_commit(w, &err), SOTTO_E_IO);
    assert_string_equal(err.text, "/dev/full: cannot write: No space left on device");
    assert_int_equal(st_path_kind_of("/dev/full"), ST_PATH_OTHER);

    void *const large = calloc(1, 1 << 20);
    w = open_writer("/dev/full");
    assert_int_equal(st_file_writer_write(w, large, 1 << 20, NULL), SOTTO_E_IO);
    err = (sotto_error){0};
    assert_int_equal(st_file_writer_write(w, "x", 1, &err), SOTTO_E_IO);
    assert_non_null(strstr(err.text, "No space left on device"));
    assert_true(st_file_writer_at(w) == 0);
    assert_int_equal(st_file_writer_commit(w, &err), SOTTO_E_IO);
    free(large);
}

/* A device is written to in place: renaming over it would replace it. */
static void a_device_stays_a_device(void **state)
{
    (void)state;
    st_file_writer *const w = open_writer("/dev/null");
    assert_int_equal(st_file_writer_write(w, "x", 1, NULL), SOTTO_OK);
    assert_int_equal(st_file_writer_commit(w, NULL), SOTTO_OK);
    assert_int_equal(st_path_kind_of("/dev/null"), ST_PATH_OTHER);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(maps_what_was_written),
        IN_FOLDER(names_what_is_wrong),
        IN_FOLDER(released_pages_read_the_same),
        IN_FOLDER(copies_and_locks),
        IN_FOLDER(kinds_and_joined_paths),
        IN_FOLDER(a_file_appears_only_when_complete),
        IN_FOLDER(discarding_leaves_the_old_file),
        IN_FOLDER(writers_do_not_meet),
        IN_FOLDER(a_link_stays_a_link),
        IN_FOLDER(writers_name_what_is_wrong),
        IN_FOLDER(a_commit_that_fails_cleans_up),
        cmocka_unit_test(a_full_disk_is_noticed),
        cmocka_unit_test(a_device_stays_a_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
