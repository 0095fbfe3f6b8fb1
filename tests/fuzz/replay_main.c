/* replay_main.c: main() of a fuzz target without a fuzzer: runs it on the files and folders given as arguments, whole, cut
 * short and with bytes changed. The changes come from a fixed seed, so a failure is found again by the same call:
 *
 *   fuzz_<name> [--changes N] [--save FILE] PATH...
 *
 * --changes: cuts and changed copies of each input, 100 of both unless told. On a crash the last line on stderr names the input;
 * --save: the bytes of the last run are there. */
#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

typedef struct replay {
    long changes, inputs, runs;
    const char *save;
    uint64_t random;
} replay;

/* splitmix64 */
static uint64_t next_random(replay *r)
{
    uint64_t z = r->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* In memory of exactly that size, so that a sanitizer sees the first byte read too far. */
static void run(replay *r, const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size ? size : 1);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    FILE *const f = r->save ? fopen(r->save, "wb") : NULL;
    if (f) {
        fwrite(data, 1, size, f);
        fclose(f);
    }
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    r->runs++;
}

/* A number that lengths and counts are often wrong by. */
static void put_odd_number(replay *r, uint8_t *data, size_t size)
{
    static const uint64_t odd[] = {0,          1,
                                   0x7f,       0x80,
                                   0xff,       0x7fff,
                                   0xffff,     0x7fffffff,
                                   0x80000000, 0xffffffff,
                                   INT64_MAX,  UINT64_C(1) << 63,
                                   UINT64_MAX, UINT64_MAX - 7};
    const uint64_t value = odd[next_random(r) % (sizeof odd / sizeof odd[0])];
    const size_t width = (size_t)1 << next_random(r) % 4, at = next_random(r) % size;
    for (size_t i = 0; i < width && at + i < size; i++)
        data[at + i] = (uint8_t)(value >> 8 * i);
}

static void run_changed(replay *r, const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size);
    if (!copy)
        abort();
    for (long i = 0; i < r->changes; i++) {
        memcpy(copy, data, size);
        for (uint64_t n = next_random(r) % 4 + 1; n > 0; n--) {
            const uint64_t kind = next_random(r) % 3;
            /* half of the changes hit the beginning, where the headers are */
            const size_t range = next_random(r) % 2 && size > 256 ? 256 : size, at = next_random(r) % range;
            if (kind == 0)
                copy[at] ^= (uint8_t)(1u << next_random(r) % 8);
            else if (kind == 1)
                copy[at] = (uint8_t)next_random(r);
            else
                put_odd_number(r, copy, range);
        }
        run(r, copy, size);
    }
    free(copy);
}

static void run_input(replay *r, const char *name, const uint8_t *data, size_t size)
{
    fprintf(stderr, "%s: %zu bytes\n", name, size);
    r->inputs++;
    run(r, data, size);
    const size_t cuts = size < (size_t)r->changes ? size : (size_t)r->changes;
    for (size_t i = 0; i < cuts; i++) /* every length of a small input, evenly spread ones of a large one */
        run(r, data, (size_t)((double)size * (double)i / (double)cuts));
    if (size > 0)
        run_changed(r, data, size);
}

static bool run_file(replay *r, const char *path)
{
    FILE *const f = fopen(path, "rb");
    if (!f)
        return false;
    size_t size = 0, room = 1 << 16;
    uint8_t *data = malloc(room);
    while (data) {
        size += fread(data + size, 1, room - size, f);
        if (size < room)
            break;
        data = realloc(data, room *= 2);
    }
    const bool ok = data && !ferror(f);
    fclose(f);
    if (ok)
        run_input(r, path, data, size);
    free(data);
    return ok;
}

static bool run_path(replay *r, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        fprintf(stderr, "%s: not there\n", path);
        return true; /* a target without a corpus yet */
    }
    if (!S_ISDIR(info.st_mode))
        return run_file(r, path);
    struct dirent **entries;
    const int count = scandir(path, &entries, NULL, alphasort); /* the order fixes the changes */
    bool ok = count >= 0;
    for (int i = 0; i < count; i++) {
        char file[4096];
        if (entries[i]->d_name[0] != '.') {
            snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
            ok = run_file(r, file) && ok;
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return ok;
}

int main(int argc, char **argv)
{
    replay r = {.changes = 100, .random = 1};
    bool ok = true;
    run_input(&r, "(no bytes)", (const uint8_t *)"", 0);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--changes") && i + 1 < argc)
            r.changes = strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--save") && i + 1 < argc)
            r.save = argv[++i];
        else
            ok = run_path(&r, argv[i]) && ok;
    }
    printf("%ld inputs, %ld runs\n", r.inputs, r.runs);
    return ok ? 0 : 1;
}
