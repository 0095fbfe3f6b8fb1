/* The first half of the input is a list of reads, the second half what they read. */
#include <string.h>

#include "base/bytes.h"
#include "fuzz/fuzz.h"

static void step(st_bytes *b, uint8_t op, uint8_t argument)
{
    const bool failed = b->failed;
    const size_t at = b->at, left = st_bytes_left(b);
    size_t moved = 0;
    switch (op % 10) {
    case 0:
        st_bytes_u8(b), moved = 1;
        break;
    case 1:
        st_bytes_u16(b), moved = 2;
        break;
    case 2:
        st_bytes_u32(b), moved = 4;
        break;
    case 3:
        st_bytes_u64(b), moved = 8;
        break;
    case 4:
        st_bytes_i32(b), moved = 4;
        break;
    case 5:
        st_bytes_f32(b), moved = 4;
        break;
    case 6:
        st_bytes_f64(b), moved = 8;
        break;
    case 7: {
        moved = argument == 255 ? SIZE_MAX : argument;
        const uint8_t *const p = st_bytes_take(b, moved);
        FUZZ_CHECK((p == NULL) == b->failed);
        uint8_t sum = 0;
        for (size_t i = 0; p && i < moved; i++)
            sum = (uint8_t)(sum + p[i]);
        (void)*(volatile uint8_t *)&sum;
        break;
    }
    case 8: {
        const size_t alignment = (size_t)1 << argument % 8;
        moved = (alignment - at % alignment) % alignment;
        st_bytes_align(b, alignment);
        FUZZ_CHECK(b->failed || b->at % alignment == 0);
        break;
    }
    default:
        st_bytes_seek(b, argument);
        FUZZ_CHECK(b->failed || b->at == argument);
        FUZZ_CHECK(failed || b->failed == (argument > b->size));
        return;
    }
    FUZZ_CHECK(b->failed == (failed || moved > left));
    FUZZ_CHECK(b->failed ? b->at == at && st_bytes_left(b) == 0
                         : b->at == at + moved && st_bytes_left(b) == left - moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t half = size / 2;
    uint8_t *const copy = malloc(size - half + 1);
    if (!copy)
        return 0;
    if (size > half)
        memcpy(copy, data + half, size - half);
    st_bytes b = st_bytes_over(copy, size - half);
    for (size_t i = 0; i + 1 < half; i += 2) {
        step(&b, data[i], data[i + 1]);
        FUZZ_CHECK(b.at <= b.size);
    }
    free(copy);
    return 0;
}
