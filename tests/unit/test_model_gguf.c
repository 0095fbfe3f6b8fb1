/* GGUF: every kind of value, and one small file for each way of being wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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
        {"an array of arrays", "k", 0, 9, 9, 1, SOTTO_E_UNSUPPORTED, "arrays"},
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
    };
    return cmocka_run_group_tests_name("model_gguf", tests, NULL, NULL);
}
