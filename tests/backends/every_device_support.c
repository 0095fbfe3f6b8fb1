#include "backends/every_device_support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/scene_support.h"

const sotto_dtype weight_types[N_WEIGHT_TYPES] = {SOTTO_F32,  SOTTO_F16,  SOTTO_BF16, SOTTO_Q4_0,
                                                  SOTTO_Q4_1, SOTTO_Q5_0, SOTTO_Q5_1, SOTTO_Q8_0};
const sotto_dtype k_types[N_K_TYPES] = {SOTTO_Q2_K, SOTTO_Q3_K, SOTTO_Q4_K, SOTTO_Q5_K, SOTTO_Q6_K, SOTTO_IQ4_NL};

sotto_backend *open_or_null(const char *device, const char *level, int n_threads)
{
    sotto_error err;
    sotto_backend *b = NULL;
    const sotto_backend_options o = {.device = device, .cpu_level = level, .n_threads = n_threads};
    const sotto_status status = sotto_backend_open(&o, &b, &err);
    if (status != SOTTO_OK && status != SOTTO_E_UNSUPPORTED)
        fail_msg("%s", err.text);
    return b;
}

void on_every_device(case_fn *run)
{
    static const char *const levels[] = {"portable", "v2",  "v3",   "avxvnni", "v4",   "avx512vnni",
                                         "vnni",     "amx", "neon", "dotprod", "i8mm", "bf16mm"};
    const char *const only = getenv("SOTTO_TEST_DEVICE"); /* an id, or how some begin: "cuda" */
    sotto_backend *ref = open_or_null("reference", NULL, 1);
    for (int i = 0; i < sotto_device_count(); i++) {
        sotto_device_info info;
        assert_int_equal(sotto_device_get(i, &info, NULL), SOTTO_OK);
        if (only && strncmp(info.id, only, strlen(only)) != 0)
            continue;
        const bool cpu = info.kind == SOTTO_DEVICE_CPU;
        for (size_t l = 0; l < (cpu ? sizeof levels / sizeof *levels : 1); l++) {
            sotto_backend *b = open_or_null(info.id, cpu ? levels[l] : NULL, 3);
            if (b)
                run(b, ref);
            sotto_backend_free(b);
        }
    }
    sotto_backend_free(ref);
    scene_forget();
}
