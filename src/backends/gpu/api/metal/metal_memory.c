/* metal_memory.c: buffers and copies. Where host and GPU have one memory, buffers are shared and an idle queue lets the
 * host copy by itself; otherwise they are private and reached through temporary buffers. */
#include <string.h>

#include "backends/gpu/api/metal/metal.h"
#include "base/alloc.h"
#include "base/status.h"

enum {
    MODE_SHARED = 0,
    MODE_PRIVATE = 2 << 4,
    WORD = 4, /* blits want offsets and lengths in whole words */
    STAGE_BYTES = 16 << 20,
    MAX_STAGED = 64 << 20
};

static sotto_status make_memory(st_metal *m, mtl_id buffer, size_t bytes, bool shared, void **memory, sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    if (!buffer)
        return st_fail(err, SOTTO_E_MEMORY, "%s: no room for a buffer of %zu bytes", m->id, bytes);
    st_metal_memory *made = st_calloc(1, sizeof *made);
    if (!made) {
        mtl_release(o, buffer);
        return st_fail_memory(err, sizeof *made, "a buffer");
    }
    made->gpu = st_metal_gpu_retain(m->gpu);
    made->buffer = buffer;
    made->bytes = bytes;
    made->host = shared ? mtl_contents(o, buffer) : NULL;
    *memory = made;
    return SOTTO_OK;
}

static sotto_status alloc(st_metal *m, size_t bytes, void **memory, sotto_error *err)
{
    const bool shared = m->unified && !m->options.private_memory;
    const size_t rounded = (bytes + 15) / 16 * 16;
    if (rounded < bytes || rounded > m->max_buffer)
        return st_fail(err, SOTTO_E_MEMORY, "%s: a buffer of %zu bytes, and it takes at most %zu", m->id, bytes,
                       m->max_buffer);
    const mtl_id buffer = mtl_new_buffer(&m->gpu->objc, m->gpu->device, rounded, shared ? MODE_SHARED : MODE_PRIVATE);
    return make_memory(m, buffer, bytes, shared, memory, err);
}

sotto_status st_metal_alloc(void *device, size_t bytes, void **memory, sotto_error *err)
{
    st_metal *m = device;
    *memory = NULL;
    ST_METAL_IN_POOL(&m->gpu->objc, alloc(m, bytes, memory, err));
}

static sotto_status wrap(st_metal *m, void *host, size_t bytes, void **memory, sotto_error *err)
{
    if (!m->unified || bytes == 0 || bytes > m->max_buffer || (uintptr_t)host % ST_METAL_PAGE || bytes % ST_METAL_PAGE)
        return st_fail(err, SOTTO_E_UNSUPPORTED,
                       "%s: only whole pages of %d bytes, at most %zu bytes, can be its memory", m->id, ST_METAL_PAGE,
                       m->max_buffer);
    const mtl_id buffer = mtl_new_buffer_over(&m->gpu->objc, m->gpu->device, host, bytes, MODE_SHARED, NULL);
    return make_memory(m, buffer, bytes, true, memory, err);
}

sotto_status st_metal_wrap(void *device, void *host, size_t bytes, void **memory, sotto_error *err)
{
    st_metal *m = device;
    *memory = NULL;
    ST_METAL_IN_POOL(&m->gpu->objc, wrap(m, host, bytes, memory, err));
}

void st_metal_free(void *memory)
{
    st_metal_memory *own = memory;
    if (!own)
        return;
    const st_objc *o = &own->gpu->objc;
    void *const pool = o->pool_push();
    mtl_release(o, own->buffer); /* command buffers on their way hold it themselves */
    o->pool_pop(pool);
    st_metal_gpu_release(own->gpu);
    st_free(own);
}

void *st_metal_map(void *memory)
{
    return ((st_metal_memory *)memory)->host;
}

