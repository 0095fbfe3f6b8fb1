/* test_graph.c: what the builders make of shapes, and that the first misuse is remembered and said. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tensor/tensor_impl.h"

static sotto_graph *graph(void)
{
    sotto_graph *g;
    assert_int_equal(sotto_graph_create("net", &g, NULL), SOTTO_OK);
    return g;
}

static sotto_tensor *in(sotto_graph *g, sotto_dtype t, int64_t d0, int64_t d1, int64_t d2, int64_t d3)
{
    const int64_t dim[4] = {d0, d1, d2, d3};
    return sotto_graph_input(g, "in", t, 4, dim);
}

static sotto_tensor *f32(sotto_graph *g, int64_t d0, int64_t d1)
{
    return in(g, SOTTO_F32, d0, d1, 1, 1);
}

static void has_shape(const sotto_tensor *t, const char *shape)
{
    char text[96];
    assert_false(t->flags & ST_TENSOR_POISON);
    assert_string_equal(st_tensor_shape_text(t, text, sizeof text), shape);
}

static void shapes_follow_from_the_operation(void **state)
{
    (void)state;
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, SOTTO_F32, 6, 50, 2, 3);
    has_shape(sotto_linear(g, x, f32(g, 6, 9), f32(g, 9, 1), SOTTO_ACT_GELU, NULL), "[3, 2, 50, 9]");
    has_shape(sotto_matmul(g, x, in(g, SOTTO_F32, 6, 4, 1, 3)), "[3, 2, 50, 4]");
    has_shape(sotto_conv_1d(g, x, f32(g, 18, 7), NULL, 3, 2, 1, SOTTO_ACT_NONE, NULL), "[3, 2, 25, 7]");
    has_shape(sotto_conv_1d(g, x, f32(g, 18, 7), NULL, 3, 1, 0, SOTTO_ACT_NONE, NULL), "[3, 2, 48, 7]");
    has_shape(sotto_softmax(g, x, f32(g, 6, 50), 1), "[3, 2, 50, 6]");
    has_shape(sotto_attention(g, in(g, SOTTO_F32, 8, 4, 5, 2), in(g, SOTTO_F32, 8, 2, 7, 2),
                              in(g, SOTTO_F32, 8, 2, 7, 2), 1, true),
              "[2, 5, 32]");
    has_shape(sotto_get_rows(g, in(g, SOTTO_Q4_0, 64, 10, 1, 1), in(g, SOTTO_I32, 3, 1, 1, 1)), "[3, 64]");
    has_shape(sotto_concat(g, x, in(g, SOTTO_F32, 6, 50, 5, 3), 2), "[3, 7, 50, 6]");
    has_shape(sotto_power(g, x), "[3, 2, 50, 3]");
    has_shape(sotto_glu(g, sotto_view_slice(g, x, 0, 0, 3), sotto_view_slice(g, x, 0, 3, 3), SOTTO_ACT_GELU_TANH),
              "[3, 2, 50, 3]");
    has_shape(sotto_set_rows(g, in(g, SOTTO_Q8_0, 64, 9, 1, 1), in(g, SOTTO_I32, 2, 1, 1, 1), f32(g, 64, 2)),
              "[9, 64]");
    has_shape(sotto_top_k(g, in(g, SOTTO_F32, 6, 50, 2, 1), 4), "[2, 50, 2, 4]");
    has_shape(sotto_rope(g, x, in(g, SOTTO_I32, 2, 3, 1, 1), f32(g, 2, 1), SOTTO_ROPE_HALVES, 4, 10000, 1, 1),
              "[3, 2, 50, 6]");
    const sotto_window window = {{3, 2}, {2, 1}, {1, 0}, {1, 1}};
    has_shape(sotto_im2col(g, x, &window), "[3, 1, 25, 36]");
    has_shape(sotto_conv_2d(g, x, f32(g, 36, 7), f32(g, 7, 1), &window, SOTTO_ACT_GELU), "[3, 1, 25, 7]");
    has_shape(sotto_block_sums(g, in(g, SOTTO_F32, 65, 50, 2, 1)), "[2, 50, 2, 2]");
    sotto_tensor *best = sotto_argmax(g, x);
    has_shape(best, "[3, 2, 50]");
    assert_int_equal(sotto_tensor_dtype(best), SOTTO_I32);
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    sotto_graph_free(g);
}

static void views_share_memory(void **state)
{
    (void)state;
    sotto_graph *g = graph();
    sotto_tensor *x = in(g, SOTTO_F32, 6, 5, 4, 1);
    sotto_tensor *s = sotto_view_slice(g, x, 1, 2, 3);
    has_shape(s, "[4, 3, 6]");
    assert_int_equal(s->view_offset, 2 * 6 * 4);
    assert_ptr_equal(s->view_of, x);
    assert_false(st_tensor_is_contiguous(s));
    sotto_tensor *again = sotto_view_slice(g, s, 0, 1, 2); /* a view of a view is one of the whole */
    assert_ptr_equal(again->view_of, x);
    assert_int_equal(again->view_offset, 2 * 6 * 4 + 4);
    const int axis[4] = {0, 2, 1, 3};
    sotto_tensor *p = sotto_view_permute(g, s, axis);
    has_shape(p, "[3, 4, 6]");
    assert_int_equal(p->stride[1], 5 * 6 * 4);
    /* heads of a strided row: [4, 3, 6] -> [4, 3, 2, 3], but not across the gap */
    const int64_t heads[4] = {3, 2, 3, 4}, across[2] = {18, 4}, all[1] = {72};
    sotto_tensor *h = sotto_view_reshape(g, s, 4, heads);
    has_shape(h, "[4, 3, 2, 3]");
    assert_int_equal(h->stride[1], 12);
    assert_int_equal(h->stride[2], 24);
    assert_int_equal(h->stride[3], 5 * 6 * 4);
    has_shape(sotto_view_reshape(g, s, 2, across), "[4, 18]");
    sotto_tensor *f = sotto_view_frames(g, f32(g, 10, 1), 4, 2, 4);
    has_shape(f, "[4, 4]");
    assert_int_equal(f->stride[1], 8);
    /* nothing at all may be seen in any shape */
    sotto_tensor *none = sotto_view_slice(g, sotto_view_slice(g, x, 0, 1, 3), 1, 0, 0);
    const int64_t empty[2] = {0, 3};
    has_shape(sotto_view_reshape(g, none, 2, empty), "[3, 0]");
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    sotto_graph_free(g);
    g = graph();
    x = in(g, SOTTO_F32, 6, 5, 4, 1);
    sotto_view_reshape(g, sotto_view_slice(g, x, 1, 2, 3), 1, all);
    sotto_error err;
    assert_int_equal(sotto_graph_finish(g, &err), SOTTO_E_ARGUMENT);
    assert_non_null(strstr(err.text, "[4, 3, 6] is strided and cannot be seen as [72]"));
    sotto_graph_free(g);
}

