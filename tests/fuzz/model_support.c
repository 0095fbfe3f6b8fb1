#include "fuzz/model_support.h"

#include <string.h>

#include "formats/model_file_impl.h"
#include "fuzz/fuzz.h"

enum { WIDEST = 1 << 20 };

static void use(const void *data, size_t n)
{
    uint8_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum = (uint8_t)(sum + ((const uint8_t *)data)[i]);
    (void)*(volatile uint8_t *)&sum;
}

static void use_tensor(const sotto_model_file *f, int64_t index)
{
    sotto_model_tensor t, found;
    FUZZ_CHECK(sotto_model_tensor_get(f, index, &t) == SOTTO_OK);
    const bool known = sotto_dtype_name(t.dtype) != NULL;
    FUZZ_CHECK(sotto_model_tensor_find(f, t.name, &found) == (known ? SOTTO_OK : SOTTO_E_UNSUPPORTED));
    FUZZ_CHECK(found.data == t.data && sotto_model_dtype_name(t.dtype));
    FUZZ_CHECK(t.n_dims >= 0 && t.n_dims <= SOTTO_MAX_DIMS);
    int64_t rows = 1;
    for (int i = 1; i < SOTTO_MAX_DIMS; i++) {
        FUZZ_CHECK(t.dim[i] >= 1 && t.dim[i] <= INT64_MAX / rows);
        rows *= t.dim[i];
    }
    const int64_t width = t.n_dims > 0 ? t.dim[0] : 1;
    FUZZ_CHECK(width >= 1 && (!known || t.bytes == sotto_dtype_row_bytes(t.dtype, width) * (size_t)rows));
    use(t.data, t.bytes);
    if (width > WIDEST)
        return;
    float *row = malloc((size_t)width * sizeof *row);
    FUZZ_CHECK(row);
    if (!known) {
        FUZZ_CHECK(sotto_model_tensor_f32(&t, 0, 1, row, NULL) == SOTTO_E_UNSUPPORTED);
        free(row);
        return;
    }
    FUZZ_CHECK(sotto_model_tensor_f32(&t, 0, 1, row, NULL) == SOTTO_OK);
    FUZZ_CHECK(sotto_model_tensor_f32(&t, rows - 1, 1, row, NULL) == SOTTO_OK);
    FUZZ_CHECK(sotto_model_tensor_f32(&t, rows, 1, row, NULL) == SOTTO_E_ARGUMENT);
    free(row);
}

static void use_meta(const sotto_model_file *f, int64_t index)
{
    sotto_meta m;
    FUZZ_CHECK(sotto_meta_get(f, index, &m) == SOTTO_OK && m.count >= 0);
    int64_t whole, n = 0;
    double real;
    const char *text;
    size_t length;
    const int64_t *ints;
    const float *floats;
    const bool array = m.kind >= SOTTO_META_INTS;
    FUZZ_CHECK(array || m.count == 1);
    FUZZ_CHECK((sotto_meta_int(f, m.key, &whole, NULL) == SOTTO_OK) == (m.kind == SOTTO_META_INT));
    FUZZ_CHECK((sotto_meta_float(f, m.key, &real, NULL) == SOTTO_OK) == (m.kind == SOTTO_META_FLOAT));
    if (sotto_meta_string(f, m.key, &text, &length, NULL) == SOTTO_OK)
        use(text, length);
    if (sotto_meta_ints(f, m.key, &ints, &n, NULL) == SOTTO_OK)
        use(ints, (size_t)n * sizeof *ints);
    if (sotto_meta_floats(f, m.key, &floats, &n, NULL) == SOTTO_OK)
        use(floats, (size_t)n * sizeof *floats);
    for (int64_t i = 0; m.kind == SOTTO_META_STRINGS && i < m.count; i++) {
        FUZZ_CHECK(sotto_meta_string_at(f, m.key, i, &text, &length, NULL) == SOTTO_OK);
        use(text, length);
    }
}

static void use_model(sotto_model_file *f, sotto_status status, const sotto_error *err)
{
    FUZZ_CHECK((status == SOTTO_OK) == (f != NULL));
    if (!f) {
        FUZZ_CHECK(err->code == status && err->text[0]);
        return;
    }
    for (int64_t i = 0; i < sotto_model_tensor_count(f); i++)
        use_tensor(f, i);
    for (int64_t i = 0; i < sotto_meta_count(f); i++)
        use_meta(f, i);
    sotto_model_file_free(f);
}

void fuzz_model(const uint8_t *data, size_t size, const char *folder)
{
    sotto_error err = {0};
    sotto_model_file *f;
    const sotto_status status = st_model_open_bytes(data, size, "fuzz", folder, &f, &err);
    use_model(f, status, &err);
}

void fuzz_model_path(const char *path)
{
    sotto_error err = {0};
    sotto_model_file *f;
    const sotto_status status = sotto_model_file_open(path, &f, &err);
    use_model(f, status, &err);
}