static sotto_status check_range(const st_metal *m, const st_metal_memory *own, size_t offset, size_t bytes,
                                sotto_error *err)
{
    if (offset <= own->bytes && bytes <= own->bytes - offset)
        return SOTTO_OK;
    return st_fail(err, SOTTO_E_INTERNAL, "%s: bytes %zu to %zu of a buffer of %zu", m->id, offset, offset + bytes,
                   own->bytes);
}

static bool idle(const st_metal *m)
{
    return !m->current && m->n_sent == 0;
}

static sotto_status blit(st_metal *m, mtl_id to, size_t to_offset, mtl_id from, size_t from_offset, size_t bytes,
                         sotto_error *err)
{
    ST_TRY(st_metal_encode(m, ST_METAL_BLIT, err));
    mtl_copy(&m->gpu->objc, m->encoder, from, from_offset, to, to_offset, bytes);
    st_metal_end(m);
    return SOTTO_OK;
}

/* Whole words only, through a temporary buffer; waits. */
static sotto_status fetch(st_metal *m, const st_metal_memory *own, size_t offset, void *out, size_t bytes,
                          sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const size_t first = offset / WORD * WORD, last = (offset + bytes + WORD - 1) / WORD * WORD;
    const mtl_id stage = mtl_new_buffer(o, m->gpu->device, last - first, MODE_SHARED);
    if (!stage)
        return st_fail(err, SOTTO_E_MEMORY, "%s: no room for %zu bytes to read into", m->id, last - first);
    sotto_status status = blit(m, stage, 0, own->buffer, first, last - first, err);
    if (status == SOTTO_OK)
        status = st_metal_finish(m, err);
    if (status == SOTTO_OK)
        memcpy(out, (const char *)mtl_contents(o, stage) + (offset - first), bytes);
    mtl_release(o, stage);
    return status;
}

static sotto_status read_memory(st_metal *m, const st_metal_memory *own, size_t offset, void *out, size_t bytes,
                                sotto_error *err)
{
    ST_TRY(check_range(m, own, offset, bytes, err));
    if (own->host) {
        ST_TRY(st_metal_finish(m, err));
        memcpy(out, (const char *)own->host + offset, bytes);
        return SOTTO_OK;
    }
    for (size_t at = 0; at < bytes; at += STAGE_BYTES) {
        const size_t n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        ST_TRY(fetch(m, own, offset + at, (char *)out + at, n, err));
    }
    return SOTTO_OK;
}

sotto_status st_metal_read(void *device, void *memory, size_t offset, void *out, size_t bytes, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, read_memory(m, memory, offset, out, bytes, err));
}

/* The words at both ends keep the bytes of theirs that are not written. */
static sotto_status stage_edges(st_metal *m, const st_metal_memory *own, size_t first, size_t last, char *stage,
                                sotto_error *err)
{
    ST_TRY(fetch(m, own, first, stage, WORD, err));
    return last - first > WORD ? fetch(m, own, last - WORD, stage + (last - first - WORD), WORD, err) : SOTTO_OK;
}

static sotto_status write_staged(st_metal *m, const st_metal_memory *own, size_t offset, const void *data, size_t bytes,
                                 sotto_error *err)
{
    const st_objc *o = &m->gpu->objc;
    const size_t first = offset / WORD * WORD, last = (offset + bytes + WORD - 1) / WORD * WORD;
    const bool whole = first == offset && last == offset + bytes;
    const mtl_id stage = whole ? mtl_new_buffer_of(o, m->gpu->device, data, bytes, MODE_SHARED)
                               : mtl_new_buffer(o, m->gpu->device, last - first, MODE_SHARED);
    if (!stage)
        return st_fail(err, SOTTO_E_MEMORY, "%s: no room for %zu bytes to write from", m->id, bytes);
    sotto_status status = SOTTO_OK;
    if (!whole) {
        char *const bytes_of = mtl_contents(o, stage);
        status = stage_edges(m, own, first, last, bytes_of, err);
        if (status == SOTTO_OK)
            memcpy(bytes_of + (offset - first), data, bytes);
    }
    if (status == SOTTO_OK)
        status = blit(m, own->buffer, first, stage, 0, last - first, err);
    mtl_release(o, stage);
    m->staged += last - first;
    if (status == SOTTO_OK && m->staged > MAX_STAGED)
        status = st_metal_finish(m, err);
    return status;
}

