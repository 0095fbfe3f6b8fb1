#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "golden/llama_support.h"

int32_t llama_token(int i)
{
    return (7 * i * i + 31 * i + 5) % LLAMA_VOCAB;
}

const char *llama_path(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/llama/%s.gguf", SOTTO_BUILD_DIR, name);
    return path;
}

bool llama_is_made(void)
{
    FILE *f = fopen(SOTTO_BUILD_DIR "/llama/made", "rb");
    if (f)
        fclose(f);
    else
        printf("skipped: the seeded models are not there (python3 tools/make_gguf.py --all)\n");
    return f != NULL;
}

sotto_llama_model_options llama_options(const char *device, int gpu_layers, const char *compute)
{
    sotto_llama_model_options o;
    sotto_llama_model_options_default(&o);
    o.backend.device = device;
    o.backend.n_threads = 1;
    o.backend.gpu_layers = gpu_layers;
    o.compute = compute;
    return o;
}

sotto_llama_model *llama_open(const char *name, const sotto_llama_model_options *options)
{
    const sotto_llama_model_options usual = llama_options("cpu", 0, "f32");
    sotto_llama_model *model;
    sotto_error err = {0};
    if (sotto_llama_model_open(llama_path(name), options ? options : &usual, &model, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return model;
}

sotto_llama_session *llama_session(const sotto_llama_model *model, int n_ctx, int n_batch, int n_seq)
{
    sotto_llama_session_options o;
    sotto_llama_session_options_default(&o);
    o.n_ctx = n_ctx;
    o.n_batch = n_batch;
    o.n_seq = n_seq;
    o.cache_k = o.cache_v = SOTTO_F32;
    sotto_llama_session *s;
    sotto_error err = {0};
    if (sotto_llama_session_create(model, &o, &s, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
    return s;
}

void llama_feed(sotto_llama_session *s, int32_t seq, int from, int to)
{
    int32_t tokens[1024];
    sotto_error err = {0};
    assert_true(to - from <= (int)(sizeof tokens / sizeof *tokens));
    for (int i = from; i < to; i++)
        tokens[i - from] = llama_token(i);
    if (sotto_llama_decode_tokens(s, seq, tokens, to - from, &err) != SOTTO_OK)
        fail_msg("%s", err.text);
}

double llama_difference(const float *got, const float *want, int n)
{
    double largest = 0, most = 0;
    for (int i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - want[i]);
        largest = fmax(largest, fabs((double)want[i]));
        most = d > most || isnan(d) ? d : most;
    }
    return most / largest;
}
