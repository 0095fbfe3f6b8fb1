#include "base/status.h"
#include "models/llama/session_impl.h"

sotto_status sotto_llama_state_save(sotto_llama_session *session, int32_t seq, const char *path, sotto_error *err)
{
    (void)session;
    (void)seq;
    (void)path;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "sotto_llama_state_save: not there yet");
}

sotto_status sotto_llama_state_load(sotto_llama_session *session, int32_t seq, const char *path, sotto_error *err)
{
    (void)session;
    (void)seq;
    (void)path;
    return st_fail(err, SOTTO_E_UNSUPPORTED, "sotto_llama_state_load: not there yet");
}
