#include "models/common/sampler_penalty.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"

sotto_status st_recent_create(st_recent *r, int32_t n_vocab, int32_t last, sotto_error *err)
{
    *r = (st_recent){.last = last};
    if (last == 0)
        return SOTTO_OK;
    r->slot = st_calloc((size_t)n_vocab, sizeof *r->slot);
    r->ring = last > 0 ? st_alloc((size_t)last, sizeof *r->ring) : NULL;
    if (!r->slot || (last > 0 && !r->ring)) {
        st_recent_free(r);
        return st_fail_memory(err, ((uint64_t)n_vocab + (uint64_t)(last > 0 ? last : 0)) * sizeof *r->slot,
                              "the penalties of a sampler");
    }
    return SOTTO_OK;
}

sotto_status st_recent_copy(st_recent *dst, const st_recent *src, int32_t n_vocab, sotto_error *err)
{
    ST_TRY(st_recent_create(dst, n_vocab, src->last, err));
    if (!st_grow(&dst->counted, &dst->capacity, src->n, sizeof *dst->counted)) {
        st_recent_free(dst);
        return st_fail_memory(err, (uint64_t)src->n * sizeof *dst->counted, "the penalties of a sampler");
    }
    for (int64_t i = 0; i < src->n; i++) {
        dst->counted[i] = src->counted[i];
        dst->slot[src->counted[i].token] = (int32_t)i + 1;
    }
    dst->n = src->n;
    if (src->n_ring > 0)
        memcpy(dst->ring, src->ring, (size_t)src->n_ring * sizeof *dst->ring);
    dst->n_ring = src->n_ring;
    dst->at = src->at;
    return SOTTO_OK;
}

void st_recent_free(st_recent *r)
{
    st_free(r->ring);
    st_free(r->slot);
    st_free(r->counted);
    *r = (st_recent){0};
}

void st_recent_clear(st_recent *r)
{
    for (int64_t i = 0; i < r->n; i++)
        r->slot[r->counted[i].token] = 0;
    r->n = 0;
    r->n_ring = r->at = 0;
}

static void drop(st_recent *r, int32_t token)
{
    const int32_t i = r->slot[token] - 1;
    if (--r->counted[i].count > 0)
        return;
    r->counted[i] = r->counted[--r->n];
    r->slot[r->counted[i].token] = i + 1;
    r->slot[token] = 0;
}

sotto_status st_recent_add(st_recent *r, int32_t token, sotto_error *err)
{
    if (r->last == 0)
        return SOTTO_OK;
    if (!st_grow(&r->counted, &r->capacity, r->n + 1, sizeof *r->counted))
        return st_fail_memory(err, ((uint64_t)r->n + 1) * sizeof *r->counted, "the penalties of a sampler");
    if (r->slot[token] > 0 && r->counted[r->slot[token] - 1].count < INT32_MAX)
        r->counted[r->slot[token] - 1].count++;
    else if (r->slot[token] == 0) {
        r->counted[r->n++] = (st_counted){token, 1};
        r->slot[token] = (int32_t)r->n;
    }
    if (r->last < 0)
        return SOTTO_OK;
    if (r->n_ring < r->last) {
        r->ring[r->n_ring++] = token;
        return SOTTO_OK;
    }
    const int32_t oldest = r->ring[r->at];
    r->ring[r->at] = token;
    r->at = r->at + 1 < r->last ? r->at + 1 : 0;
    drop(r, oldest);
    return SOTTO_OK;
}

void st_recent_penalise(const st_recent *r, const sotto_sampler_options *o, float *logits)
{
    for (int64_t i = 0; i < r->n; i++) {
        float *x = &logits[r->counted[i].token];
        *x = *x > 0.0f ? *x / o->repeat_penalty : *x * o->repeat_penalty;
        *x -= (float)r->counted[i].count * o->frequency_penalty + o->presence_penalty;
    }
}