static void writes_are_views_of_what_they_write(void **state)
{
    (void)state;
    sotto_graph *g = graph();
    sotto_tensor *table = in(g, SOTTO_F16, 8, 20, 1, 1);
    sotto_tensor *part = sotto_view_slice(g, table, 1, 4, 10);
    sotto_tensor *y = sotto_set_rows(g, part, in(g, SOTTO_I32, 3, 1, 1, 1), f32(g, 8, 3));
    assert_ptr_equal(y->view_of, table);
    assert_int_equal(y->view_offset, 4 * 16);
    has_shape(y, "[10, 8]");
    sotto_tensor *z = sotto_copy_into(g, sotto_view_slice(g, table, 0, 2, 3), f32(g, 3, 20));
    assert_ptr_equal(z->view_of, table);
    assert_int_equal(z->stride[1], 16);
    assert_int_equal(g->n_node, 2);
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    sotto_graph_free(g);
}

/* ---- misuse: each makes the graph fail with a sentence that names operation and shapes ---- */

static void linear_depth(sotto_graph *g)
{
    sotto_linear(g, f32(g, 5, 2), f32(g, 6, 3), NULL, SOTTO_ACT_NONE, NULL);
}

static void linear_bias(sotto_graph *g)
{
    sotto_linear(g, f32(g, 6, 2), f32(g, 6, 3), f32(g, 2, 1), SOTTO_ACT_NONE, NULL);
}

