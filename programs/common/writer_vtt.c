/* writer_vtt.c: WebVTT (W3C). '&' and '<' begin markup and '>' could end an arrow, so all three are escaped. */
#include "common/writers.h"

static void write_vtt(cli_text *out, const cli_transcript *t)
{
    cli_text_puts(out, "WEBVTT\n\n");
    for (size_t i = 0; i < t->n_segments; i++) {
        const sotto_whisper_segment *s = t->segments[i];
        cli_text line = {0};
        cli_text_clock(out, s->start, '.', false);
        cli_text_puts(out, " --> ");
        cli_text_clock(out, s->end, '.', false);
        cli_text_puts(out, "\n");
        cli_text_segment(&line, s);
        for (size_t k = 0; k < line.size; k++) {
            const char c = line.data[k];
            if (c == '&')
                cli_text_puts(out, "&amp;");
            else if (c == '<')
                cli_text_puts(out, "&lt;");
            else if (c == '>')
                cli_text_puts(out, "&gt;");
            else
                cli_text_add(out, &c, 1);
        }
        cli_text_puts(out, "\n\n");
        out->failed = out->failed || line.failed;
        cli_text_free(&line);
    }
}

const cli_writer cli_writer_vtt = {"vtt", "vtt", "WebVTT subtitles", write_vtt};
