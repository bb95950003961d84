# SPDX-License-Identifier: Apache-2.0
"""Hands a trace to Perfetto's page in the browser of this machine; the trace goes to no other machine."""

from __future__ import annotations

import http.server
import pathlib
import shutil
import time
import webbrowser
from typing import Callable

from .errors import NeurontraceError

PAGE = "https://ui.perfetto.dev"
PORT = 9001  # the only one that the page's content security policy allows


class _OneFile(http.server.BaseHTTPRequestHandler):
    """Answers requests of the page for one file."""

    server: "_Server"
    timeout = 30

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", PAGE)
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def do_GET(self) -> None:  # the name that http.server calls
        # The origin is required: other pages of the browser must not read the trace.
        if self.path != "/trace.pftrace" or self.headers.get("Origin") != PAGE:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(self.server.file.stat().st_size))
        self.end_headers()
        with open(self.server.file, "rb") as file:
            shutil.copyfileobj(file, self.wfile)
        self.server.is_fetched = True

    def log_message(self, format: str, *arguments: object) -> None:
        """Prints nothing: standard error belongs to the caller."""


class _Server(http.server.HTTPServer):
    allow_reuse_address = True

    def __init__(self, port: int, file: pathlib.Path):
        self.file = file
        self.is_fetched = False
        super().__init__(("127.0.0.1", port), _OneFile)


def open_trace(file: pathlib.Path, timeout: float, port: int = PORT,
               open_page: Callable[[str], bool] = webbrowser.open) -> None:
    """Opens a trace in Perfetto's page and returns when the page has it. Fails after `timeout` seconds."""
    try:
        server = _Server(port, file)
    except OSError as error:
        raise NeurontraceError(f"port {port} of this machine, which Perfetto's page asks, cannot be used: "
                               f"{error.strerror}; save the trace and open the file at {PAGE}") from None
    with server:
        address = f"{PAGE}/#!/?url=http://127.0.0.1:{server.server_port}/trace.pftrace"
        if not open_page(address):
            raise NeurontraceError(f"this machine has no browser; save the trace and open the file at {PAGE}")
        deadline = time.monotonic() + timeout
        while not server.is_fetched:
            server.timeout = deadline - time.monotonic()
            if server.timeout <= 0:
                raise NeurontraceError(f"Perfetto's page did not fetch the trace within {timeout:g} s; "
                                       f"save the trace and open the file at {PAGE}")
            server.handle_request()