static void linear_residual(sotto_graph *g)
{
    sotto_linear(g, f32(g, 6, 2), f32(g, 6, 3), NULL, SOTTO_ACT_NONE, f32(g, 3, 3));
}

/* 8-bit weights have scales only as a matrix of a store. */
static void linear_i8(sotto_graph *g)
{
    sotto_linear(g, f32(g, 6, 2), in(g, SOTTO_I8, 6, 3, 1, 1), NULL, SOTTO_ACT_NONE, NULL);
}

static void conv_i8(sotto_graph *g)
{
    sotto_conv_1d(g, f32(g, 4, 9), in(g, SOTTO_I8, 12, 2, 1, 1), NULL, 3, 1, 1, SOTTO_ACT_NONE, NULL);
}

static void set_rows_i8(sotto_graph *g)
{
    sotto_set_rows(g, in(g, SOTTO_I8, 8, 4, 1, 1), in(g, SOTTO_I32, 2, 1, 1, 1), f32(g, 8, 2));
}

static void copy_to_i8(sotto_graph *g)
{
    sotto_copy(g, f32(g, 8, 4), SOTTO_I8);
}

static void linear_null(sotto_graph *g)
{
    sotto_linear(g, f32(g, 6, 2), NULL, NULL, SOTTO_ACT_NONE, NULL);
}

static void matmul_batch(sotto_graph *g)
{
    sotto_matmul(g, in(g, SOTTO_F32, 4, 2, 3, 1), in(g, SOTTO_F32, 4, 2, 2, 1));
}

static void conv_kernel(sotto_graph *g)
{
    sotto_conv_1d(g, f32(g, 4, 9), f32(g, 13, 2), NULL, 3, 1, 1, SOTTO_ACT_NONE, NULL);
}

static void conv_short(sotto_graph *g)
{
    sotto_conv_1d(g, f32(g, 4, 1), f32(g, 12, 2), NULL, 3, 1, 0, SOTTO_ACT_NONE, NULL);
}

static void conv_stride(sotto_graph *g)
{
    sotto_conv_1d(g, f32(g, 4, 9), f32(g, 12, 2), NULL, 3, 0, 1, SOTTO_ACT_NONE, NULL);
}

static void norm_size(sotto_graph *g)
{
    sotto_layer_norm(g, f32(g, 4, 9), f32(g, 4, 1), f32(g, 3, 1), 1e-5f);
}

static void softmax_mask(sotto_graph *g)
{
    sotto_softmax(g, f32(g, 4, 9), f32(g, 4, 8), 1);
}

static void attention_heads(sotto_graph *g)
{
    sotto_attention(g, in(g, SOTTO_F32, 8, 4, 5, 1), in(g, SOTTO_F32, 8, 3, 5, 1), in(g, SOTTO_F32, 8, 3, 5, 1), 1,
                    false);
}

static void cells_types(sotto_graph *g)
{
    sotto_tensor *list = in(g, SOTTO_I32, 5, 1, 1, 1);
    sotto_cache_attention(g, in(g, SOTTO_F32, 8, 4, 5, 1), in(g, SOTTO_F16, 8, 4, 9, 1), in(g, SOTTO_I32, 8, 4, 9, 1),
                          NULL, list, list, 1, 0);
}

static void cells_lists(sotto_graph *g)
{
    sotto_tensor *k = in(g, SOTTO_F16, 8, 4, 9, 1), *list = in(g, SOTTO_I32, 4, 1, 1, 1);
    sotto_cache_attention(g, in(g, SOTTO_F32, 8, 4, 5, 1), k, k, NULL, list, list, 1, 0);
}

static void cells_window(sotto_graph *g)
{
    sotto_tensor *k = in(g, SOTTO_Q8_0, 32, 4, 9, 1), *list = in(g, SOTTO_I32, 5, 1, 1, 1);
    sotto_cache_attention(g, in(g, SOTTO_F32, 32, 4, 5, 1), k, k, NULL, list, list, 1, -1);
}

static void glu_shape(sotto_graph *g)
{
    sotto_glu(g, f32(g, 3, 4), f32(g, 3, 1), SOTTO_ACT_SILU);
}

