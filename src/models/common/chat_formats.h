/* chat_formats.h: the table of formats. */
#ifndef SOTTO_SRC_MODELS_COMMON_CHAT_FORMATS_H
#define SOTTO_SRC_MODELS_COMMON_CHAT_FORMATS_H

#include <stdbool.h>
#include <stddef.h>

enum { ST_CHAT_MARKS = 4 };

typedef struct st_chat_turn {
    const char *before, *after; /* what a message says */
} st_chat_turn;

struct st_chat_format {
    const char *name;
    st_chat_turn system, user, assistant;
    const char *again;     /* before a user's message that is not the first; NULL: nothing */
    const char *answer;    /* begins an answer */
    const char *end_token; /* as the format names it, where its template leaves that to the model; else NULL */
    bool system_in_user;   /* a system message is the first part of the first user message */
    bool trim_user, trim_assistant, trim_system;
};

extern const struct st_chat_format st_chat_formats[];
extern const int st_chat_n_formats;

/* What a template contains, and does not, when it is of a format. The first row that fits counts. */
typedef struct st_chat_mark {
    const char *format; /* its name; NULL: known, and none of ours */
    const char *all[ST_CHAT_MARKS], *none[ST_CHAT_MARKS];
} st_chat_mark;

/* A token that only models of one format have, for files without a template. */
typedef struct st_chat_token {
    const char *token, *format;
} st_chat_token;

extern const st_chat_token st_chat_tokens[];
extern const int st_chat_n_tokens;
extern const st_chat_mark st_chat_marks[];
extern const int st_chat_n_marks;

#endif
