/* CTranslate2 folders made byte by byte, and the vocabulary files they share with Hugging Face folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/half.h"
#include "formats/token_files.h"
#include "unit/formats_support.h"

/* A model of width 2 with one layer a side. Element k of the variable is k, so that slices can be told apart; int8
 * matrices are divided by 4 in every row. */
typedef struct recipe {
    uint32_t version;
    int type; /* of matrices: 0 float32, 1 int8, 2 int16, 4 float16, 5 bfloat16 */
    const char *spec;
    const char *leave_out;
    float scale;
    uint8_t rank_change; /* added to the rank of the first variable */
} recipe;

static const recipe ordinary = {6, 0, "WhisperSpec", NULL, 4, 0};

static const struct {
    const char *name;
    int rank;
    uint32_t dim[3];
} variables[] = {
    {"decoder/embeddings/weight", 2, {5, 2}},
    {"encoder/conv1/weight", 3, {2, 1, 3}},
    {"encoder/conv1/bias", 1, {2}},
    {"encoder/conv2/weight", 3, {2, 2, 3}},
    {"encoder/conv2/bias", 1, {2}},
    {"encoder/position_encodings/encodings", 2, {3, 2}},
    {"decoder/position_encodings/encodings", 2, {4, 2}},
    {"encoder/layer_norm/gamma", 1, {2}},
    {"encoder/layer_norm/beta", 1, {2}},
    {"decoder/layer_norm/gamma", 1, {2}},
    {"decoder/layer_norm/beta", 1, {2}},
};

static const struct {
    const char *name;
    uint32_t rows;
    bool decoder_only;
} linears[] = {
    {"self_attention/linear_0", 6, false},
    {"self_attention/linear_1", 2, false},
    {"attention/linear_0", 2, true},
    {"attention/linear_1", 4, true},
    {"attention/linear_2", 2, true},
    {"ffn/linear_0", 8, false},
    {"ffn/linear_1", 2, false},
};
static const struct {
    const char *name;
    bool decoder_only;
} norms[] = {{"self_attention/layer_norm", false}, {"attention/layer_norm", true}, {"ffn/layer_norm", false}};

typedef struct writer {
    blob b;
    uint32_t n;
    const recipe *r;
} writer;

static void put_name(blob *b, const char *name)
{
    blob_number(b, strlen(name) + 1, 2);
    blob_bytes(b, name, strlen(name) + 1);
}

static const size_t widths[] = {4, 1, 2, 4, 2, 2};

static void put_variable(writer *w, const char *name, int rank, const uint32_t *dim, int type)
{
    if (w->r->leave_out && strcmp(name, w->r->leave_out) == 0)
        return;
    uint32_t count = 1;
    put_name(&w->b, name);
    blob_number(&w->b, (uint64_t)rank + (w->n == 0 ? w->r->rank_change : 0), 1);
    for (int i = 0; i < rank; i++) {
        blob_number(&w->b, dim[i], 4);
        count *= dim[i];
    }
    blob_number(&w->b, w->r->version < 4 ? widths[type] : (uint64_t)type, 1);
    blob_number(&w->b, w->r->version < 4 ? count : count * widths[type], 4);
    for (uint32_t i = 0; i < count; i++) {
        const float value = (float)i;
        if (type == 0)
            blob_f32(&w->b, value);
        else if (type == 4)
            blob_number(&w->b, st_f32_to_f16(value), 2);
        else if (type == 5)
            blob_number(&w->b, st_f32_to_bf16(value), 2);
        else
            blob_number(&w->b, i, (int)widths[type]);
    }
    w->n++;
}

static void put_matrix(writer *w, const char *name, int rank, const uint32_t *dim)
{
    put_variable(w, name, rank, dim, w->r->type);
    if (w->r->type != 1)
        return;
    char scale[128];
    snprintf(scale, sizeof scale, "%s_scale", name);
    put_name(&w->b, scale);
    blob_number(&w->b, 1, 1);
    blob_number(&w->b, dim[0], 4);
    blob_number(&w->b, w->r->version < 4 ? 4 : 0, 1);
    blob_number(&w->b, w->r->version < 4 ? dim[0] : 4 * dim[0], 4);
    for (uint32_t i = 0; i < dim[0]; i++)
        blob_f32(&w->b, w->r->scale);
    w->n++;
}

