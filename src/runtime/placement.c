/* placement.c: which devices, and which layers on which of them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "runtime/runtime_impl.h"

/* ---- names to devices ---- */

static sotto_status unknown(const char *id, size_t n_id, sotto_error *err)
{
    char known[256] = "", reason[192] = "";
    const int n = sotto_device_count();
    for (int i = 0; i < n; i++) {
        sotto_device_info info;
        const size_t at = strlen(known);
        if (sotto_device_get(i, &info, NULL) == SOTTO_OK)
            snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", info.id);
    }
    st_registry_why_none(id, n_id, reason, sizeof reason);
    return st_fail(err, SOTTO_E_NOT_FOUND, "device \"%.*s\": %s%sexpected auto or one of %s", (int)n_id, id, reason,
                   *reason ? "; " : "", known);
}

static sotto_status find(const char *id, size_t n_id, st_device_pick *out, sotto_error *err)
{
    if (st_registry_named(id, n_id, &out->impl, &out->index))
        return SOTTO_OK;
    return unknown(id, n_id, err);
}

/* The device that takes what others lack: the CPU, or where that was left out of the build, the reference. */
static st_device_pick last_resort(void)
{
    st_device_pick pick = {st_registry_last(), 0};
    (void)st_registry_named("cpu", 3, &pick.impl, &pick.index);
    return pick;
}

static bool same(const st_device_pick *a, const st_device_pick *b)
{
    return a->impl == b->impl && a->index == b->index;
}

sotto_status st_registry_pick(const char *list, st_device_pick **out, int *n, sotto_error *err)
{
    size_t most = 2;
    for (const char *p = list; *p; p++)
        most += *p == ',';
    st_device_pick *picks = st_calloc(most, sizeof *picks);
    *out = NULL;
    *n = 0;
    if (!picks)
        return st_fail_memory(err, most * sizeof *picks, "a list of devices");
    const st_device_pick host = last_resort();
    sotto_status status = SOTTO_OK;
    int count = 0;
    for (const char *p = list; status == SOTTO_OK; p++) {
        const size_t length = strcspn(p, ",");
        status = find(p, length, &picks[count], err);
        for (int i = 0; i < count && status == SOTTO_OK; i++)
            if (same(&picks[i], &picks[count]))
                status = st_fail(err, SOTTO_E_ARGUMENT, "device \"%.*s\" is named twice", (int)length, p);
        count++;
        p += length;
        if (!*p)
            break;
    }
    if (status != SOTTO_OK) {
        st_free(picks);
        return status;
    }
    const bool alone = count == 1 && (same(&picks[0], &host) || picks[0].impl->kind == SOTTO_DEVICE_REFERENCE);
    if (!alone) { /* the last resort comes last, named or not */
        int kept = 0;
        for (int i = 0; i < count; i++)
            if (!same(&picks[i], &host))
                picks[kept++] = picks[i];
        picks[kept++] = host;
        count = kept;
    }
    *out = picks;
    *n = count;
    return SOTTO_OK;
}

static int by_rank(const void *a, const void *b)
{
    const st_ranked_device *x = a, *y = b;
    return x->rank != y->rank ? (x->rank < y->rank) - (x->rank > y->rank)
                              : (x->order > y->order) - (x->order < y->order);
}

sotto_status st_backend_open_auto(const sotto_backend_options *options, sotto_backend **out, sotto_error *err)
{
    const int n = st_registry_ranked(NULL, 0);
    const st_device_pick host = last_resort();
    st_ranked_device *list = st_calloc((size_t)n + 1, sizeof *list);
    if (!list)
        return st_fail_memory(err, (uint64_t)n * sizeof *list, "a list of devices");
    const int found = st_registry_ranked(list, n), count = found < n ? found : n;
    qsort(list, (size_t)count, sizeof *list, by_rank);
    sotto_status status = SOTTO_E_NOT_FOUND;
    for (int i = 0; i < count && status != SOTTO_OK; i++) {
        const st_device_pick picks[2] = {list[i].pick, host};
        if (same(&picks[0], &host))
            break;
        sotto_error why = {0};
        status = st_backend_open_picks(picks, 2, options, out, &why);
        if (status == SOTTO_OK)
            st_log(&options->logger, SOTTO_LOG_DEBUG, "device %s is used", (*out)->device[0].id);
        else if (status == SOTTO_E_ARGUMENT || status == SOTTO_E_ABORTED) { /* the options, not the device */
            st_free(list);
            return st_fail(err, status, "%s", why.text);
        } else
            st_log(&options->logger, SOTTO_LOG_WARNING, "a device is passed over: %s", why.text);
    }
    st_free(list);
    if (status != SOTTO_OK)
        status = st_backend_open_picks(&host, 1, options, out, err);
    if (status == SOTTO_OK)
        (*out)->is_auto = true;
    return status;
}

/* ---- layers to devices ---- */

static int n_accelerators(const sotto_backend *b)
{
    return b->n_device - 1;
}

static void idle(const sotto_backend *b, const char *option, const char *why)
{
    st_log(&b->logger, SOTTO_LOG_WARNING, "%s has no effect: %s", option, why);
}

static sotto_status named(const sotto_backend *b, const char *option, const char *id, int *out, sotto_error *err)
{
    char known[256] = "";
    for (int i = 0; i < b->n_device; i++) {
        const size_t at = strlen(known);
        const size_t n = strlen(id);
        if (strcmp(b->device[i].id, id) == 0 ||
            (strncmp(b->device[i].id, id, n) == 0 && strcmp(b->device[i].id + n, ":0") == 0)) {
            *out = i;
            return SOTTO_OK;
        }
        snprintf(known + at, sizeof known - at, "%s%s", at ? ", " : "", b->device[i].id);
    }
    return st_fail(err, SOTTO_E_ARGUMENT, "%s \"%s\": expected one of the devices in use, %s", option, id, known);
}

