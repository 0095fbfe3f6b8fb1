#include "kernels/level_support.h"

#include "base/cpu.h"
#include "kernels/guard_support.h"

void each_level(void (*check)(const st_cpu_kernels *k))
{
    test_seed();
    for (int level = 0; level < ST_CPU_LEVEL_COUNT; level++) {
        if (!st_cpu_level_usable((st_cpu_level)level, st_cpu_features()))
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
