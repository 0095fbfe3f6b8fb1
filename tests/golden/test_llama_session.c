/* Sessions on a small seeded model: sequences that share a past, several in one batch, what is dropped, what a failure leaves
 * behind, shifts, and states in files. Logits of a text that is decoded alone are what everything is compared with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "golden/llama_support.h"
#include "models/llama/session_impl.h"

enum { N_CTX = 96 };

static const double same = 1e-5; /* of the largest logit: other plans add in another order */

static sotto_llama_model *model; /* "qwen3", f32, on one thread */

static int open_model(void **state)
{
    (void)state;
    if (llama_is_made())
        model = llama_open("qwen3", NULL);
    return 0;
}

static int close_model(void **state)
{
    (void)state;
    sotto_llama_model_free(model);
    return 0;
}

#define NEEDS_MODEL() \
    do {              \
        if (!model)   \
            skip();   \
    } while (0)

static sotto_status append(sotto_llama_session *s, int32_t seq, const int32_t *tokens, int64_t n)
{
    sotto_error err = {0};
    const sotto_status status = sotto_llama_decode_tokens(s, seq, tokens, n, &err);
    assert_true(status == SOTTO_OK || (err.code == status && err.text[0]));
    return status;
}

static const float *last(const sotto_llama_session *s)
{
    const float *l = sotto_llama_logits(s, -1);
    assert_non_null(l);
    return l;
}

/* Logits behind the text alone, in a session of its own. */
static void alone(const int32_t *tokens, int n, float *out)
{
    sotto_llama_session *s = llama_session(model, N_CTX, 32, 1);
    assert_int_equal(append(s, 0, tokens, n), SOTTO_OK);
    memcpy(out, last(s), LLAMA_VOCAB * sizeof *out);
    sotto_llama_session_free(s);
}

static void text(int32_t *tokens, int n, int first)
{
    for (int i = 0; i < n; i++)
        tokens[i] = llama_token(first + i);
}

static void assert_same(const float *got, const float *want)
{
    const double d = llama_difference(got, want, LLAMA_VOCAB);
    if (!(d <= same))
        fail_msg("logits differ by %g of the largest", d);
}

static void one_batch_holds_rows_of_several_sequences(void **state)
{
    (void)state;
    NEEDS_MODEL();
    enum { SEQ = 4, LENGTH = 9 };
    int32_t tokens[SEQ][LENGTH];
    sotto_llama_row rows[SEQ * LENGTH];
    int n = 0;
    for (int q = 0; q < SEQ; q++)
        text(tokens[q], LENGTH, 3 * q);
    for (int i = 0; i < LENGTH; i++)
        for (int q = 0; q < SEQ; q++) /* one of them is shorter */
            if (q != 2 || i < LENGTH - 3)
                rows[n++] = (sotto_llama_row){
                    .token = tokens[q][i], .seq = q, .logits = i == (q == 2 ? LENGTH - 4 : LENGTH - 1)};
    for (int batch = 5; batch <= 64; batch += 59) {
        sotto_llama_session *s = llama_session(model, N_CTX, batch, SEQ);
        sotto_error err = {0};
        if (sotto_llama_decode(s, rows, n, &err) != SOTTO_OK)
            fail_msg("%s", err.text);
        static const int order[SEQ] = {2, 0, 1, 3}; /* of the rows that wanted logits */
        for (int i = 0; i < SEQ; i++) {
            float want[LLAMA_VOCAB];
            const int q = order[i], length = q == 2 ? LENGTH - 3 : LENGTH;
            alone(tokens[q], length, want);
            assert_same(sotto_llama_logits(s, i), want);
            assert_ptr_equal(sotto_llama_logits(s, i), sotto_llama_logits(s, i - SEQ));
            assert_int_equal(sotto_llama_seq_length(s, q), length);
            assert_memory_equal(sotto_llama_seq_tokens(s, q), tokens[q], (size_t)length * sizeof(int32_t));
        }
        assert_null(sotto_llama_logits(s, SEQ));
        assert_null(sotto_llama_logits(s, -SEQ - 1));
        sotto_llama_session_free(s);
    }
}

