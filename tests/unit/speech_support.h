/* speech_support.h: a small vocabulary and a scripted network for tests of the speech logic.
 *
 * Vocabulary: tokens 0..255 are the bytes, 256 + i is " " and the letter 'a' + i, then "the" is one token of three bytes.
 * The network keeps each sequence's tokens by value, checks every call against the contract of engine.h, and asks the
 * script for the logits after a history. Calls may come from several threads where engine.h allows it. */
#ifndef SOTTO_TESTS_UNIT_SPEECH_SUPPORT_H
#define SOTTO_TESTS_UNIT_SPEECH_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "models/whisper/engine.h"
#include "models/whisper/longform.h"
#include "models/whisper/vocab.h"

enum {
    WORD_A = 256, /* " a" */
    TOKEN_TH = 282,
    TOKEN_THE = 283,
    N_TEXT = 284,
    FAKE_CTX = 64, /* so half is 32 and a prompt has at most 31 tokens */
    FAKE_SEQ = 16,
    FAKE_WINDOWS = 8
};

sotto_status fake_vocab_try(int n_languages, bool multilingual, st_vocab **out, sotto_error *err);
st_vocab *fake_vocab(int n_languages, bool multilingual);
/* Time stamp token of t hundredths of a second (even). */
int32_t stamp(const st_vocab *v, int hundredths);

typedef struct fake_net fake_net;
/* logits arrive filled with -30. history: all tokens of the sequence so far. window: number of the encode
 * that the sequence attends to, from 0. */
typedef void (*fake_script)(fake_net *net, int window, const int32_t *history, int n, float *logits);

struct fake_net {
    const st_vocab *vocab;
    fake_script script;
    void *user;
    int n_seq, n_ctx, n_window;
    int32_t history[FAKE_SEQ * FAKE_WINDOWS][512];
    int length[FAKE_SEQ * FAKE_WINDOWS];
    int encoded[FAKE_WINDOWS]; /* number of the window's last encode */
    int n_encode, n_calls, n_rows, n_prompt_rows, most_rows;
    int n_reorder[FAKE_WINDOWS];
    int n_frames[64];         /* of sound in each window */
    float first_mel[64];      /* first value of each window's mel */
    int32_t prompts[64][512]; /* tokens of each call that began at position 0, in order */
    int prompt_length[64], n_prompts;
    bool give_nan;
    int fail_after; /* calls of encode and decode until one fails; 0: none does */
    int n_touched;  /* encodes and decodes */
};

void fake_init(fake_net *net, const st_vocab *vocab, int n_seq, fake_script script, void *user);
st_engine fake_engine(fake_net *net);

/* Frames whose value is their number (frame, first band), so that a test sees which window was asked for. */
typedef struct fake_audio {
    int64_t first[64], end[64];
    int n;
    bool (*voiced)(int64_t frame); /* such frames are louder by 4; NULL: all are alike */
} fake_audio;
st_window_source fake_source(fake_audio *audio);

/* Tokens after start of transcript, language and task (and no-timestamps), that is those of the window; n gets how many. */
const int32_t *sampled(const st_vocab *v, const int32_t *history, int *n);
/* Let `token` be certain (logit 0 against -30). */
void want(float *logits, int32_t token);

#endif
