/* Any bytes: what the functions of utf8.h say of them must agree. */
#include <string.h>

#include "base/utf8.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const s = (const char *)data;
    char *const repaired = malloc(3 * size + 1);
    if (!repaired)
        return 0;
    const size_t length = st_utf8_repair(s, size, repaired);
    FUZZ_CHECK(length <= 3 * size && repaired[length] == 0);
    FUZZ_CHECK(st_utf8_valid(repaired, length));
    FUZZ_CHECK(st_utf8_valid(s, size) == (length == size && (size == 0 || memcmp(repaired, s, size) == 0)));
    FUZZ_CHECK(st_utf8_incomplete_tail(repaired, length) == 0);

    const size_t tail = st_utf8_incomplete_tail(s, size);
    FUZZ_CHECK(tail <= 3 && tail <= size);
    FUZZ_CHECK(tail == 0 || st_utf8_next(data + size - tail, tail, NULL) == -1);
    FUZZ_CHECK(tail == 0 || !st_utf8_valid(s, size));

    for (size_t i = 0; i < size; i++) {
        uint32_t code;
        char again[4];
        const int n = st_utf8_next(data + i, size - i, &code);
        FUZZ_CHECK(n >= -1 && n <= 4 && n <= (int)(size - i < 4 ? size - i : 4));
        if (n > 0)
            FUZZ_CHECK(st_utf8_put(code, again) == (size_t)n && memcmp(again, data + i, (size_t)n) == 0);
    }
    free(repaired);
    return 0;
}
