/* fetch.c: downloads with libcurl. Contract: fetch.h. */
#include "common/fetch.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/outfile.h"
#include "common/sha256.h"

enum { MAX_TRIES = 8, MAX_CONNECTIONS = 1000, MAX_PAGE = 64 << 20 };

typedef struct transfer {
    CURL *curl;
    FILE *file; /* or */
    cli_text *text;
    const char *part;
    curl_off_t resumed;         /* bytes that were there before */
    curl_off_t received, limit; /* limit 0 = none */
    bool write_failed, judged, unresolved, too_long;
    char linked_hash[65]; /* stated by Hugging Face for its large files */
    cli_progress progress;
} transfer;

static size_t on_data(char *data, size_t size, size_t n, void *user)
{
    transfer *t = user;
    n *= size;
    if (t->text) {
        if (t->text->size + n > MAX_PAGE)
            return 0;
        cli_text_add(t->text, data, n);
        return t->text->failed ? 0 : n;
    }
    if (!t->judged) {
        t->judged = true;
        long code = 0;
        curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &code);
        if (t->resumed && code == 200) { /* the server ignored the range and sends all of it */
            t->file = freopen(t->part, "wb", t->file);
            t->resumed = 0;
            if (!t->file)
                t->write_failed = true;
        }
    }
    if (t->limit && t->resumed + t->received + (curl_off_t)n > t->limit) {
        t->too_long = true;
        return 0;
    }
    if (t->write_failed || fwrite(data, 1, n, t->file) != n) {
        t->write_failed = true;
        return 0;
    }
    t->received += (curl_off_t)n;
    return n;
}

static size_t on_header(char *data, size_t size, size_t n, void *user)
{
    static const char name[] = "x-linked-etag:";
    transfer *t = user;
    if (size * n > sizeof name && strncasecmp(data, name, sizeof name - 1) == 0) {
        const char *p = data + sizeof name - 1, *end = data + size * n;
        while (p < end && (*p == ' ' || *p == '"'))
            p++;
        if (end - p >= 64) {
            char hex[65];
            memcpy(hex, p, 64);
            hex[64] = 0;
            if (cli_sha256_is(hex))
                memcpy(t->linked_hash, hex, sizeof hex);
        }
    }
    return size * n;
}

static int on_progress(void *user, curl_off_t total, curl_off_t now, curl_off_t up_total, curl_off_t up_now)
{
    transfer *t = user;
    (void)up_total;
    (void)up_now;
    if (!t->text)
        cli_progress_update(&t->progress, (double)(t->resumed + now) / 1e6,
                            total > 0 ? (double)(t->resumed + total) / 1e6 : 0, "MB");
    return cli_interrupted();
}

static CURL *open_transfer(transfer *t, const char *url, struct curl_slist *headers, char *message)
{
    CURL *c = curl_easy_init();
    if (!c)
        return NULL;
    message[0] = 0;
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, message);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, strncasecmp(url, "https:", 6) == 0 ? "https" : "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(c, CURLOPT_MAXREDIRS, 10L);
    curl_easy_setopt(c, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 30L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 60L);
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_USERAGENT, "sotto");
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
    curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
    /* Certificates where other tools are told to find them; libcurl does not look itself. */
    static const char *const bundles[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE", "PIP_CERT"};
    for (size_t i = 0; i < sizeof bundles / sizeof *bundles; i++) {
        const char *bundle = getenv(bundles[i]);
        if (bundle && *bundle) {
            curl_easy_setopt(c, CURLOPT_CAINFO, bundle);
            break;
        }
    }
    t->curl = c;
    return c;
}

static bool may_pass(CURLcode code, long http)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
        return true;
    case CURLE_HTTP_RETURNED_ERROR:
        return http == 408 || http == 429 || http >= 500;
    default:
        return false;
    }
}

static void pause_for(double seconds)
{
    for (const double until = cli_now() + seconds; cli_now() < until && !cli_interrupted();) {
        const struct timespec step = {.tv_sec = 0, .tv_nsec = 50 * 1000 * 1000};
        nanosleep(&step, NULL);
    }
}

