/* dot_record.h: packed rows of block products (st_cpu_left8), what their integers start with, and where expanded weights are.
 * Included after a vec_*.h and
 *   ST_DOT_START   what the integers of products start with, if not 0
 *   ST_DOT_FOLD    1, where expanded q3_k has ST_DOT_FOLD_ZERO in its bytes */
#ifndef SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_RECORD_H
#define SOTTO_SRC_BACKENDS_CPU_KERNELS_DOT_RECORD_H

#include "quads.h"

#if !defined(ST_DOT_START)
#define ST_DOT_START 0
#endif
#if !defined(ST_DOT_FOLD)
#define ST_DOT_FOLD 0
#endif

enum { ST_DOT_FOLD_ZERO = 124 };
enum { RECORD = sizeof(st_cpu_left8), RECORD_SCALE = 32, RECORD_FIX = 36 };
_Static_assert(offsetof(st_cpu_left8, scale) == RECORD_SCALE && offsetof(st_cpu_left8, fix) == RECORD_FIX, "a record");

/* Numbers of this size and above are integers: adding it rounds to nearest, ties to even. */
#define ROUNDER 12582912.0f /* 1.5 * 2^23 */
enum { ROUNDER_BITS = 0x4b400000 };

INL vi left_quad(const uint8_t *record, int i)
{
    int32_t x;
    memcpy(&x, record + 4 * i, sizeof x);
    return vi_set1(x);
}

INL vf left_float(const uint8_t *record, int at)
{
    float x;
    memcpy(&x, record + at, sizeof x);
    return v_set1(x);
}

/* What a group's integers start with; g is that of the fix, 2 for all 32 k. */
INL vi dot_start(bool min, const uint8_t *record, int g)
{
    return min ? vi_set1(ST_DOT_START) : left_quad(record + RECORD_FIX, g);
}

/* What is expanded of 32 k of a panel: [groups][32 columns] scales, where ST_DOT_START is not 0 as many shifts, [mins][32 columns]
 * minima, then the bytes [8][32 columns][4], where they are in planes first the low halves and then the high ones. */
INL int head_of(int groups, int mins)
{
    return 128 * (groups * (ST_DOT_START != 0 ? 2 : 1) + mins);
}

#endif
