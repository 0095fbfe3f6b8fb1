/* A JSON schema from any bytes. What must hold: a refusal has a sentence; a grammar that comes out is one, the same each time;
 * and what a walk through it writes is JSON. */
#include <string.h>

#include <jansson.h>

#include "fuzz/fuzz.h"
#include "models/common/grammar_match.h"
#include "models/common/rng.h"

enum { MAX_SCHEMA = 4000, MAX_TEXT = 2000 };

static void walk(const sotto_grammar *g, uint64_t seed)
{
    static const char closing[] = "\"]},";
    char text[MAX_TEXT];
    st_matcher *m;
    st_rng rng;
    sotto_error err;
    st_rng_seed(&rng, seed);
    if (st_matcher_create(g, &m, &err) != SOTTO_OK)
        return;
    st_grammar_place at = st_matcher_start(m);
    size_t n = 0;
    for (; n < sizeof text; n++) {
        uint8_t allowed[256];
        int n_allowed = 0, chosen = -1;
        for (int b = 0; b < 256; b++) {
            st_grammar_place next = at;
            if (st_matcher_step(m, &next, (uint8_t)b, &err) == SOTTO_OK && next.state >= 0)
                allowed[n_allowed++] = (uint8_t)b;
        }
        const bool may_end = st_matcher_may_end(m, at);
        if (n_allowed == 0 || (may_end && (n > 30 || st_rng_uniform(&rng) < 0.5))) {
            FUZZ_CHECK(may_end);
            break;
        }
        for (const char *c = closing; *c && n > 30 && chosen < 0 && st_rng_uniform(&rng) < 0.8; c++)
            if (memchr(allowed, *c, (size_t)n_allowed))
                chosen = (uint8_t)*c;
        if (chosen < 0)
            chosen = allowed[(int)(st_rng_uniform(&rng) * n_allowed)];
        text[n] = (char)chosen;
        if (st_matcher_step(m, &at, (uint8_t)chosen, &err) != SOTTO_OK)
            break;
    }
    if (n < sizeof text && st_matcher_may_end(m, at)) {
        json_error_t why;
        json_t *value = json_loadb(text, n, JSON_DECODE_ANY, &why);
        FUZZ_CHECK(value || json_error_code(&why) == json_error_numeric_overflow ||
                   json_error_code(&why) == json_error_null_character ||
                   json_error_code(&why) == json_error_null_byte_in_key);
        json_decref(value);
    }
    st_matcher_free(m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sotto_error err = {0};
    size_t n, again;
    if (size > MAX_SCHEMA)
        return 0;
    const sotto_status status = sotto_grammar_from_json_schema((const char *)data, size, NULL, 0, &n, &err);
    if (status != SOTTO_OK) {
        FUZZ_CHECK(n == 0 && (status == SOTTO_E_FORMAT || status == SOTTO_E_UNSUPPORTED) && err.text[0]);
        return 0;
    }
    char *gbnf = malloc(n);
    if (!gbnf)
        abort();
    FUZZ_CHECK(sotto_grammar_from_json_schema((const char *)data, size, gbnf, n, &again, &err) == SOTTO_OK && again == n);
    sotto_grammar *g;
    FUZZ_CHECK(sotto_grammar_create(gbnf, n, NULL, &g, &err) == SOTTO_OK);
    walk(g, size + data[size / 2]);
    sotto_grammar_free(g);
    free(gbnf);
    return 0;
}
