/* Memory that runs out at every place of opening, reading and converting model files of each format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "base/file.h"
#include "unit/formats_support.h"

#define CORPUS SOTTO_SOURCE_DIR "/tests/fuzz/corpus/"

static void copy_file(const char *from, const char *folder, const char *name)
{
    st_file_map map;
    sotto_error err;
    if (st_file_map_open(from, &map, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    write_file(folder, name, map.data, map.size);
    st_file_map_close(&map);
}

static sotto_status open_path(void *user)
{
    sotto_error err = {0};
    sotto_model_file *file;
    const sotto_status status = sotto_model_file_open(user, &file, &err);
    if (status != SOTTO_OK && (file || err.code != status || !err.text[0]))
        return SOTTO_E_INTERNAL;
    sotto_model_file_free(file);
    return status;
}

static void folders_open_or_not(void **state)
{
    (void)state;
    static const char config[] = "{\"model_type\": \"whisper\", \"vocab_size\": 9, \"max_source_positions\": 1, "
                                 "\"d_model\": 8, \"encoder_layers\": 1, "
                                 "\"encoder_attention_heads\": 1, \"decoder_attention_heads\": 1, \"decoder_layers\": "
                                 "1, \"max_target_positions\": 1, "
                                 "\"num_mel_bins\": 1}";
    static const char *const vocabularies[][2] = {
        {"vocabulary.json", "[\"a\", \"b\", \"<|endoftext|>\"]"},
        {"vocabulary.txt", "a\nb\n<|endoftext|>\n"},
        {"vocab.json", "{\"a\": 0, \"b\": 1}"},
        {"tokenizer.json", "{\"model\": {\"vocab\": {\"a\": 1, \"b\": 0}}}"},
    };
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++) {
        const bool hf = i >= 2;
        char *folder = make_folder();
        copy_file(hf ? CORPUS "safetensors/f16" : CORPUS "ct2/int8", folder, hf ? "model.safetensors" : "model.bin");
        write_text(folder, "config.json", hf ? config : "{\"alignment_heads\": [[0, 0]]}");
        write_text(folder, "generation_config.json", "{\"alignment_heads\": [[0, 0]]}");
        write_text(folder, vocabularies[i][0], vocabularies[i][1]);
        assert_true(alloc_fail_sweep(open_path, folder) > 10);
        remove_folder(folder);
    }
}

static void shards_open_or_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    copy_file(CORPUS "safetensors/f16", folder, "a.safetensors");
    write_text(folder, "model.safetensors.index.json",
               "{\"weight_map\": {\"x\": \"a.safetensors\", \"y\": \"a.safetensors\"}}");
    assert_true(alloc_fail_sweep(open_path, folder) > 10);
    remove_folder(folder);
}

static sotto_status open_bytes(void *user)
{
    const blob *b = user;
    sotto_error err = {0};
    sotto_model_file *file;
    const sotto_status status = sotto_model_file_open_memory(b->data, b->n, "bytes", &file, &err);
    if (status != SOTTO_OK && (file || err.code != status || !err.text[0]))
        return SOTTO_E_INTERNAL;
    sotto_model_file_free(file);
    return status;
}

static void bytes_open_or_not(void **state)
{
    (void)state;
    const ggml_recipe r = ggml_ordinary();
    blob files[] = {ggml_file(&r), whisper_gguf(32, SOTTO_F16)};
    for (int i = 0; i < 2; i++) {
        assert_true(alloc_fail_sweep(open_bytes, &files[i]) > 3);
        blob_free(&files[i]);
    }
}

typedef struct conversion {
    const sotto_model_file *source;
    const char *folder, *format, *dtype;
} conversion;

static sotto_status convert(void *user)
{
    const conversion *c = user;
    const sotto_convert_options options = {.format = c->format, .dtype = c->dtype};
    sotto_error err = {0};
    const sotto_status status = sotto_model_convert(c->source, in_folder(c->folder, "out"), &options, &err);
    /* nothing half-written, under no name */
    if (count_files(c->folder) != (status == SOTTO_OK ? 2 : 1) || (status != SOTTO_OK && !err.text[0]))
        return SOTTO_E_INTERNAL;
    if (status == SOTTO_OK && remove(in_folder(c->folder, "out")) != 0)
        return SOTTO_E_INTERNAL;
    return status;
}

