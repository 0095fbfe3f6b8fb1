/* The option tables and their parser, paths, atomic files and SHA-256. Expected hashes: examples of FIPS 180-4. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "commands.h"
#include "common/fetch.h"
#include "common/outfile.h"
#include "common/sha256.h"
#include "transcribe_options.h"

static int parse(transcribe_args *a, cli_list *inputs, const char *const *words)
{
    int n = 0;
    char *argv[32];
    bool help;
    FILE *errors = fopen("/dev/null", "w");
    for (; words[n]; n++)
        argv[n] = (char *)(uintptr_t)words[n];
    const int status = cli_parse(&cmd_transcribe, n, argv, a, inputs, &help, errors);
    fclose(errors);
    return status;
}

/* The presets of the table say what the library's defaults are. */
static void presets_are_the_defaults_of_the_library(void **state)
{
    (void)state;
    transcribe_args a;
    cli_list inputs;
    sotto_whisper_options got, want;
    int32_t *suppress;
    assert_int_equal(parse(&a, &inputs, (const char *[]){"a.wav", NULL}), CLI_OK);
    assert_int_equal(transcribe_fill(&cmd_transcribe, &a, &got, &suppress), CLI_OK);
    sotto_whisper_options_default(&want);
    assert_string_equal(got.language, "auto");
    assert_int_equal(got.task, want.task);
    assert_int_equal(got.timestamps, want.timestamps);
    assert_true(got.offset == want.offset && got.duration == want.duration);
    assert_int_equal(got.audio_ctx, want.audio_ctx);
    assert_int_equal(got.beam_size, want.beam_size);
    assert_int_equal(got.best_of, want.best_of);
    assert_true(got.patience == want.patience && got.length_penalty == want.length_penalty);
    assert_true(got.temperature == want.temperature && got.temperature_inc == want.temperature_inc);
    assert_int_equal(got.seed, want.seed);
    assert_true(got.compression_ratio_threshold == want.compression_ratio_threshold);
    assert_true(got.logprob_threshold == want.logprob_threshold && got.no_speech_threshold == want.no_speech_threshold);
    assert_int_equal(got.max_tokens, want.max_tokens);
    assert_int_equal(got.suppress_blank, want.suppress_blank);
    assert_int_equal(got.suppress_non_speech, want.suppress_non_speech);
    assert_int_equal(got.n_suppress_tokens, 0);
    assert_true(got.max_initial_timestamp == want.max_initial_timestamp);
    assert_int_equal(got.condition_on_previous_text, want.condition_on_previous_text);
    assert_int_equal(got.carry_initial_prompt, want.carry_initial_prompt);
    assert_true(got.max_context < 0 && want.max_context < 0);
    free(suppress);
    cli_parse_free(&cmd_transcribe, &a, &inputs);
}

static void values_arrive(void **state)
{
    (void)state;
    transcribe_args a;
    cli_list inputs;
    sotto_whisper_options o;
    int32_t *suppress;
    const char *const words[] = {"-t4",
                                 "--beam_size=3",
                                 "a.wav",
                                 "-bo",
                                 "2",
                                 "--suppress-tokens",
                                 "7,-1,9",
                                 "-f",
                                 "srt",
                                 "-ovtt",
                                 "--logprob_threshold",
                                 "off",
                                 "--no_speech_threshold",
                                 "0.3",
                                 "-ot",
                                 "1500",
                                 "-d",
                                 "250",
                                 "--condition_on_previous_text",
                                 "False",
                                 "--trace",
                                 "--",
                                 "-b.wav",
                                 "-",
                                 NULL};
    assert_int_equal(parse(&a, &inputs, words), CLI_OK);
    assert_int_equal(transcribe_fill(&cmd_transcribe, &a, &o, &suppress), CLI_OK);
    assert_int_equal(a.threads, 4);
    assert_int_equal(o.beam_size, 3);
    assert_int_equal(o.best_of, 2);
    assert_int_equal(o.n_suppress_tokens, 2);
    assert_int_equal(o.suppress_tokens[1], 9);
    assert_true(o.suppress_non_speech);
    assert_true(isnan(o.logprob_threshold));
    assert_true(fabsf(o.no_speech_threshold - 0.3f) < 1e-6f);
    assert_true(o.offset == 1.5 && o.duration == 0.25);
    assert_false(o.condition_on_previous_text);
    assert_string_equal(a.trace, "ops");
    assert_int_equal(a.formats.count, 2);
    assert_string_equal(a.formats.item[1], "vtt");
    assert_int_equal(inputs.count, 3);
    assert_string_equal(inputs.item[1], "-b.wav");
    free(suppress);
    cli_parse_free(&cmd_transcribe, &a, &inputs);
    assert_int_equal(
        parse(&a, &inputs, (const char *[]){"--trace", "dot", "--trace", "x.wav", "--suppress-tokens", "", NULL}),
        CLI_OK);
    assert_int_equal(inputs.count, 1);
    assert_int_equal(transcribe_fill(&cmd_transcribe, &a, &o, &suppress), CLI_OK);
    assert_false(o.suppress_non_speech);
    free(suppress);
    cli_parse_free(&cmd_transcribe, &a, &inputs);
}

