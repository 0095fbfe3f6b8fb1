/* test_split.c: a small model of the real layout on several devices at once: at every border between layers, by rows, with
 * caches elsewhere, in buffers of 1 MiB, and from two threads. Logits against those of the CPU alone. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "models/whisper/net.h"

#define MODEL SOTTO_BUILD_DIR "/tiny/tiny-multilingual-ggml-f32.bin"

enum { N_CTX = 24, N_PROMPT = 4, N_STEPS = 1, N_LOGITS = 51865 };

static const double f32_bound = 1e-3, f16_bound = 2e-2, q8_0_bound = 6e-2; /* of the largest logit of the CPU */

static bool is_there(const char *id)
{
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        if (sotto_device_get(i, &info, NULL) == SOTTO_OK && strcmp(info.id, id) == 0)
            return true;
    }
    return false;
}

static sotto_status load(const sotto_backend_options *backend, const char *compute, sotto_whisper_model **out,
                         sotto_error *err)
{
    sotto_whisper_model_options o;
    sotto_whisper_model_options_default(&o);
    o.backend = *backend;
    o.compute = compute;
    return sotto_whisper_model_open(MODEL, &o, out, err);
}

/* Encodes a window and decodes a prompt and some steps; the logits of the last go to out. */
static sotto_status think_with(const sotto_whisper_model *model, const char *caches, int seed, float *out,
                               sotto_error *err)
{
    st_net_shape shape = {.n_seq = 2};
    sotto_backend *backend = NULL;
    sotto_arena *arena = NULL;
    st_net *net = NULL;
    const int n_mels = model->h.n_mels;
    float *mel = calloc((size_t)n_mels * ST_WINDOW_FRAMES, sizeof *mel);
    for (int i = 0; i < n_mels * 2 * N_CTX; i++)
        mel[i] = sinf((float)(i % 977 * (seed + 3)) * 0.37f);
    sotto_status status = sotto_backend_open_like(model->backend, 1, NULL, &backend, err);
    if (status == SOTTO_OK)
        status = sotto_arena_create(backend, &arena, err);
    if (status == SOTTO_OK)
        status = st_net_cache_type(model, "cache_k", caches, &shape.keys, err);
    shape.values = shape.keys;
    if (status == SOTTO_OK)
        status = st_net_create(model, backend, arena, &shape, &net, err);
    if (status == SOTTO_OK)
        status = st_net_set_audio_ctx(net, N_CTX, err);
    if (status == SOTTO_OK) {
        st_engine e = st_net_engine(net);
        status = e.encode(e.ctx, 0, mel, ST_WINDOW_FRAMES, err);
        st_row rows[N_PROMPT];
        for (int i = 0; i < N_PROMPT; i++)
            rows[i] = (st_row){.token = 100 * i + seed, .pos = i, .seq = 0, .logits = i == N_PROMPT - 1 ? out : NULL};
        if (status == SOTTO_OK)
            status = e.decode(e.ctx, rows, N_PROMPT, err);
        st_row row = {0};
        for (int i = 0; i < N_STEPS && status == SOTTO_OK; i++) {
            row = (st_row){.token = 7 * i + seed, .pos = N_PROMPT + i, .seq = 0, .logits = out};
            status = e.decode(e.ctx, &row, 1, err);
        }
        if (status == SOTTO_OK && row.logits != out)
            memcpy(out, row.logits, N_LOGITS * sizeof *out);
    }
    st_net_free(net);
    sotto_arena_free(arena);
    sotto_backend_free(backend);
    free(mel);
    return status;
}

static sotto_status think(const sotto_whisper_model *model, int seed, float *out, sotto_error *err)
{
    return think_with(model, "f32", seed, out, err);
}

static const float *on_the_cpu(int seed)
{
    static float logits[2][N_LOGITS];
    static bool known[2];
    if (!known[seed]) {
        const sotto_backend_options o = {.device = "cpu", .n_threads = 1};
        sotto_whisper_model *model;
        sotto_error err = {0};
        if (load(&o, "f32", &model, &err) || think(model, seed, logits[seed], &err))
            fail_msg("%s", err.text);
        sotto_whisper_model_free(model);
        known[seed] = true;
    }
    return logits[seed];
}

static double difference(const float *got, const float *want)
{
    double largest = 0, most = 0;
    for (int i = 0; i < N_LOGITS; i++) {
        largest = fmax(largest, fabs((double)want[i]));
        const double d = fabs((double)got[i] - want[i]);
        most = d > most || isnan(d) ? d : most;
    }
    return most / largest;
}

static void check_with(const sotto_backend_options *o, const char *compute, const char *caches, double bound)
{
    static float got[N_LOGITS];
    sotto_whisper_model *model;
    sotto_error err = {0};
    if (load(o, compute, &model, &err) || think_with(model, caches, 0, got, &err))
        fail_msg("%s, %d layers: %s", o->device, o->gpu_layers, err.text);
    const double d = difference(got, on_the_cpu(0));
    printf("%-28s %2d layers%s%s, %s%s%s: %.1e (<= %.0e)\n", o->device, o->gpu_layers,
           o->split == SOTTO_SPLIT_ROW ? " by rows" : "", o->kv_device ? ", caches elsewhere" : "", compute,
           caches ? ", caches in " : "", caches ? caches : "", d, bound);
    assert_true(d <= bound);
    sotto_whisper_model_free(model);
}

/* The bound of f32 is for caches in f32: a key that two devices round to two neighbours in 16 bits makes as much. */
static void check(const sotto_backend_options *o, const char *compute, double bound)
{
    check_with(o, compute, strcmp(compute, "f32") == 0 ? "f32" : NULL, bound);
}

