/* Headers of models of voice activity detection; behind them lie as many zeros as the ordinary one asks for. Those that load
 * hear a second of sound. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "sotto/vad.h"

enum { DATA = 272000, MOST = 1 << 20 };

static void hear(const sotto_vad_model *model)
{
    static float pcm[16000];
    sotto_vad_stream *stream;
    sotto_error err = {0};
    FUZZ_CHECK(sotto_vad_stream_create(model, NULL, &stream, &err) == SOTTO_OK);
    for (int i = 0; i < 16000; i++)
        pcm[i] = (float)(i % 37) / 40 - 0.5f;
    FUZZ_CHECK(sotto_vad_push(stream, pcm, 16000, &err) == SOTTO_OK);
    FUZZ_CHECK(sotto_vad_finish(stream, &err) == SOTTO_OK);
    int64_t n;
    const float *p = sotto_vad_probabilities(stream, &n);
    FUZZ_CHECK(p && n == 32);
    sotto_vad_stream_free(stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > MOST)
        return 0;
    uint8_t *file = calloc(1, 8 + size + DATA);
    FUZZ_CHECK(file);
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)((uint64_t)size >> 8 * i);
    if (size > 0)
        memcpy(file + 8, data, size);
    sotto_error err = {0};
    sotto_vad_model *model;
    const sotto_status status = sotto_vad_model_open_memory(file, 8 + size + DATA, NULL, &model, &err);
    FUZZ_CHECK((status == SOTTO_OK) == (model != NULL));
    if (model)
        hear(model);
    else
        FUZZ_CHECK(err.code == status && err.text[0]);
    sotto_vad_model_free(model);
    free(file);
    return 0;
}
