/* writer_txt.c: plain text, one line a segment. */
#include "common/writers.h"

static void write_txt(cli_text *out, const cli_transcript *t)
{
    for (size_t i = 0; i < t->n_segments; i++) {
        cli_text_segment(out, t->segments[i]);
        cli_text_puts(out, "\n");
    }
}

const cli_writer cli_writer_txt = {"txt", "txt", "plain text, one line a segment", write_txt};
