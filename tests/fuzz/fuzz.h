/* fuzz.h: what every fuzz target has.
 *
 * A target is a file tests/fuzz/fuzz_<name>.c that defines LLVMFuzzerTestOneInput: it gives the bytes to one reader and
 * checks what must hold of any result with FUZZ_CHECK. It returns 0 and frees all it made. Inputs that once failed, and
 * a few ordinary ones, lie in tests/fuzz/corpus/<name>/.
 *   - In every build fuzz_<name> replays the corpus, cut short at many places and with bytes changed (replay_main.c); that is
 *     the test fuzz.<name>.
 *   - With -DSOTTO_FUZZ=ON and clang it is a libFuzzer program: fuzz_<name> -max_total_time=60 folder/for/new tests/fuzz/corpus/<name>
 * Helpers that several targets share go into a file *_support.c here, which is linked into all of them. */
#ifndef SOTTO_TESTS_FUZZ_FUZZ_H
#define SOTTO_TESTS_FUZZ_FUZZ_H

#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Stops at once, so that a fuzzer keeps the input; also without assertions. */
#define FUZZ_CHECK(condition)                                                             \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
            abort();                                                                      \
        }                                                                                 \
    } while (0)

#endif
