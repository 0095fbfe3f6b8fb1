/* test_levels.c: the names of the levels, and which of them a processor gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "backends/cpu/cpu_kernels.h"
#include "base/cpu.h"

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < ST_CPU_LEVEL_COUNT; i++) {
        st_cpu_level found;
        assert_true(st_cpu_level_find(st_cpu_level_name((st_cpu_level)i), &found));
        assert_int_equal(found, i);
    }
    st_cpu_level level;
    assert_true(st_cpu_level_find("v3", &level));
    assert_int_equal(level, ST_CPU_LEVEL_V3);
    assert_false(st_cpu_level_find("V3 ", &level));
    assert_false(st_cpu_level_find("", &level));
}

typedef struct processor {
    uint32_t features;
    st_cpu_level best;
} processor;

#define AVX2 (ST_CPU_SSE42 | ST_CPU_AVX2 | ST_CPU_FMA | ST_CPU_F16C)
#define AVX512 (AVX2 | ST_CPU_AVX512)
#define VBMI (AVX512 | ST_CPU_AVX512_VNNI | ST_CPU_AVX512_VBMI)
#define DOTPROD (ST_CPU_NEON | ST_CPU_DOTPROD)

static const processor x86[] = {
    {0, ST_CPU_LEVEL_PORTABLE},
    {ST_CPU_SSE42, ST_CPU_LEVEL_V2},
    {AVX2 & ~(uint32_t)ST_CPU_FMA, ST_CPU_LEVEL_V2},
    {AVX2, ST_CPU_LEVEL_V3},                                                      /* Haswell, Zen 1 to 3 */
    {AVX2 | ST_CPU_AVX_VNNI, ST_CPU_LEVEL_AVXVNNI},                               /* Alder Lake and later */
    {AVX512, ST_CPU_LEVEL_V4},                                                    /* Skylake-X */
    {AVX512 | ST_CPU_AVX512_VNNI, ST_CPU_LEVEL_AVX512VNNI},                       /* Cascade Lake */
    {AVX512 | ST_CPU_AVX512_VNNI | ST_CPU_AVX512_BF16, ST_CPU_LEVEL_AVX512VNNI},  /* Cooper Lake */
    {VBMI, ST_CPU_LEVEL_AVX512VNNI},                                              /* Ice Lake, Tiger Lake */
    {VBMI | ST_CPU_AVX512_BF16, ST_CPU_LEVEL_VNNI},                               /* Zen 4 */
    {VBMI | ST_CPU_AVX512_BF16 | ST_CPU_AVX_VNNI, ST_CPU_LEVEL_VNNI},             /* Zen 5 */
    {VBMI | ST_CPU_AVX512_BF16 | ST_CPU_AVX_VNNI | ST_CPU_AMX, ST_CPU_LEVEL_AMX}, /* Sapphire Rapids */
};

static const processor arm[] = {
    {0, ST_CPU_LEVEL_PORTABLE},
    {ST_CPU_NEON, ST_CPU_LEVEL_NEON},                             /* Cortex-A53, A72 */
    {DOTPROD, ST_CPU_LEVEL_DOTPROD},                              /* Neoverse N1, Apple M1 */
    {ST_CPU_NEON | ST_CPU_I8MM, ST_CPU_LEVEL_NEON},               /* none known */
    {DOTPROD | ST_CPU_BF16MM, ST_CPU_LEVEL_DOTPROD},              /* none known */
    {DOTPROD | ST_CPU_I8MM, ST_CPU_LEVEL_I8MM},                   /* none known */
    {DOTPROD | ST_CPU_I8MM | ST_CPU_BF16MM, ST_CPU_LEVEL_BF16MM}, /* Neoverse V1, N2, Apple M2 */
};

static void check_best(const processor *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(st_cpu_level_name(st_cpu_level_best(list[i].features)), st_cpu_level_name(list[i].best));
        assert_true(st_cpu_level_usable(list[i].best, list[i].features));
    }
}

static void test_best(void **state)
{
    (void)state;
    if (st_cpu_level_usable(ST_CPU_LEVEL_V2, ST_CPU_SSE42))
        check_best(x86, sizeof x86 / sizeof x86[0]);
    if (st_cpu_level_usable(ST_CPU_LEVEL_NEON, ST_CPU_NEON))
        check_best(arm, sizeof arm / sizeof arm[0]);
    assert_true(st_cpu_level_usable(ST_CPU_LEVEL_PORTABLE, 0));
    assert_false(st_cpu_level_usable(ST_CPU_LEVEL_V4, AVX2));
    printf("this machine's level: %s\n", st_cpu_level_name(st_cpu_level_best(st_cpu_features())));
}

/* Prints levels of this processor's family: those that this machine has, or the others. */
static void list_levels(const char *title, bool here)
{
    printf("%s:", title);
    for (int i = 0; i < ST_CPU_LEVEL_COUNT; i++)
        if (st_cpu_level_usable((st_cpu_level)i, UINT32_MAX) &&
            st_cpu_level_usable((st_cpu_level)i, st_cpu_features()) == here)
            printf(" %s", st_cpu_level_name((st_cpu_level)i));
    printf("\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_names), cmocka_unit_test(test_best)};
    list_levels("levels of this machine", true);
    list_levels("levels of other machines", false);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
