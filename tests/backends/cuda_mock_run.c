/* cuda_mock_run.c: modules, launches and graphs of the stand-in. Kernels are found in the PTX that the host gives, which says
 * what parameters they have; the simulator runs them by their name. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cuda_mock_impl.h"
#include "backends/gpu/api/sim/kernels.h"

static const int archs[CUDA_MOCK_DEVICES] = {86, 75, 90};
static st_sim_group groups[CUDA_MOCK_DEVICES];
static bool group_made[CUDA_MOCK_DEVICES];

/* The bytes of an ELF file: its table of sections comes last but for the segments'. */
static size_t elf_size(const char *file)
{
    Elf64_Ehdr head;
    memcpy(&head, file, sizeof head);
    const size_t sections = head.e_shoff + (size_t)head.e_shentsize * head.e_shnum;
    const size_t segments = head.e_phoff + (size_t)head.e_phentsize * head.e_phnum;
    return sections > segments ? sections : segments;
}

/* The address in the file of what `name` stands for, a section or the variable of a symbol; NULL: there is none. */
static const char *elf_find(const object *m, const char *name, bool variable)
{
    Elf64_Ehdr head;
    Elf64_Shdr section, names, other;
    memcpy(&head, m->text, sizeof head);
    const char *const table = m->text + head.e_shoff;
    memcpy(&names, table + (size_t)head.e_shstrndx * sizeof names, sizeof names);
    for (int i = 0; i < head.e_shnum; i++) {
        memcpy(&section, table + (size_t)i * sizeof section, sizeof section);
        if (!variable && strcmp(m->text + names.sh_offset + section.sh_name, name) == 0)
            return m->text + section.sh_offset;
        if (!variable || section.sh_type != SHT_SYMTAB)
            continue;
        memcpy(&other, table + section.sh_link * sizeof other, sizeof other); /* the symbols' names */
        for (size_t s = 0; s < section.sh_size / sizeof(Elf64_Sym); s++) {
            Elf64_Sym symbol;
            memcpy(&symbol, m->text + section.sh_offset + s * sizeof symbol, sizeof symbol);
            if (strcmp(m->text + other.sh_offset + symbol.st_name, name) != 0)
                continue;
            memcpy(&other, table + symbol.st_shndx * sizeof other, sizeof other);
            return m->text + other.sh_offset + symbol.st_value;
        }
    }
    return NULL;
}

EXPORT int cuModuleLoadData(st_cu_module *module, const void *image)
{
    BEGIN(cuModuleLoadData, true)
    const char *text = image;
    const int arch = archs[mock_current()->device];
    const bool machine_code = memcmp(text, ELFMAG, SELFMAG) == 0;
    if (machine_code) {
        CHECK(arch == 90, "machine code for sm_90 on another device")
        if (!cuda_mock_state.new_driver) {
            code = NO_BINARY;
            break;
        }
    } else {
        const char *target = strstr(text, "\n.target sm_");
        CHECK(strncmp(text, ".version ", 9) == 0 && target, "cuModuleLoadData of what is no PTX")
        if (atoi(target + 12) > arch) {
            code = NO_BINARY;
            break;
        }
    }
    object *o = mock_new(MODULE, mock_current());
    o->machine_code = machine_code;
    o->size = machine_code ? elf_size(text) : strlen(text) + 1;
    o->text = malloc(o->size);
    memcpy(o->text, text, o->size);
    *module = (st_cu_module)o;
    END
}

EXPORT int cuModuleUnload(st_cu_module module)
{
    mock_lock();
    object *o = mock_check(module, MODULE, "cuModuleUnload");
    if (o) {
        mock_run_all();
        for (int i = 0; i < o->n_global; i++)
            mock_remove_block(o->global[i], 0, false);
        mock_delete(o);
    }
    mock_unlock();
    return OK;
}

/* The value of `int NAME_local_bytes` in the module's text, or 0. */
static int local_bytes_of(const object *module, const char *variable)
{
    if (module->machine_code) {
        int value = 0;
        const char *found = elf_find(module, variable, true);
        if (found)
            memcpy(&value, found, sizeof value);
        return value;
    }
    char wanted[120];
    snprintf(wanted, sizeof wanted, " %s = ", variable);
    const char *at = strstr(module->text, wanted);
    return at ? atoi(at + strlen(wanted)) : 0;
}

EXPORT int cuModuleGetGlobal_v2(st_cu_address *address, size_t *bytes, st_cu_module module, const char *name)
{
    BEGIN(cuModuleGetGlobal, true)
    object *m = mock_check(module, MODULE, call);
    CHECK(m && m->n_global < 8, "cuModuleGetGlobal")
    int *value = malloc(sizeof *value);
    *value = local_bytes_of(m, name);
    if (*value == 0) {
        free(value);
        code = NOT_FOUND;
        break;
    }
    mock_add_block((unsigned char *)value, sizeof *value, m->device, false);
    m->global[m->n_global++] = (unsigned char *)value;
    *address = (st_cu_address)(uintptr_t)value + MOCK_BASE;
    *bytes = sizeof *value;
    END
}

