# SPDX-License-Identifier: Apache-2.0
"""What training code calls: annotations reach an injection library of NVTX, triggers reach an agent, and neither harms a
job where nothing listens."""

import contextlib
import doctest
import http.server
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

from built_package import WHEEL, suite

import neurontrace
from neurontrace import worker

# Appends what it is told to the file in NVTX_LOG, as an injection library records it.
INJECTION = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef void (*Fn)(void);
typedef struct { size_t size; int (*get)(int, Fn***, unsigned*); } Callbacks;
static FILE* log_file;
static int depth;
static int Push(const char* text) { fprintf(log_file, "push %s\n", text); fflush(log_file); return depth++; }
static int Pop(void) { fprintf(log_file, "pop\n"); fflush(log_file); return --depth; }
int InitializeInjectionNvtx2(const void* (*get)(uint32_t)) {
  Fn** table; unsigned size;
  const Callbacks* callbacks = get(1);
  log_file = fopen(getenv("NVTX_LOG"), "a");
  if (get(2) != NULL || callbacks == NULL || callbacks->size < sizeof(*callbacks)) return 0;
  if (callbacks->get(5, &table, &size)) return 0;
  if (!callbacks->get(1, &table, &size) || size < 16 || table[0] != NULL || table[16] != NULL) return 0;
  *table[9] = (Fn)Push;
  *table[11] = (Fn)Pop;
  return 1;
}
"""


def run_python(code, **environment):
    """Runs code in a process of its own, because the injection library is loaded at import."""
    return subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PYTHONPATH": str(WHEEL), **environment})


class Annotations(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_ranges_reach_the_library(self):
        source = self.directory / "injection.c"
        source.write_text(INJECTION)
        library, log = self.directory / "libinjection.so", self.directory / "log"
        subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)
        code = ("import neurontrace as nt\n"
                "@nt.annotate('load')\n"
                "def load(): pass\n"
                "with nt.step(812):\n"
                "    with nt.annotate('f\\0örward'): load()\n"
                "try:\n"
                "    with nt.annotate('x' * 2000): raise ValueError\n"
                "except ValueError: pass\n")
        done = run_python(code, NVTX_INJECTION64_PATH=str(library), NVTX_LOG=str(log))
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertEqual(log.read_text(encoding="utf-8").splitlines(),
                         ["push step 812", "push f örward", "push load", "pop", "pop", "pop", "push " + "x" * 1024, "pop"])

    def test_an_unusable_library_is_reported_once_and_harms_nothing(self):
        code = "import neurontrace as nt\nfor n in range(2):\n    with nt.step(n): print(n)"
        for path in (str(self.directory / "none.so"), "libc.so.6"):
            done = run_python(code, NVTX_INJECTION64_PATH=path)
            self.assertEqual((done.returncode, done.stdout), (0, "0\n1\n"))
            self.assertEqual(done.stderr.count("annotations are not recorded"), 1, done.stderr)

    def test_the_import_brings_neither_grpc_nor_threads(self):
        done = run_python("import sys, threading, neurontrace\n"
                          "print('grpc' in sys.modules, 'google.protobuf' in sys.modules, threading.active_count())")
        self.assertEqual(done.stdout, "False False 1\n", done.stderr)


class _Agent(http.server.BaseHTTPRequestHandler):
    status = 202

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, body.decode()))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"the answer\n")

    def log_message(self, *_):
        pass


class Triggers(unittest.TestCase):
    @contextlib.contextmanager
    def agent(self, status=202):
        """A server that answers with `status`; yields its address and the list of its requests."""
        handler = type("Agent", (_Agent,), {"status": status})
        with http.server.HTTPServer(("127.0.0.1", 0), handler) as server:
            server.posts = []
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"127.0.0.1:{server.server_port}", server.posts
            finally:
                server.shutdown()
                thread.join()

    def test_posts_the_cause(self):
        with self.agent() as (address, posts):
            self.assertEqual(neurontrace.trigger("loss-is-nan", "step 7", address=address, timeout=60),
                             (True, "the answer"))
            neurontrace.trigger("long", "é" * 5000, address=address, timeout=60)
        self.assertEqual(posts[0], ("/triggers/loss-is-nan", "step 7"))
        self.assertEqual(len(posts[1][1].encode()), 4096)

    def test_a_refusal_is_logged_and_raises_nothing(self):
        with self.agent(status=429) as (address, _), self.assertLogs("neurontrace", "WARNING") as logs:
            self.assertEqual(neurontrace.trigger("a", address=address, timeout=60), (False, "the answer"))
        self.assertIn("the answer", logs.output[0])
        with self.assertLogs("neurontrace", "WARNING") as logs:
            self.assertFalse(neurontrace.trigger("a", address="127.0.0.1:1").accepted)
        self.assertIn("no answer from the agent at 127.0.0.1:1", logs.output[0])

    def test_a_wrong_name_is_a_mistake_of_the_caller(self):
        for name in ("", "a/b", "a b", "a" * 65):
            with self.assertRaises(ValueError):
                neurontrace.trigger(name)


def load_tests(loader, tests, pattern):
    tests.addTests(doctest.DocTestSuite(worker))
    return tests


if __name__ == "__main__":
    suite.main()
