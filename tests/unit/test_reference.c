/* test_reference.c: the oracle against values worked out by hand, one operation a row. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/backend.h"

typedef struct bench {
    sotto_backend *backend;
    sotto_arena *arena;
    sotto_graph *g;
    sotto_plan *plan;
    struct {
        sotto_tensor *t;
        const void *data;
    } set[8];
    int n_set;
} bench;

static sotto_tensor *given(bench *b, sotto_dtype t, int64_t d0, int64_t d1, int64_t d2, int64_t d3, const void *data)
{
    const int64_t dim[4] = {d0, d1, d2, d3};
    b->set[b->n_set].t = sotto_graph_input(b->g, "in", t, 4, dim);
    b->set[b->n_set].data = data;
    return b->set[b->n_set++].t;
}

static sotto_tensor *f32(bench *b, int64_t d0, int64_t d1, const float *data)
{
    return given(b, SOTTO_F32, d0, d1, 1, 1, data);
}

static void begin(bench *b)
{
    const sotto_backend_options o = {.device = "reference"};
    *b = (bench){0};
    assert_int_equal(sotto_backend_open(&o, &b->backend, NULL), SOTTO_OK);
    assert_int_equal(sotto_arena_create(b->backend, &b->arena, NULL), SOTTO_OK);
    assert_int_equal(sotto_graph_create("hand", &b->g, NULL), SOTTO_OK);
}

static void run(bench *b, sotto_tensor *y, void *out)
{
    sotto_error err = {0};
    sotto_graph_output(b->g, y, "y");
    if (sotto_graph_finish(b->g, &err) != SOTTO_OK ||
        sotto_plan_create_take(b->backend, b->arena, b->g, &b->plan, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < b->n_set; i++)
        assert_int_equal(sotto_plan_set(b->plan, b->set[i].t, 0, b->set[i].data, sotto_tensor_bytes(b->set[i].t), &err),
                         SOTTO_OK);
    assert_int_equal(sotto_plan_run(b->plan, NULL, &err), SOTTO_OK);
    assert_int_equal(sotto_plan_get(b->plan, y, 0, out, sotto_tensor_bytes(y), &err), SOTTO_OK);
    sotto_plan_free(b->plan);
    sotto_arena_free(b->arena);
    sotto_backend_free(b->backend);
}

static void is(bench *b, sotto_tensor *y, const float *want)
{
    float got[64];
    const int64_t n = sotto_tensor_count(y);
    run(b, y, got);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(got[i] - want[i]) <= 1e-6f * fabsf(want[i])) && got[i] != want[i] &&
            !(isnan(got[i]) && isnan(want[i])))
            fail_msg("[%lld]: %.9g, expected %.9g", (long long)i, got[i], want[i]);
}

static void linear_is_act_of_product_and_bias_plus_residual(void **state)
{
    (void)state;
    const float x[] = {1, 2, 3, -1, 0, 1}, w[] = {1, 0, -1, 2, 1, 0}, bias[] = {1, -5}, residual[] = {10, 20, 30, 40};
    bench b;
    begin(&b);
    /* rows of x times rows of w: -2 4; -2 -2; with the bias -1 -1; -1 -7 */
    is(&b,
       sotto_linear(b.g, f32(&b, 3, 2, x), f32(&b, 3, 2, w), f32(&b, 2, 1, bias), SOTTO_ACT_NONE,
                    f32(&b, 2, 2, residual)),
       (const float[]){9, 19, 29, 33});
    begin(&b);
    is(&b, sotto_linear(b.g, f32(&b, 3, 2, x), f32(&b, 3, 2, w), NULL, SOTTO_ACT_RELU, NULL),
       (const float[]){0, 4, 0, 0});
    begin(&b);
    const float one[] = {1};
    is(&b, sotto_linear(b.g, f32(&b, 1, 1, one), f32(&b, 1, 1, one), NULL, SOTTO_ACT_GELU, NULL),
       (const float[]){0.841344746f});
    begin(&b);
    is(&b, sotto_linear(b.g, f32(&b, 1, 1, one), f32(&b, 1, 1, one), NULL, SOTTO_ACT_SILU, NULL),
       (const float[]){0.731058579f});
}

