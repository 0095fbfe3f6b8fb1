/* writers.h: output formats. A format is one file (writer_<name>.c) and one row of the table in writers.c. */
#ifndef SOTTO_PROGRAMS_WRITERS_H
#define SOTTO_PROGRAMS_WRITERS_H

#include "common/text.h"
#include "sotto/whisper.h"

/* A finished transcription, independent of any session, so that writers are tested without a model. Strings may hold any
 * bytes; every writer gives strict UTF-8. */
typedef struct cli_transcript {
    const char *audio, *model;             /* as the user named them */
    const char *model_size, *model_format; /* NULL = unknown */
    const char *task;                      /* "transcribe" or "translate" */
    const char *language;                  /* code; NULL = unknown */
    double language_probability, duration;
    const sotto_whisper_segment *const *segments;
    size_t n_segments;
    const sotto_whisper_timings *timings; /* NULL = unknown */
} cli_transcript;

typedef struct cli_writer {
    const char *name, *extension;
    const char *help;
    void (*write)(cli_text *out, const cli_transcript *t); /* failure shows in out->failed */
} cli_writer;

extern const cli_writer *const cli_writers[]; /* ends with NULL */
/* By name; n = length of the name. NULL when there is none. */
const cli_writer *cli_writer_find(const char *name, size_t n);

extern const cli_writer cli_writer_txt, cli_writer_srt, cli_writer_vtt, cli_writer_lrc, cli_writer_csv, cli_writer_tsv,
    cli_writer_json, cli_writer_json_full;

/* Milliseconds, rounded as the original rounds; negative and non-finite times are 0. */
int64_t cli_milliseconds(double seconds);
/* "00:01:02.345" with `point` before the milliseconds; hours left out when zero and not `hours`. */
void cli_text_clock(cli_text *t, double seconds, char point, bool hours);
/* One line of a segment: trimmed, on one line, valid UTF-8. */
void cli_text_segment(cli_text *t, const sotto_whisper_segment *s);
/* The line with every "-->" given as `arrow`, since it would end a cue. */
void cli_text_cue(cli_text *t, const sotto_whisper_segment *s, const char *arrow);

#endif
