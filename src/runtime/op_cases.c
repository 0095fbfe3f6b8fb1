#include "runtime/op_cases.h"

enum { WIDTH = 64, ROWS = 8, HEAD = 32 };

typedef struct builder {
    sotto_graph *g;
    const st_case_source *source;
    sotto_tensor *x, *rows;
    sotto_dtype dtype;
} builder;

static sotto_tensor *stored(const builder *b, int64_t n, int64_t rows, bool matrix)
{
    const int64_t dim[2] = {n, rows};
    sotto_tensor *t = b->source->stored(b->source->user, b->dtype, 2, dim, matrix);
    return t ? sotto_graph_use(b->g, t) : NULL;
}

/* f32 [WIDTH], from the first row of x */
static sotto_tensor *vector(const builder *b, int row)
{
    const int64_t dim[1] = {WIDTH};
    return sotto_view_reshape(b->g, sotto_view_slice(b->g, b->x, 1, row, 1), 1, dim);
}

static sotto_tensor *heads(const builder *b, sotto_tensor *x)
{
    const int64_t dim[3] = {HEAD, WIDTH / HEAD, sotto_tensor_dim(x, 1)};
    return sotto_view_reshape(b->g, x, 3, dim);
}

enum { K_BLOCK = 256, K_ROWS = WIDTH * ROWS / K_BLOCK };

/* x as rows as long as the type's blocks */
static sotto_tensor *left_of(const builder *b, sotto_tensor *x)
{
    const int64_t dim[2] = {K_BLOCK, K_ROWS};
    return sotto_dtype_block(b->dtype) == K_BLOCK ? sotto_view_reshape(b->g, x, 2, dim) : x;
}

/* With blocks twice: of rows as they are and, small beside it, of rows that may be brought to bytes. */
static sotto_tensor *linear(const builder *b)
{
    const bool k_type = sotto_dtype_block(b->dtype) == K_BLOCK;
    sotto_tensor *w = k_type ? stored(b, K_BLOCK, 16, true) : stored(b, WIDTH, WIDTH, true), *y;
    if (k_type)
        y = sotto_linear(b->g, left_of(b, b->x), w, NULL, SOTTO_ACT_NONE, NULL);
    else
        y = sotto_linear(b->g, b->x, w, vector(b, 0), SOTTO_ACT_GELU, b->x);
    if (sotto_dtype_block(b->dtype) == 1)
        return y;
    sotto_tensor *x = left_of(b, sotto_scale(b->g, b->x, 0.25f, 0));
    sotto_graph_set_compute(b->g, SOTTO_COMPUTE_INT8);
    return sotto_linear(b->g, x, w, NULL, SOTTO_ACT_NONE, y);
}

static sotto_tensor *matmul(const builder *b)
{
    return sotto_matmul(b->g, b->x, b->x);
}

static sotto_tensor *conv_1d(const builder *b)
{
    return sotto_conv_1d(b->g, b->x, stored(b, 3 * WIDTH, WIDTH, true), vector(b, 0), 3, 1, 1, SOTTO_ACT_NONE, NULL);
}

static sotto_tensor *layer_norm(const builder *b)
{
    return sotto_layer_norm(b->g, b->x, vector(b, 0), vector(b, 1), 1e-5f);
}

static sotto_tensor *rms_norm(const builder *b)
{
    return sotto_rms_norm(b->g, b->x, vector(b, 0), 1e-5f);
}

static sotto_tensor *softmax(const builder *b)
{
    return sotto_softmax(b->g, b->x, NULL, 0.5f);
}

static sotto_tensor *attention(const builder *b)
{
    sotto_tensor *x = heads(b, b->x);
    return sotto_attention(b->g, x, x, x, 0.2f, false);
}

static sotto_tensor *cache_attention(const builder *b)
{
    sotto_tensor *cells = stored(b, WIDTH, 16, false);
    if (!cells)
        return NULL;
    cells = heads(b, cells);
    sotto_tensor *base = sotto_view_slice(b->g, b->rows, 0, 0, ROWS);
    return sotto_cache_attention(b->g, heads(b, b->x), cells, cells, NULL, base, b->rows, 0.2f, 5);
}

