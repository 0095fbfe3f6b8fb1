/* test_sim_in_place.c: weights that a device reads where the file is mapped: in overlapping views of a bounded length, in
 * pieces, or copied where the device refuses; the results are those of copies, and the file stays as long as it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/gpu/api/sim/sim.h"
#include "base/file.h"
#include "golden/llama_support.h"

/* ---- the simulated devices of this program (sim.h): all but the last share the host's memory ---- */

static struct {
    int n_wrap, n_write, refuse_wrap; /* refuse_wrap: number of the call that fails, -1: all; 0: none */
    int64_t held;                     /* bytes of memory of its own */
    size_t largest;                   /* of it */
} sim;

static sotto_status count_call(int device, const char *name, size_t bytes)
{
    (void)device;
    sim.held += (int64_t)bytes;
    sim.largest = bytes > sim.largest ? bytes : sim.largest;
    sim.n_write += strcmp(name, "write") == 0;
    if (strcmp(name, "wrap") == 0 && (++sim.n_wrap == sim.refuse_wrap || sim.refuse_wrap < 0))
        return SOTTO_E_MEMORY;
    return SOTTO_OK;
}

static void count_freed(int device, size_t bytes)
{
    (void)device;
    sim.held -= (int64_t)bytes;
}

#define SIM(most, shared)                                                                                \
    {                                                                                                    \
        .subgroup = 16, .unified = shared, .max_buffer = most, .local_bytes = 32768, .call = count_call, \
        .freed = count_freed                                                                             \
    }

const st_sim_settings *st_sim_settings_of(int device)
{
    static const st_sim_settings all[ST_SIM_DEVICES] = {SIM(1 << 30, true), SIM(3 << 18, true), SIM(1 << 17, true),
                                                        SIM(1 << 30, false)};
    return &all[device];
}

static bool nothing(void *user, const char *op, sotto_dtype dtype)
{
    (void)user, (void)op, (void)dtype;
    return false;
}

static sotto_backend *open_device(const char *id)
{
    const sotto_backend_options o = {.device = id, .n_threads = 1, .needs = nothing};
    sotto_error err = {0};
    sotto_backend *b;
    if (sotto_backend_open(&o, &b, &err) != SOTTO_OK)
        fail_msg("%s: %s", id, err.text);
    memset(&sim, 0, sizeof sim);
    return b;
}

/* ---- a file of matrices, mapped so that a write to it would end the program ---- */

enum { WIDTH = 96, N = 5 };

static const int64_t rows[N] = {40, 3, 700, 64, 33}; /* 15 KB, a bit, 262 KB, ... */

typedef struct weights {
    st_file_map map;
    size_t at[N];
} weights;

static float number(int i, int64_t k)
{
    return (float)((k * 37 + i * 101) % 257) / 64 - 2;
}

