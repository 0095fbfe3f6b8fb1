/* Real speech made to follow a grammar: no segment is cut inside a word or has no length, and what does not match is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden_support.h"
#include "sotto/whisper.h"

static sotto_whisper_model *model;
static sotto_whisper_session *session;
static recording heard; /* "He was not an ill-disposed young man." */
static char warnings[1000];

static void note(void *user, sotto_log_level level, const char *text)
{
    (void)user;
    if (level == SOTTO_LOG_WARNING)
        strncat(warnings, text, sizeof warnings - strlen(warnings) - 1);
}

static int setup(void **state)
{
    (void)state;
    sotto_error err;
    const char *path = model_path("tiny.en");
    golden g = golden_open("base", "librivox-0880");
    const bool found = path && recording_open(golden_at(g.json, "parts"), 0, &heard);
    golden_close(&g);
    if (!found)
        return 0;
    if (sotto_whisper_model_open(path, NULL, &model, &err) != SOTTO_OK ||
        sotto_whisper_session_create(model, NULL, &session, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sotto_whisper_session_free(session);
    sotto_whisper_model_free(model);
    recording_close(&heard);
    return 0;
}

/* Segments with a length, each of which begins with a space; their joined text is *text. */
static void hear(const char *gbnf, int beam_size, char *text, size_t size)
{
    sotto_error err;
    sotto_grammar *grammar;
    if (sotto_grammar_create(gbnf, strlen(gbnf), NULL, &grammar, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    sotto_whisper_options o;
    sotto_whisper_options_default(&o);
    o.grammar = grammar;
    o.beam_size = beam_size;
    o.logger.write = note;
    warnings[0] = text[0] = 0;
    if (sotto_whisper_transcribe(session, heard.pcm, heard.n, &o, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    for (int64_t i = 0; i < sotto_whisper_segment_count(session); i++) {
        const sotto_whisper_segment *s = sotto_whisper_segment_get(session, i);
        assert_true(s->end > s->start);
        assert_int_equal(s->text[0], ' ');
        strncat(text, s->text, size - strlen(text) - 1);
    }
    printf("%s -> \"%s\" %s\n", gbnf, text, warnings);
    sotto_grammar_free(grammar);
}

/* What lies between them is heard as "ill-disposed" or "old supposed". */
static bool is_said(const char *text, const char *first, const char *last)
{
    return strncmp(text, first, strlen(first)) == 0 && strlen(text) > strlen(last) &&
           strcmp(text + strlen(text) - strlen(last), last) == 0;
}

static void what_matches(void **state)
{
    (void)state;
    char text[1000];
    if (!session)
        skip();
    for (int beams = 1; beams <= 5; beams += 4) {
        hear("root ::= (\" \" [a-z]+)+", beams, text, sizeof text);
        assert_true(is_said(text, " he was not an ", " young man"));
        assert_string_equal(warnings, "");
        hear("root ::= \" He was \" (\"not \" | \"only \") [ a-z-]+ \".\"", beams, text, sizeof text);
        assert_true(is_said(text, " He was not an ", " young man."));
        assert_string_equal(warnings, "");
    }
}

static void what_does_not(void **state)
{
    (void)state;
    char text[1000];
    if (!session)
        skip();
    static const char *const other[] = {"root ::= \" hello\"", "root ::= \" elephant\" | \" umbrella\"",
                                        "root ::= \" \" [0-9]+ \" euros\""};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
        hear(other[i], 5, text, sizeof text);
        /* or the network, forced to write one thing after another, goes on with it until the window is full */
        assert_true(strstr(warnings, "hardly matches the grammar") || strstr(warnings, "does not follow the grammar"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_matches), cmocka_unit_test(what_does_not)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
