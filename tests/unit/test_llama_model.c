/* Models of the LLaMA family that are not as they should be: every failure names the key or the tensor. And what may differ. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "llama_support.h"

static const char *const archs[] = {"llama", "qwen2", "qwen3", "gemma3", "phi3"};

static void every_architecture_is_whole(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++) {
        const toy_recipe r = {.arch = archs[a]};
        sotto_llama_model *m = toy_must_load(&r);
        sotto_llama_model_info info;
        sotto_llama_model_get_info(m, &info);
        assert_string_equal(info.architecture, archs[a]);
        assert_string_equal(info.name, "");
        assert_string_equal(info.tokenizer, "llama");
        assert_null(info.chat_format);
        assert_int_equal(info.n_vocab, TOY_VOCAB);
        assert_int_equal(info.d_head, TOY_EMBD / TOY_HEADS);
        assert_int_equal(info.n_head_kv, TOY_HEADS_KV);
        assert_string_equal(info.compute, "f32");
        assert_true(info.n_params > 20000 && info.weight_bytes > 4 * 20000);
        sotto_llama_model_free(m);
    }
}

static void a_missing_tensor_is_named(void **state)
{
    (void)state;
    for (size_t a = 0; a < sizeof archs / sizeof *archs; a++)
        for (int i = 0; toy_tensor(archs[a], i); i++) {
            const char *name = toy_tensor(archs[a], i);
            const toy_recipe r = {.arch = archs[a], .without = name};
            sotto_llama_model *m;
            sotto_error err = {0};
            const sotto_status status = toy_load(&r, &m, &err);
            const bool tied = strcmp(name, "output.weight") == 0; /* the embedding serves */
            if (tied)
                assert_int_equal(status, SOTTO_OK);
            else if (strcmp(name, "blk.0.attn_qkv.weight") == 0)
                expect(status, &err, SOTTO_E_FORMAT, "blk.0.attn_q", archs[a]); /* what else there could be */
            else
                expect(status, &err, SOTTO_E_FORMAT, name, archs[a]);
            assert_true(tied == (m != NULL));
            sotto_llama_model_free(m);
        }
}

static void a_tensor_of_another_shape_is_named(void **state)
{
    (void)state;
    for (int i = 0; toy_tensor("qwen2", i); i++) {
        static const int64_t dims[][2] = {{8, 8}, {TOY_EMBD, 7}, {24, 0}, {TOY_EMBD, 100000}};
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            toy_recipe r = {.arch = "qwen2", .tensor = toy_tensor("qwen2", i)};
            memcpy(r.dim, dims[d], sizeof r.dim);
            sotto_llama_model *m;
            sotto_error err = {0};
            const sotto_status status = toy_load(&r, &m, &err);
            expect(status, &err, SOTTO_E_FORMAT, r.tensor, "shape");
            assert_null(m);
        }
    }
}