static sotto_tensor *get_rows(const builder *b)
{
    if (sotto_dtype_block(b->dtype) == K_BLOCK)
        return sotto_get_rows(b->g, stored(b, K_BLOCK, 16, true), sotto_view_slice(b->g, b->rows, 0, 0, K_ROWS));
    return sotto_get_rows(b->g, stored(b, WIDTH, 16, true), b->rows);
}

static sotto_tensor *set_rows(const builder *b)
{
    return sotto_set_rows(b->g, stored(b, WIDTH, 16, false), b->rows, b->x);
}

static sotto_tensor *copy(const builder *b)
{
    return sotto_copy(b->g, b->dtype == SOTTO_I32 ? b->rows : b->x, b->dtype);
}

static sotto_tensor *concat(const builder *b)
{
    return sotto_concat(b->g, b->x, b->x, 0);
}

static sotto_tensor *add(const builder *b)
{
    return sotto_add(b->g, b->x, vector(b, 1));
}

static sotto_tensor *mul(const builder *b)
{
    return sotto_mul(b->g, b->x, b->x);
}

static sotto_tensor *glu(const builder *b)
{
    return sotto_glu(b->g, b->x, sotto_scale(b->g, b->x, 0.5f, 1), SOTTO_ACT_GELU_TANH);
}

static sotto_tensor *scale(const builder *b)
{
    return sotto_scale(b->g, b->x, 2, 1);
}

static sotto_tensor *sqrt_op(const builder *b)
{
    return sotto_sqrt(b->g, sotto_scale(b->g, b->x, 0.1f, 2));
}

static sotto_tensor *log10_op(const builder *b)
{
    return sotto_log10(b->g, b->x, 1e-3f);
}

#define UNARY(name)                                  \
    static sotto_tensor *name##_op(const builder *b) \
    {                                                \
        return sotto_##name(b->g, b->x);             \
    }
UNARY(gelu)
UNARY(silu)
UNARY(relu)
UNARY(sigmoid)
UNARY(tanh)
UNARY(power)
UNARY(argmax)
UNARY(block_sums)

static sotto_tensor *rope(const builder *b)
{
    return sotto_rope(b->g, heads(b, b->x), b->rows, NULL, SOTTO_ROPE_HALVES, HEAD, 10000, 1, 1.25f);
}

static sotto_tensor *top_k(const builder *b)
{
    return sotto_top_k(b->g, b->x, 4);
}

/* x as one image of 8 by 8 with 8 channels */
static sotto_tensor *image(const builder *b)
{
    const int64_t dim[4] = {8, 8, WIDTH * ROWS / 64, 1};
    return sotto_view_reshape(b->g, b->x, 4, dim);
}

static sotto_tensor *conv_2d(const builder *b)
{
    const sotto_window w = {.kernel = {2, 2}, .stride = {1, 1}, .dilation = {1, 1}};
    return sotto_conv_2d(b->g, image(b), stored(b, 32, 8, true), NULL, &w, SOTTO_ACT_NONE);
}

static sotto_tensor *im2col(const builder *b)
{
    const sotto_window w = {.kernel = {2, 1}, .stride = {1, 1}, .dilation = {1, 1}};
    return sotto_im2col(b->g, image(b), &w);
}

typedef enum types { FLOAT, WEIGHTS, CONV_WEIGHTS, IMAGE_WEIGHTS, CACHES, PLAIN } types;

/* Of convolutions only those whose blocks fit the channels; images have none of the narrow ones. */
static const sotto_dtype floats[] = {SOTTO_F32},
                         weights[] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_I8,   SOTTO_Q4_0,
                                      SOTTO_Q4_1, SOTTO_Q5_0, SOTTO_Q5_1, SOTTO_Q8_0, SOTTO_IQ4_NL,
                                      SOTTO_Q2_K, SOTTO_Q3_K, SOTTO_Q4_K, SOTTO_Q5_K, SOTTO_Q6_K},
                         image_weights[] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_Q4_0,
                                            SOTTO_Q4_1, SOTTO_Q5_0, SOTTO_Q5_1, SOTTO_Q8_0},
                         caches[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_Q8_0},
                         plain[] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_I32};

