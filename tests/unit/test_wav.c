/* WAV files made by hand, as other programs write them: every width, odd chunks, sizes that lie, cut headers. Expected
 * samples come from the sine they were made from. Reported faults B01 (short files), B05 to B11, B15, B19. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audio/audio.h"

enum { N = 1600, MAX = 1 << 16 };

typedef struct wav {
    unsigned char data[MAX];
    size_t size, fmt_at, data_size_at;
} wav;

static void put(wav *w, const void *data, size_t n)
{
    assert_true(w->size + n <= MAX);
    memcpy(w->data + w->size, data, n);
    w->size += n;
}

static void put_le(wav *w, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        const unsigned char b = (unsigned char)(v >> (8 * i));
        put(w, &b, 1);
    }
}

static void set_u32(wav *w, size_t at, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        w->data[at + (size_t)i] = (unsigned char)(v >> (8 * i));
}

typedef struct spec {
    const char *name;
    unsigned tag, bits, channels, rate;
    bool extensible;
    unsigned valid;
    double tolerance;
} spec;

static double sine(size_t i, unsigned rate)
{
    return 0.5 * sin(6.283185307179586 * 440 * (double)i / rate);
}

static int mulaw_code(double v)
{
    int x = (int)lrint(v * 32768), sign = x < 0 ? 0x80 : 0;
    x = (x < 0 ? -x : x) + 132;
    int e = 7;
    while (e > 0 && !(x & (0x80 << e)))
        e--;
    return ~(sign | e << 4 | (x >> (e + 3) & 15)) & 0xFF;
}

static int alaw_code(double v)
{
    int x = (int)lrint(v * 32768), sign = x >= 0 ? 0x80 : 0;
    x = x < 0 ? -x : x;
    int e = 0;
    for (int y = x >> 8; y; y >>= 1)
        e++;
    const int m = e ? x >> (e + 3) & 15 : x >> 4 & 15;
    return (sign | e << 4 | m) ^ 0x55;
}

static void put_sample(wav *w, const spec *s, double v)
{
    if (s->tag == 3 && s->bits == 32) {
        const float f = (float)v;
        put(w, &f, 4);
    } else if (s->tag == 3) {
        put(w, &v, 8);
    } else if (s->tag == 6) {
        put_le(w, (uint64_t)alaw_code(v), 1);
    } else if (s->tag == 7) {
        put_le(w, (uint64_t)mulaw_code(v), 1);
    } else if (s->bits == 8) {
        put_le(w, (uint64_t)(lrint(v * 127) + 128), 1);
    } else {
        const int64_t whole = llrint(v * (double)((int64_t)1 << (s->valid ? s->valid - 1 : s->bits - 1)));
        put_le(w, (uint64_t)whole << (s->valid ? s->bits - s->valid : 0), (int)s->bits / 8);
    }
}

static void put_fmt(wav *w, const spec *s, unsigned extra)
{
    const unsigned frame = s->channels * s->bits / 8;
    w->fmt_at = w->size;
    put(w, "fmt ", 4);
    put_le(w, (s->extensible ? 40 : 16) + extra, 4);
    put_le(w, s->extensible ? 0xFFFE : s->tag, 2);
    put_le(w, s->channels, 2);
    put_le(w, s->rate, 4);
    put_le(w, s->rate * frame, 4);
    put_le(w, frame, 2);
    put_le(w, s->bits, 2);
    if (s->extensible) {
        put_le(w, 22, 2);
        put_le(w, s->valid ? s->valid : s->bits, 2);
        put_le(w, 0, 4);
        put_le(w, s->tag, 2);
        put(w, "\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71", 14);
    }
    for (unsigned i = 0; i < extra; i++)
        put_le(w, 0, 1);
}

static void begin(wav *w)
{
    *w = (wav){0};
    put(w, "RIFF", 4);
    put_le(w, 0, 4);
    put(w, "WAVE", 4);
}

static void put_data(wav *w, const spec *s, size_t frames)
{
    put(w, "data", 4);
    w->data_size_at = w->size;
    put_le(w, frames * s->channels * s->bits / 8, 4);
    for (size_t i = 0; i < frames; i++)
        for (unsigned c = 0; c < s->channels; c++)
            put_sample(w, s, sine(i, s->rate));
    set_u32(w, 4, (uint32_t)w->size - 8);
}

static void make(wav *w, const spec *s, size_t frames)
{
    begin(w);
    put_fmt(w, s, 0);
    put_data(w, s, frames);
}

/* ---- reading it back, as a file and as a pipe that gives few bytes at once ---- */

