/* metal_mock_run.c: compiles the kernels' text as C++ with the header of metal_shim/run, and runs command buffers: not when
 * they are committed but when somebody waits for them, so that a host that does not wait is found out. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/metal_mock_impl.h"

extern char **environ;

/* ---- compiling ---- */

static uint64_t hash_of(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

static char *read_text(const char *path, size_t most)
{
    FILE *f = fopen(path, "rb");
    char *text = calloc(most + 1, 1);
    if (f) {
        const size_t n = fread(text, 1, most, f);
        text[n] = 0;
        fclose(f);
    }
    return text;
}

static bool write_source(const char *path, const char *source)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    fprintf(f, "#include <metal_stdlib>\nextern \"C\" {\nconst struct metal_words *metal_words;\n%s\n}\n", source);
    return fclose(f) == 0;
}

/* The compiler's messages go to `log`. */
static bool run_compiler(const char *source, const char *library, const char *log)
{
    char *const words_of[] = {METAL_MOCK_COMPILER,
                              "-std=c++17",
                              "-O2",
                              "-w",
                              "-g1",
                              "-fPIC",
                              "-shared",
                              "-fno-strict-aliasing",
                              "-ffp-contract=off",
                              "-fno-exceptions",
                              "-x",
                              "c++",
                              "-I" METAL_MOCK_SHIM,
                              "-o",
                              (char *)library,
                              (char *)source,
                              NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, log, 0x241 /* O_WRONLY | O_CREAT | O_TRUNC */, 0644);
    pid_t child;
    int status = 1;
    const bool started = posix_spawnp(&child, words_of[0], &actions, NULL, words_of, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return started && waitpid(child, &status, 0) == child && status == 0;
}

static int word_lid(void)
{
    return st_sim_self()->lid;
}

static void word_barrier(const char *file, int line)
{
    st_sim_barrier(st_sim_self(), file, line);
}

static float word_sum(float x, const char *file, int line)
{
    return st_sim_exchange(st_sim_self(), ST_SIM_SG_SUM, x, 0, file, line);
}

static float word_max(float x, const char *file, int line)
{
    return st_sim_exchange(st_sim_self(), ST_SIM_SG_MAX, x, 0, file, line);
}

static float word_xor(float x, int mask, const char *file, int line)
{
    return st_sim_exchange(st_sim_self(), ST_SIM_SG_XOR, x, mask, file, line);
}

static void *word_local(unsigned long bytes, const char *file, int line)
{
    return st_sim_local(st_sim_self(), bytes, file, line);
}

/* As in metal_shim/run/metal_stdlib. */
static const struct {
    int (*lid)(void);
    void (*barrier)(const char *file, int line);
    float (*sum)(float x, const char *file, int line);
    float (*max)(float x, const char *file, int line);
    float (*shuffle_xor)(float x, int mask, const char *file, int line);
    void *(*local)(unsigned long bytes, const char *file, int line);
} words = {word_lid, word_barrier, word_sum, word_max, word_xor, word_local};

/* Kept by the hash of text and header, for the next run of the tests. */
void *mock_compile(const char *source, char *report, size_t size)
{
    char *const header = read_text(METAL_MOCK_SHIM "/metal_stdlib", 1 << 16);
    const uint64_t hash = hash_of(hash_of(14695981039346656037u, source), header);
    free(header);
    char library[600], source_path[700], made[700], log[700];
    mkdir(METAL_MOCK_CACHE, 0755);
    snprintf(library, sizeof library, "%s/%016llx.so", METAL_MOCK_CACHE, (unsigned long long)hash);
    snprintf(source_path, sizeof source_path, "%s.%d.cc", library, (int)getpid());
    snprintf(made, sizeof made, "%s.%d.tmp", library, (int)getpid());
    snprintf(log, sizeof log, "%s.%d.log", library, (int)getpid());
    if (access(library, R_OK) != 0) {
        const bool good = write_source(source_path, source) && run_compiler(source_path, made, log);
        char *const said = read_text(log, size - 1);
        snprintf(report, size, "%s", said);
        free(said);
        unlink(log);
        unlink(source_path);
        if (!good || rename(made, library) != 0)
            return NULL;
    }
    void *const code = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!code) {
        snprintf(report, size, "%s", dlerror());
        return NULL;
    }
    const void **slot = dlsym(code, "metal_words");
    *slot = &words;
    return code;
}

/* ---- kernels ---- */

typedef struct grid_index {
    uint32_t x, y, z;
} grid_index;

static grid_index group_of(const st_sim_item *me)
{
    return (grid_index){(uint32_t)me->group->at[0], (uint32_t)me->group->at[1], (uint32_t)me->group->at[2]};
}

