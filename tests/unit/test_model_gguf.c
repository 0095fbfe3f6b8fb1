/* GGUF: every kind of value, and one small file for each way of being wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/formats_support.h"

/* Header of version 3 with the two counts. */
static blob start(uint64_t n_tensors, uint64_t n_keys)
{
    blob b = {0};
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, n_tensors, 8);
    blob_number(&b, n_keys, 8);
    return b;
}

static void put_key(blob *b, const char *key, uint32_t type)
{
    blob_text(b, key, 8);
    blob_number(b, type, 4);
}

typedef struct info {
    const char *name;
    uint32_t n_dims;
    uint64_t dim[5];
    uint32_t type;
    uint64_t offset;
} info;

static void put_info(blob *b, info t)
{
    blob_text(b, t.name, 8);
    blob_number(b, t.n_dims, 4);
    for (uint32_t i = 0; i < t.n_dims && i < 5; i++)
        blob_number(b, t.dim[i], 8);
    blob_number(b, t.type, 4);
    blob_number(b, t.offset, 8);
}

static void put_data(blob *b, size_t alignment, int n)
{
    while (b->n % alignment != 0)
        blob_number(b, 0, 1);
    for (int i = 0; i < n; i++)
        blob_f32(b, (float)i);
}

static void expect_blob(blob *b, sotto_status want, const char *part, const char *label)
{
    sotto_error err;
    expect(try_memory(b->data, b->n, &err), &err, want, part, label);
    blob_free(b);
}

/* ---- what is right ---- */

static const struct {
    const char *key;
    uint32_t type;
    uint64_t bits;
    int bytes;
    int64_t value;
} wholes[] = {
    {"u8", 0, 200, 1, 200},
    {"i8", 1, 0x80, 1, -128},
    {"u16", 2, 65535, 2, 65535},
    {"i16", 3, 0x8000, 2, -32768},
    {"u32", 4, 0xffffffff, 4, 4294967295},
    {"i32", 5, 0xffffffff, 4, -1},
    {"bool", 7, 1, 1, 1},
    {"u64", 10, 1, 8, 1},
    {"i64", 11, UINT64_MAX, 8, -1},
};
enum { N_WHOLES = sizeof wholes / sizeof *wholes };

