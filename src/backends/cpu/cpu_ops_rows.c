/* cpu_ops_rows.c: operations on one row at a time, and elementwise ones. Rows may be strided, elements of a row lie side
 * by side; results are contiguous. */
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu_exec.h"

enum { ROW_UNIT_FLOATS = 8192 }; /* about the work that is worth a trip to the shared counter */

static bool float_rows(const sotto_tensor *node)
{
    for (int i = 0; i < ST_MAX_SRC; i++)
        if (node->src[i] != NULL && !st_cpu_f32_rows(node->src[i]))
            return false;
    return node->dtype == SOTTO_F32 && st_tensor_is_contiguous(node);
}

static int64_t rows_at_once(const sotto_tensor *node)
{
    const int64_t width = node->src[0]->dim[0];
    return width > 0 && width < ROW_UNIT_FLOATS ? ROW_UNIT_FLOATS / width : 1;
}

static void need_rows(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = node->dim[0] > 0 ? st_tensor_n_rows(node) : 0;
}

/* Row r of a source that broadcasts to `node`: dimensions of one element do not move. */
static const float *broadcast_row(const sotto_tensor *t, const sotto_tensor *node, int64_t r)
{
    const int64_t i1 = r % node->dim[1], rest = r / node->dim[1], i2 = rest % node->dim[2], i3 = rest / node->dim[2];
    const char *data = st_tensor_data(t);
    data += t->dim[1] == 1 ? 0 : (size_t)i1 * t->stride[1];
    data += t->dim[2] == 1 ? 0 : (size_t)i2 * t->stride[2];
    data += t->dim[3] == 1 ? 0 : (size_t)i3 * t->stride[3];
    return (const float *)(const void *)data;
}

static const float *source_row(const sotto_tensor *node, int64_t r)
{
    const sotto_tensor *x = node->src[0];
    return (const float *)(const void *)st_cpu_row(x, st_tensor_data(x), r);
}

static float *result_row(const sotto_tensor *node, int64_t r)
{
    return (float *)st_tensor_data(node) + r * node->dim[0];
}

/* FOR_ROWS runs its statement for every row r of the node that this thread takes. */
#define FOR_ROWS                                                                                \
    for (int64_t start = 0, count; (count = st_cpu_take(run, rows_at_once(node), &start)) > 0;) \
        for (int64_t r = start; r < start + count; r++)

/* ---- norms, softmax, argmax, power ---- */

static void run_layer_norm(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const float *w = st_tensor_data(node->src[1]), *b = st_tensor_data(node->src[2]);
    FOR_ROWS run->k->layer_norm(source_row(node, r), w, b, node->params.f[0], node->dim[0], result_row(node, r));
}

static void run_rms_norm(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const float *w = st_tensor_data(node->src[1]);
    FOR_ROWS run->k->rms_norm(source_row(node, r), w, node->params.f[0], node->dim[0], result_row(node, r));
}

static bool supports_softmax(const sotto_tensor *node)
{
    const sotto_tensor *mask = node->src[1];
    return float_rows(node) && (mask == NULL || mask->dim[0] == node->dim[0]);
}

static void run_softmax(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *mask = node->src[1];
    FOR_ROWS run->k->softmax(source_row(node, r), mask != NULL ? broadcast_row(mask, node, r) : NULL, node->params.f[0],
                             node->dim[0], result_row(node, r));
}

static bool supports_argmax(const sotto_tensor *node)
{
    return st_cpu_f32_rows(node->src[0]) && node->dtype == SOTTO_I32 && st_tensor_is_contiguous(node);
}

static void need_argmax(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = sotto_tensor_count(node);
}

static void run_argmax(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    FOR_ROWS((int32_t *)st_tensor_data(node))[r] = (int32_t)run->k->argmax(source_row(node, r), node->src[0]->dim[0]);
}

static void run_power(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    FOR_ROWS run->k->power(source_row(node, r), source_row(node, r) + node->dim[0], result_row(node, r), node->dim[0]);
}

/* ---- top_k, block_sums, rope ---- */

static bool supports_top_k(const sotto_tensor *node)
{
    return float_rows(node);
}

static void need_top_k(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = st_tensor_n_rows(node->src[0]);
}

