/* Memory of the host that runs out at every place of a run on Metal's stand-in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "backends/metal_support.h"

static sotto_status run(void *user)
{
    const int *const index = user;
    sotto_error err = {0};
    void *device;
    sotto_status status = st_gpu_metal.open(*index, NULL, &device, &err);
    if (status != SOTTO_OK)
        return status;
    status = metal_whole_run(device, &err);
    st_gpu_metal.close(device);
    assert_clean();
    return status;
}

static void test_no_memory(void **state)
{
    (void)state;
    for (int index = 0; index < 2; index++)
        assert_true(alloc_fail_sweep(run, &index) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory)};
    return cmocka_run_group_tests(tests, load_mock, NULL);
}
