#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Serves the page and a synthetic capture through the API of docs/formats/view_api.md, with the standard library alone.

    web/build.sh build/web && python3 web/mock_server.py --assets build/web [--ranks 10000] [--token T] [--role viewer]

The capture has 24 ranks on 3 instances, steps of 12 layers with a collective each, gid 13 late, a loss, a suspension
and a damaged chunk. Answers are computed when they are asked for; items narrower than a pixel are merged, with true
counts.
"""

import argparse
import gzip
import http.server
import json
import os
import re
import time
import urllib.parse

from mock_capture import MockCapture
from mock_query import matches, parse
import mock_frames
import mock_insight

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
MAY = {"viewer": [], "operator": ["start", "stop", "edit"], "admin": ["start", "stop", "edit", "delete"]}
SEARCH_STREAMS_MAX = 96


class ApiError(Exception):
    def __init__(self, status, code, message, hint=""):
        super().__init__(message)
        self.status = status
        self.body = {"error": {"code": code, "message": message, "hint": hint, "needs_token": status == 401}}


class Store:
    """The captures, as a list of proto messages in JSON, and the events of each."""

    def __init__(self, ranks):
        self.captures = {}
        self.made = {}
        now = time.time_ns()
        self.add(
            "01JDQ5S7Z3DEMO000000000001",
            "llama-70b, step times",
            "llama-70b",
            ranks,
            now - 3600 * 10**9,
            20,
            True,
            ["baseline", "nightly"],
        )
        self.add("01JDQ5S7Z3LIVE000000000002", "watching the canary", "llama-70b", 8, now - 20 * 10**9, 0, False, [])
        self.add(
            "01JDQ5S7Z3HOST000000000003",
            "<b>hostile</b> \u202egnp.exe",
            "<img src=x onerror=alert(1)>",
            2,
            now - 86400 * 10**9,
            5,
            False,
            ["<i>"],
        )
        self.add("01JDQ5S7Z3CLEAN00000000004", "", "mixtral", 4, now - 2 * 86400 * 10**9, 8, False, ["clean"])

    def add(self, capture_id, name, job, ranks, begin_ns, seconds, starred, tags):
        self.made[capture_id] = capture = MockCapture(
            capture_id, name, ranks, begin_ns, seconds, clean="CLEAN" in capture_id, hostile="HOST" in capture_id
        )
        self.captures[capture_id] = {
            "captureId": capture_id,
            "spec": {"name": name, "job": job, "durationNs": str(seconds * 10**9)},
            "startedRealtimeNs": str(begin_ns),
            "stoppedRealtimeNs": str(begin_ns + seconds * 10**9 if seconds else 0),
            "starred": starred,
            "tags": tags,
            "ranks": ranks,
            "live": capture.is_live,
        }

    def capture_json(self, capture_id):
        entry, capture = dict(self.captures[capture_id]), self.made[capture_id]
        lost = sum(gap["events"] for stream in capture.streams for gap in stream["gaps"])
        live = entry.pop("live") and capture.is_live
        state = "RECORDING" if live else "INCOMPLETE" if lost else "COMPLETE"
        events = sum(capture.event_count(stream) for stream in capture.streams[:200])
        entry.update(
            state="CAPTURE_STATE_" + state,
            events=str(events),
            eventsLost=str(lost),
            bytes=str(events * 11),
            serverRealtimeNs=str(time.time_ns()),
        )
        if lost:
            entry["certificate"] = {
                "verdict": f"incomplete: {lost} events lost on 2 of {len(capture.streams)} streams"
            }
        return {key: value for key, value in entry.items() if value not in ("0", "", [], False)}

    def certificate(self, capture_id):
        capture = self.made[capture_id]
        lost = sum(gap["events"] for stream in capture.streams for gap in stream["gaps"])
        workers = []
        for stream in capture.streams[:64]:
            if stream["gid"] is None:
                continue
            gone, stored = sum(gap["events"] for gap in stream["gaps"]), capture.event_count(stream)
            workers.append(
                {
                    "worker": {"instanceId": capture.instances[stream["instance"]]["id"], "pid": 800 + stream["gid"]},
                    "part": "WORKER_PART_RECORDED",
                    "workerGids": [str(stream["gid"])],
                    "account": {
                        "expected": str(stored + gone),
                        "captured": str(stored),
                        "stored": str(stored),
                        "lost": str(gone),
                    },
                    "clock": {
                        "aligned": True,
                        "boundNs": stream["bound_ns"],
                        "words": f"within {int(stream['bound_ns']) / 1000} us",
                    },
                    "gaps": str(len(stream["gaps"])),
                    "gapsSumNs": str(sum(gap["end_ns"] - gap["begin_ns"] for gap in stream["gaps"])),
                    "job": "train",
                }
            )
        stored = sum(int(worker["account"]["stored"]) for worker in workers)
        return {
            "captureId": capture_id,
            "complete": lost == 0,
            "provisional": capture.is_live,
            "verdict": (
                "every event that the runtime produced is stored" if lost == 0 else f"{lost} events are missing"
            ),
            "account": {
                "expected": str(stored + lost),
                "captured": str(stored),
                "stored": str(stored),
                "lost": str(lost),
                "losses": (
                    [{"place": "LOSS_PLACE_RUNTIME_RING", "reason": "LOSS_REASON_OVERWRITTEN", "events": str(lost)}]
                    if lost
                    else []
                ),
            },
            "findings": [f"gid 5: {lost} events overwritten in the runtime's ring"] if lost else [],
            "notes": ["gid 16 to 23 were suspended for 1 s while another capture had their workers"],
            "workers": workers,
        }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    store = None
    downloads = {}  # by the name that the page gave
    options = None

    def log_message(self, *args):
        if self.options.verbose:
            super().log_message(*args)

    def do_GET(self):
        self.answer("GET")

    def do_POST(self):
        self.answer("POST")

    def do_PATCH(self):
        self.answer("PATCH")

    def do_DELETE(self):
        self.answer("DELETE")

    def answer(self, method):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        if not url.path.startswith("/api/v1/"):
            return self.sign_in(url, query) if "token" in query else self.asset(url.path)
        time.sleep(self.options.delay)
        try:
            body = json.loads(raw) if raw else {}
            result = self.route(method, url.path[len("/api/v1") :], query, body)
        except ApiError as error:
            return self.send(error.status, json.dumps(error.body).encode(), "application/json")
        except (KeyError, ValueError) as error:
            failure = ApiError(
                400, "INVALID_ARGUMENT", f"{type(error).__name__}: {error}", "See docs/formats/view_api.md."
            )
            return self.send(400, json.dumps(failure.body).encode(), "application/json")
        if isinstance(result, bytes):
            return self.send(200, result, "application/octet-stream")
        if result is not None:
            self.send(200, json.dumps(result).encode(), "application/json")
        return None

    def route(self, method, path, query, body):
        if path == "/session":
            return self.session(method, body)
        if self.options.token and f"nt={self.options.token}" not in (self.headers.get("Cookie") or ""):
            raise ApiError(401, "UNAUTHENTICATED", "a token is needed", "It is the one that --token was given.")
        if path == "/captures":
            return (
                self.start(body)
                if method == "POST"
                else {"captures": [self.store.capture_json(capture_id) for capture_id in self.store.captures]}
            )
        if path.startswith("/downloads/"):
            return self.download(method, path.rsplit("/", 1)[1])
        match = re.fullmatch(r"/captures/([^/]+)(?:/(\w+))?", path)
        if match:
            return self.capture(method, urllib.parse.unquote(match.group(1)), match.group(2), query, body)
        capture = next(iter(self.store.made.values()))
        tables = {
            "/agents": capture.agents,
            "/workers": capture.workers,
            "/clocks": capture.clocks,
            "/triggers": triggers,
            "/standing-exports": standing_exports,
        }
        if path in tables:
            return tables[path]()
        if path == "/why":
            if not self.options.watch:
                raise ApiError(409, "FAILED_PRECONDITION", "no watch is on", "neurontrace watch on")
            live = self.store.made[self.options.watch]
            return mock_insight.report(live, live.end - 10 * 10**9, live.end, "")
        if path == "/status":
            return {"version": "mock", "capturesStored": len(self.store.captures)}
        raise ApiError(404, "NOT_FOUND", f"{path} does not exist")

    def session(self, method, body):
        """Signs in, signs out, and says who is signed in."""
        token, cookies = self.options.token, {}
        if method == "DELETE":
            cookies = {"Set-Cookie": "nt=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"}
            return self.send(200, b"{}", "application/json", cookies)
        if method == "POST" and token and body.get("token") == token:
            cookies = {"Set-Cookie": f"nt={token}; Path=/; HttpOnly; SameSite=Strict"}
        elif token and f"nt={token}" not in (self.headers.get("Cookie") or ""):
            raise ApiError(401, "UNAUTHENTICATED", "a token is needed")
        rights = MAY[self.options.role]
        session = {
            "user": "ada",
            "role": self.options.role,
            "has_session": bool(token),
            "needs_token": False,
            "aggregator": "mock",
            "may": {"view": True, "export": True, **{right: right in rights for right in MAY["admin"]}},
            "server_time_ns": str(time.time_ns()),
        }
        return self.send(200, json.dumps(session).encode(), "application/json", cookies)

    def start(self, body):
        spec = body.get("spec", {})
        seconds = int(spec.get("duration_ns", 0)) // 10**9
        if body.get("dry_run"):
            rate = 31_400.0
            return {
                "captureId": "",
                "workers": [{}] * 24,
                "preview": {
                    "measuredNs": str(2 * 10**9),
                    "eventsPerSecond": rate,
                    "bytesPerSecond": rate * 11,
                    "durationNs": str(seconds * 10**9),
                    "events": str(int(rate * seconds)),
                    "bytes": str(int(rate * seconds * 11)),
                    "storeFreeBytes": "412000000000",
                    "quotaLeftBytes": "18446744073709551615",
                    "mostInstanceId": "i-0a1b",
                    "mostBytesPerSecond": rate * 4,
                },
            }
        capture_id = f"01JDQ5S7Z3NEW{len(self.store.captures):013d}"
        self.store.add(capture_id, spec.get("name", ""), spec.get("job", ""), 4, time.time_ns(), 0, False, [])
        return self.store.capture_json(capture_id)

    def capture(self, method, capture_id, what, query, body):
        if capture_id not in self.store.made:
            raise ApiError(404, "NOT_FOUND", f"capture {capture_id} does not exist", "It may have been deleted.")
        entry, capture = self.store.captures[capture_id], self.store.made[capture_id]
        if method == "DELETE":
            if body.get("confirm") not in (capture_id, entry["spec"]["name"]):
                raise ApiError(409, "FAILED_PRECONDITION", "the confirmation is not the capture's name")
            del self.store.captures[capture_id], self.store.made[capture_id]
            return {}
        if method == "PATCH":
            if not body or set(body) - {"name", "starred", "add_tags", "remove_tags", "retention_ns"}:
                raise ApiError(
                    400, "INVALID_ARGUMENT", "set name, starred, add_tags, remove_tags or retention_ns, nothing else"
                )
            entry["spec"]["name"] = capture.name = body.get("name", entry["spec"]["name"])
            entry["starred"] = body.get("starred", entry["starred"])
            entry["spec"]["retentionNs"] = str(int(body.get("retention_ns", entry["spec"].get("retentionNs", 0))))
            kept = set(entry["tags"]) - set(body.get("remove_tags", []))
            entry["tags"] = sorted(kept | set(body.get("add_tags", [])))
        if what == "stop":
            capture.stop()
            entry["stoppedRealtimeNs"] = str(time.time_ns())
        actions = {
            "layout": capture.layout,
            "certificate": lambda: self.store.certificate(capture_id),
            "artifacts": artifacts,
        }
        if what in actions:
            return actions[what]()
        if what == "watch":
            return self.watch(capture)
        if what in ("spans", "events", "search", "summary", "heat", "links", "why", "export", "artifact"):
            return getattr(self, what)(capture, query)
        return {**self.store.capture_json(capture_id), "certificate": self.store.certificate(capture_id)}

    def window(self, capture, query):
        low, high = int(query.get("from", capture.begin)), int(query.get("to", capture.end))
        if high <= low:
            raise ApiError(400, "INVALID_ARGUMENT", "to is not later than from")
        return low, high

    def chosen(self, capture, query):
        numbers = {int(number) for number in query.get("streams", "").split(",") if number}
        return [stream for stream in capture.streams if not numbers or stream["number"] in numbers]

    def spans(self, capture, query):
        low, high = self.window(capture, query)
        px = int(query["px"])
        if high <= low or px < 1 or px > 100000:
            raise ApiError(400, "INVALID_ARGUMENT", "from is not before to, or px is out of range")
        return mock_frames.spans(capture, self.chosen(capture, query), low, high, px)

    def events(self, capture, query):
        low, high = self.window(capture, query)
        terms, found = parse(query.get("q", "")), []
        for stream in self.chosen(capture, query)[:SEARCH_STREAMS_MAX]:
            for row in capture.rows(stream):
                found += [
                    capture.event_json(stream, row, event)
                    for event in row["events"]
                    if event[0] <= high and event[0] + event[1] >= low and matches(terms, stream, event)
                ]
        limit = int(query.get("limit", 200))
        return {
            "events": found[:limit],
            "next": "more" if len(found) > limit else "",
            "scanned_chunks": len(found) // 100 + 1,
        }

    def links(self, capture, query):
        chain = query.get("chain", "")
        if not re.fullmatch(r"\d+-\d+-\d+", query.get("event", "")) or chain not in ("", "upstream", "downstream"):
            raise ApiError(400, "INVALID_ARGUMENT", "event is not an id, or chain is unknown")
        answer = capture.links(query["event"], chain, int(query.get("depth", 8)), int(query.get("breadth", 3)))
        if answer is None:
            raise ApiError(404, "NOT_FOUND", f"event: '{query['event']}' is not in the capture")
        return answer

    def search(self, capture, query):
        low, high = self.window(capture, query)
        terms, hits, density, ranks, total = parse(query["q"]), [], [0] * 512, set(), 0
        streams = self.chosen(capture, query)
        for stream in streams[:SEARCH_STREAMS_MAX]:
            for row in capture.rows(stream):
                for event in row["events"]:
                    if low <= event[0] < high and matches(terms, stream, event):
                        total += 1
                        ranks.add(stream["number"])
                        density[min(511, (event[0] - low) * 512 // max(1, high - low))] += 1
                        hits.append({**capture.linked_json(stream, row, event), "duration_ns": str(event[1])})
        hits.sort(key=lambda hit: int(hit["start_ns"]))
        return {
            "hits": hits[: int(query.get("limit", 1000))],
            "total": str(total),
            "complete": len(streams) <= SEARCH_STREAMS_MAX,
            "density": density,
            "scanned_chunks": len(streams) * 4,
            "ranks": len(ranks),
            "next": "",
        }

    def summary(self, capture, query):
        low, high = self.window(capture, query)
        streams, groups, total = self.chosen(capture, query), {}, 0
        for stream in streams[:SEARCH_STREAMS_MAX]:
            for row in capture.rows(stream):
                for start, duration, name, _, _, children in row["events"]:
                    if start < high and start + duration > low:
                        key = name if query.get("by") != "rank" else stream["label"]
                        groups.setdefault(key, []).append((duration, max(0, duration - children)))
                        total += 1
        rows = []
        for name, lengths in groups.items():
            ordered = sorted(length for length, _ in lengths)
            rows.append(
                {
                    "name": name,
                    "count": str(len(ordered)),
                    "total_ns": str(sum(ordered)),
                    "self_ns": str(sum(own for _, own in lengths)),
                    "p50_ns": str(ordered[len(ordered) // 2]),
                    "p99_ns": str(ordered[int((len(ordered) - 1) * 0.99)]),
                    "min_ns": str(ordered[0]),
                    "max_ns": str(ordered[-1]),
                }
            )
        return {"rows": rows, "events": str(total), "complete": len(streams) <= SEARCH_STREAMS_MAX}

    def heat(self, capture, query):
        low, high = self.window(capture, query)
        metric, by, sort = query.get("metric", "busy"), query.get("by", "time"), query.get("sort", "rank")
        if metric not in mock_frames.METRICS or sort not in ("rank", "worst"):
            raise ApiError(400, "INVALID_ARGUMENT", f"metric '{metric}' or sort '{sort}' is unknown")
        columns, lines = int(query.get("columns", 400)), int(query.get("lines", 16384))
        return mock_frames.heat(capture, metric, low, high, columns, lines, by, sort)

    def why(self, capture, query):
        low, high = self.window(capture, query)
        return mock_insight.report(capture, low, high, query.get("job", ""))

    def export(self, capture, query):
        body = json.dumps({"traceEvents": [], "capture": capture.id, "query": query}).encode()
        self.attach(f'{capture.id}.{query["format"]}', body, query)

    def artifact(self, _, query):
        found = [one for one in artifacts()["artifacts"] if one["sha256"] == query.get("sha256")]
        if not found:
            raise ApiError(404, "NOT_FOUND", "the capture has no artifact with this SHA-256")
        self.attach(found[0]["path"].rsplit("/", 1)[1], bytes(int(found[0]["bytes"])), query)

    def attach(self, name, body, query):
        """Sends a file, whose download takes a few seconds if it has a name."""
        steps = 8 if "download" in query else 1
        state = self.downloads[query.get("download", "")] = {
            "state": "running", "file": name, "bytes": "0", "bytes_total": "0", "chunks_read": "0",
            "chunks_total": str(steps), "incomplete": False, "verdict": "", "warnings": [], "notes": []}
        for step in range(steps):
            if state["state"] != "running":
                self.close_connection = True
                return
            state.update(chunks_read=str(step), bytes=str(len(body) * step // steps))
            time.sleep(0.5 if steps > 1 else 0)
        state.update(state="done", bytes=str(len(body)), notes=["a mock has no events"])
        self.send(200, body, "application/octet-stream", {"Content-Disposition": f'attachment; filename="{name}"'})

    def download(self, method, name):
        state = self.downloads.get(name, {"state": "unknown"})
        if method == "DELETE" and state["state"] == "running":
            state["state"] = "cancelled"
        return state

    def watch(self, capture):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                data = {"state": capture.state, "version": capture.version, "end_ns": str(capture.end), "events": "0"}
                self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
                self.wfile.flush()
                if not capture.is_live:
                    return
                time.sleep(1)
        except OSError:
            return

    def asset(self, path):
        name = "index.html" if path == "/" or path.startswith("/capture/") else os.path.basename(path)
        try:
            with open(os.path.join(self.options.assets, name), "rb") as file:
                self.send(200, file.read(), TYPES.get(os.path.splitext(name)[1], "application/octet-stream"))
        except OSError:
            self.send(404, b"not found", "text/plain")

    def sign_in(self, url, query):
        rest = urllib.parse.urlencode({key: value for key, value in query.items() if key != "token"})
        self.send(303, b"", "text/plain", {"Location": f"{url.path}{'?' + rest if rest else ''}", "Set-Cookie":
                                           f"nt={query['token']}; HttpOnly; SameSite=Strict; Path=/"})

    def send(self, status, body, kind, headers=None):
        packed = len(body) > 1000 and "gzip" in (self.headers.get("Accept-Encoding") or "")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cross-Origin-Opener-Policy", "same-origin-allow-popups")
        self.send_header("Cache-Control", "no-store")
        if packed:
            body = gzip.compress(body, 1)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except OSError:  # the page cancels requests that are superseded
            self.close_connection = True


def artifacts():
    files = [
        ("395760075800974_instid_0_vnc_0.ntff", "ntff", 81234),
        ("neff_395760075800974.neff", "neff", 6500000),
        ("1776672348756756905/ntrace.pb", "ntrace", 912),
    ]
    place = "i-0a00005e2d_pid_812/"
    return {
        "artifacts": [
            {"path": place + name, "kind": kind, "sha256": f"{size:064x}", "bytes": str(size),
             "instanceId": "i-0a00005e2d", "pid": 812}
            for name, kind, size in files
        ],
        "missing": [{"path": place + "profile_nc_9_session_1.ntff", "bytes": "20000000000", "reason": "too large"}],
        "hidden": "2",
    }


def standing_exports():
    return {
        "exports": [
            {"name": "nightly", "to": "/fsx/traces", "formats": ["perfetto", "parquet"], "capture": "nightly*",
             "incomplete": True, "pending": "1", "done": "41", "runningCapture": "01JDQ5S7Z3DEMO000000000001",
             "lastRealtimeNs": str(time.time_ns() - 3600 * 10**9), "lastWrittenTo": "/fsx/traces/neurontrace_01JD"},
            {"name": "bucket", "to": "s3://traces/<b>", "formats": ["json"], "job": "llama-70b", "failed": "2",
             "lastRealtimeNs": str(time.time_ns() - 60 * 10**9), "lastProblem": "the bucket is not there"},
        ]
    }


def triggers():
    return {
        "file": "triggers.toml",
        "triggers": [
            {
                "rule": {
                    "name": "slow-step",
                    "kind": "TRIGGER_KIND_SLOW_EXECUTION",
                    "job": "llama-70b",
                    "timesMedian": 2.5,
                    "coolDownNs": str(600 * 10**9),
                    "perHourMax": 4,
                },
                "fired": "3",
                "suppressed": "11",
                "lastFiredRealtimeNs": str(time.time_ns() - 900 * 10**9),
                "lastCause": "gid 13 took 2.7 times its median",
            },
            {"rule": {"name": "worker-died", "kind": "TRIGGER_KIND_WORKER_DIED", "coolDownNs": str(60 * 10**9)}},
        ],
    }


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A page that closes its connection is no error."""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--assets", default="build/web", help="folder that web/build.sh wrote")
    parser.add_argument("--port", type=int, default=9403)
    parser.add_argument("--ranks", type=int, default=24)
    parser.add_argument("--role", choices=sorted(MAY), default="admin")
    parser.add_argument("--token", default="", help="ask for this token")
    parser.add_argument("--watch", default="", help="id of the capture that /why judges; without it no watch is on")
    parser.add_argument("--delay", type=float, default=0, help="seconds that each answer takes longer")
    parser.add_argument("--verbose", action="store_true")
    Handler.options = parser.parse_args()
    Handler.store = Store(Handler.options.ranks)
    server = Server(("127.0.0.1", Handler.options.port), Handler)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)
    print(f"http://127.0.0.1:{server.server_port}/capture/01JDQ5S7Z3DEMO000000000001", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