/* Row 0 of x spans -51 .. 204: steps of 1, zero at 51, and 3.5 goes to the even 4. Row 1 spans 0 .. 510: steps of 2, zero at
 * 0, 3 is half way between 2 and 4 (1.5 steps) and goes to the even 4. Row 2 has no range. The rows of w have the scales
 * 1 and 0.25 and the integers 127 -2 1 and 4 0 -127 (0.06 is less than half a step). */
static void linear_of_8_bit_weights_is_a_sum_of_integers(void **state)
{
    (void)state;
    const float x[] = {-51, 3.5f, 204, 3, 510, 0, 0, 0, 0}, w[] = {127, -2, 1, 1, 0.06f, -31.75f}, bias[] = {0.5f, 0};
    const int64_t dim[2] = {3, 2};
    sotto_error err;
    bench b;
    begin(&b);
    sotto_backend *owner; /* outlives the store */
    const sotto_backend_options o = {.device = "reference"};
    assert_int_equal(sotto_backend_open(&o, &owner, &err), SOTTO_OK);
    sotto_store *store;
    assert_int_equal(sotto_store_create(owner, SOTTO_USAGE_WEIGHTS, &store, &err), SOTTO_OK);
    sotto_tensor *matrix = sotto_store_add(store, "w", SOTTO_I8, 2, dim, true);
    assert_int_equal(sotto_store_allocate(store, &err), SOTTO_OK);
    assert_int_equal(sotto_store_upload(store, matrix, 0, 2, SOTTO_F32, w, &err), SOTTO_OK);
    float back[6];
    assert_int_equal(sotto_store_download(store, matrix, back, &err), SOTTO_OK);
    assert_memory_equal(back, ((const float[]){127, -2, 1, 1, 0, -31.75f}), sizeof back);
    sotto_tensor *used = sotto_graph_use(b.g, matrix);
    /* row 0: -51*127 - 4*2 + 204 = -6281; -51*4 - 204*127 = -26112, times 1/4
     * row 1: 2 * (2*127 - 255*2) = -512; 2 * 2*4 / 4 = 4 */
    is(&b, sotto_linear(b.g, f32(&b, 3, 3, x), used, f32(&b, 2, 1, bias), SOTTO_ACT_NONE, NULL),
       (const float[]){-6280.5f, -6528, -511.5f, 4, 0.5f, 0});
    sotto_store_free(store);
    sotto_backend_free(owner);
}

static void matmul_broadcasts_its_second_source(void **state)
{
    (void)state;
    const float a[] = {1, 2, 3, 4}, m[] = {1, 1, 1, -1, 0, 2};
    bench b;
    begin(&b);
    /* a [2, 1, 2], b [3, 2] */
    is(&b, sotto_matmul(b.g, given(&b, SOTTO_F32, 2, 1, 2, 1, a), f32(&b, 2, 3, m)),
       (const float[]){3, -1, 4, 7, -1, 8});
}

static void conv_slides_over_time(void **state)
{
    (void)state;
    const float x[] = {1, 10, 2, 20, 3, 30},
                w[] = {1, 0, 0, 1, 2, 0}; /* kernel 3 of 2 channels: x0[t-1] + x1[t] + 2 x0[t+1] */
    bench b;
    begin(&b);
    is(&b, sotto_conv_1d(b.g, f32(&b, 2, 3, x), f32(&b, 6, 1, w), NULL, 3, 1, 1, SOTTO_ACT_NONE, NULL),
       (const float[]){14, 27, 32});
    begin(&b);
    is(&b, sotto_conv_1d(b.g, f32(&b, 2, 3, x), f32(&b, 6, 1, w), NULL, 3, 2, 1, SOTTO_ACT_NONE, NULL),
       (const float[]){14, 32});
    begin(&b);
    is(&b, sotto_conv_1d(b.g, f32(&b, 2, 3, x), f32(&b, 6, 1, w), NULL, 3, 1, 0, SOTTO_ACT_NONE, NULL),
       (const float[]){27});
}

