/* gpu_pack.h: how stored matrices lie in the memory of a GPU, the same for every interface. Pure host code.
 *
 * A matrix [n, k] is a plane of numbers, n rows one after another, and for most types a plane of scales behind it, so that
 * neighbouring work items read whole aligned words of either. Nothing is rounded: unpacking gives back the file's values.
 *
 *   type           numbers, bytes a row               scales
 *   f32 f16 bf16   4 k, 2 k                           none
 *   i8             k, signed                          f32 a row
 *   q8_0           k, signed                          f16 d a block of 32
 *   q4_0           k / 2: element 2i is the low half  f16 d a block
 *   q4_1             of byte i, 2i + 1 the high half  f16 d, f16 m a block
 *   q5_0 q5_1      as q4_0, without the fifth bits    f16 d, f16 m (0 in q5_0), u32 whose bit e is element e's fifth bit
 *   iq4_nl         as q4_0                            f16 d
 *   q4_K q5_K q6_K k / 2: the low 4 bits of codes     of a block of 256: f16 d, f16 dmin, 16 bytes of steps and offsets
 *   q2_K q3_K      k / 4: the low 2 bits                (st_k_get_groups), then what codes have above the low bits: of
 *                                                       q3_K and q5_K 32 bytes with 1 bit each, of q6_K 64 with 2 each
 *
 * Bits of K types lie one element after another from the lowest of a byte on. A weight takes 2.625, 3.625, 4.625, 5.625 and
 * 6.625 bits.
 * Planes begin at multiples of 256 bytes. kernels/weights.krn reads them. */
#ifndef SOTTO_SRC_BACKENDS_GPU_GPU_PACK_H
#define SOTTO_SRC_BACKENDS_GPU_GPU_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sotto/base.h"
#include "sotto/tensor.h"

enum { ST_GPU_PLANE_ALIGNMENT = 256 };

typedef struct st_gpu_layout {
    sotto_dtype dtype;
    int64_t k, n;      /* elements of a row, rows */
    size_t number_row; /* bytes of a row in either plane; 0 = there are no scales */
    size_t scale_row;
    size_t scale_offset; /* where the plane of scales begins */
    size_t bytes;        /* of the matrix */
    bool as_rows;        /* the plane of numbers is the rows as in a file, and all there is */
} st_gpu_layout;

/* False when the type is none of the above, k is not whole blocks, or the size overflows. */
bool st_gpu_layout_of(sotto_dtype dtype, int64_t k, int64_t n, st_gpu_layout *out);

/* A type of kernels/blocks.krn, which products and get_rows read. */
bool st_gpu_is_blocks(sotto_dtype dtype);

/* n_rows contiguous rows of type `from` (i8: not possible; a row's scale is found) become strips of the two planes, to be
 * written at row * number_row and scale_offset + row * scale_row. `scales` may be NULL when scale_row is 0. `name` is the
 * tensor's, for the sentence. */
sotto_status st_gpu_pack_rows(const st_gpu_layout *layout, const char *name, sotto_dtype from, const void *rows,
                              int64_t n_rows, void *numbers, void *scales, sotto_error *err);

/* Strips of n_rows rows as f32. */
void st_gpu_unpack_rows(const st_gpu_layout *layout, const void *numbers, const void *scales, int64_t n_rows,
                        float *out);

#endif
