/* The files beside weights: vocabularies, configurations and the index of shards. The first byte, '0' to '6', says which of
 * them the rest is; the others are in order. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "fuzz/fuzz.h"
#include "fuzz/model_support.h"

static const struct {
    const char *name;
    const char *text; /* NULL: only there when it is the input */
} files[] = {
    {"vocabulary.json", NULL},
    {"vocabulary.txt", NULL},
    {"vocab.json", "{\"a\": 0, \"b\": 1, \"<|endoftext|>\": 2}"},
    {"tokenizer.json", NULL},
    {"config.json", "{\"model_type\": \"whisper\", \"vocab_size\": 9, \"max_source_positions\": 1, \"d_model\": 8, "
                    "\"encoder_layers\": 1, \"encoder_attention_heads\": 1, \"decoder_attention_heads\": 1, "
                    "\"decoder_layers\": 1, \"max_target_positions\": 1, \"num_mel_bins\": 1}"},
    {"generation_config.json", NULL},
    {"model.safetensors.index.json", "{\"weight_map\": {\"a\": \"a.safetensors\"}}"},
};
enum { N_FILES = sizeof files / sizeof *files, VOCABULARIES = 4 };

static char folder[] = "/tmp/sotto-fuzz-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *data, size_t n)
{
    FILE *f = fopen(in_folder(name), "wb");
    FUZZ_CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

static void remove_folder(void)
{
    for (int i = 0; i < N_FILES; i++)
        remove(in_folder(files[i].name));
    remove(in_folder("a.safetensors"));
    rmdir(folder);
}

static void make_folder(void)
{
    sotto_error err;
    st_file_map map;
    FUZZ_CHECK(mkdtemp(folder) && atexit(remove_folder) == 0);
    FUZZ_CHECK(st_file_map_open(SOTTO_SOURCE_DIR "/tests/fuzz/corpus/safetensors/f16", &map, &err) == SOTTO_OK);
    put("a.safetensors", map.data, map.size);
    st_file_map_close(&map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || data[0] < '0' || data[0] >= '0' + N_FILES)
        return 0;
    if (strstr(folder, "XXXXXX"))
        make_folder();
    const int which = data[0] - '0';
    for (int i = 0; i < N_FILES; i++) {
        const bool other_vocabulary = which < VOCABULARIES && i < VOCABULARIES; /* the first that is there is read */
        if (i == which)
            put(files[i].name, data + 1, size - 1);
        else if (files[i].text && !other_vocabulary)
            put(files[i].name, files[i].text, strlen(files[i].text));
        else
            remove(in_folder(files[i].name));
    }
    fuzz_model_path(folder);
    return 0;
}
