# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens a trace in Perfetto's own pages, compares what its trace processor has read with the file, and keeps a picture:
perfetto.py PAGES TRACE PICTURE"""
import base64
import collections
import functools
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time

SUMS = "select name, count(*), sum(dur) from slice group by name"
BROKEN = "select name from stats where severity in ('error', 'data_loss') and value > 0"
QUERY = """(async () => {
    const rows = await app.trace.engine.query(%s), columns = rows.columns(), all = [];
    for (const row = rows.iter({}); row.valid(); row.next())
        all.push(columns.map(c => String(row.get(c))));
    return all;
})()"""


class Browser:
    """Chromium without a screen, which takes commands through a pipe."""

    def __init__(self, profile):
        commands, self.to = os.pipe()
        self.answers, answers = os.pipe()
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "sh", "chromium", "--headless=new", "--no-sandbox", "--disable-gpu",
             "--remote-debugging-pipe", "--window-size=1500,1000", f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(commands)
        os.close(answers)
        self.number, self.rest, self.session = 0, b"", {}

    def ask(self, method, **params):
        self.number += 1
        os.write(self.to, json.dumps({"id": self.number, "method": method, "params": params, **self.session}).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                more = os.read(self.answers, 65536)
                assert more, "the browser has ended"
                self.rest += more
            text, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, address):
        target = self.ask("Target.createTarget", url=address)["targetId"]
        self.session = {"sessionId": self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}

    def evaluate(self, text):
        result = self.ask("Runtime.evaluate", expression=text, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")


def serve(pages, trace):
    """Perfetto's pages and the trace, on a port that this returns."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path):
            return trace if path == "/trace.json" else super().translate_path(path)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=pages))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def pieces_of(trace):
    """How many pieces of each name the file has, and for how long they take, in us. None: that depends on pairs."""
    pieces = collections.defaultdict(lambda: [0, 0.0])
    with open(trace, encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event["ph"] not in ("X", "i", "b"):
                continue
            piece = pieces[event["name"] or "[No name]"]
            piece[0] += 1
            if event["ph"] == "b":
                piece[1] = None
            elif event["ph"] == "X" and piece[1] is not None:
                piece[1] += event["dur"]
    return pieces


def main():
    pages, trace, picture = sys.argv[1:]
    wrote = pieces_of(trace)
    here = f"http://127.0.0.1:{serve(pages, trace)}"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(profile)
        try:
            browser.open(f"{here}/#!/?url={here}/trace.json")
            while not browser.evaluate("!!(window.app && app.trace && app.trace.engine)"):
                time.sleep(0.5)
            broken = browser.evaluate(QUERY % json.dumps(BROKEN))
            assert not broken, broken
            read = {name: (int(n), float(total) / 1000) for name, n, total in browser.evaluate(QUERY % json.dumps(SUMS))}
            # The picture shows what is drawn by then.
            time.sleep(5)
            with open(picture, "wb") as file:
                file.write(base64.b64decode(browser.ask("Page.captureScreenshot", format="png")["data"]))
        finally:
            browser.process.kill()
            browser.process.wait()
    assert wrote and wrote.keys() == read.keys(), wrote.keys() ^ read.keys()
    for name, (count, total) in wrote.items():
        assert count == read[name][0], (name, count, read[name])
        assert total is None or abs(total - read[name][1]) <= max(0.01 * total, 0.01), (name, total, read[name])
    print(f"{len(wrote)} names, {sum(c for c, _ in wrote.values())} pieces and their times, as Perfetto says")


main()
