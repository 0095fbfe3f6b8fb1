/* group.c: runs the items of a group as fibers. Items run until they wait for others or leave. A subgroup goes from one of
 * its words to the next alone, so nothing but a barrier makes it see what other subgroups wrote. */
#include "backends/gpu/api/sim/group.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "backends/gpu/api/sim/sanitizers.h"
#include "base/alloc.h"
#include "base/status.h"

/* ---- turns ---- */

/* Every loop over items, subgroups or groups has a turn number of its own, which makes "shuffled" differ. */
static uint32_t next_turn(st_sim_group *g)
{
    return g->turn++;
}

/* The i-th of n. A prime above n, taken i times modulo n, comes to every number once. */
static uint32_t nth(const st_sim_group *g, uint32_t turn, uint32_t i, uint32_t n)
{
    static const uint32_t prime[] = {4294967291u, 4294967279u, 4294967231u, 4294967197u, 4294967189u, 4294967161u};
    if (g->order == ST_SIM_FORWARD)
        return i;
    if (g->order == ST_SIM_REVERSE)
        return n - 1 - i;
    return (uint32_t)(((uint64_t)i * prime[turn % 6] + turn * 7ull) % n);
}

static st_sim_item *item_of(const st_sim_group *g, int lid)
{
    return st_fiber_owner(&g->pool, lid);
}

/* ---- errors ---- */

static const char *leaf(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static sotto_status fail_in(st_sim_group *g, const char *fmt, ...) SOTTO_PRINTF(2, 3);
static sotto_status fail_in(st_sim_group *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    st_vfail(&g->error, SOTTO_E_DEVICE, fmt, args);
    va_end(args);
    return st_fail_context(&g->error, SOTTO_E_DEVICE, "kernel %s, group (%d, %d, %d)", g->work->kernel->name, g->at[0],
                           g->at[1], g->at[2]);
}

static void place(const st_sim_item *i, char *out, size_t size)
{
    if (i->wait == ST_SIM_LEFT)
        snprintf(out, size, "item %d has left", i->lid);
    else
        snprintf(out, size, "item %d waits at %s:%d", i->lid, leaf(i->file), i->line);
}

static bool same_place(const st_sim_item *a, const st_sim_item *b)
{
    return a->wait == b->wait &&
           (a->wait == ST_SIM_LEFT || (a->line == b->line && (a->file == b->file || strcmp(a->file, b->file) == 0)));
}

static sotto_status fail_divergent(st_sim_group *g, const st_sim_item *a, const st_sim_item *b)
{
    char one[160], other[160];
    place(a, one, sizeof one);
    place(b, other, sizeof other);
    return fail_in(g, "divergent barrier: %s, %s", one, other);
}

void st_sim_stop(st_sim_item *me, const char *file, int line, const char *fmt, ...)
{
    st_sim_group *const g = me->group;
    char text[300];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)fail_in(g, "item %d at %s:%d: %s", me->lid, leaf(file), line, text);
    me->wait = ST_SIM_FAILED;
    for (;;) /* once: nobody switches back */
        st_fiber_switch(&me->fiber, &g->scheduler);
}

/* ---- items ---- */

static void enter(void)
{
    st_sim_item *const me = st_sim_self();
    st_sim_group *const g = me->group;
    st_fiber_entered(&g->scheduler);
    g->work->kernel->run(g->work->params, g->work->arg, me);
    me->wait = ST_SIM_LEFT;
    st_fiber_leave(&me->fiber, &g->scheduler);
}

static void wait_at(st_sim_item *me, st_sim_wait how, const char *file, int line)
{
    me->wait = how;
    me->file = file;
    me->line = line;
    st_fiber_switch(&me->fiber, &me->group->scheduler);
}

void st_sim_barrier(st_sim_item *me, const char *file, int line)
{
    wait_at(me, ST_SIM_BARRIER, file, line);
}

float st_sim_exchange(st_sim_item *me, st_sim_wait how, float x, int mask, const char *file, int line)
{
    me->value = x;
    me->mask = mask;
    wait_at(me, how, file, line);
    return me->value;
}

void st_sim_mma(st_sim_item *me, tile_c *c, const tile_a *a, const tile_b *b, const char *file, int line)
{
    if (me->group->subgroup != 32)
        st_sim_stop(me, file, line, "tiles need a subgroup of 32, this one has %d", me->group->subgroup);
    me->c = c, me->a = a, me->b = b;
    wait_at(me, ST_SIM_MMA, file, line);
}

