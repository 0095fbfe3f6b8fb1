/* vad_options.c: Contract: vad_options.h. */
#include "common/vad_options.h"

#include <math.h>
#include <stdlib.h>

#include "common/models.h"

bool cli_vad_open(const cli_vad_args *args, const char *model_dir, const sotto_backend_options *backend,
                  sotto_vad_model **out, sotto_error *err)
{
    char *path = cli_model_path(args->model, model_dir, err);
    const bool ok = path && sotto_vad_model_open(path, backend, out, err) == SOTTO_OK;
    free(path);
    return ok;
}

void cli_vad_fill(const cli_vad_args *args, sotto_vad_options *out)
{
    sotto_vad_options_default(out);
    out->threshold = (float)args->threshold;
    out->neg_threshold = isnan(args->neg_threshold) ? -1.0f : (float)args->neg_threshold;
    out->min_speech_ms = (int)args->min_speech_ms;
    out->min_silence_ms = (int)args->min_silence_ms;
    out->max_speech_s = isnan(args->max_speech_s) ? INFINITY : args->max_speech_s;
    out->pad_ms = (int)args->pad_ms;
}
