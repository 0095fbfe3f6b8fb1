/* ffmpeg_library.h: the functions of the FFmpeg libraries, found when a recording first needs them. Linked in, they and the
 * hundred libraries behind them would cost every command 20 ms and 25 MB, also those that never read such a recording. */
#ifndef SOTTO_SRC_AUDIO_FFMPEG_LIBRARY_H
#define SOTTO_SRC_AUDIO_FFMPEG_LIBRARY_H

#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/channel_layout.h>
#include <libavutil/log.h>
#include <libswresample/swresample.h>

#include "sotto/base.h"

#define ST_AVUTIL_FUNCTIONS(F)   \
    F(av_channel_layout_compare) \
    F(av_channel_layout_copy)    \
    F(av_channel_layout_default) \
    F(av_channel_layout_uninit)  \
    F(av_frame_alloc)            \
    F(av_frame_free)             \
    F(av_frame_unref)            \
    F(av_free)                   \
    F(av_freep)                  \
    F(av_log_set_level)          \
    F(av_malloc)                 \
    F(av_sample_fmt_is_planar)   \
    F(av_strerror)
#define ST_AVCODEC_FUNCTIONS(F)      \
    F(av_packet_alloc)               \
    F(av_packet_free)                \
    F(av_packet_unref)               \
    F(avcodec_alloc_context3)        \
    F(avcodec_free_context)          \
    F(avcodec_open2)                 \
    F(avcodec_parameters_to_context) \
    F(avcodec_receive_frame)         \
    F(avcodec_send_packet)
#define ST_AVFORMAT_FUNCTIONS(F) \
    F(av_find_best_stream)       \
    F(av_read_frame)             \
    F(avformat_alloc_context)    \
    F(avformat_close_input)      \
    F(avformat_find_stream_info) \
    F(avformat_open_input)       \
    F(avio_alloc_context)        \
    F(avio_context_free)
#define ST_SWRESAMPLE_FUNCTIONS(F) \
    F(swr_alloc_set_opts2)         \
    F(swr_convert)                 \
    F(swr_free)                    \
    F(swr_get_out_samples)         \
    F(swr_init)

typedef struct st_ffmpeg {
#define FUNCTION(name) __typeof__(&(name)) name;
    ST_AVUTIL_FUNCTIONS(FUNCTION)
    ST_AVCODEC_FUNCTIONS(FUNCTION)
    ST_AVFORMAT_FUNCTIONS(FUNCTION)
    ST_SWRESAMPLE_FUNCTIONS(FUNCTION)
#undef FUNCTION
} st_ffmpeg;

/* Fills `out` from the libraries of the major versions that this program was compiled for. They stay open. Thread-safe.
 * SOTTO_E_UNSUPPORTED: one is not installed, or lacks a function; the message names it. */
sotto_status st_ffmpeg_load(st_ffmpeg *out, sotto_error *err);

#endif
