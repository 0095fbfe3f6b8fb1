#include "formats/convert_mix.h"

#include <stddef.h>
#include <string.h>

static const st_mix mixes[] = {
    {"f32", SOTTO_F32, 0, false},     {"f16", SOTTO_F16, 1, false},     {"bf16", SOTTO_BF16, 32, false},
    {"q4_0", SOTTO_Q4_0, 2, true},    {"q4_1", SOTTO_Q4_1, 3, true},    {"q5_0", SOTTO_Q5_0, 8, true},
    {"q5_1", SOTTO_Q5_1, 9, true},    {"q8_0", SOTTO_Q8_0, 7, true},    {"q2_k", SOTTO_Q2_K, 10, true},
    {"q3_k_s", SOTTO_Q3_K, 11, true}, {"q3_k_m", SOTTO_Q3_K, 12, true}, {"q3_k_l", SOTTO_Q3_K, 13, true},
    {"q4_k_s", SOTTO_Q4_K, 14, true}, {"q4_k_m", SOTTO_Q4_K, 15, true}, {"q5_k_s", SOTTO_Q5_K, 16, true},
    {"q5_k_m", SOTTO_Q5_K, 17, true}, {"q6_k", SOTTO_Q6_K, 18, true},   {"iq4_nl", SOTTO_IQ4_NL, 25, true},
};

/* Speech models get one type throughout under these names; the names of llama-quantize's mixes mean the same for both. */
static const st_mix plain_mixes[] = {
    {"q4_0", SOTTO_Q4_0, 2, false},  {"q4_1", SOTTO_Q4_1, 3, false},      {"q5_0", SOTTO_Q5_0, 8, false},
    {"q5_1", SOTTO_Q5_1, 9, false},  {"q8_0", SOTTO_Q8_0, 7, false},      {"q2_k", SOTTO_Q2_K, 10, false},
    {"q3_k", SOTTO_Q3_K, 11, false}, {"q4_k", SOTTO_Q4_K, 14, false},     {"q5_k", SOTTO_Q5_K, 16, false},
    {"q6_k", SOTTO_Q6_K, 18, false}, {"iq4_nl", SOTTO_IQ4_NL, 25, false},
};

/* When a rule holds. Layers are counted from 0. */
typedef enum condition {
    ALWAYS,
    FIRST_2,
    FIRST_4,
    FIRST_EIGHTH,
    FIRST_EIGHTH_WEIGHTED,
    FIRST_EIGHTH_UNWEIGHTED,
    FIRST_SIXTEENTH,
    OFTEN, /* the first and the last eighth, and every third layer between */
    SHARED /* 4 heads or more use the same keys */
} condition;

/* The first that holds decides. */
static const struct {
    const char *mix;
    st_role role;
    condition when;
    sotto_dtype dtype;
} rules[] = {
    {"q2_k", ST_ROLE_VALUE, SHARED, SOTTO_Q4_K},
    {"q2_k", ST_ROLE_VALUE, ALWAYS, SOTTO_Q3_K},
    {"q2_k", ST_ROLE_ATTENTION_OUT, ALWAYS, SOTTO_Q3_K},
    {"q2_k", ST_ROLE_DOWN, ALWAYS, SOTTO_Q3_K},
    {"q3_k_m", ST_ROLE_VALUE, FIRST_2, SOTTO_Q5_K},
    {"q3_k_m", ST_ROLE_VALUE, ALWAYS, SOTTO_Q4_K},
    {"q3_k_m", ST_ROLE_ATTENTION_OUT, ALWAYS, SOTTO_Q4_K},
    {"q3_k_m", ST_ROLE_DOWN, FIRST_SIXTEENTH, SOTTO_Q5_K},
    {"q3_k_m", ST_ROLE_DOWN, ALWAYS, SOTTO_Q4_K},
    {"q3_k_l", ST_ROLE_VALUE, ALWAYS, SOTTO_Q5_K},
    {"q3_k_l", ST_ROLE_ATTENTION_OUT, ALWAYS, SOTTO_Q5_K},
    {"q3_k_l", ST_ROLE_DOWN, ALWAYS, SOTTO_Q5_K},
    {"q4_k_s", ST_ROLE_VALUE, FIRST_4, SOTTO_Q5_K},
    {"q4_k_s", ST_ROLE_DOWN, FIRST_EIGHTH, SOTTO_Q5_K},
    {"q4_k_m", ST_ROLE_VALUE, OFTEN, SOTTO_Q6_K},
    {"q4_k_m", ST_ROLE_DOWN, OFTEN, SOTTO_Q6_K},
    {"q5_k_m", ST_ROLE_VALUE, OFTEN, SOTTO_Q6_K},
    {"q5_k_m", ST_ROLE_DOWN, OFTEN, SOTTO_Q6_K},
    {"iq4_nl", ST_ROLE_VALUE, SHARED, SOTTO_Q5_K},
    {"iq4_nl", ST_ROLE_DOWN, FIRST_EIGHTH_UNWEIGHTED, SOTTO_Q5_K},
    {"q4_0", ST_ROLE_DOWN, FIRST_EIGHTH_WEIGHTED, SOTTO_Q4_1},
    {"q5_0", ST_ROLE_DOWN, FIRST_EIGHTH_WEIGHTED, SOTTO_Q5_1},
};

