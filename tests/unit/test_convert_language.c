/* Converting whole models that write text: elements, metadata, threads, importance and parts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/quant.h"
#include "unit/formats_support.h"

enum { WIDTH = 256, ROWS = 300 };

static const struct {
    const char *name;
    int n_dims, rows;
} tensors[] = {
    {"token_embd.weight", 2, 40},       {"output_norm.weight", 1, 1},     {"blk.0.attn_q.weight", 2, ROWS},
    {"blk.0.attn_v.weight", 2, 2},      {"blk.0.attn_norm.weight", 1, 1}, {"blk.0.attn_v.bias", 1, 1},
    {"blk.0.attn_output.weight", 2, 3}, {"blk.0.ffn_down.weight", 2, 5},
};
enum { N = sizeof tensors / sizeof *tensors };

static float value(int tensor, int i)
{
    uint32_t s = (uint32_t)(tensor * 1000003 + i + 1) * 2654435761u;
    s ^= s >> 15;
    s *= 2246822519u;
    return ((float)(s >> 16) - 32768) / 32768;
}

/* What a copy must keep byte for byte: a bool, numbers of 64 bits, arrays of small numbers, an array of arrays. */
static blob odd_values(void)
{
    blob b = {0};
    blob_text(&b, "odd.bool", 8);
    blob_number(&b, 7, 4);
    blob_number(&b, 1, 1);
    blob_text(&b, "odd.f64", 8);
    blob_number(&b, 12, 4);
    blob_number(&b, 0x3fb999999999999au, 8);
    blob_text(&b, "odd.u8s", 8);
    blob_number(&b, 9, 4);
    blob_number(&b, 0, 4);
    blob_number(&b, 3, 8);
    blob_number(&b, 0x030201, 3);
    blob_text(&b, "odd.nested", 8);
    blob_number(&b, 9, 4);
    blob_number(&b, 9, 4);
    blob_number(&b, 1, 8);
    blob_number(&b, 8, 4);
    blob_number(&b, 1, 8);
    blob_text(&b, "in", 8);
    return b;
}

static void put_number(blob *b, const char *key, uint32_t n)
{
    blob_text(b, key, 8);
    blob_number(b, 4, 4);
    blob_number(b, n, 4);
}

static blob model(void)
{
    blob b = {0}, odd = odd_values();
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, N, 8);
    blob_number(&b, 9, 8);
    blob_text(&b, "general.architecture", 8);
    blob_number(&b, 8, 4);
    blob_text(&b, "llama", 8);
    put_number(&b, "llama.block_count", 1);
    put_number(&b, "llama.attention.head_count", 4);
    put_number(&b, "general.file_type", 0);
    put_number(&b, "split.count", 0);
    blob_bytes(&b, odd.data, odd.n);
    blob_free(&odd);
    uint64_t offset = 0;
    for (int i = 0; i < N; i++) {
        blob_text(&b, tensors[i].name, 8);
        blob_number(&b, (uint64_t)tensors[i].n_dims, 4);
        blob_number(&b, WIDTH, 8);
        if (tensors[i].n_dims == 2)
            blob_number(&b, (uint64_t)tensors[i].rows, 8);
        blob_number(&b, 0, 4);
        blob_number(&b, offset, 8);
        offset += (uint64_t)tensors[i].rows * WIDTH * 4;
    }
    while (b.n % 32 != 0)
        blob_number(&b, 0, 1);
    for (int i = 0; i < N; i++)
        for (int k = 0; k < tensors[i].rows * WIDTH; k++)
            blob_f32(&b, value(i, k));
    return b;
}

static blob read_back(const char *folder, const char *name)
{
    blob b = {0};
    uint8_t bytes[4096];
    size_t n;
    FILE *f = fopen(in_folder(folder, name), "rb");
    assert_non_null(f);
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0)
        blob_bytes(&b, bytes, n);
    fclose(f);
    return b;
}

