/* longform.h: a recording of any length: windows one after another, language, prompts, silence, segments.
 * Source: transcribe() of openai-whisper. Audio may still be arriving: a window is decoded when all of it, the lookahead and one
 * frame more are there, so that the result does not depend on the pieces in which audio came.
 *
 * Different from the original, on purpose:
 * - Language is detected on the window's own encoding. A window that gives no text does not settle it: it is detected again in
 *   the next one, so that leading silence does not choose.
 * - Without timestamps, windows that others follow are decoded with timestamps all the same, to know where to go on without
 *   losing a word; their text is one segment.
 * - A window's text is compared with its sound (missed.h): with recover_missed what it leaves out is decoded again.
 * - Segments without text are left out; times stay inside the audio and never go back (see segments.h, results.h). */
#ifndef SOTTO_SRC_MODELS_WHISPER_LONGFORM_H
#define SOTTO_SRC_MODELS_WHISPER_LONGFORM_H

#include "models/whisper/chunks.h"
#include "models/whisper/decode.h"
#include "models/whisper/options.h"
#include "models/whisper/results.h"

typedef struct st_window_source {
    void *ctx;
    /* log_mel [3000, n_mels] gets the frames (10 ms) [first, end) of the recording, zeros behind them. `first` never goes back. */
    sotto_status (*window)(void *ctx, int64_t first, int64_t end, float *log_mel, sotto_error *err);
    int n_mels;
    int n_audio_ctx; /* of the model; 0 = 1500. A window is twice as many frames */
} st_window_source;

typedef struct st_longform st_longform;

/* Engine and source are copied; what they point to and the vocabulary must outlive it. */
sotto_status st_longform_create(const st_vocab *vocab, const st_engine *engine, const st_window_source *source,
                                st_longform **out, sotto_error *err);
void st_longform_free(st_longform *lf);
/* Checks every option; forgets the recording before. Options are copied with all they point to, except callbacks' user. */
sotto_status st_longform_begin(st_longform *lf, const sotto_whisper_options *options, sotto_error *err);
/* A part of a recording as if it were one of its own, though times are those of the recording. */
typedef struct st_part {
    int64_t first, end; /* frames, inside what begin()'s options let hear */
    uint64_t seed;
    int language; /* negative: as the options say */
    float probability;
    const st_speech *speech; /* a rest of the part in which there is none is not decoded; NULL: all is */
} st_part;
/* Begin again, with the options of the last begin(). */
sotto_status st_longform_begin_part(st_longform *lf, const st_part *part, sotto_error *err);
/* As the last begin() read the options. */
const st_settings *st_longform_settings(const st_longform *lf);
void st_longform_set_lookahead(st_longform *lf, int64_t frames);
/* Frames of the whole recording, for progress only; 0 = unknown. Until the next begin. */
void st_longform_set_total(st_longform *lf, int64_t frames);
/* Length of the whole recording, before the final run: no segment ends later. Until the next begin; else it is that of the
 * whole frames. */
void st_longform_set_duration(st_longform *lf, double seconds);
/* Windows stay inside the chunks of this speech, and what lies between them is not heard; NULL: the whole recording. It is
 * read in each run, which may find more in it. Until the next begin. */
void st_longform_set_speech(st_longform *lf, const st_speech *speech);
/* Decode what is complete. frames: so far, of content; final: there are no more. After an error only begin() goes on. */
sotto_status st_longform_run(st_longform *lf, int64_t frames, bool final, sotto_error *err);
/* No frame before this one will be asked for again. */
int64_t st_longform_seek(const st_longform *lf);

int64_t st_longform_count(const st_longform *lf);
/* Valid until the next begin; NULL outside. */
const sotto_whisper_segment *st_longform_segment(const st_longform *lf, int64_t index);
/* Move the segments to *out, which is empty; there are none then. */
void st_longform_take_results(st_longform *lf, st_results *out);
/* Code of the given language, or of the one detected once some text was heard; else NULL. */
const char *st_longform_language(const st_longform *lf, float *probability);
const st_decode_counters *st_longform_counters(const st_longform *lf);
/* For st_decode_language after an encode; what it computes does not disturb a recording between two runs. */
st_decoder *st_longform_decoder(st_longform *lf);

#endif
