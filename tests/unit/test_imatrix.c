/* Importance matrices: adding up, files and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "unit/formats_support.h"

static sotto_imatrix *make(void)
{
    sotto_imatrix *m;
    sotto_error err;
    if (sotto_imatrix_create(&m, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return m;
}

static void add(sotto_imatrix *m, const char *name, int64_t n, const float *squares, int64_t count)
{
    sotto_error err;
    if (sotto_imatrix_add(m, name, n, squares, count, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

static void check(const sotto_imatrix *m)
{
    sotto_imatrix_entry e;
    assert_int_equal(sotto_imatrix_count(m), 3);
    assert_int_equal(sotto_imatrix_find(m, "b.weight", &e), SOTTO_OK);
    assert_int_equal(e.n, 2);
    assert_int_equal(e.rows, 7);
    assert_true(e.squares[0] == 11 && e.squares[1] == 22);
    assert_int_equal(sotto_imatrix_find(m, "b", &e), SOTTO_E_NOT_FOUND);
    static const char *const names[] = {"a.weight", "b.weight", "c.weight"};
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(sotto_imatrix_get(m, i, &e), SOTTO_OK);
        assert_string_equal(e.name, names[i]);
    }
    assert_int_equal(sotto_imatrix_get(m, 3, &e), SOTTO_E_ARGUMENT);
}

static void sums_survive_a_file(void **state)
{
    (void)state;
    char *folder = make_folder();
    sotto_imatrix *m = make(), *again = NULL;
    sotto_error err;
    add(m, "c.weight", 3, (float[]){0, 0, 0}, 0);
    add(m, "b.weight", 2, (float[]){1, 2}, 3);
    add(m, "a.weight", 1, (float[]){5}, 1);
    add(m, "b.weight", 2, (float[]){10, 20}, 4);
    check(m);
    assert_int_equal(sotto_imatrix_describe(m, "text.txt", 12, 512, &err), SOTTO_OK);
    if (sotto_imatrix_save(m, in_folder(folder, "m.gguf"), &err) != SOTTO_OK ||
        sotto_imatrix_load(in_folder(folder, "m.gguf"), &again, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    check(again);
    sotto_model_file *f = must_open(in_folder(folder, "m.gguf"));
    int64_t value;
    const char *text;
    size_t n;
    assert_int_equal(sotto_meta_int(f, "imatrix.chunk_count", &value, NULL), SOTTO_OK);
    assert_int_equal(value, 12);
    assert_int_equal(sotto_meta_string_at(f, "imatrix.datasets", 0, &text, &n, NULL), SOTTO_OK);
    assert_memory_equal(text, "text.txt", 8);
    sotto_model_file_free(f);
    sotto_imatrix_free(again);
    sotto_imatrix_free(m);
    sotto_imatrix_free(NULL);
    remove_folder(folder);
}

static void bad_numbers_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t n, count;
        float square;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"x", 1, 1, NAN, SOTTO_E_FORMAT, "column 0"},
        {"x", 1, 1, INFINITY, SOTTO_E_FORMAT, "column 0"},
        {"x", 1, 1, -1, SOTTO_E_FORMAT, "-1"},
        {"", 1, 1, 1, SOTTO_E_ARGUMENT, "name"},
        {NULL, 1, 1, 1, SOTTO_E_ARGUMENT, "name"},
        {"x", 0, 1, 1, SOTTO_E_ARGUMENT, "column"},
        {"x", 1, -1, 1, SOTTO_E_ARGUMENT, "rows"},
        {"known", 1, 1, 1, SOTTO_E_ARGUMENT, "1 columns, expected 2"},
        {"known", 2, INT64_MAX, 1, SOTTO_E_ARGUMENT, "rows"},
    };
    sotto_imatrix *m = make();
    add(m, "known", 2, (float[]){1, 1}, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sotto_error err = {0};
        const float squares[2] = {cases[i].square, cases[i].square};
        const sotto_status got = sotto_imatrix_add(m, cases[i].name, cases[i].n, squares, cases[i].count, &err);
        expect(got, &err, cases[i].status, cases[i].part, cases[i].part);
    }
    assert_int_equal(sotto_imatrix_count(m), 1);
    assert_int_equal(sotto_imatrix_describe(m, NULL, 0, 0, NULL), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_imatrix_describe(m, "", -1, 0, NULL), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_imatrix_save(m, "/no/such/folder/m.gguf", NULL), SOTTO_E_NOT_FOUND);
    sotto_imatrix_free(m);
}

static void put_info(blob *b, const char *name, int64_t n, int64_t rows, uint32_t type, uint64_t offset)
{
    blob_text(b, name, 8);
    blob_number(b, 2, 4);
    blob_number(b, (uint64_t)n, 8);
    blob_number(b, (uint64_t)rows, 8);
    blob_number(b, type, 4);
    blob_number(b, offset, 8);
}

static void bad_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *label, *type, *first, *second;
        int64_t columns, rows, counts;
        float square, count;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"right", "imatrix", "a.in_sum2", "a.counts", 2, 1, 1, 1, 5, SOTTO_OK, ""},
        {"a model", "model", "a.in_sum2", "a.counts", 2, 1, 1, 1, 5, SOTTO_E_FORMAT, "general.type"},
        {"without counts", "imatrix", "a.in_sum2", "b.counts", 2, 1, 1, 1, 5, SOTTO_E_FORMAT, "a.counts: missing"},
        {"without sums", "imatrix", "a.in_sum", "a.counts", 2, 1, 1, 1, 5, SOTTO_E_FORMAT, "has no tensors"},
        {"a name that is the ending", "imatrix", ".in_sum2", ".counts", 2, 1, 1, 1, 5, SOTTO_E_FORMAT, "has no tensors"},
        {"of 2 experts", "imatrix", "a.in_sum2", "a.counts", 2, 2, 2, 1, 5, SOTTO_E_UNSUPPORTED, "2 experts"},
        {"two rows for one", "imatrix", "a.in_sum2", "a.counts", 2, 2, 1, 1, 5, SOTTO_E_FORMAT, "one row"},
        {"a negative count", "imatrix", "a.in_sum2", "a.counts", 2, 1, 1, 1, -1, SOTTO_E_FORMAT, "-1 rows"},
        {"a count that is no number", "imatrix", "a.in_sum2", "a.counts", 2, 1, 1, 1, NAN, SOTTO_E_FORMAT, "rows"},
        {"a sum that is no number", "imatrix", "a.in_sum2", "a.counts", 2, 1, 1, NAN, 1, SOTTO_E_FORMAT, "column 0"},
    };
    char *folder = make_folder();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = {0};
        blob_bytes(&b, "GGUF", 4);
        blob_number(&b, 3, 4);
        blob_number(&b, 2, 8);
        blob_number(&b, 1, 8);
        blob_text(&b, "general.type", 8);
        blob_number(&b, 8, 4);
        blob_text(&b, cases[i].type, 8);
        put_info(&b, cases[i].first, cases[i].columns, cases[i].rows, 0, 0);
        put_info(&b, cases[i].second, 1, cases[i].counts, 0, 32);
        while (b.n % 32 != 0)
            blob_number(&b, 0, 1);
        for (int k = 0; k < 8; k++)
            blob_f32(&b, cases[i].square);
        for (int k = 0; k < 8; k++)
            blob_f32(&b, cases[i].count);
        write_blob(folder, "m.gguf", &b);
        blob_free(&b);
        sotto_imatrix *m;
        sotto_error err = {0};
        const sotto_status got = sotto_imatrix_load(in_folder(folder, "m.gguf"), &m, &err);
        expect(got, &err, cases[i].status, cases[i].part, cases[i].label);
        assert_true((got == SOTTO_OK) == (m != NULL));
        sotto_imatrix_free(m);
    }
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_survive_a_file),
        cmocka_unit_test(bad_numbers_are_refused),
        cmocka_unit_test(bad_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
