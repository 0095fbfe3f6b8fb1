/* cmd_transcribe.c: recordings to text. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audio/audio.h"
#include "commands.h"
#include "common/device.h"
#include "common/llm.h"
#include "common/models.h"
#include "common/outfile.h"
#include "common/sampling.h"
#include "common/terminal.h"
#include "common/trace.h"
#include "common/writers.h"
#include "transcribe_options.h"

enum { BLOCK = 16000, MAX_FORMATS = 16, LOOKAHEAD_S = 300 };

typedef struct job {
    const transcribe_args *args;
    const cli_list *inputs;
    const cli_writer *formats[MAX_FORMATS];
    size_t n_formats;
    bool live;    /* lines on stdout while decoding */
    char **paths; /* [inputs][formats], NULL = stdout */
    sotto_whisper_model *model;
    sotto_vad_model *vad; /* NULL: not asked for */
    sotto_whisper_session *session;
    sotto_whisper_options options;
    sotto_whisper_model_info info;
    cli_progress progress;
    cli_log log;
    double total_s; /* of the recording that is being heard */
    bool failed;
} job;

static int add_format(const cli_command *command, job *j, const char *name, size_t n)
{
    const cli_writer *w = cli_writer_find(name, n);
    if (!w)
        return cli_usage(command, "--format: \"%.*s\" is not one of: txt srt vtt lrc csv tsv json json-full all",
                         (int)n, name);
    for (size_t i = 0; i < j->n_formats; i++)
        if (j->formats[i] == w)
            return CLI_OK;
    j->formats[j->n_formats++] = w;
    return CLI_OK;
}

static int read_formats(const cli_command *command, job *j)
{
    static const char all[] = "txt,vtt,srt,tsv,json";
    for (size_t i = 0; i < j->args->formats.count; i++) {
        const char *p = j->args->formats.item[i];
        if (strcmp(p, "all") == 0)
            p = all;
        for (;; p++) {
            const size_t n = strcspn(p, ",");
            const int status = add_format(command, j, p, n);
            if (status != CLI_OK)
                return status;
            p += n;
            if (!*p)
                break;
        }
    }
    return CLI_OK;
}

/* "DIR/stem.ext", or NULL. */
static char *output_path(const job *j, const char *input, const cli_writer *w)
{
    char *stem = j->args->output_file      ? cli_path_join(NULL, j->args->output_file)
                 : strcmp(input, "-") == 0 ? cli_path_join(NULL, "stdin")
                                           : cli_path_stem(input);
    char *name = stem ? malloc(strlen(stem) + strlen(w->extension) + 2) : NULL;
    char *path = NULL;
    if (name) {
        sprintf(name, "%s.%s", stem, w->extension);
        path = cli_path_join(name[0] == '/' ? NULL : j->args->output_dir, name);
    }
    free(stem);
    free(name);
    return path;
}

