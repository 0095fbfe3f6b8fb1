/* follow.h: a window's text made to follow a grammar: tokens that leave it become less likely by a penalty. Each window's text
 * is a text of the grammar; timestamps are none of it. What whisper.cpp calls its grammar penalty, and the end as well. */
#ifndef SOTTO_SRC_MODELS_WHISPER_FOLLOW_H
#define SOTTO_SRC_MODELS_WHISPER_FOLLOW_H

#include "models/whisper/decode_impl.h"

/* A filter for the text tokens of a vocabulary, which must outlive it, as must the grammar. */
sotto_status st_follow_create(const sotto_grammar *grammar, const st_vocab *vocab, st_grammar_filter **out,
                              sotto_error *err);

/* A sequence without tokens, at the beginning of the grammar if there is one. */
void st_follow_begin(const st_decode_options *o, st_sequence *s);
/* Lowers the logits of timestamps where they would cut the text in the wrong place, before the filters weigh them against text:
 * inside a word (the text may not end there, and no space may follow), and, for a segment that is to begin or has to be followed by others,
 * at the end of what is heard or later. */
sotto_status st_follow_time(const st_decoder *d, const st_decode_options *o, st_sequence *s, float *logits,
                            sotto_error *err);
/* Lowers the logits of a row in which the filters have left `allowed`, which is made anew. Nothing is lowered where a timestamp
 * is due, nor after the text has left the grammar. What the grammar cost is added to s->forced. */
sotto_status st_follow_penalise(const st_decoder *d, const st_decode_options *o, st_sequence *s,
                                const st_logits_row *row, st_allowed *allowed, sotto_error *err);
/* Whether the sequence is a whole text of the grammar. */
sotto_status st_follow_check(const st_decoder *d, const st_decode_options *o, st_sequence *s, bool *whole,
                             sotto_error *err);

#endif
