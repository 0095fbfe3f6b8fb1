#include "models/common/grammar_match.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "models/common/grammar_impl.h"
#include "models/common/pair_sets.h"

enum {
    UNKNOWN = -2,
    DEAD = -1,
    MAX_PLACES = 1 << 20,  /* positions in one state */
    MAX_SEEN = 1 << 22,    /* positions gone over to find them */
    MAX_CALLS = 1 << 18,   /* noted at one place of the text */
    MAX_MEMBERS = 1 << 25, /* of all sets */
    MAX_ROWS_BYTES = 1 << 25
};

/* A pair is a position and the index of the set of what follows its rule; that set holds pairs of the same kind. Set 0 is what
 * follows a whole text: (ST_ACCEPT, 0). A state is the set of pairs whose position is an ST_POSITION_SET, and (ST_ACCEPT, 0)
 * where the text may end. */
struct st_matcher {
    const sotto_grammar *g;
    st_pair_sets follow, states;
    int32_t start;

    int32_t *row_of; /* [states.n], index of the state's row of next states, -1: none yet */
    int64_t row_of_n, row_of_capacity;
    int32_t *rows; /* [n_rows, n_intervals] */
    int64_t n_rows, rows_capacity;

    /* While a state is made. */
    st_pairs todo, found, entry;
    st_pair *seen; /* hash table of pairs, [n_seen]; valid where the stamp is the current one */
    uint32_t *seen_stamp;
    int64_t n_seen, seen_used;
    uint32_t stamp;
    int32_t *callers;    /* [n_rules], head of a list in `calls`, -1 */
    st_pairs calls;      /* of a caller: who goes on after the call */
    int32_t *calls_next; /* [calls.n], -1 at the end */
    int64_t calls_next_capacity;
    int32_t *waiting; /* a heap of orders of rules that were called and not entered */
    int64_t n_waiting;
};

static sotto_status no_memory(sotto_error *err)
{
    return st_fail_memory(err, MAX_PLACES, "following a grammar");
}

/* ---- sets seen ---- */

static void clear_seen(st_matcher *m)
{
    m->seen_used = 0;
    if (++m->stamp == 0) {
        memset(m->seen_stamp, 0, (size_t)m->n_seen * sizeof *m->seen_stamp);
        m->stamp = 1;
    }
}

static uint64_t hash_pair(int32_t a, int32_t b)
{
    uint64_t h = ((uint64_t)(uint32_t)a << 32 | (uint32_t)b) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    return h * 0xd6e8feb86659fd93u >> 20;
}

static bool grow_seen(st_matcher *m)
{
    if (2 * (m->seen_used + 1) <= m->n_seen)
        return true;
    const int64_t n = m->n_seen ? 2 * m->n_seen : 256;
    const uint64_t mask = (uint64_t)(n - 1);
    st_pair *seen = st_alloc((size_t)n, sizeof *seen);
    uint32_t *stamps = st_calloc((size_t)n, sizeof *stamps);
    if (!seen || !stamps) {
        st_free(seen);
        st_free(stamps);
        return false;
    }
    for (int64_t i = 0; i < m->n_seen; i++)
        if (m->seen_stamp[i] == m->stamp) {
            uint64_t at = hash_pair(m->seen[i].a, m->seen[i].b) & mask;
            while (stamps[at] == m->stamp)
                at = (at + 1) & mask;
            seen[at] = m->seen[i];
            stamps[at] = m->stamp;
        }
    st_free(m->seen);
    st_free(m->seen_stamp);
    m->seen = seen;
    m->seen_stamp = stamps;
    m->n_seen = n;
    return true;
}

/* Puts a pair that was not seen on the list of what is to do. */
static bool push(st_matcher *m, int32_t position, int32_t follow)
{
    if (!grow_seen(m))
        return false;
    const uint64_t mask = (uint64_t)(m->n_seen - 1);
    uint64_t at = hash_pair(position, follow) & mask;
    for (; m->seen_stamp[at] == m->stamp; at = (at + 1) & mask)
        if (m->seen[at].a == position && m->seen[at].b == follow)
            return true;
    m->seen[at] = (st_pair){position, follow};
    m->seen_stamp[at] = m->stamp;
    m->seen_used++;
    return st_pairs_add(&m->todo, position, follow);
}

/* ---- rules that wait for all their callers ---- */

static void wait_for(st_matcher *m, int32_t order)
{
    int64_t at = m->n_waiting++;
    for (; at > 0 && m->waiting[(at - 1) / 2] > order; at = (at - 1) / 2)
        m->waiting[at] = m->waiting[(at - 1) / 2];
    m->waiting[at] = order;
}

