/* Small seeded models over several devices: at every border between layers, by rows, with caches elsewhere; logits against
 * those of the CPU alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/llama_support.h"
#include "sotto/model.h"

enum { N_PROMPT = 9, N_STEPS = 2 };

/* Of the largest logit of the CPU. Where rounding flips one byte of a left side, int8 differs by a step of it. */
static const double f32_bound = 1e-3, f16_bound = 2e-2, q8_bound = 1e-2, int8_bound = 2e-2;

static bool is_there(const char *id)
{
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        if (sotto_device_get(i, &info, NULL) == SOTTO_OK && strcmp(info.id, id) == 0)
            return true;
    }
    return false;
}

static void need(const char *id)
{
    if (!llama_is_made() || !is_there(id)) {
        printf("no model, or no device %s in this build\n", id);
        skip();
    }
}

/* A prompt in two sequences that share its beginning, and steps of both; the last logits. A shift is part of it. */
static void think(const sotto_llama_model *m, sotto_dtype cache_k, sotto_dtype cache_v, float *out)
{
    sotto_error err = {0};
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = 32;
    o.n_batch = 16;
    o.n_seq = 2;
    o.cache_k = cache_k;
    o.cache_v = cache_v;
    sotto_llama_session *s;
    if (sotto_llama_session_create(m, &o, &s, &err))
        fail_msg("%s", err.text);
    llama_feed(s, 0, 0, N_PROMPT);
    if (sotto_llama_seq_copy(s, 1, 0, N_PROMPT - 3, &err) || sotto_llama_seq_shift(s, 1, 1, 2, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < N_STEPS; i++) {
        const sotto_llama_row rows[2] = {{.token = llama_token(30 + i), .seq = 0, .logits = true},
                                         {.token = llama_token(40 + i), .seq = 1, .logits = true}};
        if (sotto_llama_decode(s, rows, 2, &err))
            fail_msg("%s", err.text);
    }
    memcpy(out, sotto_llama_logits(s, 0), 2 * LLAMA_VOCAB * sizeof *out);
    sotto_llama_session_free(s);
}

static void check_with(const char *name, sotto_dtype cache_k, sotto_dtype cache_v, const sotto_llama_model_options *o,
                       double bound)
{
    static float want[2 * LLAMA_VOCAB], got[2 * LLAMA_VOCAB];
    static char known[32];
    static sotto_dtype known_k, known_v;
    static bool known_bytes;
    const bool bytes = strcmp(o->compute, "int8") == 0; /* the CPU, too, is asked for */
    if (strcmp(known, name) != 0 || known_k != cache_k || known_v != cache_v || known_bytes != bytes) {
        const sotto_llama_model_options cpu = llama_options("cpu", 0, bytes ? "int8" : "f32");
        sotto_llama_model *m = llama_open(name, &cpu);
        think(m, cache_k, cache_v, want);
        sotto_llama_model_free(m);
        snprintf(known, sizeof known, "%s", name);
        known_k = cache_k;
        known_v = cache_v;
        known_bytes = bytes;
    }
    sotto_llama_model *m = llama_open(name, o);
    think(m, cache_k, cache_v, got);
    const double d = llama_difference(got, want, 2 * LLAMA_VOCAB);
    printf("%-12s %-14s %2d layers%s%s, %s: %.1e (<= %.0e)\n", name, o->backend.device, o->backend.gpu_layers,
           o->backend.split == SOTTO_SPLIT_ROW ? " by rows" : "", o->backend.kv_device ? ", caches elsewhere" : "",
           o->compute, d, bound);
    assert_true(d <= bound);
    sotto_llama_model_free(m);
}

static void check(const char *name, const sotto_llama_model_options *o, double bound)
{
    check_with(name, SOTTO_F32, SOTTO_F32, o, bound);
}

static void at_every_border_between_layers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int layers;
    } models[] = {{"llama-tied", 2}, {"gemma3-six", 6}, {"phi3-long", 2}};
    need("sim:0");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++)
        for (int layers = 1; layers <= models[i].layers; layers++) {
            sotto_llama_model_options o = llama_options("sim:0", layers, "f32");
            o.backend.no_offload = true;
            check(models[i].name, &o, f32_bound);
        }
    const sotto_llama_model_options none = llama_options("sim:0", SOTTO_LAYERS_NONE, "f32");
    check("qwen2", &none, f32_bound); /* and long products offloaded */
}

/* The model in another type, for as long as the file is there. */
static void make_in(const char *from, const char *dtype, const char *to)
{
    sotto_error err = {0};
    sotto_model_file *file;
    char path[1024];
    snprintf(path, sizeof path, "%s", llama_path(to));
    const sotto_convert_options o = {.dtype = dtype, .threads = 2};
    if (sotto_model_file_open(llama_path(from), &file, &err) || sotto_model_convert(file, path, &o, &err))
        fail_msg("%s", err.text);
    sotto_model_file_free(file);
}

static uint64_t weight_bytes(const char *name, const sotto_llama_model_options *o)
{
    sotto_llama_model *m = llama_open(name, o);
    sotto_llama_model_info info;
    sotto_llama_model_get_info(m, &info);
    sotto_llama_model_free(m);
    return info.weight_bytes;
}

