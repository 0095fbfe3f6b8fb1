/* Templates, from which the format is told, and what anybody may say in each format. */
#include <string.h>

#include "base/alloc.h"
#include "fuzz/fuzz.h"
#include "models/common/chat.h"

static const char *const names[] = {"chatml", "llama2",     "llama3", "gemma",  "mistral", "mistral-v1", "mistral-v3",
                                    "phi3",   "mistral-v7", "phi4",   "zephyr", "vicuna",  "deepseek3",  "command-r"};

static void apply(const st_chat_format *f, const char *said)
{
    const st_chat_message messages[] = {
        {"system", said}, {"user", said}, {"assistant", said}, {"user", ""}, {said, said}};
    st_chat_text text = {0};
    for (int n = 0; n <= 5; n++)
        for (int answer = 0; answer < 2; answer++) {
            sotto_error err;
            err.text[0] = 0;
            if (st_chat_apply(f, messages, n, answer, &text, &err) != SOTTO_OK) {
                FUZZ_CHECK(err.text[0]);
                continue;
            }
            FUZZ_CHECK(text.text[text.length] == 0 && strlen(text.text) == (size_t)text.length);
            size_t end = 0;
            for (int64_t i = 0; i < text.n_content; i++) {
                const st_text_span s = text.content[i];
                FUZZ_CHECK(s.begin >= end && s.end > s.begin && s.end <= (size_t)text.length);
                char *found = st_alloc(s.end - s.begin + 1, 1);
                FUZZ_CHECK(found);
                memcpy(found, text.text + s.begin, s.end - s.begin);
                found[s.end - s.begin] = 0;
                FUZZ_CHECK(strstr(said, found));
                st_free(found);
                end = s.end;
            }
        }
    st_chat_text_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const st_chat_format *f = st_chat_find((const char *)data, size);
    FUZZ_CHECK(!f || st_chat_by_name(st_chat_name(f)) == f);
    char *said = st_alloc(size + 1, 1);
    FUZZ_CHECK(said);
    if (size > 0)
        memcpy(said, data, size);
    said[size] = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        apply(st_chat_by_name(names[i]), said);
    if (f)
        apply(f, said);
    st_free(said);
    return 0;
}
