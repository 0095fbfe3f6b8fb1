#include "common/trace.h"

#include <stdio.h>
#include <string.h>

#include "common/terminal.h"

void cli_trace_node(void *user, const sotto_trace_node *node)
{
    cli_progress_clear(user);
    char shape[96] = "[";
    int d = SOTTO_MAX_DIMS - 1;
    while (d > 0 && node->dim[d] == 1)
        d--;
    for (; d >= 0; d--) {
        const size_t n = strlen(shape);
        snprintf(shape + n, sizeof shape - n, "%lld%s", (long long)node->dim[d], d ? ", " : "]");
    }
    fprintf(stderr, "%-16s %-18s %-5s %-10s %9.3f ms  %s\n", node->op, shape, sotto_dtype_name(node->dtype),
            node->backend, node->seconds * 1e3, node->name);
}

void cli_trace_split(void *user, const sotto_trace_split *s)
{
    cli_progress_clear(user);
    fprintf(stderr, "%-8s split %-3d %-12s %4d nodes %9.3f ms, %3d copies of %9llu bytes %9.3f ms\n", s->graph,
            s->index, s->device, s->n_nodes, s->compute_seconds * 1e3, s->n_copies, (unsigned long long)s->copied_bytes,
            s->copy_seconds * 1e3);
}
