/* audio_no_ffmpeg.c: stands in for audio_ffmpeg.c in builds without the FFmpeg libraries. */
#include "audio_impl.h"
#include "base/status.h"

sotto_status st_audio_open_ffmpeg(const st_audio_context *context, st_audio_decoder *out, sotto_error *err)
{
    (void)out;
    return st_fail(err, SOTTO_E_UNSUPPORTED,
                   "looks like %s; this build was made without the FFmpeg libraries and reads WAV and raw PCM only",
                   st_audio_sniff(context->stream->head, context->stream->n_head));
}
