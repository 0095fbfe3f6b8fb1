#include "models/whisper/segments.h"

#include <string.h>

#include "base/alloc.h"
#include "base/status.h"
#include "base/utf8.h"

enum { FRAMES_PER_STAMP = 2, HOP = 160, RATE = 16000 };

static double frame_seconds(int64_t frame)
{
    return (double)(frame * HOP) / RATE;
}

void st_slicer_init(st_slicer *s, const st_vocab *vocab)
{
    *s = (st_slicer){.vocab = vocab};
}

void st_slicer_free(st_slicer *s)
{
    st_free(s->slices);
    st_free(s->bytes);
    st_free(s->offset);
    st_free(s->inside);
    *s = (st_slicer){.vocab = s->vocab};
}

static bool is_stamp(const st_slicer *s, int32_t token)
{
    return token >= s->vocab->timestamp;
}

static double stamp_seconds(const st_slicer *s, const st_window *w, int32_t token)
{
    const int steps = is_stamp(s, token) ? token - s->vocab->timestamp : 0;
    return frame_seconds(w->seek) + steps * (FRAMES_PER_STAMP * HOP / (double)RATE);
}

static int64_t stamp_frames(const st_slicer *s, int32_t token)
{
    return (int64_t)(token - s->vocab->timestamp) * FRAMES_PER_STAMP;
}

/* ---- where to cut ---- */

/* A pair of timestamps ends one segment and begins the next. */
static void cut_at_pairs(st_slicer *s, const st_window *w, bool single_ending)
{
    int first = 0;
    s->n_slices = 0;
    for (int i = 1; i <= w->n_tokens; i++) {
        const bool pair = i < w->n_tokens && is_stamp(s, w->tokens[i - 1]) && is_stamp(s, w->tokens[i]);
        if (!pair && !(i == w->n_tokens && single_ending))
            continue;
        s->slices[s->n_slices++] = (st_slice){.first = first,
                                              .end = i,
                                              .start = stamp_seconds(s, w, w->tokens[first]),
                                              .stop = stamp_seconds(s, w, w->tokens[i - 1])};
        first = i;
    }
    /* One timestamp at the end: nothing is spoken after it. Otherwise the unfinished segment is heard again. */
    s->advance = single_ending && w->complete ? w->size : stamp_frames(s, w->tokens[first - 1]);
}

static void cut_nowhere(st_slicer *s, const st_window *w)
{
    int last = w->n_tokens - 1;
    while (last >= 0 && !is_stamp(s, w->tokens[last]))
        last--;
    const bool stamped = last >= 0 && w->tokens[last] != s->vocab->timestamp;
    const double start = frame_seconds(w->seek);
    s->slices[0] = (st_slice){.first = 0,
                              .end = w->n_tokens,
                              .start = start,
                              .stop = stamped ? stamp_seconds(s, w, w->tokens[last]) : frame_seconds(w->seek + w->size)};
    s->n_slices = 1;
    const bool heard_to_stamp = !w->complete && stamped && last == w->n_tokens - 1;
    s->advance = heard_to_stamp ? stamp_frames(s, w->tokens[last]) : w->size;
    s->truncated = !w->complete && !heard_to_stamp;
}

static void cut(st_slicer *s, const st_window *w)
{
    const int n = w->n_tokens;
    const bool single_ending = n >= 2 && !is_stamp(s, w->tokens[n - 2]) && is_stamp(s, w->tokens[n - 1]);
    bool pairs = false;
    for (int i = 1; i < n; i++)
        pairs = pairs || (is_stamp(s, w->tokens[i - 1]) && is_stamp(s, w->tokens[i]));
    s->truncated = false;
    if (pairs)
        cut_at_pairs(s, w, single_ending);
    else
        cut_nowhere(s, w);
    if (s->advance <= 0 || s->advance > w->size)
        s->advance = w->size;
    if (w->whole) {
        const int end = s->slices[s->n_slices - 1].end;
        s->slices[0] = (st_slice){
            .first = 0, .end = end, .start = frame_seconds(w->seek), .stop = frame_seconds(w->seek + s->advance)};
        s->n_slices = 1;
    }
}

/* ---- text ---- */

