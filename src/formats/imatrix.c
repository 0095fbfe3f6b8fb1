/* imatrix.c: importance matrices, in memory and as GGUF files: for each tensor NAME two, NAME.in_sum2 (sums of squares, one a
 * column) and NAME.counts (rows that were summed). */
#include <math.h>
#include <string.h>

#include "formats/gguf.h"

static const char sums_ending[] = ".in_sum2", counts_ending[] = ".counts";

struct sotto_imatrix {
    st_arena *arena;
    sotto_imatrix_entry *list; /* sorted by name; squares in the arena */
    int64_t n, cap;
    const char *dataset;
    int64_t chunks, chunk_size;
};

sotto_status sotto_imatrix_create(sotto_imatrix **out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_imatrix_create: out is NULL");
    *out = NULL;
    sotto_imatrix *m = st_calloc(1, sizeof *m);
    if (!m || !(m->arena = st_arena_create())) {
        st_free(m);
        return st_fail_memory(err, sizeof *m, "an importance matrix");
    }
    m->dataset = "";
    *out = m;
    return SOTTO_OK;
}

void sotto_imatrix_free(sotto_imatrix *m)
{
    if (!m)
        return;
    st_arena_free(m->arena);
    st_free(m->list);
    st_free(m);
}

/* Where the name is, or would be. */
static int64_t place_of(const sotto_imatrix *m, const char *name)
{
    int64_t low = 0, high = m->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strcmp(m->list[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_at(const sotto_imatrix *m, int64_t at, const char *name)
{
    return at < m->n && strcmp(m->list[at].name, name) == 0;
}

static sotto_status insert(sotto_imatrix *m, int64_t at, const char *name, int64_t n, sotto_error *err)
{
    const size_t bytes = (size_t)n * sizeof(float);
    if ((uint64_t)n > SIZE_MAX / 2 / sizeof(float))
        return st_fail(err, SOTTO_E_ARGUMENT, "%.100s: %lld columns are too many", name, (long long)n);
    sotto_imatrix_entry e = {st_arena_strdup(m->arena, name, strlen(name)), n, 0, st_arena_alloc(m->arena, bytes)};
    if (!e.name || !e.squares || !st_grow(&m->list, &m->cap, m->n + 1, sizeof *m->list))
        return st_fail_memory(err, bytes, "an importance matrix");
    memmove(m->list + at + 1, m->list + at, (size_t)(m->n - at) * sizeof *m->list);
    m->list[at] = e;
    m->n++;
    return SOTTO_OK;
}

sotto_status sotto_imatrix_add(sotto_imatrix *m, const char *name, int64_t n, const float *squares, int64_t count,
                               sotto_error *err)
{
    if (!m || !name || !squares || !*name || n < 1 || count < 0)
        return st_fail(err, SOTTO_E_ARGUMENT,
                       "sotto_imatrix_add: expected a name, at least one column and a number of rows of 0 or more");
    for (int64_t i = 0; i < n; i++)
        if (!(squares[i] >= 0 && squares[i] <= 3e38f))
            return st_fail(err, SOTTO_E_FORMAT, "%.100s: the square of column %lld is %g, expected a number from 0 on",
                           name, (long long)i, (double)squares[i]);
    const int64_t at = place_of(m, name);
    if (!is_at(m, at, name))
        ST_TRY(insert(m, at, name, n, err));
    sotto_imatrix_entry *e = &m->list[at];
    if (e->n != n)
        return st_fail(err, SOTTO_E_ARGUMENT, "%.100s: %lld columns, expected %lld as before", name, (long long)n,
                       (long long)e->n);
    if (count > INT64_MAX - e->rows)
        return st_fail(err, SOTTO_E_ARGUMENT, "%.100s: too many rows", name);
    float *sums = (float *)e->squares;
    for (int64_t i = 0; i < n; i++)
        sums[i] = fminf(sums[i] + squares[i], 3e38f);
    e->rows += count;
    return SOTTO_OK;
}

sotto_status sotto_imatrix_describe(sotto_imatrix *m, const char *dataset, int64_t chunks, int64_t chunk_size,
                                    sotto_error *err)
{
    if (!m || !dataset || chunks < 0 || chunks > UINT32_MAX || chunk_size < 0 || chunk_size > UINT32_MAX)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_imatrix_describe: an argument is NULL or no 32-bit number");
    const char *copy = st_arena_strdup(m->arena, dataset, strlen(dataset));
    if (!copy)
        return st_fail_memory(err, strlen(dataset), "a name");
    m->dataset = copy;
    m->chunks = chunks;
    m->chunk_size = chunk_size;
    return SOTTO_OK;
}

const char *st_imatrix_dataset(const sotto_imatrix *m)
{
    return m->dataset;
}

int64_t st_imatrix_chunks(const sotto_imatrix *m)
{
    return m->chunks;
}

int64_t sotto_imatrix_count(const sotto_imatrix *m)
{
    return m ? m->n : 0;
}

sotto_status sotto_imatrix_get(const sotto_imatrix *m, int64_t index, sotto_imatrix_entry *out)
{
    if (!m || !out || index < 0 || index >= m->n)
        return SOTTO_E_ARGUMENT;
    *out = m->list[index];
    return SOTTO_OK;
}

sotto_status sotto_imatrix_find(const sotto_imatrix *m, const char *name, sotto_imatrix_entry *out)
{
    if (!m || !name || !out)
        return SOTTO_E_ARGUMENT;
    const int64_t at = place_of(m, name);
    if (!is_at(m, at, name))
        return SOTTO_E_NOT_FOUND;
    *out = m->list[at];
    return SOTTO_OK;
}

/* ---- files ---- */

static void put_info(st_out *o, const char *name, const char *ending, int64_t n, uint64_t *offset)
{
    const size_t length = strlen(name), more = strlen(ending);
    st_out_number(o, length + more, 8);
    st_out_bytes(o, name, length);
    st_out_bytes(o, ending, more);
    st_out_number(o, 2, 4);
    st_out_number(o, (uint64_t)n, 8);
    st_out_number(o, 1, 8);
    st_out_number(o, SOTTO_F32, 4);
    st_out_number(o, *offset, 8);
    *offset += (uint64_t)n * sizeof(float);
    *offset += st_gguf_padding(*offset);
}

static void write_matrix(const sotto_imatrix *m, st_out *o)
{
    enum { KEYS = 4 };
    uint64_t offset = 0;
    st_out_bytes(o, "GGUF", 4);
    st_out_number(o, 3, 4);
    st_out_number(o, (uint64_t)m->n * 2, 8);
    st_out_number(o, KEYS, 8);
    st_gguf_put_key(o, "general.type", ST_GGUF_STRING);
    st_gguf_put_text(o, "imatrix", 7);
    st_gguf_put_array(o, "imatrix.datasets", ST_GGUF_STRING, 1);
    st_gguf_put_text(o, m->dataset, strlen(m->dataset));
    st_gguf_put_u32(o, "imatrix.chunk_count", (uint32_t)m->chunks);
    st_gguf_put_u32(o, "imatrix.chunk_size", (uint32_t)m->chunk_size);
    for (int64_t i = 0; i < m->n; i++) {
        put_info(o, m->list[i].name, sums_ending, m->list[i].n, &offset);
        put_info(o, m->list[i].name, counts_ending, 1, &offset);
    }
    st_out_zeros(o, st_gguf_padding(st_file_writer_at(o->writer)));
    for (int64_t i = 0; i < m->n; i++) {
        const size_t bytes = (size_t)m->list[i].n * sizeof(float);
        const float rows = (float)m->list[i].rows;
        st_out_bytes(o, m->list[i].squares, bytes);
        st_out_zeros(o, st_gguf_padding(bytes));
        st_out_bytes(o, &rows, sizeof rows);
        st_out_zeros(o, st_gguf_padding(sizeof rows));
    }
}

sotto_status sotto_imatrix_save(const sotto_imatrix *m, const char *path, sotto_error *err)
{
    if (!m || !path)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_imatrix_save: %s is NULL", m ? "path" : "the matrix");
    st_out o = {NULL, SOTTO_OK, err};
    ST_TRY(st_file_writer_open(path, &o.writer, err));
    write_matrix(m, &o);
    if (o.status == SOTTO_OK)
        return st_file_writer_commit(o.writer, err);
    st_file_writer_discard(o.writer);
    return o.status;
}

/* True when the tensor holds the sums of another, whose name is then in `name`. */
static bool sums_of(const char *tensor, char *name, size_t size)
{
    const size_t n = strlen(tensor), ending = strlen(sums_ending);
    if (n <= ending || strcmp(tensor + n - ending, sums_ending) != 0 || n - ending + strlen(counts_ending) >= size)
        return false;
    memcpy(name, tensor, n - ending);
    name[n - ending] = 0;
    return true;
}

static sotto_status read_entry(sotto_imatrix *m, const sotto_model_file *f, const sotto_model_tensor *sums, char *name,
                               sotto_error *err)
{
    sotto_model_tensor counts;
    const size_t n = strlen(name);
    strcpy(name + n, counts_ending);
    ST_TRY(sotto_model_tensor_need(f, name, &counts, err));
    if (sums->dtype != SOTTO_F32 || counts.dtype != SOTTO_F32)
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: sums of type %s and counts of type %s, expected f32", name,
                       sotto_model_dtype_name(sums->dtype), sotto_model_dtype_name(counts.dtype));
    if (counts.bytes != sizeof(float))
        return st_fail(err, SOTTO_E_UNSUPPORTED, "%.100s: of %zu experts, only matrices of one are supported", name,
                       counts.bytes / sizeof(float));
    name[n] = 0;
    float rows;
    memcpy(&rows, counts.data, sizeof rows);
    if (!(rows >= 0 && rows < 9e18f) || sums->bytes != (size_t)sums->dim[0] * sizeof(float))
        return st_fail(err, SOTTO_E_FORMAT, "%.100s: %g rows of %lld columns, expected one row of sums", name,
                       (double)rows, (long long)sums->dim[0]);
    float *squares = st_alloc((size_t)sums->dim[0], sizeof *squares); /* in the file they need not be aligned */
    if (!squares)
        return st_fail_memory(err, sums->bytes, "an importance matrix");
    memcpy(squares, sums->data, sums->bytes);
    const sotto_status status = sotto_imatrix_add(m, name, sums->dim[0], squares, (int64_t)rows, err);
    st_free(squares);
    return status;
}

sotto_status st_imatrix_read(sotto_imatrix *m, const sotto_model_file *f, sotto_error *err)
{
    char name[1100]; /* no tensor's is longer than 1024 */
    const char *type, *dataset;
    size_t n;
    int64_t chunks = 0, chunk_size = 0;
    if (sotto_meta_string(f, "general.type", &type, &n, NULL) != SOTTO_OK || n != 7 || memcmp(type, "imatrix", 7) != 0)
        return st_fail(err, SOTTO_E_FORMAT, "general.type: expected \"imatrix\"");
    for (int64_t i = 0; i < f->n_tensors; i++)
        if (sums_of(f->tensors[i].name, name, sizeof name))
            ST_TRY(read_entry(m, f, &f->tensors[i], name, err));
    if (m->n == 0)
        return st_fail(err, SOTTO_E_FORMAT, "has no tensors NAME%s", sums_ending);
    if (sotto_meta_int(f, "imatrix.chunk_count", &chunks, NULL) == SOTTO_OK && chunks >= 0)
        m->chunks = chunks;
    if (sotto_meta_int(f, "imatrix.chunk_size", &chunk_size, NULL) == SOTTO_OK && chunk_size >= 0)
        m->chunk_size = chunk_size;
    if (sotto_meta_string_at(f, "imatrix.datasets", 0, &dataset, &n, NULL) == SOTTO_OK) {
        m->dataset = st_arena_strdup(m->arena, dataset, n);
        if (!m->dataset)
            return st_fail_memory(err, n, "a name");
    }
    return SOTTO_OK;
}

sotto_status sotto_imatrix_load(const char *path, sotto_imatrix **out, sotto_error *err)
{
    if (!path || !out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_imatrix_load: %s is NULL", out ? "path" : "out");
    *out = NULL;
    sotto_model_file *f;
    ST_TRY(sotto_model_file_open(path, &f, err));
    sotto_imatrix *m = NULL;
    sotto_status status = sotto_imatrix_create(&m, err);
    if (status == SOTTO_OK)
        status = st_imatrix_read(m, f, err);
    sotto_model_file_free(f);
    if (status != SOTTO_OK) {
        sotto_imatrix_free(m);
        return st_fail_context(err, status, "%s", path);
    }
    *out = m;
    return SOTTO_OK;
}