/* Whether the text declares the kernel with the parameters that st_gpu_kernels has: a struct of so many bytes and addresses. */
static bool declared(const object *module, const st_gpu_kernel_info *info)
{
    char wanted[120];
    const char *const text = module->text;
    if (module->machine_code) { /* its parameters are not told */
        snprintf(wanted, sizeof wanted, ".text.%s", info->name);
        return elf_find(module, wanted, false) != NULL;
    }
    snprintf(wanted, sizeof wanted, ".entry %s(", info->name);
    const char *begin = strstr(text, wanted);
    if (!begin)
        return false;
    const char *end = strchr(begin + strlen(wanted), ')');
    const char *first = strstr(begin, "_param_0[");
    int n = 0;
    for (const char *p = begin; (p = strstr(p, ".u64")) && p < end; p++)
        n++;
    return first && first < end && (size_t)atoi(first + 9) == info->param_bytes && n == info->n_args;
}

EXPORT int cuModuleGetFunction(st_cu_function *function, st_cu_module module, const char *name)
{
    BEGIN(cuModuleGetFunction, true)
    object *m = mock_check(module, MODULE, call);
    CHECK(m, "cuModuleGetFunction")
    int kernel = 0;
    while (kernel < ST_GPU_KERNEL_COUNT && strcmp(st_gpu_kernels[kernel].name, name) != 0)
        kernel++;
    CHECK(kernel < ST_GPU_KERNEL_COUNT, "there is no kernel %s", name)
    CHECK(declared(m, &st_gpu_kernels[kernel]), "the module has no kernel %s with the parameters of kernels.inc", name)
    object *f = NULL;
    char variable[100];
    snprintf(variable, sizeof variable, "%s_local_bytes", name);
    f = mock_new(FUNCTION, m->context);
    f->owner = m;
    f->kernel = kernel;
    f->local_bytes = local_bytes_of(m, variable);
    f->local_allowed = LOCAL_UNASKED;
    *function = (st_cu_function)f;
    END
}

EXPORT int cuFuncSetAttribute(st_cu_function function, int which, int value)
{
    BEGIN(cuFuncSetAttribute, true)
    object *f = mock_check(function, FUNCTION, call);
    CHECK(f && which == 8, "cuFuncSetAttribute(%d)", which)
    const int most = archs[f->device] == 75 ? 64 * 1024 : archs[f->device] == 86 ? 99 * 1024 : 227 * 1024;
    if (value > most)
        code = INVALID_VALUE;
    else
        f->local_allowed = value;
    END
}

/* Fills *c; a CUresult. */
static int make_launch(command *c, const object *f, const unsigned *grid, const unsigned *block, unsigned shared_bytes,
                       void **params)
{
    const st_gpu_kernel_info *info = &st_gpu_kernels[f->kernel];
    if ((int)block[0] != info->group || block[1] != 1 || block[2] != 1 || grid[0] < 1 || grid[1] < 1 || grid[2] < 1 ||
        grid[1] > 65535 || grid[2] > 65535) {
        mock_problem("%s: a grid of %u x %u x %u groups of %u x %u x %u", info->name, grid[0], grid[1], grid[2],
                     block[0], block[1], block[2]);
        return INVALID_VALUE;
    }
    if ((int)shared_bytes != f->local_bytes || (int)shared_bytes > f->local_allowed) {
        mock_problem("%s: %u bytes of a group's memory, %d needed, %d allowed", info->name, shared_bytes,
                     f->local_bytes, f->local_allowed);
        return INVALID_VALUE;
    }
    c->kind = LAUNCH;
    c->kernel = f->kernel;
    memcpy(c->grid, grid, sizeof c->grid);
    memcpy(c->params, params[0], info->param_bytes);
    for (int i = 0; i < info->n_args; i++)
        c->arg[i] = *(st_cu_address *)params[1 + i];
    return OK;
}

EXPORT int cuLaunchKernel(st_cu_function function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared_bytes, st_cu_stream stream, void **params, void **extra)
{
    BEGIN(cuLaunchKernel, true)
    const object *f = mock_check(function, FUNCTION, call);
    object *s = mock_check(stream, STREAM, call);
    CHECK(f && s && !extra && f->context == s->context, "cuLaunchKernel: function and stream do not belong together")
    command c = {0};
    code = make_launch(&c, f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared_bytes, params);
    if (code == OK) {
        *mock_put(s, LAUNCH) = c;
        cuda_mock_state.n_launches++;
    }
    END
}

