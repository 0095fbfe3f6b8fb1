/* writer_tsv.c: tab-separated as the original writes it: whole milliseconds, trimmed text without tabs. */
#include "common/writers.h"

static void write_tsv(cli_text *out, const cli_transcript *t)
{
    cli_text_puts(out, "start\tend\ttext\n");
    for (size_t i = 0; i < t->n_segments; i++) {
        const sotto_whisper_segment *s = t->segments[i];
        cli_text_printf(out, "%lld\t%lld\t", (long long)cli_milliseconds(s->start), (long long)cli_milliseconds(s->end));
        cli_text_segment(out, s);
        cli_text_puts(out, "\n");
    }
}

const cli_writer cli_writer_tsv = {"tsv", "tsv", "tab-separated start, end, text in milliseconds", write_tsv};
