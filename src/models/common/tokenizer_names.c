/* tokenizer_names.c: which tokens have a purpose: by keys of the file, else by names that models are known to use, as in
 * llama.cpp. */
#include <stdio.h>
#include <string.h>

#include "models/common/tokenizer_impl.h"

static const struct {
    int which;
    const char *key;
} keys[] = {
    {ST_ID_BOS, "tokenizer.ggml.bos_token_id"},         {ST_ID_EOS, "tokenizer.ggml.eos_token_id"},
    {ST_ID_EOT, "tokenizer.ggml.eot_token_id"},         {ST_ID_EOM, "tokenizer.ggml.eom_token_id"},
    {ST_ID_UNK, "tokenizer.ggml.unknown_token_id"},     {ST_ID_PAD, "tokenizer.ggml.padding_token_id"},
    {ST_ID_FIM_PRE, "tokenizer.ggml.fim_pre_token_id"}, {ST_ID_FIM_SUF, "tokenizer.ggml.fim_suf_token_id"},
    {ST_ID_FIM_MID, "tokenizer.ggml.fim_mid_token_id"}, {ST_ID_FIM_PAD, "tokenizer.ggml.fim_pad_token_id"},
    {ST_ID_FIM_REP, "tokenizer.ggml.fim_rep_token_id"}, {ST_ID_FIM_SEP, "tokenizer.ggml.fim_sep_token_id"},
    {ST_ID_FIM_PRE, "tokenizer.ggml.prefix_token_id"},  {ST_ID_FIM_SUF, "tokenizer.ggml.suffix_token_id"},
    {ST_ID_FIM_MID, "tokenizer.ggml.middle_token_id"},
};

/* Names for what the file does not say; the first that is a token. */
static const struct {
    int which;
    const char *name;
} names[] = {
    {ST_ID_EOT, "<|eot_id|>"},
    {ST_ID_EOT, "<|im_end|>"},
    {ST_ID_EOT, "<|end|>"},
    {ST_ID_EOT, "<end_of_turn>"},
    {ST_ID_EOT, "<|endoftext|>"},
    {ST_ID_EOT, "<|end_of_text|>"},
    {ST_ID_EOT, "<EOT>"},
    {ST_ID_EOT, "_<EOT>"},
    {ST_ID_EOT, "[EOT]"},
    {ST_ID_EOT, "<\uff5cend\u2581of\u2581sentence\uff5c>"},
    {ST_ID_EOT, "<end_of_utterance>"},
    {ST_ID_EOM, "<|eom_id|>"},
    {ST_ID_FIM_PRE, "<|fim_prefix|>"},
    {ST_ID_FIM_PRE, "<fim-prefix>"},
    {ST_ID_FIM_PRE, "<fim_prefix>"},
    {ST_ID_FIM_PRE, "<\uff5cfim\u2581begin\uff5c>"},
    {ST_ID_FIM_PRE, "<PRE>"},
    {ST_ID_FIM_PRE, "\u2581<PRE>"},
    {ST_ID_FIM_PRE, "<|code_prefix|>"},
    {ST_ID_FIM_PRE, "<|prefix|>"},
    {ST_ID_FIM_SUF, "<|fim_suffix|>"},
    {ST_ID_FIM_SUF, "<fim-suffix>"},
    {ST_ID_FIM_SUF, "<fim_suffix>"},
    {ST_ID_FIM_SUF, "<\uff5cfim\u2581hole\uff5c>"},
    {ST_ID_FIM_SUF, "<SUF>"},
    {ST_ID_FIM_SUF, "\u2581<SUF>"},
    {ST_ID_FIM_SUF, "<|code_suffix|>"},
    {ST_ID_FIM_SUF, "<|suffix|>"},
    {ST_ID_FIM_MID, "<|fim_middle|>"},
    {ST_ID_FIM_MID, "<fim-middle>"},
    {ST_ID_FIM_MID, "<fim_middle>"},
    {ST_ID_FIM_MID, "<\uff5cfim\u2581end\uff5c>"},
    {ST_ID_FIM_MID, "<MID>"},
    {ST_ID_FIM_MID, "\u2581<MID>"},
    {ST_ID_FIM_MID, "<|code_middle|>"},
    {ST_ID_FIM_MID, "<|middle|>"},
    {ST_ID_FIM_PAD, "<|fim_pad|>"},
    {ST_ID_FIM_PAD, "<fim-pad>"},
    {ST_ID_FIM_PAD, "<fim_pad>"},
    {ST_ID_FIM_PAD, "<PAD>"},
    {ST_ID_FIM_PAD, "[PAD]"},
    {ST_ID_FIM_REP, "<|fim_repo|>"},
    {ST_ID_FIM_REP, "<|repo_name|>"},
    {ST_ID_FIM_REP, "<fim-repo>"},
    {ST_ID_FIM_REP, "<REPO>"},
    {ST_ID_FIM_REP, "<reponame>"},
    {ST_ID_FIM_SEP, "<|file_sep|>"},
};