/* Where everything goes, and that no output falls on another one or on an input. */
static int plan_outputs(const cli_command *command, job *j)
{
    const transcribe_args *a = j->args;
    const char *where = a->output_file ? a->output_file : a->output_dir;
    const bool to_stdout = !where || strcmp(where, "-") == 0;
    if (where && !*where)
        return cli_usage(command, "--output-%s is empty: name a %s", a->output_file ? "file" : "dir",
                         a->output_file ? "file" : "folder");
    if (a->output_file && j->inputs->count > 1)
        return cli_usage(command, "--output-file names the output of one input, but there are %zu: use --output-dir",
                         j->inputs->count);
    if (to_stdout && j->n_formats > 1)
        return cli_usage(command, "several formats need --output-dir");
    if (to_stdout && j->n_formats == 1 && j->inputs->count > 1)
        return cli_usage(command, "several inputs with --format need --output-dir");
    if (!to_stdout && j->n_formats == 0)
        j->formats[j->n_formats++] = &cli_writer_txt;
    j->live = to_stdout && j->n_formats == 0;
    for (size_t i = 0; i < j->inputs->count; i++)
        if (!*j->inputs->item[i])
            return cli_usage(command, "the name of an input is empty");
    const size_t n = j->inputs->count * j->n_formats;
    j->paths = calloc(n + 1, sizeof *j->paths);
    if (!j->paths)
        return cli_usage(command, "out of memory");
    if (to_stdout)
        return CLI_OK;
    for (size_t i = 0; i < n; i++) {
        const char *input = j->inputs->item[i / j->n_formats];
        j->paths[i] = output_path(j, input, j->formats[i % j->n_formats]);
        if (!j->paths[i])
            return cli_usage(command, "out of memory");
        for (size_t k = 0; k < i; k++)
            if (strcmp(j->paths[i], j->paths[k]) == 0)
                return cli_usage(command, "%s as %s and %s as %s would both be written to %s",
                                 j->inputs->item[k / j->n_formats], j->formats[k % j->n_formats]->name, input,
                                 j->formats[i % j->n_formats]->name, j->paths[i]);
        for (size_t k = 0; k < j->inputs->count; k++)
            if (strcmp(j->paths[i], j->inputs->item[k]) == 0)
                return cli_usage(command, "%s would be overwritten by its own transcript", j->inputs->item[k]);
    }
    return CLI_OK;
}

static void print_line(const job *j, const sotto_whisper_segment *s)
{
    cli_text line = {0};
    if (!j->args->no_timestamps) {
        cli_text_puts(&line, "[");
        cli_text_clock(&line, s->start, '.', true);
        cli_text_puts(&line, " --> ");
        cli_text_clock(&line, s->end, '.', true);
        cli_text_puts(&line, "]  ");
    }
    cli_text_segment(&line, s);
    cli_text_puts(&line, "\n");
    if (line.data)
        fwrite(line.data, 1, line.size, stdout);
    fflush(stdout);
    cli_text_free(&line);
}

static void on_segment(void *user, const sotto_whisper_segment *s)
{
    job *j = user;
    if (j->live) {
        cli_progress_clear(&j->progress);
        print_line(j, s);
    }
}

static void on_progress(void *user, double done, double total)
{
    job *j = user;
    cli_progress_update(&j->progress, done, total > 0 ? total : j->total_s, "s");
}

static bool on_abort(void *user)
{
    (void)user;
    return cli_interrupted();
}

static bool write_outputs(job *j, size_t input, sotto_error *err)
{
    const size_t n = (size_t)sotto_whisper_segment_count(j->session);
    const sotto_whisper_segment **segments = calloc(n + 1, sizeof *segments);
    if (!segments)
        return cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++)
        segments[i] = sotto_whisper_segment_get(j->session, (int64_t)i);
    sotto_whisper_timings timings;
    sotto_whisper_get_timings(j->session, &timings);
    float probability = 0;
    const char *language = sotto_whisper_language(j->session, &probability);
    const cli_transcript t = {.audio = j->inputs->item[input],
                              .model = j->args->model,
                              .model_size = j->info.size,
                              .model_format = j->info.format,
                              .task = j->options.task == SOTTO_TRANSLATE ? "translate" : "transcribe",
                              .language = language,
                              .language_probability = (double)probability,
                              .duration = sotto_whisper_duration(j->session),
                              .segments = segments,
                              .n_segments = n,
                              .timings = &timings};
    bool ok = true;
    for (size_t f = 0; f < j->n_formats && ok; f++) {
        const char *path = j->paths[input * j->n_formats + f];
        cli_text out = {0};
        j->formats[f]->write(&out, &t);
        if (out.failed)
            ok = cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        else if (path)
            ok = cli_write_file(path, out.data ? out.data : "", out.size, err);
        else if (out.size && fwrite(out.data, 1, out.size, stdout) != out.size)
            ok = cli_fail(err, SOTTO_E_IO, "cannot write to standard output: %s", strerror(errno));
        cli_text_free(&out);
        if (ok && path && !j->args->quiet)
            cli_say(&j->progress, "wrote %s", path);
    }
    free(segments);
    return ok;
}

