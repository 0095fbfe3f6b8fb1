/* state.c: a sequence with its keys and values in a file. Little-endian:
 *
 *     "SOTTOSEQ"
 *     u32 version
 *     u32 layers, width of keys and values, type of keys, type of values, rotation beyond the original context (0 or 1)
 *     u64 fingerprint of the model
 *     u64 tokens
 *     i32 [tokens]
 *     for each layer: rows of keys [tokens], rows of values [tokens], as they lie in the cache
 *     u32 crc32 of all before it
 *
 * Whether the file is as long as its numbers say and whole is known before anything is done with it. */
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/checked.h"
#include "base/file.h"
#include "base/status.h"
#include "models/llama/session_impl.h"

static const char magic[8] = {'S', 'O', 'T', 'T', 'O', 'S', 'E', 'Q'};

enum { VERSION = 1, HEADER_SIZE = 48, CRC_SIZE = 4, MOST_ROWS = 1 << 10 };

typedef struct header {
    uint32_t version, n_layer, width, type_k, type_v, stretched;
    uint64_t fingerprint, n_tokens;
} header;

static header header_of(const sotto_llama_session *s, uint64_t n_tokens)
{
    const st_llama_hparams *h = &s->model->h;
    return (header){.version = VERSION,
                    .n_layer = (uint32_t)h->n_layer,
                    .width = (uint32_t)(h->n_head_kv * h->d_head),
                    .type_k = (uint32_t)s->o.cache_k,
                    .type_v = (uint32_t)s->o.cache_v,
                    .stretched = h->scaling == ST_ROPE_LONGROPE && s->caches.stretched,
                    .fingerprint = s->model->fingerprint,
                    .n_tokens = n_tokens};
}

static size_t row_bytes(const sotto_llama_session *s, sotto_dtype type)
{
    return sotto_dtype_row_bytes(type, (int64_t)s->model->h.n_head_kv * s->model->h.d_head);
}

/* Cells of positions [i, ...) that follow on in the cache; at most MOST_ROWS and up to position n. */
static int32_t run_of_cells(const int32_t *list, int32_t i, int32_t n)
{
    int32_t length = 1;
    while (i + length < n && length < MOST_ROWS && list[i + length] == list[i] + length)
        length++;
    return length;
}

/* ---- saving ---- */

typedef struct sink {
    st_file_writer *file;
    uLong crc;
} sink;

static sotto_status put(sink *to, const void *data, size_t n, sotto_error *err)
{
    to->crc = crc32_z(to->crc, data, n);
    return st_file_writer_write(to->file, data, n, err);
}

static sotto_status put_number(sink *to, uint64_t v, int bytes, sotto_error *err)
{
    uint8_t b[8];
    for (int i = 0; i < bytes; i++)
        b[i] = (uint8_t)(v >> 8 * i);
    return put(to, b, (size_t)bytes, err);
}

static sotto_status put_header(sink *to, const header *h, sotto_error *err)
{
    const uint32_t numbers[] = {h->version, h->n_layer, h->width, h->type_k, h->type_v, h->stretched};
    ST_TRY(put(to, magic, sizeof magic, err));
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        ST_TRY(put_number(to, numbers[i], 4, err));
    ST_TRY(put_number(to, h->fingerprint, 8, err));
    return put_number(to, h->n_tokens, 8, err);
}

static sotto_status put_rows(sotto_llama_session *s, int32_t seq, sotto_plan *plan, const sotto_tensor *cache,
                             size_t row, uint8_t *buffer, sink *to, sotto_error *err)
{
    const int32_t *list = s->cells.list + (size_t)seq * (size_t)s->o.n_ctx, n = s->cells.length[seq];
    for (int32_t i = 0; i < n;) {
        const int32_t run = run_of_cells(list, i, n);
        ST_TRY(sotto_plan_get(plan, cache, (size_t)list[i] * row, buffer, (size_t)run * row, err));
        ST_TRY(put(to, buffer, (size_t)run * row, err));
        i += run;
    }
    return SOTTO_OK;
}

