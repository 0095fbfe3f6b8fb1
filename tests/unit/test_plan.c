/* test_plan.c: graphs placed in memory and run: sharing of memory, order, arenas, failures, trace. On the reference. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reference/ref_backend.h"
#include "runtime/runtime_impl.h"

static sotto_backend *open_reference(void)
{
    sotto_backend *b;
    const sotto_backend_options o = {.device = "reference"};
    assert_int_equal(sotto_backend_open(&o, &b, NULL), SOTTO_OK);
    return b;
}

static sotto_arena *arena_of(sotto_backend *b)
{
    sotto_arena *a;
    assert_int_equal(sotto_arena_create(b, &a, NULL), SOTTO_OK);
    return a;
}

static sotto_graph *graph(void)
{
    sotto_graph *g;
    assert_int_equal(sotto_graph_create("g", &g, NULL), SOTTO_OK);
    return g;
}

static sotto_tensor *in(sotto_graph *g, int64_t n)
{
    return sotto_graph_input(g, "x", SOTTO_F32, 1, &n);
}

static sotto_plan *plan(sotto_backend *b, sotto_arena *a, sotto_graph *g)
{
    sotto_error err;
    sotto_plan *p;
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    if (sotto_plan_create_take(b, a, g, &p, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return p;
}

static void set(sotto_plan *p, sotto_tensor *t, const float *x)
{
    assert_int_equal(sotto_plan_set(p, t, 0, x, sotto_tensor_bytes(t), NULL), SOTTO_OK);
}

static void run(sotto_plan *p)
{
    assert_int_equal(sotto_plan_run(p, NULL, NULL), SOTTO_OK);
}

static float first(sotto_plan *p, const sotto_tensor *t)
{
    float y = -1;
    assert_int_equal(sotto_plan_get(p, t, 0, &y, sizeof y, NULL), SOTTO_OK);
    return y;
}

/* ---- placement ---- */

static void sizes_are_known_before_memory_is_taken(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    sotto_arena *a = arena_of(b);
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, 1024), *y = x;
    for (int i = 0; i < 10; i++)
        y = sotto_gelu(g, y);
    y = sotto_add(g, y, x);
    sotto_graph_output(g, y, "y");
    sotto_plan *p = plan(b, a, g);
    /* the input, the output, and one place that all between take over from each other */
    assert_int_equal(sotto_plan_bytes(p), 3 * 4096);
    assert_int_equal(sotto_arena_bytes(a), 0);
    assert_int_equal(sotto_plan_allocate(p, NULL), SOTTO_OK);
    assert_int_equal(sotto_arena_bytes(a), 3 * 4096);
    sotto_plan_free(p);
    sotto_arena_free(a);
    sotto_backend_free(b);
}

/* A parent that is read again, also through a view, keeps its memory. */
static void a_parent_in_use_is_not_overwritten(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    sotto_arena *a = arena_of(b);
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, 32);
    sotto_tensor *parent = sotto_scale(g, x, 1, 1), *tail = sotto_view_slice(g, parent, 0, 16, 16);
    sotto_tensor *child = sotto_scale(g, parent, 10, 0);
    sotto_tensor *last = sotto_add(g, sotto_view_slice(g, child, 0, 0, 16), tail);
    sotto_graph_output(g, last, "y");
    sotto_tensor *self = sotto_mul(g, child, child); /* both sources are the same tensor */
    sotto_graph_output(g, self, "z");
    sotto_plan *p = plan(b, a, g);
    float data[32];
    for (int i = 0; i < 32; i++)
        data[i] = (float)i;
    for (int round = 0; round < 3; round++) {
        if (round == 0)
            set(p, x, data); /* an input keeps its value */
        run(p);
        assert_true(first(p, last) == 10 + 17);
        assert_true(first(p, self) == 100);
    }
    sotto_plan_free(p);
    sotto_arena_free(a);
    sotto_backend_free(b);
}

static void views_as_outputs_pin_their_memory(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    sotto_arena *a = arena_of(b);
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, 32), *y = sotto_scale(g, x, 2, 0);
    sotto_graph_output(g, sotto_view_slice(g, y, 0, 4, 8), "part");
    sotto_tensor *part = sotto_view_slice(g, y, 0, 4, 8), *z = y;
    for (int i = 0; i < 4; i++)
        z = sotto_scale(g, sotto_scale(g, z, 3, 0), 1, 1);
    sotto_graph_output(g, z, "z");
    sotto_plan *p = plan(b, a, g);
    float data[32] = {0};
    data[4] = 5;
    set(p, x, data);
    run(p);
    assert_true(first(p, part) == 10);
    sotto_plan_free(p);
    sotto_arena_free(a);
    sotto_backend_free(b);
}

