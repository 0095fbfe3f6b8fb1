/* writers.c: the table of output formats and what they share. Contract: writers.h. */
#include "common/writers.h"

#include <math.h>
#include <string.h>

const cli_writer *const cli_writers[] = {&cli_writer_txt,  &cli_writer_srt,       &cli_writer_vtt,
                                         &cli_writer_lrc,  &cli_writer_csv,       &cli_writer_tsv,
                                         &cli_writer_json, &cli_writer_json_full, NULL};

const cli_writer *cli_writer_find(const char *name, size_t n)
{
    for (const cli_writer *const *w = cli_writers; *w; w++)
        if (strlen((*w)->name) == n && memcmp((*w)->name, name, n) == 0)
            return *w;
    return NULL;
}

int64_t cli_milliseconds(double seconds)
{
    if (!(seconds > 0) || seconds > 1e12)
        return 0;
    return llrint(seconds * 1000); /* half to even, as Python's round() */
}

void cli_text_clock(cli_text *t, double seconds, char point, bool hours)
{
    const long long ms = cli_milliseconds(seconds);
    if (hours || ms >= 3600000)
        cli_text_printf(t, "%02lld:", ms / 3600000);
    cli_text_printf(t, "%02lld:%02lld%c%03lld", ms / 60000 % 60, ms / 1000 % 60, point, ms % 1000);
}

void cli_text_segment(cli_text *t, const sotto_whisper_segment *s)
{
    cli_text_line(t, s->text, s->n_text);
}

void cli_text_cue(cli_text *t, const sotto_whisper_segment *s, const char *arrow)
{
    cli_text line = {0};
    cli_text_segment(&line, s);
    const char *p = line.data ? line.data : "";
    for (const char *hit; (hit = strstr(p, "-->")); p = hit + 3) {
        cli_text_add(t, p, (size_t)(hit - p));
        cli_text_puts(t, arrow);
    }
    cli_text_puts(t, p);
    t->failed = t->failed || line.failed;
    cli_text_free(&line);
}
