/* attention_v3.c: attention in words (contracts in cpu_kernels.h) for x86-64-v3. A product is one instruction for two numbers of 8 or
 * 16 columns, and an addition: three units share these where f32 has two. */
#include "../vec_v3.h"

#include "backends/cpu/cpu_kernels.h"
#include "../math_body.h"

#include "word_products.h"

enum {
    ROWS = WORD_ROWS,             /* of a product tile, with 32 columns */
    STEP = 128,                   /* bytes of such columns, two numbers of each */
    ROW = 2 * ST_CPU_WORDS_MAX_D, /* bytes from row to row of queries, and of probabilities */
    TOGETHER = 2,                 /* vectors of probabilities that are made at once */
    MOST = 4095,                  /* of a query or a key: 128 products of two fit 31 bits */
    MOST_VALUES = 65400,          /* of a column of values in all, before they are rounded */
    MOST_POWER = 32730
};
_Static_assert(ST_CPU_WORDS_GROUP == ST_CPU_WORDS_MAX_D, "rows of queries and of probabilities are alike");
_Static_assert((MOST_VALUES + ST_CPU_WORDS_GROUP / 2 + 1ll) * MOST_POWER < 1ll << 31, "weighted values fit 31 bits");

/* Position i of 16 words, as _mm256_packs_epi32 lays out two vectors, is number packed_place(i). */
INL int packed_place(int i)
{
    return i / 8 * 4 + i % 4 + (i % 8 < 4 ? 0 : 8);
}

/* ---- packing ---- */

/* The largest magnitude as bits: those of numbers that are not finite are above all others. */
INL vi largest_bits(vi most, vf x)
{
    return _mm256_max_epi32(most, vi_and(v_as_int(x), vi_set1(0x7fffffff)));
}

INL float lane_max(vi most)
{
    __m128i s = _mm_max_epi32(_mm256_castsi256_si128(most), _mm256_extracti128_si256(most, 1));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtss_f32(_mm_castsi128_ps(s));
}

/* What numbers up to `most` are multiplied with to be words up to `limit`, and what a word stands for: NaN where they are no
 * numbers. Where they are as good as nothing all words are 0. */
INL float word_factor(float most, int limit, float *scale)
{
    const bool some = most >= 1e-30f && most < __builtin_inff();
    *scale = some ? most / (float)limit : most < 1e-30f ? 1.0f : __builtin_nanf("");
    return some ? (float)limit / most : 0.0f;
}

INL float row_factor(const float *x, int d, int limit, float *scale)
{
    vi most = vi_set1(0);
    for (int i = 0; i < d; i += VL)
        most = largest_bits(most, v_load(x + i));
    return word_factor(lane_max(most), limit, scale);
}

/* 16 numbers times a factor */
INL vi words_of(const float *x, vf factor)
{
    return in_words(v_mul(v_load(x), factor), v_mul(v_load(x + VL), factor));
}

static void pack_queries(const float *x, ptrdiff_t stride, float scale, int n, const st_cpu_word_tile *t)
{
    for (int r = 0; r < t->rows; r++) {
        const float *const from = x + (r < n ? r : n - 1) * stride;
        uint8_t *const to = (uint8_t *)t->q + r * ROW;
        float factor = row_factor(from, t->d, MOST, t->q_scale + r);
        const float in_scores = t->q_scale[r] * __builtin_fabsf(scale);
        t->q_scale[r] = in_scores < 1e-30f ? 1e-30f : in_scores; /* never 0: hidden keys are far below the others */
        factor = scale < 0 ? -factor : factor;
        for (int i = 0; i < t->d; i += 2 * VL)
            _mm256_storeu_si256((vi *)(void *)(to + 2 * i), words_of(from + i, v_set1(factor)));
    }
}

static void pack_keys(const float *x, ptrdiff_t stride, const st_cpu_word_group *g)
{
    const int end = (g->n + 31) / 32 * 32;
    for (int key = 0; key < end; key += VL) {
        float factor[VL] = {0};
        for (int i = 0; i < VL; i++) {
            g->key_scale[key + i] = 0;
            if (key + i < g->n)
                factor[i] = row_factor(x + (key + i) * stride, g->d, MOST, g->key_scale + key + i);
        }
        uint8_t *to = (uint8_t *)g->keys + key / 32 * g->d / 2 * STEP + key % 32 * 4;
        for (int c = 0; c < g->d; c += 16, to += 8 * STEP) {
            vf r[VL]; /* eight pairs of a key */
            UNROLL for (int i = 0; i < VL; i++) r[i] =
                key + i < g->n ? vi_as_float(words_of(x + (key + i) * stride + c, v_set1(factor[i]))) : v_zero();
            v_transpose(r);
            UNROLL for (int i = 0; i < VL; i++) v_store((float *)(void *)(to + i * STEP), r[i]);
        }
    }
}