static size_t group_bytes(sotto_backend *b, bool barriers)
{
    sotto_arena *a = arena_of(b);
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, 64), *sum = NULL;
    sotto_graph_barrier(g);
    for (int i = 0; i < 4; i++) {
        sotto_tensor *branch = sotto_gelu(g, sotto_scale(g, x, (float)i, 0));
        sum = sum ? sotto_add(g, sum, branch) : branch;
        if (barriers)
            sotto_graph_barrier(g);
    }
    sotto_graph_output(g, sum, "y");
    sotto_plan *p = plan(b, a, g);
    const size_t bytes = (size_t)sotto_plan_bytes(p);
    sotto_plan_free(p);
    sotto_arena_free(a);
    return bytes;
}

/* Between two barriers nothing shares memory; across them it does. */
static void nodes_that_may_overlap_share_nothing(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    assert_int_equal(group_bytes(b, false), 12 * 256);
    assert_true(group_bytes(b, true) < 12 * 256);
    sotto_backend_free(b);
}

/* ---- arenas ---- */

/* R01, R02: plans of one arena in turn, also after it has grown. */
static void plans_of_one_arena_run_in_turn(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    sotto_arena *a = arena_of(b);
    sotto_plan *p[2];
    sotto_tensor *x[2], *y[2];
    for (int i = 0; i < 2; i++) {
        sotto_graph *g = graph();
        x[i] = in(g, i ? 5000 : 50);
        y[i] = sotto_scale(g, sotto_gelu(g, sotto_relu(g, x[i])), 0, (float)(i + 1));
        sotto_graph_output(g, y[i], "y");
        p[i] = plan(b, a, g);
    }
    float data[5000] = {0};
    static const int turns[] = {0, 1, 0, 1, 1, 0};
    for (size_t i = 0; i < sizeof turns / sizeof *turns; i++) {
        const int k = turns[i];
        set(p[k], x[k], data);
        run(p[k]);
        assert_true(first(p[k], y[k]) == (float)(k + 1));
    }
    assert_true(sotto_arena_bytes(a) < sotto_plan_bytes(p[0]) + sotto_plan_bytes(p[1]));
    sotto_plan_free(p[0]);
    set(p[1], x[1], data);
    run(p[1]);
    sotto_plan_free(p[1]);
    sotto_arena_free(a);
    sotto_backend_free(b);
}

/* ---- caches ---- */

