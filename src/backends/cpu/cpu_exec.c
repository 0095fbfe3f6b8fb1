/* cpu_exec.c: the table of operations, and running a plan as one job of the pool. */
#include "backends/cpu/cpu_exec.h"

#include <string.h>

#include "backends/cpu/cpu_chain.h"
#include "base/alloc.h"
#include "base/status.h"
#include "base/thread.h"

static const st_cpu_op *const ops[ST_OP_COUNT] = {
    [ST_OP_LINEAR] = &st_cpu_op_linear,
    [ST_OP_MATMUL] = &st_cpu_op_matmul,
    [ST_OP_CONV_1D] = &st_cpu_op_conv_1d,
    [ST_OP_LAYER_NORM] = &st_cpu_op_layer_norm,
    [ST_OP_RMS_NORM] = &st_cpu_op_rms_norm,
    [ST_OP_SOFTMAX] = &st_cpu_op_softmax,
    [ST_OP_ATTENTION] = &st_cpu_op_attention,
    [ST_OP_CACHE_ATTENTION] = &st_cpu_op_cache_attention,
    [ST_OP_GET_ROWS] = &st_cpu_op_get_rows,
    [ST_OP_SET_ROWS] = &st_cpu_op_set_rows,
    [ST_OP_COPY] = &st_cpu_op_copy,
    [ST_OP_CONCAT] = &st_cpu_op_concat,
    [ST_OP_ADD] = &st_cpu_op_add,
    [ST_OP_MUL] = &st_cpu_op_mul,
    [ST_OP_GLU] = &st_cpu_op_glu,
    [ST_OP_SCALE] = &st_cpu_op_scale,
    [ST_OP_GELU] = &st_cpu_op_gelu,
    [ST_OP_SILU] = &st_cpu_op_silu,
    [ST_OP_RELU] = &st_cpu_op_relu,
    [ST_OP_SIGMOID] = &st_cpu_op_sigmoid,
    [ST_OP_TANH] = &st_cpu_op_tanh,
    [ST_OP_SQRT] = &st_cpu_op_sqrt,
    [ST_OP_LOG10] = &st_cpu_op_log10,
    [ST_OP_POWER] = &st_cpu_op_power,
    [ST_OP_ARGMAX] = &st_cpu_op_argmax,
    [ST_OP_TOP_K] = &st_cpu_op_top_k,
    [ST_OP_BLOCK_SUMS] = &st_cpu_op_block_sums,
    [ST_OP_ROPE] = &st_cpu_op_rope,
    [ST_OP_IM2COL] = &st_cpu_op_im2col,
    [ST_OP_CONV_2D] = &st_cpu_op_conv_2d,
};

/* What a number of the result costs, for operations whose cost it is; 0: never run alone. */
static const uint8_t number_cost[ST_OP_COUNT] = {
    [ST_OP_LAYER_NORM] = 1, [ST_OP_RMS_NORM] = 1, [ST_OP_GET_ROWS] = 1, [ST_OP_SET_ROWS] = 1, [ST_OP_COPY] = 1,
    [ST_OP_CONCAT] = 1,     [ST_OP_ADD] = 1,      [ST_OP_MUL] = 1,      [ST_OP_SCALE] = 1,    [ST_OP_SILU] = 2,
    [ST_OP_GELU] = 2,       [ST_OP_GLU] = 2,      [ST_OP_ROPE] = 4,
};

/* Up to so much is done by one thread sooner than by all in one more step: about a microsecond. */
enum { ALONE_COST = 4096 };

typedef struct step {
    int node, phase;
    int64_t units;
    bool alone;                /* by the thread that ended the step before */
    const st_cpu_chain *chain; /* NULL: the node alone */
} step;

/* With chains, or node by node, so that each can be timed. */
typedef struct step_list {
    step *step;
    int n;
} step_list;

typedef struct prepared {
    step_list fused, single;
    st_cpu_chain *chains;
    st_cpu_link *links;                  /* of all chains */
    size_t thread_floats, shared_floats; /* multiples of 1024, so that threads' parts share no cache line */
    int n_threads;
} prepared;

bool st_cpu_supports(const sotto_tensor *node)
{
    return node->op == ST_OP_NONE || (ops[node->op] != NULL && ops[node->op]->supports(node));
}

