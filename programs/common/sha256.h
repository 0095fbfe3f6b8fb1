/* sha256.h: SHA-256 (FIPS 180-4), for checking what was fetched. */
#ifndef SOTTO_PROGRAMS_SHA256_H
#define SOTTO_PROGRAMS_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_sha256 {
    uint32_t h[8];
    uint64_t n;
    unsigned char block[64];
} cli_sha256;

void cli_sha256_start(cli_sha256 *s);
void cli_sha256_add(cli_sha256 *s, const void *data, size_t n);
/* 64 lower-case hexadecimal digits and a zero byte. */
void cli_sha256_finish(cli_sha256 *s, char hex[65]);
/* Of a whole file; false when it cannot be read. */
bool cli_sha256_file(const char *path, char hex[65]);
/* Same hash, case ignored. */
bool cli_sha256_same(const char *a, const char *b);
/* 64 hexadecimal digits. */
bool cli_sha256_is(const char *text);

#endif