static sotto_status write_memory(st_metal *m, const st_metal_memory *own, size_t offset, const void *data, size_t bytes,
                                 sotto_error *err)
{
    ST_TRY(check_range(m, own, offset, bytes, err));
    if (own->host && idle(m)) {
        memcpy((char *)own->host + offset, data, bytes);
        return SOTTO_OK;
    }
    for (size_t at = 0; at < bytes; at += STAGE_BYTES) {
        const size_t n = bytes - at < STAGE_BYTES ? bytes - at : STAGE_BYTES;
        ST_TRY(write_staged(m, own, offset + at, (const char *)data + at, n, err));
    }
    return SOTTO_OK;
}

sotto_status st_metal_write(void *device, void *memory, size_t offset, const void *data, size_t bytes, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, write_memory(m, memory, offset, data, bytes, err));
}

static sotto_status copy_memory(st_metal *m, const st_metal_memory *to, size_t to_offset, const st_metal_memory *from,
                                size_t from_offset, size_t bytes, sotto_error *err)
{
    ST_TRY(check_range(m, to, to_offset, bytes, err));
    ST_TRY(check_range(m, from, from_offset, bytes, err));
    if (to->gpu->device != from->gpu->device || to->gpu->device != m->gpu->device)
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%s: no copies from or to another GPU", m->id);
    if (bytes == 0)
        return SOTTO_OK;
    if (to_offset % WORD == 0 && from_offset % WORD == 0 && bytes % WORD == 0)
        return blit(m, to->buffer, to_offset, from->buffer, from_offset, bytes, err);
    void *through = st_alloc(bytes, 1);
    if (!through)
        return st_fail_memory(err, bytes, "a copy of odd bytes");
    sotto_status status = read_memory(m, from, from_offset, through, bytes, err);
    if (status == SOTTO_OK)
        status = write_memory(m, to, to_offset, through, bytes, err);
    st_free(through);
    return status;
}

sotto_status st_metal_copy(void *device, void *to, size_t to_offset, void *from, size_t from_offset, size_t bytes,
                           sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, copy_memory(m, to, to_offset, from, from_offset, bytes, err));
}

static sotto_status fill_memory(st_metal *m, const st_metal_memory *own, size_t offset, size_t bytes, sotto_error *err)
{
    ST_TRY(check_range(m, own, offset, bytes, err));
    if (own->host && idle(m)) {
        memset((char *)own->host + offset, 0, bytes);
        return SOTTO_OK;
    }
    static const char zero[WORD];
    const size_t first = (offset + WORD - 1) / WORD * WORD, last = (offset + bytes) / WORD * WORD;
    if (first >= last) {
        for (size_t i = 0; i < bytes; i++)
            ST_TRY(write_memory(m, own, offset + i, zero, 1, err));
        return SOTTO_OK;
    }
    if (first > offset)
        ST_TRY(write_memory(m, own, offset, zero, first - offset, err));
    if (offset + bytes > last)
        ST_TRY(write_memory(m, own, last, zero, offset + bytes - last, err));
    ST_TRY(st_metal_encode(m, ST_METAL_BLIT, err));
    mtl_fill(&m->gpu->objc, m->encoder, own->buffer, (mtl_range){first, last - first}, 0);
    st_metal_end(m);
    return SOTTO_OK;
}

sotto_status st_metal_fill_zero(void *device, void *memory, size_t offset, size_t bytes, sotto_error *err)
{
    st_metal *m = device;
    ST_METAL_IN_POOL(&m->gpu->objc, fill_memory(m, memory, offset, bytes, err));
}