static const struct {
    const sotto_dtype *list;
    int n;
} type_lists[] = {[FLOAT] = {floats, 1},          [WEIGHTS] = {weights, 15},
                  [CONV_WEIGHTS] = {weights, 10}, [IMAGE_WEIGHTS] = {image_weights, 8},
                  [CACHES] = {caches, 4},         [PLAIN] = {plain, 4}};

static const struct {
    st_op op;
    types types;
    sotto_tensor *(*build)(const builder *b);
} cases[] = {
    {ST_OP_LINEAR, WEIGHTS, linear},
    {ST_OP_CONV_1D, CONV_WEIGHTS, conv_1d},
    {ST_OP_CONV_2D, IMAGE_WEIGHTS, conv_2d},
    {ST_OP_GET_ROWS, WEIGHTS, get_rows},
    {ST_OP_SET_ROWS, CACHES, set_rows},
    {ST_OP_CACHE_ATTENTION, CACHES, cache_attention},
    {ST_OP_COPY, PLAIN, copy},
    {ST_OP_ATTENTION, FLOAT, attention},
    {ST_OP_MATMUL, FLOAT, matmul},
    {ST_OP_LAYER_NORM, FLOAT, layer_norm},
    {ST_OP_RMS_NORM, FLOAT, rms_norm},
    {ST_OP_SOFTMAX, FLOAT, softmax},
    {ST_OP_CONCAT, FLOAT, concat},
    {ST_OP_ADD, FLOAT, add},
    {ST_OP_MUL, FLOAT, mul},
    {ST_OP_GLU, FLOAT, glu},
    {ST_OP_SCALE, FLOAT, scale},
    {ST_OP_GELU, FLOAT, gelu_op},
    {ST_OP_SILU, FLOAT, silu_op},
    {ST_OP_RELU, FLOAT, relu_op},
    {ST_OP_SIGMOID, FLOAT, sigmoid_op},
    {ST_OP_TANH, FLOAT, tanh_op},
    {ST_OP_SQRT, FLOAT, sqrt_op},
    {ST_OP_LOG10, FLOAT, log10_op},
    {ST_OP_POWER, FLOAT, power_op},
    {ST_OP_ARGMAX, FLOAT, argmax_op},
    {ST_OP_TOP_K, FLOAT, top_k},
    {ST_OP_BLOCK_SUMS, FLOAT, block_sums_op},
    {ST_OP_ROPE, FLOAT, rope},
    {ST_OP_IM2COL, FLOAT, im2col},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* Row of the table and number of the type of case `index`; false past the end. */
static bool find(int index, int *row, int *type)
{
    for (*row = 0; *row < N_CASES; ++*row) {
        const int n = type_lists[cases[*row].types].n;
        if (index < n) {
            *type = index;
            return index >= 0;
        }
        index -= n;
    }
    return false;
}

int st_op_case_count(void)
{
    int n = 0;
    for (int i = 0; i < N_CASES; i++)
        n += type_lists[cases[i].types].n;
    return n;
}

st_op_case st_op_case_get(int index)
{
    int row, type;
    if (!find(index, &row, &type))
        return (st_op_case){ST_OP_NONE, SOTTO_F32};
    return (st_op_case){cases[row].op, type_lists[cases[row].types].list[type]};
}

sotto_tensor *st_op_case_build(int index, sotto_graph *g, const st_case_source *source, sotto_tensor **x,
                               sotto_tensor **rows)
{
    int row, type;
    if (!find(index, &row, &type))
        return NULL;
    const int64_t x_dim[2] = {WIDTH, ROWS}, n_dim[1] = {ROWS};
    builder b = {.g = g, .source = source, .dtype = type_lists[cases[row].types].list[type]};
    *x = b.x = sotto_graph_input(g, "x", SOTTO_F32, 2, x_dim);
    *rows = b.rows = sotto_graph_input(g, "rows", SOTTO_I32, 1, n_dim);
    return cases[row].build(&b);
}
