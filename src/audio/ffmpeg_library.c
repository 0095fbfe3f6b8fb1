/* ffmpeg_library.c: ffmpeg_library.h by name, from where the loader looks and from the folder seen when this was built. */
#include "ffmpeg_library.h"

#include <stddef.h>

#include "base/library.h"
#include "base/status.h"

#define FUNCTION(name) {#name, offsetof(st_ffmpeg, name), false},
static const st_library_symbol avutil[] = {ST_AVUTIL_FUNCTIONS(FUNCTION)};
static const st_library_symbol avcodec[] = {ST_AVCODEC_FUNCTIONS(FUNCTION)};
static const st_library_symbol avformat[] = {ST_AVFORMAT_FUNCTIONS(FUNCTION)};
static const st_library_symbol swresample[] = {ST_SWRESAMPLE_FUNCTIONS(FUNCTION)};
#undef FUNCTION

static const struct {
    const char *name;
    int version;
    const st_library_symbol *functions;
    size_t n;
} libraries[] = {
    {"avutil", LIBAVUTIL_VERSION_MAJOR, avutil, sizeof avutil / sizeof avutil[0]},
    {"swresample", LIBSWRESAMPLE_VERSION_MAJOR, swresample, sizeof swresample / sizeof swresample[0]},
    {"avcodec", LIBAVCODEC_VERSION_MAJOR, avcodec, sizeof avcodec / sizeof avcodec[0]},
    {"avformat", LIBAVFORMAT_VERSION_MAJOR, avformat, sizeof avformat / sizeof avformat[0]},
};

sotto_status st_ffmpeg_load(st_ffmpeg *out, sotto_error *err)
{
    for (size_t l = 0; l < sizeof libraries / sizeof libraries[0]; l++) {
        char name[64];
        void *const library =
            st_library_open_version(libraries[l].name, libraries[l].version, SOTTO_FFMPEG_FOLDER, name, sizeof name);
        if (!library)
            return st_fail(err, SOTTO_E_UNSUPPORTED,
                           "reading it takes the FFmpeg library %s, which is not installed or cannot be loaded "
                           "(Debian: apt-get install ffmpeg); WAV and raw PCM need none",
                           name);
        const char *missing = st_library_functions(library, libraries[l].functions, libraries[l].n, out);
        if (missing)
            return st_fail(err, SOTTO_E_UNSUPPORTED, "the FFmpeg library %s has no function %s", name, missing);
    }
    return SOTTO_OK;
}