static void bad_metadata_is_named(void **state)
{
    (void)state;
    static const struct {
        toy_recipe r;
        sotto_status want;
        const char *part;
    } cases[] = {
        {{.arch = "whisper"}, SOTTO_E_UNSUPPORTED, "\"whisper\", expected one of llama, qwen2, qwen3, gemma3, phi3"},
        {{.arch = ""}, SOTTO_E_UNSUPPORTED, "general.architecture"},
        {{.arch = "llama4"}, SOTTO_E_UNSUPPORTED, "llama4"},
        {{.without = "general.architecture"}, SOTTO_E_NOT_FOUND, "general.architecture"},
        {{.without = "context_length"}, SOTTO_E_FORMAT, "llama.context_length: missing"},
        {{.without = "embedding_length"}, SOTTO_E_FORMAT, "llama.embedding_length: missing"},
        {{.without = "block_count"}, SOTTO_E_FORMAT, "llama.block_count: missing"},
        {{.without = "feed_forward_length"}, SOTTO_E_FORMAT, "llama.feed_forward_length: missing"},
        {{.without = "attention.head_count"}, SOTTO_E_FORMAT, "llama.attention.head_count: missing"},
        {{.without = "attention.layer_norm_rms_epsilon"}, SOTTO_E_FORMAT, "rms_epsilon: missing"},
        {{.key = "context_length", .value = 0}, SOTTO_E_FORMAT, "llama.context_length: 0, expected 1 to"},
        {{.key = "embedding_length", .value = 4294967295.0}, SOTTO_E_FORMAT, "llama.embedding_length: 4294967295"},
        {{.key = "embedding_length", .value = 64}, SOTTO_E_FORMAT, "token_embd.weight"},
        {{.key = "block_count", .value = 2}, SOTTO_E_FORMAT, "blk.1."},
        {{.key = "block_count", .value = 1000000}, SOTTO_E_FORMAT, "llama.block_count: 1000000, expected 1 to 512"},
        {{.key = "feed_forward_length", .value = 1e9}, SOTTO_E_FORMAT, "llama.feed_forward_length: 1000000000"},
        {{.key = "feed_forward_length", .value = 65}, SOTTO_E_FORMAT, "ffn_"},
        {{.key = "attention.head_count", .value = 0}, SOTTO_E_FORMAT, "llama.attention.head_count: 0"},
        {{.key = "attention.head_count", .value = 3},
         SOTTO_E_FORMAT,
         "llama.attention.head_count: 3 heads of an embedding of 32"},
        {{.key = "attention.head_count", .value = 16}, SOTTO_E_UNSUPPORTED, "heads of 2 elements"},
        {{.key = "attention.head_count_kv", .value = 3},
         SOTTO_E_FORMAT,
         "llama.attention.head_count_kv: 3, expected a divisor"},
        {{.key = "attention.key_length", .value = 4096}, SOTTO_E_FORMAT, "llama.attention.key_length: 4096"},
        {{.key = "attention.key_length", .value = 12}, SOTTO_E_UNSUPPORTED, "heads of 12 elements"},
        {{.key = "attention.key_length", .value = 16}, SOTTO_E_FORMAT, "blk.0.attn_"},
        {{.key = "attention.value_length", .value = 16}, SOTTO_E_UNSUPPORTED, "llama.attention.value_length: 16"},
        {{.key = "rope.dimension_count", .value = 4}, SOTTO_E_FORMAT, "llama.rope.dimension_count: 4, expected"},
        {{.arch = "phi3", .key = "rope.dimension_count", .value = 7}, SOTTO_E_FORMAT, "phi3.rope.dimension_count: 7"},
        {{.arch = "phi3", .key = "rope.dimension_count", .value = 10}, SOTTO_E_FORMAT, "phi3.rope.dimension_count: 10"},
        {{.key = "rope.freq_base", .value = 0}, SOTTO_E_FORMAT, "llama.rope.freq_base: 0"},
        {{.key = "rope.freq_base", .value = NAN}, SOTTO_E_FORMAT, "llama.rope.freq_base: "},
        {{.key = "rope.freq_base", .value = INFINITY}, SOTTO_E_FORMAT, "llama.rope.freq_base: inf"},
        {{.key = "rope.scaling.factor", .value = -1}, SOTTO_E_FORMAT, "llama.rope.scaling.factor: -1"},
        {{.key = "attention.layer_norm_rms_epsilon", .value = NAN}, SOTTO_E_FORMAT, "rms_epsilon"},
        {{.key = "attention.layer_norm_rms_epsilon", .value = 2}, SOTTO_E_FORMAT, "rms_epsilon: 2, expected 0 to 1"},
        {{.key = "expert_count", .value = 8}, SOTTO_E_UNSUPPORTED, "llama.expert_count: 8"},
        {{.text_key = "rope.scaling.type", .text = "dynamic"}, SOTTO_E_UNSUPPORTED, "\"dynamic\", expected none, linear"},
        {{.text_key = "block_count", .text = "1"}, SOTTO_E_FORMAT, "llama.block_count"},
        {{.n_tokens = TOY_VOCAB + 1},
         SOTTO_E_FORMAT,
         "token_embd.weight: 260 rows, expected one for each of the 261 tokens"},
        {{.n_tokens = TOY_VOCAB - 1}, SOTTO_E_FORMAT, "token_embd.weight: 260 rows"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sotto_llama_model *m;
        sotto_error err = {0};
        const sotto_status status = toy_load(&cases[i].r, &m, &err);
        expect(status, &err, cases[i].want, cases[i].part, cases[i].part);
        assert_null(m);
    }
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    const toy_recipe r = {0};
    blob b = toy_file(&r);
    for (size_t n = 0; n < b.n; n += n < 1000 ? 1 : n < b.n - 40 ? 997 : 1) {
        sotto_model_file *file;
        sotto_error err = {0};
        if (sotto_model_file_open_memory(b.data, n, "cut", &file, &err) == SOTTO_OK) {
            sotto_llama_model *m;
            const sotto_status status = sotto_llama_model_load(file, NULL, &m, &err);
            sotto_llama_model_free(m);
            sotto_model_file_free(file);
            if (status == SOTTO_OK && n < b.n - 32) /* only padding is gone */
                fail_msg("%zu of %zu bytes were accepted", n, b.n);
        }
    }
    blob_free(&b);
}

static void decode(const sotto_llama_model *m, int n, float *out)
{
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.cache_k = o.cache_v = SOTTO_F32;
    sotto_llama_session *s;
    sotto_error err = {0};
    int32_t tokens[32];
    for (int i = 0; i < n; i++)
        tokens[i] = 3 + 7 * i;
    if (sotto_llama_session_create(m, &o, &s, &err) || sotto_llama_decode_tokens(s, 0, tokens, n, &err))
        fail_msg("%s", err.text);
    memcpy(out, sotto_llama_logits(s, -1), TOY_VOCAB * sizeof *out);
    sotto_llama_session_free(s);
}

/* Parts of one product may be of several types: what is not alike is multiplied apart. */
static void parts_of_several_types_are_products_of_their_own(void **state)
{
    (void)state;
    static const char *const halves[] = {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight",
                                         "blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"};
    const toy_recipe plain = {0};
    float want[TOY_VOCAB], got[TOY_VOCAB];
    sotto_llama_model *m = toy_must_load(&plain);
    decode(m, 9, want);
    sotto_llama_model_free(m);
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        const toy_recipe r = {.half = halves[i]}; /* the numbers fit f16 exactly */
        m = toy_must_load(&r);
        decode(m, 9, got);
        for (int k = 0; k < TOY_VOCAB; k++)
            assert_true(fabsf(got[k] - want[k]) <= 1e-6f + 1e-5f * fabsf(want[k]));
        sotto_llama_model_free(m);
    }
}