typedef struct memory {
    const unsigned char *data;
    size_t size, at, most;
} memory;

static int64_t memory_read(void *user, void *buffer, size_t n)
{
    memory *m = user;
    size_t take = m->size - m->at < n ? m->size - m->at : n;
    if (take > m->most)
        take = m->most;
    memcpy(buffer, m->data + m->at, take);
    m->at += take;
    return (int64_t)take;
}

static int64_t memory_seek(void *user, int64_t to)
{
    memory *m = user;
    m->at = (uint64_t)to < m->size ? (size_t)to : m->size;
    return 0;
}

static int warnings;

static void count_warning(void *user, sotto_log_level level, const char *text)
{
    (void)user;
    (void)text;
    warnings += level == SOTTO_LOG_WARNING;
}

static float samples[MAX];

/* Number of samples, or the negative status with the sentence in err. */
static int64_t decode(const unsigned char *data, size_t size, bool pipe, sotto_error *err)
{
    /* An exact copy, so that a sanitizer sees one byte too far. */
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, data, size);
    memory m = {.data = copy, .size = size, .most = pipe ? 7 : SIZE_MAX};
    const st_audio_source source = {
        .read = memory_read, .seek = pipe ? NULL : memory_seek, .user = &m, .size = pipe ? -1 : (int64_t)size};
    const sotto_logger logger = {.write = count_warning};
    st_audio *a = NULL;
    size_t n = 1;
    int64_t total = 0;
    warnings = 0;
    sotto_status status = st_audio_open_source_take(&source, "test.wav", NULL, &logger, &a, err);
    while (status == SOTTO_OK && n) {
        status = st_audio_read(a, samples + total, MAX - (size_t)total < 1000 ? MAX - (size_t)total : 1000, &n, err);
        total += (int64_t)n;
    }
    st_audio_close(a);
    free(copy);
    if (status == SOTTO_OK)
        for (int64_t i = 0; i < total; i++)
            assert_true(isfinite(samples[i]));
    return status == SOTTO_OK ? total : (int64_t)status;
}

static void expect_sine(const wav *w, int64_t n, double tolerance, const char *what)
{
    for (int pipe = 0; pipe < 2; pipe++) {
        sotto_error err = {0};
        const int64_t got = decode(w->data, w->size, pipe, &err);
        if (got != n)
            fail_msg("%s: %lld samples (%s), expected %lld", what, (long long)got, err.text, (long long)n);
        for (int64_t i = 0; i < n; i++)
            if (fabs((double)samples[i] - sine((size_t)i, 16000)) > tolerance)
                fail_msg("%s: sample %lld is %g, expected %g", what, (long long)i, (double)samples[i],
                         sine((size_t)i, 16000));
    }
}

static const spec plain = {"16 bit", 1, 16, 1, 16000, false, 0, 0};

static void every_width(void **state)
{
    (void)state;
    static const spec specs[] = {
        {"8 bit", 1, 8, 1, 16000, false, 0, 0.011},     {"16 bit", 1, 16, 1, 16000, false, 0, 2e-5},
        {"24 bit", 1, 24, 1, 16000, false, 0, 1e-6},    {"32 bit", 1, 32, 1, 16000, false, 0, 1e-6},
        {"float", 3, 32, 1, 16000, false, 0, 1e-7},     {"double", 3, 64, 1, 16000, false, 0, 1e-7},
        {"A-law", 6, 8, 1, 16000, false, 0, 0.02},      {"mu-law", 7, 8, 1, 16000, false, 0, 0.02},
        {"stereo", 1, 16, 2, 16000, false, 0, 2e-5},    {"six channels", 1, 16, 6, 16000, false, 0, 2e-5},
        {"extensible", 1, 16, 1, 16000, true, 0, 2e-5}, {"extensible float", 3, 32, 2, 16000, true, 0, 1e-6},
        {"24 in 32", 1, 32, 1, 16000, true, 24, 1e-6},  {"20 in 24", 1, 24, 1, 16000, true, 20, 1e-5},
    };
    static wav w;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        make(&w, &specs[i], N);
        expect_sine(&w, N, specs[i].tolerance, specs[i].name);
        assert_int_equal(warnings, 0);
    }
}

