#include "models/whisper/hparams.h"

#include <string.h>

#include "base/status.h"

/* Upper bounds are far above any published model and keep every later product of two sizes inside 32 bits. */
static const struct {
    const char *key;
    size_t offset;
    int32_t min, max;
} fields[] = {
    {"whisper.n_vocab", offsetof(st_hparams, n_vocab), 2, 1 << 20},
    {"whisper.n_audio_ctx", offsetof(st_hparams, n_audio_ctx), 1, 1500},
    {"whisper.n_audio_state", offsetof(st_hparams, n_audio_state), 8, 8192},
    {"whisper.n_audio_head", offsetof(st_hparams, n_audio_head), 1, 256},
    {"whisper.n_audio_layer", offsetof(st_hparams, n_audio_layer), 1, 128},
    {"whisper.n_text_ctx", offsetof(st_hparams, n_text_ctx), 8, 8192},
    {"whisper.n_text_state", offsetof(st_hparams, n_text_state), 8, 8192},
    {"whisper.n_text_head", offsetof(st_hparams, n_text_head), 1, 256},
    {"whisper.n_text_layer", offsetof(st_hparams, n_text_layer), 1, 128},
    {"whisper.n_mels", offsetof(st_hparams, n_mels), 1, 256},
};

static const struct {
    const char *name;
    int32_t n_text_state, n_audio_layer, n_text_layer, n_mels;
} sizes[] = {
    {"tiny", 384, 4, 4, 80},
    {"base", 512, 6, 6, 80},
    {"small", 768, 12, 12, 80},
    {"medium", 1024, 24, 24, 80},
    {"large", 1280, 32, 32, 80},
    {"large-v3", 1280, 32, 32, 128},
    {"large-v3-turbo", 1280, 32, 4, 128},
};

static const char *const english_names[] = {"tiny.en", "base.en", "small.en", "medium.en"};

static sotto_status check_heads(int32_t n_state, int32_t n_head, const char *which, sotto_error *err)
{
    if (n_state % n_head != 0 || (n_state / n_head) % 8 != 0 || n_state / n_head > 128)
        return st_fail(
            err, SOTTO_E_FORMAT,
            "whisper.n_%s_head: %d heads of a state of %d, expected heads of 8 to 128 elements, a multiple of 8", which,
            (int)n_head, (int)n_state);
    return SOTTO_OK;
}

sotto_status st_hparams_read(const sotto_model_file *file, st_hparams *out, sotto_error *err)
{
    const char *architecture;
    size_t n;
    ST_TRY(sotto_meta_string(file, "general.architecture", &architecture, &n, err));
    if (n != 7 || memcmp(architecture, "whisper", 7) != 0)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "general.architecture: \"%.*s\", expected \"whisper\"",
                       (int)(n < 64 ? n : 64), architecture);
    st_hparams h = {0};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        int64_t v;
        ST_TRY(sotto_meta_int(file, fields[i].key, &v, err));
        if (v < fields[i].min || v > fields[i].max)
            return st_fail(err, SOTTO_E_FORMAT, "%s: %lld, expected %d to %d", fields[i].key, (long long)v,
                           (int)fields[i].min, (int)fields[i].max);
        *(int32_t *)((char *)&h + fields[i].offset) = (int32_t)v;
    }
    ST_TRY(check_heads(h.n_audio_state, h.n_audio_head, "audio", err));
    ST_TRY(check_heads(h.n_text_state, h.n_text_head, "text", err));
    if (h.n_audio_state != h.n_text_state)
        return st_fail(err, SOTTO_E_FORMAT, "whisper.n_text_state: %d, expected whisper.n_audio_state, %d",
                       (int)h.n_text_state, (int)h.n_audio_state);
    *out = h;
    return SOTTO_OK;
}

const char *st_hparams_size_name(const st_hparams *h)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (sizes[i].n_text_state != h->n_text_state || sizes[i].n_audio_layer != h->n_audio_layer ||
            sizes[i].n_text_layer != h->n_text_layer || sizes[i].n_mels != h->n_mels)
            continue;
        if (h->n_vocab < 51865 && i < sizeof english_names / sizeof *english_names)
            return english_names[i];
        return sizes[i].name;
    }
    return "custom";
}