/* Keys lie where powers() leaves their probabilities. */
static void pack_values(const float *x, ptrdiff_t stride, const st_cpu_word_group *g)
{
    const int end = (g->n + 31) / 32 * 32;
    for (int c = 0; c < g->d; c += VL) {
        const vf magnitude = vi_as_float(vi_set1(0x7fffffff));
        vf sum = v_zero(), most = v_zero();
        for (int i = 0; i < g->n; i++) {
            const vf value = _mm256_and_ps(v_load(x + i * stride + c), magnitude);
            sum = v_add(sum, value);
            most = v_max(most, value);
        }
        float of[VL], factor[VL];
        v_store(of, v_max(v_add(most, most), sum)); /* one value is a word; NaN, which the sum is, comes second */
        for (int i = 0; i < VL; i++)
            factor[i] = word_factor(of[i], MOST_VALUES, g->value_scale + c + i);
        uint8_t *const to = (uint8_t *)g->values + c / 32 * (ST_CPU_WORDS_GROUP / 2) * STEP + c % 32 * 4;
        for (int i = 0; i < end; i += 2) {
            vi pair[2];
            UNROLL for (int j = 0; j < 2; j++)
            {
                const int key = i / 16 * 16 + packed_place(i % 16 + j);
                pair[j] =
                    key < g->n ? _mm256_cvtps_epi32(v_mul(v_load(x + key * stride + c), v_load(factor))) : vi_set1(0);
            }
            _mm256_storeu_si256((vi *)(void *)(to + i / 2 * STEP),
                                _mm256_blend_epi16(pair[0], vi_shl(pair[1], 16), 0xaa));
        }
    }
}

/* ---- products ---- */

static __attribute__((noinline)) void score(const uint8_t *q, const uint8_t *keys, int d, const float *scale,
                                            float *scores)
{
    vi c[ROWS][4];
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < 4; v++) c[r][v] = vi_set1(0);
    for (int i = 0; i < d; i += 16, q += 32, keys += 8 * STEP)
        word_products(ROWS, c, q, ROW, keys);
    UNROLL for (int v = 0; v < 4; v++)
    {
        const vf by = v_load(scale + v * VL);
        UNROLL for (int r = 0; r < ROWS; r++)
            v_store(scores + r * ST_CPU_WORDS_GROUP + v * VL, v_mul(vi_float(c[r][v]), by));
    }
}

/* Bit i: some of the probabilities of three rows for keys 16 i to 16 i + 15 is not 0. */
INL unsigned some_of(const uint8_t *p)
{
    vi all[8];
    UNROLL for (int i = 0; i < 8; i++) all[i] =
        vi_or(vi_or(vi_load(p + 32 * i), vi_load(p + 32 * i + ROW)), vi_load(p + 32 * i + 2 * ROW));
    UNROLL for (int i = 0; i < 4; i++) all[i] = _mm256_packs_epi16(all[2 * i], all[2 * i + 1]);
    UNROLL for (int i = 0; i < 2; i++) all[i] = _mm256_packus_epi16(all[2 * i], all[2 * i + 1]);
    /* the first halves of all, and the second ones */
    const vi halves =
        vi_or(_mm256_permute2x128_si256(all[0], all[1], 0x20), _mm256_permute2x128_si256(all[0], all[1], 0x31));
    return (unsigned)_mm256_movemask_ps(vi_as_float(_mm256_cmpeq_epi32(halves, vi_set1(0)))) ^ 0xff;
}

/* out [2][rows][16] */
static __attribute__((noinline)) void weigh(const uint8_t *p, const uint8_t *values, unsigned some, const float *scale,
                                            const float *rescale, float *out, int rows)
{
    vi c[ROWS][4];
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < 4; v++) c[r][v] = vi_set1(0);
    for (; some != 0; some &= some - 1) {
        const int i = __builtin_ctz(some);
        word_products(ROWS, c, p + i * 32, ROW, values + i * 8 * STEP);
    }
    UNROLL for (int v = 0; v < 4; v++)
    {
        const vf by = v_load(scale + v * VL);
        float *const sums = out + v / 2 * rows * 16 + v % 2 * VL;
        UNROLL for (int r = 0; r < ROWS; r++)
            v_store(sums + r * 16, v_fma(vi_float(c[r][v]), by, v_mul(v_load(sums + r * 16), v_set1(rescale[r]))));
    }
}

