/* cells.h: which cells of a cache of keys and values belong to which sequence; numbers only, no tensors. A sequence is a list
 * of cells, one for each position. Sequences that share a past share its cells, which are counted. */
#ifndef SOTTO_SRC_MODELS_COMMON_CELLS_H
#define SOTTO_SRC_MODELS_COMMON_CELLS_H

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
    int32_t *same; /* [n_seq]: entries at the beginning of the list that are as they were at the last st_cells_told() */
    int n_move;
    int32_t *scratch; /* [n_move, n_ctx + 1] for reorder */
} st_cells;

/* The pool is the cells [first, first + n_cell). At most n_move lists change at once in st_cells_reorder(). */
bool st_cells_init(st_cells *c, int n_seq, int n_ctx, int32_t first, int n_cell, int n_move);
void st_cells_free(st_cells *c);
void st_cells_reset(st_cells *c);
/* Cell for position pos of a sequence, which drops what it had at pos and after. -1 when the pool is empty, pos is a gap
 * or a number is out of range. */
int32_t st_cells_put(st_cells *c, int32_t seq, int32_t pos);
/* Drops what a sequence has at position `length` and after. */
void st_cells_truncate(st_cells *c, int32_t seq, int32_t length);
/* list(dst[i]) = first `length` of list(src[i]), all at once. Numbers out of range are skipped. */
void st_cells_reorder(st_cells *c, const int32_t *dst, const int32_t *src, int n, int length);

/* Takes positions [keep, keep + drop) out of a sequence; those behind them move down. from[i] is the cell that position
 * keep + drop + i had, to[i] the cell that position keep + i has now: the same, or a fresh one where another sequence lists
 * the old one. Both hold length - keep - drop numbers. False, and nothing is changed, when there are too few free cells or a
 * number is out of range. */
bool st_cells_shift(st_cells *c, int32_t seq, int32_t keep, int32_t drop, int32_t *from, int32_t *to);

/* Whoever copies the lists elsewhere asks for what has changed: entries [*from, *to) of the sequence's list. */
void st_cells_changed(const st_cells *c, int32_t seq, int32_t *from, int32_t *to);
void st_cells_told(st_cells *c, int32_t seq);
/* Forget what was told: all is new. */
void st_cells_tell_all(st_cells *c);

#endif
