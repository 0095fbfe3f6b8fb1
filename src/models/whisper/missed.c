#include "models/whisper/missed.h"

#include <stdlib.h>
#include <string.h>

enum { FRAMES_PER_STAMP = 2, SECOND = 100 };

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Log-mel features are decades of power / 4: 0.1 is 4 dB. */
static const float REACH = 0.4f; /* below the loud frames nothing counts as voice */
static const float SWING = 0.2f; /* between loud and quiet frames in each second of speech */

typedef struct levels {
    float quiet, loud; /* the tenth of a piece that is quieter, the twentieth that is louder */
} levels;

static levels levels_of(st_voice *v, int64_t first, int64_t end)
{
    const int64_t n = end - first;
    memcpy(v->sorted, v->loudness + first, (size_t)n * sizeof *v->sorted);
    qsort(v->sorted, (size_t)n, sizeof *v->sorted, by_value);
    return (levels){v->sorted[n / 10], v->sorted[n - 1 - n / 20]};
}

void st_voice_from_mel(st_voice *v, const float *log_mel, int n_mels, int64_t n)
{
    memset(v->before, 0, sizeof v->before);
    v->per_token = ST_MISSED_PER_TOKEN;
    n = n < ST_MISSED_FRAMES ? n : ST_MISSED_FRAMES;
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int m = 0; m < n_mels; m++)
            sum += log_mel[i * n_mels + m];
        v->loudness[i] = sum / (float)n_mels;
    }
    if (n > 0) {
        const levels all = levels_of(v, 0, n);
        const float middle = (all.quiet + all.loud) / 2, low = all.loud - REACH;
        const float threshold = middle > low ? middle : low;
        for (int64_t first = 0; first < n; first += SECOND) {
            const int64_t end = first + SECOND < n ? first + SECOND : n;
            const levels piece = levels_of(v, first, end);
            for (int64_t i = first; i < end && piece.loud - piece.quiet > SWING; i++)
                v->before[i + 1] = v->loudness[i] > threshold;
        }
    }
    for (int i = 0; i < ST_MISSED_FRAMES; i++)
        v->before[i + 1] += v->before[i];
}

void st_voice_from_speech(st_voice *v, const st_speech *speech, int64_t seek, int64_t n)
{
    n = n < ST_MISSED_FRAMES ? n : ST_MISSED_FRAMES;
    memset(v->before, 0, sizeof v->before);
    v->per_token = ST_MISSED_PER_TOKEN_OF_SPEECH;
    for (int64_t s = 0; s < speech->n_spans; s++) {
        const int64_t first = speech->spans[s].first - seek, end = speech->spans[s].end - seek;
        for (int64_t i = first > 0 ? first : 0; i < end && i < n; i++)
            v->before[i + 1] = 1;
    }
    for (int64_t i = speech->open >= 0 && speech->open > seek ? speech->open - seek : 0; speech->open >= 0 && i < n; i++)
        v->before[i + 1] = 1;
    for (int i = 0; i < ST_MISSED_FRAMES; i++)
        v->before[i + 1] += v->before[i];
}

static bool voiced(const st_voice *v, int64_t frame)
{
    return v->before[frame + 1] > v->before[frame];
}

int64_t st_voice_begin(const st_voice *v, int64_t at, int64_t size)
{
    size = size < ST_MISSED_FRAMES ? size : ST_MISSED_FRAMES;
    if (at <= 0 || at >= size)
        return at;
    for (int64_t i = at, quiet = 0; i < size && i < at + ST_VOICE_TAIL + ST_VOICE_PAUSE; i++) {
        quiet = voiced(v, i) ? 0 : quiet + 1;
        if (quiet == ST_VOICE_PAUSE)
            return at; /* the end of a word that ends here belongs before it */
    }
    int64_t end = at, quiet = 0;
    for (int64_t i = at; i > 0 && quiet < ST_VOICE_PAUSE; i--) {
        quiet = voiced(v, i - 1) ? 0 : quiet + 1;
        if (quiet == 1)
            end = i;
        if (quiet == 0 && at - i >= ST_VOICE_REACH)
            return at;
    }
    return quiet < ST_VOICE_PAUSE ? at : end - ST_VOICE_PAUSE / 2;
}

static int64_t between(const st_voice *v, int64_t first, int64_t end)
{
    return end > first ? v->before[end] - v->before[first] : 0;
}

st_missed st_missed_count(const st_voice *v, const int32_t *tokens, int n, int32_t timestamp, int64_t size)
{
    st_missed m = {.last = -1};
    int64_t from = 0, n_text = 0;
    size = size < ST_MISSED_FRAMES ? size : ST_MISSED_FRAMES;
    for (int i = 0; i <= n; i++) {
        const bool over = i == n;
        if (!over && tokens[i] < timestamp) {
            n_text++;
            continue;
        }
        if (over && n > 0 && n_text == 0 && m.last >= 0) {
            m.rest = between(v, from, size);
            break;
        }
        int64_t at = over ? size : (int64_t)(tokens[i] - timestamp) * FRAMES_PER_STAMP;
        at = at < size ? at : size;
        const int64_t left_out = between(v, from, at) - n_text * v->per_token;
        m.inside += left_out > 0 ? left_out : 0;
        from = at > from ? at : from;
        m.last = over ? -1 : at;
        n_text = 0;
    }
    return m;
}
