#define _GNU_SOURCE
#include "kernels/guard_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_GUARDS = 4096 };

static struct {
    char *base;
    size_t bytes;
} guards[MAX_GUARDS];
static int n_guards;

void *guard_alloc(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), body = (bytes + page - 1) / page * page;
    char *base = mmap(NULL, body + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || n_guards == MAX_GUARDS || mprotect(base + body, page, PROT_NONE) != 0) {
        fprintf(stderr, "no memory for a guarded block\n");
        exit(3);
    }
    guards[n_guards].base = base;
    guards[n_guards++].bytes = body + page;
    return base + body - bytes;
}

void guard_free_all(void)
{
    while (n_guards > 0) {
        n_guards--;
        munmap(guards[n_guards].base, guards[n_guards].bytes);
    }
}

static uint64_t state, seed;

static void say_seed(void)
{
    printf("seed %llu (SOTTO_TEST_SEED)\n", (unsigned long long)seed);
    fflush(stdout);
}

uint64_t test_seed(void)
{
    if (seed == 0) {
        const char *text = getenv("SOTTO_TEST_SEED");
        seed = text != NULL ? strtoull(text, NULL, 10) : (uint64_t)time(NULL);
        seed = seed != 0 ? seed : 1;
        state = seed;
        say_seed();
        atexit(say_seed);
    }
    return seed;
}

uint32_t test_random_bits(void)
{
    if (state == 0)
        test_seed();
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 32);
}

float test_random(void)
{
    return (float)(int32_t)test_random_bits() * 0x1p-31f;
}

float *guard_floats(size_t n)
{
    float *x = guard_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        const uint32_t kind = test_random_bits() % 32;
        x[i] = test_random() * (kind == 0 ? 0.0f : kind == 1 ? 0x1p-130f : kind == 2 ? 1e-6f : 1.0f);
    }
    return x;
}
