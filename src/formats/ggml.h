/* ggml.h: what reader and writer of ggml's Whisper files share. */
#ifndef SOTTO_SRC_FORMATS_GGML_H
#define SOTTO_SRC_FORMATS_GGML_H

#include <stdint.h>

#define ST_GGML_MAGIC UINT32_C(0x67676d6c)

enum { ST_GGML_HEADER = 10 };

/* Metadata keys of the header's numbers in order; behind them comes the type of most weights. */
extern const char *const st_ggml_header[ST_GGML_HEADER];

#endif
