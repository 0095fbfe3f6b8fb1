#include "models/common/sample_pick.h"

#include <math.h>

#include "models/common/sample_math.h"

static inline bool before(const st_candidate *a, const st_candidate *b)
{
    return a->key > b->key || (a->key == b->key && a->id < b->id);
}

/* ---- a heap, the first in order on top; or, with `last`, the last in order ---- */

static inline bool above(const st_candidate *a, const st_candidate *b, bool last)
{
    return last ? before(b, a) : before(a, b);
}

static void sift_down(st_candidate *h, int32_t n, int32_t at, bool last)
{
    const st_candidate moved = h[at];
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= n)
            break;
        if (child + 1 < n && above(&h[child + 1], &h[child], last))
            child++;
        if (!above(&h[child], &moved, last))
            break;
        h[at] = h[child];
        at = child;
    }
    h[at] = moved;
}

static void heapify(st_candidate *h, int32_t n, bool last)
{
    for (int32_t i = n / 2; i-- > 0;)
        sift_down(h, n, i, last);
}

/* Moves the top behind the heap, which becomes one shorter. */
static void pop(st_candidate *h, int32_t n, bool last)
{
    const st_candidate top = h[0];
    h[0] = h[n - 1];
    h[n - 1] = top;
    if (n > 1)
        sift_down(h, n - 1, 0, last);
}

/* The popped ones lie at the end, the first of them last: brings them to the front in order. */
static void keep_popped(st_candidates *c, int32_t n_popped)
{
    st_candidate *h = c->list;
    for (int32_t lo = 0, hi = c->n - 1; lo < hi; lo++, hi--) {
        const st_candidate t = h[lo];
        h[lo] = h[hi];
        h[hi] = t;
    }
    c->n = n_popped;
}

/* ---- from the row ---- */

static double weight(const st_candidates *c, float logit)
{
    return st_exp_negative((double)logit - (double)c->max);
}

static double sum_weights(const st_candidates *c)
{
    double total = 0;
    for (int32_t i = 0; i < c->n; i++)
        total += weight(c, c->list[i].logit);
    return total;
}

void st_pick_top_k(const float *x, int32_t n, const float *block_max, int32_t k, st_candidates *c)
{
    /* The heap has the least of the kept ones on top; an entry that comes later and is equal to it has the higher id. */
    st_candidate *h = c->list;
    int32_t m = 0;
    float bar = -INFINITY;
    c->max = st_logits_max(x, block_max, (st_range){0, n});
    for (int32_t i = 0; i < n; i += ST_LOGITS_BLOCK) {
        if (!(block_max[i / ST_LOGITS_BLOCK] > bar))
            continue;
        const int32_t end = n - i < ST_LOGITS_BLOCK ? n : i + ST_LOGITS_BLOCK;
        for (int32_t t = i; t < end; t++) {
            if (!(x[t] > bar))
                continue;
            const st_candidate made = {(double)x[t], x[t], t};
            if (m < k) {
                h[m++] = made;
                if (m == k)
                    heapify(h, m, true);
            } else {
                h[0] = made;
                sift_down(h, m, 0, true);
            }
            bar = m == k ? h[0].logit : -INFINITY;
        }
    }
    if (m < k)
        heapify(h, m, true);
    for (int32_t left = m; left > 1; left--)
        pop(h, left, true); /* the last in order goes to the end: what remains is sorted */
    c->n = m;
    c->sorted = true;
    c->total = sum_weights(c);
}

void st_pick_above(const float *x, int32_t n, const float *block_max, double bar, st_candidates *c)
{
    const st_range all = {0, n};
    c->n = 0;
    c->sorted = false;
    c->max = st_logits_max(x, block_max, all);
    c->total = st_logits_sum_exp(x, block_max, NULL, all, c->max);
    for (int32_t i = 0; i < n; i += ST_LOGITS_BLOCK) {
        const float most = block_max[i / ST_LOGITS_BLOCK];
        if (most == -INFINITY || (double)most < bar)
            continue;
        const int32_t end = n - i < ST_LOGITS_BLOCK ? n : i + ST_LOGITS_BLOCK;
        for (int32_t t = i; t < end; t++)
            if ((double)x[t] >= bar && x[t] != -INFINITY)
                c->list[c->n++] = (st_candidate){(double)x[t], x[t], t};
    }
}

void st_pick_whole(st_candidates *c)
{
    c->max = c->n > 0 ? c->list[0].logit : -INFINITY;
    c->total = sum_weights(c);
}

/* ---- leaving out ---- */

void st_pick_typical(st_candidates *c, double p)
{
    if (c->n <= 1)
        return;
    const double total = sum_weights(c), log_total = st_ln(total);
    double entropy = 0;
    for (int32_t i = 0; i < c->n; i++) {
        const double below = (double)c->max - (double)c->list[i].logit;
        entropy += weight(c, c->list[i].logit) / total * (log_total + below);
    }
    for (int32_t i = 0; i < c->n; i++) {
        const double information = log_total + ((double)c->max - (double)c->list[i].logit);
        c->list[i].key = information > entropy ? entropy - information : information - entropy;
    }
    heapify(c->list, c->n, false);
    double sum = 0;
    int32_t popped = 0;
    while (popped < c->n) {
        const float logit = c->list[0].logit;
        pop(c->list, c->n - popped, false);
        popped++;
        sum += weight(c, logit) / total;
        if (sum > p)
            break;
    }
    keep_popped(c, popped);
    float max = -INFINITY;
    for (int32_t i = 0; i < c->n; i++) {
        c->list[i].key = (double)c->list[i].logit;
        max = c->list[i].logit > max ? c->list[i].logit : max;
    }
    c->max = max;
    c->total = sum_weights(c);
    c->sorted = c->n == 1;
}

void st_pick_top_p(st_candidates *c, double p)
{
    double sum = 0;
    if (c->sorted) {
        for (int32_t i = 0; i < c->n; i++) {
            sum += weight(c, c->list[i].logit) / c->total;
            if (sum >= p) {
                c->n = i + 1;
                return;
            }
        }
        return;
    }
    heapify(c->list, c->n, false);
    int32_t popped = 0;
    while (popped < c->n) {
        const float logit = c->list[0].logit;
        pop(c->list, c->n - popped, false);
        popped++;
        sum += weight(c, logit) / c->total;
        if (sum >= p)
            break;
    }
    keep_popped(c, popped);
    c->sorted = true;
}

void st_pick_min_p(st_candidates *c, double p)
{
    const double bar = (double)c->max + st_ln(p);
    int32_t n = 0;
    for (int32_t i = 0; i < c->n; i++)
        if ((double)c->list[i].logit >= bar)
            c->list[n++] = c->list[i];
    c->n = n;
}

int32_t st_pick_draw(const st_candidates *c, double temperature, double u, double *p)
{
    double total = 0;
    for (int32_t i = 0; i < c->n; i++)
        total += st_exp_negative(((double)c->list[i].logit - (double)c->max) / temperature);
    double left = u * total;
    int32_t drawn = -1;
    double mass = 0;
    for (int32_t i = 0; i < c->n; i++) { /* what rounding leaves at the end goes to the last that can be drawn */
        const double w = st_exp_negative(((double)c->list[i].logit - (double)c->max) / temperature);
        if (w <= 0)
            continue;
        drawn = i;
        mass = w;
        left -= w;
        if (left < 0)
            break;
    }
    if (p)
        *p = mass / total;
    return drawn;
}
