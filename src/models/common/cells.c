#include "models/common/cells.h"

#include <string.h>

#include "base/alloc.h"

bool st_cells_init(st_cells *c, int n_seq, int n_ctx, int32_t first, int n_cell, int n_move)
{
    memset(c, 0, sizeof *c);
    c->n_seq = n_seq;
    c->n_ctx = n_ctx;
    c->n_cell = n_cell;
    c->first = first;
    c->n_move = n_move;
    c->list = st_calloc((size_t)n_seq * (size_t)n_ctx, sizeof *c->list);
    c->length = st_calloc((size_t)n_seq, sizeof *c->length);
    c->users = st_calloc((size_t)n_cell, sizeof *c->users);
    c->unused = st_calloc((size_t)n_cell, sizeof *c->unused);
    c->same = st_calloc((size_t)n_seq, sizeof *c->same);
    c->scratch = st_calloc((size_t)n_move * (size_t)(n_ctx + 1), sizeof *c->scratch);
    if (!c->list || !c->length || !c->users || !c->unused || !c->same || !c->scratch) {
        st_cells_free(c);
        return false;
    }
    st_cells_reset(c);
    return true;
}

void st_cells_free(st_cells *c)
{
    st_free(c->list);
    st_free(c->length);
    st_free(c->users);
    st_free(c->unused);
    st_free(c->same);
    st_free(c->scratch);
    memset(c, 0, sizeof *c);
}

void st_cells_reset(st_cells *c)
{
    memset(c->list, 0, (size_t)c->n_seq * (size_t)c->n_ctx * sizeof *c->list);
    memset(c->length, 0, (size_t)c->n_seq * sizeof *c->length);
    memset(c->users, 0, (size_t)c->n_cell * sizeof *c->users);
    st_cells_tell_all(c);
    for (int i = 0; i < c->n_cell; i++)
        c->unused[i] = c->first + c->n_cell - 1 - i;
    c->n_unused = c->n_cell;
}

static bool in_range(const st_cells *c, int32_t seq)
{
    return seq >= 0 && seq < c->n_seq;
}

static void release(st_cells *c, int32_t cell)
{
    if (--c->users[cell - c->first] == 0)
        c->unused[c->n_unused++] = cell;
}

static void truncate_to(st_cells *c, int32_t seq, int32_t length)
{
    int32_t *list = c->list + (size_t)seq * (size_t)c->n_ctx;
    while (c->length[seq] > length)
        release(c, list[--c->length[seq]]);
    c->same[seq] = c->same[seq] < c->length[seq] ? c->same[seq] : c->length[seq];
}

void st_cells_truncate(st_cells *c, int32_t seq, int32_t length)
{
    if (in_range(c, seq) && length >= 0)
        truncate_to(c, seq, length);
}

int32_t st_cells_put(st_cells *c, int32_t seq, int32_t pos)
{
    if (seq < 0 || seq >= c->n_seq || pos < 0 || pos >= c->n_ctx || pos > c->length[seq])
        return -1;
    truncate_to(c, seq, pos);
    if (c->n_unused == 0)
        return -1;
    const int32_t cell = c->unused[--c->n_unused];
    c->users[cell - c->first] = 1;
    c->list[(size_t)seq * (size_t)c->n_ctx + (size_t)pos] = cell;
    c->length[seq] = pos + 1;
    return cell;
}

void st_cells_reorder(st_cells *c, const int32_t *dst, const int32_t *src, int n, int length)
{
    n = n < c->n_move ? n : c->n_move;
    const size_t row = (size_t)c->n_ctx;
    /* the new lists are held (and their cells counted) before any old one is dropped: dst and src may overlap */
    for (int i = 0; i < n; i++) {
        if (!in_range(c, dst[i]) || !in_range(c, src[i]))
            continue;
        int32_t *held = c->scratch + (size_t)i * (row + 1);
        const int32_t have = c->length[src[i]] < length ? c->length[src[i]] : length;
        held[row] = have > 0 ? have : 0;
        memcpy(held, c->list + (size_t)src[i] * row, (size_t)held[row] * sizeof *held);
        for (int32_t k = 0; k < held[row]; k++)
            c->users[held[k] - c->first]++;
    }
    for (int i = 0; i < n; i++) {
        if (!in_range(c, dst[i]) || !in_range(c, src[i]))
            continue;
        const int32_t *held = c->scratch + (size_t)i * (row + 1);
        truncate_to(c, dst[i], 0);
        memcpy(c->list + (size_t)dst[i] * row, held, (size_t)held[row] * sizeof *held);
        c->length[dst[i]] = held[row];
    }
}

bool st_cells_shift(st_cells *c, int32_t seq, int32_t keep, int32_t drop, int32_t *from, int32_t *to)
{
    if (!in_range(c, seq) || keep < 0 || drop < 0 || keep > c->length[seq] || drop > c->length[seq] - keep)
        return false;
    int32_t *list = c->list + (size_t)seq * (size_t)c->n_ctx;
    const int32_t rest = c->length[seq] - keep - drop;
    int room = c->n_unused, need = 0;
    for (int32_t i = keep; i < keep + drop; i++)
        room += c->users[list[i] - c->first] == 1;
    for (int32_t i = keep + drop; i < c->length[seq]; i++)
        need += c->users[list[i] - c->first] > 1;
    if (need > room)
        return false;
    for (int32_t i = keep; i < keep + drop; i++)
        release(c, list[i]);
    for (int32_t i = 0; i < rest; i++) {
        from[i] = to[i] = list[keep + drop + i];
        if (c->users[from[i] - c->first] > 1) {
            c->users[from[i] - c->first]--;
            to[i] = c->unused[--c->n_unused];
            c->users[to[i] - c->first] = 1;
        }
        list[keep + i] = to[i];
    }
    c->length[seq] = keep + rest;
    c->same[seq] = c->same[seq] < keep ? c->same[seq] : keep;
    return true;
}

void st_cells_changed(const st_cells *c, int32_t seq, int32_t *from, int32_t *to)
{
    *from = c->same[seq];
    *to = c->length[seq];
}

void st_cells_told(st_cells *c, int32_t seq)
{
    c->same[seq] = c->length[seq];
}

void st_cells_tell_all(st_cells *c)
{
    memset(c->same, 0, (size_t)c->n_seq * sizeof *c->same);
}
