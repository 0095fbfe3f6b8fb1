/* test_placement.c: names of devices, shares, layers, and options that have no effect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_backend.h"
#include "unit/sched_support.h"

typedef struct said {
    int warnings;
    char last[256];
} said;

static void note(void *user, sotto_log_level level, const char *text)
{
    said *s = user;
    s->warnings += level == SOTTO_LOG_WARNING;
    snprintf(s->last, sizeof s->last, "%s", text);
}

/* "0 0 1 2": the devices of n layers */
static const char *layers_of(const sotto_backend *b, int n)
{
    static char out[256];
    out[0] = 0;
    for (int i = 0; i < n; i++)
        snprintf(out + strlen(out), sizeof out - strlen(out), "%s%d", i ? " " : "", sotto_backend_layer_device(b, i, n));
    return out;
}

static void check_layers(int n_devices, const sotto_backend_options *o, int n, const char *want)
{
    sched_machine m = sched_open(n_devices, o, NULL);
    assert_string_equal(layers_of(m.backend, n), want);
    sched_close(&m);
}

static void layers_are_shared_out(void **state)
{
    (void)state;
    sotto_backend_options o = {0};
    check_layers(0, &o, 3, "0 0 0");
    check_layers(1, &o, 3, "0 0 0");
    check_layers(2, &o, 4, "0 0 1 1"); /* no free memory is told: the same for each */
    check_layers(3, &o, 7, "0 0 1 1 1 2 2");
    o.device_split = "3,1";
    check_layers(2, &o, 8, "0 0 0 0 0 0 1 1");
    o.device_split = "0,1";
    check_layers(2, &o, 3, "1 1 1");
    o = (sotto_backend_options){.gpu_layers = 2};
    check_layers(1, &o, 4, "0 0 1 1");
    check_layers(2, &o, 4, "0 1 2 2");
    o.gpu_layers = 9;
    check_layers(2, &o, 4, "0 0 1 1");
    o.gpu_layers = SOTTO_LAYERS_NONE;
    check_layers(2, &o, 3, "2 2 2");
    o = (sotto_backend_options){.split = SOTTO_SPLIT_ROW};
    check_layers(3, &o, 3, "0 0 0");
    o.main_device = "private:1";
    check_layers(3, &o, 3, "1 1 1");
}

static void caches_and_the_rest(void **state)
{
    (void)state;
    sotto_backend_options o = {.kv_device = "reference", .main_device = "private:1"};
    sched_machine m = sched_open(2, &o, NULL);
    assert_int_equal(sotto_backend_cache_device(m.backend, 0, 4), 2);
    assert_int_equal(sotto_backend_main_device(m.backend), 1);
    sotto_backend *like;
    assert_int_equal(sotto_backend_open_like(m.backend, 0, NULL, &like, NULL), SOTTO_OK);
    assert_int_equal(sotto_backend_cache_device(like, 0, 4), 2);
    assert_int_equal(sotto_backend_main_device(like), 1);
    assert_string_equal(layers_of(like, 4), "0 0 1 1");
    sotto_backend_free(like);
    sotto_backend_set_layers(m.backend, 1);
    assert_string_equal(layers_of(m.backend, 3), "0 2 2");
    assert_false(sotto_backend_is_auto(m.backend));
    sched_close(&m);
    m = sched_open(2, NULL, NULL);
    assert_int_equal(sotto_backend_cache_device(m.backend, 3, 4), 1);
    sched_close(&m);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    static const struct {
        sotto_backend_options o;
        const char *text;
    } bad[] = {{{.device_split = "1"}, "device_split: expected 2 numbers"},
               {{.device_split = "1,2,3"}, "device_split"},
               {{.device_split = "1,x"}, "device_split"},
               {{.device_split = "-1,2"}, "device_split"},
               {{.device_split = "0,0"}, "all shares are 0"},
               {{.device_split = "nan,1"}, "device_split"},
               {{.main_device = "private:7"}, "main_device \"private:7\": expected one of the devices in use, private:0"},
               {{.kv_device = "cuda:0"}, "kv_device"},
               {{.split = (sotto_split)7}, "split: 7"}};
    const st_device_pick picks[3] = {
        {&st_backend_ref_device, 0}, {&st_backend_ref_device, 1}, {&st_backend_reference, 0}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sotto_backend *b;
        sotto_error err = {0};
        assert_int_equal(st_backend_open_picks(picks, 3, &bad[i].o, &b, &err), SOTTO_E_ARGUMENT);
        assert_null(b);
        if (!strstr(err.text, bad[i].text))
            fail_msg("\"%s\" is not in: %s", bad[i].text, err.text);
    }
}

