# SPDX-License-Identifier: Apache-2.0
"""A real S3 server over a directory, and a proxy before it that loses answers and holds requests back."""
import http.client
import http.server
import os
import socket
import subprocess
import threading
import urllib.parse

from fleet import free_ports, wait_until

KEY_ID, SECRET = "test", "secret"
# What is between two parties only, and not of the message.
HOP_HEADERS = {"connection", "keep-alive", "expect", "transfer-encoding"}


class S3Server:
    """VersityGW over `directory`, whose folders are buckets; `options`: --cert and --key for TLS."""

    def __init__(self, program, directory, log, *options):
        self.program = program
        self.port, = free_ports(1)
        environment = {**os.environ, "ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": SECRET}
        self._log = open(log, "ab")
        self._process = subprocess.Popen([program, "--port", f"127.0.0.1:{self.port}", *options, "posix", directory],
                                         env=environment, stdin=subprocess.DEVNULL, stdout=self._log,
                                         stderr=self._log)
        wait_until(self._answers, "the S3 server")

    def _answers(self):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._log.close()


class Request:
    """One that came by: its method, the object's key with the bucket, and the names in its query."""

    def __init__(self, method, target):
        parts = urllib.parse.urlsplit(target)
        self.method = method
        self.key = urllib.parse.unquote(parts.path).lstrip("/")
        self.query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))

    def is_part(self, number=None):
        return self.method == "PUT" and self.query.get("partNumber") in ({str(number)} if number else self.query.values())

    def is_completion(self):
        return self.method == "POST" and "uploadId" in self.query


class Proxy:
    """Precedes an S3 server. Rules, each for one request, are told with lose_answer and hold."""

    def __init__(self, port):
        self.requests = []  # all that came, in their order
        self._rules = []  # (matches, action)
        self._lock = threading.Lock()
        self._released = threading.Event()
        self._handler = self._make_handler(port)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler)
        self._server.daemon_threads = True
        self.endpoint = f"127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._released.set()
        self._server.shutdown()
        self._server.server_close()

    def lose_answer(self, matches, times=1):
        """The server does what it is asked for, and who asked hears nothing."""
        with self._lock:
            self._rules += [(matches, "lose")] * times

    def hold(self, matches, times=1):
        """Requests that are not passed on before release()."""
        with self._lock:
            self._rules += [(matches, "hold")] * times

    def release(self):
        self._released.set()

    def seen(self, matches):
        with self._lock:
            return sum(1 for request in self.requests if matches(request))

    def keys(self, matches):
        """Of the objects that such requests were for."""
        with self._lock:
            return {request.key for request in self.requests if matches(request)}

    def lost(self):
        """True once every rule has had its request."""
        with self._lock:
            return not self._rules

    def headers_for_server(self, _method, _target, headers, _body):
        """Pairs of name and value; whoever signs differently overrides it."""
        return headers.items()

    def _action_for(self, request):
        with self._lock:
            self.requests.append(request)
            for rule in self._rules:
                if rule[0](request):
                    self._rules.remove(rule)
                    return rule[1]
        return None

    def _make_handler(self, port):
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                action = proxy._action_for(Request(self.command, self.path))
                if action == "hold":
                    proxy._released.wait(120)
                status, headers, answer = self.ask_server(body)
                if action == "lose":
                    self.close_connection = True
                    return
                try:
                    self.send_response_only(status)
                    for name, value in headers:
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(answer)
                except OSError:
                    self.close_connection = True  # who asked is gone

            def ask_server(self, body):
                server = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in proxy.headers_for_server(self.command, self.path, self.headers, body):
                    if name.lower() not in HOP_HEADERS:
                        server.putheader(name, value)
                server.endheaders(body or None)
                reply = server.getresponse()
                answer = reply.read()
                headers = [item for item in reply.getheaders() if item[0].lower() not in HOP_HEADERS]
                if "content-length" not in {name.lower() for name, _ in headers}:
                    headers.append(("Content-Length", str(len(answer))))
                server.close()
                return reply.status, headers, answer

            def log_message(self, *_):
                pass

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any

        return Handler
