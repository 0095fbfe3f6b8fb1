/* words_support.h: how far one text is from another, in words. */
#ifndef SOTTO_TESTS_WORDS_SUPPORT_H
#define SOTTO_TESTS_WORDS_SUPPORT_H

/* Words to add, leave out or put in another's place to make one text of the other. Letters and digits count, in lower case;
 * outside ASCII every character is a word, since not every script has spaces. *n_want gets the number of words of want. */
int words_apart(const char *have, const char *want, int *n_want);

#endif