/* The k largest so far in falling order; an element that is as large as another came after it. */
static void top_of_row(const float *x, int64_t n, int64_t k, float *value, float *index)
{
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!(found < k ? x[i] == x[i] : x[i] > value[k - 1]))
            continue;
        int64_t at = found < k ? found++ : k - 1;
        for (; at > 0 && x[i] > value[at - 1]; at--) {
            value[at] = value[at - 1];
            index[at] = index[at - 1];
        }
        value[at] = x[i];
        index[at] = (float)i;
    }
    for (; found < k; found++) {
        value[found] = -INFINITY;
        index[found] = -1;
    }
}

static void run_top_k(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const int64_t k = node->dim[0];
    FOR_ROWS
    {
        float *value = (float *)st_tensor_data(node) + r * 2 * k;
        top_of_row(source_row(node, r), node->src[0]->dim[0], k, value, value + k);
    }
}

/* A unit is a part of a row, so that several threads share a single one. */
enum { SUMS_UNIT_BLOCKS = ROW_UNIT_FLOATS / SOTTO_SUMS_BLOCK };

static int64_t sums_units(const sotto_tensor *node)
{
    return (node->dim[0] + SUMS_UNIT_BLOCKS - 1) / SUMS_UNIT_BLOCKS;
}

static void need_block_sums(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = st_tensor_n_rows(node->src[0]) * sums_units(node);
}

static void run_block_sums(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const int64_t n_blocks = node->dim[0], n = node->src[0]->dim[0], units = sums_units(node);
    for (int64_t u = 0, count; (count = st_cpu_take(run, 1, &u)) > 0;) {
        const int64_t row = u / units, block = u % units * SUMS_UNIT_BLOCKS, from = block * SOTTO_SUMS_BLOCK;
        float *max = (float *)st_tensor_data(node) + row * 2 * n_blocks + block;
        run->k->block_sums(source_row(node, row) + from, n - from < ROW_UNIT_FLOATS ? n - from : ROW_UNIT_FLOATS, max,
                           max + n_blocks);
    }
}

static bool supports_rope(const sotto_tensor *node)
{
    return st_cpu_f32_rows(node->src[0]) && st_tensor_is_contiguous(node);
}

enum { ROPE_UNIT_PLACES = 16 }; /* they share the frequencies */

/* One position is one unit: the angles are the same for all heads. */
static void need_rope(const st_cpu_kernels *k, const sotto_tensor *node, st_cpu_need *need)
{
    (void)k;
    need->n_phase = 1;
    need->units[0] = node->dim[0] > 0 && node->dim[1] > 0 ? node->dim[2] * node->dim[3] : 0;
    need->thread_floats = 5 * (size_t)node->params.i[0];
}

/* Turns of each pair from one position to the next. */
static void find_steps(const sotto_tensor *node, double *steps)
{
    const int n_rot = node->params.i[0], pairs = n_rot / 2;
    const float *factors = node->src[2] != NULL ? st_tensor_data(node->src[2]) : NULL;
    const double ratio = pairs > 0 ? pow(node->params.f[0], -2.0 / n_rot) : 1;
    double frequency = node->params.f[1] / 6.283185307179586477;
    for (int i = 0; i < pairs; i++, frequency *= ratio)
        steps[i] = factors != NULL ? frequency / factors[i] : frequency;
}

/* What the pairs of a place are turned by, as the kernel for them takes it. */
static void find_angles(const st_cpu_kernels *k, const sotto_tensor *node, double position, const double *steps,
                        float *turns, float *cosine, float *sine)
{
    const int pairs = node->params.i[0] / 2;
    const double magic = 6755399441055744.0; /* a number whose last place is a whole one */
    for (int i = 0; i < pairs; i++) {
        const double turn = position * steps[i];
        turns[i] = (float)(turn - (turn + magic - magic));
    }
    k->cos_sin(turns, node->params.f[2], cosine, sine, pairs);
    for (int i = node->params.i[1] ? 0 : pairs; i-- > 0;) { /* neighbours have them side by side */
        cosine[2 * i] = cosine[2 * i + 1] = cosine[i];
        sine[2 * i + 1] = sine[i];
        sine[2 * i] = -sine[2 * i + 1];
    }
}

