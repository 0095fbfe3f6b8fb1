/* self_test.h: is a device worth being used? */
#ifndef SOTTO_SRC_RUNTIME_SELF_TEST_H
#define SOTTO_SRC_RUNTIME_SELF_TEST_H

#include "runtime/runtime_impl.h"

/* Every operation that the device says it has and the options need, on a small case, against the reference. SOTTO_E_DEVICE names the first that
 * is wrong. */
sotto_status st_self_test(const st_runner *r, const sotto_backend_options *options, sotto_error *err);

#endif