static bool same_text(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if ((*a >= 'A' && *a <= 'Z' ? *a - 'A' + 'a' : *a) != *b)
            return false;
    return *a == *b;
}

const st_mix *st_mix_find(const char *name, bool language)
{
    static const char *const short_names[][2] = {{"q3_k", "q3_k_m"}, {"q4_k", "q4_k_m"}, {"q5_k", "q5_k_m"}};
    for (size_t i = 0; !language && i < sizeof plain_mixes / sizeof *plain_mixes; i++)
        if (same_text(name, plain_mixes[i].name))
            return &plain_mixes[i];
    for (size_t i = 0; language && i < sizeof short_names / sizeof *short_names; i++)
        if (same_text(name, short_names[i][0]))
            name = short_names[i][1];
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (same_text(name, mixes[i].name))
            return &mixes[i];
    return NULL;
}

int st_mix_file_type(sotto_dtype main)
{
    for (size_t i = 0; i < sizeof plain_mixes / sizeof *plain_mixes; i++)
        if (plain_mixes[i].main == main)
            return plain_mixes[i].file_type;
    for (size_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (mixes[i].main == main)
            return mixes[i].file_type;
    return -1;
}

static bool holds(condition when, st_place p, const st_mix_facts *facts)
{
    const bool eighth = p.layer < p.layers / 8;
    switch (when) {
    case ALWAYS:
        return true;
    case FIRST_2:
        return p.layer < 2;
    case FIRST_4:
        return p.layer < 4;
    case FIRST_EIGHTH:
        return eighth;
    case FIRST_EIGHTH_WEIGHTED:
        return eighth && facts->weighted;
    case FIRST_EIGHTH_UNWEIGHTED:
        return eighth && !facts->weighted;
    case FIRST_SIXTEENTH:
        return p.layer < p.layers / 16;
    case OFTEN:
        return eighth || p.layer >= 7 * p.layers / 8 || (p.layer - p.layers / 8) % 3 == 2;
    case SHARED:
        return facts->heads_per_key >= 4;
    }
    return false;
}

sotto_dtype st_mix_type(const st_mix *mix, st_place place, const st_mix_facts *facts, int64_t width)
{
    if (!mix->rules)
        return mix->main;
    if (place.role == ST_ROLE_OUTPUT || (place.role == ST_ROLE_EMBEDDING && facts->tied)) {
        const bool fits = width % sotto_dtype_block(mix->main) == 0;
        return fits && mix->main != SOTTO_Q8_0 ? SOTTO_Q6_K : SOTTO_Q8_0;
    }
    sotto_dtype dtype = mix->main;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i].mix, mix->name) == 0 && rules[i].role == place.role && holds(rules[i].when, place, facts)) {
            dtype = rules[i].dtype;
            break;
        }
    if (place.role == ST_ROLE_VALUE && facts->largest && (dtype == SOTTO_Q3_K || dtype == SOTTO_Q4_K))
        dtype = SOTTO_Q5_K; /* small there, because its heads are shared */
    return dtype;
}

sotto_dtype st_mix_fitting(sotto_dtype dtype, int64_t width)
{
    static const struct {
        sotto_dtype dtype, smaller;
    } instead[] = {
        {SOTTO_Q2_K, SOTTO_Q4_0}, {SOTTO_Q3_K, SOTTO_Q4_0}, {SOTTO_Q4_K, SOTTO_Q5_0},
        {SOTTO_Q5_K, SOTTO_Q5_1}, {SOTTO_Q6_K, SOTTO_Q8_0},
    };
    for (size_t i = 0; i < sizeof instead / sizeof *instead && width % sotto_dtype_block(dtype) != 0; i++)
        if (instead[i].dtype == dtype)
            dtype = instead[i].smaller;
    return width % sotto_dtype_block(dtype) == 0 ? dtype : SOTTO_F16;
}
