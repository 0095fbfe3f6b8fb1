/* cells.h: which cells of the self-attention cache belong to which sequence; numbers only, no tensors. */
#ifndef SOTTO_SRC_MODELS_WHISPER_CELLS_H
#define SOTTO_SRC_MODELS_WHISPER_CELLS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct st_cells {
    int n_seq, n_ctx, n_cell;
    int32_t first;   /* number of the first cell */
    int32_t *list;   /* [n_seq, n_ctx]: cell of each position */
    int32_t *length; /* [n_seq] */
    int32_t *users;  /* [n_cell]: sequences that list the cell */
    int32_t *unused; /* stack of free cells */
    int n_unused;
    int32_t *scratch; /* [n_seq, n_ctx + 1] for reorder */
} st_cells;

/* The pool is the cells [first, first + n_cell). */
bool st_cells_init(st_cells *c, int n_seq, int n_ctx, int32_t first, int n_cell);
void st_cells_free(st_cells *c);
void st_cells_reset(st_cells *c);
/* Cell for position pos of a sequence, which drops what it had at pos and after. -1 when the pool is empty, pos is a gap
 * or a number is out of range. */
int32_t st_cells_put(st_cells *c, int32_t seq, int32_t pos);
/* list(dst[i]) = first `length` of list(src[i]), all at once. Numbers out of range are skipped. */
void st_cells_reorder(st_cells *c, const int32_t *dst, const int32_t *src, int n, int length);

#endif
