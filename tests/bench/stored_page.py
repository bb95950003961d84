# SPDX-License-Identifier: Apache-2.0
"""The API of `neurontrace view` over a store, asked as a browser asks it: its answers come packed by gzip."""

import gzip
import http.cookiejar
import json
import re
import shutil
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from fleet import Process  # noqa: E402


def seconds_of(call, *arguments):
    begin = time.monotonic()
    result = call(*arguments)
    return result, time.monotonic() - begin


def peak_mib(*pids):
    """The highest resident memory of processes that still run."""
    status = [Path(f"/proc/{pid}/status").read_text(encoding="utf-8") for pid in pids]
    return sum(int(re.search(r"VmHWM:\s+(\d+)", text)[1]) for text in status) / 1024


class StoredPage:
    """`neurontrace view` with a store, which an aggregator of its own serves."""

    def __init__(self, build, store, capture, log_dir):
        command = [build / "bin" / "neurontrace", "--output", "json", "view", "--store", store,
                   "--listen", "127.0.0.1:0"]
        self._process = Process("view", command, log_dir, env={"NEURONTRACE_CONFIG": ""})
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
        url = json.loads(self._process.wait_for_line('"url"', seconds=600))["url"]
        self._origin = "/".join(url.split("/")[:3]) + "/api/v1/captures"
        self._opener.open(url, timeout=60).close()
        captures = [entry["capture_id"] for entry in self.header(self.get())["captures"]]
        self.path = "/" + next((found for found in captures if found.startswith(capture)), capture)

    def get(self, path=""):
        """The body as it comes, nearly always packed by gzip."""
        request = urllib.request.Request(self._origin + path, headers={"Accept-Encoding": "gzip"})
        with self._opener.open(request, timeout=3_600) as answer:
            return answer.read()

    @staticmethod
    def header(body):
        """The JSON of an answer, of spans that of their header."""
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        return json.loads(body[8:8 + int.from_bytes(body[4:8], "little")] if body[:4] == b"NTV1" else body)

    def spans(self, streams, window, pixels):
        return self.get(f"{self.path}/spans?px={pixels}&from={window[0]}&to={window[1]}&streams={streams}")

    def export(self, streams, window, file):
        request = f"{self._origin}{self.path}/export?format=perfetto&from={window[0]}&to={window[1]}&streams={streams}"
        with self._opener.open(request, timeout=3_600) as answer, open(file, "wb") as out:
            shutil.copyfileobj(answer, out)

    def close(self):
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
        peak = peak_mib(pid, *children)
        self._process.stop()
        return peak
