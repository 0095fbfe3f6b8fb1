#include "words_support.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A hash for each word. */
static int hashes(const char *text, uint32_t *out)
{
    int n = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        uint32_t h = 2166136261u;
        const unsigned char *start = c;
        if (*c >= 0x80) {
            do
                h = (h ^ *c++) * 16777619u;
            while ((*c & 0xC0) == 0x80);
        } else
            for (; *c < 0x80 && (isalnum(*c) || *c == '\''); c++)
                h = (h ^ (uint32_t)tolower(*c)) * 16777619u;
        if (c > start)
            out[n++] = h;
        else
            c++;
    }
    return n;
}

int words_apart(const char *have, const char *want, int *n_want)
{
    uint32_t *a = malloc((strlen(have) + 1) * sizeof *a), *b = malloc((strlen(want) + 1) * sizeof *b);
    const int n = hashes(have, a), m = hashes(want, b);
    int *row = malloc(((size_t)m + 1) * sizeof *row);
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            const int other = diagonal + (a[i - 1] != b[j - 1]), one = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = other < one ? other : one;
        }
    }
    const int apart = row[m];
    *n_want = m;
    free(a);
    free(b);
    free(row);
    return apart;
}
