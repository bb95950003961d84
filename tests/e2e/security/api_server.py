# SPDX-License-Identifier: Apache-2.0
"""Replaces the API server of a cluster, as far as it is asked who a token is: TokenReview over TLS."""

import base64
import http.server
import json
import ssl
import threading
import time

PATH = "/apis/authentication.k8s.io/v1/tokenreviews"


def make_token(namespace, name, audience="neurontrace", seconds=3600, salt=""):
    """As Kubernetes makes them, but for the signature."""
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()
    claims = {"aud": [audience], "exp": int(time.time()) + seconds, "jti": salt,
              "sub": f"system:serviceaccount:{namespace}:{name}"}
    return f"{part({'alg': 'RS256', 'kid': 'k'})}.{part(claims)}.c2lnbmF0dXJl"


class ApiServer:
    """Listens at once, with the certificate NAME of an authority. `users`: by their tokens, (user, audiences)."""

    def __init__(self, authority, name="apiserver"):
        self.own_token = "own-1"
        self.users = {}
        self.questions = []
        self.answer = None  # in place of the right one: (status, bytes)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue(name, "IP:127.0.0.1")
        context.load_cert_chain(authority.dir / f"{name}.pem", authority.dir / f"{name}.key")
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True,
                                                  do_handshake_on_connect=False)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def review(self, path, authorization, body):
        """The status and the body of the answer."""
        if authorization != f"Bearer {self.own_token}":
            return 401, b'{"kind":"Status","status":"Failure"}'
        question = json.loads(body)
        spec = question["spec"]
        if path != PATH or question["kind"] != "TokenReview":
            return 404, b'{"kind":"Status","status":"Failure"}'
        self.questions.append(spec["token"])
        if self.answer is not None:
            return self.answer
        user, audiences = self.users.get(spec["token"], ("", []))
        both = [audience for audience in spec["audiences"] if audience in audiences]
        if both:
            status = {"authenticated": True, "user": {"username": user, "uid": "1"}, "audiences": both}
        else:
            status = {"error": "invalid bearer token"}
        return 201, json.dumps({"apiVersion": question["apiVersion"], "kind": "TokenReview", "metadata": {},
                                "spec": spec, "status": status}).encode()

    def _handler(self):
        review = self.review

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, answer = review(self.path, self.headers["Authorization"], body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *arguments):
                del arguments

        return Handler
