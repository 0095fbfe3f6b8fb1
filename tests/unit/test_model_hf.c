/* safetensors files and Hugging Face folders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/hf_names.h"
#include "unit/formats_support.h"

/* The header behind its length, then n floats 0, 1, 2, ... */
static blob file_of(const char *header, int n)
{
    blob b = {0};
    blob_text(&b, header, 8);
    for (int i = 0; i < n; i++)
        blob_f32(&b, (float)i);
    return b;
}

#define ENTRY(name, dtype, shape, from, to) \
    "\"" name "\": {\"dtype\": \"" dtype "\", \"shape\": " shape ", \"data_offsets\": [" #from ", " #to "]}"
#define CONV1 "model.encoder.conv1.bias"

static void test_headers(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"{" ENTRY(CONV1, "F32", "[8]", 0, 32) "}", SOTTO_OK, ""},
        {"{\"__metadata__\": {\"format\": \"pt\"}, " ENTRY(CONV1, "F16", "[16]", 0, 32) "}  ", SOTTO_OK, ""},
        {"{" ENTRY(CONV1, "BF16", "[2, 4]", 16, 32) "}", SOTTO_OK, ""},
        {"{" ENTRY(CONV1, "F32", "[]", 0, 4) "}", SOTTO_OK, ""},
        {"{" ENTRY("mask", "BOOL", "[8]", 0, 8) "}", SOTTO_OK, ""},
        {"{" ENTRY(CONV1, "F64", "[4]", 0, 32) "}", SOTTO_E_UNSUPPORTED, "F64"},
        {"{" ENTRY(CONV1, "F32", "[8]", 0, 36) "}", SOTTO_E_FORMAT, "data_offsets"},
        {"{" ENTRY(CONV1, "F32", "[8]", 32, 0) "}", SOTTO_E_FORMAT, "data_offsets"},
        {"{" ENTRY(CONV1, "F32", "[8]", -4, 28) "}", SOTTO_E_FORMAT, "data_offsets"},
        {"{" ENTRY(CONV1, "F32", "[7]", 0, 32) "}", SOTTO_E_FORMAT, "expected 28"},
        {"{" ENTRY(CONV1, "F32", "[0]", 0, 0) "}", SOTTO_E_FORMAT, "dimension"},
        {"{" ENTRY(CONV1, "F32", "[-8]", 0, 32) "}", SOTTO_E_FORMAT, "dimension"},
        {"{" ENTRY(CONV1, "F32", "[4294967296, 4294967296, 4294967296]", 0, 32) "}", SOTTO_E_FORMAT, "too large"},
        {"{" ENTRY(CONV1, "F32", "[1, 1, 1, 1, 8]", 0, 32) "}", SOTTO_E_FORMAT, "shape"},
        {"{" ENTRY(CONV1, "F32", "\"8\"", 0, 32) "}", SOTTO_E_FORMAT, "shape"},
        {"{" ENTRY(CONV1, "F32", "[8.0]", 0, 32) "}", SOTTO_E_FORMAT, "shape"},
        {"{" ENTRY("a", "F32", "[8]", 0, 32) ", " ENTRY("b", "F32", "[4]", 16, 32) "}", SOTTO_E_FORMAT, "overlap"},
        {"{" ENTRY("a", "F32", "[4]", 0, 16) ", " ENTRY("b", "F32", "[4]", 16, 32) "}", SOTTO_OK, ""},
        {"{\"a\": 5}", SOTTO_E_FORMAT, "data_offsets"},
        {"{\"a\": ", SOTTO_E_FORMAT, "header"},
        {"{}", SOTTO_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        blob b = file_of(cases[i].header, 8);
        sotto_error err;
        expect(try_memory(b.data, b.n, &err), &err, cases[i].status, cases[i].part, cases[i].header);
        blob_free(&b);
    }
    blob b = {0};
    blob_number(&b, UINT64_C(1) << 40, 8);
    blob_bytes(&b, "{}", 2);
    sotto_error err;
    expect(try_memory(b.data, b.n, &err), &err, SOTTO_E_FORMAT, "begins with", "a header of 1 TiB");
    blob_free(&b);
    b = file_of("{" ENTRY(CONV1, "F32", "[8]", 0, 32) "}", 8);
    for (size_t n = 0; n < b.n; n++)
        if (try_memory(b.data, n, &err) != SOTTO_E_FORMAT)
            fail_msg("%zu of %zu bytes: %s", n, b.n, err.text);
    blob_free(&b);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"model.encoder.layers.3.self_attn.q_proj.weight", "encoder.blocks.3.attn.query.weight"},
        {"model.decoder.layers.11.encoder_attn.out_proj.bias", "decoder.blocks.11.cross_attn.out.bias"},
        {"model.decoder.layers.0.encoder_attn_layer_norm.weight", "decoder.blocks.0.cross_attn_ln.weight"},
        {"model.encoder.layers.0.self_attn_layer_norm.bias", "encoder.blocks.0.attn_ln.bias"},
        {"model.encoder.layers.0.final_layer_norm.bias", "encoder.blocks.0.mlp_ln.bias"},
        {"model.encoder.layers.0.fc1.weight", "encoder.blocks.0.mlp.0.weight"},
        {"model.encoder.layers.0.fc2.weight", "encoder.blocks.0.mlp.2.weight"},
        {"model.decoder.embed_tokens.weight", "decoder.token_embedding.weight"},
        {"model.decoder.embed_positions.weight", "decoder.positional_embedding"},
        {"decoder.layer_norm.weight", "decoder.ln.weight"},
        {"model.encoder.layer_norm.weight", "encoder.ln_post.weight"},
    };
    static const char *const unknown[] = {
        "proj_out.weight",
        "model.encoder.layers.x.fc1.weight",
        "model.encoder.layers.0.fc3.weight",
        "model.encoder.layers.0",
        "model.encoder.layers.0.fc1.scale",
        "model.encoder.layers.",
        "",
        "model.",
        "model.encoder.layers.99999999999999999999.fc1.bias",
    };
    char out[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(st_hf_name(cases[i].from, out, sizeof out));
        assert_string_equal(out, cases[i].to);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_false(st_hf_name(unknown[i], out, sizeof out));
        assert_string_equal(out, unknown[i]);
    }
}

