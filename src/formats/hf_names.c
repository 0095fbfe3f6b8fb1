#include "formats/hf_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pair {
    const char *from, *to;
} pair;

/* Behind "model.". */
static const pair whole[] = {
    {"encoder.conv1.weight", "encoder.conv1.weight"},
    {"encoder.conv1.bias", "encoder.conv1.bias"},
    {"encoder.conv2.weight", "encoder.conv2.weight"},
    {"encoder.conv2.bias", "encoder.conv2.bias"},
    {"encoder.embed_positions.weight", "encoder.positional_embedding"},
    {"encoder.layer_norm.weight", "encoder.ln_post.weight"},
    {"encoder.layer_norm.bias", "encoder.ln_post.bias"},
    {"decoder.embed_tokens.weight", "decoder.token_embedding.weight"},
    {"decoder.embed_positions.weight", "decoder.positional_embedding"},
    {"decoder.layer_norm.weight", "decoder.ln.weight"},
    {"decoder.layer_norm.bias", "decoder.ln.bias"},
};

/* Behind "encoder.layers.N.", before ".weight" or ".bias". */
static const pair modules[] = {
    {"self_attn.q_proj", "attn.query"},
    {"self_attn.k_proj", "attn.key"},
    {"self_attn.v_proj", "attn.value"},
    {"self_attn.out_proj", "attn.out"},
    {"self_attn_layer_norm", "attn_ln"},
    {"encoder_attn.q_proj", "cross_attn.query"},
    {"encoder_attn.k_proj", "cross_attn.key"},
    {"encoder_attn.v_proj", "cross_attn.value"},
    {"encoder_attn.out_proj", "cross_attn.out"},
    {"encoder_attn_layer_norm", "cross_attn_ln"},
    {"fc1", "mlp.0"},
    {"fc2", "mlp.2"},
    {"final_layer_norm", "mlp_ln"},
};

static const char *skip(const char *text, const char *start)
{
    const size_t n = strlen(start);
    return strncmp(text, start, n) == 0 ? text + n : NULL;
}

static bool in_layer(const char *name, char *out, size_t size)
{
    const bool encoder = name[0] == 'e';
    const char *rest = skip(name, encoder ? "encoder.layers." : "decoder.layers.");
    if (!rest || rest[0] < '0' || rest[0] > '9')
        return false;
    char *end;
    const long layer = strtol(rest, &end, 10);
    const char *leaf = strrchr(end, '.');
    if (*end != '.' || leaf == end || layer > 9999 || (strcmp(leaf, ".weight") != 0 && strcmp(leaf, ".bias") != 0))
        return false;
    const size_t n = (size_t)(leaf - end - 1);
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strlen(modules[i].from) == n && memcmp(modules[i].from, end + 1, n) == 0) {
            snprintf(out, size, "%s.blocks.%ld.%s%s", encoder ? "encoder" : "decoder", layer, modules[i].to, leaf);
            return true;
        }
    return false;
}

bool st_hf_name(const char *name, char *out, size_t size)
{
    const char *behind = skip(name, "model.");
    if (!behind)
        behind = name;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        if (strcmp(behind, whole[i].from) == 0) {
            snprintf(out, size, "%s", whole[i].to);
            return true;
        }
    if (in_layer(behind, out, size))
        return true;
    snprintf(out, size, "%s", name);
    return false;
}
