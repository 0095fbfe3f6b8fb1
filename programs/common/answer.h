/* answer.h: a prompt into a session and a text out of it, as `generate` and `chat` do. */
#ifndef SOTTO_PROGRAMS_ANSWER_H
#define SOTTO_PROGRAMS_ANSWER_H

#include "common/llm.h"

/* Why a text ended. */
typedef enum cli_end {
    CLI_END_TOKEN,      /* the model ended it */
    CLI_END_STOP,       /* a stop string was met */
    CLI_END_LENGTH,     /* as long as was asked for */
    CLI_END_FULL,       /* the context has no more room */
    CLI_END_GRAMMAR,    /* the grammar's text is complete and allows nothing more, and the model may not end it */
    CLI_END_INTERRUPTED /* by a signal */
} cli_end;
/* "end", "stop", "length", "context", "grammar" or "interrupted". */
const char *cli_end_name(cli_end end);

typedef struct cli_answer {
    const sotto_llama_model *model;
    sotto_llama_session *session; /* sequence 0 is used */
    sotto_sampler *sampler;
    bool grammar; /* the sampler has one */
    const cli_list *stop;
    int64_t limit; /* tokens; negative = none */
    bool special;  /* show control tokens */
    bool shift;    /* a full context loses its oldest half, but for the first `keep` tokens, and goes on */
    int64_t keep;
    int n_top; /* likeliest tokens of each place to note; 0 = none */
    bool (*show)(void *user, const char *text,
                 size_t n); /* whole characters; false ends it with SOTTO_E_IO, errno says why */
    void *user;

    /* what came of it */
    cli_end end;
    int32_t *ids; /* free with cli_answer_free() */
    int64_t n_ids, capacity;
    sotto_token_logprob *top; /* [n_ids, n_top]: as the network gave them; free with cli_answer_free() */
    cli_text text;
    bool undecoded;   /* the last token is not in the session yet */
    bool lost;        /* a shift was not finished: the session has only the tokens to keep */
    int64_t n_shifts; /* times that the context was shifted */
    int64_t n_steps;  /* decoded after the prompt, in so many seconds */
    double seconds;
} cli_answer;

/* Makes sequence 0 the n tokens: what it has in common with them stays, the rest is computed, the last token always.
 * *n_new: how many. The logits of the last one are ready then. */
sotto_status cli_answer_prompt(sotto_llama_session *session, const int32_t *ids, int64_t n, int64_t *n_new,
                               sotto_error *err);
/* Writes the text. An interruption is no failure. When it fails, what was shown until then stays in the results. */
sotto_status cli_answer_write(cli_answer *a, sotto_error *err);
void cli_answer_free(cli_answer *a);

#endif
