/* writer_srt.c: SubRip. */
#include "common/writers.h"

static void write_srt(cli_text *out, const cli_transcript *t)
{
    for (size_t i = 0; i < t->n_segments; i++) {
        const sotto_whisper_segment *s = t->segments[i];
        cli_text_printf(out, "%zu\n", i + 1);
        cli_text_clock(out, s->start, ',', true);
        cli_text_puts(out, " --> ");
        cli_text_clock(out, s->end, ',', true);
        cli_text_puts(out, "\n");
        cli_text_cue(out, s, "->");
        cli_text_puts(out, "\n\n");
    }
}

const cli_writer cli_writer_srt = {"srt", "srt", "SubRip subtitles", write_srt};
