# SPDX-License-Identifier: Apache-2.0
"""What strangers can do to the ports and sockets that are there for others: many connections, slow ones, garbage. A
capture that continues meanwhile is whole, and nothing crashes."""

import errno
import os
import resource
import socket
import ssl
import threading
import time
from pathlib import Path

import suite
from fleet import wait_until
from secure_case import SecureCase

CONNECTIONS = 1_000
RELEASE_S = 40  # four times what a handshake may take, on a busy machine
HUNG_UP = (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError, ssl.SSLZeroReturnError)
EXCHANGES = 12  # of an agent's clock that must succeed while its aggregator's port is flooded


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

    def connect(self, source="127.0.0.1"):
        host, port = self.fleet.address.rsplit(":", 1)
        connection = socket.create_connection((host, int(port)), timeout=30, source_address=(source, 0))
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
        """Who comes when descriptors are left for files alone is sent away; the port is there for who comes next."""
        self.start_secure_fleet(aggregator_prefix=("prlimit", "--nofile=512:512"))
        capture = self.start_capture()
        for i in range(CONNECTIONS):
            self.connect(f"127.0.0.{2 + i % 200}")
        wait_until(lambda: self.closed() > CONNECTIONS / 2, "connections to be sent away")
        for each in self.held:
            each.close()
        wait_until(lambda: self.cli_as(self.admin, "status").returncode == 0, "the aggregator to answer")
        self.wait_for_events(capture, 200)
        self.assertGreater(self.connections_refused("descriptors"), 0)
        self.stop_capture(capture)
        self.check_whole(capture)

    def test_more_connections_than_one_address_may_have(self):
        """Others are let in all the time."""
        self.start_secure_fleet(aggregator_prefix=("prlimit", "--nofile=512:512"))
        capture = self.start_capture()
        for _ in range(CONNECTIONS):
            self.connect("127.0.0.2")
        self.assertEqual(self.cli_as(self.admin, "status").returncode, 0)
        wait_until(lambda: self.closed() > CONNECTIONS / 2, "connections to be sent away")
        self.assertEqual(self.cli_as(self.admin, "status").returncode, 0)
        self.assertGreater(self.connections_refused("address"), CONNECTIONS / 2)
        self.assertEqual(self.connections_refused("descriptors"), 0)
        self.fleet.aggregator.wait_for_line("127.0.0.2 has reached the limit of connections per address")
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        self.check_whole(capture)

    def connections_refused(self, reason):
        name = f'neurontrace_aggregator_connections_refused_total{{reason="{reason}"}}'
        return self.fleet.aggregator.metric(name)

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
        for words in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" + os.urandom(1 << 16), b"\0" * 4096, hello):
            connection = self.connect()
            self.send_to(connection, words)
            # TLS says what is wrong (an alert: 0x15), or nothing. Half a hello is waited for, ten seconds.
            answer = self.read_to_the_end(connection)
            self.assertIn(answer[:1], (b"", b"\x15"), words[:16])
            self.assertLess(len(answer), 64)
        self.speak_garbage_in_tls()
        self.speak_garbage_to_the_health_port()
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        self.check_whole(capture)

    def send_to(self, connection, words):
        """As much of it as the other side takes before it hangs up."""
        connection.settimeout(RELEASE_S)
        try:
            connection.sendall(words)
        except HUNG_UP:
            pass  # it has; what hear_to_the_end finds too

    def read_to_the_end(self, connection):
        """All that the other side says until it hangs up, which it has to do in time."""
        deadline = time.monotonic() + RELEASE_S
        received = b""
        while time.monotonic() < deadline:
            connection.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                words = connection.recv(1 << 16)
            except HUNG_UP:
                return received
            except TimeoutError:
                break
            if not words:
                return received
            received += words
        return self.fail(f"not let go within {RELEASE_S} s; it said {received[:64]}")

    def speak_garbage_in_tls(self):
        """From somebody with a good certificate, over HTTP/2: what is no call, or too large a one."""
        context = ssl.create_default_context(cafile=str(self.ca.ca))
        context.load_cert_chain(self.admin[3], self.admin[5])
        context.set_alpn_protocols(["h2"])
        preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        settings = b"\0\0\0\4\0\0\0\0\0"
        huge = b"\xff\xff\xff\1\5\0\0\0\1"  # a HEADERS frame that says it has 16 MiB
        for words in (b"\xff" + os.urandom(1 << 14), preface + b"\xff" * (1 << 14),
                      preface + settings + huge + b"\0" * (1 << 16)):
            secure = context.wrap_socket(self.connect(), server_hostname="localhost")
            self.held.append(secure)
            self.send_to(secure, words)
            self.read_to_the_end(secure)

    def speak_garbage_to_the_health_port(self):
        refusal = rb"^HTTP/1\.[01] 4\d\d "
        for words, answer in (
                # Of these more comes than is read, so that the answer may be lost with the connection.
                (b"GET /" + b"a" * (1 << 20), refusal + b"|^$"), (b"\xff" * (1 << 16), refusal + b"|^$"),
                (b"POST /triggers/x HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", refusal),
                (b"GET /../../etc/passwd HTTP/1.0\r\n\r\n", refusal)):
            with socket.create_connection(("127.0.0.1", self.fleet.aggregator.health_port), timeout=30) as connection:
                self.send_to(connection, words)
                self.assertRegex(self.read_to_the_end(connection), answer)

    def test_strangers_at_the_agents_socket(self):
        self.start_secure_fleet()
        path = str(self.fleet.socket_of("i-0001"))
        agent = self.fleet.agents["i-0001"]
        capture = self.start_capture()
        words = (b"{}", os.urandom(4096), b"\xff" * 65536)
        for each in words:
            stranger = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self.held.append(stranger)
            stranger.connect(path)
            stranger.send(each)
            self.assertEqual(self.read_to_the_end(stranger), b"")
        wait_until(lambda: agent.metric("neurontrace_agent_taps_refused_total") == len(words), "three refusals")
        agent.wait_for_line("was disconnected: ")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other_kind:
            with self.assertRaises(OSError) as refused:
                other_kind.connect(path)
            self.assertEqual(refused.exception.errno, errno.EPROTOTYPE)
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        self.check_whole(capture)

    def test_a_flood_of_the_probe_port(self):
        """Packets of strangers, faster than any agent asks: the agent's clock is measured on, one way or the other."""
        self.start_secure_fleet()
        self.fleet.wait_for_clocks(1)
        port = self.probe_port()
        measured = threading.Event()
        floods = [threading.Thread(target=self.flood_probes, args=(port, measured)) for _ in range(2)]
        before = self.clock_exchanges()
        for each in floods:
            each.start()
        try:
            goal = before + EXCHANGES
            wait_until(lambda: self.clock_exchanges() >= goal and self.least_refused() > 1_000,
                       "the clock to be measured during the flood", 60)
        finally:
            measured.set()
            for each in floods:
                each.join()
        self.fleet.wait_for_clocks(1)

    def least_refused(self):
        return min(self.fleet.aggregator.metric(f'neurontrace_aggregator_probes_refused_total{{reason="{reason}"}}')
                   for reason in ("malformed", "unknown_key"))

    def clock_exchanges(self):
        return self.fleet.agents["i-0001"].metric("neurontrace_agent_clock_exchanges_total")

    def probe_port(self):
        """Of the aggregator's one UDP socket that hears everybody."""
        pid = self.fleet.aggregator.pid
        files = [os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir()]
        lines = [line.split() for line in Path(f"/proc/{pid}/net/udp").read_text().splitlines()[1:]]
        ports = [int(line[1].split(":")[1], 16) for line in lines if f"socket:[{line[9]}]" in files
                 and line[2] == "00000000:0000"]
        self.assertEqual(len(ports), 1, ports)
        return ports[0]

    @staticmethod
    def flood_probes(port, measured):
        question = b"NTPB\1\1\0\0" + os.urandom(56)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.connect(("127.0.0.1", port))
            while not measured.is_set():
                for packet in (question, os.urandom(64), b"", os.urandom(1_400)):
                    stranger.send(packet)

    def test_foreign_socket_path(self):
        """An agent takes away a socket that nobody listens at; a file or a link that is there it leaves alone."""
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
