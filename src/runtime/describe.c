#include "base/status.h"
#include "runtime/plan_impl.h"

sotto_status sotto_plan_describe(const sotto_plan *plan, void (*write)(void *user, const char *text, size_t n),
                                 void *user, sotto_error *err)
{
    (void)user;
    if (!plan || !write)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_plan_describe: plan or write is NULL");
    return SOTTO_OK;
}