static void test_values(void **state)
{
    (void)state;
    blob b = start(0, N_WHOLES + N_WHOLES + 5);
    for (int i = 0; i < N_WHOLES; i++) {
        put_key(&b, wholes[i].key, wholes[i].type);
        blob_number(&b, wholes[i].bits, wholes[i].bytes);
    }
    for (int i = 0; i < N_WHOLES; i++) {
        char key[16] = "array.";
        strcat(key, wholes[i].key);
        put_key(&b, key, 9);
        blob_number(&b, wholes[i].type, 4);
        blob_number(&b, 2, 8);
        blob_number(&b, wholes[i].bits, wholes[i].bytes);
        blob_number(&b, 1, wholes[i].bytes);
    }
    put_key(&b, "f32", 6);
    blob_f32(&b, 1.5f);
    put_key(&b, "f64", 12);
    blob_number(&b, 0x3ff8000000000000u, 8); /* 1.5 */
    put_key(&b, "text", 8);
    blob_text(&b, "", 8);
    put_key(&b, "texts", 9);
    blob_number(&b, 8, 4);
    blob_number(&b, 2, 8);
    blob_text(&b, "one", 8);
    blob_text(&b, "", 8);
    put_key(&b, "none", 9);
    blob_number(&b, 6, 4);
    blob_number(&b, 0, 8);
    sotto_model_file *f;
    sotto_error err = {0};
    if (sotto_model_file_open_memory(b.data, b.n, "memory", &f, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    int64_t value, n;
    const int64_t *ints;
    for (int i = 0; i < N_WHOLES; i++) {
        char key[16] = "array.";
        strcat(key, wholes[i].key);
        assert_int_equal(sotto_meta_int(f, wholes[i].key, &value, &err), SOTTO_OK);
        assert_true(value == wholes[i].value);
        assert_int_equal(sotto_meta_ints(f, key, &ints, &n, &err), SOTTO_OK);
        assert_int_equal(n, 2);
        assert_true(ints[0] == wholes[i].value && ints[1] == 1);
    }
    double real;
    assert_int_equal(sotto_meta_float(f, "f32", &real, &err), SOTTO_OK);
    assert_true(real == 1.5);
    assert_int_equal(sotto_meta_float(f, "f64", &real, &err), SOTTO_OK);
    assert_true(real == 1.5);
    const char *text;
    size_t length;
    assert_int_equal(sotto_meta_string(f, "text", &text, &length, &err), SOTTO_OK);
    assert_int_equal(length, 0);
    assert_int_equal(sotto_meta_string_at(f, "texts", 0, &text, &length, &err), SOTTO_OK);
    assert_memory_equal(text, "one", 3);
    const float *floats;
    assert_int_equal(sotto_meta_floats(f, "none", &floats, &n, &err), SOTTO_OK);
    assert_int_equal(n, 0);
    sotto_model_file_free(f);
    blob_free(&b);
}

static blob two_tensors(void)
{
    blob b = start(2, 1);
    put_key(&b, "general.alignment", 4);
    blob_number(&b, 64, 4);
    put_info(&b, (info){"a", 2, {3, 2}, 0, 64});
    put_info(&b, (info){"b", 0, {0}, 0, 0});
    put_data(&b, 64, 1);
    put_data(&b, 64, 6);
    return b;
}

static void test_tensors(void **state)
{
    (void)state;
    blob b = two_tensors();
    sotto_model_file *f;
    sotto_error err = {0};
    if (sotto_model_file_open_memory(b.data, b.n, "memory", &f, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    int64_t n;
    float *values = tensor_values(f, "a", &n);
    assert_int_equal(n, 6);
    for (int i = 0; i < 6; i++)
        assert_true(values[i] == (float)i);
    free(values);
    sotto_model_file_free(f);
    memcpy(b.data + 4, &(uint32_t){2}, 4);
    expect(try_memory(b.data, b.n, &err), &err, SOTTO_OK, "", "version 2");
    blob_free(&b);
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    blob b = two_tensors(), w = whisper_gguf(32, SOTTO_F16);
    for (size_t n = 0; n <= b.n; n++) {
        sotto_error err;
        const sotto_status status = try_memory(b.data, n, &err);
        if (status != (n == b.n ? SOTTO_OK : SOTTO_E_FORMAT))
            fail_msg("%zu of %zu bytes: %s %s", n, b.n, sotto_status_name(status), err.text);
    }
    for (size_t n = 0; n < w.n; n++) {
        sotto_error err;
        if (try_memory(w.data, n, &err) != SOTTO_E_FORMAT)
            fail_msg("%zu of %zu bytes: %s", n, w.n, err.text);
    }
    blob_free(&b);
    blob_free(&w);
}

static void put_array_head(blob *b, uint32_t type, uint64_t n)
{
    blob_number(b, type, 4);
    blob_number(b, n, 8);
}

/* Arrays in arrays are passed over; what follows them is found. */
static void test_nested_arrays(void **state)
{
    (void)state;
    blob b = start(0, 2);
    put_key(&b, "nested", 9);
    put_array_head(&b, 9, 3);
    put_array_head(&b, 8, 2);
    blob_text(&b, "one", 8);
    blob_text(&b, "", 8);
    put_array_head(&b, 9, 1);
    put_array_head(&b, 1, 3);
    blob_number(&b, 0x010203, 3);
    put_array_head(&b, 6, 0);
    const size_t end = b.n;
    put_key(&b, "after", 4);
    blob_number(&b, 7, 4);
    sotto_model_file *f;
    sotto_error err = {0};
    if (sotto_model_file_open_memory(b.data, b.n, "memory", &f, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    int64_t value, n;
    const int64_t *ints;
    assert_int_equal(sotto_meta_int(f, "after", &value, &err), SOTTO_OK);
    assert_int_equal(value, 7);
    assert_int_equal(sotto_meta_ints(f, "nested", &ints, &n, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "array of arrays"));
    sotto_meta about;
    assert_int_equal(sotto_meta_get(f, 0, &about), SOTTO_OK);
    assert_int_equal(about.kind, SOTTO_META_NESTED);
    assert_int_equal(about.count, 3);
    sotto_model_file_free(f);
    for (size_t cut = 0; cut < b.n; cut++)
        if (try_memory(b.data, cut, &err) != SOTTO_E_FORMAT)
            fail_msg("%zu of %zu bytes (%zu): %s", cut, b.n, end, err.text);
    blob_free(&b);

    blob deep = start(0, 1);
    put_key(&deep, "deep", 9);
    for (int i = 0; i < 100; i++)
        put_array_head(&deep, 9, 1);
    blob_number(&deep, 0, 8);
    expect_blob(&deep, SOTTO_E_UNSUPPORTED, "deep", "arrays in arrays in arrays");
}

/* A type that nothing computes with is listed, and named where the tensor is needed. */
static void test_types_only_listed(void **state)
{
    (void)state;
    blob b = start(2, 0);
    put_info(&b, (info){"strange", 2, {256, 2}, 16, 0});
    put_info(&b, (info){"known", 1, {2}, 0, 160});
    put_data(&b, 32, 42);
    sotto_model_file *f;
    sotto_error err = {0};
    if (sotto_model_file_open_memory(b.data, b.n, "memory", &f, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    sotto_model_tensor t;
    assert_int_equal(sotto_model_tensor_get(f, 0, &t), SOTTO_OK);
    assert_string_equal(sotto_model_dtype_name(t.dtype), "iq2_xxs");
    assert_int_equal(t.bytes, 2 * 66);
    assert_int_equal(sotto_model_tensor_find(f, "strange", &t), SOTTO_E_UNSUPPORTED);
    assert_int_equal(sotto_model_tensor_need(f, "strange", &t, &err), SOTTO_E_UNSUPPORTED);
    assert_non_null(strstr(err.text, "strange: elements of type iq2_xxs"));
    float values[256];
    assert_int_equal(sotto_model_tensor_f32(&t, 0, 1, values, &err), SOTTO_E_UNSUPPORTED);
    assert_int_equal(sotto_model_tensor_need(f, "known", &t, &err), SOTTO_OK);
    assert_int_equal(sotto_model_tensor_need(f, "none", &t, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "none: missing"));
    assert_int_equal(sotto_model_tensor_need(NULL, "none", &t, &err), SOTTO_E_ARGUMENT);
    sotto_model_file_free(f);
    blob_free(&b);
}

/* The numbers and sizes of the `gguf` package. */
static void test_names_of_types(void **state)
{
    (void)state;
    static const char *const names[] = {
        "f32",   "f16",    "q4_0",  "q4_1", NULL,   NULL,      "q5_0",   "q5_1",    "q8_0",  "q8_1",   "q2_k",
        "q3_k",  "q4_k",   "q5_k",  "q6_k", "q8_k", "iq2_xxs", "iq2_xs", "iq3_xxs", "iq1_s", "iq4_nl", "iq3_s",
        "iq2_s", "iq4_xs", "i8",    "i16",  "i32",  "i64",     "f64",    "iq1_m",   "bf16",  NULL,     NULL,
        NULL,    "tq1_0",  "tq2_0", NULL,   NULL,   NULL,      "mxfp4",  "nvfp4",   "q1_0",  "q2_0",   NULL,
    };
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        const char *name = sotto_model_dtype_name((sotto_dtype)i);
        if (!name || !names[i])
            assert_true(name == names[i]);
        else
            assert_string_equal(name, names[i]);
    }
    assert_null(sotto_model_dtype_name((sotto_dtype)-1));
}

/* ---- models in parts ---- */

typedef struct part_recipe {
    int64_t no, count, tensors; /* of split.*; -1: without the key */
    const char *tensor;
    float value;
} part_recipe;

static void write_part(const char *folder, const char *name, part_recipe r)
{
    blob b = start(r.tensor != NULL, (uint64_t)(r.no >= 0) + (r.count >= 0) + (r.tensors >= 0) + 1);
    if (r.no >= 0) {
        put_key(&b, "split.no", 2);
        blob_number(&b, (uint64_t)r.no, 2);
    }
    if (r.count >= 0) {
        put_key(&b, "split.count", 2);
        blob_number(&b, (uint64_t)r.count, 2);
    }
    if (r.tensors >= 0) {
        put_key(&b, "split.tensors.count", 5);
        blob_number(&b, (uint64_t)r.tensors, 4);
    }
    put_key(&b, "number", 4);
    blob_number(&b, (uint64_t)r.no, 4);
    if (r.tensor) {
        put_info(&b, (info){r.tensor, 1, {1}, 0, 0});
        put_data(&b, 32, 0);
        blob_f32(&b, r.value);
    }
    write_blob(folder, name, &b);
    blob_free(&b);
}

static void test_parts(void **state)
{
    (void)state;
    char *folder = make_folder();
    write_part(folder, "m-00001-of-00003.gguf", (part_recipe){0, 3, 2, NULL, 0});
    write_part(folder, "m-00002-of-00003.gguf", (part_recipe){1, 3, -1, "a", 5});
    write_part(folder, "m-00003-of-00003.gguf", (part_recipe){2, 3, -1, "b", 6});
    sotto_model_file *f = must_open(in_folder(folder, "m-00001-of-00003.gguf"));
    int64_t n, number;
    assert_int_equal(sotto_model_tensor_count(f), 2);
    float *a = tensor_values(f, "a", &n), *b = tensor_values(f, "b", &n);
    assert_true(a[0] == 5 && b[0] == 6);
    assert_int_equal(sotto_meta_int(f, "number", &number, NULL), SOTTO_OK);
    assert_int_equal(number, 0);
    free(a);
    free(b);
    sotto_model_file_free(f);
    remove_folder(folder);
}

static void test_bad_parts(void **state)
{
    (void)state;
    static const struct {
        const char *label, *open, *second; /* second: the name of the second file, NULL for none */
        part_recipe first_part, second_part;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"right", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf", {0, 2, 2, "a", 0}, {1, 2, 2, "b", 0}, SOTTO_OK, ""},
        {"one part", "any name", NULL, {0, 1, 1, "a", 0}, {0}, SOTTO_OK, ""},
        {"the second part opened",
         "m-00002-of-00002.gguf",
         NULL,
         {1, 2, 2, "a", 0},
         {0},
         SOTTO_E_ARGUMENT,
         "open the first, m-00001-of-00002.gguf"},
        {"the second part under another name",
         "x.gguf",
         NULL,
         {1, 2, 2, "a", 0},
         {0},
         SOTTO_E_ARGUMENT,
         "ends with -00001-of-00002.gguf"},
        {"another name", "x.gguf", NULL, {0, 2, 2, "a", 0}, {0}, SOTTO_E_FORMAT, "-00001-of-00002.gguf"},
        {"no name before the ending",
         "-00001-of-00002.gguf",
         "-00002-of-00002.gguf",
         {0, 2, 2, "a", 0},
         {1, 2, 2, "b", 0},
         SOTTO_OK,
         ""},
        {"a part is missing",
         "m-00001-of-00002.gguf",
         NULL,
         {0, 2, 2, "a", 0},
         {0},
         SOTTO_E_NOT_FOUND,
         "m-00002-of-00002.gguf"},
        {"a part of another number",
         "m-00001-of-00002.gguf",
         "m-00002-of-00002.gguf",
         {0, 2, 2, "a", 0},
         {0, 2, 2, "b", 0},
         SOTTO_E_FORMAT,
         "is part 1 of 2, expected part 2 of 2"},
        {"a part of another model",
         "m-00001-of-00002.gguf",
         "m-00002-of-00002.gguf",
         {0, 2, 2, "a", 0},
         {1, 3, 2, "b", 0},
         SOTTO_E_FORMAT,
         "is part 2 of 3"},
        {"a file that is no part",
         "m-00001-of-00002.gguf",
         "m-00002-of-00002.gguf",
         {0, 2, 2, "a", 0},
         {-1, -1, -1, "b", 0},
         SOTTO_E_FORMAT,
         "m-00002-of-00002.gguf"},
        {"too few tensors",
         "m-00001-of-00002.gguf",
         "m-00002-of-00002.gguf",
         {0, 2, 3, "a", 0},
         {1, 2, 2, "b", 0},
         SOTTO_E_FORMAT,
         "split.tensors.count: 3"},
        {"a tensor twice",
         "m-00001-of-00002.gguf",
         "m-00002-of-00002.gguf",
         {0, 2, 2, "a", 0},
         {1, 2, 2, "a", 0},
         SOTTO_E_FORMAT,
         "twice"},
        {"a number beyond the count", "m-00001-of-00002.gguf", NULL, {2, 2, 2, "a", 0}, {0}, SOTTO_E_FORMAT, "split.no: 2"},
        {"65535 parts", "m-00001-of-65535.gguf", NULL, {0, 65535, 2, "a", 0}, {0}, SOTTO_E_NOT_FOUND, "part 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *folder = make_folder();
        write_part(folder, cases[i].open, cases[i].first_part);
        if (cases[i].second)
            write_part(folder, cases[i].second, cases[i].second_part);
        sotto_error err;
        expect(try_path(in_folder(folder, cases[i].open), &err), &err, cases[i].status, cases[i].part, cases[i].label);
        remove_folder(folder);
    }
    blob b = start(0, 1);
    put_key(&b, "split.count", 2);
    blob_number(&b, 2, 2);
    expect_blob(&b, SOTTO_E_FORMAT, "first of 2 parts", "parts in memory");
    b = start(0, 1);
    put_key(&b, "split.count", 8);
    blob_text(&b, "2", 8);
    expect_blob(&b, SOTTO_E_FORMAT, "split.count", "a count that is a text");
    b = start(0, 1);
    put_key(&b, "split.count", 4);
    blob_number(&b, 65536, 4);
    expect_blob(&b, SOTTO_E_FORMAT, "split.count", "65536 parts");
}

/* A part cut anywhere is refused, and so is a part that is a text. */
static void test_cut_part(void **state)
{
    (void)state;
    char *folder = make_folder();
    write_part(folder, "m-00001-of-00002.gguf", (part_recipe){0, 2, 2, "a", 0});
    write_part(folder, "m-00002-of-00002.gguf", (part_recipe){1, 2, 2, "b", 0});
    uint8_t bytes[512];
    FILE *in = fopen(in_folder(folder, "m-00002-of-00002.gguf"), "rb");
    assert_non_null(in);
    const size_t n = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(folder, "m-00002-of-00002.gguf", bytes, cut);
        sotto_error err;
        if (try_path(in_folder(folder, "m-00001-of-00002.gguf"), &err) != SOTTO_E_FORMAT)
            fail_msg("%zu of %zu bytes: %s", cut, n, err.text);
    }
    remove_folder(folder);
}

typedef struct warnings {
    const char *expected; /* a part of each */
    int count;
} warnings;

static void count_warnings(void *user, sotto_log_level level, const char *text)
{
    warnings *w = user;
    assert_int_equal(level, SOTTO_LOG_WARNING);
    assert_non_null(strstr(text, w->expected));
    w->count++;
}

/* Read instead of mapped, the values stay when the file is cut; locked or refused by the system, they are the same. What is
 * read is not locked. */
static void test_options(void **state)
{
    (void)state;
    char *folder = make_folder();
    blob b = two_tensors();
    write_blob(folder, "model", &b);
    for (int i = 0; i < 4; i++) {
        warnings w = {i == 3 ? "mlock has no effect" : "cannot keep", 0};
        const sotto_model_file_options o = {i & 1, i & 2, {count_warnings, &w}};
        sotto_model_file *f;
        sotto_error err;
        if (sotto_model_file_open_with(in_folder(folder, "model"), &o, &f, &err) != SOTTO_OK)
            fail_msg("%s", err.text);
        assert_in_range(w.count, i == 3 ? 1 : 0, i & 2 ? 1 : 0);
        sotto_model_tensor t;
        assert_int_equal(sotto_model_tensor_find(f, "a", &t), SOTTO_OK);
        sotto_model_tensor_release(f, &t);
        if (o.no_mmap)
            write_file(folder, "model", "", 0);
        int64_t n;
        float *values = tensor_values(f, "a", &n);
        for (int k = 0; k < 6; k++)
            assert_true(values[k] == (float)k);
        free(values);
        sotto_model_file_free(f);
        write_blob(folder, "model", &b);
    }
    blob_free(&b);
    remove_folder(folder);
}

/* ---- what is wrong ---- */

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        uint64_t n_tensors, n_keys;
        sotto_status status;
        const char *part;
    } cases[] = {
        {0, 0, 0, SOTTO_E_UNSUPPORTED, "version 0"},
        {1, 0, 0, SOTTO_E_UNSUPPORTED, "version 1"},
        {4, 0, 0, SOTTO_E_UNSUPPORTED, "version 4"},
        {0x03000000, 0, 0, SOTTO_E_UNSUPPORTED, "big-endian"},
        {3, 0, 0, SOTTO_OK, ""},
        {3, UINT64_MAX, 0, SOTTO_E_FORMAT, "tensors"},
        {3, 0, UINT64_MAX, SOTTO_E_FORMAT, "keys"},
        {3, 1, 0, SOTTO_E_FORMAT, "left"},
        {3, UINT64_C(1) << 60, UINT64_C(1) << 60, SOTTO_E_FORMAT, "left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = {0};
        blob_bytes(&b, "GGUF", 4);
        blob_number(&b, cases[i].version, 4);
        blob_number(&b, cases[i].n_tensors, 8);
        blob_number(&b, cases[i].n_keys, 8);
        expect_blob(&b, cases[i].status, cases[i].part, cases[i].part);
    }
}

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        const char *key;
        uint64_t key_length; /* 0: that of key */
        uint32_t type, element;
        uint64_t n;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"an empty key", "", 0, 4, 0, 0, SOTTO_E_FORMAT, "a key"},
        {"a key of 1 GiB", "k", 1 << 30, 4, 0, 0, SOTTO_E_FORMAT, "left"},
        {"a key of SIZE_MAX", "k", UINT64_MAX, 4, 0, 0, SOTTO_E_FORMAT, "left"},
        {"value type 13", "k", 0, 13, 0, 0, SOTTO_E_FORMAT, "type 13"},
        {"value type 4294967295", "k", 0, UINT32_MAX, 0, 0, SOTTO_E_FORMAT, "type"},
        {"a text of 1 GiB", "k", 0, 8, 0, 0, SOTTO_E_FORMAT, "left"},
        {"an array of arrays", "k", 0, 9, 9, 1, SOTTO_E_FORMAT, "left"},
        {"an array of type 13", "k", 0, 9, 13, 1, SOTTO_E_FORMAT, "type 13"},
        {"an array of SIZE_MAX", "k", 0, 9, 0, UINT64_MAX, SOTTO_E_FORMAT, "left"},
        {"an array whose size overflows", "k", 0, 9, 10, (UINT64_C(1) << 61) + 1, SOTTO_E_FORMAT, "left"},
        {"an array of 1 GiB of texts", "k", 0, 9, 8, 1 << 30, SOTTO_E_FORMAT, "left"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = start(0, 1);
        blob_number(&b, cases[i].key_length ? cases[i].key_length : strlen(cases[i].key), 8);
        blob_bytes(&b, cases[i].key, strlen(cases[i].key));
        blob_number(&b, cases[i].type, 4);
        if (cases[i].type == 9)
            blob_number(&b, cases[i].element, 4);
        blob_number(&b, cases[i].type == 8 ? UINT64_C(1) << 30 : cases[i].n, 8);
        blob_number(&b, 0, 8);
        expect_blob(&b, cases[i].status, cases[i].part, cases[i].label);
    }
    blob b = start(0, 2);
    for (int i = 0; i < 2; i++) {
        put_key(&b, "same", 4);
        blob_number(&b, 1, 4);
    }
    expect_blob(&b, SOTTO_E_FORMAT, "twice", "a key that is there twice");
}

static void test_alignments(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        uint32_t type;
        uint64_t value;
        int bytes;
        sotto_status status;
    } cases[] = {
        {"0", 4, 0, 4, SOTTO_E_FORMAT},
        {"3", 4, 3, 4, SOTTO_E_FORMAT},
        {"2^30", 4, 1 << 30, 4, SOTTO_E_FORMAT},
        {"2^31", 4, UINT64_C(1) << 31, 4, SOTTO_E_FORMAT},
        {"a text", 8, 0, 8, SOTTO_E_FORMAT},
        {"64 bits", 10, 32, 8, SOTTO_E_FORMAT},
        {"a float", 6, 0x42000000, 4, SOTTO_E_FORMAT},
        {"8", 4, 8, 4, SOTTO_OK},
        {"1", 4, 1, 4, SOTTO_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = start(1, 1);
        put_key(&b, "general.alignment", cases[i].type);
        blob_number(&b, cases[i].value, cases[i].bytes);
        put_info(&b, (info){"a", 1, {4}, 0, 0});
        put_data(&b, 8, 4);
        expect_blob(&b, cases[i].status, "", cases[i].label);
    }
}

static void test_infos(void **state)
{
    (void)state;
    static const struct {
        const char *label;
        info t;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"ordinary", {"a", 1, {8}, 0, 0}, SOTTO_OK, ""},
        {"5 dimensions", {"a", 5, {1, 1, 1, 1, 1}, 0, 0}, SOTTO_E_FORMAT, "5 dimensions"},
        {"4294967295 dimensions", {"a", UINT32_MAX, {1}, 0, 0}, SOTTO_E_FORMAT, "dimensions"},
        {"a dimension of 0", {"a", 1, {0}, 0, 0}, SOTTO_E_FORMAT, "dimension 0 is 0"},
        {"a second dimension of 0", {"a", 2, {8, 0}, 0, 0}, SOTTO_E_FORMAT, "dimension 1 is 0"},
        {"a dimension of 2^63", {"a", 1, {UINT64_C(1) << 63}, 0, 0}, SOTTO_E_FORMAT, "dimension 0"},
        {"dimensions that overflow", {"a", 3, {1 << 30, 1 << 30, 1 << 30}, 0, 0}, SOTTO_E_FORMAT, "too large"},
        {"dimensions that overflow to little", {"a", 2, {UINT64_C(1) << 62, 4}, 0, 0}, SOTTO_E_FORMAT, "too large"},
        {"element type 4, removed", {"a", 1, {8}, 4, 0}, SOTTO_E_UNSUPPORTED, "type 4"},
        {"a type that is only listed", {"a", 2, {1, 4}, 27, 0}, SOTTO_OK, ""},
        {"rows that do not fit such a type", {"a", 1, {64}, 16, 0}, SOTTO_E_FORMAT, "multiple of 256 for iq2_xxs"},
        {"more bytes than there are of such a type", {"a", 1, {256}, 34, 0}, SOTTO_E_FORMAT, "54 bytes"},
        {"element type 4294967295", {"a", 1, {8}, UINT32_MAX, 0}, SOTTO_E_UNSUPPORTED, "type"},
        {"a width of 384 as q4_K", {"a", 1, {384}, 12, 0}, SOTTO_E_FORMAT, "multiple of 256"},
        {"an offset that is not aligned", {"a", 1, {4}, 0, 4}, SOTTO_E_FORMAT, "alignment"},
        {"an offset behind the file", {"a", 1, {4}, 0, 64}, SOTTO_E_FORMAT, "offset 64"},
        {"an offset of SIZE_MAX - 31", {"a", 1, {8}, 0, UINT64_MAX - 31}, SOTTO_E_FORMAT, "offset"},
        {"more elements than bytes", {"a", 1, {9}, 0, 0}, SOTTO_E_FORMAT, "bytes"},
        {"an empty name", {"", 1, {8}, 0, 0}, SOTTO_E_FORMAT, "name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = start(1, 0);
        put_info(&b, cases[i].t);
        put_data(&b, 32, 8);
        expect_blob(&b, cases[i].status, cases[i].part, cases[i].label);
    }
}

static void test_pairs_of_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *label, *second;
        uint64_t offset;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"side by side", "b", 32, SOTTO_OK, ""},
        {"the same bytes", "b", 0, SOTTO_E_FORMAT, "overlap"},
        {"the same name", "a", 32, SOTTO_E_FORMAT, "twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = start(2, 0);
        put_info(&b, (info){"a", 1, {8}, 0, 0});
        put_info(&b, (info){cases[i].second, 1, {8}, 0, cases[i].offset});
        put_data(&b, 32, 16);
        expect_blob(&b, cases[i].status, cases[i].part, cases[i].label);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),         cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_cut_everywhere), cmocka_unit_test(test_headers),
        cmocka_unit_test(test_keys),           cmocka_unit_test(test_alignments),
        cmocka_unit_test(test_infos),          cmocka_unit_test(test_pairs_of_tensors),
        cmocka_unit_test(test_nested_arrays),  cmocka_unit_test(test_types_only_listed),
        cmocka_unit_test(test_names_of_types), cmocka_unit_test(test_parts),
        cmocka_unit_test(test_bad_parts),      cmocka_unit_test(test_cut_part),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests_name("model_gguf", tests, NULL, NULL);
}
