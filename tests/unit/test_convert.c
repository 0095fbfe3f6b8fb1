/* Converting: every target type and format read back; what is refused; nothing half-written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sotto/quant.h"
#include "unit/formats_support.h"

static const char *const formats[] = {"ggml", "gguf"};
static const char *const targets[] = {"f32",  "f16",  "bf16", "q4_0", "q4_1", "q5_0", "q5_1",
                                      "q8_0", "q2_k", "q3_k", "q4_k", "q5_k", "q6_k", "iq4_nl"};
enum { N_TARGETS = sizeof targets / sizeof *targets };

typedef struct fixture {
    char *folder;
    sotto_model_file *source;
    blob bytes;
} fixture;

static fixture source(int64_t width, sotto_dtype type)
{
    fixture x = {.folder = make_folder(), .bytes = whisper_gguf(width, type)};
    write_blob(x.folder, "source", &x.bytes);
    x.source = must_open(in_folder(x.folder, "source"));
    return x;
}

static void close_source(fixture *x)
{
    sotto_model_file_free(x->source);
    remove_folder(x->folder);
    blob_free(&x->bytes);
}

static sotto_dtype dtype_of(const sotto_model_file *f, const char *name)
{
    sotto_model_tensor t;
    if (sotto_model_tensor_find(f, name, &t) != SOTTO_OK)
        fail_msg("%s: missing", name);
    return t.dtype;
}

/* Values must be those of the source, rounded to the type it has now. */
static void check_values(const sotto_model_file *from, const sotto_model_file *to)
{
    assert_int_equal(sotto_model_tensor_count(from), sotto_model_tensor_count(to));
    for (int64_t i = 0; i < sotto_model_tensor_count(from); i++) {
        sotto_model_tensor a, b;
        assert_int_equal(sotto_model_tensor_get(from, i, &a), SOTTO_OK);
        assert_int_equal(sotto_model_tensor_find(to, a.name, &b), SOTTO_OK);
        assert_int_equal(a.n_dims, b.n_dims);
        for (int d = 0; d < SOTTO_MAX_DIMS; d++)
            assert_true(a.dim[d] == b.dim[d]);
        int64_t n, m;
        float *values = tensor_values(from, a.name, &n), *have = tensor_values(to, a.name, &m);
        assert_int_equal(n, m);
        uint8_t *packed = malloc((size_t)n * 4);
        assert_true(sotto_row_from_f32(b.dtype, values, packed, n) && sotto_row_to_f32(b.dtype, packed, values, n));
        if (memcmp(values, have, (size_t)n * sizeof *values) != 0)
            fail_msg("%s: other values", a.name);
        free(packed);
        free(values);
        free(have);
    }
}

static void check_metadata(const sotto_model_file *f)
{
    int64_t value, n;
    assert_int_equal(sotto_meta_int(f, "whisper.n_vocab", &value, NULL), SOTTO_OK);
    assert_int_equal(value, 51864);
    assert_int_equal(sotto_meta_int(f, "whisper.n_mels", &value, NULL), SOTTO_OK);
    assert_int_equal(value, 2);
    const float *filters;
    assert_int_equal(sotto_meta_floats(f, "whisper.mel_filters", &filters, &n, NULL), SOTTO_OK);
    assert_int_equal(n, 2 * 201);
    const char *text;
    size_t length;
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 2, &text, &length, NULL), SOTTO_OK);
    assert_true(length == 300 && text[0] == 'x' && text[299] == 'x');
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 1, &text, &length, NULL), SOTTO_OK);
    assert_int_equal(length, 0);
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 3, &text, &length, NULL), SOTTO_E_ARGUMENT);
}

static void count_progress(void *user, int64_t done, int64_t total)
{
    int64_t *last = user;
    assert_true(done == *last + 1 && done <= total);
    *last = done;
}

static int64_t width_of(const sotto_model_file *f)
{
    sotto_model_tensor t;
    assert_int_equal(sotto_model_tensor_find(f, "decoder.token_embedding.weight", &t), SOTTO_OK);
    return t.dim[0];
}

/* What llama-quantize falls back to where rows are no whole number of blocks of 256. */
static sotto_dtype fitting(sotto_dtype type, int64_t width)
{
    static const sotto_dtype instead[] = {
        [SOTTO_Q2_K] = SOTTO_Q4_0, [SOTTO_Q3_K] = SOTTO_Q4_0, [SOTTO_Q4_K] = SOTTO_Q5_0,
        [SOTTO_Q5_K] = SOTTO_Q5_1, [SOTTO_Q6_K] = SOTTO_Q8_0,
    };
    return width % sotto_dtype_block(type) == 0 ? type : instead[type];
}

