/* terminal.c: progress, messages and signals. Contract: terminal.h. */
#include "common/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/text.h"

/* A signal handler has no other place to leave its mark. */
static volatile sig_atomic_t signal_seen, ends_at_once;

static void note_signal(int number)
{
    if (ends_at_once)
        _exit(128 + number);
    signal_seen = number;
}

void cli_signals_end_at_once(bool yes)
{
    ends_at_once = yes;
}

void cli_signals_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = note_signal;
    sigemptyset(&action.sa_mask);
    action.sa_flags = (int)SA_RESETHAND; /* without SA_RESTART: a waiting read comes back */
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction before;
        /* what nohup or a shell in the background has asked to ignore stays ignored */
        if (sigaction(numbers[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

bool cli_signals_forget(void)
{
    if (signal_seen != 0 && signal_seen != SIGINT)
        return false;
    signal_seen = 0;
    cli_signals_install();
    return true;
}

bool cli_interrupted(void)
{
    return signal_seen != 0;
}

int cli_interrupted_exit(void)
{
    return 128 + (int)signal_seen;
}

bool cli_write_out(const char *text, size_t n)
{
    if (fflush(stdout) != 0)
        return false;
    while (n > 0) { /* stdio may lose what a signal interrupts */
        const ssize_t written = write(STDOUT_FILENO, text, n);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        n -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

double cli_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cli_peak_rss_mb(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss * 1024 / 1e6 : 0;
}

cli_progress cli_progress_start(const char *what, bool quiet, bool lines)
{
    const bool terminal = isatty(STDERR_FILENO);
    return (cli_progress){.bar = terminal && !quiet, .lines = lines && !terminal, .what = what, .shown = -1};
}

void cli_progress_update(cli_progress *p, double done, double total, const char *unit)
{
    int percent = total > 0 ? (int)(100 * done / total) : -1;
    percent = percent > 100 ? 100 : percent;
    if (p->lines && percent >= 0 && percent / 5 > p->shown / 5 - (p->shown < 0)) {
        fprintf(stderr, "sotto: %s: %d %%\n", p->what, percent);
        p->shown = percent;
    }
    if (!p->bar)
        return;
    const double now = cli_now();
    if (p->on_screen && now - p->drawn_at < 0.1)
        return;
    p->drawn_at = now;
    p->on_screen = true;
    if (percent < 0) {
        fprintf(stderr, "\r\033[K%s: %.1f %s", p->what, done, unit);
        return;
    }
    char bar[31];
    for (int i = 0; i < 30; i++)
        bar[i] = i * 100 < percent * 30 ? '#' : '.';
    bar[30] = 0;
    fprintf(stderr, "\r\033[K%s: [%s] %3d %% (%.1f of %.1f %s)", p->what, bar, percent, done, total, unit);
    fflush(stderr);
}

void cli_progress_clear(cli_progress *p)
{
    if (p && p->on_screen) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
        p->on_screen = false;
    }
}

void cli_vmessage(FILE *out, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    char *raw = n > 0 ? malloc((size_t)n + 1) : NULL;
    if (raw) {
        cli_text text = {0};
        vsnprintf(raw, (size_t)n + 1, fmt, args);
        cli_text_utf8(&text, raw, (size_t)n);
        if (text.data)
            fwrite(text.data, 1, text.size, out);
        cli_text_free(&text);
    }
    free(raw);
}

void cli_say(cli_progress *progress, const char *fmt, ...)
{
    va_list args;
    cli_progress_clear(progress);
    va_start(args, fmt);
    fprintf(stderr, "sotto: ");
    cli_vmessage(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);
}

void cli_say_library(cli_progress *progress, const char *before, const char *text)
{
    static const struct {
        const char *field, *option;
    } words[] = {{"gpu_layers", "--gpu-layers"},     {"main_device", "--main-device"}, {"kv_device", "--kv-device"},
                 {"device_split", "--device-split"}, {"no_offload", "--no-offload"},   {"split row", "--split row"},
                 {"device \"", "--device \""},       {"n_threads", "--threads"},       {"mlock", "--mlock"},
                 {"compute type \"", "--compute \""}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const size_t n = strlen(words[i].field);
        if (strncmp(text, words[i].field, n) == 0) {
            cli_say(progress, "%s%s%s", before, words[i].option, text + n);
            return;
        }
    }
    cli_say(progress, "%s%s", before, text);
}

static void log_write(void *user, sotto_log_level level, const char *text)
{
    cli_log *log = user;
    if (log->quiet || (level < SOTTO_LOG_INFO && !log->debug))
        return;
    if (strncmp(log->last, text, sizeof log->last - 1) == 0)
        return;
    snprintf(log->last, sizeof log->last, "%s", text);
    cli_say_library(log->progress, level == SOTTO_LOG_WARNING ? "warning: " : "", text);
}

sotto_logger cli_logger(cli_log *log)
{
    return (sotto_logger){.write = log_write, .user = log};
}
