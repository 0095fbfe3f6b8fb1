/* Audio that is not WAV: raw PCM, pipes, content under wrong names, the FFmpeg decoders and the resampler. Files are made by
 * hand (AU is a container of big-endian PCM). Reported faults B10, B16, B18, B19, B20. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "audio/audio_impl.h"

enum { MAX = 1 << 18 };
static float samples[MAX];
static int warnings;

static void count_warning(void *user, sotto_log_level level, const char *text)
{
    (void)user;
    (void)text;
    warnings += level == SOTTO_LOG_WARNING;
}

static int64_t decode(const char *path, const char *raw, sotto_error *err)
{
    const sotto_logger logger = {.write = count_warning};
    st_audio *a = NULL;
    size_t n = 1;
    int64_t total = 0;
    warnings = 0;
    sotto_status status = st_audio_open(path, raw, &logger, &a, err);
    while (status == SOTTO_OK && n && total + 4096 <= MAX) {
        status = st_audio_read(a, samples + total, 4096, &n, err);
        total += (int64_t)n;
    }
    st_audio_close(a);
    return status == SOTTO_OK ? total : (int64_t)status;
}

static char folder[] = "/tmp/sotto-audio-XXXXXX";

static const char *file_with(const char *name, const void *data, size_t n)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
    return path;
}

static double sine(double i, double hz, double rate)
{
    return 0.5 * sin(6.283185307179586 * hz * i / rate);
}

/* ---- resampler ---- */

/* Largest deviation of a resampled sine from the sine itself, relative to its amplitude, away from the edges. */
static double deviation(uint32_t rate, double hz, double want_gain)
{
    st_resampler *r;
    sotto_error err;
    assert_int_equal(st_resampler_create(rate, &r, &err), SOTTO_OK);
    const size_t n = rate;
    size_t fed = 0, got = 0;
    float block[512];
    for (;;) {
        size_t k = 0;
        const size_t room = st_resampler_room(r);
        while (k < 512 && k < room && fed < n)
            block[k++] = (float)sine((double)fed++, hz, rate);
        if (k)
            st_resampler_feed(r, block, k);
        else if (fed == n)
            st_resampler_finish(r);
        const size_t m = st_resampler_read(r, samples + got, 300);
        got += m;
        if (!m && fed == n && !k)
            break;
    }
    st_resampler_free(r);
    assert_int_equal(got, 16000);
    double worst = 0;
    for (size_t i = 1000; i < 15000; i++) {
        const double d = fabs((double)samples[i] - want_gain * sine((double)i, hz, 16000)) / 0.5;
        worst = d > worst ? d : worst;
    }
    return worst;
}

static void resampler_keeps_speech_and_drops_what_would_fold(void **state)
{
    (void)state;
    static const uint32_t rates[] = {8000, 11025, 22050, 32000, 44100, 48000, 96000, 192000, 12345};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        const double nyquist = (rates[i] < 16000 ? rates[i] : 16000) / 2.0;
        for (int p = 1; p <= 8; p++) {
            const double d = deviation(rates[i], nyquist * p / 10, 1);
            if (d > 5e-4)
                fail_msg("%u Hz: a tone at %g Hz deviates by %g", rates[i], nyquist * p / 10, d);
        }
        if (rates[i] > 20000)
            for (double hz = 8800; hz < rates[i] / 2.0 && hz < 30000; hz += 1700) {
                const double d = deviation(rates[i], hz, 0);
                if (d > 1e-3)
                    fail_msg("%u Hz: a tone at %g Hz comes through with %g", rates[i], hz, d);
            }
    }
}

static void resampler_gives_the_right_number(void **state)
{
    (void)state;
    static const uint32_t rates[] = {1000, 7999, 15999, 16001, 44100, 768000};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        for (size_t n = 0; n < 4000; n = n * 3 + 1) {
            st_resampler *r;
            sotto_error err;
            assert_int_equal(st_resampler_create(rates[i], &r, &err), SOTTO_OK);
            const float one = 1;
            size_t got = 0, m;
            for (size_t k = 0; k < n; k++) {
                while (!st_resampler_room(r))
                    got += st_resampler_read(r, samples, MAX);
                st_resampler_feed(r, &one, 1);
            }
            st_resampler_finish(r);
            while ((m = st_resampler_read(r, samples, 100)) > 0)
                got += m;
            assert_int_equal(got, (n * 16000 + rates[i] - 1) / rates[i]);
            st_resampler_free(r);
        }
}

/* ---- raw ---- */