static bool runs_alone(const sotto_tensor *node, const st_cpu_need *need)
{
    /* rows written into a table are not the size of the result, which is the table */
    const sotto_tensor *sized = node->op == ST_OP_SET_ROWS ? node->src[2] : node;
    const int64_t cost = number_cost[node->op], most = cost > 0 ? ALONE_COST / cost : 0;
    return need->n_phase == 1 && cost > 0 && sotto_tensor_count(sized) <= most;
}

static size_t round_up(size_t n)
{
    return (n + 1023) & ~(size_t)1023;
}

static size_t total_bytes(const prepared *p)
{
    return (p->thread_floats * (size_t)p->n_threads + p->shared_floats) * sizeof(float);
}

static void want_scratch(prepared *p, size_t thread_floats, size_t shared_floats)
{
    if (round_up(thread_floats) > p->thread_floats)
        p->thread_floats = round_up(thread_floats);
    if (round_up(shared_floats) > p->shared_floats)
        p->shared_floats = round_up(shared_floats);
}

static void add_node(const st_cpu *cpu, prepared *p, step_list *list, const st_exec_plan *plan, int i)
{
    const sotto_tensor *node = plan->node[i];
    if (node->op == ST_OP_NONE)
        return;
    st_cpu_need need = {0};
    ops[node->op]->need(&cpu->kernels, node, &need);
    for (int phase = 0; phase < need.n_phase; phase++)
        list->step[list->n++] = (step){.node = i,
                                       .phase = phase,
                                       .units = need.units[phase],
                                       .alone = phase > 0 ? need.alone : list->n > 0 && runs_alone(node, &need)};
    want_scratch(p, need.thread_floats, need.shared_floats);
}

static void add_fused(const st_cpu *cpu, prepared *p, const st_exec_plan *plan)
{
    st_cpu_link *link = p->links;
    st_cpu_chain *chain = p->chains;
    for (int i = 0; i < plan->n_node;) {
        const int n = st_cpu_chain_find(&cpu->kernels, plan, i, link, chain);
        if (n == 0) {
            add_node(cpu, p, &p->fused, plan, i++);
            continue;
        }
        p->fused.step[p->fused.n++] = (step){.node = i, .units = chain->units, .chain = chain};
        want_scratch(p, chain->thread_floats, chain->shared_floats);
        if (chain->attention >= 0) {
            const sotto_tensor *node = plan->node[chain->attention];
            st_cpu_need need = {0};
            ops[node->op]->need(&cpu->kernels, node, &need);
            p->fused.step[p->fused.n++] = (step){
                .node = chain->attention, .phase = ST_CPU_ATTENTION_PACKED, .units = need.units[need.n_phase - 1]};
            want_scratch(p, need.thread_floats, 0);
        }
        link += chain->n;
        chain++;
        i += n;
    }
}

sotto_status st_cpu_prepare(void *state, const st_exec_plan *plan, void **out, size_t *scratch_bytes, sotto_error *err)
{
    const st_cpu *cpu = state;
    *out = NULL;
    *scratch_bytes = 0;
    prepared *p = st_calloc(1, sizeof *p);
    if (p == NULL)
        return st_fail_memory(err, sizeof *p, "the steps of a plan");
    const size_t most = (size_t)plan->n_node * ST_CPU_MAX_PHASES + 1;
    p->n_threads = st_pool_threads(cpu->pool);
    p->fused.step = st_calloc(most, sizeof *p->fused.step);
    p->single.step = st_calloc(most, sizeof *p->single.step);
    p->chains = st_calloc((size_t)plan->n_node + 1, sizeof *p->chains);
    p->links = st_calloc((size_t)plan->n_node + 1, sizeof *p->links);
    if (p->fused.step == NULL || p->single.step == NULL || p->chains == NULL || p->links == NULL) {
        st_cpu_release(state, p);
        return st_fail_memory(err, most * 2 * sizeof(step), "the steps of a plan");
    }
    for (int i = 0; i < plan->n_node; i++)
        add_node(cpu, p, &p->single, plan, i);
    add_fused(cpu, p, plan);
    for (int i = 0; i < p->single.n; i++)
        if (p->single.step[i].units > INT32_MAX) {
            const sotto_status status =
                st_fail(err, SOTTO_E_UNSUPPORTED, "%s: work in %lld pieces, expected fewer than 2^31",
                        plan->node[p->single.step[i].node]->name, (long long)p->single.step[i].units);
            st_cpu_release(state, p);
            return status;
        }
    *out = p;
    *scratch_bytes = total_bytes(p);
    return SOTTO_OK;
}

