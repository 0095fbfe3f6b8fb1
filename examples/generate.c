/* generate.c: text generation in one page. Prints what the model goes on to say after a prompt:
 *     ./generate models/smollm2-135m "Once upon a time" */
#include <stdio.h>
#include <string.h>

#include <sotto/llama.h>

enum { MOST_PROMPT = 2048, MOST_ANSWER = 64 };

static sotto_status generate(const sotto_llama_model *model, sotto_llama_session *session, sotto_sampler *sampler,
                             sotto_llama_text *text, const char *prompt, sotto_error *err)
{
    int32_t tokens[MOST_PROMPT], token = -1;
    int64_t n = 0;
    const char *piece;
    size_t bytes;
    bool stopped = false;
    sotto_status status =
        sotto_llama_tokenize(model, prompt, strlen(prompt), SOTTO_TOKENIZE_ADD_SPECIAL, tokens, MOST_PROMPT, &n, err);
    if (status == SOTTO_OK)
        status = sotto_llama_decode_tokens(session, 0, tokens, n < MOST_PROMPT ? n : MOST_PROMPT, err);
    for (int i = 0; i < MOST_ANSWER && status == SOTTO_OK && !stopped; i++) {
        status = sotto_sampler_sample(sampler, sotto_llama_logits(session, -1), &token, err);
        if (status != SOTTO_OK || sotto_llama_token_ends(model, token))
            break;
        status = sotto_sampler_accept(sampler, token, err);
        if (status == SOTTO_OK)
            status = sotto_llama_text_push(text, token, &piece, &bytes, &stopped, err);
        if (status == SOTTO_OK && printf("%.*s", (int)bytes, piece) >= 0) /* whole characters */
            status = sotto_llama_decode_tokens(session, 0, &token, 1, err);
    }
    return status;
}

int main(int argc, char **argv)
{
    sotto_llama_model *model = NULL;
    sotto_llama_session *session = NULL;
    sotto_sampler *sampler = NULL;
    sotto_llama_text *text = NULL;
    sotto_error err = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: generate MODEL PROMPT\n");
        return 2;
    }
    const int ready = sotto_llama_model_open(argv[1], NULL, &model, &err) == SOTTO_OK &&
                      sotto_llama_session_create(model, NULL, &session, &err) == SOTTO_OK &&
                      sotto_llama_sampler_create(model, NULL, &sampler, &err) == SOTTO_OK &&
                      sotto_llama_text_create(model, NULL, 0, &text, &err) == SOTTO_OK;
    const int done = ready && generate(model, session, sampler, text, argv[2], &err) == SOTTO_OK;
    puts("");
    if (!done)
        fprintf(stderr, "generate: %s: %s\n", sotto_status_name(err.code), err.text);
    sotto_llama_text_free(text); /* NULL is allowed, here and below */
    sotto_sampler_free(sampler);
    sotto_llama_session_free(session);
    sotto_llama_model_free(model);
    return done ? 0 : 1;
}
