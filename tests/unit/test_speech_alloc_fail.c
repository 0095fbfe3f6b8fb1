/* Memory that runs out at every place of the vocabulary, the tokenizer and the speech logic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "models/whisper/batch.h"
#include "speech_support.h"

static void words(fake_net *net, int window, const int32_t *history, int n, float *logits)
{
    const st_vocab *v = net->vocab;
    (void)window;
    if (history[n - 1] == v->sot)
        return;
    sampled(v, history, &n);
    const int32_t all[] = {stamp(v, 0), WORD_A, 0xe2, stamp(v, 200), stamp(v, 200),
                           0x82,        0xac,   0xff, stamp(v, 300), v->eot};
    want(logits, all[n < 9 ? n : 9]);
}

static sotto_status build(void *user)
{
    (void)user;
    st_vocab *v;
    sotto_error err;
    const sotto_status status = fake_vocab_try(2, true, &v, &err);
    if ((status == SOTTO_OK) != (v != NULL) || (status != SOTTO_OK && err.code != status))
        return SOTTO_E_INTERNAL;
    st_vocab_free(v);
    return status;
}

static sotto_status transcribe(st_longform *lf)
{
    sotto_error err;
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    o.language = "auto";
    o.initial_prompt = "  words \xff that go before";
    o.suppress_non_speech = false; /* whose list has the first byte of notes, which is that of the word here */
    o.max_tokens = 2;
    sotto_status status = st_longform_begin(lf, &o, &err);
    if (status == SOTTO_OK)
        status = st_longform_run(lf, 7000, true, &err);
    if (status == SOTTO_OK && st_longform_count(lf) != 6)
        return SOTTO_E_INTERNAL;
    return status == SOTTO_OK || err.code == status ? status : SOTTO_E_INTERNAL;
}

static sotto_status run(void *user)
{
    static fake_net net;
    fake_audio audio;
    sotto_error err;
    fake_init(&net, user, 5, words, NULL);
    const st_engine engine = fake_engine(&net);
    const st_window_source source = fake_source(&audio);
    st_longform *lf;
    const sotto_status status = st_longform_create(user, &engine, &source, &lf, &err);
    if (status != SOTTO_OK)
        return lf ? SOTTO_E_INTERNAL : status;
    const sotto_status result = transcribe(lf);
    st_longform_free(lf);
    return result;
}

static sotto_status make_batch(void *user)
{
    static fake_net net;
    fake_audio audio;
    sotto_error err;
    fake_init(&net, user, 5, words, NULL);
    net.n_window = 3;
    const st_engine engine = fake_engine(&net);
    const st_batch_source source = {.audio = fake_source(&audio)};
    st_batch *b;
    const sotto_status status = st_batch_create(user, &engine, &source, &b, &err);
    if ((status == SOTTO_OK) != (b != NULL) || (status != SOTTO_OK && err.code != status))
        return SOTTO_E_INTERNAL;
    st_batch_free(b);
    return status;
}

static void a_vocabulary_is_built_or_not(void **state)
{
    (void)state;
    assert_true(alloc_fail_sweep(build, NULL) > 5);
}

static void a_recording_is_transcribed_or_not(void **state)
{
    (void)state;
    st_vocab *v = fake_vocab(2, true);
    assert_true(alloc_fail_sweep(run, v) > 20);
    st_vocab_free(v);
}

static void a_batch_is_made_or_not(void **state)
{
    (void)state;
    st_vocab *v = fake_vocab(2, true);
    assert_true(alloc_fail_sweep(make_batch, v) > 20);
    st_vocab_free(v);
}

/* After its first window a recording asks for memory only for what it hands out: none per step. */
static void steps_take_no_memory(void **state)
{
    (void)state;
    st_vocab *v = fake_vocab(2, true);
    static fake_net net;
    sotto_error err;
    fake_init(&net, v, 5, words, NULL);
    const st_engine engine = fake_engine(&net);
    st_decoder *d;
    assert_int_equal(st_decoder_create(v, &engine, &d, &err), SOTTO_OK);
    const st_decode_options o = {.group = 5,
                                 .patience = 1,
                                 .length_penalty = -1,
                                 .timestamps = true,
                                 .sample_len = 32,
                                 .filters = {.vocab = v, .timestamps = true, .max_initial = -1}};
    st_decode_result r;
    assert_int_equal(st_decode(d, &o, &r, &err), SOTTO_OK);
    alloc_fail_at(0, false);
    assert_int_equal(st_decode(d, &o, &r, &err), SOTTO_OK);
    assert_int_equal(alloc_fail_count(), 1); /* the compression ratio's buffer */
    st_decoder_free(d);
    st_vocab_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vocabulary_is_built_or_not),
        cmocka_unit_test(a_recording_is_transcribed_or_not),
        cmocka_unit_test(a_batch_is_made_or_not),
        cmocka_unit_test(steps_take_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