/* All items ask for the same arrays in the same order, so each finds its place by counting. */
void *st_sim_local(st_sim_item *me, size_t bytes, const char *file, int line)
{
    st_sim_group *const g = me->group;
    const size_t rounded = (bytes + 15) & ~(size_t)15;
    char *const at = g->local + st_sim_local_size(me);
    if (rounded > g->local_bytes - me->local_used || me->n_local == ST_SIM_MAX_LOCAL)
        st_sim_stop(me, file, line,
                    "local array %d of %zu bytes after %zu others: the device has %zu, in at most %d arrays",
                    me->n_local, bytes, me->local_used, g->local_bytes, ST_SIM_MAX_LOCAL);
    if (me->lid == 0)
        g->local_end[me->n_local] = at + bytes;
    me->local_used += rounded;
    me->n_local++;
    __asan_unpoison_memory_region(at, bytes);
    return at;
}

/* ---- subgroups ---- */

static void exchange(st_sim_wait how, st_sim_item *const *lane, int n)
{
    float x[ST_SIM_MAX_GROUP], result = lane[0]->value;
    const bool sum = how == ST_SIM_SG_SUM || how == ST_SIM_WG_SUM;
    for (int i = 0; i < n; i++) {
        x[i] = lane[i]->value;
        if (i)
            result = sum ? result + x[i] : fmaxf(result, x[i]);
    }
    for (int i = 0; i < n; i++)
        lane[i]->value = how == ST_SIM_SG_XOR ? x[(i ^ lane[i]->mask) & (n - 1)] : result;
}

/* Lets the items of a subgroup run until each waits for the group or has left. */
static sotto_status run_subgroup(st_sim_group *g, int first)
{
    st_sim_item *lane[ST_SIM_MAX_SUBGROUP];
    const int n = g->subgroup;
    for (int i = 0; i < n; i++)
        lane[i] = item_of(g, first + i);
    for (;;) {
        const uint32_t turn = next_turn(g);
        for (int i = 0; i < n; i++) {
            st_sim_item *const it = lane[nth(g, turn, (uint32_t)i, (uint32_t)n)];
            if (it->wait != ST_SIM_READY)
                continue;
            st_fiber_switch(&g->scheduler, &it->fiber);
            if (it->wait == ST_SIM_FAILED)
                return SOTTO_E_DEVICE;
        }
        const st_sim_wait how = lane[0]->wait;
        for (int i = 1; i < n; i++)
            if (!same_place(lane[0], lane[i]))
                return fail_divergent(g, lane[0], lane[i]);
        if (how < ST_SIM_SG_SUM)
            return SOTTO_OK;
        if (how >= ST_SIM_ROW_SUM)
            st_sim_resolve_tile(how, lane);
        else
            exchange(how, lane, n);
        for (int i = 0; i < n; i++) {
            lane[i]->wait = ST_SIM_READY;
            lane[i]->n_subgroup_words++;
        }
    }
}

/* ---- groups ---- */

static bool begin_items(st_sim_group *g)
{
    for (int lid = 0; lid < g->work->kernel->group; lid++) {
        st_sim_item *const it = item_of(g, lid);
        it->group = g;
        it->lid = lid;
        it->wait = ST_SIM_READY;
        it->n_subgroup_words = 0;
        it->local_used = 0;
        it->n_local = 0;
        it->n_copies = it->batch = 0;
        if (!st_fiber_begin(&g->pool, lid, &it->fiber, enter))
            return false;
    }
    return true;
}

/* All wait for the group or have left: at one place? Then what they wait for happens. */
static sotto_status meet(st_sim_group *g, bool *done)
{
    st_sim_item *every[ST_SIM_MAX_GROUP];
    const int n = g->work->kernel->group;
    for (int i = 0; i < n; i++)
        every[i] = item_of(g, i);
    const st_sim_item *const a = every[0];
    for (int i = g->subgroup; i < n; i += g->subgroup) { /* within a subgroup they have been compared */
        const st_sim_item *const b = every[i];
        if (!same_place(a, b))
            return fail_divergent(g, a, b);
        if (b->n_subgroup_words != a->n_subgroup_words)
            return fail_in(g, "the subgroups of items %d and %d passed %d and %d words that all items reach", a->lid,
                           b->lid, a->n_subgroup_words, b->n_subgroup_words);
        if (b->local_used != a->local_used)
            return fail_in(g, "items %d and %d have different local arrays", a->lid, b->lid);
    }
    *done = a->wait == ST_SIM_LEFT;
    if (a->wait > ST_SIM_BARRIER)
        exchange(a->wait, every, n);
    for (int i = 0; i < n; i++) {
        every[i]->wait = ST_SIM_READY;
        every[i]->n_subgroup_words = 0;
    }
    return SOTTO_OK;
}

