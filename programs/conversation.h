/* conversation.h: the messages of a chat, and their file. */
#ifndef SOTTO_PROGRAMS_CONVERSATION_H
#define SOTTO_PROGRAMS_CONVERSATION_H

#include "common/llm.h"

/* An optional system message, then questions and answers in turn. Contents are whole UTF-8 without bytes 0. */
typedef struct cli_conversation {
    sotto_llama_message *message; /* contents are owned, roles are not */
    int n, capacity;
} cli_conversation;

void cli_conversation_free(cli_conversation *c);
/* role: "system", "user" or "assistant"; content of n bytes. A system message replaces the one that is there; empty: there
 * is none. False without memory, when nothing has changed. */
bool cli_conversation_add(cli_conversation *c, const char *role, const char *content, size_t n);
/* Whether the first message is the system's. */
bool cli_conversation_has_system(const cli_conversation *c);
/* Without the last message, which is not the system's; false when there is none. */
bool cli_conversation_drop_last(cli_conversation *c);
/* Without the oldest question and its answer; false when only the last question is left. */
bool cli_conversation_drop_oldest(cli_conversation *c);
/* Everything but the system message. */
void cli_conversation_clear(cli_conversation *c);

/* A JSON array of {"role", "content"}. */
bool cli_conversation_save(const cli_conversation *c, const char *path, sotto_error *err);
/* Replaces c; when it fails, c is as before. The file need not be trusted. */
bool cli_conversation_load(cli_conversation *c, const char *path, sotto_error *err);

#endif