static void put_layer(writer *w, const char *side)
{
    const bool decoder = side[0] == 'd';
    char name[128];
    for (size_t i = 0; i < sizeof norms / sizeof *norms; i++)
        for (int k = 0; k < 2 && (decoder || !norms[i].decoder_only); k++) {
            snprintf(name, sizeof name, "%s/layer_0/%s/%s", side, norms[i].name, k ? "beta" : "gamma");
            put_variable(w, name, 1, &(uint32_t){2}, 0);
        }
    for (size_t i = 0; i < sizeof linears / sizeof *linears; i++) {
        if (linears[i].decoder_only && !decoder)
            continue;
        const uint32_t dim[2] = {linears[i].rows, i == 6 ? 8 : 2};
        snprintf(name, sizeof name, "%s/layer_0/%s/weight", side, linears[i].name);
        put_matrix(w, name, 2, dim);
        snprintf(name, sizeof name, "%s/layer_0/%s/bias", side, linears[i].name);
        put_variable(w, name, 1, dim, 0);
    }
    snprintf(name, sizeof name, "%s/num_heads", side);
    put_variable(w, name, 0, NULL, 2);
    w->b.data[w->b.n - 2] = 1; /* one head */
}

static blob model(const recipe *r)
{
    writer w = {.r = r};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (variables[i].rank > 1 && !strstr(variables[i].name, "position"))
            put_matrix(&w, variables[i].name, variables[i].rank, variables[i].dim);
        else
            put_variable(&w, variables[i].name, variables[i].rank, variables[i].dim, 0);
    put_layer(&w, "encoder");
    put_layer(&w, "decoder");
    blob b = {0};
    blob_number(&b, r->version, 4);
    put_name(&b, r->spec);
    blob_number(&b, 3, 4);
    blob_number(&b, w.n, 4);
    blob_bytes(&b, w.b.data, w.b.n);
    blob_number(&b, 1, 4);
    put_name(&b, "decoder/projection/weight");
    put_name(&b, "decoder/embeddings/weight");
    blob_free(&w.b);
    return b;
}

static void write_model(const char *folder, const recipe *r)
{
    blob b = model(r);
    write_blob(folder, "model.bin", &b);
    blob_free(&b);
}

static void check_values(const sotto_model_file *f, const char *name, int64_t n, float first, float step)
{
    int64_t count;
    float *values = tensor_values(f, name, &count);
    if (count != n)
        fail_msg("%s: %lld values, expected %lld", name, (long long)count, (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (values[i] != (first + (float)i) * step)
            fail_msg("%s: value %lld is %g", name, (long long)i, (double)values[i]);
    free(values);
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        int type;
    } kinds[] = {{6, 0}, {6, 1}, {6, 4}, {6, 5}, {5, 4}, {4, 0}, {3, 0}, {3, 1}};
    char *folder = make_folder();
    write_text(folder, "vocabulary.txt",
               "a\n\xc4\xa0"
               "b\n\n<|endoftext|>\n<|startoftranscript|>\n");
    write_text(folder, "config.json", "{\"alignment_heads\": [[0, 0]]}");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        recipe r = ordinary;
        r.version = kinds[i].version;
        r.type = kinds[i].type;
        write_model(folder, &r);
        sotto_model_file *f = must_open(i % 2 ? folder : in_folder(folder, "model.bin"));
        assert_string_equal(sotto_model_file_format(f), "ctranslate2");
        const float step = r.type == 1 ? 0.25f : 1;
        check_values(f, "encoder.blocks.0.attn.query.weight", 4, 0, step);
        check_values(f, "encoder.blocks.0.attn.key.weight", 4, 4, step);
        check_values(f, "encoder.blocks.0.attn.value.weight", 4, 8, step);
        check_values(f, "encoder.blocks.0.attn.query.bias", 2, 0, 1);
        check_values(f, "encoder.blocks.0.attn.value.bias", 2, 4, 1);
        check_values(f, "decoder.blocks.0.cross_attn.key.weight", 4, 0, step);
        check_values(f, "decoder.blocks.0.cross_attn.value.weight", 4, 4, step);
        check_values(f, "decoder.blocks.0.cross_attn.value.bias", 2, 2, 1);
        check_values(f, "encoder.conv2.weight", 12, 0, step);
        check_values(f, "decoder.token_embedding.weight", 10, 0, step);
        sotto_model_tensor t;
        assert_int_equal(sotto_model_tensor_find(f, "encoder.blocks.0.attn.key.bias", &t), SOTTO_E_NOT_FOUND);
        assert_int_equal(sotto_model_tensor_find(f, "decoder.blocks.0.cross_attn.key.bias", &t), SOTTO_E_NOT_FOUND);
        assert_int_equal(sotto_model_tensor_find(f, "encoder.conv1.weight", &t), SOTTO_OK);
        assert_true(t.n_dims == 3 && t.dim[0] == 3 && t.dim[1] == 1 && t.dim[2] == 2);
        assert_int_equal(sotto_model_tensor_count(f), 11 + 15 + 24);
        sotto_model_tensor_release(f, &t);
        sotto_model_file_free(f);
    }
    remove_folder(folder);
}