static curl_off_t size_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    curl_off_t size = 0;
    if (f && fseeko(f, 0, SEEK_END) == 0)
        size = (curl_off_t)ftello(f);
    if (f)
        fclose(f);
    return size > 0 ? size : 0;
}

/* One connection. *done: the file is whole. *again: worth another try. */
static bool attempt(const cli_fetch *r, const char *part, transfer *t, bool *done, bool *again, sotto_error *err)
{
    char message[CURL_ERROR_SIZE];
    *done = *again = false;
    t->part = part;
    t->received = 0;
    t->judged = t->write_failed = t->too_long = false;
    t->limit = (curl_off_t)(r->size ? r->size : r->max_size);
    t->resumed = size_of(part);
    if (r->size && t->resumed >= (curl_off_t)r->size)
        return *done = true;
    t->file = fopen(part, t->resumed ? "ab" : "wb");
    if (!t->file)
        return cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", part, strerror(errno));
    CURL *c = open_transfer(t, r->url, NULL, message);
    CURLcode code = CURLE_OUT_OF_MEMORY;
    long http = 0;
    if (c) {
        curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE, t->resumed);
        if (t->limit > t->resumed) /* what the server announces; on_data() counts what comes */
            curl_easy_setopt(c, CURLOPT_MAXFILESIZE_LARGE, t->limit);
        code = curl_easy_perform(c);
        curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &http);
        curl_easy_cleanup(c);
    }
    cli_progress_clear(&t->progress);
    if (t->file && fclose(t->file) != 0)
        t->write_failed = true;
    t->file = NULL;
    if (t->write_failed)
        return cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", part, strerror(errno));
    if (cli_interrupted())
        return cli_fail(err, SOTTO_E_ABORTED, "interrupted; the next try goes on from here");
    if (t->too_long || code == CURLE_FILESIZE_EXCEEDED) {
        cli_fail(err, SOTTO_E_FORMAT, "%s: is longer than %s %s; the file was removed", r->url,
                 r->size ? "the expected" : "the limit of", cli_count(t->limit, "byte").text);
        remove(part);
        return false;
    }
    if (code == CURLE_OK && r->size && size_of(part) < (curl_off_t)r->size) {
        cli_fail(err, SOTTO_E_FORMAT, "%s: has %s, expected %lld; the file was removed", r->url,
                 cli_count(size_of(part), "byte").text, (long long)r->size);
        remove(part);
        return false;
    }
    if (code == CURLE_OK)
        return *done = true;
    if (http == 416 && t->resumed) { /* nothing after what is there: whole, or of another file; the hash decides */
        if (!r->size && (r->sha256 || t->linked_hash[0]))
            return *done = true;
        remove(part);
        *again = true;
    } else if (code == CURLE_RANGE_ERROR) {
        remove(part);
        *again = true;
    } else {
        *again = may_pass(code, http);
        t->unresolved = code == CURLE_COULDNT_RESOLVE_HOST;
    }
    return cli_fail(err, http == 404 ? SOTTO_E_NOT_FOUND : SOTTO_E_IO, "%s: %s", r->url,
                    message[0] ? message : curl_easy_strerror(code));
}

static bool check_hash(const cli_fetch *r, const char *part, const transfer *t, sotto_error *err)
{
    const char *want = r->sha256 ? r->sha256 : t->linked_hash[0] ? t->linked_hash : NULL;
    char have[65];
    if (r->checked)
        *r->checked = want != NULL;
    if (!want)
        return true;
    if (!cli_sha256_file(part, have))
        return cli_fail(err, SOTTO_E_IO, "%s: %s", part, strerror(errno));
    if (cli_sha256_same(want, have))
        return true;
    remove(part);
    return cli_fail(err, SOTTO_E_FORMAT, "%s: wrong sha256: %s, expected %s; the file was removed", r->url, have, want);
}

