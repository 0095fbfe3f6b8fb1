/* Output formats on hand-made transcripts: expected text by hand from the formats' definitions (RFC 4180, WebVTT, RFC 8259)
 * and from what the original prints. Covers reported faults B51, B52, B53. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "common/writers.h"

static sotto_whisper_segment segment(double start, double end, const char *text)
{
    return (sotto_whisper_segment){.start = start,
                                   .end = end,
                                   .text = text,
                                   .n_text = strlen(text),
                                   .seek = 0,
                                   .temperature = 0,
                                   .avg_logprob = -0.25f,
                                   .compression_ratio = 1.5f,
                                   .no_speech_probability = 0.01f,
                                   .language = "en"};
}

static cli_text written(const char *format, const sotto_whisper_segment *list, size_t n, cli_transcript *t)
{
    static const sotto_whisper_segment *pointers[64];
    cli_transcript local = {
        .audio = "a.wav", .model = "base", .task = "transcribe", .language = "en", .language_probability = 1};
    for (size_t i = 0; i < n; i++)
        pointers[i] = &list[i];
    t = t ? t : &local;
    t->segments = pointers;
    t->n_segments = n;
    cli_text out = {0};
    const cli_writer *w = cli_writer_find(format, strlen(format));
    assert_non_null(w);
    w->write(&out, t);
    assert_false(out.failed);
    return out;
}

static void expect(const char *format, const sotto_whisper_segment *list, size_t n, const char *want)
{
    cli_text out = written(format, list, n, NULL);
    assert_string_equal(out.data ? out.data : "", want);
    cli_text_free(&out);
}

static void writes_plain_cases(void **state)
{
    (void)state;
    const sotto_whisper_segment s[] = {segment(0, 7.94, " And so, my fellow Americans"),
                                       segment(3661.5, 3662.0015, " ask not")};
    expect("txt", s, 2, "And so, my fellow Americans\nask not\n");
    expect("srt", s, 2,
           "1\n00:00:00,000 --> 00:00:07,940\nAnd so, my fellow Americans\n\n"
           "2\n01:01:01,500 --> 01:01:02,002\nask not\n\n");
    expect("vtt", s, 2,
           "WEBVTT\n\n00:00.000 --> 00:07.940\nAnd so, my fellow Americans\n\n"
           "01:01:01.500 --> 01:01:02.002\nask not\n\n");
    expect("lrc", s, 2, "[by:sotto]\n[00:00.00]And so, my fellow Americans\n[61:01.50]ask not\n");
    expect("tsv", s, 2, "start\tend\ttext\n0\t7940\tAnd so, my fellow Americans\n3661500\t3662002\task not\n");
    expect("csv", s, 2, "start,end,text\r\n0,7940,\" And so, my fellow Americans\"\r\n3661500,3662002,\" ask not\"\r\n");
    expect("txt", s, 0, "");
    expect("srt", s, 0, "");
    expect("vtt", s, 0, "WEBVTT\n\n");
}

static void escapes_what_a_format_would_take_for_its_own(void **state)
{
    (void)state;
    const sotto_whisper_segment s[] = {segment(0, 1, " a --> b & <i>c</i>\n\nd"),
                                       segment(1, 2, " say \"hi\",\tthen\r\ngo")};
    expect("srt", s, 1, "1\n00:00:00,000 --> 00:00:01,000\na -> b & <i>c</i>  d\n\n");
    expect("vtt", s, 1, "WEBVTT\n\n00:00.000 --> 00:01.000\na --&gt; b &amp; &lt;i&gt;c&lt;/i&gt;  d\n\n");
    expect("csv", s + 1, 1, "start,end,text\r\n1000,2000,\" say \"\"hi\"\",\tthen\r\ngo\"\r\n");
    expect("tsv", s + 1, 1, "start\tend\ttext\n1000\t2000\tsay \"hi\", then  go\n");
    expect("txt", s + 1, 1, "say \"hi\", then  go\n");
}

static void bad_times_are_zero(void **state)
{
    (void)state;
    const sotto_whisper_segment s[] = {segment(-1, (double)NAN, " x"), segment((double)INFINITY, 1e300, " y")};
    expect("srt", s, 2, "1\n00:00:00,000 --> 00:00:00,000\nx\n\n2\n00:00:00,000 --> 00:00:00,000\ny\n\n");
}

static const char *text_at(const json_t *root, size_t i)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(root, "segments"), i), "text"));
}

static void json_has_the_keys_of_the_original(void **state)
{
    (void)state;
    const sotto_whisper_token tokens[] = {{.id = 50364, .bytes = "", .n_bytes = 0},
                                          {.id = 10, .bytes = " a", .n_bytes = 2}};
    sotto_whisper_segment s[] = {segment(0, 7.94, " one"), segment(7.94, 9, " two")};
    s[0].tokens = tokens;
    s[0].n_tokens = 2;
    s[1].avg_logprob = NAN;
    cli_text out = written("json", s, 2, NULL);
    json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "text")), " one two");
    assert_string_equal(json_string_value(json_object_get(root, "language")), "en");
    static const char *const keys[] = {"id",
                                       "seek",
                                       "start",
                                       "end",
                                       "text",
                                       "tokens",
                                       "temperature",
                                       "avg_logprob",
                                       "compression_ratio",
                                       "no_speech_prob"};
    for (size_t i = 0; i < 2; i++) {
        const json_t *one = json_array_get(json_object_get(root, "segments"), i);
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            assert_non_null(json_object_get(one, keys[k]));
        assert_int_equal(json_array_size(json_object_get(one, "tokens")), i ? 0 : 2);
        assert_true(i ? json_is_null(json_object_get(one, "avg_logprob"))
                      : json_real_value(json_object_get(one, "avg_logprob")) == -0.25);
    }
    json_decref(root);
    cli_text_free(&out);
    out = written("json", s, 0, NULL);
    root = json_loads(out.data, 0, NULL);
    assert_non_null(root);
    assert_int_equal(json_array_size(json_object_get(root, "segments")), 0);
    json_decref(root);
    cli_text_free(&out);
}

/* B52: every string through one escaper; read back by another program's strict parser. */
static void any_bytes_survive_json(void **state)
{
    (void)state;
    static const struct {
        const char *in, *out;
    } cases[] = {{"\"q\" \\ /", "\"q\" \\ /"},
                 {"\n\t\r\b\f\x01\x1f\x7f", "\n\t\r\b\f\x01\x1f\x7f"},
                 {"\xe2\x80\xa8\xe2\x80\xa9", "\xe2\x80\xa8\xe2\x80\xa9"},
                 {"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80", "\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80"},
                 {"a\xff\xfe"
                  "b",
                  "a\xef\xbf\xbd\xef\xbf\xbd"
                  "b"},
                 {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
                 {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* a surrogate */
                 {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* beyond U+10FFFF */
                 {"x\xe2\x82", "x\xef\xbf\xbd"},                                           /* cut: one replacement */
                 {"\xf0\x9f\x98z", "\xef\xbf\xbdz"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_transcript t = {.audio = cases[i].in,
                            .model = cases[i].in,
                            .model_size = cases[i].in,
                            .model_format = cases[i].in,
                            .language = cases[i].in,
                            .task = cases[i].in};
        const sotto_whisper_segment s = segment(0, 1, cases[i].in);
        cli_text out = written("json-full", &s, 1, &t);
        json_error_t why;
        json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, &why);
        if (!root)
            fail_msg("case %zu: %s in %s", i, why.text, out.data);
        assert_string_equal(text_at(root, 0), cases[i].out);
        assert_string_equal(json_string_value(json_object_get(root, "audio")), cases[i].out);
        assert_string_equal(json_string_value(json_object_get(json_object_get(root, "model"), "name")), cases[i].out);
        json_decref(root);
        cli_text_free(&out);
    }
}

/* B51: characters split over tokens at every place. */
static void split_characters_are_joined(void **state)
{
    (void)state;
    static const char whole[] = "a\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80!";
    const size_t n = sizeof whole - 1;
    for (size_t step = 1; step <= 5; step++) {
        sotto_whisper_token tokens[32] = {0};
        sotto_whisper_segment s = segment(0, 1, whole);
        for (size_t i = 0; i < n; i += step) {
            const size_t length = n - i < step ? n - i : step;
            tokens[s.n_tokens++] =
                (sotto_whisper_token){.id = (int32_t)i, .bytes = whole + i, .n_bytes = length, .probability = 0.5f};
        }
        s.tokens = tokens;
        cli_text out = written("json-full", &s, 1, NULL);
        json_t *root = json_loads(out.data, JSON_REJECT_DUPLICATES, NULL);
        assert_non_null(root);
        const json_t *details = json_object_get(json_array_get(json_object_get(root, "segments"), 0), "token_details");
        char joined[64] = "";
        assert_int_equal(json_array_size(details), s.n_tokens);
        for (size_t i = 0; i < json_array_size(details); i++) {
            strcat(joined, json_string_value(json_object_get(json_array_get(details, i), "text")));
            assert_int_equal(json_integer_value(json_object_get(json_array_get(details, i), "id")), i * step);
        }
        assert_string_equal(joined, whole);
        json_decref(root);
        cli_text_free(&out);
    }
    /* What the end of the text cuts can never complete. */
    const sotto_whisper_token cut[] = {{.bytes = "\xe6", .n_bytes = 1}, {.bytes = "\x97", .n_bytes = 1}};
    sotto_whisper_segment s = segment(0, 1, "");
    s.tokens = cut;
    s.n_tokens = 2;
    cli_text out = written("json-full", &s, 1, NULL);
    assert_non_null(strstr(out.data, "\"text\": \"\\ufffd\""));
    cli_text_free(&out);
}

static bool strict_utf8(const char *s, size_t n)
{
    for (size_t i = 0, bad; i < n;) {
        const size_t length = cli_utf8_length(s + i, n - i, &bad);
        if (!length)
            return false;
        i += length;
    }
    return true;
}

/* Random bytes through every format: strict UTF-8 comes out, and JSON parses. */
static void every_format_gives_valid_utf8(void **state)
{
    (void)state;
    const uint32_t seed = 12345;
    uint32_t x = seed;
    for (int round = 0; round < 200; round++) {
        char text[64];
        for (size_t i = 0; i < sizeof text; i++) {
            x = x * 1664525u + 1013904223u;
            text[i] = (char)(x >> 24);
        }
        sotto_whisper_segment s = segment(0, 1, "");
        s.text = text;
        s.n_text = sizeof text;
        for (const cli_writer *const *w = cli_writers; *w; w++) {
            cli_text out = written((*w)->name, &s, 1, NULL);
            if (!strict_utf8(out.data, out.size))
                fail_msg("%s, seed %u, round %d", (*w)->name, seed, round);
            if (strncmp((*w)->name, "json", 4) == 0) {
                json_t *root = json_loadb(out.data, out.size, JSON_ALLOW_NUL, NULL);
                assert_non_null(root);
                json_decref(root);
            }
            cli_text_free(&out);
        }
    }
}

static void json_full_tells_time_and_memory(void **state)
{
    (void)state;
    const sotto_whisper_timings timings = {.load_s = 0.5,
                                           .encode_s = 1.25,
                                           .n_encode = 2,
                                           .weight_bytes = 150000000,
                                           .self_cache_bytes = 1000000,
                                           .encode_bytes = 2500000};
    cli_transcript t = {.audio = "a", .model = "base", .timings = &timings};
    cli_text out = written("json-full", NULL, 0, &t);
    json_t *root = json_loads(out.data, 0, NULL);
    assert_non_null(root);
    assert_true(json_number_value(json_object_get(json_object_get(root, "memory_mb"), "weights")) == 150);
    assert_true(json_number_value(json_object_get(json_object_get(root, "memory_mb"), "compute_encode")) == 2.5);
    assert_true(json_number_value(json_object_get(json_object_get(root, "timings"), "encode_s")) == 1.25);
    assert_true(json_is_null(json_object_get(root, "language")));
    json_decref(root);
    cli_text_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_plain_cases),
        cmocka_unit_test(escapes_what_a_format_would_take_for_its_own),
        cmocka_unit_test(bad_times_are_zero),
        cmocka_unit_test(json_has_the_keys_of_the_original),
        cmocka_unit_test(any_bytes_survive_json),
        cmocka_unit_test(split_characters_are_joined),
        cmocka_unit_test(every_format_gives_valid_utf8),
        cmocka_unit_test(json_full_tells_time_and_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