static int32_t take_first(st_matcher *m)
{
    const int32_t first = m->waiting[0], moved = m->waiting[--m->n_waiting];
    int64_t at = 0;
    for (int64_t child = 1; child < m->n_waiting; child = 2 * at + 1) {
        if (child + 1 < m->n_waiting && m->waiting[child + 1] < m->waiting[child])
            child++;
        if (m->waiting[child] >= moved)
            break;
        m->waiting[at] = m->waiting[child];
        at = child;
    }
    m->waiting[at] = moved;
    return first;
}

static bool add_caller(st_matcher *m, int32_t rule, int32_t position, int32_t follow)
{
    const int64_t i = m->calls.n;
    if (!st_grow(&m->calls_next, &m->calls_next_capacity, i + 1, sizeof *m->calls_next) ||
        !st_pairs_add(&m->calls, position, follow))
        return false;
    if (m->callers[rule] < 0)
        wait_for(m, m->g->rules[rule].order);
    m->calls_next[i] = m->callers[rule];
    m->callers[rule] = (int32_t)i;
    return true;
}

/* A call at the end of a rule is followed by what follows the rule: such calls do not add up. */
static bool call(st_matcher *m, const st_position *p, int32_t follow)
{
    if (p->next != ST_END)
        return add_caller(m, p->a, p->next, follow);
    int64_t n;
    st_pair_sets_get(&m->follow, follow, &n);
    for (int64_t i = 0; i < n && m->calls.n < MAX_CALLS; i++) {
        const st_pair f = st_pair_sets_get(&m->follow, follow, &n)[i];
        if (!add_caller(m, p->a, f.a, f.b))
            return false;
    }
    return true;
}

/* ---- making a state ---- */

static bool too_large(const st_matcher *m)
{
    return m->found.n > MAX_PLACES || m->seen_used > MAX_SEEN || m->calls.n >= MAX_CALLS ||
           m->follow.members.n > MAX_MEMBERS || m->states.members.n > MAX_MEMBERS;
}

/* Follows everything to do up to where characters are wanted. `entered`: all of it is at the beginning of a rule whose callers
 * have gone on already in case it is empty. */
static bool follow_all(st_matcher *m, bool entered)
{
    while (m->todo.n > 0 && !too_large(m)) {
        const st_pair at = m->todo.list[--m->todo.n];
        const st_position *p = &m->g->positions[at.a];
        bool ok = true;
        if (p->kind == ST_POSITION_SET || p->kind == ST_POSITION_ACCEPT) {
            ok = st_pairs_add(&m->found, at.a, at.b);
        } else if (p->kind == ST_POSITION_FORK) {
            ok = push(m, p->a, at.b) && push(m, p->next, at.b);
        } else if (p->kind == ST_POSITION_CALL) {
            ok = call(m, p, at.b) && (!m->g->rules[p->a].nullable || push(m, p->next, at.b));
        } else if (!entered) {
            int64_t n;
            st_pair_sets_get(&m->follow, at.b, &n);
            for (int64_t i = 0; i < n && ok; i++) {
                const st_pair f = st_pair_sets_get(&m->follow, at.b, &n)[i];
                ok = push(m, f.a, f.b);
            }
        }
        if (!ok)
            return false;
    }
    return true;
}

static bool enter(st_matcher *m, int32_t rule)
{
    const int32_t head = m->callers[rule];
    m->callers[rule] = -1;
    m->entry.n = 0;
    for (int32_t i = head; i >= 0; i = m->calls_next[i])
        if (!st_pairs_add(&m->entry, m->calls.list[i].a, m->calls.list[i].b))
            return false;
    st_pairs_sort(&m->entry);
    const int32_t follow = st_pair_sets_index(&m->follow, m->entry.list, m->entry.n);
    return follow >= 0 && push(m, m->g->rules[rule].start, follow) && follow_all(m, true);
}

