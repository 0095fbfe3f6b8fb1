/* writer_csv.c: RFC 4180: header, CRLF, every text quoted with its quotes doubled and its spaces kept. Times in ms. */
#include "common/writers.h"

static void write_csv(cli_text *out, const cli_transcript *t)
{
    cli_text_puts(out, "start,end,text\r\n");
    for (size_t i = 0; i < t->n_segments; i++) {
        const sotto_whisper_segment *s = t->segments[i];
        cli_text valid = {0};
        cli_text_utf8(&valid, s->text, s->n_text);
        cli_text_printf(out, "%lld,%lld,\"", (long long)cli_milliseconds(s->start), (long long)cli_milliseconds(s->end));
        for (size_t k = 0; k < valid.size; k++) {
            cli_text_add(out, valid.data + k, 1);
            if (valid.data[k] == '"')
                cli_text_puts(out, "\"");
        }
        cli_text_puts(out, "\"\r\n");
        out->failed = out->failed || valid.failed;
        cli_text_free(&valid);
    }
}

const cli_writer cli_writer_csv = {"csv", "csv", "comma-separated start,end,text in milliseconds", write_csv};