static sotto_status put_all(sotto_llama_session *s, int32_t seq, uint8_t *buffer, sink *to, sotto_error *err)
{
    const int32_t n = s->cells.length[seq], *tokens = st_llama_tokens(s, seq);
    const header h = header_of(s, (uint64_t)n);
    st_llama_plan *p; /* any plan of the session reads its caches */
    ST_TRY(st_llama_plan_for(s, 1, 1, &p, err));
    ST_TRY(put_header(to, &h, err));
    for (int32_t i = 0; i < n; i++)
        ST_TRY(put_number(to, (uint32_t)tokens[i], 4, err));
    for (int i = 0; i < s->model->h.n_layer; i++) {
        ST_TRY(put_rows(s, seq, p->plan, s->caches.k[i], row_bytes(s, s->o.cache_k), buffer, to, err));
        ST_TRY(put_rows(s, seq, p->plan, s->caches.v[i], row_bytes(s, s->o.cache_v), buffer, to, err));
    }
    return put_number(to, (uint32_t)to->crc, CRC_SIZE, err);
}

static sotto_status check_call(const sotto_llama_session *s, int32_t seq, const char *path, const char *call,
                               sotto_error *err)
{
    ST_TRY(st_llama_check_seq(s, seq, call, err));
    if (!path)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: path is NULL", call);
    if (s->model->measure_only)
        return st_fail(err, SOTTO_E_ARGUMENT, "%s: the model was opened only to measure it", call);
    return SOTTO_OK;
}

sotto_status sotto_llama_state_save(sotto_llama_session *session, int32_t seq, const char *path, sotto_error *err)
{
    ST_TRY(check_call(session, seq, path, "sotto_llama_state_save", err));
    const size_t k = row_bytes(session, session->o.cache_k), v = row_bytes(session, session->o.cache_v);
    uint8_t *buffer = st_alloc(MOST_ROWS, k > v ? k : v);
    if (!buffer)
        return st_fail_memory(err, MOST_ROWS * (uint64_t)(k > v ? k : v), "rows of a state");
    sink to = {.crc = crc32(0, NULL, 0)};
    sotto_status status = st_file_writer_open(path, &to.file, err);
    if (status == SOTTO_OK) {
        status = put_all(session, seq, buffer, &to, err);
        if (status == SOTTO_OK)
            status = st_file_writer_commit(to.file, err);
        else
            st_file_writer_discard(to.file);
    }
    st_free(buffer);
    return status;
}

/* ---- loading ---- */

static header read_header(st_bytes *b)
{
    header h = {.version = st_bytes_u32(b)};
    h.n_layer = st_bytes_u32(b);
    h.width = st_bytes_u32(b);
    h.type_k = st_bytes_u32(b);
    h.type_v = st_bytes_u32(b);
    h.stretched = st_bytes_u32(b);
    h.fingerprint = st_bytes_u64(b);
    h.n_tokens = st_bytes_u64(b);
    return h;
}

static const char *type_name(uint32_t type)
{
    const char *name = sotto_dtype_name((sotto_dtype)type);
    return name ? name : "an unknown type";
}

static sotto_status check_header(const sotto_llama_session *s, const header *h, sotto_error *err)
{
    const header mine = header_of(s, h->n_tokens);
    if (h->version != VERSION)
        return st_fail(err, SOTTO_E_FORMAT, "a state of version %u, expected %d", (unsigned)h->version, (int)VERSION);
    if (h->fingerprint != mine.fingerprint || h->n_layer != mine.n_layer || h->width != mine.width)
        return st_fail(err, SOTTO_E_FORMAT,
                       "a state of another model: %u layers of %u, mark %016llx, expected %u of %u, %016llx",
                       (unsigned)h->n_layer, (unsigned)h->width, (unsigned long long)h->fingerprint,
                       (unsigned)mine.n_layer, (unsigned)mine.width, (unsigned long long)mine.fingerprint);
    if (h->type_k != mine.type_k || h->type_v != mine.type_v)
        return st_fail(err, SOTTO_E_FORMAT, "a state with keys of %s and values of %s, expected %s and %s",
                       type_name(h->type_k), type_name(h->type_v), type_name(mine.type_k), type_name(mine.type_v));
    if (h->stretched != mine.stretched)
        return st_fail(err, SOTTO_E_FORMAT, "a state of a %s context, whose keys are rotated in another way",
                       h->stretched ? "longer" : "shorter");
    return SOTTO_OK;
}

/* The size that follows from the header; false when it is more than any file has. */
static bool size_of(const sotto_llama_session *s, const header *h, size_t *out)
{
    size_t row = row_bytes(s, s->o.cache_k), more = row_bytes(s, s->o.cache_v), all;
    if (!st_add_size(row, more, &row) || !st_mul_size(row, h->n_layer, &row) ||
        !st_add_size(row, sizeof(int32_t), &row) || h->n_tokens > SIZE_MAX ||
        !st_mul_size(row, (size_t)h->n_tokens, &all))
        return false;
    return st_add_size(all, HEADER_SIZE + CRC_SIZE, out);
}

