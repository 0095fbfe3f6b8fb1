#!/usr/bin/env python3
"""A web server that misbehaves on request, for the tests of `sotto get`. Standard library only.

Prints its port, then serves files of a folder. The first part of the path says how:
  /plain/NAME      as it should be, with ranges
  /norange/NAME    ignores ranges and always sends all with 200
  /drop/NAME       breaks the connection after half of what is left, until little is left
  /busy/NAME       answers 503 twice, then as /plain
  /never/NAME      always 503
  /slow/NAME       as /plain, after a pause
  /hang/NAME       never answers
  /moved/NAME      redirects to /plain/NAME
  /etag/NAME       states a wrong hash in X-Linked-Etag
  /simple-json/PACKAGE/  a package index page in JSON, with relative addresses
  /simple-html/PACKAGE/  the same in HTML
Every request is written to the log file as "METHOD PATH RANGE"."""
import http.server
import json
import os
import sys
import threading
import time

PAUSES = {"slow": 0.2, "hang": 3600}  # seconds


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    busy = {}
    lock = threading.Lock()

    def log_message(self, *args):
        pass

    def reply(self, code, body=b"", headers=()):
        self.send_response(code)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def index_page(self, how):
        files = sorted(os.listdir(self.server.folder))
        if how == "simple-json":
            page = {"files": [{"filename": f, "url": "../../plain/" + f, "hashes": {}} for f in files]}
            return self.reply(200, json.dumps(page).encode(), [("Content-Type", "application/vnd.pypi.simple.v1+json")])
        links = "".join('<a href="../../plain/%s#sha256=00" data-x="1">%s</a><br/>\n' % (f, f) for f in files)
        return self.reply(200, ("<!DOCTYPE html><html><body>" + links + "</body></html>").encode(), [("Content-Type", "text/html")])

    def do_GET(self):
        with self.lock:
            with open(self.server.log, "a") as log:
                log.write("%s %s %s\n" % (self.command, self.path, self.headers.get("Range", "-")))
        how, name = self.path.lstrip("/").split("/", 1)
        if how.startswith("simple-"):
            return self.index_page(how)
        if how in PAUSES:
            time.sleep(PAUSES[how])
        try:
            with open(os.path.join(self.server.folder, os.path.basename(name)), "rb") as f:
                data = f.read()
        except OSError:
            return self.reply(404, b"no such file\n")
        if how == "moved":
            return self.reply(302, b"", [("Location", "/plain/" + name)])
        if how in ("busy", "never"):
            with self.lock:
                self.busy[name] = self.busy.get(name, 0) + 1
                if how == "never" or self.busy[name] <= 2:
                    return self.reply(503, b"busy\n")
        start = 0
        wanted = self.headers.get("Range", "")
        if wanted.startswith("bytes=") and how != "norange":
            start = int(wanted[6:].split("-")[0])
        if start >= len(data) and start:
            return self.reply(416, b"", [("Content-Range", "bytes */%d" % len(data))])
        body = data[start:]
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", "bytes %d-%d/%d" % (start, len(data) - 1, len(data)))
        if how == "etag":
            self.send_header("X-Linked-Etag", '"%s"' % ("0" * 64))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if how == "drop" and len(body) > 5000:
            self.wfile.write(body[:len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.shutdown(2)
            return None
        self.wfile.write(body)
        return None


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that hangs up is part of the tests


def main():
    folder, log = sys.argv[1:3]
    server = Server(("127.0.0.1", 0), Handler)
    server.folder = folder
    server.log = log
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