static const char config[] =
    "{\"model_type\": \"whisper\", \"vocab_size\": 51865, \"max_source_positions\": 1500, \"d_model\": 64,"
    "\"encoder_attention_heads\": 1, \"encoder_layers\": 2, \"max_target_positions\": 448,"
    "\"decoder_attention_heads\": 3, \"decoder_layers\": 4, \"num_mel_bins\": 80}";

static void test_folder(void **state)
{
    (void)state;
    char *folder = make_folder();
    blob b = file_of("{" ENTRY(CONV1, "F32", "[8]", 0, 32) "}", 8);
    write_blob(folder, "model.safetensors", &b);
    write_text(folder, "config.json", config);
    write_text(folder, "generation_config.json", "{\"alignment_heads\": [[5, 6]]}");
    write_text(folder, "vocab.json", "{\"<|endoftext|>\": 2, \"\\u0120a\": 0, \"b\": 1}");
    sotto_model_file *f = must_open(folder);
    assert_string_equal(sotto_model_file_format(f), "safetensors");
    int64_t value, n;
    assert_int_equal(sotto_meta_int(f, "whisper.n_text_layer", &value, NULL), SOTTO_OK);
    assert_int_equal(value, 4);
    const int64_t *heads;
    assert_int_equal(sotto_meta_ints(f, "whisper.alignment_heads", &heads, &n, NULL), SOTTO_OK);
    assert_true(n == 2 && heads[0] == 5 && heads[1] == 6);
    const char *text;
    size_t length;
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 0, &text, &length, NULL), SOTTO_OK);
    assert_true(length == 2 && memcmp(text, " a", 2) == 0);
    assert_int_equal(sotto_meta_string_at(f, "tokenizer.ggml.tokens", 2, &text, &length, NULL), SOTTO_E_ARGUMENT);
    sotto_model_file_free(f);
    sotto_error err;
    expect(try_path(in_folder(folder, "model.safetensors"), &err), &err, SOTTO_OK, "", "the file in its folder");
    write_text(folder, "config.json", "{\"model_type\": \"whisper\", \"vocab_size\": \"many\"}");
    expect(try_path(folder, &err), &err, SOTTO_E_FORMAT, "vocab_size", "a size that is a text");
    write_text(folder, "config.json", "{\"model_type\": \"bert\"}");
    expect(try_path(folder, &err), &err, SOTTO_OK, "", "another architecture");
    blob_free(&b);
    remove_folder(folder);
}

static void test_shards(void **state)
{
    (void)state;
    static const struct {
        const char *index;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"{\"weight_map\": {\"a\": \"1.safetensors\", \"c\": \"2.safetensors\", \"b\": \"1.safetensors\"}}", SOTTO_OK,
         ""},
        {"{\"weight_map\": {\"a\": \"3.safetensors\"}}", SOTTO_E_NOT_FOUND, "3.safetensors"},
        {"{\"weight_map\": {\"a\": \"../1.safetensors\"}}", SOTTO_E_FORMAT, "same folder"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", SOTTO_E_FORMAT, "same folder"},
        {"{\"weight_map\": {\"a\": \"\"}}", SOTTO_E_FORMAT, "same folder"},
        {"{\"weight_map\": {\"a\": 1}}", SOTTO_E_FORMAT, "weight_map"},
        {"{\"weight_map\": []}", SOTTO_E_FORMAT, "weight_map"},
        {"{\"weight_map\": {\"a\": \"no.txt\"}}", SOTTO_E_FORMAT, "no.txt"},
        {"{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"again.safetensors\"}}", SOTTO_E_FORMAT, "twice"},
    };
    char *folder = make_folder();
    blob b = file_of("{" ENTRY("a", "F32", "[4]", 0, 16) ", " ENTRY("b", "F32", "[4]", 16, 32) "}", 8);
    write_blob(folder, "1.safetensors", &b);
    write_blob(folder, "again.safetensors", &b);
    blob_free(&b);
    b = file_of("{" ENTRY("c", "F32", "[4]", 0, 16) "}", 4);
    write_blob(folder, "2.safetensors", &b);
    blob_free(&b);
    write_text(folder, "no.txt", "text");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_text(folder, "model.safetensors.index.json", cases[i].index);
        sotto_error err;
        expect(try_path(folder, &err), &err, cases[i].status, cases[i].part, cases[i].index);
    }
    write_text(folder, "model.safetensors.index.json", cases[0].index);
    sotto_model_file *f = must_open(folder);
    assert_int_equal(sotto_model_tensor_count(f), 3);
    int64_t n;
    float *values = tensor_values(f, "b", &n);
    assert_true(n == 4 && values[0] == 4 && values[3] == 7);
    free(values);
    sotto_model_file_free(f);
    sotto_error err;
    expect(try_memory(cases[0].index, strlen(cases[0].index), &err), &err, SOTTO_E_UNSUPPORTED, "memory",
           "an index in memory");
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_shards),
    };
    return cmocka_run_group_tests_name("model_hf", tests, NULL, NULL);
}