static void test_metadata(void **state)
{
    (void)state;
    static const struct {
        const char *key;
        int64_t value;
    } expected[] = {
        {"whisper.n_vocab", 5},      {"whisper.n_audio_ctx", 3},   {"whisper.n_audio_state", 2},
        {"whisper.n_audio_head", 1}, {"whisper.n_audio_layer", 1}, {"whisper.n_text_ctx", 4},
        {"whisper.n_text_state", 2}, {"whisper.n_text_head", 1},   {"whisper.n_text_layer", 1},
        {"whisper.n_mels", 1},
    };
    char *folder = make_folder();
    write_model(folder, &ordinary);
    write_text(folder, "config.json", "{\"alignment_heads\": [[1, 2], [3, 4]], \"lang_ids\": null}");
    write_text(folder, "vocabulary.json", "[\"a\", \"\\u0120b\", \"\", \"<|endoftext|>\", \"<|x|>\"]");
    write_text(folder, "vocabulary.txt", "wrong\n");
    sotto_model_file *f = must_open(folder);
    int64_t value, n;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        assert_int_equal(sotto_meta_int(f, expected[i].key, &value, NULL), SOTTO_OK);
        assert_int_equal(value, expected[i].value);
    }
    const int64_t *heads;
    assert_int_equal(sotto_meta_ints(f, "whisper.alignment_heads", &heads, &n, NULL), SOTTO_OK);
    assert_true(n == 4 && heads[0] == 1 && heads[1] == 2 && heads[2] == 3 && heads[3] == 4);
    const char *text;
    size_t length;
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 1, &text, &length, NULL), SOTTO_OK);
    assert_int_equal(length, 2);
    assert_memory_equal(text, " b", 2);
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 2, &text, &length, NULL), SOTTO_OK);
    assert_int_equal(length, 0);
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 3, &text, &length, NULL), SOTTO_E_ARGUMENT);
    sotto_model_file_free(f);
    remove_folder(folder);
}