static weights map_weights(void)
{
    char path[] = SOTTO_BUILD_DIR "/in-place-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "wb");
    weights w = {0};
    size_t at = 32;
    static const char zeros[32];
    assert_int_equal(fwrite(zeros, 1, 32, f), 32);
    for (int i = 0; i < N; i++) {
        w.at[i] = at;
        for (int64_t k = 0; k < rows[i] * WIDTH; k++) {
            const float v = number(i, k);
            assert_int_equal(fwrite(&v, sizeof v, 1, f), 1);
        }
        at += (size_t)rows[i] * WIDTH * sizeof(float);
    }
    fclose(f);
    sotto_error err = {0};
    if (st_file_map_open(path, &w.map, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    unlink(path);
    return w;
}

/* All matrices over the file, or copied. Checked by reading them back; *in_place gets the bytes that are not copied. */
static void store_them(const char *device, weights *w, bool over, uint64_t *in_place, uint64_t *own)
{
    sotto_error err = {0};
    sotto_backend *b = open_device(device);
    sotto_store *s;
    sotto_tensor *t[N];
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), SOTTO_OK);
    for (int i = 0; i < N; i++) {
        const int64_t dim[2] = {WIDTH, rows[i]};
        const sotto_host_rows at = {w->map.data + w->at[i], w->map.data, st_file_map_pages(&w->map)};
        t[i] = sotto_store_add_over(s, "w", SOTTO_F32, 2, dim, true, over ? &at : NULL);
        assert_non_null(t[i]);
    }
    if (sotto_store_allocate(s, &err) != SOTTO_OK)
        fail_msg("%s: %s", device, err.text);
    float *back = malloc(700 * WIDTH * sizeof *back);
    for (int i = 0; i < N; i++) {
        if (sotto_store_upload(s, t[i], 0, rows[i], SOTTO_F32, w->map.data + w->at[i], &err) != SOTTO_OK ||
            sotto_store_download(s, t[i], back, &err) != SOTTO_OK)
            fail_msg("%s: matrix %d: %s", device, i, err.text);
        for (int64_t k = 0; k < rows[i] * WIDTH; k++)
            assert_true(back[k] == number(i, k));
    }
    free(back);
    *in_place = sotto_store_in_place_bytes(s, -1);
    *own = sotto_store_bytes(s);
    assert_true(sotto_store_in_place_bytes(s, 0) + sotto_store_in_place_bytes(s, 1) == *in_place);
    sotto_store_free(s);
    sotto_backend_free(b);
    assert_int_equal(sim.held, 0);
}

static void views(void **state)
{
    (void)state;
    weights w = map_weights();
    uint64_t in_place, own, whole = 0;
    for (int i = 0; i < N; i++)
        whole += (uint64_t)rows[i] * WIDTH * sizeof(float);
    const uint64_t small = 3 * WIDTH * sizeof(float); /* less than a page: copied */
    store_them("sim:0", &w, false, &in_place, &own);
    const int copies = sim.n_write;
    assert_true(in_place == 0 && own >= whole && copies >= N && sim.n_wrap == 0);
    store_them("sim:0", &w, true, &in_place, &own); /* one view */
    assert_true(in_place == whole - small && own == small);
    assert_int_equal(sim.n_wrap, 1);
    assert_int_equal(sim.n_write, 1);
    assert_true(sim.largest <= small);
    store_them("sim:2", &w, true, &in_place, &own); /* views of 128 KiB at most, the largest matrix in pieces */
    assert_true(in_place == whole - small && own == small);
    assert_true(sim.n_wrap >= 4 && sim.n_write == 1);
    store_them("sim:3", &w, true, &in_place, &own); /* memory of its own */
    assert_true(in_place == 0 && own >= whole && sim.n_wrap == 0 && sim.n_write == copies);
    store_them("cpu", &w, true, &in_place, &own); /* which packs matrices */
    assert_true(in_place == 0 && own >= whole);
    st_file_map_close(&w.map);
}

/* Whichever view is refused, its tensors are copied; the others stay. */
static void refused_views(void **state)
{
    (void)state;
    static const char *const devices[] = {"sim:0", "sim:2"};
    weights w = map_weights();
    for (int d = 0; d < 2; d++) {
        uint64_t all, some, own;
        store_them(devices[d], &w, true, &all, &own);
        const int n = sim.n_wrap;
        for (int i = 1; i <= n; i++) {
            sotto_error err = {0};
            sotto_backend *b = open_device(devices[d]);
            sim.refuse_wrap = i;
            sotto_store *s;
            sotto_tensor *t[N];
            assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), SOTTO_OK);
            for (int k = 0; k < N; k++) {
                const int64_t dim[2] = {WIDTH, rows[k]};
                const sotto_host_rows at = {w.map.data + w.at[k], w.map.data, st_file_map_pages(&w.map)};
                t[k] = sotto_store_add_over(s, "w", SOTTO_F32, 2, dim, true, &at);
            }
            assert_int_equal(sotto_store_allocate(s, &err), SOTTO_OK);
            float *back = malloc(700 * WIDTH * sizeof *back);
            for (int k = 0; k < N; k++) {
                assert_int_equal(sotto_store_upload(s, t[k], 0, rows[k], SOTTO_F32, w.map.data + w.at[k], &err),
                                 SOTTO_OK);
                assert_int_equal(sotto_store_download(s, t[k], back, &err), SOTTO_OK);
                for (int64_t j = 0; j < rows[k] * WIDTH; j++)
                    assert_true(back[j] == number(k, j));
            }
            free(back);
            some = sotto_store_in_place_bytes(s, -1);
            assert_true(some < all);
            assert_true(sim.n_write > 1);
            sotto_store_free(s);
            sotto_backend_free(b);
            assert_int_equal(sim.held, 0);
        }
    }
    st_file_map_close(&w.map);
}

