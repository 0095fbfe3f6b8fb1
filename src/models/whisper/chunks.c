#include "models/whisper/chunks.h"

enum { SAMPLES_PER_FRAME = 160, SAMPLES_PER_LEVEL = 512 };

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Index of the first span that ends behind the frame. */
static int64_t span_behind(const st_speech *s, int64_t frame)
{
    int64_t low = 0, high = s->n_spans;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (s->spans[middle].end > frame)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* The most silent place in the later half of a window: the middle of the level that is lowest, the last of equals. */
static int64_t quietest(const st_speech *s, int64_t first, int64_t window)
{
    const int64_t from = first + window / 2, end = first + window;
    int64_t best = end;
    float lowest = 2.0f;
    for (int64_t i = from * SAMPLES_PER_FRAME / SAMPLES_PER_LEVEL; i < s->n_level; i++) {
        const int64_t at = (i * SAMPLES_PER_LEVEL + SAMPLES_PER_LEVEL / 2) / SAMPLES_PER_FRAME;
        if (at < from)
            continue;
        if (at >= end)
            break;
        if (s->level[i] <= lowest) {
            lowest = s->level[i];
            best = at;
        }
    }
    return best;
}

/* Behind spans[n - 1], which ends at `end`: what comes next begins at *next (INT64_MAX: nothing comes). False while it may
 * yet belong to a chunk that reaches to `limit`, or be so close that it takes a part of the padding. */
static bool followed(const st_speech *s, int64_t n, int64_t end, int64_t limit, int64_t pad, int64_t *next)
{
    if (n < s->n_spans) {
        *next = s->spans[n].first;
        return true;
    }
    if (s->open >= 0) {
        *next = s->open;
        return s->open >= limit || s->reaches > limit;
    }
    *next = s->final ? INT64_MAX : s->heard;
    return s->final || (s->heard >= limit && s->heard - end >= 2 * pad);
}

/* Spans [first, *n) are to be a chunk, but the next one, which does not fit, begins at *next: fewer of them, with the longest
 * pause in [least, ..) behind them; the last of equals. */
static void prefer_long_pause(const st_speech *s, int64_t first, int64_t least, int64_t *n, int64_t *next)
{
    int64_t longest = *next - s->spans[*n - 1].end;
    for (int64_t k = *n - 1; k > first && s->spans[k - 1].end >= least; k--) {
        const int64_t pause = s->spans[k].first - s->spans[k - 1].end;
        if (pause > longest) {
            longest = pause;
            *n = k;
            *next = s->spans[k].first;
        }
    }
}

bool st_chunk_next(const st_speech *speech, const st_chunk_rules *rules, int64_t from, st_chunk *out)
{
    const int64_t i = span_behind(speech, from);
    const bool open = i == speech->n_spans;
    if (open && speech->open < 0)
        return false;
    const int64_t first = max_i64((open ? speech->open : speech->spans[i].first) - rules->pad, from);
    const int64_t limit = first + rules->window;
    if ((open ? speech->reaches : speech->spans[i].end) > limit) {
        *out = (st_chunk){first, quietest(speech, first, rules->window)};
        return true;
    }
    if (open)
        return false;
    int64_t n = i, next;
    while (n < speech->n_spans && speech->spans[n].end <= limit)
        n++;
    if (!followed(speech, n, speech->spans[n - 1].end, limit, rules->pad, &next))
        return false;
    if (next < limit)
        prefer_long_pause(speech, i, limit - rules->window / 2, &n, &next);
    const int64_t end = speech->spans[n - 1].end;
    const int64_t by = next - end >= 2 * rules->pad ? rules->pad : (next - end) / 2;
    *out = (st_chunk){first, min_i64(end + by, limit)};
    return true;
}

int64_t st_chunk_speech(const st_speech *speech, int64_t first, int64_t end)
{
    int64_t sum = 0;
    for (int64_t i = span_behind(speech, first); i < speech->n_spans && speech->spans[i].first < end; i++)
        sum += min_i64(speech->spans[i].end, end) - max_i64(speech->spans[i].first, first);
    if (speech->open >= 0 && speech->open < end)
        sum += end - max_i64(speech->open, first);
    return sum;
}

int64_t st_chunk_earliest(const st_speech *speech, const st_chunk_rules *rules, int64_t from)
{
    const int64_t i = span_behind(speech, from);
    const int64_t next = i < speech->n_spans ? speech->spans[i].first
                         : speech->open >= 0 ? speech->open
                                             : speech->heard;
    return max_i64(next - rules->pad, from);
}
