/* languages.h: the languages of Whisper, in the order of their tokens. The public part is sotto_language_*. */
#ifndef SOTTO_SRC_MODELS_WHISPER_LANGUAGES_H
#define SOTTO_SRC_MODELS_WHISPER_LANGUAGES_H

enum { ST_MAX_LANGUAGES = 100 }; /* the last, "yue", only in large-v3 and later */

#endif
