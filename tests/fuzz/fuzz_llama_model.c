/* A small model of the LLaMA family with bytes changed: the first byte chooses the architecture, then each three are a place
 * (little-endian, from the file's beginning) and a value. What loads can be decoded. */
#include <string.h>

#include "fuzz/fuzz.h"
#include "unit/llama_support.h"

static void use(const sotto_llama_model *m)
{
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = 8;
    sotto_llama_session *s;
    sotto_error err = {0};
    const int32_t tokens[] = {0, 1, 2, 3};
    sotto_status status = sotto_llama_session_create(m, &o, &s, &err);
    if (status == SOTTO_OK)
        status = sotto_llama_decode_tokens(s, 0, tokens, 4, &err);
    FUZZ_CHECK(status == SOTTO_OK || err.text[0]);
    sotto_llama_session_free(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const archs[] = {"llama", "qwen2", "qwen3", "gemma3", "phi3"};
    const toy_recipe r = {.arch = archs[size > 0 ? data[0] % 5 : 0],
                          .key = "rope.scaling.factor",
                          .value = 2,
                          .text_key = "rope.scaling.type",
                          .text = "yarn"};
    blob b = toy_file(&r);
    for (size_t i = 1; i + 3 <= size; i += 3)
        b.data[(data[i] | (size_t)data[i + 1] << 8) % b.n] = data[i + 2];
    sotto_model_file *file;
    sotto_llama_model *m = NULL;
    sotto_error err = {0};
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.backend.device = "cpu";
    o.backend.n_threads = 1;
    o.compute = "f32";
    sotto_status status = sotto_model_file_open_memory(b.data, b.n, "toy", &file, &err);
    if (status == SOTTO_OK) {
        status = sotto_llama_model_load(file, &o, &m, &err);
        sotto_model_file_free(file);
    }
    FUZZ_CHECK((status == SOTTO_OK) == (m != NULL) && (m != NULL || err.text[0]));
    if (m)
        use(m);
    sotto_llama_model_free(m);
    blob_free(&b);
    return 0;
}
