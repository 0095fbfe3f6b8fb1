/* Whole gguf files: as models, as importance matrices, and what a conversion would make of them. */
#include "formats/gguf.h"
#include "fuzz/fuzz.h"
#include "fuzz/model_support.h"

static void as_importance(const sotto_model_file *f)
{
    sotto_imatrix *m;
    sotto_error err = {0};
    FUZZ_CHECK(sotto_imatrix_create(&m, NULL) == SOTTO_OK);
    const sotto_status status = st_imatrix_read(m, f, &err);
    FUZZ_CHECK(err.code == status);
    for (int64_t i = 0; i < sotto_imatrix_count(m); i++) {
        sotto_imatrix_entry e;
        FUZZ_CHECK(sotto_imatrix_get(m, i, &e) == SOTTO_OK && e.n > 0 && e.rows >= 0 && e.squares[e.n - 1] >= 0);
    }
    sotto_imatrix_free(m);
}

static void plan(const sotto_model_file *f, const char *mix)
{
    sotto_error err = {0};
    const sotto_convert_options o = {.dtype = mix, .requantize = true, .dry_run = true};
    const sotto_status status = sotto_model_convert(f, "out.gguf", &o, &err);
    FUZZ_CHECK(err.code == status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_model(data, size, NULL);
    sotto_model_file *f;
    if (sotto_model_file_open_memory(data, size, "memory", &f, NULL) != SOTTO_OK)
        return 0;
    as_importance(f);
    plan(f, NULL);
    plan(f, "q4_k_m");
    plan(f, "q2_k");
    sotto_model_file_free(f);
    return 0;
}
