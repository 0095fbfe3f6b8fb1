#include "runtime/self_test.h"

sotto_status st_self_test(const st_runner *r, sotto_error *err)
{
    (void)r;
    (void)err;
    return SOTTO_OK;
}
