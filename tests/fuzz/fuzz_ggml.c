/* Whole ggml files. */
#include "fuzz/fuzz.h"
#include "fuzz/model_support.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(data, size, NULL);
    return 0;
}
