/* package_index.c: where a Python package index keeps a file (PEP 503 and PEP 691). Contract: cli_index_find in fetch.h. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/fetch.h"
#include "common/outfile.h"

/* The value of "index-url = ..." in [global] or [install], free() it; NULL when the file does not say. */
static char *index_of_config(const char *path)
{
    FILE *f = path ? fopen(path, "r") : NULL;
    if (!f)
        return NULL;
    char line[1024], *found = NULL;
    bool section = false;
    while (fgets(line, sizeof line, f)) {
        const char *p = line + strspn(line, " \t");
        if (*p == '[')
            section = strncmp(p, "[global]", 8) == 0 || strncmp(p, "[install]", 9) == 0;
        if (!section || (strncmp(p, "index-url", 9) != 0 && strncmp(p, "index_url", 9) != 0))
            continue;
        p += 9;
        p += strspn(p, " \t");
        if (*p != '=' && *p != ':')
            continue;
        p++;
        p += strspn(p, " \t");
        free(found);
        found = cli_path_join(NULL, p);
        if (found)
            found[strcspn(found, " \t\r\n")] = 0;
    }
    fclose(f);
    return found;
}

static char *index_url(void)
{
    const char *url = getenv("PIP_INDEX_URL");
    if (url && *url)
        return cli_path_join(NULL, url);
    char *found = index_of_config(getenv("PIP_CONFIG_FILE"));
    static const struct {
        const char *variable, *path;
    } places[] = {{"XDG_CONFIG_HOME", "pip/pip.conf"}, {"HOME", ".config/pip/pip.conf"}, {"HOME", ".pip/pip.conf"}};
    for (size_t i = 0; !found && i < sizeof places / sizeof *places; i++) {
        const char *root = getenv(places[i].variable);
        char *path = root && *root ? cli_path_join(root, places[i].path) : NULL;
        found = index_of_config(path);
        free(path);
    }
    if (!found)
        found = index_of_config("/etc/pip.conf");
    return found ? found : cli_path_join(NULL, "https://pypi.org/simple");
}

static char *find_in_json(const json_t *root, const char *file)
{
    size_t i;
    const json_t *entry, *files = json_object_get(root, "files");
    json_array_foreach(files, i, entry)
    {
        const char *name = json_string_value(json_object_get(entry, "filename"));
        const char *url = json_string_value(json_object_get(entry, "url"));
        if (name && url && strcmp(name, file) == 0)
            return cli_path_join(NULL, url);
    }
    return NULL;
}

/* <a href="URL" ...>FILE</a> */
static char *find_in_html(const char *page, const char *file)
{
    for (const char *a = page; (a = strstr(a, "<a ")); a++) {
        const char *close = strchr(a, '>'), *href = strstr(a, "href=\"");
        if (!close || !href || href > close)
            continue;
        const char *name = close + 1 + strspn(close + 1, " \t\r\n");
        const size_t n = strlen(file);
        if (strncmp(name, file, n) != 0 || !strchr("< \t\r\n", name[n]))
            continue;
        href += 6;
        char *url = cli_path_join(NULL, href);
        if (!url)
            return NULL;
        url[strcspn(url, "\"")] = 0;
        for (char *amp; (amp = strstr(url, "&amp;"));)
            memmove(amp + 1, amp + 5, strlen(amp + 5) + 1);
        return url;
    }
    return NULL;
}

char *cli_index_find(const char *package, const char *file, sotto_error *err)
{
    char *index = index_url(), *name = NULL, *page_url = NULL, *final_url = NULL, *reference = NULL, *url = NULL;
    cli_text page = {0};
    bool fetched = false;
    if (index && (name = malloc(strlen(package) + 2))) {
        sprintf(name, "%s/", package);
        page_url = cli_path_join(index, name);
        fetched = page_url && cli_fetch_page(page_url, "application/vnd.pypi.simple.v1+json, text/html;q=0.1", &page,
                                             &final_url, err);
        if (!page_url)
            cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    }
    if (fetched && page.data) {
        json_t *root = json_loads(page.data, 0, NULL);
        reference = root ? find_in_json(root, file) : find_in_html(page.data, file);
        json_decref(root);
        url = reference ? cli_url_resolve(final_url, reference) : NULL;
    }
    if (fetched && !url)
        cli_fail(err, SOTTO_E_NOT_FOUND, "%s does not list %s", page_url, file);
    cli_text_free(&page);
    free(index);
    free(name);
    free(page_url);
    free(final_url);
    free(reference);
    return url;
}
