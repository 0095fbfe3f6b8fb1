#include "models/whisper/filters.h"

#include <math.h>

static void forbid(const st_filters *f, const st_logits_row *row, const int32_t *tokens, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (row->block_sum)
            st_logits_forbid(row->logits, f->vocab->n_vocab, row->block_max, row->block_sum, tokens[i]);
        else
            row->logits[tokens[i]] = -INFINITY;
}

static void suppress(const st_filters *f, const st_logits_row *row, bool first)
{
    const st_vocab *v = f->vocab;
    if (first && f->suppress_blank) {
        forbid(f, row, v->blank, v->n_blank);
        forbid(f, row, &v->eot, 1);
    }
    forbid(f, row, f->suppress, f->n_suppress);
    if (f->timestamps)
        forbid(f, row, &v->no_timestamps, 1);
}

/* Timestamps come in pairs (an end, then the next start), except directly before the end; they never go back, and no segment
 * has length zero. */
static void timestamp_ranges(const st_filters *f, const int32_t *sampled, int n, st_range *text, st_range *stamps)
{
    const st_vocab *v = f->vocab;
    *text = (st_range){0, v->timestamp};
    *stamps = (st_range){v->timestamp, v->n_vocab};
    if (n == 0) {
        text->hi = 0;
        if (f->max_initial >= 0 && f->max_initial < stamps->hi - stamps->lo)
            stamps->hi = stamps->lo + f->max_initial + 1;
        return;
    }
    const bool last = sampled[n - 1] >= v->timestamp;
    const bool penultimate = n < 2 || sampled[n - 2] >= v->timestamp;
    int i = n - 1;
    while (i >= 0 && sampled[i] < v->timestamp)
        i--;
    if (i >= 0)
        stamps->lo = sampled[i] + (last && !penultimate ? 0 : 1);
    if (last && penultimate)
        stamps->lo = stamps->hi;
    else if (last)
        text->lo = v->eot;
}

static void add_range(st_allowed *out, st_range r)
{
    if (r.lo < r.hi)
        out->ranges[out->n_ranges++] = r;
}

static double log_sum(const st_logits_row *row, st_range r, float max)
{
    if (max == -INFINITY)
        return -INFINITY;
    return (double)max + log(st_logits_sum_exp(row->logits, row->block_max, row->block_sum, r, max));
}

static double log_of_both(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return high == -INFINITY ? -INFINITY : high + log1p(exp(low - high));
}

void st_filters_recount(const st_logits_row *row, int32_t n_vocab, st_allowed *allowed)
{
    const st_logits_row r = {row->logits, row->block_max, NULL};
    (void)st_logits_scan(r.logits, n_vocab, r.block_max);
    allowed->max = -INFINITY;
    allowed->log_sum = -INFINITY;
    for (int i = 0; i < allowed->n_ranges; i++) {
        const float max = st_logits_max(r.logits, r.block_max, allowed->ranges[i]);
        allowed->log_sum = log_of_both(allowed->log_sum, log_sum(&r, allowed->ranges[i], max));
        allowed->max = max > allowed->max ? max : allowed->max;
    }
}

bool st_filters_apply(const st_filters *f, const st_logits_row *row, const int32_t *sampled, int n_sampled,
                      st_allowed *out)
{
    const int32_t n_vocab = f->vocab->n_vocab;
    *out = (st_allowed){.max = -INFINITY, .log_sum = -INFINITY, .block_max = row->block_max};
    if (row->block_sum && !st_logits_are_numbers(row->block_sum, st_logits_blocks(n_vocab)))
        return false;
    suppress(f, row, n_sampled == 0);
    if (!row->block_sum && !st_logits_scan(row->logits, n_vocab, row->block_max))
        return false;
    st_range text = {0, n_vocab}, stamps = {n_vocab, n_vocab};
    if (f->timestamps)
        timestamp_ranges(f, sampled, n_sampled, &text, &stamps);
    const float max_text = st_logits_max(row->logits, row->block_max, text),
                max_stamp = st_logits_max(row->logits, row->block_max, stamps);
    const double log_stamps = log_sum(row, stamps, max_stamp);
    /* A timestamp is due when all of them together are more likely than any one other token. */
    if (log_stamps > (double)max_text) {
        add_range(out, stamps);
        out->max = max_stamp;
        out->log_sum = log_stamps;
        return true;
    }
    const double log_text = log_sum(row, text, max_text);
    add_range(out, text);
    add_range(out, stamps);
    out->max = max_text > max_stamp ? max_text : max_stamp;
    out->log_sum = log_of_both(log_text, log_stamps);
    return true;
}