static void glu_activation(sotto_graph *g)
{
    sotto_glu(g, f32(g, 3, 4), f32(g, 3, 4), (sotto_activation)5);
}

static void set_rows_type(sotto_graph *g)
{
    sotto_set_rows(g, in(g, SOTTO_Q4_0, 32, 4, 1, 1), in(g, SOTTO_I32, 2, 1, 1, 1), f32(g, 32, 2));
}

static void rows_type(sotto_graph *g)
{
    sotto_get_rows(g, f32(g, 8, 4), f32(g, 3, 1));
}

static void set_rows_width(sotto_graph *g)
{
    sotto_set_rows(g, f32(g, 8, 4), in(g, SOTTO_I32, 2, 1, 1, 1), f32(g, 7, 2));
}

static void set_rows_count(sotto_graph *g)
{
    sotto_set_rows(g, f32(g, 8, 4), in(g, SOTTO_I32, 3, 1, 1, 1), f32(g, 8, 2));
}

static void copy_blocks(sotto_graph *g)
{
    sotto_copy(g, in(g, SOTTO_Q8_0, 32, 4, 1, 1), SOTTO_F32);
}

static void copy_shape(sotto_graph *g)
{
    sotto_copy_into(g, f32(g, 3, 4), f32(g, 4, 3));
}

static void concat_axis(sotto_graph *g)
{
    sotto_concat(g, f32(g, 3, 4), f32(g, 3, 4), 4);
}

static void concat_shape(sotto_graph *g)
{
    sotto_concat(g, f32(g, 3, 4), f32(g, 2, 4), 1);
}

static void add_shape(sotto_graph *g)
{
    sotto_add(g, f32(g, 3, 4), f32(g, 3, 2));
}

static void add_type(sotto_graph *g)
{
    sotto_add(g, f32(g, 3, 4), in(g, SOTTO_F16, 3, 4, 1, 1));
}

static void gelu_null(sotto_graph *g)
{
    sotto_gelu(g, NULL);
}

static void power_odd(sotto_graph *g)
{
    sotto_power(g, f32(g, 3, 4));
}

static void argmax_empty(sotto_graph *g)
{
    sotto_argmax(g, f32(g, 0, 4));
}

static void top_k_many(sotto_graph *g)
{
    sotto_top_k(g, f32(g, 3, 4), 4);
}

static void block_sums_empty(sotto_graph *g)
{
    sotto_block_sums(g, f32(g, 0, 4));
}

static void rope_odd(sotto_graph *g)
{
    sotto_rope(g, f32(g, 4, 1), in(g, SOTTO_I32, 1, 1, 1, 1), NULL, SOTTO_ROPE_NEIGHBOURS, 3, 10000, 1, 1);
}

static void rope_positions(sotto_graph *g)
{
    sotto_rope(g, f32(g, 4, 1), in(g, SOTTO_I32, 2, 1, 1, 1), NULL, SOTTO_ROPE_NEIGHBOURS, 4, 10000, 1, 1);
}

static void rope_factors(sotto_graph *g)
{
    sotto_rope(g, f32(g, 4, 1), in(g, SOTTO_I32, 1, 1, 1, 1), f32(g, 4, 1), SOTTO_ROPE_NEIGHBOURS, 4, 10000, 1, 1);
}

static void im2col_small(sotto_graph *g)
{
    const sotto_window window = {{3, 3}, {1, 1}, {0, 0}, {1, 1}};
    sotto_im2col(g, in(g, SOTTO_F32, 2, 3, 2, 1), &window);
}

static void im2col_stride(sotto_graph *g)
{
    const sotto_window window = {{1, 1}, {1, 0}, {0, 0}, {1, 1}};
    sotto_im2col(g, in(g, SOTTO_F32, 2, 3, 2, 1), &window);
}

static void conv_2d_depth(sotto_graph *g)
{
    const sotto_window window = {{2, 2}, {1, 1}, {0, 0}, {1, 1}};
    sotto_conv_2d(g, in(g, SOTTO_F32, 2, 3, 2, 1), f32(g, 7, 5), NULL, &window, SOTTO_ACT_NONE);
}

static void im2col_overflow(sotto_graph *g)
{
    const sotto_window window = {{INT_MAX, INT_MAX}, {1, 1}, {INT_MAX - 1, INT_MAX - 1}, {1, 1}};
    sotto_im2col(g, in(g, SOTTO_F32, 2, 3, 2, 1), &window);
}

