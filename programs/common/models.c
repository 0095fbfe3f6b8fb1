/* models.c: finding models by name. Contract: models.h. */
#include "common/models.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/catalog.h"
#include "common/outfile.h"

/* The user's cache of sotto, or NULL when the environment names no home. */
static char *cache_folder(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        return cli_path_join(cache, "sotto");
    return home && *home ? cli_path_join(home, ".cache/sotto") : NULL;
}

/* ./models belongs to us when it exists or when this is a checkout. */
static bool in_checkout(void)
{
    if (cli_is_folder("models"))
        return true;
    FILE *f = fopen("CMakeLists.txt", "r");
    if (!f)
        return false;
    char line[256];
    bool found = false;
    for (int i = 0; i < 40 && !found && fgets(line, sizeof line, f); i++)
        found = strncmp(line, "project(sotto ", 14) == 0;
    fclose(f);
    return found;
}

char *cli_models_folder(void)
{
    return in_checkout() ? cli_path_join(NULL, "models") : cache_folder();
}

/* A folder in which a download has only begun is no model yet. */
static bool holds_files(const char *folder)
{
    bool found = false;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        const bool part = n > 5 && strcmp(e->d_name + n - 5, ".part") == 0;
        found = e->d_name[0] != '.' && !part;
    }
    if (d)
        closedir(d);
    return found;
}

static char *look_in(const char *folder, const char *name)
{
    static const char *const endings[] = {"", ".bin", ".gguf"};
    for (size_t i = 0; folder && i < sizeof endings / sizeof *endings; i++) {
        char *base = cli_path_join(folder, name);
        char *path = base ? malloc(strlen(base) + 8) : NULL;
        if (path)
            sprintf(path, "%s%s", base, endings[i]);
        free(base);
        if (path && (cli_is_file(path) || holds_files(path)))
            return path;
        free(path);
    }
    return NULL;
}

/* A folder that holds GGUF files means the first of them, of a split model its first part; takes `path`. */
static char *gguf_inside(char *path)
{
    char first[256] = "";
    DIR *d = path && cli_is_folder(path) ? opendir(path) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        const size_t n = strlen(e->d_name);
        if (n > 5 && n < sizeof first && strcmp(e->d_name + n - 5, ".gguf") == 0 && e->d_name[0] != '.' &&
            (!first[0] || strcmp(e->d_name, first) < 0))
            memcpy(first, e->d_name, n + 1);
    }
    if (d)
        closedir(d);
    char *inside = first[0] ? cli_path_join(path, first) : NULL;
    if (!inside)
        return path;
    free(path);
    return inside;
}

char *cli_model_path(const char *name, const char *folder, sotto_error *err)
{
    if (!*name) {
        cli_fail(err, SOTTO_E_ARGUMENT, "the name of the model is empty");
        return NULL;
    }
    if (strchr(name, '/') || cli_is_file(name))
        return gguf_inside(cli_path_join(NULL, name));
    char *cache = cache_folder();
    char *path = look_in(folder, name);
    if (!path)
        path = look_in("models", name);
    if (!path)
        path = look_in(cache, name);
    if (!path && cli_is_folder(name))
        path = cli_path_join(NULL, name);
    if (!path)
        cli_fail(err, SOTTO_E_NOT_FOUND, "no model \"%s\" in ./models%s%s%s%s%s", name, cache ? " or " : "",
                 cache ? cache : "",
                 cli_catalog_find(name) ? "; fetch it with: sotto get " : "; see sotto get --list for names",
                 cli_catalog_find(name) ? name : "", "");
    free(cache);
    return gguf_inside(path);
}