static void need(const char *id)
{
    if (!is_there(id)) {
        printf("no device %s in this build\n", id);
        skip();
    }
}

static void at_every_border_between_layers(void **state)
{
    (void)state;
    need("sim:0");
    for (int layers = 1; layers <= 4; layers++) {
        const sotto_backend_options o = {.device = "sim:0", .n_threads = 1, .gpu_layers = layers, .no_offload = true};
        check(&o, "f32", f32_bound);
    }
    const sotto_backend_options none = {.device = "sim:0", .n_threads = 1, .gpu_layers = SOTTO_LAYERS_NONE};
    check(&none, "f32", f32_bound); /* and long products offloaded */
}

static void by_rows(void **state)
{
    (void)state;
    need("sim:1");
    const sotto_backend_options o = {
        .device = "sim:0,sim:1", .n_threads = 1, .split = SOTTO_SPLIT_ROW, .device_split = "2,1"};
    check(&o, "f32", f32_bound);
}

static void caches_elsewhere(void **state)
{
    (void)state;
    need("sim:0");
    const sotto_backend_options o = {.device = "sim:0", .n_threads = 1, .kv_device = "cpu"};
    check(&o, "f32", f32_bound);
}

static void caches_in_8_bits(void **state)
{
    (void)state;
    static const char *const ids[] = {"cpu", "sim:0", "opencl:0", "cuda:0", "metal:0"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!is_there(ids[i]))
            continue;
        const sotto_backend_options o = {.device = ids[i], .n_threads = 1},
                                    elsewhere = {.device = ids[i], .n_threads = 1, .kv_device = "cpu"};
        check_with(&o, "f32", "q8_0", q8_0_bound);
        if (i > 0)
            check_with(&elsewhere, "f32", "q8_0", q8_0_bound);
    }
}

static void in_16_bits(void **state)
{
    (void)state;
    need("sim:0");
    const sotto_backend_options o = {.device = "sim:0", .n_threads = 1, .gpu_layers = 3};
    check(&o, "f16", f16_bound);
}

/* The embedding alone is larger than a buffer may be. */
static void in_buffers_of_1_mib(void **state)
{
    (void)state;
    need("sim:3");
    const sotto_backend_options o = {.device = "sim:3", .n_threads = 1};
    check(&o, "f32", f32_bound);
}

/* Wholly on a device of each kind that this machine has or plays, and half on it. */
static void on_each_kind_of_device(void **state)
{
    (void)state;
    static const char *const ids[] = {"opencl:0", "cuda:0", "metal:0"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
        if (!is_there(ids[i]))
            continue;
        const sotto_backend_options whole = {.device = ids[i], .n_threads = 1};
        const sotto_backend_options half = {.device = ids[i], .n_threads = 1, .gpu_layers = 2};
        check(&whole, "f32", f32_bound);
        check(&whole, "f16", f16_bound);
        check(&half, "f32", f32_bound);
    }
}

static void over_cpu_and_two_kinds_of_device(void **state)
{
    (void)state;
    need("sim:0");
    need("opencl:0");
    const sotto_backend_options o = {.device = "sim:0,opencl:0", .n_threads = 1, .gpu_layers = 3, .device_split = "1,2"};
    check(&o, "f32", f32_bound);
    const sotto_backend_options rows = {
        .device = "opencl:0,sim:0", .n_threads = 1, .split = SOTTO_SPLIT_ROW, .device_split = "1,1"};
    check(&rows, "f32", f32_bound);
}

typedef struct thinker {
    const sotto_whisper_model *model;
    int seed;
    float *logits;
    sotto_status status;
    sotto_error err;
} thinker;

static void *think_in_thread(void *user)
{
    thinker *t = user;
    t->status = think(t->model, t->seed, t->logits, &t->err);
    return NULL;
}

static void two_sessions_from_two_threads(void **state)
{
    (void)state;
    need("sim:0");
    const sotto_backend_options o = {.device = "sim:0", .n_threads = 1};
    sotto_whisper_model *model;
    sotto_error err = {0};
    if (load(&o, "f32", &model, &err))
        fail_msg("%s", err.text);
    static float logits[2][N_LOGITS];
    thinker t[2];
    pthread_t thread[2];
    for (int i = 0; i < 2; i++) {
        t[i] = (thinker){.model = model, .seed = i, .logits = logits[i]};
        assert_int_equal(pthread_create(&thread[i], NULL, think_in_thread, &t[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) {
        if (t[i].status != SOTTO_OK)
            fail_msg("%s", t[i].err.text);
        assert_true(difference(logits[i], on_the_cpu(i)) <= f32_bound);
    }
    sotto_whisper_model_free(model);
}

int main(int argc, char **argv)
{
    if (argc > 1) /* a pattern of test names */
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_every_border_between_layers),
        cmocka_unit_test(by_rows),
        cmocka_unit_test(caches_elsewhere),
        cmocka_unit_test(caches_in_8_bits),
        cmocka_unit_test(in_16_bits),
        cmocka_unit_test(in_buffers_of_1_mib),
        cmocka_unit_test(on_each_kind_of_device),
        cmocka_unit_test(over_cpu_and_two_kinds_of_device),
        cmocka_unit_test(two_sessions_from_two_threads),
    };
    FILE *model = fopen(MODEL, "rb");
    if (!model) {
        printf("%s is not there\n", MODEL);
        return 77;
    }
    fclose(model);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
