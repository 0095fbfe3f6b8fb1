#include "backends/scene_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/half.h"
#include "runtime/plan_impl.h"
#include "runtime/runtime_impl.h"
#include "sotto/quant.h"

static void ok(sotto_status status, const sotto_error *err)
{
    if (status != SOTTO_OK)
        fail_msg("%s: %s", sotto_status_name(status), err->text);
}

uint64_t scene_seed(void)
{
    static uint64_t seed;
    if (seed == 0) {
        const char *text = getenv("SOTTO_TEST_SEED");
        seed = text ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
        printf("seed %llu (SOTTO_TEST_SEED)\n", (unsigned long long)seed);
    }
    return seed;
}

uint32_t scene_random(scene *s)
{
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(s->random >> 32);
}

float scene_number(scene *s)
{
    return s->spread * ((float)(scene_random(s) >> 8) * 0x1p-23f - 1.0f);
}

static float *numbers(scene *s, int64_t n)
{
    float *x = malloc((size_t)n * sizeof *x + 1);
    for (int64_t i = 0; i < n; i++)
        x[i] = s->coarse ? st_bf16_to_f32(st_f32_to_bf16(scene_number(s))) : scene_number(s);
    return x;
}

static void keep(scene *s, sotto_tensor *t, sotto_dtype dtype, void *data, size_t bytes, sotto_store *store)
{
    assert_true(s->n_set < MAX_SETS);
    s->set[s->n_set].t = t;
    s->set[s->n_set].dtype = dtype;
    s->set[s->n_set].data = data;
    s->set[s->n_set].bytes = bytes;
    s->set[s->n_set++].store = store;
}

sotto_tensor *scene_given(scene *s, sotto_dtype dtype, int n_dims, const int64_t *dim, const void *data)
{
    sotto_tensor *t = sotto_graph_input(s->g, "given", dtype, n_dims, dim);
    const size_t bytes = sotto_tensor_bytes(t);
    void *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    keep(s, t, dtype, copy, bytes, NULL);
    return t;
}

sotto_tensor *scene_floats(scene *s, layout how, const int64_t *dim)
{
    static const int swap[N_LAYOUTS][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}, {0, 2, 1, 3}, {1, 0, 2, 3}};
    int64_t whole[4];
    for (int a = 0; a < 4; a++)
        whole[a] = dim[swap[how][a]] + (how == SLICED ? 3 : 0);
    sotto_tensor *t = sotto_graph_input(s->g, "x", SOTTO_F32, 4, whole);
    const int64_t count = sotto_tensor_count(t);
    keep(s, t, SOTTO_F32, numbers(s, count), (size_t)count * sizeof(float), NULL);
    for (int a = 0; how == SLICED && a < 4; a++)
        t = sotto_view_slice(s->g, t, a, 1 + a % 3, dim[a]);
    return how == PERMUTED || how == TRANSPOSED ? sotto_view_permute(s->g, t, swap[how]) : t;
}

static sotto_tensor *stored(scene *s, sotto_store *store, sotto_dtype dtype, int64_t k, int64_t n, bool matrix)
{
    const int64_t dim[2] = {k, n};
    sotto_tensor *t = sotto_store_add(store, "stored", dtype, 2, dim, matrix);
    assert_non_null(t);
    float *x = numbers(s, k * n);
    if (dtype == SOTTO_I8) { /* its scales are found by the store */
        keep(s, t, SOTTO_F32, x, (size_t)(k * n) * sizeof *x, store);
        return sotto_graph_use(s->g, t);
    }
    char *rows = malloc(sotto_tensor_bytes(t) + 1);
    if (k * n > 0)
        assert_true(sotto_row_from_f32(dtype, x, rows, k * n));
    free(x);
    keep(s, t, dtype, rows, sotto_tensor_bytes(t), store);
    return sotto_graph_use(s->g, t);
}

sotto_tensor *scene_weights(scene *s, sotto_dtype dtype, int64_t k, int64_t n, bool matrix)
{
    return stored(s, s->weights, dtype, k, n, matrix);
}

sotto_tensor *scene_cache(scene *s, sotto_dtype dtype, int64_t width, int64_t n_cell)
{
    return stored(s, s->cache, dtype, width, n_cell, false);
}

/* A copy of source i in plain f32. Packed weights have no views: they are read row by row. */
static sotto_tensor *probe(scene *s, sotto_tensor *src)
{
    sotto_tensor *copy;
    if (sotto_dtype_block(src->dtype) > 1 && src->view_of && !st_tensor_is_contiguous(src)) /* written into: the whole */
        src = src->view_of;
    if (sotto_dtype_block(src->dtype) > 1 && src->dim[2] > 1) { /* the heads of cells, as rows */
        const int64_t dim[2] = {src->dim[0], st_tensor_n_rows(src)};
        src = sotto_view_reshape(s->g, src, 2, dim);
    }
    if ((src->flags & ST_TENSOR_MATRIX) || sotto_dtype_block(src->dtype) > 1) {
        int32_t *all = malloc((size_t)src->dim[1] * sizeof *all + 1);
        for (int64_t i = 0; i < src->dim[1]; i++)
            all[i] = (int32_t)i;
        copy = sotto_get_rows(s->g, src, scene_given(s, SOTTO_I32, 1, &src->dim[1], all));
        free(all);
    } else
        copy = sotto_copy(s->g, src, SOTTO_F32);
    sotto_graph_output(s->g, copy, "probe");
    return copy;
}