static void test_wrong(void **state)
{
    (void)state;
    static const struct {
        recipe r;
        sotto_status status;
        const char *part;
    } cases[] = {
        {{2, 0, "WhisperSpec", NULL, 4, 0}, SOTTO_E_UNSUPPORTED, "version 2"},
        {{7, 0, "WhisperSpec", NULL, 4, 0}, SOTTO_E_UNSUPPORTED, "version 7"},
        {{6, 0, "TransformerSpec", NULL, 4, 0}, SOTTO_E_UNSUPPORTED, "TransformerSpec"},
        {{6, 2, "WhisperSpec", NULL, 4, 0}, SOTTO_E_UNSUPPORTED, "int16"},
        {{6, 1, "WhisperSpec", NULL, 0, 0}, SOTTO_E_FORMAT, "_scale"},
        {{6, 1, "WhisperSpec", NULL, -1, 0}, SOTTO_E_FORMAT, "_scale"},
        {{6, 0, "WhisperSpec", "encoder/conv2/bias", 4, 0}, SOTTO_E_FORMAT, "encoder/conv2/bias: missing"},
        {{6, 0, "WhisperSpec", "decoder/num_heads", 4, 0}, SOTTO_E_FORMAT, "decoder/num_heads: missing"},
        {{6, 0, "WhisperSpec", "decoder/layer_0/ffn/linear_0/weight", 4, 0},
         SOTTO_E_FORMAT,
         "ffn/linear_0/weight: missing"},
        {{6, 0, "WhisperSpec", NULL, 4, 200}, SOTTO_E_FORMAT, "dimensions"},
    };
    char *folder = make_folder();
    write_text(folder, "vocabulary.txt", "a\n");
    sotto_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_model(folder, &cases[i].r);
        expect(try_path(folder, &err), &err, cases[i].status, cases[i].part, cases[i].part);
    }
    write_model(folder, &ordinary);
    write_text(folder, "config.json", "{\"alignment_heads\": ");
    expect(try_path(folder, &err), &err, SOTTO_E_FORMAT, "config.json: line 1", "a broken config.json");
    write_text(folder, "config.json", "[]");
    write_text(folder, "vocabulary.json", "[1]");
    expect(try_path(folder, &err), &err, SOTTO_E_FORMAT, "vocabulary.json", "a vocabulary of numbers");
    write_text(folder, "vocabulary.json", "{}");
    expect(try_path(folder, &err), &err, SOTTO_E_FORMAT, "vocabulary.json", "a vocabulary that is no array");
    remove_folder(folder);
    folder = make_folder();
    write_model(folder, &ordinary);
    expect(try_path(folder, &err), &err, SOTTO_E_NOT_FOUND, "vocabulary.json", "no vocabulary");
    write_text(folder, "vocab.json", "{\"a\": 0, \"b\": 2, \"<|endoftext|>\": 3}");
    expect(try_path(folder, &err), &err, SOTTO_OK, "", "a vocabulary with a gap");
    write_text(folder, "vocab.json", "{\"a\": 9999999999}");
    expect(try_path(folder, &err), &err, SOTTO_E_FORMAT, "10000000000", "an id that is too large");
    blob b = model(&ordinary);
    expect(try_memory(b.data, b.n, &err), &err, SOTTO_E_UNSUPPORTED, "memory", "a folder in memory");
    blob_free(&b);
    remove_folder(folder);
}

static void test_cut_everywhere(void **state)
{
    (void)state;
    char *folder = make_folder();
    write_text(folder, "vocabulary.txt", "a\n");
    recipe r = ordinary;
    r.type = 1;
    blob b = model(&r);
    for (size_t n = 0; n <= b.n; n += n < 200 || n + 200 > b.n ? 1 : 7) {
        sotto_error err;
        write_file(folder, "model.bin", b.data, n);
        const sotto_status status = try_path(folder, &err);
        if (status != (n == b.n ? SOTTO_OK : SOTTO_E_FORMAT))
            fail_msg("%zu of %zu bytes: %s %s", n, b.n, sotto_status_name(status), err.text);
    }
    blob_free(&b);
    remove_folder(folder);
}

/* The whole table, from its rule: printable bytes stand for themselves, the others follow from U+0100 in order. */
static void test_spelling(void **state)
{
    (void)state;
    unsigned next = 256;
    for (unsigned byte = 0; byte < 256; byte++) {
        const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
        const unsigned c = printable ? byte : next++;
        char word[2], out[2];
        size_t n = 0;
        if (c >= 128)
            word[n++] = (char)(0xc0 | c >> 6);
        word[n++] = (char)(c < 128 ? c : 0x80 | (c & 63));
        assert_int_equal(st_unspell(word, n, out), 1);
        assert_int_equal((uint8_t)out[0], byte);
    }
    char out[8];
    assert_int_equal(st_unspell(" ", 1, out), -1);
    assert_int_equal(st_unspell("\xc5\x84", 2, out), -1); /* U+0144, one behind the table */
    assert_int_equal(st_unspell("\xc4", 1, out), -1);
    assert_int_equal(st_unspell("", 0, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),          cmocka_unit_test(test_metadata), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_cut_everywhere), cmocka_unit_test(test_spelling),
    };
    return cmocka_run_group_tests_name("model_ct2", tests, NULL, NULL);
}