static void check_target(const fixture *x, const char *format, const char *target)
{
    int64_t done = 0;
    sotto_error err = {0};
    const sotto_convert_options o = {
        .format = format, .dtype = target, .progress = count_progress, .progress_user = &done};
    const char *out = in_folder(x->folder, "out");
    if (sotto_model_convert(x->source, out, &o, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    assert_int_equal(done, sotto_model_tensor_count(x->source));
    sotto_model_file *f = must_open(out);
    assert_string_equal(sotto_model_file_format(f), format);
    check_values(x->source, f);
    check_metadata(f);
    sotto_dtype type;
    assert_int_equal(sotto_dtype_find(target, &type), SOTTO_OK);
    const bool blocks = sotto_dtype_block(type) > 1;
    const sotto_dtype fits = fitting(type, width_of(f));
    assert_int_equal(dtype_of(f, "decoder.token_embedding.weight"), fits);
    assert_int_equal(dtype_of(f, "encoder.blocks.0.attn.query.weight"), fits);
    assert_int_equal(dtype_of(f, "odd.weight"), blocks ? SOTTO_F16 : type);
    assert_int_equal(dtype_of(f, "encoder.conv1.weight"), type == SOTTO_F32 ? SOTTO_F32 : SOTTO_F16);
    assert_int_equal(dtype_of(f, "encoder.conv1.bias"), SOTTO_F32);
    assert_int_equal(dtype_of(f, "encoder.positional_embedding"), SOTTO_F32);
    sotto_model_file_free(f);
    assert_int_equal(count_files(x->folder), 2);
}

static void test_every_type(void **state)
{
    (void)state;
    static const int64_t widths[] = {64, 384, 512};
    static const sotto_dtype types[] = {SOTTO_F32, SOTTO_F16};
    for (int w = 0; w < 3; w++)
        for (int s = 0; s < 2; s++) {
            fixture x = source(widths[w], types[s]);
            for (int f = 0; f < 2; f++)
                for (int t = 0; t < N_TARGETS; t++)
                    check_target(&x, formats[f], targets[t]);
            close_source(&x);
        }
}

static void test_keep(void **state)
{
    (void)state;
    fixture x = source(64, SOTTO_F16);
    const char *out = in_folder(x.folder, "out.gguf");
    assert_int_equal(sotto_model_convert(x.source, out, NULL, NULL), SOTTO_OK);
    sotto_model_file *f = must_open(out);
    assert_string_equal(sotto_model_file_format(f), "gguf"); /* by the ending */
    assert_int_equal(dtype_of(f, "odd.weight"), SOTTO_F16);
    check_values(x.source, f);
    const int64_t *heads;
    int64_t n, value;
    assert_int_equal(sotto_meta_ints(f, "whisper.alignment_heads", &heads, &n, NULL), SOTTO_OK);
    assert_true(n == 2 && heads[0] == 0 && heads[1] == -1);
    assert_int_equal(sotto_meta_int(f, "general.file_type", &value, NULL), SOTTO_OK);
    assert_int_equal(value, 1);
    /* once more from the copy gives the same bytes */
    const char *again = in_folder(x.folder, "again.gguf");
    assert_int_equal(sotto_model_convert(f, again, NULL, NULL), SOTTO_OK);
    struct stat a, b;
    assert_true(stat(out, &a) == 0 && stat(again, &b) == 0 && a.st_size == b.st_size);
    sotto_model_file_free(f);
    const char *other = in_folder(x.folder, "out.model");
    assert_int_equal(sotto_model_convert(x.source, other, NULL, NULL), SOTTO_OK);
    f = must_open(other);
    assert_string_equal(sotto_model_file_format(f), "ggml");
    sotto_model_file_free(f);
    close_source(&x);
}

static void test_requantizing(void **state)
{
    (void)state;
    fixture x = source(64, SOTTO_F32);
    sotto_convert_options o = {.dtype = "q5_0"};
    assert_int_equal(sotto_model_convert(x.source, in_folder(x.folder, "q"), &o, NULL), SOTTO_OK);
    sotto_model_file *q = must_open(in_folder(x.folder, "q"));
    const char *out = in_folder(x.folder, "out");
    sotto_error err = {0};
    o.dtype = "q4_0";
    expect(sotto_model_convert(q, out, &o, &err), &err, SOTTO_E_ARGUMENT, "quantised already", "q5_0 to q4_0");
    o.dtype = "f16";
    expect(sotto_model_convert(q, out, &o, &err), &err, SOTTO_E_ARGUMENT, "quantised already", "q5_0 to f16");
    assert_int_equal(count_files(x.folder), 2);
    o.dtype = NULL;
    expect(sotto_model_convert(q, out, &o, &err), &err, SOTTO_OK, "", "q5_0 kept");
    sotto_model_file *f = must_open(out);
    check_values(q, f);
    assert_int_equal(dtype_of(f, "decoder.token_embedding.weight"), SOTTO_Q5_0);
    sotto_model_file_free(f);
    o.dtype = "q4_0";
    o.requantize = true;
    expect(sotto_model_convert(q, out, &o, &err), &err, SOTTO_OK, "", "asked for");
    f = must_open(out);
    check_values(q, f);
    sotto_model_file_free(f);
    sotto_model_file_free(q);
    close_source(&x);
}

static void test_refused(void **state)
{
    (void)state;
    fixture x = source(64, SOTTO_F16);
    const char *path = in_folder(x.folder, "source"), *out = in_folder(x.folder, "out");
    static const struct {
        const char *format, *dtype, *part;
    } cases[] = {
        {"onnx", NULL, "onnx"}, {NULL, "q4_k_m", "a mix"}, {NULL, "i8", "i8"}, {NULL, "", "type"}, {"", NULL, "format"}};
    sotto_error err = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sotto_convert_options o = {.format = cases[i].format, .dtype = cases[i].dtype};
        expect(sotto_model_convert(x.source, out, &o, &err), &err, SOTTO_E_ARGUMENT, cases[i].part, cases[i].part);
    }
    const char *symbolic = in_folder(x.folder, "symbolic"), *hard = in_folder(x.folder, "hard");
    assert_true(symlink(path, symbolic) == 0 && link(path, hard) == 0);
    expect(sotto_model_convert(x.source, path, NULL, &err), &err, SOTTO_E_ARGUMENT, "is read", "the input");
    expect(sotto_model_convert(x.source, symbolic, NULL, &err), &err, SOTTO_E_ARGUMENT, "is read",
           "a link to the input");
    expect(sotto_model_convert(x.source, hard, NULL, &err), &err, SOTTO_E_ARGUMENT, "is read",
           "another name of the input");
    expect(sotto_model_convert(x.source, in_folder(x.folder, "no/out"), NULL, &err), &err, SOTTO_E_NOT_FOUND, "no/out",
           "a folder that is missing");
    assert_int_equal(count_files(x.folder), 3);
    close_source(&x);
}

/* Fails after the header is written: nothing must be left. */
static void test_half_written(void **state)
{
    (void)state;
    fixture x = source(64, SOTTO_F16);
    sotto_error err = {0};
    uint8_t *tokens = x.bytes.data;
    while (memcmp(tokens, "tokenizer", 9) != 0)
        tokens++;
    tokens[0] = 'T';
    sotto_model_file *f;
    assert_int_equal(sotto_model_file_open_memory(x.bytes.data, x.bytes.n, "memory", &f, &err), SOTTO_OK);
    const char *out = in_folder(x.folder, "out");
    write_text(x.folder, "out", "before");
    expect(sotto_model_convert(f, out, NULL, &err), &err, SOTTO_E_FORMAT, "tokenizer.ggml.tokens", "no tokens");
    assert_int_equal(count_files(x.folder), 2);
    struct stat info;
    assert_true(stat(out, &info) == 0 && info.st_size == 6);
    sotto_model_file_free(f);
    close_source(&x);
}

static void test_too_large_for_f16(void **state)
{
    (void)state;
    fixture x = source(64, SOTTO_F32);
    sotto_error err = {0};
    sotto_model_tensor t;
    sotto_model_file *f;
    assert_int_equal(sotto_model_file_open_memory(x.bytes.data, x.bytes.n, "memory", &f, &err), SOTTO_OK);
    assert_int_equal(sotto_model_tensor_find(f, "odd.weight", &t), SOTTO_OK);
    memcpy(x.bytes.data + ((const uint8_t *)t.data - x.bytes.data), &(float){70000}, sizeof(float));
    const sotto_convert_options o = {.dtype = "f16"};
    expect(sotto_model_convert(f, in_folder(x.folder, "out"), &o, &err), &err, SOTTO_E_UNSUPPORTED, "odd.weight",
           "70000");
    assert_int_equal(count_files(x.folder), 1);
    sotto_model_file_free(f);
    close_source(&x);
}

/* The real model: numbers of tensors and tokens, and the size that the published file of this type has. */
static void test_base(void **state)
{
    (void)state;
    sotto_model_file *f;
    if (sotto_model_file_open(SOTTO_SOURCE_DIR "/models/base", &f, NULL) != SOTTO_OK)
        skip();
    assert_int_equal(sotto_model_tensor_count(f), 245);
    char *folder = make_folder();
    const char *out = in_folder(folder, "base.bin");
    assert_int_equal(sotto_model_convert(f, out, NULL, NULL), SOTTO_OK);
    struct stat info;
    assert_int_equal(stat(out, &info), 0);
    assert_int_equal(info.st_size, 147951465);
    sotto_model_file *g = must_open(out);
    check_values(f, g);
    sotto_model_file_free(g);
    sotto_model_file_free(f);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type),   cmocka_unit_test(test_keep),
        cmocka_unit_test(test_requantizing), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_half_written), cmocka_unit_test(test_too_large_for_f16),
        cmocka_unit_test(test_base),
    };
    return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
