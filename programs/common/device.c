#include "common/device.h"

#include <stdio.h>
#include <string.h>

#include "common/outfile.h"

/* "cuda", "cuda:12"; there is one cpu, and no auto:0 */
static bool is_known(const char *name, size_t n)
{
    static const struct {
        const char *kind;
        size_t most; /* digits behind it */
        bool one;
    } kinds[] = {{"auto", 0, true},   {"cpu", 1, true},     {"reference", 1, true}, {"cuda", 4, false},
                 {"metal", 4, false}, {"opencl", 4, false}, {"sim", 4, false}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const size_t n_kind = strlen(kinds[i].kind);
        if (n < n_kind || memcmp(kinds[i].kind, name, n_kind) != 0)
            continue;
        const char *number = name + n_kind + 1;
        const size_t n_number = n > n_kind ? n - n_kind - 1 : 0;
        if (n == n_kind)
            return true;
        return name[n_kind] == ':' && n_number > 0 && n_number <= kinds[i].most &&
               strspn(number, "0123456789") >= n_number && (*number != '0' || n_number == 1) &&
               (*number == '0' || !kinds[i].one);
    }
    return false;
}

bool cli_device_known(const char *list, sotto_error *err)
{
    for (const char *p = list;; p++) {
        const size_t n = strcspn(p, ",");
        if (!is_known(p, n))
            return cli_fail(
                err, SOTTO_E_ARGUMENT,
                "--device \"%.*s\": expected auto or one of cpu, cuda:0, metal:0, opencl:0, sim:0, reference; "
                "sotto devices lists those of this machine",
                (int)(n < 60 ? n : 60), p);
        p += n;
        if (!*p)
            return true;
    }
}

void cli_device_fill(const cli_device_args *a, sotto_backend_options *o)
{
    o->device = a->device;
    o->main_device = a->main_device;
    o->gpu_layers = a->gpu_layers < 0 ? SOTTO_LAYERS_ALL : a->gpu_layers == 0 ? SOTTO_LAYERS_NONE : (int)a->gpu_layers;
    o->device_split = a->device_split;
    o->split = strcmp(a->split, "row") == 0 ? SOTTO_SPLIT_ROW : SOTTO_SPLIT_LAYER;
    o->kv_device = a->kv_device;
    o->no_offload = a->no_offload;
}

sotto_status cli_print_memory(const sotto_whisper_session *session, sotto_error *err)
{
    static const char row[] = "%-12s %10.1f %10.1f %10.1f %10.1f %10.1f\n";
    sotto_whisper_memory m, all = {0};
    sotto_status status;
    printf("%-12s %10s %10s %10s %10s %10s\n", "MB", "weights", "caches", "compute", "total", "in file");
    for (int d = 0; (status = sotto_whisper_get_memory(session, d, &m, err)) == SOTTO_OK; d++) {
        printf(row, m.device, (double)m.weights / 1e6, (double)m.caches / 1e6, (double)m.compute / 1e6,
               (double)(m.weights + m.caches + m.compute) / 1e6, (double)m.in_place / 1e6);
        all.weights += m.weights;
        all.caches += m.caches;
        all.compute += m.compute;
        all.in_place += m.in_place;
    }
    printf(row, "all", (double)all.weights / 1e6, (double)all.caches / 1e6, (double)all.compute / 1e6,
           (double)(all.weights + all.caches + all.compute) / 1e6, (double)all.in_place / 1e6);
    return status == SOTTO_E_NOT_FOUND ? SOTTO_OK : status;
}