static int32_t best(const float *logits)
{
    int32_t b = 0;
    for (int32_t i = 1; i < LLAMA_VOCAB; i++)
        b = logits[i] > logits[b] ? i : b;
    return b;
}

static void four_sequences_say_what_each_says_alone(void **state)
{
    (void)state;
    NEEDS_MODEL();
    enum { SEQ = 4, PROMPT = 6, STEPS = 14 };
    int32_t want[SEQ][STEPS];
    for (int q = 0; q < SEQ; q++) {
        sotto_llama_session *s = llama_session(model, N_CTX, 32, 1);
        llama_feed(s, 0, q, q + PROMPT);
        for (int i = 0; i < STEPS; i++) {
            want[q][i] = best(last(s));
            assert_int_equal(append(s, 0, &want[q][i], 1), SOTTO_OK);
        }
        sotto_llama_session_free(s);
    }
    sotto_llama_session *s = llama_session(model, N_CTX, 32, SEQ);
    sotto_error err = {0};
    sotto_llama_row rows[SEQ * PROMPT];
    for (int i = 0; i < SEQ * PROMPT; i++)
        rows[i] = (sotto_llama_row){
            .token = llama_token(i / PROMPT + i % PROMPT), .seq = i / PROMPT, .logits = i % PROMPT == PROMPT - 1};
    assert_int_equal(sotto_llama_decode(s, rows, SEQ * PROMPT, &err), SOTTO_OK);
    for (int i = 0; i < STEPS; i++) {
        for (int q = 0; q < SEQ; q++) {
            rows[q] = (sotto_llama_row){.token = best(sotto_llama_logits(s, q)), .seq = q, .logits = true};
            assert_int_equal(rows[q].token, want[q][i]);
        }
        assert_int_equal(sotto_llama_decode(s, rows, SEQ, &err), SOTTO_OK);
    }
    sotto_llama_session_free(s);
}

