/* ops_move.c: rows out of a table and into one. */
#include "backends/gpu/gpu_pack.h"
#include "backends/gpu/gpu_plan.h"
#include "backends/gpu/kernels/params.h"

static bool supports_get_rows(const sotto_tensor *node)
{
    const sotto_tensor *table = node->src[0];
    st_gpu_layout l;
    if (table->flags & ST_TENSOR_MATRIX) /* rows of a part of it are elsewhere than its strides say */
        return !table->view_of && st_gpu_layout_of(table->dtype, table->dim[0], table->dim[1], &l);
    return table->dtype == SOTTO_F32 || table->dtype == SOTTO_F16 || table->dtype == SOTTO_BF16 ||
           st_gpu_is_q8_0_rows(table);
}

static sotto_status emit_get_rows(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const sotto_tensor *from = node->src[0];
    const st_gpu_operand table = st_gpu_operand_of(b, from), rows = st_gpu_operand_of(b, node->src[1]),
                         y = st_gpu_operand_of(b, node);
    const struct get_rows_p p = {.n = y.dim[0],
                                 .n_rows = y.dim[1],
                                 .n_table = table.dim[1],
                                 .type = (int)table.dtype,
                                 .table_row = from->flags & ST_TENSOR_MATRIX ? table.dim[0] : table.stride[1],
                                 .rows_stride = rows.stride[0],
                                 .y_row = y.stride[1],
                                 .y_type = (int)y.dtype,
                                 .in_blocks = st_gpu_is_q8_0_rows(from)};
    const st_gpu_arg args[] = {table.at, st_gpu_scales_of(from), rows.at, y.at};
    return st_gpu_emit(b, ST_GPU_get_rows, (uint32_t)p.n_rows, 1, 1, &p, sizeof p, args, 4, err);
}

static bool supports_set_rows(const sotto_tensor *node)
{
    return sotto_dtype_block(node->src[0]->dtype) == 1 || st_gpu_is_q8_0_rows(node->src[0]);
}

static sotto_status emit_set_rows(st_gpu_builder *b, const sotto_tensor *node, sotto_error *err)
{
    const st_gpu_operand table = st_gpu_operand_of(b, node->src[0]), rows = st_gpu_operand_of(b, node->src[1]),
                         x = st_gpu_operand_of(b, node->src[2]);
    const struct set_rows_p p = {.n = x.dim[0],
                                 .n_rows = x.dim[1],
                                 .n_table = table.dim[1],
                                 .table_type = (int)table.dtype,
                                 .table_row = table.stride[1],
                                 .rows_stride = rows.stride[0],
                                 .x_row = x.stride[1],
                                 .x_type = (int)x.dtype};
    const st_gpu_arg args[] = {table.at, rows.at, x.at};
    return st_gpu_emit(b, ST_GPU_set_rows, (uint32_t)p.n_rows, 1, 1, &p, sizeof p, args, 3, err);
}

const st_gpu_op st_gpu_op_get_rows = {supports_get_rows, emit_get_rows, 0, false};
const st_gpu_op st_gpu_op_set_rows = {supports_set_rows, emit_set_rows, 4, false};
