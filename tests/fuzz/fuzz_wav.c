/* Any bytes as a recording that says it is WAV: read to the end, as a file and as a pipe. */
#include <math.h>
#include <string.h>

#include "audio/audio.h"
#include "fuzz/fuzz.h"

typedef struct memory {
    const uint8_t *data;
    size_t size, at;
} memory;

static int64_t memory_read(void *user, void *buffer, size_t n)
{
    memory *m = user;
    const size_t take = m->size - m->at < n ? m->size - m->at : n;
    memcpy(buffer, m->data + m->at, take);
    m->at += take;
    return (int64_t)take;
}

static void read_all(memory *m, int64_t size)
{
    const st_audio_source source = {.read = memory_read, .user = m, .size = size};
    st_audio *a;
    sotto_error err = {0};
    float block[512];
    size_t n = 1;
    uint64_t total = 0;
    sotto_status status = st_audio_open_source_take(&source, "fuzz", NULL, NULL, &a, &err);
    while (status == SOTTO_OK && n) {
        status = st_audio_read(a, block, 512, &n, &err);
        total += n;
        for (size_t i = 0; i < n; i++)
            FUZZ_CHECK(isfinite(block[i]));
    }
    /* At most one sample a byte, times the largest ratio of rates. */
    FUZZ_CHECK(total <= ((uint64_t)m->size + 1) * 16 + 16);
    FUZZ_CHECK(status == SOTTO_OK || err.text[0]);
    st_audio_close(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Other content is FFmpeg's to read. */
    if (size < 4 || (memcmp(data, "RIFF", 4) != 0 && memcmp(data, "RF64", 4) != 0) ||
        (size >= 12 && memcmp(data + 8, "WAVE", 4) != 0))
        return 0;
    memory m = {.data = data, .size = size};
    read_all(&m, -1);
    m.at = 0;
    read_all(&m, (int64_t)size);
    return 0;
}