static void raw_formats(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        unsigned char data[16];
        size_t n;
        float want[2];
    } cases[] = {
        {"s16le", {0, 0x40, 0, 0xC0}, 4, {0.5f, -0.5f}},
        {"s16le:16000", {0, 0x40, 0, 0xC0}, 4, {0.5f, -0.5f}},
        {"s16le:16000:1", {0, 0x40, 0, 0xC0}, 4, {0.5f, -0.5f}},
        {"s16be:16000:1", {0x40, 0, 0xC0, 0}, 4, {0.5f, -0.5f}},
        {"u8", {192, 64}, 2, {0.5f, -0.5f}},
        {"s8", {64, 192}, 2, {0.5f, -0.5f}},
        {"s24le", {0, 0, 0x40, 0, 0, 0xC0}, 6, {0.5f, -0.5f}},
        {"s24be", {0x40, 0, 0, 0xC0, 0, 0}, 6, {0.5f, -0.5f}},
        {"s32le", {0, 0, 0, 0x40, 0, 0, 0, 0xC0}, 8, {0.5f, -0.5f}},
        {"s32be", {0x40, 0, 0, 0, 0xC0, 0, 0, 0}, 8, {0.5f, -0.5f}},
        {"f32le", {0, 0, 0, 0x3F, 0, 0, 0, 0xBF}, 8, {0.5f, -0.5f}},
        {"f32be", {0x3F, 0, 0, 0, 0xBF, 0, 0, 0}, 8, {0.5f, -0.5f}},
        {"f64le", {0, 0, 0, 0, 0, 0, 0xE0, 0x3F, 0, 0, 0, 0, 0, 0, 0xE0, 0xBF}, 16, {0.5f, -0.5f}},
        {"f64be", {0x3F, 0xE0, 0, 0, 0, 0, 0, 0, 0xBF, 0xE0}, 16, {0.5f, -0.5f}},
        {"s16le:16000:2", {0, 0x40, 0, 0, 0, 0xC0, 0, 0}, 8, {0.25f, -0.25f}},
    };
    sotto_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(decode(file_with("raw", cases[i].data, cases[i].n), cases[i].spec, &err), 2);
        assert_true(samples[0] == cases[i].want[0] && samples[1] == cases[i].want[1]);
    }
    static const char *const bad[] = {"",
                                      "s16",
                                      "s16le:",
                                      "s16le:abc",
                                      "s16le:0",
                                      "s16le:16000:0",
                                      "s16le:16000:257",
                                      "s16le:16000:1:1",
                                      "s16le:99999999",
                                      "s16le:-1",
                                      "f32le:16000:1x",
                                      "averyveryverylongname"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(st_audio_raw_check(bad[i], &err), SOTTO_E_ARGUMENT);
        assert_true(strlen(err.text) > 20);
    }
}

/* B20: any bits are samples. */
static void random_bits(void **state)
{
    (void)state;
    static unsigned char data[40000];
    uint32_t x = 99;
    sotto_error err;
    for (size_t i = 0; i < sizeof data; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (unsigned char)(x >> 24);
    }
    static const char *const specs[] = {"f32le:44100:1", "f64le:8000:2", "alaw:8000", "mulaw:8000", "s24le:48000:3"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const int64_t n = decode(file_with("raw", data, sizeof data), specs[i], &err);
        assert_true(n > 0);
        for (int64_t k = 0; k < n; k++)
            assert_true(isfinite(samples[k]));
    }
}

/* B18: a named pipe with a slow writer, and a byte that ends text files on some systems. */
static void named_pipe(void **state)
{
    (void)state;
    char path[128];
    sotto_error err;
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    const pid_t child = fork();
    if (child == 0) {
        FILE *f = fopen(path, "wb");
        const unsigned char piece[] = {0x1A, 0x1A, 0, 0x40, 0xFF};
        for (int i = 0; i < 20; i++) {
            fwrite(piece, 1, sizeof piece, f);
            fflush(f);
            usleep(1000);
        }
        fclose(f);
        _exit(0);
    }
    assert_int_equal(decode(path, "s16le:16000:1", &err), 50);
    assert_true(fabs((double)samples[0] - 0x1A1A / 32768.0) < 1e-6);
    waitpid(child, NULL, 0);
    remove(path);
}

/* ---- content ---- */

/* An AU file: 16-bit (3) or float (6) big-endian samples. */
static size_t make_au(unsigned char *out, unsigned encoding, unsigned rate, unsigned channels, size_t frames)
{
    const uint32_t header[] = {0x2E736E64, 24, 0xFFFFFFFF, encoding, rate, channels};
    size_t n = 0;
    for (size_t i = 0; i < 6; i++)
        for (int k = 24; k >= 0; k -= 8)
            out[n++] = (unsigned char)(header[i] >> k);
    for (size_t i = 0; i < frames * channels; i++) {
        const double v = sine((double)(i / channels), 440, rate);
        if (encoding == 3) {
            const int s = (int)lrint(v * 32767);
            out[n++] = (unsigned char)((unsigned)s >> 8);
            out[n++] = (unsigned char)s;
        } else {
            const float f = (float)v;
            uint32_t bits;
            memcpy(&bits, &f, 4);
            for (int k = 24; k >= 0; k -= 8)
                out[n++] = (unsigned char)(bits >> k);
        }
    }
    return n;
}

