/* transcribe.c: the library in one page. Prints what is said in raw audio (16-bit little-endian, 16 kHz, mono) on stdin:
 *     ffmpeg -v error -i talk.mp3 -f s16le -ar 16000 -ac 1 - | ./transcribe models/base */
#include <stdio.h>

#include <sotto/whisper.h>

static void print_segment(void *user, const sotto_whisper_segment *segment)
{
    (void)user;
    printf("[%7.2f - %7.2f] %s\n", segment->start, segment->end, segment->text);
}

/* Feed the whole of stdin, a second at a time: memory stays the same however long it is. */
static sotto_status feed_stdin(sotto_whisper_session *session, sotto_error *err)
{
    unsigned char raw[2 * SOTTO_WHISPER_SAMPLE_RATE];
    float pcm[SOTTO_WHISPER_SAMPLE_RATE];
    size_t n;
    while ((n = fread(raw, 2, SOTTO_WHISPER_SAMPLE_RATE, stdin)) > 0) {
        for (size_t i = 0; i < n; i++)
            pcm[i] = (float)(int16_t)(raw[2 * i] | raw[2 * i + 1] << 8) / 32768.0f;
        sotto_status status = sotto_whisper_feed(session, pcm, (int64_t)n, err);
        if (status != SOTTO_OK)
            return status;
    }
    return sotto_whisper_finish(session, err);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: transcribe MODEL < audio.s16le\n");
        return 2;
    }
    sotto_whisper_model *model = NULL;
    sotto_whisper_session *session = NULL;
    sotto_error err;
    sotto_whisper_options options;
    sotto_whisper_options_default(&options);
    options.on_segment = print_segment;

    sotto_status status = sotto_whisper_model_open(argv[1], NULL, &model, &err);
    if (status == SOTTO_OK)
        status = sotto_whisper_session_create(model, NULL, &session, &err);
    if (status == SOTTO_OK)
        status = sotto_whisper_begin(session, &options, &err);
    if (status == SOTTO_OK)
        status = feed_stdin(session, &err);
    if (status != SOTTO_OK)
        fprintf(stderr, "transcribe: %s: %s\n", sotto_status_name(status), err.text);

    sotto_whisper_session_free(session); /* NULL is allowed */
    sotto_whisper_model_free(model);
    return status == SOTTO_OK ? 0 : 1;
}
