/* metal_support.h: the Metal interface on the stand-in of metal_mock.c. */
#ifndef SOTTO_TESTS_BACKENDS_METAL_SUPPORT_H
#define SOTTO_TESTS_BACKENDS_METAL_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

#include "backends/gpu/api/metal/metal.h"
#include "backends/metal_mock.h"

extern metal_mock *mock_state;

/* For cmocka's group: opens the stand-in, which the library then finds. */
int load_mock(void **state);
/* Nothing wrong was done, and everything was given back. */
void assert_clean(void);
void must(sotto_status status, const sotto_error *err);
void *open_metal(int index);
st_buffer metal_buffer(void *device, size_t bytes);
st_gpu_launch launch_of(st_gpu_kernel kernel, uint32_t x, const void *params, size_t bytes);
void add_buffer(st_gpu_launch *l, const st_buffer *b, uint64_t offset);
/* y = op(x) over n floats, with offsets in bytes; op of element.krn */
st_gpu_launch unary_launch(const st_buffer *x, uint64_t x_at, const st_buffer *y, uint64_t y_at, int n, int op, float a,
                           float b);
/* All that a run does with a device, with everything freed again; the result is right or there is an error. */
sotto_status metal_whole_run(void *device, sotto_error *err);

#endif