static void other_rates(void **state)
{
    (void)state;
    static const unsigned rates[] = {8000, 11025, 22050, 44100, 48000};
    static wav w;
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const spec s = {"rate", 3, 32, 1, rates[i], false, 0, 0};
        const size_t n = rates[i] / 10;
        sotto_error err;
        make(&w, &s, n);
        assert_int_equal(decode(w.data, w.size, false, &err), (n * 16000 + rates[i] - 1) / rates[i]);
        for (size_t k = 200; k < 1400; k++) /* away from the edges, where zeros begin */
            if (fabs((double)samples[k] - sine(k, 16000)) > 2e-4)
                fail_msg("%u Hz: sample %zu is %g, expected %g", rates[i], k, (double)samples[k], sine(k, 16000));
    }
}

/* B05: sizes that a program writing to a pipe leaves. */
static void sizes_that_lie(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 0xFFFFFFFFu, 0x7FFFFFFFu, 0x7FFFF000u, 0xFFFFFFFEu};
    static wav w;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int riff = 0; riff < 2; riff++) {
            make(&w, &plain, N);
            set_u32(&w, w.data_size_at, sizes[i]);
            set_u32(&w, 4, riff ? 0xFFFFFFFFu : 0);
            expect_sine(&w, N, 2e-5, "open end");
        }
}

/* B06, B07: chunks in any order, odd ones with and without the pad byte. */
static void other_chunks(void **state)
{
    (void)state;
    static wav w;
    for (int kind = 0; kind < 6; kind++) {
        begin(&w);
        if (kind == 0) {
            put(&w, "JUNK\x1c\0\0\0", 8);
            put(&w, "0123456789012345678901234567", 28);
        }
        if (kind == 4)
            put(&w, "LIST\x05\0\0\0abcde\0", 14);
        put_fmt(&w, &plain, kind == 3 ? 1 : kind == 5 ? 2 : 0);
        if (kind == 3)
            put_le(&w, 0, 1);
        if (kind == 1)
            put(&w, "LIST\x05\0\0\0abcde\0", 14);
        if (kind == 2)
            put(&w, "LIST\x05\0\0\0abcde", 13);
        put_data(&w, &plain, N);
        put(&w, "LIST\x04\0\0\0tail", 12); /* after the data, not sound */
        expect_sine(&w, N, 2e-5, "chunks");
    }
    begin(&w);
    memcpy(w.data, "RF64", 4);
    put(&w, "ds64\x1c\0\0\0", 8);
    put(&w, "0123456789012345678901234567", 28);
    put_fmt(&w, &plain, 0);
    put_data(&w, &plain, N);
    set_u32(&w, w.data_size_at, 0xFFFFFFFFu);
    memset(w.data + 4, 0xFF, 4);
    expect_sine(&w, N, 2e-5, "RF64");
}

/* B15 */
static void data_shorter_than_said(void **state)
{
    (void)state;
    static wav w;
    for (unsigned over = 1; over < 6; over++) {
        make(&w, &plain, N);
        set_u32(&w, w.data_size_at, N * 2 + over);
        expect_sine(&w, N, 2e-5, "too large a size");
        assert_int_equal(warnings, 1);
    }
    make(&w, &plain, N);
    w.size--; /* the last frame is cut */
    expect_sine(&w, N - 1, 2e-5, "cut frame");
    assert_int_equal(warnings, 1);
}

