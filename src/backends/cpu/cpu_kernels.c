/* cpu_kernels.c: the levels, and filling the table for one. */
#include "backends/cpu/cpu_kernels.h"

#include <string.h>

#include "base/cpu.h"

typedef struct level_row {
    const char *name;
    uint32_t needs;
    void (*fill_product)(st_cpu_kernels *k); /* NULL: nothing beyond the level below */
    void (*fill_rows)(st_cpu_kernels *k);
    void (*fill_narrow)(st_cpu_kernels *k);
    void (*fill_dot)(st_cpu_kernels *k);
    bool compiled;
    sotto_dtype prefers, caches; /* measured with bench/kernels; and with `sotto bench -ctk TYPE -ctv TYPE` */
} level_row;

/* In st_cpu_level order. A level fills over the ones before it. */
#define ST_CPU_I8MM_ALL (ST_CPU_NEON | ST_CPU_DOTPROD | ST_CPU_I8MM)
#define ST_CPU_V3 (ST_CPU_SSE42 | ST_CPU_AVX2 | ST_CPU_FMA | ST_CPU_F16C)
#define ST_CPU_V4 (ST_CPU_V3 | ST_CPU_AVX512)
#define ST_CPU_V4_VNNI (ST_CPU_V4 | ST_CPU_AVX512_VNNI)
#define ST_CPU_VNNI (ST_CPU_V4_VNNI | ST_CPU_AVX512_BF16 | ST_CPU_AVX512_VBMI)

static const level_row levels[ST_CPU_LEVEL_COUNT] = {
    [ST_CPU_LEVEL_PORTABLE] = {"portable", 0, st_cpu_fill_product_portable, st_cpu_fill_rows_portable, NULL,
                               st_cpu_fill_dot_portable, true, SOTTO_F32, SOTTO_BF16},
#if defined(__x86_64__)
    [ST_CPU_LEVEL_V2] = {"v2", ST_CPU_SSE42, st_cpu_fill_product_v2, st_cpu_fill_rows_v2, NULL, st_cpu_fill_dot_v2,
                         true, SOTTO_F32, SOTTO_BF16},
    [ST_CPU_LEVEL_V3] = {"v3", ST_CPU_V3, st_cpu_fill_product_v3, st_cpu_fill_rows_v3, st_cpu_fill_narrow_v3,
                         st_cpu_fill_dot_v3, true, SOTTO_I8, SOTTO_Q8_0},
    [ST_CPU_LEVEL_AVXVNNI] = {"avxvnni", ST_CPU_V3 | ST_CPU_AVX_VNNI, NULL, NULL, st_cpu_fill_narrow_avxvnni,
                              st_cpu_fill_dot_avxvnni, true, SOTTO_I8, SOTTO_Q8_0},
    [ST_CPU_LEVEL_V4] = {"v4", ST_CPU_V4, st_cpu_fill_product_v4, st_cpu_fill_rows_v4, st_cpu_fill_narrow_v4,
                         st_cpu_fill_dot_v4, true, SOTTO_I8, SOTTO_BF16},
    [ST_CPU_LEVEL_AVX512VNNI] = {"avx512vnni", ST_CPU_V4_VNNI, NULL, NULL, st_cpu_fill_narrow_avx512vnni,
                                 st_cpu_fill_dot_avx512vnni, true, SOTTO_I8, SOTTO_BF16},
    [ST_CPU_LEVEL_VNNI] = {"vnni", ST_CPU_VNNI, NULL, NULL, st_cpu_fill_narrow_vnni, NULL, true, SOTTO_I8, SOTTO_BF16},
    [ST_CPU_LEVEL_AMX] = {"amx", ST_CPU_VNNI | ST_CPU_AMX, NULL, NULL, st_cpu_fill_narrow_amx, st_cpu_fill_dot_amx,
                          true, SOTTO_I8, SOTTO_BF16},
#else
    [ST_CPU_LEVEL_V2] = {.name = "v2"},
    [ST_CPU_LEVEL_V3] = {.name = "v3"},
    [ST_CPU_LEVEL_AVXVNNI] = {.name = "avxvnni"},
    [ST_CPU_LEVEL_V4] = {.name = "v4"},
    [ST_CPU_LEVEL_AVX512VNNI] = {.name = "avx512vnni"},
    [ST_CPU_LEVEL_VNNI] = {.name = "vnni"},
    [ST_CPU_LEVEL_AMX] = {.name = "amx"},
#endif
#if defined(__aarch64__)
    [ST_CPU_LEVEL_NEON] = {"neon", ST_CPU_NEON, st_cpu_fill_product_neon, st_cpu_fill_rows_neon, NULL,
                           st_cpu_fill_dot_neon, true, SOTTO_F32, SOTTO_BF16},
    [ST_CPU_LEVEL_DOTPROD] = {"dotprod", ST_CPU_NEON | ST_CPU_DOTPROD, NULL, NULL, st_cpu_fill_narrow_dotprod,
                              st_cpu_fill_dot_dotprod, true, SOTTO_F32, SOTTO_BF16},
    [ST_CPU_LEVEL_I8MM] = {"i8mm", ST_CPU_I8MM_ALL, NULL, NULL, st_cpu_fill_narrow_i8mm, st_cpu_fill_dot_i8mm, true,
                           SOTTO_F32, SOTTO_BF16},
    [ST_CPU_LEVEL_BF16MM] = {"bf16mm", ST_CPU_I8MM_ALL | ST_CPU_BF16MM, NULL, NULL, st_cpu_fill_narrow_bf16mm, NULL,
                             true, SOTTO_F32, SOTTO_BF16},
#else
    [ST_CPU_LEVEL_NEON] = {.name = "neon"},
    [ST_CPU_LEVEL_DOTPROD] = {.name = "dotprod"},
    [ST_CPU_LEVEL_I8MM] = {.name = "i8mm"},
    [ST_CPU_LEVEL_BF16MM] = {.name = "bf16mm"},
#endif
};