/* First window, from the offset. */
static sotto_status detect(job *j, st_audio *audio, sotto_error *err)
{
    const size_t want = 30 * SOTTO_WHISPER_SAMPLE_RATE;
    uint64_t skip = (uint64_t)(j->options.offset * SOTTO_WHISPER_SAMPLE_RATE);
    float *pcm = malloc((want + BLOCK) * sizeof *pcm), *p = calloc((size_t)j->info.n_languages + 1, sizeof *p);
    size_t have = 0, n = 1;
    sotto_status status = pcm && p ? SOTTO_OK : SOTTO_E_MEMORY;
    while (status == SOTTO_OK && have < want && n) {
        status = st_audio_read(audio, pcm + have, BLOCK, &n, err);
        const size_t drop = skip < n ? (size_t)skip : n;
        memmove(pcm + have, pcm + have + drop, (n - drop) * sizeof *pcm);
        skip -= drop;
        have += n - drop;
    }
    int best = 0;
    if (status == SOTTO_OK && have == 0) {
        status = SOTTO_E_FORMAT;
        cli_fail(err, status, "no sound from %.3f s on, so no language can be told", j->options.offset);
    }
    if (status == SOTTO_OK)
        status = sotto_whisper_detect_language(j->session, pcm, (int64_t)(have < want ? have : want), p, &best, err);
    if (status == SOTTO_OK)
        printf("%s %.4f %s\n", sotto_language_code(best), (double)p[best], sotto_language_name(best));
    free(pcm);
    free(p);
    return status;
}

static sotto_status hear(job *j, st_audio *audio, sotto_error *err)
{
    /* A recording that is there as a whole is normalised as the original does, with its loudest frame known before. */
    sotto_whisper_set_lookahead(j->session, st_audio_is_file(audio) ? LOOKAHEAD_S : 0);
    const bool quiet = j->log.quiet;
    j->log.quiet = true; /* what is to be said about the options was said when the model was loaded */
    sotto_status status = sotto_whisper_begin(j->session, &j->options, err);
    j->log.quiet = quiet;
    float *block = malloc(BLOCK * sizeof *block);
    if (!block) {
        cli_fail(err, SOTTO_E_MEMORY, "out of memory");
        return SOTTO_E_MEMORY;
    }
    size_t n = 1;
    while (status == SOTTO_OK && n) {
        status = st_audio_read(audio, block, BLOCK, &n, err);
        if (status == SOTTO_OK && n)
            status = sotto_whisper_feed(j->session, block, (int64_t)n, err);
        if (cli_interrupted())
            status = SOTTO_E_ABORTED;
    }
    free(block);
    return status == SOTTO_OK ? sotto_whisper_finish(j->session, err) : status;
}

static void print_timings(const job *j)
{
    sotto_whisper_timings t;
    sotto_whisper_get_timings(j->session, &t);
    const double mb = 1e-6;
    fprintf(
        stderr, "time   load %.3f s, mel %.3f s, encoder %.3f s in %s, prompt %.3f s in %s, decoder %.3f s in %s, total %.3f s, %s\n",
        t.load_s, t.mel_s, t.encode_s, cli_count(t.n_encode, "window").text, t.prompt_s,
        cli_count(t.n_prompt, "pass").text, t.decode_s, cli_count(t.n_decode, "step").text, t.total_s,
        cli_count(t.n_fallback, "fallback").text);
    fprintf(stderr,
            "memory weights %.1f MB, self cache %.1f MB, cross cache %.1f MB, compute: mel %.1f MB, encoder %.1f MB, "
            "decoder "
            "%.1f MB; peak of the process %.1f MB\n",
            (double)t.weight_bytes * mb, (double)t.self_cache_bytes * mb, (double)t.cross_cache_bytes * mb,
            (double)t.mel_bytes * mb, (double)t.encode_bytes * mb, (double)t.decode_bytes * mb, cli_peak_rss_mb());
}

