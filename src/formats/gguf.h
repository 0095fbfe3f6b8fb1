/* gguf.h: what reader and writer of GGUF share. */
#ifndef SOTTO_SRC_FORMATS_GGUF_H
#define SOTTO_SRC_FORMATS_GGUF_H

/* Types of metadata values. */
enum {
    ST_GGUF_U8,
    ST_GGUF_I8,
    ST_GGUF_U16,
    ST_GGUF_I16,
    ST_GGUF_U32,
    ST_GGUF_I32,
    ST_GGUF_F32,
    ST_GGUF_BOOL,
    ST_GGUF_STRING,
    ST_GGUF_ARRAY,
    ST_GGUF_U64,
    ST_GGUF_I64,
    ST_GGUF_F64,
    ST_GGUF_TYPES
};

#endif