void st_cpu_kernels_fill(st_cpu_kernels *k, st_cpu_level level)
{
    memset(k, 0, sizeof *k);
    for (int i = 0; i <= (int)level; i++) {
        const level_row *row = &levels[i]; /* one may lie beside the others: AVX-VNNI is no part of AVX-512 */
        if (!row->compiled || (levels[level].needs & row->needs) != row->needs)
            continue;
        if (row->fill_product != NULL)
            row->fill_product(k);
        if (row->fill_rows != NULL)
            row->fill_rows(k);
        if (row->fill_narrow != NULL)
            row->fill_narrow(k);
        if (row->fill_dot != NULL)
            row->fill_dot(k);
    }
    k->level = level;
}

const char *st_cpu_level_name(st_cpu_level level)
{
    return levels[level].name;
}

sotto_dtype st_cpu_level_prefers(st_cpu_level level)
{
    return levels[level].prefers;
}

sotto_dtype st_cpu_level_caches(st_cpu_level level)
{
    return levels[level].caches;
}

bool st_cpu_level_find(const char *name, st_cpu_level *out)
{
    for (int i = 0; i < ST_CPU_LEVEL_COUNT; i++) {
        if (strcmp(levels[i].name, name) == 0) {
            *out = (st_cpu_level)i;
            return true;
        }
    }
    return false;
}

bool st_cpu_level_usable(st_cpu_level level, uint32_t features)
{
    return levels[level].compiled && (features & levels[level].needs) == levels[level].needs;
}

st_cpu_level st_cpu_level_best(uint32_t features)
{
    int best = ST_CPU_LEVEL_PORTABLE;
    for (int i = 0; i < ST_CPU_LEVEL_COUNT; i++)
        if (st_cpu_level_usable((st_cpu_level)i, features))
            best = i;
    return (st_cpu_level)best;
}