/* Whether a sentence holds the input's name; bytes of it that are no UTF-8 are '?' there. */
static bool names_input(const char *text, const char *input)
{
    for (; *text; text++) {
        size_t i = 0;
        while (input[i] && (text[i] == input[i] || text[i] == '?'))
            i++;
        if (!input[i])
            return true;
    }
    return false;
}

static void do_input(job *j, size_t i)
{
    const char *input = j->inputs->item[i];
    sotto_error err = {0};
    st_audio *audio = NULL;
    j->log.last[0] = 0;
    const sotto_logger logger = cli_logger(&j->log);
    sotto_status status = st_audio_open(input, j->args->raw, &logger, &audio, &err);
    if (status == SOTTO_OK) {
        j->total_s = st_audio_duration(audio);
        if (j->inputs->count > 1 && j->live) {
            cli_progress_clear(&j->progress);
            if (!j->args->quiet)
                cli_say(&j->progress, "%s", input);
        }
        if (j->args->detect_language) {
            status = detect(j, audio, &err);
        } else {
            status = hear(j, audio, &err);
            if (status == SOTTO_OK)
                cli_progress_update(&j->progress, 1, 1, "s");
            cli_progress_clear(&j->progress);
            if (status == SOTTO_OK && !write_outputs(j, i, &err))
                status = err.code;
            if (j->args->timings)
                print_timings(j);
        }
    }
    st_audio_close(audio);
    if (status != SOTTO_OK && !cli_interrupted()) {
        /* Errors of the audio and of files name the file already. */
        const bool named = strcmp(input, "-") == 0 || names_input(err.text, input);
        cli_say(&j->progress, "%s%s%s", named ? "" : input, named ? "" : ": ", err.text);
        j->failed = true;
    }
}

/* Who asked for a batch may not know what it has to do with a model of speech that is not there. */
static sotto_status explain_vad(const job *j, sotto_error *err)
{
    if (err->code == SOTTO_E_NOT_FOUND && !j->args->vad)
        cli_fail(err, SOTTO_E_NOT_FOUND,
                 "--batch cuts recordings in the pauses that a model of speech finds: fetch it with \"sotto get "
                 "silero-vad\", "
                 "or give --no-vad to cut where it is most silent");
    return err->code;
}

/* Who left the choice to the program is told when it is not the CPU alone. */
static void tell_device(const job *j)
{
    sotto_whisper_memory m;
    if (!j->args->quiet && !j->args->no_gpu && strcmp(j->args->devices.device, "auto") == 0 &&
        sotto_whisper_get_memory(j->session, 1, &m, NULL) == SOTTO_OK &&
        sotto_whisper_get_memory(j->session, 0, &m, NULL) == SOTTO_OK)
        cli_say(NULL, "computing on %s", m.device);
}

static int load(job *j)
{
    sotto_error err = {0};
    char *path = cli_model_path(j->args->model, j->args->model_dir, &err);
    sotto_whisper_model_options mo;
    sotto_whisper_session_options so;
    sotto_whisper_model_options_default(&mo);
    sotto_whisper_session_options_default(&so);
    cli_device_fill(&j->args->devices, &mo.backend);
    if (j->args->no_gpu)
        mo.backend.device = "cpu";
    mo.measure_only = j->args->devices.memory;
    mo.no_mmap = j->args->no_mmap;
    mo.mlock = j->args->mlock;
    mo.backend.n_threads = (int)j->args->threads;
    mo.backend.cpu_level = j->args->cpu;
    mo.compute = j->args->compute;
    mo.backend.logger = cli_logger(&j->log);
    const int sequences = j->options.beam_size > j->options.best_of ? j->options.beam_size : j->options.best_of;
    so.max_sequences = sequences;
    so.cache_k = j->args->cache_k;
    so.cache_v = j->args->cache_v;
    sotto_status status = path ? sotto_whisper_model_open(path, &mo, &j->model, &err) : err.code;
    if (status == SOTTO_OK) {
        sotto_whisper_model_get_info(j->model, &j->info);
        status = sotto_whisper_session_create(j->model, &so, &j->session, &err);
    }
    if (status == SOTTO_OK && (j->args->vad || (j->options.batch != 1 && !j->args->no_vad))) {
        const sotto_backend_options backend = {.cpu_level = mo.backend.cpu_level, .logger = mo.backend.logger};
        if (!cli_vad_open(&j->args->vad_args, j->args->model_dir, &backend, &j->vad, &err))
            status = explain_vad(j, &err);
        j->options.vad = j->vad;
    }
    if (status == SOTTO_OK) /* options that this model cannot take, before any recording is opened */
        status = sotto_whisper_begin(j->session, &j->options, &err);
    free(path);
    if (status == SOTTO_OK) {
        tell_device(j);
        return CLI_OK;
    }
    cli_say_library(NULL, "", err.text);
    return status == SOTTO_E_ARGUMENT ? CLI_USAGE : CLI_FAILED;
}

