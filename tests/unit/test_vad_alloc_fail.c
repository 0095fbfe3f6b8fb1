/* Memory that runs out at every place of loading a model of voice activity detection and of hearing with it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "sotto/vad.h"
#include "vad_support.h"

typedef struct file {
    const uint8_t *data;
    size_t size;
} file;

static sotto_status hear(sotto_vad_stream *s, sotto_error *err)
{
    static float pcm[20000];
    sotto_status status = sotto_vad_push(s, pcm, 20000, err);
    return status == SOTTO_OK ? sotto_vad_finish(s, err) : status;
}

static sotto_status run(void *user)
{
    const file *f = user;
    sotto_error err = {0};
    sotto_vad_model *model;
    sotto_vad_stream *stream = NULL;
    sotto_vad_options o;
    sotto_vad_options_default(&o);
    o.threshold = 0; /* all is speech, so that there is a span */
    sotto_status status = sotto_vad_model_open_memory(f->data, f->size, NULL, &model, &err);
    if (status == SOTTO_OK)
        status = sotto_vad_stream_create(model, &o, &stream, &err);
    if (status == SOTTO_OK)
        status = hear(stream, &err);
    if (status != SOTTO_OK && (err.code != status || !err.text[0]))
        status = SOTTO_E_INTERNAL;
    sotto_vad_stream_free(stream);
    sotto_vad_model_free(model);
    return status;
}

static void everything_is_done_or_not(void **state)
{
    (void)state;
    file f;
    uint8_t *data = vad_file(vad_header, VAD_DATA, &f.size);
    f.data = data;
    assert_true(alloc_fail_sweep(run, &f) > 20);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(everything_is_done_or_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