/* Poisons what earlier groups used. */
static void begin_local(st_sim_group *g)
{
    __asan_unpoison_memory_region(g->local, g->local_dirty);
    memset(g->local, 0xff, g->local_dirty);
    __asan_poison_memory_region(g->local, g->local_dirty);
    g->local_dirty = 0;
}

/* Also without AddressSanitizer, writing beyond an array is found. */
static sotto_status check_local(st_sim_group *g)
{
    const st_sim_item *const it = item_of(g, 0);
    g->local_dirty = st_sim_local_size(it);
    __asan_unpoison_memory_region(g->local, g->local_dirty);
    for (int i = 0; i < it->n_local; i++)
        for (int k = 0; k < ST_SIM_LOCAL_GAP; k++)
            if (g->local_end[i][k] != (char)0xff)
                return fail_in(g, "something was written behind local array %d", i);
    return SOTTO_OK;
}

static sotto_status run_group(st_sim_group *g)
{
    const uint32_t n = (uint32_t)(g->work->kernel->group / g->subgroup);
    begin_local(g);
    if (!begin_items(g))
        return st_fail_memory(&g->error, sizeof(st_fiber), "the simulator's fibers");
    for (bool done = false; !done;) {
        const uint32_t turn = next_turn(g);
        for (uint32_t s = 0; s < n; s++)
            ST_TRY(run_subgroup(g, (int)nth(g, turn, s, n) * g->subgroup));
        ST_TRY(meet(g, &done));
    }
    return check_local(g);
}

static size_t local_room(const st_sim_group *g)
{
    return g->local_bytes + (size_t)ST_SIM_LOCAL_GAP * ST_SIM_MAX_LOCAL;
}

static void end_pool(st_sim_group *g)
{
    for (int i = 0; i < g->pool.n; i++)
        st_fiber_end(&item_of(g, i)->fiber);
    st_fiber_pool_free(&g->pool);
}

sotto_status st_sim_group_run(st_sim_group *g, const st_sim_work *work, sotto_error *err)
{
    const int n = work->kernel->group;
    const uint32_t nx = work->grid[0], ny = work->grid[1];
    const uint64_t total = (uint64_t)nx * ny * work->grid[2];
    if (n > g->pool.n) {
        end_pool(g);
        if (!st_fiber_pool_init(&g->pool, n, sizeof(st_sim_item)))
            return st_fail_memory(err, (uint64_t)(n + 1) * ST_FIBER_SLOT, "the simulator's fibers");
    }
    g->work = work;
    const uint32_t turn = next_turn(g);
    for (uint64_t i = 0; i < total; i++) {
        const uint64_t at = total <= UINT32_MAX ? nth(g, turn, (uint32_t)i, (uint32_t)total) : i;
        g->at[0] = (int)(at % nx + work->first);
        g->at[1] = (int)(at / nx % ny);
        g->at[2] = (int)(at / nx / ny);
        const sotto_status status = run_group(g);
        if (status != SOTTO_OK) {
            for (int k = 0; k < n; k++)
                st_fiber_abandon(&g->pool, k);
            g->local_dirty = local_room(g);
            return st_fail(err, status, "%s", g->error.text);
        }
    }
    return SOTTO_OK;
}

sotto_status st_sim_group_init(st_sim_group *g, size_t local_bytes, sotto_error *err)
{
    *g = (st_sim_group){.local_bytes = local_bytes};
    const size_t room = g->local_dirty = local_room(g);
    g->local = st_alloc_pages(room);
    return g->local ? SOTTO_OK : st_fail_memory(err, room, "the simulator's local memory");
}

void st_sim_group_free(st_sim_group *g)
{
    const size_t room = local_room(g);
    end_pool(g);
    if (g->local)
        __asan_unpoison_memory_region(g->local, room);
    st_free_pages(g->local, room);
    *g = (st_sim_group){0};
}