/* Given shares, "3,1"; else the free memory that devices tell, all the same when one does not. */
static sotto_status set_shares(sotto_backend *b, const char *text, sotto_error *err)
{
    const int n = n_accelerators(b);
    double sum = 0;
    bool known = true;
    for (int i = 0; i < n; i++) {
        double share;
        if (text) {
            char *end;
            share = strtod(text, &end);
            const bool last = i == n - 1;
            if (end == text || !(share >= 0) || share > 1e9 || *end != (last ? '\0' : ','))
                return st_fail(
                    err, SOTTO_E_ARGUMENT,
                    "device_split: expected %d numbers of 0 or more with commas between, one for each device", n);
            text = last ? end : end + 1;
        } else {
            sotto_device_info info = {0};
            ST_TRY(sotto_backend_device(b, i, &info, err));
            share = (double)info.memory_free;
            known = known && info.memory_free > 0;
        }
        b->device[i].share = share;
        sum += share;
    }
    if (text && n > 0 && !(sum > 0))
        return st_fail(err, SOTTO_E_ARGUMENT, "device_split: all shares are 0");
    for (int i = 0; i < n; i++)
        b->device[i].share = known && sum > 0 ? b->device[i].share / sum : 1.0 / n;
    return SOTTO_OK;
}

/* Numbers of 0 or more with commas between, however many. */
static sotto_status check_shares(const char *text, sotto_error *err)
{
    for (char *end; *text; text = *end ? end + 1 : end) {
        const double share = strtod(text, &end);
        if (end == text || !(share >= 0) || share > 1e9 || (*end && *end != ',') || (*end && !end[1]))
            return st_fail(err, SOTTO_E_ARGUMENT,
                           "device_split: \"%s\", expected numbers of 0 or more with commas between", text);
    }
    return SOTTO_OK;
}

static void warn_idle(const sotto_backend *b, const sotto_backend_options *o)
{
    const int n = n_accelerators(b);
    if (n == 0) {
        static const char why[] = "no accelerator is in use";
        if (o->gpu_layers != 0)
            idle(b, "gpu_layers", why);
        if (o->main_device)
            idle(b, "main_device", why);
        if (o->kv_device)
            idle(b, "kv_device", why);
        if (o->no_offload)
            idle(b, "no_offload", why);
    }
    if (n < 2 && o->device_split)
        idle(b, "device_split", "there are not two accelerators");
    if (n < 2 && o->split == SOTTO_SPLIT_ROW)
        idle(b, "split row", "there are not two accelerators");
}

sotto_status st_backend_set_placement(sotto_backend *b, const sotto_backend_options *o, sotto_error *err)
{
    const int n = n_accelerators(b);
    if (o->split != SOTTO_SPLIT_LAYER && o->split != SOTTO_SPLIT_ROW)
        return st_fail(err, SOTTO_E_ARGUMENT, "split: %d, expected layer or row", (int)o->split);
    b->gpu_layers = o->gpu_layers;
    b->split = n > 1 ? o->split : SOTTO_SPLIT_LAYER;
    b->no_offload = o->no_offload;
    b->main = o->gpu_layers < 0 ? b->n_device - 1 : 0;
    if (o->main_device)
        ST_TRY(named(b, "main_device", o->main_device, &b->main, err));
    if (o->kv_device)
        ST_TRY(named(b, "kv_device", o->kv_device, &b->kv, err));
    if (n < 2 && o->device_split)
        ST_TRY(check_shares(o->device_split, err));
    ST_TRY(set_shares(b, n > 1 ? o->device_split : NULL, err));
    warn_idle(b, o);
    return SOTTO_OK;
}

int sotto_backend_layer_device(const sotto_backend *b, int layer, int n_layers)
{
    const int n = b ? n_accelerators(b) : 0;
    if (n == 0)
        return 0;
    const int on = b->gpu_layers == 0 || b->gpu_layers > n_layers ? n_layers : b->gpu_layers < 0 ? 0 : b->gpu_layers;
    if (layer >= on)
        return b->n_device - 1;
    if (b->split == SOTTO_SPLIT_ROW && b->main < n)
        return b->main;
    double upto = 0;
    for (int i = 0; i < n; i++) {
        upto += b->device[i].share;
        if (b->device[i].share > 0 && (layer + 0.5) / on <= upto + 1e-9)
            return i;
    }
    return n - 1;
}

int sotto_backend_cache_device(const sotto_backend *b, int layer, int n_layers)
{
    return b && b->kv >= 0 ? b->kv : sotto_backend_layer_device(b, layer, n_layers);
}

bool sotto_backend_is_auto(const sotto_backend *b)
{
    return b && b->is_auto;
}

void sotto_backend_set_layers(sotto_backend *b, int gpu_layers)
{
    if (!b)
        return;
    b->gpu_layers = gpu_layers;
    if (gpu_layers < 0) {
        b->main = b->n_device - 1;
        b->no_offload = true;
    }
}

void sotto_backend_set_cache_device(sotto_backend *b, int device)
{
    if (b && device >= -1 && device < b->n_device)
        b->kv = device;
}

int sotto_backend_main_device(const sotto_backend *b)
{
    return b ? b->main : 0;
}