static void names_of_devices(void **state)
{
    (void)state;
    sotto_error err;
    sotto_backend *b;
    sotto_backend_options o = {.device = "reference,reference"};
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "named twice"));
    static const char *const unknown[] = {"quantum:0", "cpu,", ",cpu", "cuda:99999999999999999999999999999999999", ","};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        o.device = unknown[i];
        assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_E_NOT_FOUND);
        assert_non_null(strstr(err.text, "expected auto or one of"));
    }
    o.device = "reference"; /* alone */
    assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_OK);
    assert_int_equal(sotto_backend_device_count(b), 1);
    sotto_backend_free(b);
    o.device = "cpu";
    if (sotto_backend_open(&o, &b, &err) == SOTTO_OK) {
        sotto_device_info info;
        assert_int_equal(sotto_backend_device_count(b), 1);
        assert_int_equal(sotto_backend_device(b, 0, &info, &err), SOTTO_OK);
        assert_string_equal(info.id, "cpu");
        assert_int_equal(sotto_backend_device(b, 1, &info, &err), SOTTO_E_ARGUMENT);
        sotto_backend_free(b);
        o.device = "cpu,reference"; /* the CPU is the last resort wherever it is named */
        assert_int_equal(sotto_backend_open(&o, &b, &err), SOTTO_OK);
        assert_int_equal(sotto_backend_device(b, 1, &info, &err), SOTTO_OK);
        assert_string_equal(info.id, "cpu");
        sotto_backend_free(b);
    }
}

static void options_without_effect_are_told(void **state)
{
    (void)state;
    static const struct {
        sotto_backend_options o;
        const char *text;
        int n;
    } idle[] = {{{.gpu_layers = 3}, "gpu_layers has no effect", 0},
                {{.kv_device = "reference"}, "kv_device has no effect", 0},
                {{.main_device = "reference"}, "main_device has no effect", 0},
                {{.no_offload = true}, "no_offload has no effect", 0},
                {{.device_split = "1"}, "device_split has no effect", 1},
                {{.split = SOTTO_SPLIT_ROW}, "split row has no effect", 1}};
    for (size_t i = 0; i < sizeof idle / sizeof *idle; i++) {
        said s = {0};
        sotto_backend_options o = idle[i].o;
        o.logger = (sotto_logger){.write = note, .user = &s};
        sched_machine m = sched_open(idle[i].n, &o, NULL);
        if (s.warnings != 1 || !strstr(s.last, idle[i].text))
            fail_msg("%d warnings, the last \"%s\", expected %s", s.warnings, s.last, idle[i].text);
        sched_close(&m);
    }
    said s = {0};
    const sotto_backend_options useful = {.gpu_layers = 1,
                                          .device_split = "1,1",
                                          .split = SOTTO_SPLIT_ROW,
                                          .no_offload = true,
                                          .logger = {.write = note, .user = &s}};
    sched_machine m = sched_open(2, &useful, NULL);
    assert_int_equal(s.warnings, 0);
    sched_close(&m);
}

/* ---- stores over several buffers and devices ---- */

