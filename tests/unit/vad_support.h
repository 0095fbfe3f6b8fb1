/* vad_support.h: a small model of voice activity detection in memory. */
#ifndef SOTTO_TESTS_UNIT_VAD_SUPPORT_H
#define SOTTO_TESTS_UNIT_VAD_SUPPORT_H

#include <stddef.h>
#include <stdint.h>

/* The header of a safetensors file with all tensors of the network, two channels and two states each. */
extern const char vad_header[];
/* The file with that header (any header) and so many bytes of data: small numbers of f32. free() it. */
uint8_t *vad_file(const char *header, size_t data, size_t *size);
enum { VAD_DATA = 267668 };

#endif