static void misuse(void **state)
{
    (void)state;
    weights w = map_weights();
    sotto_error err = {0};
    sotto_backend *b = open_device("sim:0");
    sotto_store *s;
    const int64_t dim[2] = {WIDTH, rows[0]};
    const size_t pages = st_file_map_pages(&w.map);
    const char *const data = (const char *)w.map.data;
    /* not aligned, before the memory, over its end, memory that is no pages: as if nothing had been said */
    const sotto_host_rows bad[] = {{data + 33, data, pages},
                                   {data, data + 4096, pages - 4096},
                                   {data + pages - 4096, data, pages},
                                   {data + 4096, data + 4096, 8192},
                                   {data + 32, data + 32, pages - 32}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s, &err), SOTTO_OK);
        sotto_tensor *t = sotto_store_add_over(s, "w", SOTTO_F32, 2, dim, true, &bad[i]);
        assert_non_null(t);
        assert_false(sotto_store_in_place(s, t));
        assert_int_equal(sotto_store_allocate(s, &err), SOTTO_OK);
        sotto_store_free(s);
    }
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_CACHE, &s, &err), SOTTO_OK);
    assert_null(sotto_store_add_over(s, "w", SOTTO_F32, 2, dim, true, &(sotto_host_rows){data, data, pages}));
    assert_int_equal(sotto_store_allocate(s, &err), SOTTO_E_ARGUMENT);
    sotto_store_free(s);
    sotto_backend_free(b);
    st_file_map_close(&w.map);
}

/* ---- a model ---- */

static void think(const sotto_llama_model_options *o, float logits[LLAMA_VOCAB], uint64_t *in_place)
{
    sotto_llama_model *m = llama_open("llama", o); /* the file is closed by now */
    sotto_llama_session *s = llama_session(m, 32, 16, 1);
    llama_feed(s, 0, 0, 3);
    llama_feed(s, 0, 3, 4);
    memcpy(logits, sotto_llama_logits(s, 0), LLAMA_VOCAB * sizeof *logits);
    sotto_llama_memory memory;
    sotto_llama_get_memory(s, 0, &memory);
    *in_place = memory.in_place;
    sotto_llama_get_memory(s, -1, &memory);
    sotto_llama_model_info info;
    sotto_llama_model_get_info(m, &info);
    assert_true(info.weight_bytes == memory.weights + memory.in_place);
    sotto_llama_session_free(s);
    sotto_llama_model_free(m);
    assert_int_equal(sim.held, 0);
}

static void a_model(void **state)
{
    (void)state;
    static const char *const devices[] = {"sim:0", "sim:1", "sim:1,sim:3"};
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    uint64_t in_place, none;
    if (!llama_is_made())
        skip();
    think(NULL, want, &in_place);
    for (int d = 0; d < 3; d++) {
        sotto_llama_model_options o = llama_options(devices[d], 0, "f32");
        o.no_mmap = true; /* then there is no mapped file */
        memset(&sim, 0, sizeof sim);
        think(&o, got, &none);
        const int copies = sim.n_write;
        assert_true(none == 0 && sim.n_wrap == 0);
        assert_true(llama_difference(got, want, LLAMA_VOCAB) < 1e-3);
        o.no_mmap = false;
        for (int way = 0; way < 3; way++) { /* in place, its pages locked, every view refused */
            float again[LLAMA_VOCAB];
            memset(&sim, 0, sizeof sim);
            sim.refuse_wrap = way == 2 ? -1 : 0;
            o.mlock = way == 1;
            think(&o, again, &in_place);
            assert_memory_equal(again, got, sizeof got);
            printf("%s: %llu bytes in place in %d views, %d writes instead of %d\n", devices[d],
                   (unsigned long long)in_place, sim.n_wrap, sim.n_write, copies);
            assert_true(way == 2 ? in_place == 0 && sim.n_write == copies
                                 : in_place > 500000 && sim.n_write < copies && sim.n_wrap > d);
        }
    }
}