static void models_are_converted_or_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    blob b = whisper_gguf(32, SOTTO_F16);
    write_blob(folder, "source", &b);
    blob_free(&b);
    sotto_model_file *source = must_open(in_folder(folder, "source"));
    static const char *const wanted[][2] = {{"ggml", "q8_0"}, {"gguf", "f32"}, {"ggml", NULL}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        conversion c = {source, folder, wanted[i][0], wanted[i][1]};
        assert_true(alloc_fail_sweep(convert, &c) > 3);
    }
    sotto_model_file_free(source);
    remove_folder(folder);
}

/* ---- GGUF: parts, importance, language models ---- */

static blob gguf_head(uint64_t tensors, uint64_t keys)
{
    blob b = {0};
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, tensors, 8);
    blob_number(&b, keys, 8);
    return b;
}

static void parts_open_or_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    for (int i = 0; i < 2; i++) {
        char name[32];
        blob b = gguf_head(0, 2);
        blob_text(&b, "split.no", 8);
        blob_number(&b, 2, 4);
        blob_number(&b, (uint64_t)i, 2);
        blob_text(&b, "split.count", 8);
        blob_number(&b, 2, 4);
        blob_number(&b, 2, 2);
        snprintf(name, sizeof name, "m-0000%d-of-00002.gguf", i + 1);
        write_blob(folder, name, &b);
        blob_free(&b);
    }
    char *first = strdup(in_folder(folder, "m-00001-of-00002.gguf"));
    assert_true(alloc_fail_sweep(open_path, first) > 5);
    free(first);
    remove_folder(folder);
}

static sotto_status use_importance(void *user)
{
    const char *const path = user;
    sotto_imatrix *m, *again = NULL;
    sotto_error err = {0};
    const float squares[3] = {1, 2, 3};
    sotto_status status = sotto_imatrix_create(&m, &err);
    if (status == SOTTO_OK)
        status = sotto_imatrix_add(m, "b", 3, squares, 1, &err);
    if (status == SOTTO_OK)
        status = sotto_imatrix_describe(m, "text", 1, 1, &err);
    if (status == SOTTO_OK)
        status = sotto_imatrix_save(m, path, &err);
    if (status == SOTTO_OK)
        status = sotto_imatrix_load(path, &again, &err);
    if (status != SOTTO_OK && (again || err.code != status || !err.text[0]))
        status = SOTTO_E_INTERNAL;
    sotto_imatrix_free(again);
    sotto_imatrix_free(m);
    return status;
}

static void importance_is_kept_or_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    char *path = strdup(in_folder(folder, "m.gguf"));
    assert_true(alloc_fail_sweep(use_importance, path) > 10);
    free(path);
    remove_folder(folder);
}

static void language_models_are_converted_or_not(void **state)
{
    (void)state;
    char *folder = make_folder();
    copy_file(CORPUS "gguf/language", folder, "source");
    sotto_model_file *source = must_open(in_folder(folder, "source"));
    conversion c = {source, folder, NULL, "q4_0"};
    assert_true(alloc_fail_sweep(convert, &c) > 3);
    sotto_model_file_free(source);
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folders_open_or_not),
        cmocka_unit_test(shards_open_or_not),
        cmocka_unit_test(bytes_open_or_not),
        cmocka_unit_test(models_are_converted_or_not),
        cmocka_unit_test(parts_open_or_not),
        cmocka_unit_test(importance_is_kept_or_not),
        cmocka_unit_test(language_models_are_converted_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