/* The state of the pairs to do, which were pushed. */
static sotto_status make_state(st_matcher *m, int32_t *state, sotto_error *err)
{
    m->found.n = m->calls.n = 0;
    bool ok = follow_all(m, false);
    while (ok && m->n_waiting > 0 && !too_large(m))
        ok = enter(m, m->g->rules[take_first(m)].by_order);
    while (m->n_waiting > 0) /* after a failure */
        m->callers[m->g->rules[m->waiting[--m->n_waiting]].by_order] = -1;
    m->todo.n = 0;
    if (too_large(m))
        return st_fail(err, SOTTO_E_UNSUPPORTED,
                       "the grammar is too ambiguous: the text so far can be read in too many ways");
    st_pairs_sort(&m->found);
    *state = ok ? st_pair_sets_index(&m->states, m->found.list, m->found.n) : -1;
    if (*state < 0 || !st_grow(&m->row_of, &m->row_of_capacity, m->states.n, sizeof *m->row_of))
        return no_memory(err);
    for (; m->row_of_n < m->states.n; m->row_of_n++)
        m->row_of[m->row_of_n] = -1;
    return SOTTO_OK;
}

static sotto_status compute_next(st_matcher *m, int32_t state, int32_t interval, int32_t *next, sotto_error *err)
{
    int64_t n;
    st_pair_sets_get(&m->states, state, &n);
    clear_seen(m);
    m->todo.n = 0;
    *next = DEAD;
    for (int64_t i = 0; i < n; i++) {
        const st_pair at = st_pair_sets_get(&m->states, state, &n)[i];
        const st_position *p = &m->g->positions[at.a];
        if (p->kind == ST_POSITION_SET && st_grammar_set_meets(m->g, p->a, interval, interval) && !push(m, p->next, at.b))
            return no_memory(err);
    }
    return m->todo.n > 0 ? make_state(m, next, err) : SOTTO_OK;
}

static sotto_status add_row(st_matcher *m, int32_t state, sotto_error *err)
{
    const int64_t width = m->g->n_intervals;
    if ((m->n_rows + 1) * width * (int64_t)sizeof *m->rows > MAX_ROWS_BYTES && m->n_rows > 0) {
        for (int64_t i = 0; i < m->row_of_n; i++)
            m->row_of[i] = -1;
        m->n_rows = 0;
    }
    if (!st_grow(&m->rows, &m->rows_capacity, (m->n_rows + 1) * width, sizeof *m->rows))
        return no_memory(err);
    for (int64_t i = 0; i < width; i++)
        m->rows[m->n_rows * width + i] = UNKNOWN;
    m->row_of[state] = (int32_t)m->n_rows++;
    return SOTTO_OK;
}

static sotto_status next_state(st_matcher *m, int32_t state, int32_t interval, int32_t *next, sotto_error *err)
{
    const int64_t width = m->g->n_intervals;
    if (m->row_of[state] < 0)
        ST_TRY(add_row(m, state, err));
    *next = m->rows[m->row_of[state] * width + interval];
    if (*next != UNKNOWN)
        return SOTTO_OK;
    ST_TRY(compute_next(m, state, interval, next, err));
    m->rows[m->row_of[state] * width + interval] = *next;
    return SOTTO_OK;
}

/* ---- bytes ---- */

/* The characters that begin with what is there; false when there are none. */
static bool possible(st_grammar_place at, uint32_t *first, uint32_t *last)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t lo = at.partial << (6 * at.missing), hi = lo | ((1u << (6 * at.missing)) - 1);
    lo = lo < least[at.length] ? least[at.length] : lo;
    hi = hi > 0x10ffff ? 0x10ffff : hi;
    if (lo >= 0xd800 && lo <= 0xdfff)
        lo = 0xe000;
    if (hi >= 0xd800 && hi <= 0xdfff)
        hi = 0xd7ff;
    *first = lo;
    *last = hi;
    return lo <= hi;
}

/* After a byte of a character: dead unless a character that begins so can come. */
static sotto_status go_on(st_matcher *m, st_grammar_place *at, sotto_error *err)
{
    uint32_t lo, hi;
    const int32_t state = at->state;
    at->state = DEAD;
    if (!possible(*at, &lo, &hi))
        return SOTTO_OK;
    const int32_t first = st_grammar_interval(m->g, lo), last = st_grammar_interval(m->g, hi);
    if (first == last) {
        int32_t next;
        ST_TRY(next_state(m, state, first, &next, err));
        at->state = next < 0 ? DEAD : at->missing > 0 ? state : next;
    } else {
        int64_t n;
        const st_pair *pairs = st_pair_sets_get(&m->states, state, &n);
        for (int64_t i = 0; i < n && at->state < 0; i++) {
            const st_position *p = &m->g->positions[pairs[i].a];
            if (p->kind == ST_POSITION_SET && st_grammar_set_meets(m->g, p->a, first, last))
                at->state = state;
        }
    }
    if (at->missing == 0)
        at->partial = at->length = 0;
    return SOTTO_OK;
}