/* Rows written in a run are read later in the same run, and stay for the next. */
static void caches_are_written_and_read_in_order(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    sotto_arena *a = arena_of(b);
    sotto_store *s;
    assert_int_equal(sotto_store_create(b, SOTTO_USAGE_CACHE, &s, NULL), SOTTO_OK);
    const int64_t dim[2] = {2, 4}, row[2] = {2, 1}, one[1] = {1};
    sotto_tensor *cache = sotto_store_add(s, "cache", SOTTO_F32, 2, dim, false);
    sotto_graph *g = graph();
    sotto_tensor *x = sotto_graph_input(g, "x", SOTTO_F32, 2, row), *at = sotto_graph_input(g, "at", SOTTO_I32, 1, one);
    sotto_tensor *written = sotto_set_rows(g, sotto_graph_use(g, cache), at, x);
    sotto_tensor *y = sotto_copy(g, written, SOTTO_F32);
    sotto_graph_output(g, y, "y");
    sotto_plan *p = plan(b, a, g); /* before the store has memory */
    sotto_error err;
    assert_int_equal(sotto_plan_run(p, NULL, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "cache"));
    float got[8];
    assert_int_equal(sotto_plan_get(p, cache, 0, got, sizeof got, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_store_allocate(s, NULL), SOTTO_OK);
    for (int32_t i = 0; i < 4; i++) {
        const float data[2] = {(float)i + 1, 10 * (float)i};
        set(p, x, data);
        assert_int_equal(sotto_plan_set(p, at, 0, &i, sizeof i, NULL), SOTTO_OK);
        run(p);
        assert_int_equal(sotto_plan_get(p, y, 0, got, sizeof got, NULL), SOTTO_OK);
        for (int r = 0; r < 4; r++)
            assert_true(got[2 * r] == (r <= i ? (float)r + 1 : 0));
    }
    assert_int_equal(sotto_plan_get(p, cache, 8, got, 8, NULL), SOTTO_OK); /* a stored tensor can be read as well */
    assert_true(got[0] == 2 && got[1] == 10);
    sotto_plan_free(p);
    sotto_store_free(s);
    sotto_arena_free(a);
    sotto_backend_free(b);
}

/* ---- misuse and failure ---- */

static void misuse_is_refused(void **state)
{
    (void)state;
    sotto_backend *b = open_reference(), *other = open_reference();
    sotto_arena *a = arena_of(b), *foreign = arena_of(other);
    sotto_error err;
    sotto_plan *p = (sotto_plan *)b;
    assert_int_equal(sotto_plan_create_take(b, a, NULL, &p, &err), SOTTO_E_ARGUMENT);
    assert_null(p);
    assert_int_equal(sotto_plan_create_take(b, a, graph(), &p, &err),
                     SOTTO_E_ARGUMENT); /* not finished; and it is freed */
    sotto_graph *g = graph();
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    assert_int_equal(sotto_plan_create_take(b, foreign, g, &p, &err), SOTTO_E_ARGUMENT);
    g = graph();
    sotto_add(g, in(g, 2), in(g, 3));
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_plan_create_take(b, a, g, &p, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "add"));

    g = graph();
    sotto_tensor *x = in(g, 8), *middle = sotto_relu(g, x), *y = sotto_gelu(g, middle);
    sotto_graph_output(g, y, "y");
    p = plan(b, a, g);
    float data[8] = {0};
    assert_int_equal(sotto_plan_set(p, x, 4, data, 32, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_plan_set(p, x, SIZE_MAX, data, 4, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_plan_set(p, NULL, 0, data, 4, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_plan_get(p, middle, 0, data, 4, &err), SOTTO_E_ARGUMENT); /* R04: its memory is used again */
    assert_non_null(strstr(err.text, "neither an input nor an output"));
    assert_int_equal(sotto_plan_run(NULL, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_plan_bytes(NULL), 0);
    sotto_plan_free(p);
    sotto_plan_free(NULL);
    sotto_arena_free(a);
    sotto_arena_free(foreign);
    sotto_arena_free(NULL);
    sotto_backend_free(b);
    sotto_backend_free(other);
}

static bool stop_at(void *user)
{
    return --*(int *)user <= 0;
}

static void failures_leave_the_plan_usable(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    sotto_arena *a = arena_of(b);
    sotto_error err;
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, 8), *y = sotto_softmax(g, sotto_gelu(g, x), NULL, 1);
    sotto_graph_output(g, y, "y");
    st_ref_inject(b->device[0].state, ST_REF_PREPARE, 1);
    sotto_graph *g2 = graph();
    sotto_gelu(g2, in(g2, 4));
    assert_int_equal(sotto_graph_finish(g2, NULL), SOTTO_OK);
    sotto_plan *p;
    assert_int_equal(sotto_plan_create_take(b, a, g2, &p, &err), SOTTO_E_MEMORY);
    p = plan(b, a, g);
    st_ref_inject(b->device[0].state, ST_REF_ALLOC, 1);
    const float data[8] = {0};
    assert_int_equal(sotto_plan_set(p, x, 0, data, sizeof data, &err), SOTTO_E_MEMORY);
    set(p, x, data);
    st_ref_inject(b->device[0].state, ST_REF_RUN, 1);
    assert_int_equal(sotto_plan_run(p, NULL, &err), SOTTO_E_DEVICE);
    run(p);
    assert_true(first(p, y) == 0.125f);
    int n_stopped = 0;
    for (int n = 1; n < 20; n++) { /* at every question, until there are no more */
        int left = n;
        const sotto_run_options o = {.abort = stop_at, .abort_user = &left};
        const sotto_status status = sotto_plan_run(p, &o, &err);
        assert_true(status == SOTTO_E_ABORTED || status == SOTTO_OK);
        n_stopped += status == SOTTO_E_ABORTED;
    }
    assert_in_range(n_stopped, 2, 10);
    run(p);
    assert_true(first(p, y) == 0.125f);
    sotto_plan_free(p);
    sotto_arena_free(a);
    sotto_backend_free(b);
}

/* ---- a main backend without some operations ---- */

static bool only_contiguous_linear(const sotto_tensor *node)
{
    if (node->op == ST_OP_GELU)
        return false;
    for (int i = 0; i < ST_MAX_SRC; i++)
        if (node->op == ST_OP_LINEAR && node->src[i] && !st_tensor_is_contiguous(node->src[i]))
            return false;
    return true;
}

typedef struct seen {
    char ops[200];
    int n;
} seen;

static void note(void *user, const sotto_trace_node *node)
{
    seen *s = user;
    assert_true(node->seconds >= 0 && node->dim[0] > 0 && node->dtype == SOTTO_F32 && node->name[0]);
    snprintf(s->ops + strlen(s->ops), sizeof s->ops - strlen(s->ops), "%s@%s ", node->op, node->backend);
    s->n++;
}

static void add_text(void *user, const char *text, size_t n)
{
    char *out = user;
    const size_t at = strlen(out);
    assert_true(at + n < 4000);
    memcpy(out + at, text, n);
    out[at + n] = 0;
}

/* Strided sources are copied for what has no other hindrance; what is missing goes to the reference. */
static void a_missing_operation_is_run_elsewhere(void **state)
{
    (void)state;
    sotto_backend *b = open_reference();
    st_backend_impl less = st_backend_reference;
    less.name = "less";
    less.supports = only_contiguous_linear;
    b->device[0].impl = &less;
    strcpy(b->device[0].id, "less");
    sotto_arena *a = arena_of(b);
    sotto_graph *g = graph();
    const int64_t x_dim[2] = {4, 2}, w_dim[2] = {2, 1};
    sotto_tensor *x = sotto_graph_input(g, "x \"quoted\"", SOTTO_F32, 2, x_dim),
                 *w = sotto_graph_input(g, "w", SOTTO_F32, 2, w_dim);
    sotto_tensor *h = sotto_linear(g, sotto_view_slice(g, x, 0, 1, 2), w, NULL, SOTTO_ACT_NONE, NULL);
    sotto_tensor *y = sotto_scale(g, sotto_gelu(g, h), 2, 0);
    sotto_graph_output(g, y, "y");
    sotto_plan *p = plan(b, a, g);
    const float data[] = {9, 1, 2, 9, 9, 3, 4, 9}, weights[] = {1, 0};
    set(p, x, data);
    set(p, w, weights);
    seen s = {0};
    const sotto_run_options o = {.trace = note, .trace_user = &s};
    assert_int_equal(sotto_plan_run(p, &o, NULL), SOTTO_OK);
    assert_string_equal(s.ops, "copy@less linear@less gelu@reference scale@less ");
    float got[2];
    assert_int_equal(sotto_plan_get(p, y, 0, got, sizeof got, NULL), SOTTO_OK);
    assert_true(got[0] > 1.6826f && got[0] < 1.6828f && got[1] > 5.9918f && got[1] < 5.9920f);
    char dot[4096] = "";
    assert_int_equal(sotto_plan_dot(p, add_text, dot, NULL), SOTTO_OK);
    assert_int_equal(strncmp(dot, "digraph \"g\" {", 13), 0);
    assert_non_null(strstr(dot, "x quoted"));
    assert_non_null(strstr(dot, "gelu f32 [2, 1]\\nreference"));
    int arrows = 0;
    for (const char *at = dot; (at = strstr(at, "->")) != NULL; at++)
        arrows++;
    assert_int_equal(arrows, 5);
    assert_string_equal(dot + strlen(dot) - 2, "}\n");
    sotto_plan_free(p);
    sotto_arena_free(a);
    b->device[0].impl = &st_backend_reference;
    sotto_backend_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_known_before_memory_is_taken),
        cmocka_unit_test(a_parent_in_use_is_not_overwritten),
        cmocka_unit_test(views_as_outputs_pin_their_memory),
        cmocka_unit_test(nodes_that_may_overlap_share_nothing),
        cmocka_unit_test(plans_of_one_arena_run_in_turn),
        cmocka_unit_test(caches_are_written_and_read_in_order),
        cmocka_unit_test(misuse_is_refused),
        cmocka_unit_test(failures_leave_the_plan_usable),
        cmocka_unit_test(a_missing_operation_is_run_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
