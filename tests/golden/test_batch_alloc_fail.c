/* Memory that runs out at every place of a session that decodes chunks together, on a small seeded model: from its making over
 * the network for several windows, threads and chunks to the last segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "sotto/sotto.h"

#define TINY SOTTO_BUILD_DIR "/tiny/tiny-multilingual-ggml-f16.bin"

enum { RATE = SOTTO_WHISPER_SAMPLE_RATE, N = 9 * RATE / 2 };

static float pcm[N];

/* Windows of two seconds, so that there are three chunks for two slots. */
static sotto_status hear(sotto_whisper_session *s, sotto_error *err)
{
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    o.language = "auto";
    o.audio_ctx = 100;
    o.batch = 2;
    o.beam_size = 2;
    o.max_tokens = 40;
    o.temperature_inc = 0;
    return sotto_whisper_transcribe(s, pcm, N, &o, err);
}

static sotto_status use(void *user)
{
    const sotto_whisper_model *model = user;
    sotto_whisper_session_options o;
    sotto_whisper_session_options_default(&o);
    o.max_sequences = 2;
    sotto_whisper_session *s;
    sotto_error err = {0};
    sotto_status status = sotto_whisper_session_create(model, &o, &s, &err);
    if (status != SOTTO_OK && s)
        return SOTTO_E_INTERNAL;
    if (status == SOTTO_OK)
        status = hear(s, &err);
    if (status == SOTTO_OK && sotto_whisper_segment_count(s) < 3)
        status = SOTTO_E_INTERNAL;
    if (status != SOTTO_OK && (err.code != status || !err.text[0]))
        status = SOTTO_E_INTERNAL;
    sotto_whisper_session_free(s);
    return status;
}

static void a_batch_is_heard_or_not(void **state)
{
    (void)state;
    sotto_error err;
    sotto_whisper_model_options o;
    sotto_whisper_model_options_default(&o);
    o.backend.device = "cpu";
    o.backend.n_threads = 1;
    sotto_whisper_model *model;
    FILE *f = fopen(TINY, "rb");
    if (!f)
        skip();
    fclose(f);
    uint32_t seed = 3;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        pcm[i] = 0.3f * ((float)(seed >> 8) / 8388608.0f - 1) * (float)(i / 4000 % 4);
    }
    if (sotto_whisper_model_open(TINY, &o, &model, &err))
        fail_msg("%s", err.text);
    assert_true(alloc_fail_sweep(use, model) > 100);
    sotto_whisper_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_batch_is_heard_or_not)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