sotto_status st_matcher_step(st_matcher *m, st_grammar_place *at, uint8_t byte, sotto_error *err)
{
    if (at->state < 0)
        return SOTTO_OK;
    if (at->missing == 0 && byte < 0x80)
        return next_state(m, at->state, m->g->ascii[byte], &at->state, err);
    if (at->missing == 0) {
        const uint8_t length = byte >= 0xc2 && byte <= 0xdf   ? 2
                               : byte >= 0xe0 && byte <= 0xef ? 3
                               : byte >= 0xf0 && byte <= 0xf4 ? 4
                                                              : 0;
        if (length == 0) {
            at->state = DEAD;
            return SOTTO_OK;
        }
        at->partial = byte & (0x7fu >> length);
        at->length = length;
        at->missing = (uint8_t)(length - 1);
        return go_on(m, at, err);
    }
    if ((byte & 0xc0) != 0x80) {
        at->state = DEAD;
        return SOTTO_OK;
    }
    at->partial = at->partial << 6 | (byte & 0x3f);
    at->missing--;
    return go_on(m, at, err);
}

sotto_status st_matcher_walk(st_matcher *m, st_grammar_place *at, const char *bytes, size_t n, sotto_error *err)
{
    for (size_t i = 0; i < n && at->state >= 0; i++)
        ST_TRY(st_matcher_step(m, at, (uint8_t)bytes[i], err));
    return SOTTO_OK;
}

st_grammar_place st_matcher_start(const st_matcher *m)
{
    return (st_grammar_place){.state = m->start};
}

bool st_matcher_may_end(const st_matcher *m, st_grammar_place at)
{
    if (at.state < 0 || at.missing > 0)
        return false;
    int64_t n;
    const st_pair *pairs = st_pair_sets_get(&m->states, at.state, &n);
    return n > 0 && pairs[0].a == ST_ACCEPT; /* no other position of a state has a lower index */
}

/* ---- making ---- */

static sotto_status create_empty(const sotto_grammar *g, st_matcher **out, sotto_error *err)
{
    const st_pair accept = {ST_ACCEPT, 0};
    st_matcher *m = st_calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return no_memory(err);
    m->g = g;
    m->callers = st_alloc((size_t)g->n_rules, sizeof *m->callers);
    m->waiting = st_alloc((size_t)g->n_rules, sizeof *m->waiting);
    if (!m->callers || !m->waiting || st_pair_sets_index(&m->follow, &accept, 1) < 0) {
        st_matcher_free(m);
        return no_memory(err);
    }
    for (int64_t i = 0; i < g->n_rules; i++)
        m->callers[i] = -1;
    *out = m;
    return SOTTO_OK;
}

static sotto_status make_start(st_matcher *m, sotto_error *err)
{
    clear_seen(m);
    m->todo.n = 0;
    if (!push(m, m->g->rules[m->g->root].start, 0))
        return no_memory(err);
    return make_state(m, &m->start, err);
}

sotto_status st_matcher_create(const sotto_grammar *g, st_matcher **out, sotto_error *err)
{
    st_matcher *m;
    *out = NULL;
    ST_TRY(create_empty(g, &m, err));
    const sotto_status status = make_start(m, err);
    if (status != SOTTO_OK) {
        st_matcher_free(m);
        return status;
    }
    *out = m;
    return SOTTO_OK;
}

void st_matcher_free(st_matcher *m)
{
    if (!m)
        return;
    st_pair_sets_free(&m->follow);
    st_pair_sets_free(&m->states);
    void *const blocks[] = {m->row_of,     m->rows,    m->todo.list,  m->found.list, m->entry.list, m->seen,
                            m->seen_stamp, m->callers, m->calls.list, m->calls_next, m->waiting};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        st_free(blocks[i]);
    st_free(m);
}

size_t st_matcher_size(const st_matcher *m)
{
    return st_pair_sets_size(&m->follow) + st_pair_sets_size(&m->states);
}

/* ---- moving ---- */