static void convert(const sotto_model_file *f, const char *folder, const char *name, sotto_convert_options o)
{
    sotto_error err = {0};
    if (sotto_model_convert(f, in_folder(folder, name), &o, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

static bool holds(const blob *b, const blob *part)
{
    for (size_t i = 0; i + part->n <= b->n; i++)
        if (memcmp(b->data + i, part->data, part->n) == 0)
            return true;
    return false;
}

/* Elements are what packing gives, row by row; one-dimensional tensors stay. */
static void check_elements(const sotto_model_file *f)
{
    for (int i = 0; i < N; i++) {
        sotto_model_tensor t;
        float x[WIDTH];
        uint8_t packed[WIDTH * 4];
        assert_int_equal(sotto_model_tensor_find(f, tensors[i].name, &t), SOTTO_OK);
        const size_t bytes = sotto_dtype_row_bytes(t.dtype, WIDTH);
        assert_true(tensors[i].n_dims == 2 || t.dtype == SOTTO_F32);
        for (int r = 0; r < tensors[i].rows; r++) {
            for (int k = 0; k < WIDTH; k++)
                x[k] = value(i, r * WIDTH + k);
            assert_true(sotto_row_from_f32(t.dtype, x, packed, WIDTH));
            assert_memory_equal((const uint8_t *)t.data + (size_t)r * bytes, packed, bytes);
        }
    }
}

static void threads_make_no_difference(void **state)
{
    (void)state;
    char *folder = make_folder();
    blob source = model(), odd = odd_values();
    write_blob(folder, "source", &source);
    sotto_model_file *f = must_open(in_folder(folder, "source"));
    static const char *const mixes[] = {NULL, "f16", "q4_k_m", "q2_k", "q8_0"};
    static const int64_t file_types[] = {0, 1, 15, 10, 7};
    for (size_t m = 0; m < sizeof mixes / sizeof *mixes; m++) {
        convert(f, folder, "one", (sotto_convert_options){.dtype = mixes[m], .threads = 1});
        convert(f, folder, "many", (sotto_convert_options){.dtype = mixes[m], .threads = 7});
        blob a = read_back(folder, "one"), b = read_back(folder, "many");
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.data, b.data, a.n);
        assert_true(holds(&a, &odd));
        sotto_model_file *g = must_open(in_folder(folder, "one"));
        check_elements(g);
        int64_t type;
        assert_int_equal(sotto_meta_int(g, "general.file_type", &type, NULL), SOTTO_OK);
        assert_int_equal(type, file_types[m]);
        assert_int_equal(sotto_meta_int(g, "split.count", &type, NULL), SOTTO_E_NOT_FOUND);
        assert_string_equal(sotto_model_file_format(g), "gguf"); /* whatever the name */
        sotto_model_file_free(g);
        blob_free(&a);
        blob_free(&b);
    }
    sotto_model_file_free(f);
    blob_free(&source);
    blob_free(&odd);
    remove_folder(folder);
}

static double error_of(const sotto_model_file *f, int tensor, int column_step)
{
    int64_t n;
    double sum = 0;
    float *got = tensor_values(f, tensors[tensor].name, &n);
    for (int k = 0; k < tensors[tensor].rows * WIDTH; k += column_step)
        sum += pow((double)(got[k] - value(tensor, k)), 2);
    free(got);
    return sum;
}

static void importance_is_used(void **state)
{
    (void)state;
    enum { QUERY = 2, EVERY = 8 };
    char *folder = make_folder();
    blob source = model();
    write_blob(folder, "source", &source);
    sotto_model_file *f = must_open(in_folder(folder, "source"));
    sotto_imatrix *m;
    float squares[WIDTH];
    sotto_error err = {0};
    assert_int_equal(sotto_imatrix_create(&m, NULL), SOTTO_OK);
    for (int i = 0; i < WIDTH; i++)
        squares[i] = i % EVERY == 0 ? 100 : 0.01f;
    assert_int_equal(sotto_imatrix_add(m, tensors[QUERY].name, WIDTH, squares, 50, NULL), SOTTO_OK);
    assert_int_equal(sotto_imatrix_describe(m, "a text", 3, 512, NULL), SOTTO_OK);
    convert(f, folder, "plain", (sotto_convert_options){.dtype = "q4_k_m"});
    convert(f, folder, "weighted", (sotto_convert_options){.dtype = "q4_k_m", .importance = m});
    sotto_model_file *a = must_open(in_folder(folder, "plain")), *b = must_open(in_folder(folder, "weighted"));
    assert_true(error_of(b, QUERY, EVERY) < 0.7 * error_of(a, QUERY, EVERY));
    assert_true(error_of(b, QUERY + 1, 1) == error_of(a, QUERY + 1, 1)); /* of which nothing is known */
    int64_t n;
    assert_int_equal(sotto_meta_int(b, "quantize.imatrix.chunks_count", &n, NULL), SOTTO_OK);
    assert_int_equal(n, 3);
    assert_int_equal(sotto_meta_int(a, "quantize.imatrix.chunks_count", &n, NULL), SOTTO_E_NOT_FOUND);
    /* a copy keeps what is said of the types, another type with other importance says it anew */
    convert(b, folder, "copy", (sotto_convert_options){.dtype = NULL});
    convert(b, folder, "again", (sotto_convert_options){.dtype = "q5_k_m", .importance = m, .requantize = true});
    sotto_model_file *c = must_open(in_folder(folder, "copy")), *d = must_open(in_folder(folder, "again"));
    assert_int_equal(sotto_meta_int(c, "quantize.imatrix.chunks_count", &n, NULL), SOTTO_OK);
    assert_int_equal(sotto_meta_int(d, "quantize.imatrix.chunks_count", &n, NULL), SOTTO_OK);
    expect(sotto_model_convert(b, in_folder(folder, "no"), &(sotto_convert_options){.dtype = "q5_k_m"}, &err), &err,
           SOTTO_E_ARGUMENT, "quantised already", "not asked for");
    sotto_model_file_free(d);
    sotto_model_file_free(c);
    sotto_model_file_free(b);
    sotto_model_file_free(a);
    /* of another model */
    assert_int_equal(sotto_imatrix_add(m, tensors[QUERY + 1].name, 3, squares, 50, NULL), SOTTO_OK);
    const sotto_convert_options o = {.dtype = "q4_k_m", .importance = m};
    expect(sotto_model_convert(f, in_folder(folder, "no"), &o, &err), &err, SOTTO_E_ARGUMENT, "has 3 columns",
           "another width");
    sotto_imatrix_free(m);
    sotto_model_file_free(f);
    blob_free(&source);
    remove_folder(folder);
}

static void numbers_that_blocks_cannot_hold(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, 70000};
    static const char *const mixes[] = {"q4_k_m", "q8_0", "iq4_nl"};
    char *folder = make_folder();
    blob source = model();
    for (int i = 0; i < 3; i++)
        for (int m = 0; m < 3; m++) {
            sotto_model_file *f;
            sotto_model_tensor t;
            sotto_error err = {0};
            assert_int_equal(sotto_model_file_open_memory(source.data, source.n, "m", &f, NULL), SOTTO_OK);
            assert_int_equal(sotto_model_tensor_find(f, "blk.0.attn_q.weight", &t), SOTTO_OK);
            uint8_t *at = source.data + ((const uint8_t *)t.data - source.data) + 4 * (ROWS * WIDTH - 1);
            float before;
            memcpy(&before, at, 4);
            memcpy(at, &bad[i], 4);
            const sotto_convert_options o = {.dtype = mixes[m], .threads = 3};
            expect(sotto_model_convert(f, in_folder(folder, "out"), &o, &err), &err, SOTTO_E_UNSUPPORTED,
                   "blk.0.attn_q.weight", mixes[m]);
            memcpy(at, &before, 4);
            sotto_model_file_free(f);
        }
    assert_int_equal(count_files(folder), 0);
    blob_free(&source);
    remove_folder(folder);
}

static bool stop_at_second(void *user)
{
    return ++*(int *)user > 2;
}

static void stopping_leaves_nothing(void **state)
{
    (void)state;
    char *folder = make_folder();
    blob source = model();
    sotto_model_file *f;
    sotto_error err = {0};
    int asked = 0;
    assert_int_equal(sotto_model_file_open_memory(source.data, source.n, "m", &f, NULL), SOTTO_OK);
    const sotto_convert_options o = {.dtype = "q4_k_m", .abort = stop_at_second, .abort_user = &asked};
    expect(sotto_model_convert(f, in_folder(folder, "out"), &o, &err), &err, SOTTO_E_ABORTED, "stopped", "stopped");
    assert_int_equal(count_files(folder), 0);
    sotto_model_file_free(f);
    blob_free(&source);
    remove_folder(folder);
}

/* Speech models take the mixes too, in GGUF; the token embedding is their output matrix. */
static void speech_takes_mixes(void **state)
{
    (void)state;
    char *folder = make_folder();
    blob source = whisper_gguf(512, SOTTO_F16);
    write_blob(folder, "source", &source);
    sotto_model_file *f = must_open(in_folder(folder, "source"));
    convert(f, folder, "mix.gguf", (sotto_convert_options){.dtype = "q4_k_m"});
    sotto_model_file *g = must_open(in_folder(folder, "mix.gguf"));
    sotto_model_tensor t;
    int64_t type;
    assert_int_equal(sotto_model_tensor_find(g, "decoder.token_embedding.weight", &t), SOTTO_OK);
    assert_int_equal(t.dtype, SOTTO_Q6_K);
    assert_int_equal(sotto_model_tensor_find(g, "encoder.blocks.0.attn.query.weight", &t), SOTTO_OK);
    assert_int_equal(t.dtype, SOTTO_Q4_K);
    assert_int_equal(sotto_model_tensor_find(g, "odd.weight", &t), SOTTO_OK);
    assert_int_equal(t.dtype, SOTTO_F16);
    assert_int_equal(sotto_meta_int(g, "general.file_type", &type, NULL), SOTTO_OK);
    assert_int_equal(type, 15);
    sotto_model_file_free(g);
    sotto_model_file_free(f);
    blob_free(&source);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_make_no_difference),
        cmocka_unit_test(importance_is_used),
        cmocka_unit_test(numbers_that_blocks_cannot_hold),
        cmocka_unit_test(stopping_leaves_nothing),
        cmocka_unit_test(speech_takes_mixes),
    };
    return cmocka_run_group_tests_name("convert_language", tests, NULL, NULL);
}
