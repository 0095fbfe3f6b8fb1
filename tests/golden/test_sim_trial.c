/* test_sim_trial.c: before a model is computed on a device, every operation of its graphs has been tried there, and not
 * much more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/llama_support.h"
#include "sotto/whisper.h"

#define TINY SOTTO_BUILD_DIR "/tiny/tiny-multilingual-ggml-f16.bin"

typedef struct trials {
    char tried[128][40]; /* "linear with f16" */
    int n;
    int n_used; /* nodes of the runs */
} trials;

static void note_trial(void *user, sotto_log_level level, const char *text)
{
    trials *t = user;
    const char *what = strstr(text, ": tried ");
    (void)level;
    if (what && t->n < 128)
        snprintf(t->tried[t->n++], sizeof t->tried[0], "%s", what + 8);
}

static void check_used(void *user, const sotto_trace_node *node)
{
    trials *t = user;
    bool found = strcmp(node->op, "none") == 0 || strcmp(node->backend, "sim:0") != 0;
    const size_t n = strlen(node->op);
    t->n_used += !found;
    for (int i = 0; i < t->n && !found; i++)
        found = strncmp(t->tried[i], node->op, n) == 0 && t->tried[i][n] == ' ';
    if (!found)
        fail_msg("%s (%s) runs on %s without having been tried there", node->op, node->name, node->backend);
}

/* The lines of a description that say which operation is where: number, operation, shape, type, device. */
typedef struct plans {
    trials *trials;
    char line[256];
    size_t n;
} plans;

static void read_plan(void *user, const char *text, size_t n)
{
    plans *p = user;
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '\n') {
            p->line[p->n] = text[i];
            p->n += p->n + 1 < sizeof p->line;
            continue;
        }
        p->line[p->n] = 0;
        p->n = 0;
        int number;
        char op[32];
        if (strstr(p->line, " sim:0 ") && strchr(p->line, '[') && sscanf(p->line, " %d %31[a-z_0-9]", &number, op) == 2)
            check_used(p->trials, &(sotto_trace_node){.op = op, .name = p->line, .backend = "sim:0"});
    }
}

static bool has(const trials *t, const char *what)
{
    for (int i = 0; i < t->n; i++)
        if (strcmp(t->tried[i], what) == 0)
            return true;
    return false;
}

static void speech(void **state)
{
    (void)state;
    static trials t;
    sotto_error err = {0};
    sotto_whisper_model_options mo;
    sotto_whisper_model_options_default(&mo);
    mo.backend.device = "sim:0";
    mo.backend.n_threads = 1;
    mo.backend.logger = (sotto_logger){note_trial, &t};
    FILE *f = fopen(TINY, "rb");
    if (!f) {
        printf("skipped: no small models (golden.make_tiny)\n");
        skip();
    }
    fclose(f);
    mo.measure_only = true;
    sotto_whisper_model *model;
    sotto_whisper_session *s;
    if (sotto_whisper_model_open(TINY, &mo, &model, &err) || sotto_whisper_session_create(model, NULL, &s, &err))
        fail_msg("%s", err.text);
    static const char *const graphs[] = {"mel", "encode", "decode"};
    for (int i = 0; i < 3; i++) {
        plans p = {.trials = &t};
        if (sotto_whisper_describe(s, graphs[i], read_plan, &p, &err))
            fail_msg("%s", err.text);
    }
    sotto_whisper_session_free(s);
    sotto_whisper_model_free(model);
    assert_true(t.n_used > 0 && has(&t, "linear with f16") && has(&t, "linear with f32") && has(&t, "conv_1d with f16"));
    assert_false(has(&t, "linear with q4_0") || has(&t, "linear with bf16") || has(&t, "rope with f32"));
}

static void text_with(const char *name, const char *compute, const char *want, const char * not )
{
    trials t = {0};
    sotto_llama_model_options o = llama_options("sim:0", 0, compute);
    o.backend.logger = (sotto_logger){note_trial, &t};
    sotto_llama_model *m = llama_open(name, &o);
    sotto_llama_session *s = llama_session(m, 32, 16, 1);
    const sotto_run_options run = {.trace = check_used, .trace_user = &t};
    sotto_llama_set_run_options(s, &run);
    llama_feed(s, 0, 0, 2);
    llama_feed(s, 0, 2, 3);
    sotto_llama_session_free(s);
    sotto_llama_model_free(m);
    assert_true(t.n_used > 0 && has(&t, want));
    assert_false(has(&t, not ) || has(&t, "layer_norm with f32"));
}

static void text(void **state)
{
    (void)state;
    if (!llama_is_made())
        skip();
    text_with("gemma3", "f32", "linear with f32", "linear with bf16");
    text_with("qwen2", "f16", "linear with f16", "linear with q4_k");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(speech), cmocka_unit_test(text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
