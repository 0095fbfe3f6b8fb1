/* test_opencl.c: the model `base` writes on the first OpenCL device what it writes on the CPU, greedily and with a beam.
 * On a processor that plays the device this takes a minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "golden/golden_support.h"
#include "sotto/backend.h"
#include "sotto/whisper.h"

static sotto_whisper_model *open_on(const char *device)
{
    sotto_whisper_model_options o;
    sotto_whisper_model_options_default(&o);
    o.backend.device = device;
    o.compute = "f32";
    sotto_error err;
    sotto_whisper_model *model;
    if (sotto_whisper_model_open(model_path("base"), &o, &model, &err))
        fail_msg("%s", err.text);
    return model;
}

/* Times and text of all segments. */
static void text_of(const sotto_whisper_model *model, const recording *r, const char *language, int beam, char out[4096])
{
    sotto_error err;
    sotto_whisper_session *s;
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    o.beam_size = beam;
    o.language = language;
    if (sotto_whisper_session_create(model, NULL, &s, &err) || sotto_whisper_transcribe(s, r->pcm, r->n, &o, &err))
        fail_msg("%s", err.text);
    size_t n = 0;
    out[0] = 0;
    for (int64_t k = 0; k < sotto_whisper_segment_count(s) && n < 4095; k++) {
        const sotto_whisper_segment *g = sotto_whisper_segment_get(s, k);
        n += (size_t)snprintf(out + n, 4096 - n, "[%.2f %.2f]%s\n", g->start, g->end, g->text);
    }
    sotto_whisper_session_free(s);
}

static void same_text_as_on_the_cpu(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int beam;
    } cases[] = {{"librivox-0870", 1}, {"librivox-0880", 5}, {"librivox-0890", 1}};
    sotto_whisper_model *device = open_on("opencl:0"), *cpu = open_on("cpu");
    int done = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        golden g = golden_open("base", cases[i].name);
        recording r;
        if (recording_open(golden_at(g.json, "parts"), 0, &r)) {
            char have[4096], want[4096];
            const char *const language = json_string_value(golden_at(g.json, "language"));
            text_of(device, &r, language, cases[i].beam, have);
            text_of(cpu, &r, language, cases[i].beam, want);
            print_message("%s, beam %d: %s", cases[i].name, cases[i].beam, have);
            assert_true(strlen(want) > 20);
            assert_string_equal(have, want);
            recording_close(&r);
            done++;
        }
        golden_close(&g);
    }
    sotto_whisper_model_free(device);
    sotto_whisper_model_free(cpu);
    if (done == 0)
        skip();
}

int main(void)
{
    sotto_device_info info;
    bool found = false;
    for (int i = 0; i < sotto_device_count(); i++)
        found = found || (sotto_device_get(i, &info, NULL) == SOTTO_OK && strcmp(info.id, "opencl:0") == 0);
    if (!found || !model_path("base")) {
        printf("no OpenCL device, or no model, here\n");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_text_as_on_the_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
