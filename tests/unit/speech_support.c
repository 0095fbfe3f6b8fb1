#include "speech_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"

enum { OWN_ROWS = 40, OWN_VOCAB = 4096 };

static sotto_status token(void *ctx, int64_t id, const char **bytes, size_t *n, sotto_error *err)
{
    static char text[N_TEXT][4];
    (void)ctx;
    (void)err;
    if (id < 256) {
        text[id][0] = (char)id;
        *n = 1;
    } else if (id < TOKEN_TH) {
        text[id][0] = ' ';
        text[id][1] = (char)('a' + (id - WORD_A));
        *n = 2;
    } else {
        memcpy(text[id], "the", 3);
        *n = id == TOKEN_TH ? 2 : 3;
    }
    *bytes = text[id];
    return SOTTO_OK;
}

sotto_status fake_vocab_try(int n_languages, bool multilingual, st_vocab **out, sotto_error *err)
{
    const st_token_source source = {NULL, token, N_TEXT};
    const st_vocab_layout layout = {N_TEXT, n_languages, multilingual};
    return st_vocab_build(&source, &layout, out, err);
}

st_vocab *fake_vocab(int n_languages, bool multilingual)
{
    st_vocab *v;
    sotto_error err;
    assert_int_equal(fake_vocab_try(n_languages, multilingual, &v, &err), SOTTO_OK);
    return v;
}

int32_t stamp(const st_vocab *v, int hundredths)
{
    return v->timestamp + hundredths / 2;
}

void want(float *logits, int32_t id)
{
    logits[id] = 0.0f;
}

const int32_t *sampled(const st_vocab *v, const int32_t *history, int *n)
{
    int i = 0;
    while (history[i] != v->sot)
        i++;
    i += v->multilingual ? 3 : 1;
    if (i < *n && history[i] == v->no_timestamps)
        i++;
    *n -= i;
    return history + i;
}

static sotto_status touch(fake_net *net, sotto_error *err)
{
    if (++net->n_touched != net->fail_after)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_DEVICE, "the scripted failure");
}

static sotto_status encode(void *ctx, int window, const float *log_mel, int n_frames, sotto_error *err)
{
    fake_net *net = ctx;
    ST_TRY(touch(net, err));
    assert_true(net->n_encode < 64);
    assert_in_range(window, 0, net->n_window - 1);
    net->encoded[window] = net->n_encode;
    net->n_frames[net->n_encode] = n_frames;
    net->first_mel[net->n_encode++] = log_mel[0];
    return SOTTO_OK;
}

static void note_row(fake_net *net, const st_row *r)
{
    assert_in_range(r->seq, 0, net->n_window * net->n_seq - 1);
    assert_in_range(r->token, 0, net->vocab->n_vocab - 1);
    assert_in_range(r->pos, 0, net->n_ctx - 1);
    assert_true(r->pos <= net->length[r->seq]);
    net->history[r->seq][r->pos] = r->token;
    net->length[r->seq] = r->pos + 1;
}

/* The engine's own memory, in which every second row finds its logits. It is spoiled by each call. */
static float own[OWN_ROWS][OWN_VOCAB];

static void spoil(const fake_net *net)
{
    assert_true(net->vocab->n_vocab <= OWN_VOCAB);
    for (int i = 0; i < OWN_ROWS; i++)
        for (int t = 0; t < net->vocab->n_vocab; t++)
            own[i][t] = NAN;
}

static sotto_status decode(void *ctx, st_row *rows, int n_rows, sotto_error *err)
{
    fake_net *net = ctx;
    ST_TRY(touch(net, err));
    spoil(net);
    assert_true(n_rows > 0);
    net->n_calls++;
    net->n_rows += n_rows;
    net->most_rows = n_rows > net->most_rows && rows[0].pos > 0 ? n_rows : net->most_rows;
    if (rows[0].pos == 0 && net->n_prompts < 64 && net->n_window == 1) {
        net->n_prompt_rows += n_rows;
        for (int i = 0; i < n_rows; i++)
            net->prompts[net->n_prompts][i] = rows[i].token;
        net->prompt_length[net->n_prompts++] = n_rows;
    }
    for (int i = 0, n_own = 0; i < n_rows; i++) {
        note_row(net, &rows[i]);
        if (!rows[i].logits)
            continue;
        if (n_own++ % 2 == 1 && n_own <= OWN_ROWS)
            rows[i].logits = own[n_own - 1];
        float *logits = rows[i].logits;
        for (int t = 0; t < net->vocab->n_vocab; t++)
            logits[t] = net->give_nan ? NAN : -30.0f;
        if (!net->give_nan)
            net->script(net, net->encoded[rows[i].seq / net->n_seq], net->history[rows[i].seq],
                        net->length[rows[i].seq], logits);
    }
    return SOTTO_OK;
}

static void reorder(void *ctx, const int32_t *dst, const int32_t *src, int n, int length)
{
    fake_net *net = ctx;
    int32_t old[FAKE_SEQ][512];
    const int window = dst[0] / net->n_seq, first = window * net->n_seq;
    memcpy(old, net->history[first], (size_t)net->n_seq * sizeof old[0]);
    net->n_reorder[window]++;
    for (int i = 0; i < n; i++) {
        assert_in_range(dst[i], first, first + net->n_seq - 1);
        assert_in_range(src[i], first, first + net->n_seq - 1);
        memcpy(net->history[dst[i]], old[src[i] - first], sizeof old[0]);
        net->length[dst[i]] = length;
    }
}

static void reset(void *ctx, int window)
{
    fake_net *net = ctx;
    memset(net->length + window * net->n_seq, 0, (size_t)net->n_seq * sizeof *net->length);
}

void fake_init(fake_net *net, const st_vocab *vocab, int n_seq, fake_script script, void *user)
{
    *net = (fake_net){.vocab = vocab, .script = script, .user = user, .n_seq = n_seq, .n_ctx = FAKE_CTX, .n_window = 1};
}

st_engine fake_engine(fake_net *net)
{
    return (st_engine){.ctx = net,
                       .n_vocab = net->vocab->n_vocab,
                       .n_text_ctx = net->n_ctx,
                       .n_seq = net->n_seq,
                       .n_window = net->n_window,
                       .encode = encode,
                       .decode = decode,
                       .reorder = reorder,
                       .reset = reset};
}

static sotto_status window(void *ctx, int64_t first, int64_t end, float *log_mel, sotto_error *err)
{
    (void)err;
    fake_audio *a = ctx;
    assert_true(a->n < 64);
    assert_true(a->n == 0 || first >= a->first[a->n - 1]);
    a->first[a->n] = first;
    a->end[a->n++] = end;
    for (int64_t i = 0; i < 3000; i++)
        log_mel[2 * i] = log_mel[2 * i + 1] = a->voiced && i < end - first && a->voiced(first + i) ? 1.0f : 0.0f;
    log_mel[0] = (float)first;
    return SOTTO_OK;
}

st_window_source fake_source(fake_audio *audio)
{
    *audio = (fake_audio){.n = 0};
    return (st_window_source){.ctx = audio, .window = window, .n_mels = 2};
}