/* No two options of a command answer to the same spelling, and presets lie in their ranges. */
static void tables_are_consistent(void **state)
{
    (void)state;
    for (const cli_command *const *c = cli_commands; *c; c++)
        for (const cli_option *o = (*c)->options; o->name; o++) {
            char typed[64], word[64];
            const char *start;
            size_t n;
            snprintf(typed, sizeof typed, "--%s", o->name);
            assert_non_null(o->help);
            assert_int_equal(cli_kind_takes_value(o->kind) && !o->value, 0);
            for (const cli_option *other = (*c)->options; other->name; other++) {
                if (other != o && cli_option_matches(other, typed))
                    fail_msg("%s: %s is also --%s", (*c)->name, typed, other->name);
                for (size_t i = 0; cli_word_at(o->also, i, &start, &n); i++) {
                    snprintf(word, sizeof word, "%.*s", (int)n, start);
                    if (other != o && cli_option_matches(other, word))
                        fail_msg("%s: %s of --%s is also --%s", (*c)->name, word, o->name, other->name);
                }
            }
        }
}

static void hashes_are_those_of_the_standard(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hex;
    } cases[] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
                 {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
                 {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                  "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    char hex[65];
    cli_sha256 s;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cli_sha256_start(&s);
        cli_sha256_add(&s, cases[i].text, strlen(cases[i].text));
        cli_sha256_finish(&s, hex);
        assert_string_equal(hex, cases[i].hex);
    }
    cli_sha256_start(&s); /* a million letters, in pieces that do not fit the blocks */
    char piece[997];
    memset(piece, 'a', sizeof piece);
    for (size_t left = 1000000; left;) {
        const size_t n = left < sizeof piece ? left : sizeof piece;
        cli_sha256_add(&s, piece, n);
        left -= n;
    }
    cli_sha256_finish(&s, hex);
    assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void files_are_written_whole_or_not(void **state)
{
    (void)state;
    char folder[] = "/tmp/sotto-test-XXXXXX", path[64], buffer[16] = "";
    sotto_error err;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/deep/er", folder);
    assert_true(cli_make_folders(path, &err));
    assert_true(cli_make_folders(path, &err));
    snprintf(path, sizeof path, "%s/deep/er/a.txt", folder);
    assert_true(cli_write_file(path, "first", 5, &err));
    assert_true(cli_write_file(path, "again", 5, &err));
    FILE *f = fopen(path, "r");
    assert_int_equal(fread(buffer, 1, sizeof buffer, f), 5);
    fclose(f);
    assert_string_equal(buffer, "again");
    assert_false(cli_make_folders(path, &err)); /* a file is in the way */
    assert_non_null(strstr(err.text, path));
    remove(path);
    snprintf(path, sizeof path, "%s/deep/er", folder);
    assert_false(cli_write_file(path, "x", 1, &err));
    assert_non_null(strstr(err.text, "folder"));
    rmdir(path);
    snprintf(path, sizeof path, "%s/missing/a.txt", folder);
    assert_false(cli_write_file(path, "x", 1, &err));
    assert_non_null(strstr(err.text, "missing"));
    snprintf(path, sizeof path, "%s/deep", folder);
    assert_int_equal(rmdir(path), 0); /* nothing was left behind */
    assert_int_equal(rmdir(folder), 0);
    if (access("/dev/full", W_OK) == 0) /* renaming over a device is refused or it is full: an error either way */
        assert_false(cli_write_file("/dev/full/x", "x", 1, &err));
}

static void stems(void **state)
{
    (void)state;
    static const struct {
        const char *path, *stem;
    } cases[] = {{"a/talk.mp3", "talk"}, {"talk", "talk"},   {"a.b/talk", "talk"},
                 {".hidden", ".hidden"}, {"x/a.b.c", "a.b"}, {"x/", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *stem = cli_path_stem(cases[i].path);
        assert_string_equal(stem, cases[i].stem);
        free(stem);
    }
}

static void addresses(void **state)
{
    (void)state;
    static const struct {
        const char *base, *reference, *result;
    } cases[] = {
        {"https://pypi.org/simple/x/", "https://files.example/a/x.whl#sha256=00", "https://files.example/a/x.whl"},
        {"https://mirror.example/simple/x/", "../../packages/x.whl", "https://mirror.example/packages/x.whl"},
        {"https://mirror.example/simple/x/", "/packages/x.whl#sha256=00", "https://mirror.example/packages/x.whl"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *url = cli_url_resolve(cases[i].base, cases[i].reference);
        assert_string_equal(url, cases[i].result);
        free(url);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets_are_the_defaults_of_the_library),
        cmocka_unit_test(values_arrive),
        cmocka_unit_test(tables_are_consistent),
        cmocka_unit_test(hashes_are_those_of_the_standard),
        cmocka_unit_test(files_are_written_whole_or_not),
        cmocka_unit_test(stems),
        cmocka_unit_test(addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