/* False when a tensor is larger than the device's largest buffer, which is the case's fault. */
static bool fits(sotto_status status, const sotto_error *err)
{
    if (status == SOTTO_E_MEMORY && strstr(err->text, "hold at most"))
        return false;
    ok(status, err);
    return true;
}

static bool upload(scene *s)
{
    sotto_error err;
    if (!fits(sotto_store_allocate(s->weights, &err), &err) || !fits(sotto_store_allocate(s->cache, &err), &err) ||
        !fits(sotto_plan_allocate(s->plan, &err), &err))
        return false;
    ok(st_arena_poison(s->arena, &err), &err);
    for (int i = 0; i < s->n_set; i++) {
        sotto_tensor *t = s->set[i].t;
        if (s->set[i].store)
            ok(sotto_store_upload(s->set[i].store, t, 0, st_tensor_n_rows(t), s->set[i].dtype, s->set[i].data, &err),
               &err);
        else
            ok(sotto_plan_set(s->plan, t, 0, s->set[i].data, s->set[i].bytes, &err), &err);
    }
    return true;
}

bool scene_run(scene *s, sotto_backend *b, build_fn *build, const variant *v, uint64_t seed, bool probing)
{
    sotto_error err;
    *s = (scene){
        .backend = b, .random = seed, .spread = v->spread > 0 ? v->spread : 1, .coarse = v->coarse, .probing = probing};
    ok(sotto_graph_create("scene", &s->g, &err), &err);
    sotto_graph_set_compute(s->g, v->compute);
    ok(sotto_arena_create(b, &s->arena, &err), &err);
    ok(sotto_store_create(b, SOTTO_USAGE_WEIGHTS, &s->weights, &err), &err);
    ok(sotto_store_create(b, SOTTO_USAGE_CACHE, &s->cache, &err), &err);
    build(s, v);
    for (int i = 0; probing && i < ST_MAX_SRC; i++)
        if (s->node->src[i])
            s->probe[i] = probe(s, s->node->src[i]);
    sotto_graph_output(s->g, s->y, "y");
    ok(sotto_graph_finish(s->g, &err), &err);
    if (!fits(sotto_plan_create_take(b, s->arena, s->g, &s->plan, &err), &err) || !upload(s))
        return false;
    ok(sotto_plan_run(s->plan, NULL, &err), &err);
    return true;
}

static void *read_out(scene *s, const sotto_tensor *t)
{
    sotto_error err;
    void *out = malloc(sotto_tensor_bytes(t) + 1);
    ok(sotto_plan_get(s->plan, t, 0, out, sotto_tensor_bytes(t), &err), &err);
    return out;
}

void *scene_result(scene *s)
{
    return read_out(s, s->y);
}

float *scene_source(scene *s, int i)
{
    return s->probe[i] ? read_out(s, s->probe[i]) : NULL;
}

void scene_end(scene *s)
{
    sotto_plan_free(s->plan);
    sotto_arena_free(s->arena);
    sotto_store_free(s->weights);
    sotto_store_free(s->cache);
    for (int i = 0; i < s->n_set; i++)
        free(s->set[i].data);
}

static void compare_floats(const char *where, const float *got, const float *want, const double *bound, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double b = bound ? bound[i] : 0;
        const bool same = got[i] == want[i] || (isnan(got[i]) && isnan(want[i]));
        if (!same && !(fabs((double)got[i] - want[i]) <= b))
            fail_msg("%s: [%lld] is %.9g, expected %.9g within %.3g", where, (long long)i, got[i], want[i], b);
    }
}

/* ---- what ran where ---- */

enum { MOST_DEVICES = 64, N_TYPES = SOTTO_BF16 + 1 };
static struct {
    char device[32];
    int n_here[ST_OP_COUNT][N_TYPES], n_elsewhere[ST_OP_COUNT][N_TYPES];
} covered[MOST_DEVICES];

static void note_coverage(const scene *s, sotto_dtype dtype)
{
    sotto_device_info info;
    const char *where = "nowhere", *name = st_op_name(s->node->op);
    ok(sotto_backend_device(s->backend, 0, &info, NULL), &(sotto_error){0});
    for (int i = 0; i < s->plan->graph->n_node; i++)
        if (strcmp(s->plan->trace[i].op, name) == 0)
            where = s->plan->trace[i].backend;
    int d = 0;
    while (d < MOST_DEVICES - 1 && covered[d].device[0] && strcmp(covered[d].device, info.id) != 0)
        d++;
    snprintf(covered[d].device, sizeof covered[d].device, "%s", info.id);
    (strcmp(where, info.id) == 0 ? covered[d].n_here : covered[d].n_elsewhere)[s->node->op][dtype]++;
}

