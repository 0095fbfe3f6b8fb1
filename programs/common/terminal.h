/* terminal.h: what a person sees while the command works: progress, warnings, interruption. */
#ifndef SOTTO_PROGRAMS_TERMINAL_H
#define SOTTO_PROGRAMS_TERMINAL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sotto/base.h"

typedef struct cli_progress {
    bool bar;   /* a bar that is redrawn, for a terminal */
    bool lines; /* a line every five percent, for a log */
    const char *what;
    int shown; /* percent, or -1 */
    double drawn_at;
    bool on_screen;
} cli_progress;

/* A bar when standard error is a terminal, unless quiet; lines when asked for and it is none. */
cli_progress cli_progress_start(const char *what, bool quiet, bool lines);
/* total 0 or less: unknown. `unit` as "s" or "MB". */
void cli_progress_update(cli_progress *p, double done, double total, const char *unit);
/* Removes the bar, before other output and at the end. */
void cli_progress_clear(cli_progress *p);

/* Warnings to standard error as "sotto: text"; user is a cli_log. */
typedef struct cli_log {
    bool quiet, debug;
    cli_progress *progress; /* cleared before a line is written; may be NULL */
    char last[200];         /* the same again is not said twice */
} cli_log;
sotto_logger cli_logger(cli_log *log);
/* "sotto: ..." on standard error; errors are shown also when quiet. */
void cli_say(cli_progress *progress, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What the library says, which names its own fields: at the beginning of the text the option stands that was given. */
void cli_say_library(cli_progress *progress, const char *before, const char *text);

/* From now on an interrupt or termination signal is noted; a second one ends the process at once. */
void cli_signals_install(void);
/* While yes, the first one ends the process, too, with the exit code below: for what nobody can be asked to stop and leaves
 * nothing half done, as opening a device, whose kernels may be compiled for a minute. */
void cli_signals_end_at_once(bool yes);
bool cli_interrupted(void);
/* Takes note of SIGINT as done with, and waits for the next one; false (nothing changes) when another signal came. */
bool cli_signals_forget(void);
/* 128 + the signal's number. */
int cli_interrupted_exit(void);

/* Bytes to standard output at once, after what stdio holds back; a signal does not cut them. false: errno says why. */
bool cli_write_out(const char *text, size_t n);

double cli_now(void); /* seconds of a steady clock */
double cli_peak_rss_mb(void);

/* Names come into messages with any bytes: those that are no UTF-8 are replaced. */
void cli_vmessage(FILE *out, const char *fmt, va_list args);

#endif