static sotto_status join_bytes(st_slicer *s, const st_window *w, sotto_error *err)
{
    if (!st_grow(&s->offset, &s->offset_capacity, w->n_tokens + 1, sizeof *s->offset))
        return st_fail_memory(err, (uint64_t)w->n_tokens, "the text of a window");
    size_t total = 0;
    for (int i = 0; i < w->n_tokens; i++) {
        size_t n;
        const char *p = st_vocab_bytes(s->vocab, w->tokens[i], &n);
        s->offset[i] = total;
        if (w->tokens[i] >= s->vocab->eot)
            n = 0;
        if (!st_grow(&s->bytes, &s->byte_capacity, (int64_t)(total + n), 1))
            return st_fail_memory(err, total + n, "the text of a window");
        if (n)
            memcpy(s->bytes + total, p, n);
        total += n;
    }
    s->offset[w->n_tokens] = total;
    if (!st_grow(&s->inside, &s->inside_capacity, (int64_t)total + 1, 1))
        return st_fail_memory(err, total + 1, "the text of a window");
    for (size_t i = 0; i < total;) {
        const int n = st_utf8_next((const uint8_t *)s->bytes + i, total - i, NULL);
        const size_t step = n > 0 ? (size_t)n : 1;
        memset(s->inside + i, 1, step);
        s->inside[i] = 0;
        i += step;
    }
    s->inside[total] = 0;
    return SOTTO_OK;
}

/* End of the character around a position. */
static size_t whole_character(const st_slicer *s, size_t at)
{
    while (s->inside[at])
        at++;
    return at;
}

/* White space only. What is no character shows as U+FFFD and so is text. */
static bool is_blank(const st_slicer *s, size_t first, size_t end)
{
    const char *text = s->bytes + first;
    size_t n = end - first;
    if (n)
        st_strip(&text, &n);
    return n == 0;
}

/* Segments without length or text are dropped; one that only finishes the character before belongs to that one's segment. */
static void place_texts(st_slicer *s)
{
    int kept = 0;
    for (int i = 0; i < s->n_slices; i++) {
        st_slice c = s->slices[i];
        c.text_first = whole_character(s, s->offset[c.first]);
        c.text_end = whole_character(s, s->offset[c.end]);
        const bool finishes = c.text_first > s->offset[c.first] && s->offset[c.end] > s->offset[c.first];
        const bool blank = c.text_first >= c.text_end || is_blank(s, c.text_first, c.text_end);
        if (blank && finishes && kept > 0) {
            s->slices[kept - 1].end = c.end;
            s->slices[kept - 1].text_end = c.text_end;
            s->slices[kept - 1].stop = c.stop;
        } else if (!blank && c.start != c.stop) {
            s->slices[kept++] = c;
        }
    }
    s->n_slices = kept;
}

/* ---- the caller's limit ---- */

static int text_tokens(const st_slicer *s, const st_window *w, int first, int end)
{
    int n = 0;
    for (int i = first; i < end; i++)
        n += w->tokens[i] < s->vocab->eot;
    return n;
}

/* Cuts slice `at` into pieces of max_tokens text tokens, or a few more where a character would be torn. Returns the number of
 * pieces, which are at s->slices[at...]; there is room for one per token. */
static int cut_slice(st_slicer *s, const st_window *w, int at)
{
    const st_slice whole = s->slices[at];
    const int total = text_tokens(s, w, whole.first, whole.end);
    const double length = whole.stop - whole.start;
    int n = 0, before = 0, count = 0;
    st_slice piece = whole;
    for (int i = whole.first; i < whole.end; i++) {
        if (w->tokens[i] >= s->vocab->eot)
            continue;
        if (count >= w->max_tokens && !s->inside[s->offset[i]] && s->offset[i] > piece.text_first) {
            before += count;
            count = 0;
            piece.end = i;
            piece.text_end = s->offset[i];
            piece.stop = whole.start + length * before / total;
            s->slices[at + n++] = piece;
            piece = (st_slice){.first = i, .text_first = s->offset[i], .start = piece.stop};
        }
        count++;
    }
    piece.end = whole.end;
    piece.text_end = whole.text_end;
    piece.stop = whole.stop;
    s->slices[at + n++] = piece;
    return n;
}

static void cut_long(st_slicer *s, const st_window *w)
{
    for (int i = 0; i < s->n_slices;) {
        const int extra = text_tokens(s, w, s->slices[i].first, s->slices[i].end);
        /* Room for the pieces: the others go to the end of the array and come back behind them. */
        const int rest = s->n_slices - i - 1;
        memmove(s->slices + i + 1 + extra, s->slices + i + 1, (size_t)rest * sizeof *s->slices);
        const int n = cut_slice(s, w, i);
        memmove(s->slices + i + n, s->slices + i + 1 + extra, (size_t)rest * sizeof *s->slices);
        s->n_slices += n - 1;
        i += n;
    }
}

sotto_status st_slicer_run(st_slicer *s, const st_window *w, sotto_error *err)
{
    /* Every slice has a token, and while one is cut there is room for its tokens once more. */
    if (!st_grow(&s->slices, &s->slice_capacity, 2 * (int64_t)w->n_tokens + 2, sizeof *s->slices))
        return st_fail_memory(err, (uint64_t)w->n_tokens * sizeof *s->slices, "the segments of a window");
    cut(s, w);
    ST_TRY(join_bytes(s, w, err));
    place_texts(s);
    if (w->max_tokens > 0)
        cut_long(s, w);
    return SOTTO_OK;
}