static sotto_status take_rows(sotto_llama_session *s, int32_t seq, sotto_plan *plan, sotto_tensor *cache, size_t row,
                              st_bytes *b, sotto_error *err)
{
    const int32_t *list = s->cells.list + (size_t)seq * (size_t)s->o.n_ctx, n = s->cells.length[seq];
    for (int32_t i = 0; i < n;) {
        const int32_t run = run_of_cells(list, i, n);
        const void *rows = st_bytes_take(b, (size_t)run * row);
        if (!rows)
            return st_fail(err, SOTTO_E_INTERNAL, "a state that ends early");
        ST_TRY(sotto_plan_set(plan, cache, (size_t)list[i] * row, rows, (size_t)run * row, err));
        i += run;
    }
    return SOTTO_OK;
}

static sotto_status take_tokens(sotto_llama_session *s, int32_t seq, int32_t n, st_bytes *b, sotto_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t token = st_bytes_i32(b);
        if (token < 0 || token >= s->model->h.n_vocab)
            return st_fail(err, SOTTO_E_FORMAT, "token %d is %d, expected 0 to %d", (int)i, (int)token,
                           (int)s->model->h.n_vocab - 1);
        if (st_cells_put(&s->cells, seq, i) < 0)
            return st_fail(err, SOTTO_E_INTERNAL, "no cell for position %d", (int)i);
        st_llama_tokens(s, seq)[i] = token;
    }
    return SOTTO_OK;
}

sotto_status st_llama_state_take(sotto_llama_session *s, int32_t seq, const void *data, size_t size, sotto_error *err)
{
    st_bytes b = st_bytes_over(data, size);
    const void *head = st_bytes_take(&b, sizeof magic);
    if (!head || memcmp(head, magic, sizeof magic) != 0)
        return st_fail(err, SOTTO_E_FORMAT, "no state of a sequence: it does not begin with \"SOTTOSEQ\"");
    const header h = read_header(&b);
    if (b.failed)
        return st_fail(err, SOTTO_E_FORMAT, "a state of %zu bytes, expected at least %d", size, HEADER_SIZE + CRC_SIZE);
    ST_TRY(check_header(s, &h, err));
    size_t want;
    if (!size_of(s, &h, &want) || want != size)
        return st_fail(err, SOTTO_E_FORMAT, "a state of %zu bytes, which are not those of its %llu tokens", size,
                       (unsigned long long)h.n_tokens);
    st_bytes end = st_bytes_over(data, size);
    st_bytes_seek(&end, size - CRC_SIZE);
    const uint32_t kept = st_bytes_u32(&end), found = (uint32_t)crc32_z(0, data, size - CRC_SIZE);
    if (kept != found)
        return st_fail(err, SOTTO_E_FORMAT, "a damaged state: its checksum is %08x, expected %08x", (unsigned)found,
                       (unsigned)kept);
    if (h.n_tokens > (uint64_t)s->cells.n_unused)
        return st_fail(err, SOTTO_E_FULL,
                       "context full: the state has %llu tokens, the context holds %d, of which %d are free",
                       (unsigned long long)h.n_tokens, s->o.n_ctx, s->cells.n_unused);
    st_llama_plan *p;
    ST_TRY(st_llama_plan_for(s, 1, 1, &p, err));
    ST_TRY(take_tokens(s, seq, (int32_t)h.n_tokens, &b, err));
    for (int i = 0; i < s->model->h.n_layer; i++) {
        ST_TRY(take_rows(s, seq, p->plan, s->caches.k[i], row_bytes(s, s->o.cache_k), &b, err));
        ST_TRY(take_rows(s, seq, p->plan, s->caches.v[i], row_bytes(s, s->o.cache_v), &b, err));
    }
    return SOTTO_OK;
}

sotto_status sotto_llama_state_load(sotto_llama_session *session, int32_t seq, const char *path, sotto_error *err)
{
    ST_TRY(check_call(session, seq, path, "sotto_llama_state_load", err));
    st_cells_truncate(&session->cells, seq, 0);
    st_file_map map;
    ST_TRY(st_file_map_open(path, &map, err));
    const sotto_status status = st_llama_state_take(session, seq, map.data, map.size, err);
    st_file_map_close(&map);
    if (status == SOTTO_OK)
        return SOTTO_OK;
    st_cells_truncate(&session->cells, seq, 0);
    return st_fail_context(err, status, "%s", path);
}