/* The same by rows, where a matrix has pieces on a device that can and on one that cannot. */
static void pieces_of_two_devices(void **state)
{
    (void)state;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    uint64_t in_place;
    if (!llama_is_made())
        skip();
    think(NULL, want, &in_place);
    sotto_llama_model_options o = llama_options("sim:0,sim:3", 0, "f32");
    o.backend.split = SOTTO_SPLIT_ROW;
    memset(&sim, 0, sizeof sim);
    think(&o, got, &in_place);
    assert_true(in_place > 100000);
    assert_true(llama_difference(got, want, LLAMA_VOCAB) < 1e-3);
}

/* Only counted: what would be read in place is told apart. */
static void measured(void **state)
{
    (void)state;
    if (!llama_is_made())
        skip();
    uint64_t counted[2][2];
    memset(&sim, 0, sizeof sim);
    for (int real = 0; real < 2; real++) {
        sotto_llama_model_options o = llama_options("sim:0", 0, "f32");
        o.measure_only = !real;
        sotto_llama_model *m = llama_open("llama", &o);
        sotto_llama_session *s = llama_session(m, 32, 16, 1);
        sotto_llama_memory memory;
        sotto_llama_get_memory(s, 0, &memory);
        counted[real][0] = memory.weights;
        counted[real][1] = memory.in_place;
        sotto_llama_session_free(s);
        sotto_llama_model_free(m);
    }
    assert_memory_equal(counted[0], counted[1], sizeof counted[0]);
}

/* Rows of an embedding that is only looked up are read in place by the CPU, too. */
static void rows_on_the_cpu(void **state)
{
    (void)state;
    if (!llama_is_made())
        skip();
    sotto_llama_model_options o = llama_options("cpu", 0, "f32");
    sotto_llama_model *m = llama_open("llama", &o); /* its output is another matrix */
    sotto_llama_session *s = llama_session(m, 32, 16, 1);
    sotto_llama_memory memory;
    sotto_llama_get_memory(s, 0, &memory);
    assert_true(memory.in_place > 100000);
    sotto_llama_session_free(s);
    sotto_llama_model_free(m);
}

static void on_opencl(void **state)
{
    (void)state;
    float want[LLAMA_VOCAB], got[LLAMA_VOCAB];
    uint64_t in_place;
    sotto_device_info info = {0};
    bool shares = false;
    for (int i = 0; i < sotto_device_count() && !shares; i++)
        shares = sotto_device_get(i, &info, NULL) == SOTTO_OK && strncmp(info.id, "opencl:", 7) == 0 &&
                 info.wraps_host_memory;
    if (!llama_is_made() || !shares) {
        printf("skipped: no model, or no OpenCL device that shares the host's memory\n");
        skip();
    }
    think(NULL, want, &in_place);
    const sotto_llama_model_options o = llama_options(info.id, 0, "f32");
    think(&o, got, &in_place);
    assert_true(in_place > 500000);
    assert_true(llama_difference(got, want, LLAMA_VOCAB) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views),     cmocka_unit_test(refused_views),         cmocka_unit_test(misuse),
        cmocka_unit_test(a_model),   cmocka_unit_test(pieces_of_two_devices), cmocka_unit_test(measured),
        cmocka_unit_test(on_opencl), cmocka_unit_test(rows_on_the_cpu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
