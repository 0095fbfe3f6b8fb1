/* Every 6 bytes are an item: step, life, size (2), alignment and pinned, reuse. */
#include "fuzz/fuzz.h"
#include "planner_check.h"

enum { MAX_ITEMS = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    st_plan_item items[MAX_ITEMS], again[MAX_ITEMS];
    int n = 0, step = 0;
    for (; n < MAX_ITEMS && (size_t)n * 6 + 6 <= size; n++) {
        const uint8_t *p = data + n * 6;
        step += p[0] % 4;
        items[n] = (st_plan_item){.size = (size_t)p[2] << (p[3] % 60), /* also sizes whose sum overflows */
                                  .alignment = (size_t)1 << (p[4] & 7),
                                  .first = step,
                                  .last = step + p[1] % 16,
                                  .reuse = p[5] == 0 ? -1 : n - p[5] % 16,
                                  .pinned = p[4] >= 0xe0};
        if (items[n].reuse < -1)
            items[n].reuse = -1;
        again[n] = items[n];
    }
    size_t total, total_again;
    sotto_error err = {0};
    const sotto_status status = st_plan_place(items, n, &total, &err);
    FUZZ_CHECK(st_plan_place(again, n, &total_again, NULL) == status);
    if (status != SOTTO_OK) {
        FUZZ_CHECK(err.text[0] != '\0' && total == 0);
        return 0;
    }
    FUZZ_CHECK(planner_broken_rule(items, n, total) == NULL);
    FUZZ_CHECK(total == total_again);
    for (int i = 0; i < n; i++)
        FUZZ_CHECK(items[i].offset == again[i].offset);
    return 0;
}
