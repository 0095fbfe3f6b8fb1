/* The type of every matrix in every mix, as llama.cpp's quantiser chooses it (tools/make_mix_golden.py). The models are
 * headers with nothing behind them: a dry run reads no elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/formats_support.h"

enum { TOKENS = 64, LINE = 1 << 12 };

typedef struct recipe {
    char name[32], arch[16];
    int layers, width, ff, heads, keys, head, tied, fused;
} recipe;

typedef struct matrices {
    blob infos;
    int n;
    uint64_t bytes;
} matrices;

static void put_matrix(matrices *m, int layer, const char *name, int n_in, int n_out)
{
    char full[64];
    if (layer < 0)
        snprintf(full, sizeof full, "%s.weight", name);
    else
        snprintf(full, sizeof full, "blk.%d.%s.weight", layer, name);
    blob_text(&m->infos, full, 8);
    blob_number(&m->infos, 2, 4);
    blob_number(&m->infos, (uint64_t)n_in, 8);
    blob_number(&m->infos, (uint64_t)n_out, 8);
    blob_number(&m->infos, 0, 4);
    blob_number(&m->infos, m->bytes, 8);
    m->bytes += (uint64_t)n_in * (uint64_t)n_out * 4;
    m->n++;
}

static matrices list_matrices(const recipe *r)
{
    matrices m = {0};
    put_matrix(&m, -1, "token_embd", r->width, TOKENS);
    if (!r->tied)
        put_matrix(&m, -1, "output", r->width, TOKENS);
    for (int i = 0; i < r->layers; i++) {
        if (r->fused) {
            put_matrix(&m, i, "attn_qkv", r->width, (r->heads + 2 * r->keys) * r->head);
        } else {
            put_matrix(&m, i, "attn_q", r->width, r->heads * r->head);
            put_matrix(&m, i, "attn_k", r->width, r->keys * r->head);
            put_matrix(&m, i, "attn_v", r->width, r->keys * r->head);
        }
        put_matrix(&m, i, "attn_output", r->heads * r->head, r->width);
        if (!r->fused)
            put_matrix(&m, i, "ffn_gate", r->width, r->ff);
        put_matrix(&m, i, "ffn_up", r->width, r->fused ? 2 * r->ff : r->ff);
        put_matrix(&m, i, "ffn_down", r->ff, r->width);
    }
    return m;
}

static void put_number(blob *b, const char *arch, const char *name, int value)
{
    char key[64];
    snprintf(key, sizeof key, "%s.%s", arch, name);
    blob_text(b, key, 8);
    blob_number(b, 4, 4);
    blob_number(b, (uint64_t)value, 4);
}

static void write_model(const recipe *r, const char *folder)
{
    matrices m = list_matrices(r);
    blob b = {0};
    blob_bytes(&b, "GGUF", 4);
    blob_number(&b, 3, 4);
    blob_number(&b, (uint64_t)m.n, 8);
    blob_number(&b, 4, 8);
    blob_text(&b, "general.architecture", 8);
    blob_number(&b, 8, 4);
    blob_text(&b, r->arch, 8);
    put_number(&b, r->arch, "block_count", r->layers);
    put_number(&b, r->arch, "attention.head_count", r->heads);
    put_number(&b, r->arch, "attention.head_count_kv", r->keys);
    blob_bytes(&b, m.infos.data, m.infos.n);
    while (b.n % 32 != 0)
        blob_number(&b, 0, 1);
    write_blob(folder, "model.gguf", &b);
    assert_int_equal(truncate(in_folder(folder, "model.gguf"), (off_t)(b.n + m.bytes)), 0);
    blob_free(&b);
    blob_free(&m.infos);
}

typedef struct letters {
    char text[LINE];
    int n;
    size_t bytes;
} letters;

static char letter_of(sotto_dtype dtype)
{
    static const char of[] = {
        [SOTTO_F32] = 'F',  [SOTTO_F16] = 'h',  [SOTTO_BF16] = 'b', [SOTTO_Q4_0] = 'a',  [SOTTO_Q4_1] = 'A',
        [SOTTO_Q5_0] = 'e', [SOTTO_Q5_1] = 'E', [SOTTO_Q8_0] = 'o', [SOTTO_Q2_K] = '2',  [SOTTO_Q3_K] = '3',
        [SOTTO_Q4_K] = '4', [SOTTO_Q5_K] = '5', [SOTTO_Q6_K] = '6', [SOTTO_IQ4_NL] = 'n'};
    return of[dtype];
}

static void note(void *user, const sotto_model_tensor *source, sotto_dtype to, size_t bytes)
{
    letters *l = user;
    (void)source;
    assert_true(l->n < LINE - 1);
    l->text[l->n++] = letter_of(to);
    l->text[l->n] = 0;
    l->bytes += bytes;
}

static void check(const sotto_model_file *f, const char *name, const char *mix, const sotto_imatrix *importance,
                  const char *want)
{
    letters got = {.n = 0};
    sotto_error err = {0};
    const sotto_convert_options o = {
        .dtype = mix, .importance = importance, .planned = note, .planned_user = &got, .dry_run = true};
    if (sotto_model_convert(f, "/never/written.gguf", &o, &err) != SOTTO_OK)
        fail_msg("%s to %s: %s", name, mix, err.text);
    if (strcmp(got.text, want) != 0)
        fail_msg("%s to %s:\n%s, expected\n%s", name, mix, got.text, want);
}

static void types_are_those_of_llama_quantize(void **state)
{
    (void)state;
    FILE *in = fopen(SOTTO_SOURCE_DIR "/tests/unit/data/mix_golden.tsv", "rb");
    assert_non_null(in);
    char *folder = make_folder(), line[LINE], mix[16], want[LINE];
    sotto_model_file *f = NULL;
    sotto_imatrix *importance;
    recipe r = {.name = ""};
    int n = 0, weighted;
    assert_int_equal(sotto_imatrix_create(&importance, NULL), SOTTO_OK);
    assert_int_equal(sotto_imatrix_add(importance, "none", 1, &(float){1}, 1, NULL), SOTTO_OK);
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "model %31s %15s %d %d %d %d %d %d %d %d", r.name, r.arch, &r.layers, &r.width, &r.ff,
                   &r.heads, &r.keys, &r.head, &r.tied, &r.fused) == 10) {
            sotto_model_file_free(f);
            write_model(&r, folder);
            f = must_open(in_folder(folder, "model.gguf"));
        } else if (sscanf(line, "%15s %d %4095s", mix, &weighted, want) == 3) {
            check(f, r.name, mix, weighted ? importance : NULL, want);
            n++;
        }
    }
    assert_int_equal(n, 9 * 22);
    sotto_imatrix_free(importance);
    sotto_model_file_free(f);
    fclose(in);
    remove_folder(folder);
}

/* ---- what the caller chooses ---- */

