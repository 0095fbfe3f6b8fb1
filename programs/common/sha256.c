/* sha256.c: FIPS 180-4, section 6.2. Oracle: the standard's examples (tests/unit/test_args.c). */
#include "common/sha256.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void add_block(cli_sha256 *s, const unsigned char *p)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++, p += 4)
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t t1 = v[7] + (rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25)) +
                            ((v[4] & v[5]) ^ (~v[4] & v[6])) + K[i] + w[i];
        const uint32_t t2 =
            (rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++)
        s->h[i] += v[i];
}

void cli_sha256_start(cli_sha256 *s)
{
    *s = (cli_sha256){
        .h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void cli_sha256_add(cli_sha256 *s, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n) {
        const size_t at = (size_t)(s->n % 64), take = n < 64 - at ? n : 64 - at;
        memcpy(s->block + at, p, take);
        s->n += take;
        p += take;
        n -= take;
        if (s->n % 64 == 0)
            add_block(s, s->block);
    }
}

void cli_sha256_finish(cli_sha256 *s, char hex[65])
{
    const uint64_t bits = s->n * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    cli_sha256_add(s, "\x80", 1);
    while (s->n % 64 != 56)
        cli_sha256_add(s, "\0", 1);
    cli_sha256_add(s, length, 8);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)s->h[i]);
}

bool cli_sha256_file(const char *path, char hex[65])
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    cli_sha256 s;
    unsigned char buffer[16384];
    size_t n;
    cli_sha256_start(&s);
    while ((n = fread(buffer, 1, sizeof buffer, f)) > 0)
        cli_sha256_add(&s, buffer, n);
    const bool ok = !ferror(f);
    fclose(f);
    cli_sha256_finish(&s, hex);
    return ok;
}

bool cli_sha256_same(const char *a, const char *b)
{
    return strcasecmp(a, b) == 0;
}

bool cli_sha256_is(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdefABCDEF") == 64;
}
