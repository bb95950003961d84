# SPDX-License-Identifier: Apache-2.0
"""What strangers can do to the ports and sockets that are there for others: many connections, slow ones, garbage. A
capture that goes on meanwhile is whole, and nothing crashes."""

import os
import resource
import socket
import ssl
import time

import suite
from fleet import wait_until
from secure_case import SecureCase

CONNECTIONS = 1_000


class FloodTest(SecureCase):
    def setUp(self):
        super().setUp()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if hard != resource.RLIM_INFINITY and hard < 4 * CONNECTIONS:
            self.skipTest(f"a process may have {hard} files open here, and {4 * CONNECTIONS} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (4 * CONNECTIONS, hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        self.held = []
        self.addCleanup(lambda: [each.close() for each in self.held])

    def connect(self):
        host, port = self.fleet.address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=30)
        self.held.append(connection)
        return connection

    def test_a_thousand_connections_and_a_capture(self):
        self.start_secure_fleet()
        capture = self.start_capture()
        for _ in range(CONNECTIONS):
            self.connect()
        self.wait_for_events(capture, 500)
        self.assertEqual(self.fleet.cli_json("status")["agents_connected"], 1)
        self.stop_capture(capture)
        # Who has not begun to speak after ten seconds is let go.
        closed = wait_until(lambda: self.closed() == CONNECTIONS, "the connections to be closed", 40)
        self.assertTrue(closed)
        self.check_whole(capture)

    def test_more_connections_than_descriptors(self):
        """Who comes when descriptors are left for files alone is sent away, and the port is there for who comes next."""
        self.start_secure_fleet(aggregator_prefix=("prlimit", "--nofile=512:512"))
        capture = self.start_capture()
        for _ in range(CONNECTIONS):
            self.connect()
        wait_until(lambda: self.closed() > CONNECTIONS / 2, "connections to be sent away")
        for each in self.held:
            each.close()
        wait_until(lambda: self.cli_as(self.admin, "status").returncode == 0, "the aggregator to answer")
        self.wait_for_events(capture, 200)
        self.assertGreater(self.metric(self.fleet.aggregator, "neurontrace_aggregator_connections_refused_total"), 0)
        self.stop_capture(capture)
        self.check_whole(capture)

    def closed(self):
        count = 0
        for connection in self.held:
            connection.setblocking(False)
            try:
                count += connection.recv(1 << 16) == b""
            except BlockingIOError:
                pass
            except OSError:
                count += 1
        return count

    def test_garbage_and_half_sentences(self):
        self.start_secure_fleet()
        capture = self.start_capture()
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(32)  # the beginning of a ClientHello
        for words in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(1 << 16), b"\0" * 4096, hello):
            connection = self.connect()
            try:
                connection.sendall(words)
            except OSError:
                pass  # closed before all of it was sent
        self.speak_garbage_in_tls()
        port = int(self.fleet.aggregator.wait_for_line("health on port").rsplit(" ", 1)[1])
        for words in (b"GET /" + b"a" * (1 << 20), os.urandom(1 << 16), b"POST /triggers/x HTTP/1.1\r\n"
                      b"Content-Length: 99999999999\r\n\r\n", b"GET /../../etc/passwd HTTP/1.0\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
                try:
                    connection.sendall(words)
                    connection.settimeout(1)
                    self.assertNotIn(b"root:", connection.recv(4096))
                except OSError:
                    pass  # closed, or nothing to say
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        self.check_whole(capture)

    def speak_garbage_in_tls(self):
        """From somebody with a good certificate, over HTTP/2: what is no call, or too large a one."""
        context = ssl.create_default_context(cafile=str(self.ca.ca))
        context.load_cert_chain(self.admin[3], self.admin[5])
        context.set_alpn_protocols(["h2"])
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        settings = b"\0\0\0\4\0\0\0\0\0"
        huge = b"\xff\xff\xff\1\5\0\0\0\1"  # a HEADERS frame that says it has 16 MiB
        for words in (os.urandom(1 << 14), preface + os.urandom(1 << 14), preface + settings + huge + b"\0" * (1 << 16)):
            secure = context.wrap_socket(self.connect(), server_hostname="localhost")
            self.held.append(secure)
            try:
                secure.sendall(words)
                deadline = time.monotonic() + 20
                while secure.recv(4096) and time.monotonic() < deadline:
                    pass
            except OSError:
                pass  # closed in the middle

    def test_strangers_at_the_agents_socket(self):
        self.start_secure_fleet()
        path = str(self.fleet.socket_of("i-0001"))
        capture = self.start_capture()
        for words in (b"", b"{}", os.urandom(4096), b"\xff" * 65536):
            stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.held.append(stranger)
            try:
                stranger.connect(path)
                stranger.send(words)
            except OSError:
                pass  # another kind of socket, or refused
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        self.check_whole(capture)

    def test_a_socket_path_that_is_somebody_elses(self):
        """An agent takes away a socket that nobody listens at; a file or a link that stands there it leaves alone."""
        precious = self.fleet.dir / "precious"
        precious.write_text("mine")
        for name, make in (("file", lambda path: path.write_text("mine")), ("link", lambda p: p.symlink_to(precious))):
            path = self.fleet.dir / f"{name}.sock"
            make(path)
            done = self.run_program("neurontrace-agent", "--aggregator", "127.0.0.1:1", "--socket", path, "--spool",
                                    "none", "--health-address", "127.0.0.1:0")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(str(path), done.stderr)
            self.assertEqual(path.read_text(), "mine")


if __name__ == "__main__":
    suite.main()