int mock_launch(object *context, const command *c)
{
    const st_gpu_kernel_info *info = &st_gpu_kernels[c->kernel];
    const int device = context->device;
    sotto_error err = {0};
    st_sim_work work = {.kernel = st_sim_kernels[c->kernel]};
    memcpy(work.grid, c->grid, sizeof work.grid);
    memcpy(work.params, c->params, sizeof work.params);
    for (int i = 0; i < info->n_args; i++) {
        const mock_block *b = c->arg[i] ? mock_find(c->arg[i], 0, device) : NULL;
        if (c->arg[i] && !b) {
            mock_problem("%s: buffer %d is not memory of this device", info->name, i);
            return ILLEGAL_ADDRESS;
        }
        work.arg[i] = b ? (void *)(uintptr_t)(c->arg[i] - MOCK_BASE) : NULL;
        work.arg_end[i] = b ? (const char *)b->memory + b->bytes : NULL;
    }
    if (!group_made[device]) {
        if (st_sim_group_init(&groups[device], LOCAL_BYTES, &err) != SOTTO_OK)
            return NO_MEMORY;
        group_made[device] = true;
    }
    groups[device].subgroup = 32;
    groups[device].order = (st_sim_order)cuda_mock_state.order;
    if (st_sim_group_run(&groups[device], &work, &err) != SOTTO_OK) {
        mock_problem("%s", err.text);
        return LAUNCH_FAILED;
    }
    return OK;
}

/* ---- graphs ---- */

EXPORT int cuGraphCreate(st_cu_graph *graph, unsigned flags)
{
    BEGIN(cuGraphCreate, true)
    CHECK(flags == 0, "cuGraphCreate(%u)", flags)
    *graph = (st_cu_graph)mock_new(GRAPH, mock_current());
    END
}

EXPORT int cuGraphAddKernelNode(st_cu_node *node, st_cu_graph graph, const st_cu_node *before, size_t n_before,
                                const st_cu_kernel_node *params)
{
    BEGIN(cuGraphAddKernelNode, true)
    object *g = mock_check(graph, GRAPH, call);
    const object *f = mock_check(params->function, FUNCTION, call);
    CHECK(g && f && !params->extra, "cuGraphAddKernelNode")
    CHECK(n_before == 0 || (n_before == 1 && (object *)before[0] == g->last),
          "a node that follows another than the last")
    CHECK(g->n_edge == (g->n_node ? g->n_node - 1 : 0), "a node that follows nothing")
    g->n_edge += (int64_t)n_before;
    if (g->n_node == g->node_capacity) {
        g->node_capacity = g->node_capacity ? 2 * g->node_capacity : 64;
        g->node = realloc(g->node, (size_t)g->node_capacity * sizeof *g->node);
    }
    command c = {0};
    code = make_launch(&c, f, params->grid, params->block, params->shared_bytes, params->params);
    if (code == OK) {
        g->node[g->n_node++] = c;
        g->last = mock_new(NODE, g->context);
        g->last->owner = g;
        *node = (st_cu_node)g->last;
    }
    END
}

EXPORT int cuGraphAddDependencies_v2(st_cu_graph graph, const st_cu_node *from, const st_cu_node *to,
                                     const st_cu_edge *edge, size_t n)
{
    BEGIN(cuGraphAddDependencies, true)
    object *g = mock_check(graph, GRAPH, call);
    CHECK(g && n == 1 && (object *)to[0] == g->last && (object *)from[0] != g->last,
          "an edge that is not to the last node")
    const object *e = mock_check(from[0], NODE, call);
    CHECK(e && e->owner == g, "an edge from another graph")
    CHECK(edge->from_port == 1 && edge->to_port == 0 && edge->type == 1 && g->device == 2, "an edge of type %d",
          edge->type)
    g->n_edge++;
    cuda_mock_state.n_early++;
    END
}

EXPORT int cuGraphInstantiateWithFlags(st_cu_exec *exec, st_cu_graph graph, unsigned long long flags)
{
    BEGIN(cuGraphInstantiateWithFlags, true)
    const object *g = mock_check(graph, GRAPH, call);
    CHECK(g && flags == 0, "cuGraphInstantiateWithFlags(%llu)", flags)
    CHECK(g->n_edge == (g->n_node ? g->n_node - 1 : 0), "a graph with a node that follows nothing")
    object *e = mock_new(EXEC, g->context);
    e->n_node = g->n_node;
    e->node = calloc((size_t)g->n_node + 1, sizeof *e->node);
    if (g->n_node)
        memcpy(e->node, g->node, (size_t)g->n_node * sizeof *e->node);
    *exec = (st_cu_exec)e;
    END
}

EXPORT int cuGraphLaunch(st_cu_exec exec, st_cu_stream stream)
{
    BEGIN(cuGraphLaunch, true)
    const object *e = mock_check(exec, EXEC, call);
    object *s = mock_check(stream, STREAM, call);
    CHECK(e && s && e->context == s->context, "cuGraphLaunch: graph and stream do not belong together")
    for (int64_t i = 0; i < e->n_node; i++)
        *mock_put(s, LAUNCH) = e->node[i];
    cuda_mock_state.n_graph_launches++;
    END
}

static int destroy(const void *handle, mock_kind kind, const char *call)
{
    mock_lock();
    object *o = mock_check(handle, kind, call);
    if (o)
        mock_delete(o);
    mock_unlock();
    return OK;
}

EXPORT int cuGraphExecDestroy(st_cu_exec exec)
{
    return destroy(exec, EXEC, "cuGraphExecDestroy");
}

EXPORT int cuGraphDestroy(st_cu_graph graph)
{
    return destroy(graph, GRAPH, "cuGraphDestroy");
}
