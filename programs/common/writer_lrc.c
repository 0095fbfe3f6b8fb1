/* writer_lrc.c: lyrics with a time before each line, in hundredths of a second. */
#include "common/writers.h"

static void write_lrc(cli_text *out, const cli_transcript *t)
{
    cli_text_puts(out, "[by:sotto]\n");
    for (size_t i = 0; i < t->n_segments; i++) {
        const long long cs = (cli_milliseconds(t->segments[i]->start) + 5) / 10;
        cli_text_printf(out, "[%02lld:%02lld.%02lld]", cs / 6000, cs / 100 % 60, cs % 100);
        cli_text_segment(out, t->segments[i]);
        cli_text_puts(out, "\n");
    }
}

const cli_writer cli_writer_lrc = {"lrc", "lrc", "lyrics", write_lrc};
