/* ggml files with every field wrong in turn, cut at every length; and content that is no model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/formats_support.h"

static void test_ordinary(void **state)
{
    (void)state;
    const ggml_recipe r = ggml_ordinary();
    blob b = ggml_file(&r);
    sotto_model_file *f;
    sotto_error err = {0};
    assert_int_equal(sotto_model_file_open_memory(b.data, b.n, "memory", &f, &err), SOTTO_OK);
    assert_string_equal(sotto_model_file_format(f), "ggml");
    assert_int_equal(sotto_model_tensor_count(f), 13);
    int64_t n;
    float *values = tensor_values(f, "a.weight", &n);
    assert_int_equal(n, 8);
    for (int i = 0; i < 8; i++)
        assert_true(values[i] == (float)i + 0.5f);
    free(values);
    sotto_model_tensor t;
    assert_int_equal(sotto_model_tensor_find(f, "a.weight", &t), SOTTO_OK);
    assert_int_equal(t.n_dims, 2);
    assert_int_equal(t.dim[0], 4);
    assert_int_equal(t.dim[1], 2);
    float row[4];
    assert_int_equal(sotto_model_tensor_f32(&t, 1, 1, row, &err), SOTTO_OK);
    assert_true(row[0] == 4.5f);
    assert_int_equal(sotto_model_tensor_f32(&t, 1, 2, row, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_model_tensor_f32(&t, -1, 1, row, &err), SOTTO_E_ARGUMENT);
    values = tensor_values(f, "scalar", &n);
    assert_int_equal(n, 1);
    assert_true(values[0] == 3);
    free(values);
    assert_int_equal(sotto_model_tensor_find(f, "b", &t), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_model_tensor_get(f, 13, &t), SOTTO_E_ARGUMENT);
    int64_t value;
    assert_int_equal(sotto_meta_int(f, "whisper.n_text_ctx", &value, &err), SOTTO_OK);
    assert_int_equal(value, 448);
    const float *filters;
    assert_int_equal(sotto_meta_floats(f, "whisper.mel_filters", &filters, &n, &err), SOTTO_OK);
    assert_int_equal(n, 201);
    assert_true(filters[200] == 200);
    const char *text;
    size_t length;
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 0, &text, &length, &err), SOTTO_OK);
    assert_int_equal(length, 2);
    assert_memory_equal(text, "ab", 2);
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 1, &text, &length, &err), SOTTO_OK);
    assert_int_equal(length, 0);
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 2, &text, &length, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_meta_int(f, "tokenizer.ggml.tokens", &value, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "tokenizer.ggml.tokens"));
    assert_int_equal(sotto_meta_int(f, "nothing", &value, &err), SOTTO_E_NOT_FOUND);
    sotto_model_file_free(f);
    blob_free(&b);
}

/* Also between two tensors, whose number nothing announces: then a tensor of the model is missing. */
static void test_cut_everywhere(void **state)
{
    (void)state;
    const ggml_recipe r = ggml_ordinary();
    blob b = ggml_file(&r);
    const size_t scalar = 4 * 4 + 6;
    for (size_t n = 0; n <= b.n; n++) {
        sotto_error err;
        const bool whole = n == b.n || n == b.n - scalar;
        const sotto_status status = try_memory(b.data, n, &err);
        if (status != (whole ? SOTTO_OK : SOTTO_E_FORMAT))
            fail_msg("%zu of %zu bytes: %s %s", n, b.n, sotto_status_name(status), err.text);
    }
    blob_free(&b);
}

#define FIELD(field) offsetof(ggml_recipe, field)