/* ---- powers of two ---- */

/* The largest of each of eight lanes of a row's scores. */
INL vf maxima(const float *scores, int n)
{
    vf m[4];
    UNROLL for (int i = 0; i < 4; i++) m[i] = v_load(scores + i * VL);
    for (int at = 4 * VL; at < n; at += 4 * VL)
        UNROLL for (int i = 0; i < 4; i++) m[i] = v_max(m[i], v_load(scores + at + i * VL));
    return v_max(v_max(m[0], m[1]), v_max(m[2], m[3]));
}

/* Probabilities are relative to the largest score so far; `rescale` makes earlier ones that. Bit r of what is returned: all those of
 * row r are 0. */
static __attribute__((noinline)) unsigned find_largest(const st_cpu_word_tile *t, int n, float *rescale)
{
    unsigned none = 0;
    for (int r = 0; r < t->rows; r += VL) {
        float lanes[VL * VL], top[VL];
        for (int i = 0; i < VL; i++)
            v_store(lanes + i * VL, maxima(t->scores + (r + i < t->rows ? r + i : t->rows - 1) * ST_CPU_WORDS_GROUP, n));
        v_hmaxs(lanes, top);
        const vf here = v_load(top), before = v_load(t->max + r), most = v_max(before, here),
                 scale = v_load(t->q_scale + r);
        v_store(t->max + r, most);
        v_store(rescale + r, v_exp2(v_mul(v_sub(before, most), scale)));
        const vf far = _mm256_cmp_ps(v_mul(v_sub(here, most), scale), v_set1(-16), _CMP_LT_OQ);
        none |= (unsigned)_mm256_movemask_ps(far) << r;
    }
    return none;
}

/* Constants that are read where they are used: there are no registers for them. */
#define ALL(x)                                         \
    {                                                  \
        x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x \
    }
typedef struct power_constants {
    int16_t cubic[4][16], twice[16], less[16], one[16];
    uint8_t table[32];
} power_constants;
static const power_constants power_k __attribute__((aligned(32))) = {
    {ALL(16371), ALL(11392), ALL(3705), ALL(1274)},
    ALL(257),
    ALL(-24 * 256),
    ALL(1),
    {1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0}};
#undef ALL

/* 16 scores as words below 0; those that are far below the largest, or NaN, become -32768. */
INL vi below(const float *scores, vf top, vf units)
{
    const vf less = v_set1(-1);
    return _mm256_packs_epi32(_mm256_cvtps_epi32(v_fma(v_sub(top, v_load(scores)), units, less)),
                              _mm256_cvtps_epi32(v_fma(v_sub(top, v_load(scores + VL)), units, less)));
}

/* 2^15 * 2^(x / 2048) of words x < 0 as words, 32730 at most, off by 1e-4 of itself and a half; 0 for -32768. Some at once, step by
 * step: each alone would wait for itself most of the time. */
INL void power(vi x[TOGETHER], const power_constants *k)
{
    vi by[TOGETHER], p[TOGETHER];
    /* 2^(octave + 16) in two bytes, of which 2^15 has a sign: the index of a high one is 8 less, and where it is below 0, the byte is 0 */
    UNROLL for (int i = 0; i < TOGETHER; i++) by[i] = _mm256_srli_epi16(x[i], 11);
    UNROLL for (int i = 0; i < TOGETHER; i++) x[i] = _mm256_slli_epi16(x[i], 5);
    UNROLL for (int i = 0; i < TOGETHER; i++) by[i] = _mm256_mullo_epi16(by[i], vi_load(k->twice));
    UNROLL for (int i = 0; i < TOGETHER; i++) p[i] = _mm256_mulhi_epu16(x[i], vi_load(k->cubic[3]));
    UNROLL for (int i = 0; i < TOGETHER; i++) by[i] = _mm256_add_epi16(by[i], vi_load(k->less));
    UNROLL for (int i = 0; i < TOGETHER; i++) p[i] = _mm256_add_epi16(p[i], vi_load(k->cubic[2]));
    UNROLL for (int i = 0; i < TOGETHER; i++) p[i] = _mm256_mulhi_epu16(p[i], x[i]);
    UNROLL for (int i = 0; i < TOGETHER; i++) by[i] = _mm256_shuffle_epi8(vi_load(k->table), by[i]);
    UNROLL for (int i = 0; i < TOGETHER; i++) p[i] = _mm256_add_epi16(p[i], vi_load(k->cubic[1]));
    UNROLL for (int i = 0; i < TOGETHER; i++) p[i] = _mm256_mulhi_epu16(p[i], x[i]);
    UNROLL for (int i = 0; i < TOGETHER; i++) p[i] = _mm256_add_epi16(p[i], vi_load(k->cubic[0]));
    UNROLL for (int i = 0; i < TOGETHER; i++) x[i] = _mm256_abs_epi16(_mm256_mulhrs_epi16(p[i], by[i]));
}

