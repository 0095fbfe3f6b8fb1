#include "kernels/level_support.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "kernels/guard_support.h"

bool level_tested(st_cpu_level level)
{
    const char *names = getenv("SOTTO_TEST_LEVELS"), *name = st_cpu_level_name(level);
    bool named = names == NULL;
    for (size_t n; !named && *names != '\0'; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        named = strlen(name) == n && memcmp(names, name, n) == 0;
    }
    return named && st_cpu_level_usable(level, st_cpu_features());
}

void each_level(void (*check)(const st_cpu_kernels *k))
{
    test_seed();
    for (int level = 0; level < ST_CPU_LEVEL_COUNT; level++) {
        if (!level_tested((st_cpu_level)level))
            continue;
        st_cpu_kernels k;
        st_cpu_kernels_fill(&k, (st_cpu_level)level);
        if (k.enter != NULL)
            k.enter();
        check(&k);
        if (k.leave != NULL)
            k.leave();
    }
}

st_cpu_attention guarded_head(int64_t n_q, int64_t n_k, int d, float scale)
{
    const ptrdiff_t stride = d + 3;
    return (st_cpu_attention){.q = guard_floats((size_t)((n_q - 1) * stride + d)),
                              .k = guard_floats((size_t)((n_k - 1) * stride + d)),
                              .v = guard_floats((size_t)((n_k - 1) * stride + d)),
                              .out = guard_alloc((size_t)((n_q - 1) * stride + d) * 4),
                              .q_stride = stride,
                              .k_stride = stride,
                              .v_stride = stride,
                              .out_stride = stride,
                              .n_q = n_q,
                              .n_k = n_k,
                              .d = d,
                              .scale = scale};
}