static void test_fields(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        size_t offset;
        int32_t value;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"n_mels of the header", FIELD(header[9]), 2, SOTTO_E_FORMAT, "n_mels"},
        {"ftype 99", FIELD(header[10]), 99, SOTTO_E_UNSUPPORTED, "ftype"},
        {"ftype -1", FIELD(header[10]), -1, SOTTO_E_UNSUPPORTED, "ftype"},
        {"ftype with a block version", FIELD(header[10]), 2008, SOTTO_OK, ""},
        {"n_mel 65537", FIELD(n_mel), 65537, SOTTO_E_FORMAT, "mel filters"},
        {"n_mel -1", FIELD(n_mel), -1, SOTTO_E_FORMAT, "mel filters"},
        {"n_fft 65536", FIELD(n_fft), 65536, SOTTO_E_FORMAT, "mel filters"},
        {"n_fft 0", FIELD(n_fft), 0, SOTTO_E_FORMAT, "mel filters"},
        {"999999999 tokens", FIELD(n_tokens), 999999999, SOTTO_E_FORMAT, "tokens"},
        {"-1 tokens", FIELD(n_tokens), -1, SOTTO_E_FORMAT, "tokens"},
        {"token of 4 GiB", FIELD(token_length), -1, SOTTO_E_FORMAT, "token 0"},
        {"5 dimensions", FIELD(n_dims), 5, SOTTO_E_FORMAT, "5 dimensions"},
        {"20 dimensions", FIELD(n_dims), 20, SOTTO_E_FORMAT, "20 dimensions"},
        {"64 dimensions", FIELD(n_dims), 64, SOTTO_E_FORMAT, "64 dimensions"},
        {"-1 dimensions", FIELD(n_dims), -1, SOTTO_E_FORMAT, "-1 dimensions"},
        {"INT_MAX dimensions", FIELD(n_dims), INT32_MAX, SOTTO_E_FORMAT, "dimensions"},
        {"name of no bytes", FIELD(name_length), 0, SOTTO_E_FORMAT, "name of 0"},
        {"name of -1 bytes", FIELD(name_length), -1, SOTTO_E_FORMAT, "name of -1"},
        {"name of 2 GiB", FIELD(name_length), INT32_MAX, SOTTO_E_FORMAT, "name of"},
        {"type 5, which was removed", FIELD(type), 5, SOTTO_E_UNSUPPORTED, "type 5"},
        {"type -1", FIELD(type), -1, SOTTO_E_UNSUPPORTED, "type -1"},
        {"type 1000000", FIELD(type), 1000000, SOTTO_E_UNSUPPORTED, "type 1000000"},
        {"a width of 4 as q4_0", FIELD(type), 2, SOTTO_E_FORMAT, "multiple of 32"},
        {"a width of 0", FIELD(dim[0]), 0, SOTTO_E_FORMAT, "a.weight"},
        {"a width of -4", FIELD(dim[0]), -4, SOTTO_E_FORMAT, "a.weight"},
        {"0 rows", FIELD(dim[1]), 0, SOTTO_E_FORMAT, "a.weight"},
        {"more rows than bytes", FIELD(dim[1]), 1 << 30, SOTTO_E_FORMAT, "left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ggml_recipe r = ggml_ordinary();
        memcpy((char *)&r + cases[i].offset, &cases[i].value, sizeof cases[i].value);
        blob b = ggml_file(&r);
        sotto_error err;
        expect(try_memory(b.data, b.n, &err), &err, cases[i].status, cases[i].part, cases[i].label);
        blob_free(&b);
    }
}

static void test_products(void **state)
{
    (void)state;
    static const int32_t dims[][4] = {{65536, 65536, 1, 1},
                                      {65536, 65536, 65536, 65536},
                                      {INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX},
                                      {1 << 30, 1 << 30, 4, 1}};
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        ggml_recipe r = ggml_ordinary();
        r.n_dims = 4;
        memcpy(r.dim, dims[i], sizeof dims[i]);
        blob b = ggml_file(&r);
        sotto_error err;
        expect(try_memory(b.data, b.n, &err), &err, SOTTO_E_FORMAT, "a.weight", "a product of dimensions");
        blob_free(&b);
    }
}

static void test_names(void **state)
{
    (void)state;
    ggml_recipe r = ggml_ordinary();
    r.name = "a\0weight";
    blob b = ggml_file(&r);
    sotto_error err;
    expect(try_memory(b.data, b.n, &err), &err, SOTTO_E_FORMAT, "zero", "a name with a zero");
    blob_free(&b);
    r.name = "a.weight";
    b = ggml_file(&r);
    uint8_t scalar[4 * 4 + 6];
    memcpy(scalar, b.data + b.n - sizeof scalar, sizeof scalar);
    blob_bytes(&b, scalar, sizeof scalar);
    expect(try_memory(b.data, b.n, &err), &err, SOTTO_E_FORMAT, "twice", "a tensor that is there twice");
    blob_free(&b);
}

