/* attention_v3.c: attention in words (contracts in cpu_kernels.h) for x86-64-v3. A product is one instruction for two numbers of 8 or
 * 16 columns, and an addition: three units share these where f32 has two. */
#include "../vec_v3.h"

#include "backends/cpu/cpu_kernels.h"
#include "../math_body.h"

enum {
    ROWS = 6,                     /* of a product tile, with 16 columns */
    STEP = 64,                    /* bytes of such columns, two numbers of each */
    ROW = 2 * ST_CPU_WORDS_MAX_D, /* bytes from row to row of queries, and of probabilities */
    MOST = 4095,                  /* of a query or a key: 128 products of two fit 31 bits */
    MOST_VALUE = 1023,            /* of a value: 128 products of one and a probability do */
    MOST_POWER = 16383
};
_Static_assert(ST_CPU_WORDS_GROUP == ST_CPU_WORDS_MAX_D, "rows of queries and of probabilities are alike");

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

/* 16 numbers as words in their order; what times 0 is no number becomes one. */
INL vi words_of(const float *x, vf factor)
{
    const vi words = _mm256_packs_epi32(_mm256_cvtps_epi32(v_mul(v_load(x), factor)),
                                        _mm256_cvtps_epi32(v_mul(v_load(x + VL), factor)));
    return _mm256_permute4x64_epi64(words, 0xd8);
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
    const int end = (g->n + 15) / 16 * 16;
    for (int key = 0; key < end; key += VL) {
        float factor[VL] = {0};
        for (int i = 0; i < VL; i++) {
            g->key_scale[key + i] = 0;
            if (key + i < g->n)
                factor[i] = row_factor(x + (key + i) * stride, g->d, MOST, g->key_scale + key + i);
        }
        uint8_t *to = (uint8_t *)g->keys + key / 16 * g->d / 2 * STEP + key % 16 * 4;
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
    const int end = (g->n + 15) / 16 * 16;
    for (int c = 0; c < g->d; c += VL) {
        vi most = vi_set1(0);
        for (int i = 0; i < g->n; i++)
            most = largest_bits(most, v_load(x + i * stride + c));
        float of[VL], factor[VL];
        v_store(of, vi_as_float(most));
        for (int i = 0; i < VL; i++)
            factor[i] = word_factor(of[i], MOST_VALUE, g->value_scale + c + i);
        uint8_t *const to = (uint8_t *)g->values + c / 16 * (ST_CPU_WORDS_GROUP / 2) * STEP + c % 16 * 4;
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

/* c += the products of a row's two words and those of 16 columns: in one piece, since of sixteen registers two are left. */
INL void add_products(vi c[2], const uint8_t *two, vi w0, vi w1)
{
    vi x, product;
    __asm__("vpbroadcastd %6, %2\n\t"
            "vpmaddwd %4, %2, %3\n\t"
            "vpaddd %3, %0, %0\n\t"
            "vpmaddwd %5, %2, %2\n\t"
            "vpaddd %2, %1, %1"
            : "+x"(c[0]), "+x"(c[1]), "=&x"(x), "=&x"(product)
            : "x"(w0), "x"(w1), "m"(*(const uint8_t(*)[4])two));
}

/* Six rows times 16 columns. */
INL void word_products(const uint8_t *a, const uint8_t *b, int pairs, vi c[ROWS][2])
{
    UNROLL for (int r = 0; r < ROWS; r++) c[r][0] = c[r][1] = vi_set1(0);
    for (int i = 0; i < pairs; i += 4, a += 16, b += 4 * STEP) {
        UNROLL for (int k = 0; k < 4; k++)
        {
            const vi w0 = vi_load(b + k * STEP), w1 = vi_load(b + k * STEP + 32);
            UNROLL for (int r = 0; r < ROWS; r++) add_products(c[r], a + r * ROW + 4 * k, w0, w1);
        }
    }
}

static __attribute__((noinline)) void score(const uint8_t *q, const uint8_t *keys, int d, const float *scale,
                                            float *scores)
{
    vi c[ROWS][2];
    word_products(q, keys, d / 2, c);
    UNROLL for (int v = 0; v < 2; v++)
    {
        const vf by = v_load(scale + v * VL);
        UNROLL for (int r = 0; r < ROWS; r++)
            v_store(scores + r * ST_CPU_WORDS_GROUP + v * VL, v_mul(vi_float(c[r][v]), by));
    }
}

static __attribute__((noinline)) void weigh(const uint8_t *p, const uint8_t *values, int pairs, const float *scale,
                                            const float *factor, const float *rescale, float *out)
{
    vi c[ROWS][2];
    word_products(p, values, pairs, c);
    UNROLL for (int v = 0; v < 2; v++)
    {
        const vf by = v_load(scale + v * VL);
        UNROLL for (int r = 0; r < ROWS; r++)
        {
            float *const sum = out + r * 16 + v * VL;
            v_store(sum, v_fma(vi_float(c[r][v]), v_mul(by, v_set1(factor[r])), v_mul(v_load(sum), v_set1(rescale[r]))));
        }
    }
}

/* ---- powers of two ---- */

/* The largest of each of eight lanes of a row's scores. */
INL vf maxima(const float *scores, int n)
{
    vf a = v_load(scores), b = v_load(scores + VL);
    for (int i = 2 * VL; i < n; i += 2 * VL) {
        a = v_max(a, v_load(scores + i));
        b = v_max(b, v_load(scores + i + VL));
    }
    return v_max(a, b);
}

/* 16383 * 2^(scale * below) as integers, below <= 0; 0 where it is below `least`, or NaN. Off by 7.5e-5 of itself at most. */
INL vi power(vf below, vf scale, vf least)
{
    const vf magic = v_set1(12582912.0f), x = v_max(below, least), moved = v_fma(x, scale, magic);
    const vf f = _mm256_fmsub_ps(x, scale, v_sub(moved, magic));
    vf p = v_fma(f, v_set1(0.05517167f * MOST_POWER), v_set1(0.24261112f * MOST_POWER));
    p = v_fma(p, f, v_set1(0.69326099f * MOST_POWER));
    p = v_fma(p, f, v_set1(0.99992807f * MOST_POWER));
    return _mm256_cvtps_epi32(vi_as_float(vi_add(v_as_int(p), vi_shl(v_as_int(moved), 23))));
}

/* Probabilities of a row's n scores as words, and their sum by lanes. */
static __attribute__((noinline)) vi powers(const float *scores, int n, float max, float scale, uint8_t *p)
{
    const vf top = v_set1(max), by = v_set1(scale);
    const vf least = v_set1(-24.0f / scale); /* far below half of a word, still a power of two */
    vi sum = vi_set1(0);
    for (int i = 0; i < n; i += 2 * VL) {
        const vi words = _mm256_packs_epi32(power(v_sub(v_load(scores + i), top), by, least),
                                            power(v_sub(v_load(scores + i + VL), top), by, least));
        _mm256_storeu_si256((vi *)(void *)(p + 2 * i), words);
        sum = vi_add(sum, _mm256_madd_epi16(words, _mm256_set1_epi16(1)));
    }
    return sum;
}

/* Probabilities of a group are relative to its own largest score; `factor` makes them those to the largest so far. */
static void group_powers(const st_cpu_word_tile *t, const st_cpu_word_group *g, float *factor, float *rescale)
{
    const int n = (g->n + 15) / 16 * 16;
    vf not_a_number = v_zero(); /* where a key is none; otherwise it stays 0 */
    for (int key = 0; key < n; key += VL)
        not_a_number = v_fma(v_load(g->key_scale + key), v_zero(), not_a_number);
    float lanes[VL * VL] = {0}, top[ST_CPU_WORDS_ROWS];
    for (int r = 0; r < t->rows; r += VL) {
        const int rows = t->rows - r < VL ? t->rows - r : VL;
        for (int i = 0; i < rows; i++)
            v_store(lanes + i * VL, maxima(t->scores + (r + i) * ST_CPU_WORDS_GROUP, n));
        v_hmaxs(lanes, top + r);
        const vf here = v_load(top + r), before = v_load(t->max + r), most = v_max(before, here),
                 scale = v_load(t->q_scale + r);
        v_store(factor + r, v_exp2(v_mul(v_sub(here, most), scale)));
        v_store(rescale + r, v_exp2(v_mul(v_sub(before, most), scale)));
        v_store(t->max + r, most);
    }
    for (int r = 0; r < t->rows; r++) {
        const vi sum = powers(t->scores + r * ST_CPU_WORDS_GROUP, n, top[r], t->q_scale[r], (uint8_t *)t->p + r * ROW);
        const vf so_far = v_fma(v_load(t->sum + r * VL), v_set1(rescale[r]), not_a_number);
        v_store(t->sum + r * VL, v_fma(vi_float(sum), v_set1(factor[r]), so_far));
    }
}

static void add_group(const st_cpu_word_tile *t, const st_cpu_word_group *g)
{
    const int n = (g->n + 15) / 16 * 16;
    float factor[ST_CPU_WORDS_ROWS], rescale[ST_CPU_WORDS_ROWS];
    for (int r = 0; r < t->rows; r += ROWS)
        for (int key = 0; key < n; key += 16)
            score((const uint8_t *)t->q + r * ROW, (const uint8_t *)g->keys + key / 16 * t->d / 2 * STEP, t->d,
                  g->key_scale + key, t->scores + r * ST_CPU_WORDS_GROUP + key);
    for (int r = 0; g->n < n && r < t->rows; r++)
        for (int key = g->n; key < n; key++)
            t->scores[r * ST_CPU_WORDS_GROUP + key] = -__builtin_inff();
    group_powers(t, g, factor, rescale);
    for (int c = 0; c < t->d; c += 16)
        for (int r = 0; r < t->rows; r += ROWS)
            weigh((const uint8_t *)t->p + r * ROW, (const uint8_t *)g->values + c / 16 * (ST_CPU_WORDS_GROUP / 2) * STEP,
                  n / 2, g->value_scale + c, factor + r, rescale + r, t->out + c * t->rows + r * 16);
}

void st_cpu_fill_attention_v3(st_cpu_kernels *k)
{
    k->words = (st_cpu_words){ROWS, pack_queries, pack_keys, pack_values, add_group};
}