/* Probabilities of n scores as words, and their sum by lanes. */
INL vi powers(const float *scores, int n, vf top, vf units, uint8_t *p)
{
    vi sum = vi_set1(0);
    for (int i = 0; i < n; i += TOGETHER * 2 * VL) {
        const power_constants *k = &power_k;
        __asm__("" : "+r"(k)); /* compilers would load them before, and have no registers for them */
        vi x[TOGETHER];
        UNROLL for (int j = 0; j < TOGETHER; j++) x[j] = below(scores + i + j * 2 * VL, top, units);
        power(x, k);
        UNROLL for (int j = 0; j < TOGETHER; j++)
        {
            _mm256_storeu_si256((vi *)(void *)(p + 2 * i + 32 * j), x[j]);
            sum = vi_add(sum, _mm256_madd_epi16(x[j], vi_load(k->one)));
        }
    }
    return sum;
}

static __attribute__((noinline)) void group_powers(const st_cpu_word_tile *t, const st_cpu_word_group *g, int n,
                                                   unsigned none, const float *rescale)
{
    vf not_a_number = v_zero(); /* where a key is none; otherwise it stays 0 */
    for (int key = 0; key < n; key += VL)
        not_a_number = v_fma(v_load(g->key_scale + key), v_zero(), not_a_number);
    for (int r = 0; r < t->rows; r++) {
        uint8_t *const p = (uint8_t *)t->p + r * ROW;
        vi sum = vi_set1(0);
        if (none >> r & 1)
            for (int i = 0; i < ROW; i += 32)
                _mm256_storeu_si256((vi *)(void *)(p + i), sum);
        else
            sum = powers(t->scores + r * ST_CPU_WORDS_GROUP, n, v_set1(t->max[r]), v_set1(-2048 * t->q_scale[r]), p);
        const vf so_far = v_fma(v_load(t->sum + r * VL), v_set1(rescale[r]), not_a_number);
        v_store(t->sum + r * VL, v_add(vi_float(sum), so_far));
    }
}

static void add_group(const st_cpu_word_tile *t, const st_cpu_word_group *g)
{
    const int n = (g->n + 31) / 32 * 32;
    float rescale[ST_CPU_WORDS_ROWS];
    for (int key = 0; key < n; key += 32)
        for (int r = 0; r < t->rows; r += ROWS)
            score((const uint8_t *)t->q + r * ROW, (const uint8_t *)g->keys + key / 32 * t->d / 2 * STEP, t->d,
                  g->key_scale + key, t->scores + r * ST_CPU_WORDS_GROUP + key);
    for (int r = 0; g->n < n && r < t->rows; r++)
        for (int key = g->n; key < n; key++)
            t->scores[r * ST_CPU_WORDS_GROUP + key] = -__builtin_inff();
    const unsigned none = find_largest(t, n, rescale);
    group_powers(t, g, n, none, rescale);
    for (int r = 0; r < t->rows; r += ROWS) {
        const uint8_t *const p = (const uint8_t *)t->p + r * ROW;
        const unsigned some = some_of(p) & ((1u << n / 16) - 1);
        for (int c = 0; c < t->d; c += 32)
            weigh(p, (const uint8_t *)g->values + c / 32 * (ST_CPU_WORDS_GROUP / 2) * STEP, some, g->value_scale + c,
                  rescale + r, t->out + c * t->rows + r * 16, t->rows);
    }
}

void st_cpu_fill_attention_v3(st_cpu_kernels *k)
{
    k->words = (st_cpu_words){ROWS, pack_queries, pack_keys, pack_values, add_group};
}