static void test_conv_bias(void **state)
{
    (void)state;
    ggml_recipe r = ggml_ordinary();
    r.name = "cv1.bias";
    r.dim[0] = 1;
    r.dim[1] = 8;
    blob b = ggml_file(&r);
    sotto_model_file *f;
    assert_int_equal(sotto_model_file_open_memory(b.data, b.n, NULL, &f, NULL), SOTTO_OK);
    sotto_model_tensor t;
    assert_int_equal(sotto_model_tensor_find(f, "cv1.bias", &t), SOTTO_OK);
    assert_int_equal(t.n_dims, 1);
    assert_int_equal(t.dim[0], 8);
    sotto_model_file_free(f);
    blob_free(&b);
}

static void test_no_model(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"", 0, SOTTO_E_FORMAT, "empty"},
        {"gg", 2, SOTTO_E_FORMAT, "2 bytes"},
        {"lmgg", 4, SOTTO_E_FORMAT, "stops"},
        {"lmggxxxx", 8, SOTTO_E_FORMAT, "header"},
        {"PK\3\4xxxxxxxxxxx", 15, SOTTO_E_UNSUPPORTED, "zip"},
        {"\x80\x02}q", 4, SOTTO_E_UNSUPPORTED, "pickle"},
        {"<!DOCTYPE html><html>", 21, SOTTO_E_FORMAT, "web page"},
        {"<html><body>404", 15, SOTTO_E_FORMAT, "web page"},
        {"version https://git-lfs.github.com/spec/v1\n", 43, SOTTO_E_FORMAT, "LFS"},
        {"{\"a\": 1}", 8, SOTTO_E_FORMAT, "JSON"},
        {"Entry not found", 15, SOTTO_E_FORMAT, "45 6e 74 72"},
        {"tjggxxxx", 8, SOTTO_E_UNSUPPORTED, "ggjt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sotto_error err;
        expect(try_memory(cases[i].text, cases[i].n, &err), &err, cases[i].status, cases[i].part, cases[i].part);
    }
}

static void test_paths(void **state)
{
    (void)state;
    char *folder = make_folder();
    sotto_error err;
    expect(try_path(folder, &err), &err, SOTTO_E_NOT_FOUND, "model.safetensors", "an empty folder");
    expect(try_path(in_folder(folder, "no"), &err), &err, SOTTO_E_NOT_FOUND, "no", "a missing file");
    write_text(folder, "pytorch_model.bin", "PK");
    expect(try_path(folder, &err), &err, SOTTO_E_NOT_FOUND, "pickle", "a folder with a pickle");
    const ggml_recipe r = ggml_ordinary();
    blob b = ggml_file(&r);
    write_blob(folder, "model.bin", &b);
    expect(try_path(folder, &err), &err, SOTTO_OK, "", "a folder with a ggml file");
    expect(try_path(in_folder(folder, "model.bin"), &err), &err, SOTTO_OK, "", "the file itself");
    write_blob(folder, "model.txt", &b);
    expect(try_path(in_folder(folder, "model.txt"), &err), &err, SOTTO_OK, "", "another ending");
    blob_free(&b);
    remove_folder(folder);
}

static void test_null(void **state)
{
    (void)state;
    sotto_model_file *f;
    sotto_error err;
    assert_int_equal(sotto_model_file_open(NULL, &f, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_model_file_open("x", NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_model_file_open_memory(NULL, 4, "x", &f, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_model_file_open_memory(NULL, 0, NULL, &f, NULL), SOTTO_E_FORMAT);
    sotto_model_tensor t;
    sotto_meta m;
    int64_t n;
    assert_int_equal(sotto_model_tensor_count(NULL), 0);
    assert_int_equal(sotto_meta_count(NULL), 0);
    assert_int_equal(sotto_model_tensor_get(NULL, 0, &t), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_model_tensor_find(NULL, "x", &t), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_meta_get(NULL, 0, &m), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_meta_int(NULL, "x", &n, NULL), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_model_convert(NULL, "x", NULL, &err), SOTTO_E_ARGUMENT);
    sotto_model_tensor_release(NULL, NULL);
    sotto_model_file_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordinary), cmocka_unit_test(test_cut_everywhere), cmocka_unit_test(test_fields),
        cmocka_unit_test(test_products), cmocka_unit_test(test_names),          cmocka_unit_test(test_conv_bias),
        cmocka_unit_test(test_no_model), cmocka_unit_test(test_paths),          cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests_name("model_ggml", tests, NULL, NULL);
}
