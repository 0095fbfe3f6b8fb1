/* A state of a sequence from any bytes, as they are and with mark and checksum made right, so that what lies behind these
 * checks is reached. What is accepted can be decoded further. */
#include <string.h>
#include <zlib.h>

#include "fuzz/fuzz.h"
#include "models/llama/session_impl.h"
#include "unit/llama_support.h"

enum { MARK_AT = 32, MARK_SIZE = 8, CRC_SIZE = 4, LEAST = MARK_AT + MARK_SIZE + CRC_SIZE };

static sotto_llama_session *the_session(void)
{
    static sotto_llama_session *s;
    if (!s) {
        const toy_recipe r = {0};
        sotto_llama_session_options o;
        sotto_llama_session_options_default(&o);
        o.n_ctx = 16;
        o.n_seq = 2;
        o.cache_k = o.cache_v = SOTTO_F16;
        sotto_error err = {0};
        if (sotto_llama_session_create(toy_must_load(&r), &o, &s, &err) != SOTTO_OK)
            fprintf(stderr, "%s\n", err.text);
        FUZZ_CHECK(s != NULL);
    }
    return s;
}

static void take(sotto_llama_session *s, const uint8_t *data, size_t n)
{
    sotto_error err = {0};
    const sotto_status status = st_llama_state_take(s, 1, data, n, &err);
    FUZZ_CHECK((status == SOTTO_OK) == (err.text[0] == 0));
    if (status == SOTTO_OK) {
        const int64_t length = sotto_llama_seq_length(s, 1);
        const int32_t token = 4;
        for (int64_t i = 0; i < length; i++)
            FUZZ_CHECK(sotto_llama_seq_tokens(s, 1)[i] >= 0 && sotto_llama_seq_tokens(s, 1)[i] < TOY_VOCAB);
        const sotto_status more = sotto_llama_decode_tokens(s, 1, &token, 1, NULL);
        FUZZ_CHECK(more == SOTTO_OK || more == SOTTO_E_FULL);
    }
    FUZZ_CHECK(sotto_llama_seq_truncate(s, 1, 0, NULL) == SOTTO_OK);
    FUZZ_CHECK(s->cells.n_unused == s->o.n_ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sotto_llama_session *s = the_session();
    uint8_t *copy = malloc(size + 1);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, size);
    take(s, copy, size);
    if (size >= LEAST) {
        for (int i = 0; i < MARK_SIZE; i++)
            copy[MARK_AT + i] = (uint8_t)(s->model->fingerprint >> 8 * i);
        const uint32_t crc = (uint32_t)crc32(0, copy, (uInt)(size - CRC_SIZE));
        for (int i = 0; i < CRC_SIZE; i++)
            copy[size - CRC_SIZE + (size_t)i] = (uint8_t)(crc >> 8 * i);
        take(s, copy, size);
    }
    free(copy);
    return 0;
}
