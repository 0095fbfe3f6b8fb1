/* chat.h: conversations as the text that a model was trained on. Formats are a table; which one a model wants is told from
 * marks in its template (tokenizer.chat_template), which itself is never run.
 * Source: the chat templates published with the models; the marks are those llama.cpp looks for. */
#ifndef SOTTO_SRC_MODELS_COMMON_CHAT_H
#define SOTTO_SRC_MODELS_COMMON_CHAT_H

#include "models/common/tokenizer.h"

typedef struct st_chat_format st_chat_format;

typedef struct st_chat_message {
    const char *role; /* "system", "user" or "assistant" */
    const char *content;
} st_chat_message;

/* NULL when the template has the marks of no known format. */
const st_chat_format *st_chat_find(const char *template_text, size_t n);
const st_chat_format *st_chat_by_name(const char *name);
const char *st_chat_name(const st_chat_format *format);
/* The format of that name, or with NULL that of the model's template; a file without a template is told by a control token that
 * only one format has. SOTTO_E_UNSUPPORTED for an unknown template or name, SOTTO_E_NOT_FOUND when the file tells nothing;
 * both name the known formats. */
sotto_status st_chat_choose(const sotto_model_file *file, const char *name, const st_chat_format **out,
                            sotto_error *err);

/* Zero before the first use, freed with st_chat_text_free(); may be used again and again. */
typedef struct st_chat_text {
    char *text; /* terminated. Without the begin token, which st_tokenizer_encode_framed() adds */
    int64_t length, capacity;
    st_text_span *content; /* what the messages said: never to be read as control tokens */
    int64_t n_content, content_capacity;
} st_chat_text;
void st_chat_text_free(st_chat_text *t);

/* Writes the conversation into *out. `answer`: end with what begins an answer. SOTTO_E_ARGUMENT for a role that is not
 * "system", "user" or "assistant", or a system message that is not the first where the format allows only that. */
sotto_status st_chat_apply(const st_chat_format *format, const st_chat_message *messages, int n, bool answer,
                           st_chat_text *out, sotto_error *err);

#endif