static void slice_range(sotto_graph *g)
{
    sotto_view_slice(g, f32(g, 3, 4), 1, 3, 2);
}

static void slice_blocks(sotto_graph *g)
{
    sotto_view_slice(g, in(g, SOTTO_Q8_0, 64, 4, 1, 1), 0, 16, 32);
}

static void reshape_count(sotto_graph *g)
{
    const int64_t dim[1] = {11};
    sotto_view_reshape(g, f32(g, 3, 4), 1, dim);
}

static void permute_twice(sotto_graph *g)
{
    const int axis[4] = {0, 1, 1, 3};
    sotto_view_permute(g, f32(g, 3, 4), axis);
}

static void frames_past(sotto_graph *g)
{
    sotto_view_frames(g, f32(g, 9, 1), 4, 2, 4);
}

static void input_negative(sotto_graph *g)
{
    f32(g, -1, 4);
}

static void use_foreign(sotto_graph *g)
{
    sotto_graph_use(g, f32(g, 3, 4));
}

static void output_null(sotto_graph *g)
{
    sotto_graph_output(g, NULL, "y");
}

static void misuse_is_named(void **state)
{
    (void)state;
    static const struct {
        void (*build)(sotto_graph *g);
        const char *words;
    } rows[] = {
        {linear_depth, "linear: x and w do not fit (f32 [2, 5] and f32 [3, 6])"},
        {linear_bias, "linear: the bias does not fit"},
        {linear_residual, "linear: the residual does not fit the result (f32 [2, 3] and f32 [3, 3])"},
        {linear_i8, "linear: x and w do not fit (f32 [2, 6] and i8 [3, 6])"},
        {conv_i8, "conv_1d: x, w, kernel"},
        {set_rows_i8, "set_rows"},
        {copy_to_i8, "copy: expected f32, f16, bf16 or i32"},
        {linear_null, "linear: source 1 is NULL"},
        {matmul_batch, "matmul: a and b do not fit (f32 [3, 2, 4] and f32 [2, 2, 4])"},
        {conv_kernel, "conv_1d: x, w, kernel"},
        {conv_short, "conv_1d"},
        {conv_stride, "conv_1d"},
        {norm_size, "layer_norm"},
        {softmax_mask, "softmax: the mask does not broadcast"},
        {attention_heads, "attention: q, k and v do not fit"},
        {cells_types, "cache_attention: q, k and v do not fit"},
        {cells_lists, "cache_attention: base and n_kv"},
        {cells_window, "cache_attention: a window must not be negative"},
        {glu_shape, "glu: expected f32 rows, both of one shape (f32 [4, 3] and f32 [3])"},
        {glu_activation, "glu: the activation is not a known one"},
        {set_rows_type, "set_rows: the table and x do not fit"},
        {rows_type, "get_rows"},
        {set_rows_width, "set_rows"},
        {set_rows_count, "set_rows"},
        {copy_blocks, "copy: expected f32, f16, bf16 or i32 (q8_0 [4, 32])"},
        {copy_shape, "copy"},
        {concat_axis, "concat"},
        {concat_shape, "concat"},
        {add_shape, "add"},
        {add_type, "add"},
        {gelu_null, "gelu: source 0 is NULL"},
        {power_odd, "power"},
        {argmax_empty, "argmax"},
        {top_k_many, "top_k: expected f32 rows of k"},
        {block_sums_empty, "block_sums: expected f32 rows of at least one element"},
        {rope_odd, "rope: expected f32 rows of at least the rotated elements"},
        {rope_positions, "rope: expected an i32 position for each row (f32 [4] and i32 [2])"},
        {rope_factors, "rope: expected a factor for each pair"},
        {im2col_small, "im2col: x and the window do not fit"},
        {im2col_stride, "im2col: x and the window do not fit"},
        {conv_2d_depth, "conv_2d: x, w and the window do not fit"},
        {im2col_overflow, "im2col: x and the window do not fit"},
        {slice_range, "slice: 2 elements from 3 on along axis 1 of [4, 3]"},
        {slice_blocks, "slice"},
        {reshape_count, "reshape"},
        {permute_twice, "permute"},
        {frames_past, "frames"},
        {input_negative, "input in"},
        {use_foreign, "not a tensor of a store"},
        {output_null, "output y"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sotto_graph *g = graph();
        rows[i].build(g);
        sotto_error err = {0};
        if (sotto_graph_finish(g, &err) != SOTTO_E_ARGUMENT || !strstr(err.text, rows[i].words) ||
            !strstr(err.text, "net"))
            fail_msg("row %zu: \"%s\", expected \"%s\"", i, err.text, rows[i].words);
        sotto_graph_free(g);
    }
}

/* Everything accepts poison, and the first sentence stays. */
static void the_first_error_stays(void **state)
{
    (void)state;
    sotto_graph *g = graph();
    sotto_tensor *bad = sotto_add(g, f32(g, 3, 4), f32(g, 2, 4));
    assert_true(bad->flags & ST_TENSOR_POISON);
    const int axis[4] = {0, 1, 2, 3};
    const int64_t dim[1] = {1};
    sotto_tensor *x = f32(g, 3, 4);
    sotto_tensor *after[] = {sotto_linear(g, bad, x, x, SOTTO_ACT_NONE, bad),
                             sotto_matmul(g, bad, x),
                             sotto_conv_1d(g, x, bad, NULL, 3, 1, 1, SOTTO_ACT_NONE, NULL),
                             sotto_layer_norm(g, bad, x, x, 0),
                             sotto_rms_norm(g, bad, x, 0),
                             sotto_softmax(g, bad, NULL, 1),
                             sotto_attention(g, bad, x, x, 1, false),
                             sotto_cache_attention(g, x, bad, x, NULL, x, x, 1, 0),
                             sotto_get_rows(g, bad, x),
                             sotto_set_rows(g, x, bad, x),
                             sotto_copy(g, bad, SOTTO_F16),
                             sotto_copy_into(g, bad, x),
                             sotto_concat(g, bad, x, 0),
                             sotto_mul(g, x, bad),
                             sotto_glu(g, x, bad, SOTTO_ACT_SILU),
                             sotto_scale(g, bad, 1, 0),
                             sotto_power(g, bad),
                             sotto_argmax(g, bad),
                             sotto_top_k(g, bad, 1),
                             sotto_block_sums(g, bad),
                             sotto_rope(g, x, bad, NULL, SOTTO_ROPE_HALVES, 2, 1, 1, 1),
                             sotto_im2col(g, bad, NULL),
                             sotto_conv_2d(g, bad, x, NULL, NULL, SOTTO_ACT_NONE),
                             sotto_view_slice(g, bad, 0, 0, 1),
                             sotto_view_reshape(g, bad, 1, dim),
                             sotto_view_permute(g, bad, axis),
                             sotto_view_frames(g, bad, 1, 1, 1)};
    for (size_t i = 0; i < sizeof after / sizeof *after; i++)
        assert_true(after[i]->flags & ST_TENSOR_POISON);
    sotto_graph_output(g, bad, "y");
    sotto_error err;
    assert_int_equal(sotto_graph_finish(g, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(strncmp(err.text, "graph \"net\": add:", 17), 0);
    sotto_graph_free(g);
}

static void a_finished_graph_takes_nothing_more(void **state)
{
    (void)state;
    sotto_graph *g = graph();
    sotto_tensor *x = f32(g, 3, 4);
    sotto_gelu(g, x);
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_OK);
    assert_true(sotto_gelu(g, x)->flags & ST_TENSOR_POISON);
    assert_true(f32(g, 3, 4)->flags & ST_TENSOR_POISON);
    assert_int_equal(g->n_node, 1);
    assert_int_equal(g->n_leaf, 1);
    assert_int_equal(sotto_graph_finish(g, NULL), SOTTO_E_ARGUMENT);
    sotto_graph_free(g);
    sotto_graph_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_follow_from_the_operation),
        cmocka_unit_test(views_share_memory),
        cmocka_unit_test(writes_are_views_of_what_they_write),
        cmocka_unit_test(misuse_is_named),
        cmocka_unit_test(the_first_error_stays),
        cmocka_unit_test(a_finished_graph_takes_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
