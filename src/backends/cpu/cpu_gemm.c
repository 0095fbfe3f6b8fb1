/* cpu_gemm.c: blocking around the product kernels. For many rows a part of a panel is expanded to f32 once and meets all
 * packed rows while it is in the cache; for few rows the panel streams through once, expanded in registers. */
#include "backends/cpu/cpu_gemm.h"

#include <string.h>

/* Blocks of k that are expanded at once: 512 k of 32 columns are 64 KiB. */
enum { EXPAND_BLOCKS = 16, TILE = 2 * 16 };

static size_t padded(int64_t k)
{
    return (size_t)st_cpu_blocks(k) * ST_CPU_BLOCK;
}

/* scratch: [accumulators: rows * 32] [expanded: 512 * 32] [one unclipped row: k] [packed rows] */
static size_t acc_floats(void)
{
    return (size_t)ST_CPU_ROW_BLOCK * TILE;
}

static size_t expanded_floats(void)
{
    return (size_t)EXPAND_BLOCKS * ST_CPU_BLOCK * ST_CPU_PANEL;
}

size_t st_cpu_gemm_scratch(int64_t n_rows, int64_t k)
{
    return acc_floats() + expanded_floats() + padded(k) * ((size_t)n_rows + 1);
}

static int tile_rows(const st_cpu_kernels *k, int64_t n_total)
{
    return n_total <= ST_CPU_FEW_ROWS ? k->skinny_rows : k->mr;
}

void st_cpu_gemm_pack(const st_cpu_kernels *k, const st_cpu_left *left, int64_t k_size, int64_t n_total, int64_t row,
                      int n_rows, float *scratch)
{
    float *unclipped = scratch + acc_floats() + expanded_floats();
    float *packed = unclipped + padded(k_size);
    const int tile = tile_rows(k, n_total);
    for (int r = 0; r < n_rows; r++) {
        const int64_t i1 = (row + r) % left->n1, i2 = (row + r) / left->n1 % left->n2,
                      i3 = (row + r) / left->n1 / left->n2;
        const ptrdiff_t base = i2 * left->stride2 + i3 * left->stride3;
        const ptrdiff_t start = left->origin + i1 * left->stride1;
        const float *x = left->x + base + start;
        if (left->clip > 0 && (start < 0 || start + k_size > left->clip)) {
            const int64_t from = start < 0 ? -start : 0;
            const int64_t to = start + k_size > left->clip ? left->clip - start : k_size;
            memset(unclipped, 0, sizeof(float) * (size_t)k_size);
            if (to > from)
                memcpy(unclipped + from, left->x + base + start + from, sizeof(float) * (size_t)(to - from));
            x = unclipped;
        }
        const int first = r / tile * tile, rows = n_rows - first < tile ? n_rows - first : tile;
        k->pack_row(x, k_size, packed + padded(k_size) * (size_t)first + (size_t)(r - first) * 16, rows);
    }
}

static void panel_many(const st_cpu_kernels *k, const st_cpu_right *right, const uint8_t *panel, int n_rows,
                       const float *packed, float *expanded, float *acc)
{
    const int64_t n_block = st_cpu_blocks(right->k);
    const size_t k_padded = padded(right->k);
    const int64_t step = right->type == ST_CPU_W_F32 ? n_block : EXPAND_BLOCKS;
    if (n_block == 0)
        memset(acc, 0, sizeof(float) * (size_t)n_rows * TILE);
    for (int64_t b = 0; b < n_block; b += step) {
        const int blocks = (int)(n_block - b < step ? n_block - b : step);
        const float *w = expanded;
        if (right->type == ST_CPU_W_F32)
            w = (const float *)(const void *)panel;
        else
            k->expand[right->type](panel + st_cpu_block_bytes(right->type) * (size_t)b, blocks, expanded);
        for (int r = 0; r < n_rows; r += k->mr) {
            const int rows = n_rows - r < k->mr ? n_rows - r : k->mr;
            k->product[rows](packed + k_padded * (size_t)r + (size_t)b * ST_CPU_BLOCK * (size_t)rows, w, 2 * blocks,
                             acc + (size_t)r * TILE, b == 0);
        }
    }
}

void st_cpu_gemm_panels(const st_cpu_kernels *k, const st_cpu_right *right, const st_cpu_epilogue *e, int64_t n_total,
                        int64_t row, int n_rows, int64_t panel, int64_t n_panels, float *scratch)
{
    float *acc = scratch, *expanded = acc + acc_floats();
    const size_t k_padded = padded(right->k);
    const float *packed = expanded + expanded_floats() + k_padded;
    const size_t panel_bytes = st_cpu_panel_bytes(right->type, right->k);
    const int tile = tile_rows(k, n_total);
    for (int64_t p = panel; p < panel + n_panels; p++) {
        const uint8_t *w = right->packed + panel_bytes * (size_t)p;
        const int64_t col = p * ST_CPU_PANEL;
        const int cols = (int)(right->n - col < ST_CPU_PANEL ? right->n - col : ST_CPU_PANEL);
        if (n_total > ST_CPU_FEW_ROWS)
            panel_many(k, right, w, n_rows, packed, expanded, acc);
        for (int r = 0; r < n_rows; r += tile) {
            const int rows = n_rows - r < tile ? n_rows - r : tile;
            if (n_total <= ST_CPU_FEW_ROWS)
                k->skinny[right->type][rows](packed + k_padded * (size_t)r, w, (int)st_cpu_blocks(right->k),
                                             acc + (size_t)r * TILE);
            k->finish(e, acc + (size_t)r * TILE, rows, row + r, col, cols);
        }
    }
}
