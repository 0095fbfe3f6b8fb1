/* The model.bin of CTranslate2 folders; vocabulary and configuration are those of tests/fuzz/data/ct2. */
#include "fuzz/fuzz.h"
#include "fuzz/model_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(data, size, SOTTO_SOURCE_DIR "/tests/fuzz/data/ct2");
    return 0;
}