static void content_decides_not_the_name(void **state)
{
    (void)state;
    static unsigned char data[200000];
    sotto_error err;
    const size_t n = make_au(data, 3, 16000, 1, 16000);
    int64_t got = decode(file_with("music.wav", data, n), NULL, &err);
    if (got == SOTTO_E_UNSUPPORTED) {
        assert_non_null(strstr(err.text, "looks like AU")); /* a build without FFmpeg says what it is */
        skip();
    }
    assert_int_equal(got, 16000);
    for (int i = 0; i < 16000; i++)
        assert_true(fabs((double)samples[i] - sine(i, 440, 16000)) < 1e-4);
    /* 48 kHz stereo, resampled and mixed; the ends are the resampler's. */
    const size_t m = make_au(data, 3, 48000, 2, 24000);
    got = decode(file_with("music.mp3", data, m), NULL, &err);
    assert_true(got >= 7990 && got <= 8010);
    for (int i = 200; i < 7800; i++)
        assert_true(fabs((double)samples[i] - sine(i, 440, 16000)) < 2e-3);
    /* One NaN and one infinity in a float file stay single. */
    const size_t k = make_au(data, 6, 16000, 1, 1600);
    memset(data + 24 + 400, 0xFF, 4);
    memcpy(data + 24 + 800, "\x7F\x80\0\0", 4);
    assert_int_equal(decode(file_with("nan.au", data, k), NULL, &err), 1600);
    assert_int_equal(warnings, 1);
    for (int i = 0; i < 1600; i++)
        assert_true(fabs((double)samples[i] - (i == 100 || i == 200 ? 0 : sine(i, 440, 16000))) < 1e-4);
}

static void says_what_it_found(void **state)
{
    (void)state;
    static const struct {
        const char *name, *data;
        size_t n;
        const char *part;
    } cases[] = {{"empty.wav", "", 0, "is empty"},
                 {"text.mp3", "Hello, this is a letter and no music.\n", 38, "looks like text"},
                 {"model.wav", "GGUF\x03\0\0\0\0\0\0\0", 12, "looks like a GGUF model"},
                 {"flac.wav", "fLaC\0\0\0\x22", 8, "FLAC"},
                 {"ogg.wav", "OggS\0\2\0\0\0\0\0\0\0\0", 14, "Ogg"},
                 {"mp4.wav",
                  "\0\0\0\x18"
                  "ftypM4A \0\0\0\0",
                  16, "MP4"},
                 {"riff.wav", "RIFF\x04\0\0\0", 8, "header is cut"}};
    sotto_error err;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        err.text[0] = 0;
        assert_true(decode(file_with(cases[i].name, cases[i].data, cases[i].n), NULL, &err) < 0);
        if (!strstr(err.text, cases[i].part) || !strstr(err.text, cases[i].name))
            fail_msg("%s: \"%s\"", cases[i].name, err.text);
    }
    assert_true(decode(folder, NULL, &err) < 0);
    assert_non_null(strstr(err.text, "is a folder"));
    assert_int_equal(decode("/no/such/file.wav", NULL, &err), SOTTO_E_NOT_FOUND);
    assert_non_null(strstr(err.text, "/no/such/file.wav"));
}

static void film_without_sound(void **state)
{
    (void)state;
    static const char film[] = "YUV4MPEG2 W2 H2 F25:1 Ip A1:1 C420jpeg\nFRAME\n\x80\x80\x80\x80\x80\x80";
    sotto_error err;
    const int64_t got = decode(file_with("film.wav", film, sizeof film - 1), NULL, &err);
    if (got == SOTTO_E_UNSUPPORTED)
        skip();
    assert_true(got < 0);
    assert_non_null(strstr(err.text, "no audio stream"));
    assert_non_null(strstr(err.text, "YUV4MPEG"));
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const names[] = {"raw",       "music.wav", "music.mp3", "nan.au",  "empty.wav", "text.mp3",
                                        "model.wav", "flac.wav",  "ogg.wav",   "mp4.wav", "riff.wav",  "film.wav"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        remove(path);
    }
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resampler_keeps_speech_and_drops_what_would_fold),
        cmocka_unit_test(resampler_gives_the_right_number),
        cmocka_unit_test(raw_formats),
        cmocka_unit_test(random_bits),
        cmocka_unit_test(named_pipe),
        cmocka_unit_test(content_decides_not_the_name),
        cmocka_unit_test(says_what_it_found),
        cmocka_unit_test(film_without_sound),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