/* A set holds only sets that are older than itself: going down marks what is needed, going up copies it. */
static bool copy_follow(const st_matcher *from, st_matcher *to, int32_t *new_index)
{
    int64_t n;
    for (int64_t i = from->follow.n; i-- > 0;) {
        const st_pair *pairs = st_pair_sets_get(&from->follow, (int32_t)i, &n);
        for (int64_t j = 0; j < n && new_index[i]; j++)
            new_index[pairs[j].b] = 1;
    }
    new_index[0] = 0;
    for (int64_t i = 1; i < from->follow.n; i++) {
        if (!new_index[i])
            continue;
        const st_pair *pairs = st_pair_sets_get(&from->follow, (int32_t)i, &n);
        to->entry.n = 0;
        for (int64_t j = 0; j < n; j++)
            if (!st_pairs_add(&to->entry, pairs[j].a, new_index[pairs[j].b]))
                return false;
        st_pairs_sort(&to->entry); /* sets that the new matcher had before may stand in another order */
        new_index[i] = st_pair_sets_index(&to->follow, to->entry.list, to->entry.n);
        if (new_index[i] < 0)
            return false;
    }
    return true;
}

static sotto_status copy_states(const st_matcher *from, st_grammar_place *const *places, int count, int32_t *new_index,
                                st_matcher *to, sotto_error *err)
{
    int64_t n;
    for (int k = 0; k < count; k++) {
        const st_pair *pairs = places[k]->state < 0 ? NULL : st_pair_sets_get(&from->states, places[k]->state, &n);
        for (int64_t j = 0; pairs && j < n; j++)
            new_index[pairs[j].b] = 1;
    }
    if (!copy_follow(from, to, new_index))
        return no_memory(err);
    for (int k = 0; k < count; k++) {
        if (places[k]->state < 0)
            continue;
        const st_pair *pairs = st_pair_sets_get(&from->states, places[k]->state, &n);
        to->entry.n = 0;
        for (int64_t j = 0; j < n; j++)
            if (!st_pairs_add(&to->entry, pairs[j].a, new_index[pairs[j].b]))
                return no_memory(err);
        st_pairs_sort(&to->entry);
        const int32_t state = st_pair_sets_index(&to->states, to->entry.list, to->entry.n);
        if (state < 0)
            return no_memory(err);
        /* a place is changed at the end only: a failure must leave all as they were */
        new_index[from->follow.n + k] = state;
    }
    if (!st_grow(&to->row_of, &to->row_of_capacity, to->states.n, sizeof *to->row_of))
        return no_memory(err);
    for (; to->row_of_n < to->states.n; to->row_of_n++)
        to->row_of[to->row_of_n] = -1;
    for (int k = 0; k < count; k++)
        if (places[k]->state >= 0)
            places[k]->state = new_index[from->follow.n + k];
    return SOTTO_OK;
}

sotto_status st_matcher_move(const st_matcher *from, st_grammar_place *const *places, int n, st_matcher **out,
                             sotto_error *err)
{
    st_matcher *to;
    *out = NULL;
    ST_TRY(st_matcher_create(from->g, &to, err));
    int32_t *new_index = st_calloc((size_t)from->follow.n + (size_t)n, sizeof *new_index);
    const sotto_status status = new_index ? copy_states(from, places, n, new_index, to, err) : no_memory(err);
    st_free(new_index);
    if (status != SOTTO_OK) {
        st_matcher_free(to);
        return status;
    }
    *out = to;
    return SOTTO_OK;
}

/* ---- a whole text ---- */

enum { TIDY_SIZE = 1 << 26 };

static sotto_status match(st_matcher **m, const char *text, size_t n, size_t *fits, bool *whole, sotto_error *err)
{
    st_grammar_place at = st_matcher_start(*m);
    size_t i = 0;
    for (; i < n; i++) {
        st_grammar_place next = at;
        ST_TRY(st_matcher_step(*m, &next, (uint8_t)text[i], err));
        if (next.state < 0)
            break;
        at = next;
        if (i % 4096 == 0 && st_matcher_size(*m) > TIDY_SIZE) {
            st_grammar_place *const kept[] = {&at};
            st_matcher *tidied;
            ST_TRY(st_matcher_move(*m, kept, 1, &tidied, err));
            st_matcher_free(*m);
            *m = tidied;
        }
    }
    if (fits)
        *fits = i;
    if (whole)
        *whole = i == n && st_matcher_may_end(*m, at);
    return SOTTO_OK;
}

sotto_status sotto_grammar_match(const sotto_grammar *grammar, const char *text, size_t n, size_t *fits, bool *whole,
                                 sotto_error *err)
{
    st_matcher *m;
    if (fits)
        *fits = 0;
    if (whole)
        *whole = false;
    ST_TRY(st_matcher_create(grammar, &m, err));
    const sotto_status status = match(&m, text, n, fits, whole, err);
    st_matcher_free(m);
    return status;
}
