/* test_opencl_cache.c: programs built once are found on disk the next time; what is damaged, foreign or not readable is
 * built again, and a folder that cannot be written to is no failure. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/gpu/api/opencl/opencl.h"
#include "backends/opencl_support.h"

static char folder[] = "/tmp/sotto-cache-XXXXXX";
static char file[600];
static int seen_hits, seen_builds;

/* Opens the first device, gets a kernel ready, closes: the context and all its programs end. */
static void start(int hits, int builds)
{
    void *device = ocl_open(0);
    OCL_OK(st_gpu_opencl.ready(device, ST_GPU_get_rows, &ocl_error));
    OCL_OK(st_gpu_opencl.ready(device, ST_GPU_set_rows, &ocl_error)); /* of the same module */
    st_gpu_opencl.close(device);
    const st_opencl_device *const d = st_opencl_device_at(0, NULL);
    assert_int_equal(d->users, 0);
    assert_null(d->context);
    assert_int_equal(d->cache_hits - seen_hits, hits);
    assert_int_equal(d->builds - seen_builds, builds);
    seen_hits = d->cache_hits;
    seen_builds = d->builds;
}

/* The only file of the cache, and its size. */
static long find_file(void)
{
    char name[300];
    int n = 0;
    snprintf(name, sizeof name, "%s/sotto/opencl", folder);
    DIR *d = opendir(name);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        if (e->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", name, e->d_name);
            n++;
        }
    closedir(d);
    assert_int_equal(n, 1);
    struct stat info;
    assert_int_equal(stat(file, &info), 0);
    return (long)info.st_size;
}

static void change_byte(long at)
{
    FILE *f = fopen(file, "r+b");
    assert_non_null(f);
    fseek(f, at, SEEK_SET);
    const int c = fgetc(f);
    fseek(f, at, SEEK_SET);
    fputc(c ^ 0x55, f);
    fclose(f);
}

static void second_start_hits(void **state)
{
    (void)state;
    start(0, 1);
    start(1, 0);
}

static void damaged_files_are_rebuilt(void **state)
{
    (void)state;
    const long size = find_file();
    const long cuts[] = {0, 7, 30, size / 2, size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        assert_int_equal(truncate(file, cuts[i]), 0);
        start(0, 1);
        assert_int_equal(find_file(), size);
    }
    const long places[] = {0, 9, 17, 25, 33, 60, size - 1}; /* magic, key, size, sum, binary */
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        change_byte(places[i]);
        start(0, 1);
    }
    start(1, 0);
}

static void other_options_are_other_programs(void **state)
{
    (void)state;
    const int before = st_opencl_device_at(0, NULL)->caps.subgroup;
    const bool real = st_opencl_device_at(0, NULL)->real_subgroups;
    assert_true(st_opencl_set_subgroup(0, before == 32 ? 16 : 32, false));
    start(0, 1);
    start(1, 0);
    assert_true(st_opencl_set_subgroup(0, before, real));
    start(1, 0);
}

static void no_folder_is_no_failure(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", "/dev/null", 1); /* below what is no folder */
    start(0, 1);
    start(0, 1);
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/dev/null", 1);
    start(0, 1);
    unsetenv("HOME");
    start(0, 1);
}

int main(void)
{
    if (!mkdtemp(folder))
        return 1;
    setenv("XDG_CACHE_HOME", folder, 1);
    if (st_opencl_count() == 0) {
        printf("no OpenCL device here\n");
        rmdir(folder);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(second_start_hits),
        cmocka_unit_test(damaged_files_are_rebuilt),
        cmocka_unit_test(other_options_are_other_programs),
        cmocka_unit_test(no_folder_is_no_failure),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) != 0 || failed;
}