void scene_print_coverage(void)
{
    for (int d = 0; d < MOST_DEVICES && covered[d].device[0]; d++)
        for (int op = 0; op < ST_OP_COUNT; op++)
            for (int t = 0; t < N_TYPES; t++)
                if (covered[d].n_here[op][t] > 0 || covered[d].n_elsewhere[op][t] > 0)
                    printf("covered: %s %s %s: %d cases there, %d elsewhere\n", covered[d].device, st_op_name((st_op)op),
                           sotto_dtype_name((sotto_dtype)t), covered[d].n_here[op][t], covered[d].n_elsewhere[op][t]);
}

/* Whether the device multiplies by a left side that it did not bring to bytes, where the reference does. */
static bool keeps_left_whole(sotto_backend *b, const variant *v)
{
    enum { MOST_ROWS = 16 }; /* that GPUs take as bytes */
    sotto_device_info info;
    ok(sotto_backend_device(b, 0, &info, NULL), &(sotto_error){0});
    const bool gpu = info.kind == SOTTO_DEVICE_GPU || info.kind == SOTTO_DEVICE_SIMULATOR;
    if (v->dtype == SOTTO_I8)
        return gpu;
    if (v->compute != SOTTO_COMPUTE_INT8 || sotto_dtype_block(v->dtype) <= 1)
        return false;
    if (gpu)
        return !strstr(info.features, "dot4") || !v->matrix || v->dim[1] * v->dim[2] > MOST_ROWS;
    return info.kind == SOTTO_DEVICE_CPU && !v->matrix;
}

/* ---- what the reference says, once for all devices ---- */

typedef struct answer {
    char *key;
    build_fn *build;
    void *bytes;   /* of y */
    double *bound; /* NULL: bits must agree */
    struct answer *next;
} answer;
static answer *answers;

void scene_forget(void)
{
    for (answer *a = answers, *next; a; a = next) {
        next = a->next;
        free(a->key);
        free(a->bytes);
        free(a->bound);
        free(a);
    }
    answers = NULL;
}

static answer *ask(sotto_backend *ref, const char *key, build_fn *build, const variant *v, uint64_t seed,
                   bool whole_left)
{
    for (answer *a = answers; a; a = a->next)
        if (a->build == build && strcmp(a->key, key) == 0)
            return a;
    scene r;
    assert_true(scene_run(&r, ref, build, v, seed, true));
    answer *a = calloc(1, sizeof *a);
    a->key = malloc(strlen(key) + 1);
    strcpy(a->key, key);
    a->build = build;
    a->bytes = scene_result(&r);
    if (r.y->dtype == SOTTO_F32) {
        float *src[ST_MAX_SRC];
        for (int i = 0; i < ST_MAX_SRC; i++)
            src[i] = scene_source(&r, i);
        a->bound = calloc((size_t)sotto_tensor_count(r.y) + 1, sizeof *a->bound);
        if (!bound_of(r.node, src, a->bytes, whole_left, a->bound)) {
            free(a->bound);
            a->bound = NULL;
        }
        for (int i = 0; i < ST_MAX_SRC; i++)
            free(src[i]);
    }
    scene_end(&r);
    a->next = answers;
    return answers = a;
}

/* The case in words; the data follow from it and the program's seed. */
static void describe(const char *what, const variant *v, bool whole_left, char *out, size_t size)
{
    snprintf(out, size,
             "%s: compute %d, layout %d, %s, matrix %d, act %d, bias %d, residual %d, coarse %d, whole %d, dim %lld "
             "%lld %lld "
             "%lld, n %lld, extra %d, window %d, spread %g",
             what, (int)v->compute, (int)v->how, sotto_dtype_name(v->dtype), v->matrix, v->act, v->bias, v->residual,
             v->coarse, whole_left, (long long)v->dim[0], (long long)v->dim[1], (long long)v->dim[2],
             (long long)v->dim[3], (long long)v->n, v->extra, v->window, v->spread);
}

static uint64_t seed_of(const char *key)
{
    uint64_t h = 14695981039346656037u ^ scene_seed();
    for (; *key; key++)
        h = (h ^ (uint8_t)*key) * 1099511628211u;
    return h;
}

void scene_compare(sotto_backend *b, sotto_backend *ref, const char *what, build_fn *build, const variant *v)
{
    const bool whole_left = keeps_left_whole(b, v);
    char key[300], where[600];
    describe(what, v, whole_left, key, sizeof key);
    const uint64_t seed = seed_of(key);
    scene s;
    if (scene_run(&s, b, build, v, seed, false)) {
        note_coverage(&s, v->dtype);
        const answer *a = ask(ref, key, build, v, seed, whole_left);
        void *got = scene_result(&s);
        snprintf(where, sizeof where, "%s: %s (seed %llu)", sotto_backend_description(b), key,
                 (unsigned long long)scene_seed());
        if (s.y->dtype == SOTTO_F32)
            compare_floats(where, got, a->bytes, a->bound, sotto_tensor_count(s.y));
        else if (memcmp(got, a->bytes, sotto_tensor_bytes(s.y)) != 0)
            fail_msg("%s: the bytes differ", where);
        free(got);
    }
    scene_end(&s);
}