static bool traces(const job *j, const char *what)
{
    return j->args->trace && strcmp(j->args->trace, what) == 0;
}

/* --trace dot: the graphs instead of any hearing. */
static bool draws(const job *j)
{
    return traces(j, "dot");
}

static void put_text(void *user, const char *text, size_t n)
{
    fwrite(text, 1, n, user);
}

/* The graphs for Graphviz, or what devices do of them. */
static int draw(const job *j)
{
    static const char *const graphs[] = {"mel", "encode", "decode"};
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        sotto_error err;
        const sotto_status status = draws(j) ? sotto_whisper_write_dot(j->session, graphs[i], put_text, stdout, &err)
                                             : sotto_whisper_describe(j->session, graphs[i], put_text, stderr, &err);
        if (status != SOTTO_OK) {
            cli_say(NULL, "%s", err.text);
            return CLI_FAILED;
        }
    }
    return CLI_OK;
}

static int print_memory(const job *j)
{
    sotto_error err;
    if (cli_print_memory(j->session, &err) == SOTTO_OK)
        return CLI_OK;
    cli_say(NULL, "%s", err.text);
    return CLI_FAILED;
}

/* --grammar: a file, or the grammar itself. */
static bool read_grammar(const transcribe_args *a, sotto_grammar **out, sotto_error *err)
{
    cli_text text = {0};
    const bool is_file = !cli_is_grammar_text(a->grammar);
    *out = NULL;
    if (is_file && !cli_read_file(a->grammar, &text, err)) {
        cli_text_free(&text);
        return false;
    }
    if (!is_file)
        cli_text_puts(&text, a->grammar);
    const sotto_status status =
        text.failed ? SOTTO_E_MEMORY
                    : sotto_grammar_create(text.data ? text.data : "", text.size, a->grammar_rule, out, err);
    if (text.failed)
        cli_fail(err, SOTTO_E_MEMORY, "--grammar: out of memory");
    cli_text_free(&text);
    return status == SOTTO_OK;
}

static int check(const cli_command *command, job *j, int32_t **suppress, sotto_grammar **grammar)
{
    int status = transcribe_fill(command, j->args, &j->options, suppress);
    sotto_error err;
    if (status == CLI_OK && j->args->raw && st_audio_raw_check(j->args->raw, &err) != SOTTO_OK)
        status = cli_usage(command, "--raw: %s", err.text);
    if (status == CLI_OK && j->inputs->count == 0 && !draws(j) && !j->args->devices.memory)
        status = cli_usage(command, "%s is missing", command->inputs);
    if (status == CLI_OK && j->args->no_gpu && strcmp(j->args->devices.device, "auto") != 0)
        status = cli_usage(command, "--no-gpu and --device exclude each other");
    if (status == CLI_OK && !cli_device_known(j->args->devices.device, &err))
        status = cli_usage(command, "%s", err.text);
    if (status == CLI_OK)
        status = read_formats(command, j);
    if (status == CLI_OK)
        status = plan_outputs(command, j);
    if (status == CLI_OK && j->args->output_dir && strcmp(j->args->output_dir, "-") != 0 &&
        !cli_make_folders(j->args->output_dir, &err)) {
        cli_say(NULL, "%s", err.text);
        status = CLI_FAILED;
    }
    if (status == CLI_OK && j->args->grammar && !read_grammar(j->args, grammar, &err)) {
        cli_say(NULL, "%s", err.text);
        status = CLI_FAILED;
    }
    j->options.grammar = *grammar;
    return status;
}