static void stores_go_over_several_buffers(void **state)
{
    (void)state;
    const st_ref_device_config config[2] = {{.max_size = 20000}, {.recommended = 1000}};
    said s = {0};
    const sotto_backend_options o = {.logger = {.write = note, .user = &s}};
    sched_machine m = sched_open(2, &o, config);
    sotto_store *store;
    sotto_error err = {0};
    assert_int_equal(sotto_store_create(m.backend, SOTTO_USAGE_WEIGHTS, &store, &err), SOTTO_OK);
    const int64_t row[2] = {64, 30}, high[2] = {64, 200};
    sotto_tensor *t[6];
    for (int i = 0; i < 5; i++) /* 7680 bytes each: two in a buffer */
        t[i] = sotto_store_add(store, "t", SOTTO_F32, 2, row, false);
    assert_true(t[0]->buffer == t[1]->buffer && t[1]->buffer != t[2]->buffer && t[2]->buffer == t[3]->buffer);
    assert_true(sotto_store_would_split(store, SOTTO_F32, 2, high));
    assert_false(sotto_store_would_split(store, SOTTO_F32, 2, row));
    t[5] = sotto_store_add(store, "high", SOTTO_F32, 2, high, true); /* 51200 bytes */
    assert_true(t[5]->flags & ST_TENSOR_SPLIT);
    const st_split *split = t[5]->extra;
    assert_true(split->n >= 3);
    int64_t next = 0;
    for (int i = 0; i < split->n; i++) {
        assert_int_equal(split->piece[i].row, next);
        assert_true(i == split->n - 1 || split->piece[i].t->dim[1] % 32 == 0);
        assert_true(sotto_tensor_bytes(split->piece[i].t) <= 20000);
        next += split->piece[i].t->dim[1];
    }
    assert_int_equal(next, 200);
    sotto_store_set_device(store, 1);
    (void)sotto_store_add(store, "there", SOTTO_F32, 2, high, true);
    assert_true(sotto_store_device_bytes(store, 1) == 51200);
    assert_true(sotto_store_device_bytes(store, 0) + 51200 == sotto_store_bytes(store));
    assert_int_equal(sotto_store_allocate(store, &err), SOTTO_OK);
    assert_int_equal(s.warnings, 1); /* of the second device's memory */
    assert_non_null(strstr(s.last, "private:1"));
    static float x[64 * 200], back[64 * 200];
    for (int i = 0; i < 64 * 200; i++)
        x[i] = (float)i;
    assert_int_equal(sotto_store_upload(store, t[5], 0, 77, SOTTO_F32, x, &err), SOTTO_OK); /* across a border */
    assert_int_equal(sotto_store_upload(store, t[5], 77, 123, SOTTO_F32, x + 64 * 77, &err), SOTTO_OK);
    assert_int_equal(sotto_store_download(store, t[5], back, &err), SOTTO_OK);
    assert_memory_equal(back, x, sizeof x);
    sotto_store_free(store);
    /* one that cannot be cut */
    assert_int_equal(sotto_store_create(m.backend, SOTTO_USAGE_CACHE, &store, &err), SOTTO_OK);
    assert_null(sotto_store_add(store, "cells.7", SOTTO_F32, 2, high, false));
    assert_int_equal(sotto_store_allocate(store, &err), SOTTO_E_MEMORY);
    assert_non_null(strstr(err.text, "cells.7"));
    assert_non_null(strstr(err.text, "20000"));
    sotto_store_free(store);
    sched_close(&m);
}

static void rows_of_a_matrix_follow_the_shares(void **state)
{
    (void)state;
    const sotto_backend_options o = {.split = SOTTO_SPLIT_ROW, .device_split = "3,0,1"};
    sched_machine m = sched_open(3, &o, NULL);
    sotto_store *store;
    assert_int_equal(sotto_store_create(m.backend, SOTTO_USAGE_WEIGHTS, &store, NULL), SOTTO_OK);
    const int64_t dim[2] = {32, 250}, low[2] = {32, 32};
    const sotto_tensor *t = sotto_store_add(store, "w", SOTTO_F16, 2, dim, true);
    const st_split *split = t->extra;
    assert_int_equal(split->n, 2);
    assert_int_equal(split->piece[0].t->dim[1], 192);
    assert_int_equal(split->piece[1].row, 192);
    assert_true(sotto_store_device_bytes(store, 1) == 0 && sotto_store_device_bytes(store, 2) == 58 * 64);
    t = sotto_store_add(store, "low", SOTTO_F16, 2, low, true);
    assert_false(t->flags & ST_TENSOR_SPLIT); /* not worth it */
    sotto_store_set_device(store, 3);
    t = sotto_store_add(store, "host", SOTTO_F16, 2, dim, true);
    assert_false(t->flags & ST_TENSOR_SPLIT);
    sotto_store_set_device(store, 9);
    assert_int_equal(sotto_store_allocate(store, NULL), SOTTO_E_ARGUMENT);
    sotto_store_free(store);
    sched_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_are_shared_out),
        cmocka_unit_test(caches_and_the_rest),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(names_of_devices),
        cmocka_unit_test(options_without_effect_are_told),
        cmocka_unit_test(stores_go_over_several_buffers),
        cmocka_unit_test(rows_of_a_matrix_follow_the_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
