/* bytes.h: a bounded little-endian reader over memory that need not be trusted.
 * Once a read runs past the end the reader is failed for good: every later read returns zero. One check at the end, or
 * before a value is used as a size. */
#ifndef SOTTO_SRC_BASE_BYTES_H
#define SOTTO_SRC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct st_bytes {
    const uint8_t *data;
    size_t size, at;
    bool failed;
} st_bytes;

st_bytes st_bytes_over(const void *data, size_t size);
size_t st_bytes_left(const st_bytes *b);
uint8_t st_bytes_u8(st_bytes *b);
uint16_t st_bytes_u16(st_bytes *b);
uint32_t st_bytes_u32(st_bytes *b);
uint64_t st_bytes_u64(st_bytes *b);
int32_t st_bytes_i32(st_bytes *b);
float st_bytes_f32(st_bytes *b);
double st_bytes_f64(st_bytes *b);
/* n bytes in place, NULL (and failed) when fewer remain. */
const void *st_bytes_take(st_bytes *b, size_t n);
/* Move to a multiple of alignment (power of two) counted from the start. */
void st_bytes_align(st_bytes *b, size_t alignment);
void st_bytes_seek(st_bytes *b, size_t at);

#endif