static void copies_share_what_they_have_in_common(void **state)
{
    (void)state;
    NEEDS_MODEL();
    int32_t a[30], b[30];
    float want[LLAMA_VOCAB];
    text(a, 30, 0);
    memcpy(b, a, sizeof b);
    text(b + 20, 10, 77);
    sotto_llama_session *s = llama_session(model, 50, 32, 3); /* no room for 30 and 30 that share nothing */
    sotto_error err = {0};
    assert_int_equal(append(s, 0, a, 30), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_copy(s, 1, 0, 20, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_copy(s, 2, 0, -1, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_length(s, 1), 20);
    assert_int_equal(sotto_llama_seq_length(s, 2), 30);
    assert_int_equal(append(s, 1, b + 20, 10), SOTTO_OK);
    alone(b, 30, want);
    assert_same(last(s), want);
    assert_memory_equal(sotto_llama_seq_tokens(s, 1), b, sizeof b);
    /* the source goes on, and goes away, and the copies do not mind */
    const int32_t next = 5;
    assert_int_equal(append(s, 0, &next, 1), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_truncate(s, 0, 0, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_truncate(s, 2, 29, &err), SOTTO_OK);
    assert_int_equal(append(s, 2, &a[29], 1), SOTTO_OK);
    alone(a, 30, want);
    assert_same(last(s), want);
    assert_int_equal(sotto_llama_seq_copy(s, 0, 3, -1, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_llama_seq_copy(s, 0, 1, 31, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_llama_seq_copy(s, -1, 1, 1, &err), SOTTO_E_ARGUMENT);
    sotto_llama_session_free(s);
}

static void what_is_truncated_is_decoded_again(void **state)
{
    (void)state;
    NEEDS_MODEL();
    int32_t a[25];
    float want[LLAMA_VOCAB];
    text(a, 25, 0);
    sotto_llama_session *s = llama_session(model, 40, 32, 1);
    sotto_error err = {0};
    assert_int_equal(append(s, 0, a, 15), SOTTO_OK);
    llama_feed(s, 0, 100, 115);
    assert_int_equal(sotto_llama_seq_truncate(s, 0, 15, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_truncate(s, 0, 99, &err), SOTTO_OK); /* nothing is there */
    assert_int_equal(sotto_llama_seq_truncate(s, 0, -1, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(append(s, 0, a + 15, 10), SOTTO_OK);
    alone(a, 25, want);
    assert_same(last(s), want);
    sotto_llama_session_free(s);
}

static bool stop_later(void *user)
{
    return --*(int *)user < 0;
}

static void a_failure_leaves_sequences_as_they_were(void **state)
{
    (void)state;
    NEEDS_MODEL();
    int32_t a[41];
    float want[LLAMA_VOCAB];
    text(a, 41, 0);
    sotto_llama_session *s = llama_session(model, 40, 8, 2);
    sotto_error err = {0};
    assert_int_equal(append(s, 0, a, 10), SOTTO_OK);
    assert_int_equal(append(s, 0, a, 31), SOTTO_E_FULL);
    assert_int_equal(append(s, 1, a, 41), SOTTO_E_FULL);
    const int32_t bad[] = {1, LLAMA_VOCAB};
    assert_int_equal(append(s, 0, bad, 2), SOTTO_E_ARGUMENT);
    assert_int_equal(append(s, 2, a, 2), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_llama_decode_tokens(s, 0, a, 0, &err), SOTTO_E_ARGUMENT);
    for (int runs = 0; runs < 60; runs += 7) { /* in the first pieces, and in later ones */
        int left = runs;
        const sotto_run_options run = {.abort = stop_later, .abort_user = &left};
        sotto_llama_set_run_options(s, &run);
        const sotto_status status = append(s, 0, a + 10, 14);
        assert_true(status == SOTTO_E_ABORTED || status == SOTTO_OK);
        if (status == SOTTO_OK)
            assert_int_equal(sotto_llama_seq_truncate(s, 0, 10, &err), SOTTO_OK);
        else
            assert_null(sotto_llama_logits(s, -1));
        assert_int_equal(sotto_llama_seq_length(s, 0), 10);
        assert_int_equal(sotto_llama_seq_length(s, 1), 0);
    }
    sotto_llama_set_run_options(s, NULL);
    assert_int_equal(append(s, 0, a + 10, 14), SOTTO_OK);
    alone(a, 24, want);
    assert_same(last(s), want);
    assert_int_equal(append(s, 1, a, 16), SOTTO_OK); /* the last positions */
    assert_int_equal(append(s, 1, a, 1), SOTTO_E_FULL);
    sotto_llama_session_free(s);
}

/* ---- shift ---- */

/* Keys or values of a position, [n_head_kv, d_head] as f32. */
static void cached(sotto_llama_session *s, const sotto_tensor *cache, int32_t seq, int position, float *out)
{
    const size_t bytes = (size_t)sotto_tensor_dim(cache, 0) * sizeof *out;
    const int32_t cell = s->cells.list[(size_t)seq * (size_t)s->o.n_ctx + (size_t)position];
    st_llama_plan *p;
    sotto_error err = {0};
    if (st_llama_plan_for(s, 1, 1, &p, &err) || sotto_plan_get(p->plan, cache, (size_t)cell * bytes, out, bytes, &err))
        fail_msg("%s", err.text);
}

static void a_shift_turns_keys_back(void **state)
{
    (void)state;
    NEEDS_MODEL();
    enum { KEEP = 3, DROP = 8, LENGTH = 30, HEADS = 2, D = 128, WIDTH = HEADS * D };
    static float k[2][LENGTH][WIDTH], v[2][LENGTH][WIDTH];
    sotto_error err = {0};
    sotto_llama_session *s = llama_session(model, N_CTX, 8, 2);
    llama_feed(s, 0, 0, LENGTH);
    for (int shared = 0; shared < 2; shared++) { /* with cells of its own, and with another's */
        for (int layer = 0; layer < 2; layer++)
            for (int i = 0; i < LENGTH; i++) {
                cached(s, s->caches.k[layer], 0, i, k[layer][i]);
                cached(s, s->caches.v[layer], 0, i, v[layer][i]);
            }
        assert_int_equal(sotto_llama_seq_copy(s, 1, 0, -1, &err), SOTTO_OK);
        if (!shared)
            assert_int_equal(sotto_llama_seq_truncate(s, 0, 0, &err), SOTTO_OK);
        assert_int_equal(sotto_llama_seq_shift(s, 1, KEEP, DROP, &err), SOTTO_OK);
        for (int layer = 0; layer < 2; layer++)
            for (int i = 0; i < LENGTH - DROP; i++) {
                float key[WIDTH], value[WIDTH];
                const int was = i < KEEP ? i : i + DROP, turn = i < KEEP ? 0 : -DROP;
                cached(s, s->caches.k[layer], 1, i, key);
                cached(s, s->caches.v[layer], 1, i, value);
                assert_memory_equal(value, v[layer][was], sizeof value);
                for (int h = 0; h < HEADS; h++)
                    for (int j = 0; j < D / 2; j++) { /* pairs are halves of a head, base 1e6 */
                        const float *old = k[layer][was] + h * D, *now = key + h * D;
                        const double angle = turn * pow(1e6, -2.0 * j / D), c = cos(angle), n = sin(angle);
                        const double first = old[j] * c - old[j + D / 2] * n, second = old[j] * n + old[j + D / 2] * c;
                        const double size = fabs(old[j]) + fabs(old[j + D / 2]);
                        assert_true(fabs(now[j] - first) <= 1e-5 * size && fabs(now[j + D / 2] - second) <= 1e-5 * size);
                    }
            }
        assert_int_equal(sotto_llama_seq_truncate(s, 0, 0, &err), SOTTO_OK);
        llama_feed(s, 0, 0, LENGTH);
    }
    sotto_llama_session_free(s);
}

static void a_shift_is_the_sum_of_smaller_ones(void **state)
{
    (void)state;
    NEEDS_MODEL();
    enum { KEEP = 3, DROP = 8, LENGTH = 30 };
    float once[LLAMA_VOCAB], want[LLAMA_VOCAB];
    int32_t a[LENGTH], next = 11;
    text(a, LENGTH, 0);
    sotto_error err = {0};
    sotto_llama_session *s = llama_session(model, N_CTX, 8, 2);
    assert_int_equal(append(s, 0, a, LENGTH), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_copy(s, 1, 0, -1, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_shift(s, 0, KEEP, DROP, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_length(s, 0), LENGTH - DROP);
    assert_memory_equal(sotto_llama_seq_tokens(s, 0), a, KEEP * sizeof *a);
    assert_memory_equal(sotto_llama_seq_tokens(s, 0) + KEEP, a + KEEP + DROP, (LENGTH - KEEP - DROP) * sizeof *a);
    assert_int_equal(append(s, 0, &next, 1), SOTTO_OK);
    memcpy(once, last(s), sizeof once);
    /* the copy did not see it */
    assert_int_equal(sotto_llama_seq_truncate(s, 1, LENGTH - 1, &err), SOTTO_OK);
    assert_int_equal(append(s, 1, &a[LENGTH - 1], 1), SOTTO_OK);
    alone(a, LENGTH, want);
    assert_same(last(s), want);
    /* in steps */
    for (int i = 0; i < DROP; i++)
        assert_int_equal(sotto_llama_seq_shift(s, 1, KEEP, 1, &err), SOTTO_OK);
    assert_int_equal(append(s, 1, &next, 1), SOTTO_OK);
    assert_same(last(s), once);
    assert_true(llama_difference(once, want, LLAMA_VOCAB) > 1e-3);
    /* bounds */
    assert_int_equal(sotto_llama_seq_shift(s, 0, -1, 1, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_llama_seq_shift(s, 0, 3, 21, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_llama_seq_shift(s, 0, 3, 20, &err), SOTTO_OK); /* all that follows */
    assert_int_equal(sotto_llama_seq_length(s, 0), 3);
    sotto_llama_session_free(s);
}

/* ---- files ---- */

static char *temporary(void)
{
    static char path[] = "/tmp/sotto_llama_state_XXXXXX";
    strcpy(path + sizeof path - 7, "XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    return path;
}

static size_t read_all(const char *path, uint8_t *out, size_t cap)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    const size_t n = fread(out, 1, cap, f);
    assert_true(n < cap);
    fclose(f);
    return n;
}

static void write_all(const char *path, const uint8_t *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static sotto_llama_session *session_of_two(const sotto_llama_model *m, sotto_dtype keys, sotto_dtype values)
{
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = 40;
    o.n_batch = 16;
    o.n_seq = 2;
    o.cache_k = keys;
    o.cache_v = values;
    sotto_llama_session *s;
    sotto_error err = {0};
    if (sotto_llama_session_create(m, &o, &s, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return s;
}

static sotto_llama_session *session_of(const sotto_llama_model *m, sotto_dtype type)
{
    return session_of_two(m, type, type);
}

enum { N_CACHE_TYPES = 4 };
static const sotto_dtype cache_types[N_CACHE_TYPES] = {SOTTO_F32, SOTTO_F16, SOTTO_BF16, SOTTO_Q8_0};

/* A prompt and then single tokens, with keys and values of all pairs of types, beside both in f32. */
static void caches_of_all_pairs_of_types(void **state)
{
    (void)state;
    NEEDS_MODEL();
    static const double bound[N_CACHE_TYPES] = {1e-6, 1e-3, 4e-3, 1e-2};
    float want[2][LLAMA_VOCAB], worst[N_CACHE_TYPES][N_CACHE_TYPES];
    for (int t = 0; t < N_CACHE_TYPES * N_CACHE_TYPES; t++) {
        const int k = t / N_CACHE_TYPES, v = t % N_CACHE_TYPES;
        sotto_llama_session *s = session_of_two(model, cache_types[k], cache_types[v]);
        worst[k][v] = 0;
        llama_feed(s, 0, 0, 15);
        for (int i = 0; i < 2; i++) {
            if (i > 0)
                for (int next = 15; next < 19; next++)
                    llama_feed(s, 0, next, next + 1);
            if (t == 0)
                memcpy(want[i], last(s), sizeof want[i]);
            const double off = llama_difference(last(s), want[i], LLAMA_VOCAB);
            worst[k][v] = off > (double)worst[k][v] ? (float)off : worst[k][v];
        }
        printf("keys %s, values %s: %.1e of the largest logit\n", sotto_dtype_name(cache_types[k]),
               sotto_dtype_name(cache_types[v]), (double)worst[k][v]);
        assert_true((double)worst[k][v] <= bound[k] + bound[v]);
        sotto_llama_session_free(s);
    }
    /* each of the two counts */
    for (int t = 1; t < N_CACHE_TYPES; t++)
        assert_true(worst[t][0] > 0 && worst[0][t] > 0 && worst[t][0] != worst[0][t]);
}

static void a_state_goes_on_where_it_was(void **state)
{
    (void)state;
    NEEDS_MODEL();
    char *path = temporary();
    for (size_t t = 0; t < N_CACHE_TYPES * N_CACHE_TYPES; t++) {
        const sotto_dtype keys = cache_types[t % N_CACHE_TYPES], values = cache_types[t / N_CACHE_TYPES];
        float want[LLAMA_VOCAB];
        const int32_t next = 9;
        sotto_error err = {0};
        sotto_llama_session *s = session_of_two(model, keys, values), *u = session_of_two(model, keys, values);
        llama_feed(s, 1, 50, 57); /* so that cells are not in order */
        llama_feed(s, 0, 0, 9);
        llama_feed(s, 1, 57, 60);
        llama_feed(s, 0, 9, 19);
        assert_int_equal(sotto_llama_state_save(s, 0, path, &err), SOTTO_OK);
        assert_int_equal(append(s, 0, &next, 1), SOTTO_OK);
        memcpy(want, last(s), sizeof want);
        llama_feed(u, 0, 90, 95);
        if (sotto_llama_state_load(u, 1, path, &err) != SOTTO_OK)
            fail_msg("%s", err.text);
        assert_int_equal(sotto_llama_seq_length(u, 1), 19);
        assert_int_equal(append(u, 1, &next, 1), SOTTO_OK);
        assert_memory_equal(last(u), want, sizeof want);
        sotto_llama_session_free(s);
        sotto_llama_session_free(u);
    }
    unlink(path);
}

static void a_state_that_does_not_fit_is_refused(void **state)
{
    (void)state;
    NEEDS_MODEL();
    char *path = temporary();
    sotto_error err = {0};
    sotto_llama_session *s = session_of(model, SOTTO_F16), *u = session_of(model, SOTTO_F32);
    llama_feed(s, 0, 0, 19);
    assert_int_equal(sotto_llama_state_save(s, 0, path, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_state_load(u, 0, path, &err), SOTTO_E_FORMAT); /* another type */
    assert_non_null(strstr(err.text, "f16"));
    sotto_llama_session *mixed = session_of_two(model, SOTTO_F16, SOTTO_Q8_0);
    assert_int_equal(sotto_llama_state_load(mixed, 0, path, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "expected f16 and q8_0"));
    sotto_llama_session_free(mixed);
    llama_feed(s, 1, 0, 15);
    assert_int_equal(sotto_llama_state_load(s, 1, path, &err), SOTTO_OK); /* in place of what was there */
    assert_int_equal(sotto_llama_seq_truncate(s, 0, 0, &err), SOTTO_OK);
    llama_feed(s, 0, 0, 21);
    assert_int_equal(sotto_llama_state_load(s, 0, path, &err), SOTTO_OK);
    llama_feed(s, 0, 0, 2);
    assert_int_equal(sotto_llama_seq_truncate(s, 1, 0, &err), SOTTO_OK);
    llama_feed(s, 0, 0, 1);
    assert_int_equal(sotto_llama_state_load(s, 1, path, &err), SOTTO_E_FULL); /* 22 and 19 of 40 */
    sotto_llama_model *other = llama_open("llama", NULL);
    sotto_llama_session *v = session_of(other, SOTTO_F16);
    assert_int_equal(sotto_llama_state_load(v, 0, path, &err), SOTTO_E_FORMAT);
    assert_non_null(strstr(err.text, "another model"));
    sotto_llama_session_free(v);
    sotto_llama_model_free(other);
    assert_int_equal(sotto_llama_state_load(s, 0, "/nowhere/at/all", &err), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_llama_seq_length(s, 0), 0);
    assert_int_equal(sotto_llama_state_save(s, 0, "/nowhere/at/all", &err), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_llama_state_load(s, 2, path, &err), SOTTO_E_ARGUMENT);
    sotto_llama_session_free(s);
    sotto_llama_session_free(u);
    unlink(path);
}

static void every_truncation_and_every_damage_is_found(void **state)
{
    (void)state;
    NEEDS_MODEL();
    static uint8_t whole[1 << 17], damaged[1 << 17];
    char *path = temporary();
    sotto_error err = {0};
    sotto_llama_session *s = session_of(model, SOTTO_Q8_0);
    llama_feed(s, 0, 0, 3);
    assert_int_equal(sotto_llama_state_save(s, 0, path, &err), SOTTO_OK);
    const size_t n = read_all(path, whole, sizeof whole);
    for (size_t i = 0; i < n; i += i < 80 ? 1 : 13) {
        write_all(path, whole, i);
        llama_feed(s, 1, 0, 2);
        assert_int_equal(sotto_llama_state_load(s, 1, path, &err), SOTTO_E_FORMAT);
        assert_int_equal(sotto_llama_seq_length(s, 1), 0);
        memcpy(damaged, whole, n);
        damaged[i] ^= 0x41;
        write_all(path, damaged, n);
        assert_int_equal(sotto_llama_state_load(s, 1, path, &err), SOTTO_E_FORMAT);
    }
    write_all(path, whole, n);
    assert_int_equal(sotto_llama_state_load(s, 1, path, &err), SOTTO_OK);
    sotto_llama_session_free(s);
    unlink(path);
}

/* ---- watching ---- */

typedef struct watch {
    int calls, rows, last_rows, output_rows;
    double q, down;
} watch;

static void look(void *user, const char *weight, const float *rows, int64_t n, int64_t width)
{
    watch *w = user;
    double sum = 0;
    for (int64_t i = 0; i < n * width; i++)
        sum += (double)rows[i] * rows[i];
    w->calls++;
    if (strcmp(weight, "blk.0.attn_q.weight") == 0) {
        w->rows += (int)n;
        w->q += sum;
        assert_int_equal(width, 256);
    }
    if (strcmp(weight, "blk.1.ffn_down.weight") == 0) {
        w->down += sum;
        w->last_rows += (int)n;
        assert_int_equal(width, 512);
    }
    if (strcmp(weight, "output.weight") == 0)
        w->output_rows += (int)n;
}

static void an_observer_sees_what_meets_each_matrix(void **state)
{
    (void)state;
    NEEDS_MODEL();
    watch w = {0};
    float want[LLAMA_VOCAB];
    int32_t a[20];
    text(a, 20, 0);
    alone(a, 20, want);
    sotto_error err = {0};
    sotto_llama_session *s = llama_session(model, N_CTX, 32, 1);
    assert_int_equal(sotto_llama_observe(s, look, &w, &err), SOTTO_OK);
    assert_int_equal(append(s, 0, a, 20), SOTTO_OK);
    assert_same(last(s), want);
    assert_int_equal(w.calls, 2 * 7 + 1);
    assert_int_equal(w.rows, 20);
    assert_int_equal(w.last_rows, 20); /* also of the last layer, which usually computes one */
    assert_int_equal(w.output_rows, 1);
    /* the rows are normalised: what is left of the root mean square of 1 is the norm's weight, about 1 */
    assert_true(w.q > 0.5 * 20 * 256 && w.q < 2 * 20 * 256 && w.down > 0);
    assert_int_equal(sotto_llama_observe(s, NULL, NULL, &err), SOTTO_OK);
    assert_int_equal(sotto_llama_seq_truncate(s, 0, 19, &err), SOTTO_OK);
    assert_int_equal(append(s, 0, a + 19, 1), SOTTO_OK);
    assert_int_equal(w.calls, 2 * 7 + 1);
    assert_same(last(s), want);
    sotto_llama_session_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_batch_holds_rows_of_several_sequences),
        cmocka_unit_test(four_sequences_say_what_each_says_alone),
        cmocka_unit_test(copies_share_what_they_have_in_common),
        cmocka_unit_test(what_is_truncated_is_decoded_again),
        cmocka_unit_test(a_failure_leaves_sequences_as_they_were),
        cmocka_unit_test(a_shift_turns_keys_back),
        cmocka_unit_test(a_shift_is_the_sum_of_smaller_ones),
        cmocka_unit_test(caches_of_all_pairs_of_types),
        cmocka_unit_test(a_state_goes_on_where_it_was),
        cmocka_unit_test(a_state_that_does_not_fit_is_refused),
        cmocka_unit_test(every_truncation_and_every_damage_is_found),
        cmocka_unit_test(an_observer_sees_what_meets_each_matrix),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
