/* registry.c: the compiled-in backends and their devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "runtime/runtime_impl.h"

#define BACKEND(symbol) extern const st_backend_impl symbol;
#include "runtime/backends.inc"
#undef BACKEND

static const st_backend_impl *const backends[] = {
#define BACKEND(symbol) &symbol,
#include "runtime/backends.inc"
#undef BACKEND
};
enum { N_BACKENDS = sizeof backends / sizeof *backends };

const st_backend_impl *st_registry_find(int index, int *own)
{
    for (int b = 0; index >= 0 && b < N_BACKENDS; b++) {
        if (backends[b]->api_version != ST_BACKEND_API_VERSION)
            continue;
        const int n = backends[b]->device_count();
        if (index < n) {
            *own = index;
            return backends[b];
        }
        index -= n;
    }
    return NULL;
}

int st_registry_ranked(st_ranked_device *out, int most)
{
    int count = 0;
    for (int b = 0; b < N_BACKENDS; b++) {
        if (backends[b]->api_version != ST_BACKEND_API_VERSION || (backends[b]->no_gpu && backends[b]->no_gpu()))
            continue;
        const int n = backends[b]->device_count();
        for (int i = 0; i < n; i++) {
            sotto_device_info info = {0};
            if (backends[b]->device_info(i, &info, NULL) != SOTTO_OK || info.rank <= 0)
                continue;
            if (count < most)
                out[count] = (st_ranked_device){{backends[b], i}, info.rank, count};
            count++;
        }
    }
    return count;
}

const st_backend_impl *st_registry_last(void)
{
    return backends[N_BACKENDS - 1];
}

/* Whether an id is of the backend of this name: "cuda" and "cuda:0" are of the one named cuda. */
static bool is_called(const char *name, const char *id, size_t n_id)
{
    const size_t n = strlen(name);
    return n <= n_id && memcmp(name, id, n) == 0 && (n == n_id || id[n] == ':');
}

/* Length of an id without ":0", which the first of its kind need not bear. */
static size_t without_zero(const char *id, size_t n)
{
    return n > 2 && memcmp(id + n - 2, ":0", 2) == 0 ? n - 2 : n;
}

bool st_registry_named(const char *id, size_t n_id, const st_backend_impl **impl, int *own)
{
    sotto_device_info info;
    const size_t n_wanted = without_zero(id, n_id);
    for (int b = 0; b < N_BACKENDS; b++) {
        if (backends[b]->api_version != ST_BACKEND_API_VERSION || !is_called(backends[b]->name, id, n_id))
            continue;
        const int n = backends[b]->device_count();
        for (int i = 0; i < n; i++) {
            memset(&info, 0, sizeof info);
            if (backends[b]->device_info(i, &info, NULL) != SOTTO_OK ||
                without_zero(info.id, strlen(info.id)) != n_wanted || memcmp(info.id, id, n_wanted) != 0)
                continue;
            *impl = backends[b];
            *own = i;
            return true;
        }
    }
    return false;
}

void st_registry_why_none(const char *id, size_t n_id, char *out, size_t size)
{
    static const struct {
        const char *name, *note;
    } optional[] = {{"cuda", "SOTTO_CUDA"},
                    {"metal", "SOTTO_METAL, for macOS"},
                    {"opencl", "SOTTO_OPENCL"},
                    {"cpu", "SOTTO_CPU"},
                    {"sim", "SOTTO_SIM"}};
    out[0] = 0;
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++)
        if (is_called(optional[i].name, id, n_id))
            snprintf(out, size, "not built in (option of CMake: %s)", optional[i].note);
    for (int b = 0; b < N_BACKENDS; b++) {
        if (!is_called(backends[b]->name, id, n_id))
            continue;
        out[0] = 0;
        const size_t n = strlen(backends[b]->name);
        sotto_device_info info;
        sotto_error err = {0};
        if (backends[b]->why_none && backends[b]->device_count() == 0)
            backends[b]->why_none(out, size);
        if (!out[0] && backends[b]->kind == SOTTO_DEVICE_GPU &&
            backends[b]->device_info(n < n_id ? atoi(id + n + 1) : 0, &info, &err) != SOTTO_OK)
            snprintf(out, size, "%s", err.text);
    }
}

int sotto_device_count(void)
{
    int n = 0;
    for (int b = 0; b < N_BACKENDS; b++)
        if (backends[b]->api_version == ST_BACKEND_API_VERSION)
            n += backends[b]->device_count();
    return n;
}

sotto_status sotto_device_get(int index, sotto_device_info *out, sotto_error *err)
{
    if (!out)
        return st_fail(err, SOTTO_E_ARGUMENT, "sotto_device_get: out is NULL");
    memset(out, 0, sizeof *out);
    int own;
    const st_backend_impl *impl = st_registry_find(index, &own);
    if (!impl)
        return st_fail(err, SOTTO_E_NOT_FOUND, "device %d: expected 0 to %d", index, sotto_device_count() - 1);
    ST_TRY(impl->device_info(own, out, err));
    out->api_version = impl->api_version;
    return SOTTO_OK;
}