static void a_cap_bounds_logits(void **state)
{
    (void)state;
    const toy_recipe plain = {.arch = "gemma3"},
                     capped = {.arch = "gemma3", .key = "final_logit_softcapping", .value = 0.5};
    float want[TOY_VOCAB], got[TOY_VOCAB];
    sotto_llama_model *m = toy_must_load(&plain);
    decode(m, 5, want);
    sotto_llama_model_free(m);
    m = toy_must_load(&capped);
    decode(m, 5, got);
    sotto_llama_model_free(m);
    for (int k = 0; k < TOY_VOCAB; k++)
        assert_true(fabs(got[k] - 0.5 * tanh(want[k] / 0.5)) < 1e-5);
}

static void sessions_refuse_bad_options(void **state)
{
    (void)state;
    const toy_recipe plain = {0};
    sotto_llama_model *m = toy_must_load(&plain);
    static const struct {
        int n_ctx, n_batch, n_seq;
        sotto_dtype k, v;
        sotto_status want;
        const char *part;
    } cases[] = {
        {-1, 8, 1, SOTTO_F16, SOTTO_F16, SOTTO_E_ARGUMENT, "n_ctx: -1"},
        {1 << 30, 8, 1, SOTTO_F16, SOTTO_F16, SOTTO_E_ARGUMENT, "n_ctx: 1073741824"},
        {16, -1, 1, SOTTO_F16, SOTTO_F16, SOTTO_E_ARGUMENT, "n_batch: -1"},
        {16, 8, 0, SOTTO_F16, SOTTO_F16, SOTTO_E_ARGUMENT, "n_seq: 0"},
        {16, 8, 257, SOTTO_F16, SOTTO_F16, SOTTO_E_ARGUMENT, "n_seq: 257, expected 1 to 256"},
        {16, 8, 1, SOTTO_Q4_0, SOTTO_F16, SOTTO_E_ARGUMENT, "cache_k: type 2"},
        {16, 8, 1, SOTTO_F16, SOTTO_I8, SOTTO_E_ARGUMENT, "cache_v: type 24"},
        {16, 8, 1, SOTTO_Q8_0, SOTTO_Q8_0, SOTTO_E_UNSUPPORTED, "heads of 8 elements"},
        {16, 64, 256, SOTTO_F32, SOTTO_F32, SOTTO_OK, NULL},
        {1, 1, 1, SOTTO_BF16, SOTTO_BF16, SOTTO_OK, NULL},
        {0, 0, 1, SOTTO_F16, SOTTO_F16, SOTTO_OK, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sotto_llama_session_options o;
        sotto_llama_session_options_default(&o);
        o.n_ctx = cases[i].n_ctx;
        o.n_batch = cases[i].n_batch;
        o.n_seq = cases[i].n_seq;
        o.cache_k = cases[i].k;
        o.cache_v = cases[i].v;
        sotto_llama_session *s;
        sotto_error err = {0};
        const sotto_status status = sotto_llama_session_create(m, &o, &s, &err);
        if (cases[i].want == SOTTO_OK)
            assert_int_equal(status, SOTTO_OK);
        else
            expect(status, &err, cases[i].want, cases[i].part, cases[i].part);
        sotto_llama_session_free(s);
    }
    sotto_llama_model_free(m);
}

/* Nothing is loaded, everything is counted. */
static void measuring_takes_no_memory_and_counts_the_same(void **state)
{
    (void)state;
    const toy_recipe plain = {0};
    blob b = toy_file(&plain);
    sotto_llama_memory memory[2][2];
    for (int measure = 0; measure < 2; measure++) {
        sotto_model_file *file;
        sotto_llama_model *m;
        sotto_llama_session *s;
        sotto_error err = {0};
        sotto_llama_model_options o;
        sotto_llama_model_options_default(&o);
        o.backend.device = "cpu";
        o.measure_only = measure == 1;
        if (sotto_model_file_open_memory(b.data, b.n, "toy", &file, &err) ||
            sotto_llama_model_load(file, &o, &m, &err) || sotto_llama_session_create(m, NULL, &s, &err))
            fail_msg("%s", err.text);
        sotto_llama_get_memory(s, -1, &memory[measure][0]);
        sotto_llama_get_memory(s, 0, &memory[measure][1]);
        const int32_t token = 4;
        const sotto_status status = sotto_llama_decode_tokens(s, 0, &token, 1, &err);
        assert_int_equal(status, measure ? SOTTO_E_ARGUMENT : SOTTO_OK);
        assert_int_equal(sotto_llama_state_save(s, 0, "/nowhere/x", &err),
                         measure ? SOTTO_E_ARGUMENT : SOTTO_E_NOT_FOUND);
        sotto_llama_session_free(s);
        sotto_llama_model_free(m);
        sotto_model_file_free(file);
    }
    assert_memory_equal(&memory[0], &memory[1], sizeof memory[0]);
    assert_memory_equal(&memory[0][0], &memory[0][1], sizeof memory[0][0]);
    assert_true(memory[0][0].weights > 0 && memory[0][0].cache > 0 && memory[0][0].compute > 0);
    blob_free(&b);
}

static void missing_arguments_are_errors(void **state)
{
    (void)state;
    const toy_recipe plain = {0};
    sotto_llama_model *m = toy_must_load(&plain), *none;
    sotto_llama_session *s, *other = NULL;
    sotto_sampler *sampler;
    sotto_llama_text *text;
    sotto_error err = {0};
    const int32_t token = 4;
    const sotto_llama_row row = {.token = 4};
    int64_t count;
    size_t n = 1;
    if (sotto_llama_session_create(m, NULL, &s, &err))
        fail_msg("%s", err.text);
    const sotto_status refused[] = {
        sotto_llama_model_open(NULL, NULL, &none, &err),
        sotto_llama_model_open("x", NULL, NULL, &err),
        sotto_llama_model_load(NULL, NULL, &none, &err),
        sotto_llama_session_create(NULL, NULL, &other, &err),
        sotto_llama_session_create(m, NULL, NULL, &err),
        sotto_llama_sampler_create(NULL, NULL, &sampler, &err),
        sotto_llama_sampler_create(m, NULL, NULL, &err),
        sotto_llama_text_create(NULL, NULL, 0, &text, &err),
        sotto_llama_text_create(m, NULL, 1, &text, &err),
        sotto_llama_tokenize(NULL, "a", 1, 0, NULL, 0, &count, &err),
        sotto_llama_tokenize(m, "a", 1, 0, NULL, 1, &count, &err),
        sotto_llama_tokenize(m, "a", 1, 0, NULL, 0, NULL, &err),
        sotto_llama_chat_tokenize(NULL, NULL, NULL, 0, true, NULL, 0, &count, &err),
        sotto_llama_decode(NULL, &row, 1, &err),
        sotto_llama_decode_tokens(NULL, 0, &token, 1, &err),
        sotto_llama_seq_truncate(NULL, 0, 0, &err),
        sotto_llama_seq_copy(NULL, 0, 0, 0, &err),
        sotto_llama_seq_shift(NULL, 0, 0, 0, &err),
        sotto_llama_state_save(NULL, 0, "x", &err),
        sotto_llama_state_load(NULL, 0, "x", &err),
        sotto_llama_observe(NULL, NULL, NULL, &err),
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        assert_int_equal(refused[i], SOTTO_E_ARGUMENT);
    assert_null(other);
    assert_string_equal(sotto_llama_token_bytes(NULL, 0, false, &n), "");
    assert_int_equal(n, 0);
    assert_string_equal(sotto_llama_token_bytes(m, -1, false, NULL), "");
    assert_false(sotto_llama_token_ends(m, 99999));
    assert_true(sotto_llama_token_ends(m, 2));
    assert_int_equal(sotto_llama_token_find(m, SOTTO_LLAMA_TOKEN_BEGIN), 1);
    assert_int_equal(sotto_llama_token_find(m, (sotto_llama_token)99), -1);
    assert_null(sotto_llama_logits(NULL, 0));
    assert_int_equal(sotto_llama_seq_length(NULL, 0), 0);
    assert_null(sotto_llama_seq_tokens(NULL, 0));
    assert_int_equal(sotto_llama_chat_tokenize(m, NULL, NULL, 0, true, NULL, 0, &count, &err), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_llama_chat_tokenize(m, "esperanto", NULL, 0, true, NULL, 0, &count, &err),
                     SOTTO_E_UNSUPPORTED);
    sotto_llama_session_free(s);
    sotto_llama_session_free(NULL);
    sotto_llama_text_free(NULL);
    sotto_llama_model_free(NULL);
    sotto_llama_model_free(m);
}

static void keep(void *user, const char *text, size_t n)
{
    char *kept = user;
    const size_t length = strlen(kept);
    if (length + n < 64)
        memcpy(kept + length, text, n);
}

static void graphs_are_drawn(void **state)
{
    (void)state;
    const toy_recipe plain = {0};
    sotto_llama_model *m = toy_must_load(&plain);
    sotto_llama_session *s = NULL;
    sotto_error err = {0};
    char text[65] = {0};
    assert_int_equal(sotto_llama_session_create(m, NULL, &s, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_write_dot(s, 1, keep, text, &err), SOTTO_OK);
    assert_int_equal(strncmp(text, "digraph ", 8), 0);
    expect(sotto_llama_write_dot(s, 0, keep, text, &err), &err, SOTTO_E_ARGUMENT, "n_rows is 0", "n_rows");
    assert_int_equal(sotto_llama_write_dot(s, 1, NULL, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_llama_write_dot(NULL, 1, keep, text, &err), SOTTO_E_ARGUMENT);
    sotto_llama_session_free(s);
    sotto_llama_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_architecture_is_whole),
        cmocka_unit_test(a_missing_tensor_is_named),
        cmocka_unit_test(a_tensor_of_another_shape_is_named),
        cmocka_unit_test(bad_metadata_is_named),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(parts_of_several_types_are_products_of_their_own),
        cmocka_unit_test(a_cap_bounds_logits),
        cmocka_unit_test(sessions_refuse_bad_options),
        cmocka_unit_test(measuring_takes_no_memory_and_counts_the_same),
        cmocka_unit_test(missing_arguments_are_errors),
        cmocka_unit_test(graphs_are_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