static bool fetch_whole(const cli_fetch *r, const char *part, sotto_error *err)
{
    bool was_resumed = size_of(part) > 0, reached = false;
    int tries = 0;
    for (int n = 0; n < MAX_CONNECTIONS; n++) {
        transfer t = {.progress = cli_progress_start(strrchr(r->path, '/') ? strrchr(r->path, '/') + 1 : r->path,
                                                     r->quiet, false)};
        bool done, again;
        const bool ok = attempt(r, part, &t, &done, &again, err);
        if (done) {
            if (check_hash(r, part, &t, err)) {
                if (rename(part, r->path) == 0)
                    return true;
                return cli_fail(err, SOTTO_E_IO, "cannot write %s: %s", r->path, strerror(errno));
            }
            if (!was_resumed || err->code != SOTTO_E_FORMAT)
                return false;
            was_resumed = false; /* what an earlier run left may belong to another file: once more from the start */
            if (!r->quiet)
                cli_say(NULL, "the part that was there before does not fit; starting again");
            continue;
        }
        reached = reached || t.received > 0;
        if (ok || !again || (t.unresolved && !reached)) /* a name that is unknown from the start stays so */
            return false;
        tries = t.received > 0 ? 1 : tries + 1;
        if (tries >= MAX_TRIES)
            return false;
        const double seconds = 0.25 * (double)(1 << (tries - 1));
        if (!r->quiet)
            cli_say(NULL, "%s; trying again in %g s", err->text, seconds);
        pause_for(seconds);
        if (cli_interrupted())
            return cli_fail(err, SOTTO_E_ABORTED, "interrupted; the next try goes on from here");
    }
    return false;
}

bool cli_fetch_file(const cli_fetch *request, sotto_error *err)
{
    char *part = malloc(strlen(request->path) + 6);
    if (!part)
        return cli_fail(err, SOTTO_E_MEMORY, "out of memory");
    sprintf(part, "%s.part", request->path);
    const bool ok = fetch_whole(request, part, err);
    if (!ok && size_of(part) == 0)
        remove(part); /* nothing to go on from */
    free(part);
    return ok;
}

bool cli_fetch_page(const char *url, const char *accept, cli_text *out, char **final_url, sotto_error *err)
{
    char message[CURL_ERROR_SIZE], header[200];
    snprintf(header, sizeof header, "Accept: %s", accept);
    *final_url = NULL;
    for (int tries = 1;; tries++) {
        transfer t = {.text = out};
        out->size = 0;
        struct curl_slist *headers = curl_slist_append(NULL, header);
        CURL *c = open_transfer(&t, url, headers, message);
        long http = 0;
        const char *effective = NULL;
        CURLcode code = c ? curl_easy_perform(c) : CURLE_OUT_OF_MEMORY;
        if (c) {
            curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &http);
            curl_easy_getinfo(c, CURLINFO_EFFECTIVE_URL, &effective);
            if (code == CURLE_OK)
                *final_url = cli_path_join(NULL, effective ? effective : url);
            curl_easy_cleanup(c);
        }
        curl_slist_free_all(headers);
        if (code == CURLE_OK && *final_url)
            return true;
        if (cli_interrupted())
            return cli_fail(err, SOTTO_E_ABORTED, "interrupted");
        if (tries >= 4 || !may_pass(code, http) || code == CURLE_COULDNT_RESOLVE_HOST)
            return cli_fail(err, http == 404 ? SOTTO_E_NOT_FOUND : SOTTO_E_IO, "%s: %s", url,
                            message[0] ? message : curl_easy_strerror(code));
        pause_for(0.25 * (double)(1 << (tries - 1)));
    }
}

char *cli_url_resolve(const char *base, const char *reference)
{
    CURLU *u = curl_url();
    char *text = NULL, *copy = NULL;
    if (u && curl_url_set(u, CURLUPART_URL, base, 0) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_URL, reference, 0) == CURLUE_OK &&
        curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_URL, &text, 0) == CURLUE_OK)
        copy = cli_path_join(NULL, text);
    curl_free(text);
    curl_url_cleanup(u);
    return copy;
}