/* B11, B01, B02: every length of a small file. */
static void every_truncation(void **state)
{
    (void)state;
    static wav w;
    const spec kinds[] = {plain, {"extensible", 3, 32, 2, 44100, true, 0, 0}};
    for (size_t k = 0; k < 2; k++) {
        make(&w, &kinds[k], 201);
        for (size_t n = 0; n < w.size; n++)
            for (int pipe = 0; pipe < 2; pipe++) {
                sotto_error err = {0};
                const int64_t got = decode(w.data, n, pipe, &err);
                if (got < 0)
                    assert_non_null(strstr(err.text, "test.wav"));
                assert_int_equal(got < 0, n < w.data_size_at + 4);
            }
    }
    static const size_t few[] = {0, 1, 5, 199, 200, 201};
    for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
        make(&w, &plain, few[i]);
        expect_sine(&w, (int64_t)few[i], 2e-5, "short");
    }
}

static void expect_error(const wav *w, const char *part)
{
    sotto_error err = {0};
    assert_true(decode(w->data, w->size, false, &err) < 0);
    if (!strstr(err.text, part))
        fail_msg("\"%s\" does not hold \"%s\"", err.text, part);
}

/* B08, B09, B10: what is refused, and that the numbers are named. */
static void refuses_with_numbers(void **state)
{
    (void)state;
    static wav w;
    const spec unknown = {"codec", 0x1234, 16, 1, 16000, false, 0, 0},
               twelve = {"float 16", 3, 16, 1, 16000, false, 0, 0};
    make(&w, &plain, N);
    w.data[w.fmt_at + 20] = 4; /* block align */
    expect_error(&w, "blocks of 4 bytes, expected 2");
    begin(&w);
    put_fmt(&w, &unknown, 0);
    put(&w, "data\x04\0\0\0....", 12);
    expect_error(&w, "codec 0x1234 (unknown)");
    make(&w, &twelve, N);
    expect_error(&w, "16 bits of float");
    make(&w, &plain, N);
    w.data[w.fmt_at + 8] = 0xFE;
    w.data[w.fmt_at + 9] = 0xFF;
    expect_error(&w, "extension");
    make(&w, &plain, N);
    w.data[w.fmt_at + 10] = 0;
    expect_error(&w, "0 channels");
    make(&w, &plain, N);
    set_u32(&w, w.fmt_at + 12, 5);
    expect_error(&w, "5 samples a second");
    begin(&w);
    put_data(&w, &plain, 4);
    expect_error(&w, "without a fmt");
    begin(&w);
    put_fmt(&w, &plain, 0);
    expect_error(&w, "no data");
}

/* B19 */
static void odd_floats_are_silence(void **state)
{
    (void)state;
    const spec s = {"float", 3, 32, 1, 16000, false, 0, 0}, d = {"double", 3, 64, 1, 44100, false, 0, 0};
    static wav w;
    sotto_error err;
    const float bad[] = {NAN, INFINITY, -INFINITY, 1e30f, 1e-42f};
    make(&w, &s, N);
    memcpy(w.data + w.data_size_at + 4, bad, sizeof bad);
    assert_int_equal(decode(w.data, w.size, false, &err), N);
    for (int i = 0; i < 5; i++)
        assert_true(fabsf(samples[i]) < 1e-40f);
    assert_true(fabs((double)samples[5] - sine(5, 16000)) < 1e-6);
    assert_int_equal(warnings, 1);
    const double worse[] = {(double)NAN, 1e300, -1e300};
    make(&w, &d, N);
    memcpy(w.data + w.data_size_at + 4, worse, sizeof worse);
    assert_true(decode(w.data, w.size, false, &err) > 0); /* decode() checks that all are finite */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_width),
        cmocka_unit_test(other_rates),
        cmocka_unit_test(sizes_that_lie),
        cmocka_unit_test(other_chunks),
        cmocka_unit_test(data_shorter_than_said),
        cmocka_unit_test(every_truncation),
        cmocka_unit_test(refuses_with_numbers),
        cmocka_unit_test(odd_floats_are_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