/* Weights of the K types and iq4_nl, wholly on a device and half: they stay as small there as they are in the file. */
static void k_types(void **state)
{
    (void)state;
    static const char *const types[] = {"q2_k", "q3_k_m", "q4_k_m", "q5_k_m", "q6_k", "iq4_nl"};
    need("sim:0");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char name[64];
        snprintf(name, sizeof name, "split-%s", types[i]);
        make_in("llama-tied", types[i], name);
        for (int layers = 0; layers < 2; layers++) {
            const sotto_llama_model_options o = llama_options("sim:0", layers, "f32");
            check(name, &o, f32_bound);
        }
        const sotto_llama_model_options sim = llama_options("sim:0", 0, "f32"), half = llama_options("sim:0", 0, "f16");
        check(name, &half, f16_bound);
        const uint64_t here = weight_bytes(name, NULL), there = weight_bytes(name, &sim);
        printf("%-12s %llu bytes of weights, on the CPU %llu\n", name, (unsigned long long)there,
               (unsigned long long)here);
        assert_true(there <= here + here / 8);
        remove(llama_path(name));
    }
}

/* Left sides as bytes on both: with subgroups of 32 and of 8 lanes, wholly and half. */
static void in_bytes(void **state)
{
    (void)state;
    static const char *const types[] = {"q4_0", "q4_1", "q5_1", "q8_0", "q4_k_m"}, *const devices[] = {"sim:0",
                                                                                                       "sim:1"};
    need("sim:1");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char name[64];
        snprintf(name, sizeof name, "bytes-%s", types[i]);
        make_in("llama-tied", types[i], name);
        for (int run = 0; run < 4; run++) {
            const sotto_llama_model_options o = llama_options(devices[run % 2], run / 2, "int8");
            check(name, &o, int8_bound);
        }
        remove(llama_path(name));
    }
}

static void by_rows(void **state)
{
    (void)state;
    need("sim:1");
    sotto_llama_model_options o = llama_options("sim:0,sim:1", 0, "f32");
    o.backend.split = SOTTO_SPLIT_ROW;
    o.backend.device_split = "2,1";
    check("llama-tied", &o, f32_bound);
    check("qwen3", &o, f32_bound);
}

static void caches_elsewhere(void **state)
{
    (void)state;
    need("sim:0");
    sotto_llama_model_options o = llama_options("sim:0", 0, "f32");
    o.backend.kv_device = "cpu";
    check("llama-tied", &o, f32_bound);
}

/* What rounding flips in a cell's code on one device and not on the other is a step of it. */
static void caches_of_bytes(void **state)
{
    (void)state;
    need("sim:0");
    for (int layers = 0; layers < 2; layers++) {
        const sotto_llama_model_options o = llama_options("sim:0", layers, "f32");
        check_with("llama-tied", SOTTO_Q8_0, SOTTO_Q8_0, &o, q8_bound);
        check_with("gemma3", SOTTO_Q8_0, SOTTO_Q8_0, &o, q8_bound);
        check_with("gemma3", SOTTO_Q8_0, SOTTO_F16, &o, q8_bound);
        check_with("llama-tied", SOTTO_F16, SOTTO_Q8_0, &o, q8_bound);
    }
}

static void caches_that_no_buffer_holds_are_named(void **state)
{
    (void)state;
    need("sim:3"); /* buffers of 1 MiB */
    const sotto_llama_model_options mo = llama_options("sim:3", 1, "f32");
    sotto_llama_model *m = llama_open("llama-tied", &mo);
    sotto_error err = {0};
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = 1 << 15;
    sotto_llama_session *s;
    assert_int_equal(sotto_llama_session_create(m, &o, &s, &err), SOTTO_E_MEMORY);
    assert_null(s);
    assert_non_null(strstr(err.text, "cache_k.0: "));
    assert_non_null(strstr(err.text, "buffers of sim:3 hold at most 1048576"));
    sotto_llama_model_free(m);
}

static void in_16_bits(void **state)
{
    (void)state;
    need("sim:0");
    const sotto_llama_model_options o = llama_options("sim:0", 1, "f16");
    check("qwen3", &o, f16_bound);
}

static void on_the_reference(void **state)
{
    (void)state;
    need("reference");
    const sotto_llama_model_options o = llama_options("reference", 0, "f32");
    check("gemma3", &o, f32_bound);
    check("phi3-part", &o, f32_bound);
}

static void on_each_kind_of_device(void **state)
{
    (void)state;
    static const char *const ids[] = {"opencl:0", "cuda:0", "metal:0"};
    if (!llama_is_made())
        skip();
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!is_there(ids[i]))
            continue;
        for (int layers = 0; layers < 2; layers++) { /* wholly, and half */
            const sotto_llama_model_options o = llama_options(ids[i], layers, "f32"),
                                            half = llama_options(ids[i], layers, "f16");
            check("gemma3", &o, f32_bound);
            check("gemma3", &half, f16_bound);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_every_border_between_layers),
        cmocka_unit_test(k_types),
        cmocka_unit_test(in_bytes),
        cmocka_unit_test(by_rows),
        cmocka_unit_test(caches_elsewhere),
        cmocka_unit_test(caches_of_bytes),
        cmocka_unit_test(caches_that_no_buffer_holds_are_named),
        cmocka_unit_test(in_16_bits),
        cmocka_unit_test(on_the_reference),
        cmocka_unit_test(on_each_kind_of_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
