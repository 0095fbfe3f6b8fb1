#include "parts_support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

parts parts_open(const sotto_whisper_model *model, const char *cpu_level)
{
    return parts_open_with(model, cpu_level, NULL);
}

parts parts_open_with(const sotto_whisper_model *model, const char *cpu_level, const char *caches)
{
    sotto_error err;
    parts p;
    st_net_shape shape = {.n_seq = 5};
    const sotto_backend_options o = {.cpu_level = cpu_level};
    if (sotto_backend_open(&o, &p.backend, &err) || sotto_arena_create(p.backend, &p.arena, &err) ||
        st_frontend_create(model, p.backend, p.arena, &p.frontend, &err) ||
        st_net_cache_type(model, "cache_k", caches, &shape.keys, &err) ||
        st_net_cache_type(model, "cache_v", caches, &shape.values, &err) ||
        st_net_create(model, p.backend, p.arena, &shape, &p.net, &err))
        fail_msg("%s", err.text);
    p.engine = st_net_engine(p.net);
    return p;
}

void parts_close(parts *p)
{
    st_net_free(p->net);
    st_frontend_free(p->frontend);
    sotto_arena_free(p->arena);
    sotto_backend_free(p->backend);
}

void parts_logits(const parts *p, const int32_t *tokens, int n, float *logits)
{
    st_row rows[448];
    assert_true(n <= 448);
    for (int i = 0; i < n; i++)
        rows[i] = (st_row){.token = tokens[i], .pos = i, .seq = 0, .logits = i == n - 1 ? logits : NULL};
    sotto_error err;
    p->engine.reset(p->engine.ctx, 0);
    if (p->engine.decode(p->engine.ctx, rows, n, &err))
        fail_msg("%s", err.text);
    if (rows[n - 1].logits != logits)
        memcpy(logits, rows[n - 1].logits, (size_t)p->engine.n_vocab * sizeof *logits);
}

double parts_encoder_error(const golden *g, const float *out, int d)
{
    json_t *entry = golden_at(g->json, "encoder"), *rows = golden_at(entry, "rows");
    int64_t n;
    const float *want = golden_floats(g, golden_at(entry, "values"), &n);
    double error = 0, norm = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const int64_t row = json_integer_value(json_array_get(rows, i));
        for (int k = 0; k < d; k++) {
            const double w = want[(int64_t)i * d + k], e = out[row * d + k] - w;
            error += e * e;
            norm += w * w;
        }
    }
    return sqrt(error / norm);
}

double parts_logit_error(const golden *g, json_t *entry, const float *logits)
{
    json_t *ids = golden_at(entry, "ids");
    int64_t n;
    const float *want = golden_floats(g, golden_at(entry, "values"), &n);
    double worst = 0;
    for (size_t i = 0; i < json_array_size(ids); i++)
        worst = fmax(worst, fabs((double)logits[json_integer_value(json_array_get(ids, i))] - (double)want[i]));
    return worst;
}

int parts_ids(json_t *array, int32_t *out, int cap)
{
    int n = 0;
    for (size_t i = 0; i < json_array_size(array) && n < cap; i++)
        out[n++] = (int32_t)json_integer_value(json_array_get(array, i));
    return n;
}