static const recipe two_layers = {"two layers", "llama", 2, 256, 512, 4, 2, 64, 0, 0};
static const recipe tied_layers = {"tied", "gemma3", 1, 256, 512, 4, 1, 64, 1, 0};

static void choices_win(void **state)
{
    (void)state;
    static const struct {
        const recipe *r;
        const char *mix, *output, *embedding;
        bool pure;
        const char *want;
    } cases[] = {
        {&two_layers, "Q4_K_M", NULL, NULL, false, "4644444444464446"},
        {&two_layers, "q4_k", NULL, NULL, false, "4644444444464446"},
        {&two_layers, "q4_k_m", NULL, NULL, true, "4444444444444444"},
        {&two_layers, "q4_k_m", "q8_0", NULL, false, "4o44444444464446"},
        {&two_layers, "q4_k_m", "q8_0", "f16", false, "ho44444444464446"},
        {&two_layers, "q4_k_m", "q8_0", "f16", true, "ho44444444444444"},
        {&two_layers, "f16", "q8_0", NULL, false, "hohhhhhhhhhhhhhh"},
        {&tied_layers, "q4_k_m", NULL, NULL, false, "64464446"},
        {&tied_layers, "q4_k_m", "q8_0", NULL, false, "o4464446"},
        {&tied_layers, "q4_k_m", "q8_0", "q5_k", false, "54464446"},
        {&tied_layers, "q4_k_m", NULL, NULL, true, "44444444"},
        {&tied_layers, NULL, NULL, NULL, false, "FFFFFFFF"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *folder = make_folder();
        write_model(cases[i].r, folder);
        sotto_model_file *f = must_open(in_folder(folder, "model.gguf"));
        letters got = {.n = 0};
        sotto_error err = {0};
        const sotto_convert_options o = {.dtype = cases[i].mix,
                                         .output_dtype = cases[i].output,
                                         .embedding_dtype = cases[i].embedding,
                                         .pure = cases[i].pure,
                                         .planned = note,
                                         .planned_user = &got,
                                         .dry_run = true};
        if (sotto_model_convert(f, "never.gguf", &o, &err) != SOTTO_OK)
            fail_msg("case %zu: %s", i, err.text);
        if (strcmp(got.text, cases[i].want) != 0)
            fail_msg("case %zu: %s, expected %s", i, got.text, cases[i].want);
        assert_int_equal(access("never.gguf", F_OK), -1);
        sotto_model_file_free(f);
        remove_folder(folder);
    }
}

static void bad_choices_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *arch, *format, *mix, *output;
        sotto_status status;
        const char *part;
    } cases[] = {
        {"llama", NULL, "q4_k_x", NULL, SOTTO_E_ARGUMENT, "q4_k_x"},
        {"llama", NULL, "i8", NULL, SOTTO_E_ARGUMENT, "i8"},
        {"llama", "ggml", "q4_0", NULL, SOTTO_E_ARGUMENT, "speech models only"},
        {"llama", NULL, "q4_0", "q4_k_m", SOTTO_E_ARGUMENT, "output type \"q4_k_m\""},
        {"llama", NULL, NULL, "q8_0", SOTTO_E_ARGUMENT, "without a type for all"},
        {"mamba", NULL, "q4_0", NULL, SOTTO_E_UNSUPPORTED, "mamba"},
        {"mamba", NULL, NULL, NULL, SOTTO_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *folder = make_folder();
        recipe r = two_layers;
        strcpy(r.arch, cases[i].arch);
        write_model(&r, folder);
        sotto_model_file *f = must_open(in_folder(folder, "model.gguf"));
        sotto_error err = {0};
        const sotto_convert_options o = {
            .format = cases[i].format, .dtype = cases[i].mix, .output_dtype = cases[i].output, .dry_run = true};
        expect(sotto_model_convert(f, "never.gguf", &o, &err), &err, cases[i].status, cases[i].part, cases[i].part);
        sotto_model_file_free(f);
        remove_folder(folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_are_those_of_llama_quantize),
        cmocka_unit_test(choices_win),
        cmocka_unit_test(bad_choices_are_refused),
    };
    return cmocka_run_group_tests_name("convert_types", tests, NULL, NULL);
}