void st_cpu_release(void *state, void *prepared_plan)
{
    (void)state;
    prepared *p = prepared_plan;
    if (p == NULL)
        return;
    st_free(p->fused.step);
    st_free(p->single.step);
    st_free(p->chains);
    st_free(p->links);
    st_free(p);
}

static bool asks_to_stop(const st_exec_hooks *hooks)
{
    return hooks != NULL && hooks->abort != NULL && hooks->abort(hooks->abort_user);
}

int64_t st_cpu_take(st_cpu_run *r, int64_t most, int64_t *start)
{
    if (r->thread == 0 && asks_to_stop(r->hooks))
        atomic_store(r->stop, true);
    if (atomic_load_explicit(r->stop, memory_order_relaxed))
        return 0;
    if (r->pool != NULL)
        return st_pool_take(r->pool, r->thread, most, start);
    const int64_t n = r->end - r->next < most ? r->end - r->next : most;
    *start = r->next;
    r->next += n;
    return n;
}

/* A plan as a job. */
typedef struct walk {
    st_cpu *cpu;
    const st_exec_plan *plan;
    const prepared *p;
    const step_list *list;
    const st_exec_hooks *hooks;
    int at;        /* the step that is open */
    double before; /* when it was opened, if nodes are timed */
    _Atomic bool stop;
} walk;

static bool is_timed(const walk *w)
{
    return w->hooks != NULL && w->hooks->node_seconds != NULL;
}

static void run_step(walk *w, int thread, const step *s, bool alone)
{
    const prepared *p = w->p;
    const sotto_tensor *node = w->plan->node[s->node];
    st_cpu_run run = {.k = &w->cpu->kernels,
                      .scratch = w->cpu->scratch + p->thread_floats * (size_t)thread,
                      .shared = w->cpu->scratch + p->thread_floats * (size_t)p->n_threads,
                      .thread = thread,
                      .pool = alone ? NULL : w->cpu->pool,
                      .end = s->units,
                      .hooks = w->hooks,
                      .stop = &w->stop};
    if (s->chain != NULL)
        st_cpu_chain_run(&run, s->chain);
    else
        ops[node->op]->run(&run, node, s->phase);
}

static void run_open(void *arg, int thread)
{
    walk *w = arg;
    run_step(w, thread, &w->list->step[w->at], false);
}

/* Small steps are done on the way. When nodes are timed, all are for all threads. */
static int64_t next_step(void *arg, int thread)
{
    walk *w = arg;
    const bool timed = is_timed(w);
    if (timed) {
        const double now = st_time_now();
        if (w->at >= 0)
            w->hooks->node_seconds[w->list->step[w->at].node] += now - w->before;
        w->before = now;
    }
    for (w->at++; w->at < w->list->n; w->at++) {
        const step *s = &w->list->step[w->at];
        if (s->units > 0 && (timed || !s->alone))
            return s->units;
        if (s->units > 0)
            run_step(w, thread, s, true);
    }
    return 0;
}

sotto_status st_cpu_run_plan(void *state, const st_exec_plan *plan, void *prepared_plan, const st_exec_hooks *hooks,
                             sotto_error *err)
{
    st_cpu *cpu = state;
    const prepared *p = prepared_plan;
    if (total_bytes(p) > cpu->scratch_bytes) {
        float *larger = st_alloc_pages(total_bytes(p));
        if (larger == NULL)
            return st_fail_memory(err, total_bytes(p), "scratch of the CPU backend");
        if (cpu->scratch != NULL)
            st_free_pages(cpu->scratch, cpu->scratch_bytes);
        cpu->scratch = larger;
        cpu->scratch_bytes = total_bytes(p);
    }
    if (hooks != NULL && hooks->node_seconds != NULL)
        memset(hooks->node_seconds, 0, sizeof(double) * (size_t)plan->n_node);
    const step_list *list = hooks != NULL && hooks->node_seconds != NULL ? &p->single : &p->fused;
    if (list->n == 0)
        return SOTTO_OK;
    walk w = {.cpu = cpu, .plan = plan, .p = p, .list = list, .hooks = hooks, .at = -1};
    atomic_init(&w.stop, asks_to_stop(hooks)); /* the other threads may do it all before this one asks */
    const st_job job = {.arg = &w,
                        .next = next_step,
                        .run = run_open,
                        .enter = cpu->kernels.enter,
                        .leave = cpu->kernels.leave,
                        .stop = &w.stop};
    st_pool_run(cpu->pool, &job);
    if (atomic_load(&w.stop))
        return st_fail(err, SOTTO_E_ABORTED, "stopped by the caller");
    return SOTTO_OK;
}
