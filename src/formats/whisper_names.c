#include "formats/whisper_names.h"

#include <stdio.h>

static const char *const sides[] = {"encoder", "decoder"};

static const char *const plain[] = {
    "encoder.conv1.weight",   "encoder.conv1.bias",   "encoder.conv2.weight",           "encoder.conv2.bias",
    "encoder.ln_post.weight", "encoder.ln_post.bias", "encoder.positional_embedding",   "decoder.positional_embedding",
    "decoder.ln.weight",      "decoder.ln.bias",      "decoder.token_embedding.weight",
};

/* Of one layer; the encoder has no cross attention. Keys have no bias. */
static const char *const in_layer[] = {
    "attn_ln.weight",    "attn_ln.bias",    "attn.query.weight", "attn.query.bias", "attn.key.weight",
    "attn.value.weight", "attn.value.bias", "attn.out.weight",   "attn.out.bias",   "mlp_ln.weight",
    "mlp_ln.bias",       "mlp.0.weight",    "mlp.0.bias",        "mlp.2.weight",    "mlp.2.bias",
};
static const char *const in_decoder_layer[] = {
    "cross_attn_ln.weight",  "cross_attn_ln.bias",    "cross_attn.query.weight",
    "cross_attn.query.bias", "cross_attn.key.weight", "cross_attn.value.weight",
    "cross_attn.value.bias", "cross_attn.out.weight", "cross_attn.out.bias",
};

static sotto_status need(const sotto_model_file *file, const char *name, sotto_error *err)
{
    sotto_model_tensor t;
    return sotto_model_tensor_need(file, name, &t, err);
}

static sotto_status need_in_layer(const sotto_model_file *file, const char *side, int64_t layer,
                                  const char *const *names, size_t n, sotto_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char name[96];
        snprintf(name, sizeof name, "%s.blocks.%lld.%s", side, (long long)layer, names[i]);
        ST_TRY(need(file, name, err));
    }
    return SOTTO_OK;
}

sotto_status st_whisper_complete(const sotto_model_file *file, sotto_error *err)
{
    static const char *const layer_keys[] = {"whisper.n_audio_layer", "whisper.n_text_layer"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        ST_TRY(need(file, plain[i], err));
    for (int side = 0; side < 2; side++) {
        int64_t layers;
        ST_TRY(sotto_meta_int(file, layer_keys[side], &layers, err));
        for (int64_t layer = 0; layer < layers; layer++) {
            ST_TRY(need_in_layer(file, sides[side], layer, in_layer, sizeof in_layer / sizeof *in_layer, err));
            if (side == 1)
                ST_TRY(need_in_layer(file, sides[side], layer, in_decoder_layer,
                                     sizeof in_decoder_layer / sizeof *in_decoder_layer, err));
        }
    }
    return SOTTO_OK;
}
