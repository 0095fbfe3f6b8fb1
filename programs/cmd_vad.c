/* cmd_vad.c: where in recordings somebody speaks. */
#include <stdlib.h>
#include <string.h>

#include "audio/audio.h"
#include "commands.h"
#include "common/device.h"
#include "common/outfile.h"
#include "common/terminal.h"
#include "common/vad_options.h"
#include "common/writers.h"

enum { BLOCK = 16000 };

typedef struct vad_args {
    cli_vad_args vad;
    const char *model_dir, *cpu, *raw, *format;
    bool probabilities, quiet;
} vad_args;

#define AT(field) offsetof(vad_args, field)

static const cli_option options[] = {
    CLI_VAD_OPTIONS(AT(vad)),
    {"model-dir", NULL, CLI_TEXT, AT(model_dir), "DIR", NULL, 0, 0, NULL, "look for the model's name here first"},
    {"file", NULL, CLI_INPUT, 0, "FILE", NULL, 0, 0, NULL, "one more input"},
    {"raw", NULL, CLI_TEXT, AT(raw), "ENC:RATE:CH", NULL, 0, 0, NULL,
     "inputs are headerless PCM, as for sotto transcribe"},
    {"format", "-f", CLI_CHOICE, AT(format), "FORMAT", "txt", 0, 0, "txt json labels",
     "labels can be imported by Audacity: start and end in seconds"},
    {"probabilities", NULL, CLI_FLAG, AT(probabilities), NULL, NULL, 0, 0, NULL,
     "in json also how likely speech is in each 32 ms"},
    CLI_CPU_OPTION(AT(cpu)),
    {"quiet", "-q -np --no-prints", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {0}};

static sotto_status hear(sotto_vad_stream *stream, st_audio *audio, int64_t *n_samples, sotto_error *err)
{
    static float block[BLOCK];
    sotto_status status = sotto_vad_reset(stream, NULL, err);
    size_t n = 1;
    *n_samples = 0;
    while (status == SOTTO_OK && n) {
        status = st_audio_read(audio, block, BLOCK, &n, err);
        if (status == SOTTO_OK)
            status = sotto_vad_push(stream, block, (int64_t)n, err);
        *n_samples += (int64_t)n;
        if (cli_interrupted())
            return SOTTO_E_ABORTED;
    }
    return status == SOTTO_OK ? sotto_vad_finish(stream, err) : status;
}

static void put_json(cli_text *t, const vad_args *a, const char *input, double duration, const sotto_vad_stream *stream)
{
    cli_text_puts(t, "{\"audio\": ");
    cli_text_json(t, input, strlen(input));
    cli_text_printf(t, ", \"duration\": %.4f, \"speech\": [", duration);
    sotto_vad_span s;
    for (int64_t i = 0; sotto_vad_span_get(stream, i, &s) == SOTTO_OK; i++)
        cli_text_printf(t, "%s{\"start\": %.4f, \"end\": %.4f}", i ? ", " : "", s.start, s.end);
    cli_text_puts(t, "]");
    if (a->probabilities) {
        int64_t n;
        const float *p = sotto_vad_probabilities(stream, &n);
        cli_text_puts(t, ", \"probabilities\": [");
        for (int64_t i = 0; i < n; i++)
            cli_text_printf(t, "%s%.4f", i ? ", " : "", (double)p[i]);
        cli_text_puts(t, "]");
    }
    cli_text_puts(t, "}\n");
}

static void put_lines(cli_text *t, bool labels, const sotto_vad_stream *stream)
{
    sotto_vad_span s;
    for (int64_t i = 0; sotto_vad_span_get(stream, i, &s) == SOTTO_OK; i++)
        if (labels) {
            cli_text_printf(t, "%.4f\t%.4f\tspeech\n", s.start, s.end);
        } else {
            cli_text_puts(t, "[");
            cli_text_clock(t, s.start, '.', true);
            cli_text_puts(t, " --> ");
            cli_text_clock(t, s.end, '.', true);
            cli_text_puts(t, "]\n");
        }
}

static bool do_input(const vad_args *a, const char *input, bool several, sotto_vad_stream *stream)
{
    sotto_error err = {0};
    st_audio *audio = NULL;
    cli_log log = {.quiet = a->quiet};
    const sotto_logger logger = cli_logger(&log);
    int64_t n = 0;
    sotto_status status = st_audio_open(input, a->raw, &logger, &audio, &err);
    if (status == SOTTO_OK)
        status = hear(stream, audio, &n, &err);
    st_audio_close(audio);
    cli_text t = {0};
    if (status == SOTTO_OK) {
        if (strcmp(a->format, "json") == 0)
            put_json(&t, a, input, (double)n / SOTTO_VAD_SAMPLE_RATE, stream);
        else
            put_lines(&t, strcmp(a->format, "labels") == 0, stream);
        if (several && !a->quiet && strcmp(a->format, "json") != 0)
            cli_say(NULL, "%s", input);
        if (t.size)
            fwrite(t.data, 1, t.size, stdout);
        fflush(stdout);
    }
    if (t.failed)
        status = cli_fail(&err, SOTTO_E_MEMORY, "%s: out of memory", input) ? SOTTO_OK : SOTTO_E_MEMORY;
    cli_text_free(&t);
    if (status != SOTTO_OK && !cli_interrupted())
        cli_say(NULL, "%s", err.text);
    return status == SOTTO_OK;
}

static int run(void *args, const cli_list *inputs)
{
    const vad_args *a = args;
    sotto_error err;
    if (a->raw && st_audio_raw_check(a->raw, &err) != SOTTO_OK)
        return cli_usage(&cmd_vad, "--raw: %s", err.text);
    sotto_vad_options o;
    cli_vad_fill(&a->vad, &o);
    const sotto_backend_options backend = {.cpu_level = a->cpu};
    sotto_vad_model *model = NULL;
    sotto_vad_stream *stream = NULL;
    if (!cli_vad_open(&a->vad, a->model_dir, &backend, &model, &err) ||
        sotto_vad_stream_create(model, &o, &stream, &err) != SOTTO_OK) {
        cli_say(NULL, "%s", err.text);
        sotto_vad_model_free(model);
        return CLI_FAILED;
    }
    cli_signals_install();
    bool ok = true;
    for (size_t i = 0; i < inputs->count && !cli_interrupted(); i++)
        ok &= do_input(a, inputs->item[i], inputs->count > 1, stream);
    sotto_vad_stream_free(stream);
    sotto_vad_model_free(model);
    return cli_interrupted() ? cli_interrupted_exit() : ok ? CLI_OK : CLI_FAILED;
}

const cli_command cmd_vad = {
    .name = "vad",
    .summary = "print where somebody speaks",
    .inputs = "FILE...",
    .min_inputs = 1,
    .max_inputs = -1,
    .options = options,
    .args_size = sizeof(vad_args),
    .run = run,
    .details = "FILE is a recording in any format that the FFmpeg libraries read, or - for standard input. A recording "
               "without speech gives no line; in json every recording is one line.",
    .examples = "sotto vad talk.mp3\tprint spans of speech\n"
                "sotto vad -f labels talk.mp3 > talk.txt\tlabels for Audacity\n"};