/* Tokens that end a text wherever they are. */
static const char *const ends[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "[e~[",
};

/* Parts of an answer that are always shown (gpt-oss). */
static const char *const shown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

static int32_t find(const st_tokenizer *t, const char *name)
{
    return st_tok_table_find(&t->spelling, name, strlen(name));
}

static bool ends_with_name(const st_tokenizer *t, const char *name)
{
    const int32_t id = find(t, name);
    return id >= 0 && t->flags[id] & ST_TOK_ENDS;
}

static sotto_status read_keys(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    for (int i = 0; i < ST_N_IDS; i++)
        if (t->id[i] >= t->spelling.n)
            t->id[i] = -1;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        int64_t id = -1;
        ST_TRY(st_tok_get_int(file, keys[i].key, &id, err));
        if (id == -1)
            continue;
        if (id >= 0 && id < t->spelling.n)
            t->id[keys[i].which] = (int32_t)id;
        else
            snprintf(t->warning, sizeof t->warning, "%s is %lld of %d tokens and was not taken", keys[i].key,
                     (long long)id, t->spelling.n);
    }
    return SOTTO_OK;
}

static void find_names(st_tokenizer *t)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int32_t *id = &t->id[names[i].which];
        if (*id >= 0)
            continue;
        *id = find(t, names[i].name);
        if (*id >= 0)
            t->flags[*id] |= ST_TOK_CONTROL; /* files were made that say otherwise */
    }
}

static void mark_ends(st_tokenizer *t)
{
    static const int which[] = {ST_ID_FIM_PAD, ST_ID_FIM_REP, ST_ID_FIM_SEP, ST_ID_EOS, ST_ID_EOT, ST_ID_EOM};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const int32_t id = find(t, ends[i]);
        if (id >= 0)
            t->flags[id] |= ST_TOK_ENDS | ST_TOK_CONTROL;
    }
    for (size_t i = 0; i < sizeof which / sizeof *which; i++)
        if (t->id[which[i]] >= 0)
            t->flags[t->id[which[i]]] |= ST_TOK_ENDS;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const int32_t id = find(t, shown[i]);
        if (id >= 0)
            t->flags[id] = ST_TOK_USER | (t->flags[id] & ST_TOK_ENDS);
    }
    /* In formats with calls of tools "<|end|>" only ends a part of the answer; in those with their own end "</s>" is text. */
    const bool calls = ends_with_name(t, "<|call|>") || ends_with_name(t, "<|calls|>");
    if (calls && (ends_with_name(t, "<|return|>") || ends_with_name(t, "<|flush|>")) && ends_with_name(t, "<|end|>"))
        t->flags[find(t, "<|end|>")] = ST_TOK_USER;
    if ((ends_with_name(t, "<|tool_response>") || ends_with_name(t, "<|plamo:eos|>")) && ends_with_name(t, "</s>"))
        t->flags[find(t, "</s>")] = ST_TOK_NORMAL;
}

sotto_status st_tok_name_ids(st_tokenizer *t, const sotto_model_file *file, sotto_error *err)
{
    ST_TRY(read_keys(t, file, err));
    find_names(t);
    mark_ends(t);
    return SOTTO_OK;
}
