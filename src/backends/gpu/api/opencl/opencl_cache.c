/* opencl_cache.c: built programs in the user's cache folder, a file each. What is damaged, foreign or not writable is as if
 * it were not there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/gpu/api/opencl/opencl.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/folders.h"

/* In front of the binary, in the machine's byte order: a file of another order is foreign. */
typedef struct header {
    char magic[8];
    st_opencl_key key;
    uint64_t size, check; /* of the binary */
} header;

static const char magic[8] = "sottocl1";

/* FNV-1a; the texts are the library's own, so nobody tries to make two equal. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ p[i]) * 0x100000001b3u;
    return hash;
}

st_opencl_key st_opencl_cache_key(const char *const *texts, int n)
{
    st_opencl_key key = {{0xcbf29ce484222325u, 0x9ae16a3b2f90404fu}};
    for (int i = 0; i < n; i++)
        for (int h = 0; h < 2; h++)
            key.hash[h] = hash_bytes(key.hash[h], texts[i], strlen(texts[i]) + 1);
    return key;
}

/* The file of a key; with `make` the folders above it are made. */
static char *path_of(const st_opencl_key *key, bool make)
{
    char name[48];
    snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64 ".bin", key->hash[0], key->hash[1]);
    char *const cache = st_user_cache_folder(), *const folder = cache ? st_path_join(cache, "opencl") : NULL;
    char *const path = folder && (!make || st_make_folders(folder)) ? st_path_join(folder, name) : NULL;
    st_free(cache);
    st_free(folder);
    return path;
}

unsigned char *st_opencl_cache_load(const st_opencl_key *key, size_t *size)
{
    char *const path = path_of(key, false);
    st_file_map map = {0};
    unsigned char *binary = NULL;
    header h;
    if (path && st_file_map_open(path, &map, NULL) == SOTTO_OK && map.size > sizeof h) {
        memcpy(&h, map.data, sizeof h);
        const size_t n = map.size - sizeof h;
        if (memcmp(h.magic, magic, sizeof magic) == 0 && memcmp(&h.key, key, sizeof *key) == 0 && h.size == n &&
            hash_bytes(0, map.data + sizeof h, n) == h.check && (binary = st_alloc(n, 1))) {
            memcpy(binary, map.data + sizeof h, n);
            *size = n;
        }
    }
    st_file_map_close(&map);
    st_free(path);
    return binary;
}

bool st_opencl_cache_save(const st_opencl_key *key, const unsigned char *binary, size_t size)
{
    char *const path = path_of(key, true);
    header h = {.key = *key, .size = size, .check = hash_bytes(0, binary, size)};
    memcpy(h.magic, magic, sizeof magic);
    st_file_writer *w = NULL;
    bool good = path && st_file_writer_open(path, &w, NULL) == SOTTO_OK;
    st_free(path);
    if (!good)
        return false;
    if (st_file_writer_write(w, &h, sizeof h, NULL) == SOTTO_OK &&
        st_file_writer_write(w, binary, size, NULL) == SOTTO_OK)
        return st_file_writer_commit(w, NULL) == SOTTO_OK;
    st_file_writer_discard(w);
    return false;
}