static void run_rope(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *positions = node->src[1];
    const int n_rot = node->params.i[0];
    const size_t rest = sizeof(float) * (size_t)(node->dim[0] - n_rot);
    double *const steps = (double *)(void *)run->scratch;
    float *const turns = run->scratch + n_rot, *const cosine = turns + n_rot, *const sine = cosine + n_rot;
    bool begun = false;
    for (int64_t start, count; (count = st_cpu_take(run, ROPE_UNIT_PLACES, &start)) > 0;) {
        if (!begun)
            find_steps(node, steps);
        begun = true;
        for (int64_t u = start; u < start + count; u++) {
            const int64_t place = u % (positions->dim[0] * positions->dim[1]);
            find_angles(run->k, node, ((const int32_t *)st_tensor_data(positions))[place], steps, turns, cosine, sine);
            for (int64_t h = 0, r = u * node->dim[1]; h < node->dim[1]; h++, r++) {
                const float *x = source_row(node, r);
                float *y = result_row(node, r);
                if (node->params.i[1])
                    run->k->rotate_halves(x, cosine, sine, n_rot / 2, y);
                else
                    run->k->rotate_neighbours(x, cosine, sine, n_rot, y);
                if (rest > 0)
                    memcpy(y + n_rot, x + n_rot, rest);
            }
        }
    }
}

/* ---- elementwise ---- */

static bool supports_pair(const sotto_tensor *node)
{
    const sotto_tensor *b = node->src[1];
    return float_rows(node) && (b->dim[0] == node->dim[0] || b->dim[0] == 1);
}

static void run_add(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *b = node->src[1];
    FOR_ROWS
    {
        const float *other = broadcast_row(b, node, r);
        if (b->dim[0] == node->dim[0])
            run->k->add(source_row(node, r), other, result_row(node, r), node->dim[0]);
        else
            run->k->add1(source_row(node, r), other[0], result_row(node, r), node->dim[0]);
    }
}

static void run_mul(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    const sotto_tensor *b = node->src[1];
    FOR_ROWS
    {
        const float *other = broadcast_row(b, node, r);
        if (b->dim[0] == node->dim[0])
            run->k->mul(source_row(node, r), other, result_row(node, r), node->dim[0]);
        else
            run->k->scale(source_row(node, r), other[0], 0.0f, result_row(node, r), node->dim[0]);
    }
}

static void run_glu(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    FOR_ROWS run->k->glu[node->params.act](source_row(node, r), broadcast_row(node->src[1], node, r),
                                           result_row(node, r), node->dim[0]);
}

static void run_scale(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    FOR_ROWS run->k->scale(source_row(node, r), node->params.f[0], node->params.f[1], result_row(node, r), node->dim[0]);
}

static void run_log10(st_cpu_run *run, const sotto_tensor *node, int phase)
{
    (void)phase;
    FOR_ROWS run->k->log10(source_row(node, r), node->params.f[0], result_row(node, r), node->dim[0]);
}

#define MAP(NAME)                                                                      \
    static void run_##NAME(st_cpu_run *run, const sotto_tensor *node, int phase)       \
    {                                                                                  \
        (void)phase;                                                                   \
        FOR_ROWS run->k->NAME(source_row(node, r), result_row(node, r), node->dim[0]); \
    }                                                                                  \
    const st_cpu_op st_cpu_op_##NAME = {float_rows, need_rows, run_##NAME};
MAP(gelu)
MAP(silu)
MAP(relu)
MAP(sigmoid)
MAP(tanh)
MAP(sqrt)

const st_cpu_op st_cpu_op_layer_norm = {float_rows, need_rows, run_layer_norm};
const st_cpu_op st_cpu_op_rms_norm = {float_rows, need_rows, run_rms_norm};
const st_cpu_op st_cpu_op_softmax = {supports_softmax, need_rows, run_softmax};
const st_cpu_op st_cpu_op_argmax = {supports_argmax, need_argmax, run_argmax};
const st_cpu_op st_cpu_op_top_k = {supports_top_k, need_top_k, run_top_k};
const st_cpu_op st_cpu_op_block_sums = {supports_top_k, need_block_sums, run_block_sums};
const st_cpu_op st_cpu_op_rope = {supports_rope, need_rope, run_rope};
const st_cpu_op st_cpu_op_power = {float_rows, need_rows, run_power};
const st_cpu_op st_cpu_op_add = {supports_pair, need_rows, run_add};
const st_cpu_op st_cpu_op_mul = {supports_pair, need_rows, run_mul};
const st_cpu_op st_cpu_op_glu = {float_rows, need_rows, run_glu};
const st_cpu_op st_cpu_op_scale = {float_rows, need_rows, run_scale};
const st_cpu_op st_cpu_op_log10 = {float_rows, need_rows, run_log10};