/* A kernel of n buffers, called as its C++ function is. */
typedef void entry1(const void *, void *, grid_index, uint32_t);
typedef void entry2(const void *, void *, void *, grid_index, uint32_t);
typedef void entry3(const void *, void *, void *, void *, grid_index, uint32_t);
typedef void entry4(const void *, void *, void *, void *, void *, grid_index, uint32_t);
typedef void entry5(const void *, void *, void *, void *, void *, void *, grid_index, uint32_t);
typedef void entry6(const void *, void *, void *, void *, void *, void *, void *, grid_index, uint32_t);
typedef void entry7(const void *, void *, void *, void *, void *, void *, void *, void *, grid_index, uint32_t);
typedef void entry8(const void *, void *, void *, void *, void *, void *, void *, void *, void *, grid_index, uint32_t);
#define RUN(n, ...)                                                                              \
    static void run##n(const void *p, void *const *a, st_sim_item *me)                           \
    {                                                                                            \
        const mock_kernel *const k = (const mock_kernel *)(const void *)me->group->work->kernel; \
        ((entry##n *)k->entry)(p, __VA_ARGS__, group_of(me), (uint32_t)me->lid);                 \
    }
RUN(1, a[0])
RUN(2, a[0], a[1])
RUN(3, a[0], a[1], a[2])
RUN(4, a[0], a[1], a[2], a[3])
RUN(5, a[0], a[1], a[2], a[3], a[4])
RUN(6, a[0], a[1], a[2], a[3], a[4], a[5])
RUN(7, a[0], a[1], a[2], a[3], a[4], a[5], a[6])
RUN(8, a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7])

bool mock_kernel_init(mock_kernel *k, void *code, const char *name)
{
    static st_sim_run_fn *const run[] = {NULL, run1, run2, run3, run4, run5, run6, run7, run8};
    for (int i = 0; i < ST_GPU_KERNEL_COUNT; i++) {
        const st_gpu_kernel_info *info = &st_gpu_kernels[i];
        if (strcmp(info->name, name) != 0)
            continue;
        *(void **)&k->entry = dlsym(code, name);
        k->sim.name = info->name;
        k->sim.file = info->module;
        k->sim.run = run[info->n_args];
        k->sim.group = info->group;
        k->sim.n_args = info->n_args;
        k->sim.param_bytes = info->param_bytes;
        return k->entry != NULL;
    }
    return false;
}

/* ---- command buffers ---- */

static object *pending[4096]; /* in the order of their commits */
static int n_pending;

void mock_commit(object *commands)
{
    if (n_pending == (int)(sizeof pending / sizeof pending[0])) {
        problem("%d command buffers on their way", n_pending);
        return;
    }
    pending[n_pending++] = hold(commands);
    commands->progress = COMMITTED;
    metal_mock_state.n_commands++;
}

static bool run_dispatch(const command *c, sotto_error *err)
{
    static st_sim_group group;
    if (!group.local && st_sim_group_init(&group, LOCAL_BYTES, err) != SOTTO_OK)
        return false;
    group.subgroup = LANES;
    group.order = (st_sim_order)metal_mock_state.order;
    st_sim_work work = {.kernel = &c->pipeline->kernel.sim};
    memcpy(work.grid, c->grid, sizeof work.grid);
    memcpy(work.params, c->params, sizeof work.params);
    for (int i = 0; i < work.kernel->n_args; i++) {
        work.arg[i] = c->buffer[i + 1]->bytes + c->offset[i + 1];
        work.arg_end[i] = c->buffer[i + 1]->bytes + c->buffer[i + 1]->size;
    }
    metal_mock_state.n_dispatches++;
    return st_sim_group_run(&group, &work, err) == SOTTO_OK;
}

static object *first_of(const object *queue)
{
    for (int i = 0; i < n_pending; i++)
        if (!queue || pending[i]->owner == queue)
            return pending[i];
    return NULL;
}

static void run_first(object *queue);

/* Lets other queues run until the event has happened. */
static void await(const command *c)
{
    object *const event = c->buffer[0];
    for (int i = 0; i < n_pending && event->value < c->value; i++) {
        object *const queue = pending[i]->owner;
        if (queue->busy)
            continue;
        run_first(queue);
        i = -1;
    }
    if (event->value < c->value)
        problem("a queue waits for value %llu of an event that nobody will give it", (unsigned long long)c->value);
}

static bool run_command(const command *c, sotto_error *err)
{
    switch (c->kind) {
    case DISPATCH:
        return run_dispatch(c, err);
    case COPY:
        memmove(c->buffer[0]->bytes + c->offset[0], c->buffer[1]->bytes + c->offset[1], c->bytes);
        return true;
    case FILL:
        memset(c->buffer[0]->bytes + c->offset[0], c->fill, c->bytes);
        return true;
    case SIGNAL:
        c->buffer[0]->value = c->value;
        return true;
    case WAIT:
        await(c);
        return true;
    }
    return false;
}

static void run_first(object *queue)
{
    object *const commands = first_of(queue);
    sotto_error err = {.text = "injected failure"};
    queue->busy = true;
    bool good = !commands->fails;
    for (int i = 0; i < commands->n_list; i++) /* events are signalled by failed command buffers as well */
        if (good || commands->list[i].kind == SIGNAL)
            good = run_command(&commands->list[i], &err) && good;
    queue->busy = false;
    commands->progress = good ? DONE : FAILED;
    commands->end = (double)++metal_mock_state.n_run;
    if (!good && !commands->text) {
        commands->text = strdup(err.text);
        commands->code = commands->fails ? metal_mock_state.fail_code : 1;
    }
    for (int i = 0; i < n_pending; i++)
        if (pending[i] == commands) {
            memmove(pending + i, pending + i + 1, (size_t)(n_pending - i - 1) * sizeof pending[0]);
            n_pending--;
            break;
        }
    drop(commands);
}

void mock_run_until(object *commands)
{
    if (commands->progress == FILLING) {
        problem("waiting for a command buffer that was not committed");
        return;
    }
    while (commands->progress == COMMITTED)
        run_first(commands->owner);
}
