/* Models and streams of voice activity detection: what is refused and with which words, pieces, what is not finite. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sotto/vad.h"
#include "vad_support.h"

enum { N = 40000 };

static sotto_error err;
static float pcm[N];

static sotto_status open_header(const char *header, sotto_vad_model **out)
{
    size_t size;
    uint8_t *file = vad_file(header, VAD_DATA, &size);
    err = (sotto_error){0};
    const sotto_status status = sotto_vad_model_open_memory(file, size, NULL, out, &err);
    free(file);
    return status;
}

/* The header with one text in the place of another one. */
static void refused(const char *from, const char *to, const char *message)
{
    static char header[4096];
    const char *at = strstr(vad_header, from);
    assert_non_null(at);
    snprintf(header, sizeof header, "%.*s%s%s", (int)(at - vad_header), vad_header, to, at + strlen(from));
    sotto_vad_model *model;
    assert_int_equal(open_header(header, &model), SOTTO_E_FORMAT);
    assert_null(model);
    if (!strstr(err.text, message))
        fail_msg("\"%s\" does not say \"%s\"", err.text, message);
}

static void files_are_checked(void **state)
{
    (void)state;
    refused("stft_conv.weight", "stft.weight", "stft_conv.weight: missing");
    refused("conv3.bias", "conv3.b", "conv3.bias: missing");
    refused("[258,1,256]", "[256,1,258]", "stft_conv.weight: dimension 0 is 258, expected 256");
    refused("[258,1,256]", "[258,256]", "stft_conv.weight: 2 dimensions, expected 3");
    refused("[2,129,3]", "[129,2,3]", "conv1.weight: dimension 1 is 2, expected 129");
    refused("\"conv2.weight\":{\"dtype\":\"F32\",\"shape\":[2,2,3]",
            "\"conv2.weight\":{\"dtype\":\"F32\",\"shape\":[4,1,3]", "conv2.weight: dimension 1 is 1, expected 2");
    refused("\"lstm_cell.weight_hh\":{\"dtype\":\"F32\",\"shape\":[8,2]",
            "\"lstm_cell.weight_hh\":{\"dtype\":\"F32\",\"shape\":[4,4]",
            "lstm_cell.weight_hh: dimension 0 is 4, expected 2");
    sotto_vad_model *model;
    assert_int_equal(sotto_vad_model_open("/no/such/model", NULL, &model, &err), SOTTO_E_NOT_FOUND);
    assert_int_equal(sotto_vad_model_open(NULL, NULL, &model, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_model_open("x", NULL, NULL, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_model_open_memory(NULL, 3, NULL, &model, &err), SOTTO_E_ARGUMENT);
    sotto_vad_model_free(NULL);
}

static sotto_vad_stream *start(sotto_vad_model **model, const sotto_vad_options *options)
{
    sotto_vad_stream *s;
    if (open_header(vad_header, model) != SOTTO_OK || sotto_vad_stream_create(*model, options, &s, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return s;
}

static int64_t hear(sotto_vad_stream *s, int64_t piece, float *out)
{
    assert_int_equal(sotto_vad_reset(s, NULL, &err), SOTTO_OK);
    for (int64_t at = 0; at < N; at += piece)
        assert_int_equal(sotto_vad_push(s, pcm + at, N - at < piece ? N - at : piece, &err), SOTTO_OK);
    assert_int_equal(sotto_vad_finish(s, &err), SOTTO_OK);
    int64_t n;
    const float *p = sotto_vad_probabilities(s, &n);
    memcpy(out, p, (size_t)n * sizeof *p);
    return n;
}

static void pieces_do_not_matter(void **state)
{
    (void)state;
    sotto_vad_model *model;
    sotto_vad_stream *s = start(&model, NULL);
    static float whole[200], pieces[200];
    for (int i = 0; i < N; i++)
        pcm[i] = sinf((float)i * 0.05f * (1 + (float)i / N)) * (i % 9000 < 5000 ? 0.5f : 0.01f);
    assert_int_equal(hear(s, N, whole), (N + 511) / 512);
    static const int64_t sizes[] = {1, 511, 513, 16384, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(hear(s, sizes[i], pieces), (N + 511) / 512);
        assert_memory_equal(whole, pieces, sizeof whole);
    }
    pcm[700] = 0;
    hear(s, N, whole);
    pcm[700] = NAN;
    hear(s, N, pieces);
    assert_memory_equal(whole, pieces, sizeof whole);
    sotto_vad_stream_free(s);
    sotto_vad_model_free(model);
}

static void calls_are_checked(void **state)
{
    (void)state;
    sotto_vad_model *model;
    sotto_vad_options o;
    sotto_vad_options_default(&o);
    o.pad_ms = 0;
    sotto_vad_stream *s = start(&model, &o), *none;
    sotto_vad_span span;
    int64_t n = 7;
    assert_null(sotto_vad_probabilities(s, &n));
    assert_int_equal(n, 0);
    assert_int_equal(sotto_vad_push(s, NULL, 5, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_push(s, pcm, -1, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_push(NULL, pcm, 1, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_push(s, NULL, 0, &err), SOTTO_OK);
    assert_int_equal(sotto_vad_finish(s, &err), SOTTO_OK); /* nothing heard */
    assert_int_equal(sotto_vad_span_count(s), 0);
    assert_int_equal(sotto_vad_span_get(s, 0, &span), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_finish(s, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_push(s, pcm, 1, &err), SOTTO_E_ARGUMENT);
    o.threshold = -1;
    assert_int_equal(sotto_vad_reset(s, &o, &err), SOTTO_E_ARGUMENT);
    assert_int_equal(sotto_vad_stream_create(model, &o, &none, &err), SOTTO_E_ARGUMENT);
    assert_null(none);
    /* every chunk is speech: one span of the whole recording */
    o.threshold = 0;
    assert_int_equal(sotto_vad_reset(s, &o, &err), SOTTO_OK);
    assert_int_equal(sotto_vad_push(s, pcm, N, &err), SOTTO_OK);
    assert_int_equal(sotto_vad_finish(s, &err), SOTTO_OK);
    assert_int_equal(sotto_vad_span_count(s), 1);
    assert_int_equal(sotto_vad_span_get(s, 0, &span), SOTTO_OK);
    assert_true(span.start == 0 && span.end == 2.5);
    sotto_vad_stream_free(s);
    sotto_vad_stream_free(NULL);
    sotto_vad_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_checked),
        cmocka_unit_test(pieces_do_not_matter),
        cmocka_unit_test(calls_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
