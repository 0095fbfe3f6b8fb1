#include "base/bytes.h"

#include "base/half.h"

st_bytes st_bytes_over(const void *data, size_t size)
{
    return (st_bytes){.data = data, .size = size, .at = 0, .failed = false};
}

size_t st_bytes_left(const st_bytes *b)
{
    return b->failed ? 0 : b->size - b->at;
}

const void *st_bytes_take(st_bytes *b, size_t n)
{
    if (b->failed || n > b->size - b->at) {
        b->failed = true;
        return NULL;
    }
    /* an empty reader may have no memory at all, but its zero bytes are there */
    const uint8_t *const p = b->data ? b->data + b->at : (const uint8_t *)"";
    b->at += n;
    return p;
}

static uint64_t take_number(st_bytes *b, size_t n)
{
    const uint8_t *const p = st_bytes_take(b, n);
    uint64_t value = 0;
    for (size_t i = 0; p && i < n; i++)
        value |= (uint64_t)p[i] << 8 * i;
    return value;
}

uint8_t st_bytes_u8(st_bytes *b)
{
    return (uint8_t)take_number(b, 1);
}

uint16_t st_bytes_u16(st_bytes *b)
{
    return (uint16_t)take_number(b, 2);
}

uint32_t st_bytes_u32(st_bytes *b)
{
    return (uint32_t)take_number(b, 4);
}

uint64_t st_bytes_u64(st_bytes *b)
{
    return take_number(b, 8);
}

int32_t st_bytes_i32(st_bytes *b)
{
    const uint32_t bits = st_bytes_u32(b);
    int32_t value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float st_bytes_f32(st_bytes *b)
{
    return st_bits_f32(st_bytes_u32(b));
}

double st_bytes_f64(st_bytes *b)
{
    const uint64_t bits = st_bytes_u64(b);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void st_bytes_align(st_bytes *b, size_t alignment)
{
    if (!b->failed)
        st_bytes_take(b, (alignment - (b->at & (alignment - 1))) & (alignment - 1));
}

void st_bytes_seek(st_bytes *b, size_t at)
{
    if (b->failed || at > b->size)
        b->failed = true;
    else
        b->at = at;
}
