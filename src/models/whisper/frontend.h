/* frontend.h: PCM in pieces -> log-mel windows. Computed on the session's backend, in chunks, while audio arrives; memory
 * is bounded by the frames that have not been dropped.
 * Source: log_mel_spectrogram() of openai-whisper: reflected padding of 200 samples at the start, 30 s of silence after the
 * end, Hann window of 400, hop 160, power, mel filters, log10, floor 8 decades below the loudest, (x + 4) / 4. */
#ifndef SOTTO_SRC_MODELS_WHISPER_FRONTEND_H
#define SOTTO_SRC_MODELS_WHISPER_FRONTEND_H

#include "models/whisper/model_impl.h"

typedef struct st_frontend st_frontend;

sotto_status st_frontend_create(const sotto_whisper_model *model, sotto_backend *backend, sotto_arena *arena,
                                st_frontend **out, sotto_error *err);
void st_frontend_free(st_frontend *f);
/* Forget everything heard. */
void st_frontend_reset(st_frontend *f);
/* Samples that are not finite count as zero. */
sotto_status st_frontend_feed(st_frontend *f, const float *pcm, int64_t n, const sotto_run_options *run,
                              sotto_error *err);
/* No more audio: the last frames are computed. */
sotto_status st_frontend_finish(st_frontend *f, const sotto_run_options *run, sotto_error *err);
int64_t st_frontend_samples(const st_frontend *f);
/* Frames ready; after finish the recording's own, samples / 160. */
int64_t st_frontend_frames(const st_frontend *f);
/* Frames before `frame` will not be asked for again. */
void st_frontend_drop(st_frontend *f, int64_t frame);
/* Frames [first, first + 3000) as [3000, n_mels]; those at or after the smaller of `end` and the frames ready are zero, as
 * the original pads. */
void st_frontend_window(const st_frontend *f, int64_t first, int64_t end, float *out);
const sotto_plan *st_frontend_plan(const st_frontend *f);
uint64_t st_frontend_plan_bytes(const st_frontend *f);
double st_frontend_seconds(const st_frontend *f);

#endif