static int run(void *args, const cli_list *inputs)
{
    const cli_command *command = &cmd_transcribe;
    job j = {.args = args, .inputs = inputs};
    int32_t *suppress = NULL;
    sotto_grammar *grammar = NULL;
    int status = check(command, &j, &suppress, &grammar);
    if (status == CLI_OK) {
        j.log = (cli_log){.quiet = j.args->quiet, .debug = j.args->debug, .progress = &j.progress};
        j.progress = cli_progress_start("transcribing", j.args->quiet, j.args->print_progress);
        j.options.on_segment = on_segment;
        j.options.on_progress = on_progress;
        j.options.abort = on_abort;
        j.options.user = &j;
        j.options.logger = cli_logger(&j.log);
        if (j.args->no_vad && j.options.batch == 1 && !j.args->quiet)
            cli_say(NULL, "warning: --no-vad has no effect without --batch: all is heard, one window after another");
        if (j.args->trace) {
            j.options.trace = traces(&j, "ops") ? cli_trace_node : NULL;
            j.options.trace_split = traces(&j, "sched") ? cli_trace_split : NULL;
            j.options.trace_user = &j.progress;
        }
        cli_signals_end_at_once(true);
        cli_signals_install();
        status = load(&j);
        cli_signals_end_at_once(false);
    }
    const bool silent = draws(&j) || j.args->devices.memory; /* nothing is heard */
    if (status == CLI_OK && (draws(&j) || traces(&j, "sched")))
        status = draw(&j);
    if (status == CLI_OK && j.args->devices.memory)
        status = print_memory(&j);
    for (size_t i = 0; status == CLI_OK && !silent && i < inputs->count && !cli_interrupted(); i++)
        do_input(&j, i);
    cli_progress_clear(&j.progress);
    sotto_whisper_session_free(j.session);
    sotto_whisper_model_free(j.model);
    sotto_vad_model_free(j.vad);
    if (j.paths)
        for (size_t i = 0; i < inputs->count * j.n_formats; i++)
            free(j.paths[i]);
    free(j.paths);
    free(suppress);
    sotto_grammar_free(grammar);
    if (cli_interrupted())
        return cli_interrupted_exit();
    return status != CLI_OK ? status : j.failed ? CLI_FAILED : CLI_OK;
}

const cli_command cmd_transcribe = {
    .name = "transcribe",
    .summary = "turn speech into text",
    .inputs = "FILE...",
    .min_inputs = 0,
    .max_inputs = -1,
    .options = transcribe_options,
    .args_size = sizeof(transcribe_args),
    .run = run,
    .details = "FILE is a recording in any format that the FFmpeg libraries read, or - for standard input. Without "
               "--format and "
               "--output-dir the text goes to standard output while it is decoded. An input that fails is reported, "
               "the others are "
               "still done, and the exit code is 1; wrong arguments give 2.",
    .examples =
        "sotto transcribe talk.mp3\tprint the text with times\n"
        "sotto transcribe -f srt,vtt -o subtitles *.mp4\twrite subtitle files\n"
        "sotto transcribe -m small -l de --no-timestamps - < rede.ogg\tGerman from a pipe, plain text\n"
        "arecord -q -f S16_LE -r 16000 -t raw | sotto transcribe --raw s16le:16000:1 -\tlisten to a microphone\n"};