static void norms_scale_to_unit_size(void **state)
{
    (void)state;
    const float x[] = {1, 3}, w[] = {2, 3}, shift[] = {10, 20}, y[] = {3, 4};
    bench b;
    begin(&b);
    is(&b, sotto_layer_norm(b.g, f32(&b, 2, 1, x), f32(&b, 2, 1, w), f32(&b, 2, 1, shift), 0), (const float[]){8, 23});
    begin(&b);
    is(&b, sotto_layer_norm(b.g, f32(&b, 2, 1, x), f32(&b, 2, 1, w), f32(&b, 2, 1, shift), 3),
       (const float[]){9, 21.5f});
    begin(&b);
    is(&b, sotto_rms_norm(b.g, f32(&b, 2, 1, y), f32(&b, 2, 1, w), 0), (const float[]){1.69705627f, 3.39411255f});
}

static void softmax_of_nothing_is_zero(void **state)
{
    (void)state;
    const float ln[] = {0, 0.693147181f, 0, 0},
                mask[] = {0, 0, -INFINITY, 0, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const float x[] = {0, 0.693147181f, 0, 0, 1, 2, 3, 4};
    bench b;
    begin(&b);
    is(&b, sotto_softmax(b.g, f32(&b, 4, 1, ln), NULL, 2), (const float[]){1.f / 7, 4.f / 7, 1.f / 7, 1.f / 7});
    begin(&b);
    is(&b, sotto_softmax(b.g, f32(&b, 4, 2, x), f32(&b, 4, 2, mask), 1),
       (const float[]){.25f, .5f, 0, .25f, 0, 0, 0, 0});
    begin(&b);
    const float nan[] = {NAN, -INFINITY};
    is(&b, sotto_softmax(b.g, f32(&b, 2, 1, nan), NULL, 1), (const float[]){NAN, NAN});
}

static void attention_weighs_values(void **state)
{
    (void)state;
    const float q[] = {1, 1, 1}, k[] = {0, 0.693147181f}, v[] = {3, 6};
    bench b;
    begin(&b);
    sotto_tensor *tk = given(&b, SOTTO_F32, 1, 1, 2, 1, k), *tv = given(&b, SOTTO_F32, 1, 1, 2, 1, v);
    /* three queries, two keys: the first sees nothing, the second one key, the third weighs 1 : 2 */
    is(&b, sotto_attention(b.g, given(&b, SOTTO_F32, 1, 1, 3, 1, q), tk, tv, 1, true), (const float[]){0, 3, 5});
    begin(&b);
    tk = given(&b, SOTTO_F32, 1, 1, 2, 1, k), tv = given(&b, SOTTO_F32, 1, 1, 2, 1, v);
    is(&b, sotto_attention(b.g, given(&b, SOTTO_F32, 1, 3, 1, 1, q), tk, tv, 1, false), (const float[]){5, 5, 5});
}

static void cache_attention_clamps_its_lists(void **state)
{
    (void)state;
    const float q[] = {1, 1, 1, 1}, k[] = {0, 0.693147181f, 0}, v[] = {3, 6, 9};
    const int32_t base[] = {0, 1, -3, 9}, n_kv[] = {2, 99, 0, 1}, index[] = {2, 0, -5, 77, 1, 1};
    bench b;
    begin(&b);
    sotto_tensor *tk = given(&b, SOTTO_F32, 1, 1, 3, 1, k), *tv = given(&b, SOTTO_F32, 1, 1, 3, 1, v);
    sotto_tensor *tq = given(&b, SOTTO_F32, 1, 1, 4, 1, q), *tb = given(&b, SOTTO_I32, 4, 1, 1, 1, base);
    sotto_tensor *tn = given(&b, SOTTO_I32, 4, 1, 1, 1, n_kv);
    /* ranges: cells 0 1; 1 2 (cut); none; none (past the end) */
    is(&b, sotto_cache_attention(b.g, tq, tk, tv, NULL, tb, tn, 1, 0), (const float[]){5, 7, 0, 0});
    begin(&b);
    tk = given(&b, SOTTO_F32, 1, 1, 3, 1, k), tv = given(&b, SOTTO_F32, 1, 1, 3, 1, v);
    tq = given(&b, SOTTO_F32, 1, 1, 4, 1, q), tb = given(&b, SOTTO_I32, 4, 1, 1, 1, base),
    tn = given(&b, SOTTO_I32, 4, 1, 1, 1, n_kv);
    /* lists [2, 3]: cells 2 0; list 1, cells 77 -> 2, 1, 1; none; list 9 -> 1, cell 77 -> 2 */
    is(&b, sotto_cache_attention(b.g, tq, tk, tv, given(&b, SOTTO_I32, 3, 2, 1, 1, index), tb, tn, 1, 0),
       (const float[]){6, (9 + 2 * 6 + 2 * 6) / 5.f, 0, 9});
}

static void a_window_shows_the_last_cells(void **state)
{
    (void)state;
    const float q[] = {1, 1, 1}, k[] = {0, 0, 0, 0}, v[] = {3, 6, 9, 12};
    const int32_t base[] = {0, 1, 0}, n_kv[] = {3, 99, 1}, index[] = {3, 2, 0, 1, 3, 1};
    for (int listed = 0; listed < 2; listed++) {
        bench b;
        begin(&b);
        sotto_tensor *tk = given(&b, SOTTO_F32, 1, 1, 4, 1, k), *tv = given(&b, SOTTO_F32, 1, 1, 4, 1, v);
        sotto_tensor *list = listed ? given(&b, SOTTO_I32, 3, 2, 1, 1, index) : NULL;
        sotto_tensor *y =
            sotto_cache_attention(b.g, given(&b, SOTTO_F32, 1, 1, 3, 1, q), tk, tv, list,
                                  given(&b, SOTTO_I32, 3, 1, 1, 1, base), given(&b, SOTTO_I32, 3, 1, 1, 1, n_kv), 1, 2);
        /* cells 1 2; 2 3 of 1 .. 3; 0. Lists: 2 0 of 3 2 0; 3 1 of 1 3 1; 3 */
        is(&b, y, listed ? (const float[]){6, 9, 12} : (const float[]){7.5f, 10.5f, 3});
    }
}

static void blocks_are_written_as_they_are_packed(void **state)
{
    (void)state;
    static float x[2 * 32], want[2 * 32];
    static const uint8_t nothing[2 * 34];
    for (int i = 0; i < 32; i++) {
        x[i] = want[32 + i] = (float)(4 * i - 127); /* steps of 1: the largest is 127 of them */
        x[32 + i] = 1;                              /* a step of 1/127, which is 2^-7 (1 + 8/1024) in f16 */
        want[i] = 127 * 0.00787353515625f;
    }
    const int32_t to[] = {1, 0}, all[] = {0, 1}, base[] = {0}, n_kv[] = {2};
    bench b;
    begin(&b);
    sotto_tensor *table = given(&b, SOTTO_Q8_0, 32, 2, 1, 1, nothing);
    table = sotto_set_rows(b.g, table, given(&b, SOTTO_I32, 2, 1, 1, 1, to), f32(&b, 32, 2, x));
    is(&b, sotto_get_rows(b.g, table, given(&b, SOTTO_I32, 2, 1, 1, 1, all)), want);
    /* the same as keys, which weigh alike for a query of zeros, and as values */
    static const float q[32];
    const int64_t cells[3] = {32, 1, 2};
    float mean[32];
    for (int i = 0; i < 32; i++)
        mean[i] = (want[i] + want[32 + i]) / 2;
    begin(&b);
    table = given(&b, SOTTO_Q8_0, 32, 2, 1, 1, nothing);
    table = sotto_set_rows(b.g, table, given(&b, SOTTO_I32, 2, 1, 1, 1, to), f32(&b, 32, 2, x));
    table = sotto_view_reshape(b.g, table, 3, cells);
    is(&b,
       sotto_cache_attention(b.g, given(&b, SOTTO_F32, 32, 1, 1, 1, q), table, table, NULL,
                             given(&b, SOTTO_I32, 1, 1, 1, 1, base), given(&b, SOTTO_I32, 1, 1, 1, 1, n_kv), 1, 0),
       mean);
}

static void gates_are_activated(void **state)
{
    (void)state;
    const float x[] = {0, 1, -2, 3, 2, 0.5f}; /* three gates, then what they let through */
    const struct {
        sotto_activation act;
        float want[3];
    } cases[] = {{SOTTO_ACT_NONE, {0, 2, -1}},
                 {SOTTO_ACT_RELU, {0, 2, 0}},
                 {SOTTO_ACT_SILU, {0, 1.46211716f, -0.119202922f}},
                 {SOTTO_ACT_GELU, {0, 1.68268949f, -0.0227501319f}},
                 {SOTTO_ACT_GELU_TANH, {0, 1.68238398f, -0.0227011530f}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b;
        begin(&b);
        sotto_tensor *both = f32(&b, 6, 1, x);
        is(&b, sotto_glu(b.g, sotto_view_slice(b.g, both, 0, 0, 3), sotto_view_slice(b.g, both, 0, 3, 3), cases[i].act),
           cases[i].want);
    }
}

static void rows_outside_are_zero_or_skipped(void **state)
{
    (void)state;
    const float table[] = {1, 2, 3, 4, 5, 6}, x[] = {7, 8, 9, 10, 11, 12};
    const int32_t rows[] = {2, -1, 0, 3}, to[] = {1, 3, 0};
    bench b;
    begin(&b);
    is(&b, sotto_get_rows(b.g, f32(&b, 2, 3, table), given(&b, SOTTO_I32, 4, 1, 1, 1, rows)),
       (const float[]){5, 6, 0, 0, 1, 2, 0, 0});
    begin(&b);
    sotto_tensor *y = sotto_set_rows(b.g, f32(&b, 2, 3, table), given(&b, SOTTO_I32, 3, 1, 1, 1, to), f32(&b, 2, 3, x));
    is(&b, y, (const float[]){11, 12, 7, 8, 5, 6});
}

static void copies_convert(void **state)
{
    (void)state;
    const float x[] = {1.75f, -1.75f, 3e9f, NAN, 1.0009765625f, 65520.0f};
    bench b;
    begin(&b);
    int32_t i[6];
    run(&b, sotto_copy(b.g, f32(&b, 6, 1, x), SOTTO_I32), i);
    assert_memory_equal(i, ((const int32_t[]){1, -1, INT32_MAX, 0, 1, 65520}), sizeof i);
    begin(&b);
    uint16_t h[6];
    run(&b, sotto_copy(b.g, f32(&b, 6, 1, x), SOTTO_F16), h);
    assert_int_equal(h[0], 0x3f00);
    assert_int_equal(h[1], 0xbf00);
    assert_int_equal(h[2], 0x7c00);
    assert_int_equal(h[4], 0x3c01);
    assert_int_equal(h[5], 0x7c00);
    begin(&b);
    const int axis[4] = {1, 0, 2, 3};
    is(&b, sotto_copy(b.g, sotto_view_permute(b.g, f32(&b, 3, 2, (const float[]){1, 2, 3, 4, 5, 6}), axis), SOTTO_F32),
       (const float[]){1, 4, 2, 5, 3, 6});
    begin(&b);
    is(&b, sotto_concat(b.g, f32(&b, 1, 2, (const float[]){1, 2}), f32(&b, 2, 2, (const float[]){3, 4, 5, 6}), 0),
       (const float[]){1, 3, 4, 2, 5, 6});
}

static void elements(void **state)
{
    (void)state;
    const float x[] = {-2, 0, 0.5f, 3}, y[] = {10, 20};
    bench b;
#define ELEMENTS(call, ...)                         \
    do {                                            \
        begin(&b);                                  \
        sotto_tensor *a = f32(&b, 4, 1, x);         \
        is(&b, call, (const float[]){__VA_ARGS__}); \
    } while (0)
    ELEMENTS(sotto_scale(b.g, a, 2, 1), -3, 1, 2, 7);
    ELEMENTS(sotto_gelu(b.g, a), -0.0455002639f, 0, 0.345731231f, 2.99595031f);
    ELEMENTS(sotto_silu(b.g, a), -0.238405844f, 0, 0.311229666f, 2.85772238f);
    ELEMENTS(sotto_relu(b.g, a), 0, 0, 0.5f, 3);
    ELEMENTS(sotto_sigmoid(b.g, a), 0.119202922f, 0.5f, 0.622459331f, 0.952574127f);
    ELEMENTS(sotto_tanh(b.g, a), -0.96402758f, 0, 0.462117157f, 0.995054754f);
    ELEMENTS(sotto_sqrt(b.g, sotto_relu(b.g, a)), 0, 0, 0.707106781f, 1.73205081f);
    ELEMENTS(sotto_log10(b.g, a, 0.01f), -2, -2, -0.301029996f, 0.477121255f);
    ELEMENTS(sotto_power(b.g, a), 4.25f, 9);
#undef ELEMENTS
    begin(&b);
    sotto_tensor *columns = f32(&b, 2, 2, x);
    is(&b, sotto_add(b.g, columns, f32(&b, 2, 1, y)), (const float[]){8, 20, 10.5f, 23});
    begin(&b);
    columns = f32(&b, 2, 2, x);
    is(&b, sotto_mul(b.g, columns, f32(&b, 1, 2, y)), (const float[]){-20, 0, 10, 60});
    begin(&b);
    const float rows[] = {1, 5, 5, NAN, NAN, -1, NAN, NAN, NAN, -INFINITY, -INFINITY, -INFINITY};
    int32_t best[4];
    run(&b, sotto_argmax(b.g, f32(&b, 3, 4, rows)), best);
    assert_memory_equal(best, ((const int32_t[]){1, 2, 0, 0}), sizeof best);
}

static void top_k_falls_and_leaves_out_what_is_no_number(void **state)
{
    (void)state;
    const float x[] = {3, NAN, 7, 7, -1, -INFINITY, NAN, NAN, NAN, NAN};
    bench b;
    begin(&b);
    is(&b, sotto_top_k(b.g, f32(&b, 5, 2, x), 3),
       (const float[]){7, 7, 3, 2, 3, 0, -INFINITY, -INFINITY, -INFINITY, 0, -1, -1});
}

static void block_sums_tell_of_what_is_no_number(void **state)
{
    (void)state;
    /* of two blocks the first has 64 elements, four of which count: 1 + 2 e^-1 + e^-2 */
    float x[4 * 66];
    for (int i = 0; i < 4 * 66; i++)
        x[i] = -INFINITY;
    x[3] = x[63] = 4, x[10] = 5, x[20] = 3; /* row 0 */
    x[65] = -7;
    x[66] = NAN, x[67] = 1;       /* row 1: all of the second block are -infinity */
    x[2 * 66 + 64] = INFINITY;    /* row 2 */
    x[3 * 66 + 64] = 0;           /* row 3 */
    x[3 * 66 + 65] = 0.69314718f; /* ln 2 */
    bench b;
    begin(&b);
    is(&b, sotto_block_sums(b.g, f32(&b, 66, 4, x)),
       (const float[]){5, -7, 1.87109416f, 1, 1, -INFINITY, NAN, 0, -INFINITY, INFINITY, 0, NAN, -INFINITY, 0.69314718f,
                       0, 1.5f});
}

static void rope_turns_pairs(void **state)
{
    (void)state;
    /* one row, one head; position 1 turns the pairs by 1 and, with the base 10000, by 0.01 */
    const float x[] = {1, 0, 0, 1}, factors[] = {2};
    const int32_t one[] = {1}, places[] = {0, 4};
    bench b;
    begin(&b);
    is(&b,
       sotto_rope(b.g, f32(&b, 4, 1, x), given(&b, SOTTO_I32, 1, 1, 1, 1, one), NULL, SOTTO_ROPE_NEIGHBOURS, 4, 10000,
                  1, 1),
       (const float[]){0.540302306f, 0.841470985f, -0.00999983333f, 0.999950000f});
    begin(&b);
    is(&b,
       sotto_rope(b.g, f32(&b, 4, 1, x), given(&b, SOTTO_I32, 1, 1, 1, 1, one), NULL, SOTTO_ROPE_HALVES, 4, 10000, 1, 1),
       (const float[]){0.540302306f, -0.00999983333f, 0.841470985f, 0.999950000f});
    /* two elements of three are turned, by 0.5 * 4 / 2 */
    begin(&b);
    const float rows[] = {1, 0, 5, 0, 1, 6};
    sotto_tensor *r = given(&b, SOTTO_F32, 3, 1, 2, 1, rows), *at = given(&b, SOTTO_I32, 2, 1, 1, 1, places);
    is(&b, sotto_rope(b.g, r, at, f32(&b, 1, 1, factors), SOTTO_ROPE_NEIGHBOURS, 2, 10000, 0.5f, 1),
       (const float[]){1, 0, 5, -0.841470985f, 0.540302306f, 6});
    /* twice as long where they are turned */
    begin(&b);
    r = given(&b, SOTTO_F32, 3, 1, 2, 1, rows), at = given(&b, SOTTO_I32, 2, 1, 1, 1, places);
    is(&b, sotto_rope(b.g, r, at, f32(&b, 1, 1, factors), SOTTO_ROPE_NEIGHBOURS, 2, 10000, 0.5f, 2),
       (const float[]){2, 0, 5, -1.68294197f, 1.08060461f, 6});
}

static void windows_move_over_images(void **state)
{
    (void)state;
    const float x[] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w[] = {1, 0, 0, 1, 0, 2, 0, 0}, bias[] = {0.5f, -100};
    const sotto_window near = {{2, 2}, {1, 1}, {0, 0}, {1, 1}}, wide = {{2, 2}, {1, 1}, {0, 0}, {2, 2}};
    bench b;
    begin(&b);
    sotto_tensor *image = given(&b, SOTTO_F32, 1, 3, 3, 1, x);
    is(&b, sotto_conv_2d(b.g, image, f32(&b, 4, 2, w), f32(&b, 2, 1, bias), &near, SOTTO_ACT_RELU),
       (const float[]){6.5f, 0, 8.5f, 0, 12.5f, 0, 14.5f, 0});
    begin(&b);
    image = given(&b, SOTTO_F32, 1, 3, 3, 1, x);
    is(&b, sotto_conv_2d(b.g, image, f32(&b, 4, 2, w), NULL, &wide, SOTTO_ACT_NONE), (const float[]){10, 6});
    /* a kernel of 1 row and 2 columns every second column, one column of zeros on both sides; two channels */
    const float channels[] = {1, -1, 2, -2, 3, -3};
    const sotto_window steps = {{2, 1}, {2, 1}, {1, 0}, {1, 1}};
    begin(&b);
    image = given(&b, SOTTO_F32, 2, 3, 1, 1, channels);
    is(&b, sotto_im2col(b.g, image, &steps), (const float[]){0, 0, 1, -1, 2, -2, 3, -3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_is_act_of_product_and_bias_plus_residual),
        cmocka_unit_test(linear_of_8_bit_weights_is_a_sum_of_integers),
        cmocka_unit_test(matmul_broadcasts_its_second_source),
        cmocka_unit_test(conv_slides_over_time),
        cmocka_unit_test(norms_scale_to_unit_size),
        cmocka_unit_test(softmax_of_nothing_is_zero),
        cmocka_unit_test(attention_weighs_values),
        cmocka_unit_test(cache_attention_clamps_its_lists),
        cmocka_unit_test(a_window_shows_the_last_cells),
        cmocka_unit_test(blocks_are_written_as_they_are_packed),
        cmocka_unit_test(gates_are_activated),
        cmocka_unit_test(rows_outside_are_zero_or_skipped),
        cmocka_unit_test(copies_convert),
        cmocka_unit_test(elements),
        cmocka_unit_test(top_k_falls_and_leaves_out_what_is_no_number),
        cmocka_unit_test(block_sums_tell_of_what_is_no_number),
        cmocka_unit_test(rope_turns_pairs),
        cmocka_unit_test(windows_move_over_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
