/* resample.c: band-limited interpolation (J. O. Smith, "Digital Audio Resampling"): a Kaiser-windowed sinc, tabulated
 * finely and interpolated linearly between entries. Pass band to 0.92 of the lower Nyquist frequency, stop band below
 * -90 dB. Positions are kept as exact fractions, so that nothing drifts in ten hours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "audio_impl.h"
#include "base/status.h"

enum { CROSSINGS = 32, STEPS = 512, BLOCK = 4096 };

struct st_resampler {
    uint32_t rate;
    size_t half;   /* input samples on each side of a position */
    float *table;  /* [STEPS + 1, 2 * half]: the filter at fraction i / STEPS */
    float *buffer; /* [capacity] input; buffer[0] is input sample `first` */
    size_t capacity, filled;
    int64_t first; /* may be negative: zeros before the start */
    int64_t n_in, n_out;
    bool finished;
};

static double bessel_i0(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 60; k++) {
        term *= (x / (2 * k)) * (x / (2 * k));
        sum += term;
    }
    return sum;
}

sotto_status st_resampler_create(uint32_t rate, st_resampler **out, sotto_error *err)
{
    *out = NULL;
    const double ratio = rate > ST_AUDIO_RATE ? (double)rate / ST_AUDIO_RATE : 1.0;
    const size_t half = (size_t)ceil(CROSSINGS * ratio) + 1;
    st_resampler *r = calloc(1, sizeof *r);
    if (r) {
        r->rate = rate;
        r->half = half;
        r->capacity = 2 * half + BLOCK;
        r->table = malloc((STEPS + 1) * 2 * half * sizeof *r->table);
        r->buffer = calloc(r->capacity, sizeof *r->buffer);
    }
    if (!r || !r->table || !r->buffer) {
        st_resampler_free(r);
        return st_fail_memory(err, (STEPS + 1) * 2 * half * sizeof(float), "a resampler");
    }
    /* Kaiser's beta 9: stop band -90 dB; the transition of 32 crossings is then 0.16 of the lower Nyquist frequency. */
    const double pi = 3.14159265358979323846, beta = 9.0, cutoff = 0.92 / ratio;
    const double norm = bessel_i0(beta), width = CROSSINGS * ratio;
    for (size_t i = 0; i <= STEPS; i++) {
        double sum = 0;
        float *row = r->table + i * 2 * half;
        for (size_t k = 0; k < 2 * half; k++) {
            /* Input sample k of the row lies this far from the position. */
            const double t = (double)k - (double)(half - 1) - (double)i / STEPS;
            const double u = t / width;
            const double window = fabs(u) < 1 ? bessel_i0(beta * sqrt(1 - u * u)) / norm : 0;
            const double sinc = fabs(t) < 1e-12 ? 1 : sin(pi * cutoff * t) / (pi * cutoff * t);
            row[k] = (float)(cutoff * sinc * window);
            sum += (double)row[k];
        }
        for (size_t k = 0; k < 2 * half; k++) /* a constant stays what it is */
            row[k] = (float)((double)row[k] / sum);
    }
    r->first = -(int64_t)(half - 1);
    r->filled = half - 1;
    *out = r;
    return SOTTO_OK;
}

void st_resampler_free(st_resampler *r)
{
    if (!r)
        return;
    free(r->table);
    free(r->buffer);
    free(r);
}

size_t st_resampler_room(const st_resampler *r)
{
    return r->finished ? 0 : r->capacity - r->filled;
}

void st_resampler_feed(st_resampler *r, const float *in, size_t n)
{
    memcpy(r->buffer + r->filled, in, n * sizeof *in);
    r->filled += n;
    r->n_in += (int64_t)n;
}

void st_resampler_finish(st_resampler *r)
{
    r->finished = true;
}

size_t st_resampler_read(st_resampler *r, float *out, size_t cap)
{
    const int64_t total = (r->n_in * ST_AUDIO_RATE + r->rate - 1) / r->rate; /* at 768 kHz: 20 years before it wraps */
    const size_t taps = 2 * r->half;
    size_t done = 0;
    while (done < cap) {
        const int64_t scaled = r->n_out * (int64_t)r->rate;
        const int64_t at = scaled / ST_AUDIO_RATE; /* input sample at or before the position */
        const size_t start = (size_t)(at - (int64_t)(r->half - 1) - r->first);
        if (start + taps > r->filled) {
            if (!r->finished || r->n_out >= total)
                break;
            if (start + taps > r->capacity) { /* drop what is over, then zeros after the end fit */
                memmove(r->buffer, r->buffer + start, (r->filled - start) * sizeof *r->buffer);
                r->filled -= start;
                r->first += (int64_t)start;
                continue;
            }
            memset(r->buffer + r->filled, 0, (start + taps - r->filled) * sizeof *r->buffer);
            r->filled = start + taps;
        }
        if (r->finished && r->n_out >= total)
            break;
        const double step = (double)(scaled % ST_AUDIO_RATE) / ST_AUDIO_RATE * STEPS;
        const size_t i = (size_t)step;
        const double f = step - (double)i;
        const float *a = r->table + i * taps, *b = a + taps, *x = r->buffer + start;
        double low = 0, high = 0;
        for (size_t k = 0; k < taps; k++) {
            low += (double)(x[k] * a[k]);
            high += (double)(x[k] * b[k]);
        }
        out[done++] = (float)(low + f * (high - low));
        r->n_out++;
    }
    const int64_t next = r->n_out * (int64_t)r->rate / ST_AUDIO_RATE - (int64_t)(r->half - 1);
    int64_t over = next - r->first;
    if (over > (int64_t)r->filled)
        over = (int64_t)r->filled;
    if (over > 0 && !r->finished) {
        memmove(r->buffer, r->buffer + over, (r->filled - (size_t)over) * sizeof *r->buffer);
        r->filled -= (size_t)over;
        r->first += over;
    }
    return done;
}
