# SPDX-License-Identifier: Apache-2.0
"""Those that are let in and mean harm: a tap of a hostile worker, an agent whose key was stolen, files that were cut off or
lead elsewhere. Each is refused in the right words, and what others record meanwhile is whole."""

import fcntl
import os
import socket
import struct
import subprocess

import suite
from fleet import wait_until
from secure_case import SecureCase

MAGIC, VERSION, HELLO, STATUS = 0x5041544E, 1, 1, 4
HEADER = struct.Struct("<IHHII")
BUFFER_BYTES = (64 << 10) + (1 << 20)  # header and facts, and the smallest ring
F_ADD_SEALS, SEAL_SHRINK, SEAL_GROW = 1033, 2, 4


class Tap:
    """Speaks tap/agent_protocol.h as wrongly as it is told."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.connect(str(path))
        self.wake = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def hello(self, version=VERSION, buffer_bytes=BUFFER_BYTES, content=b"", seals=SEAL_SHRINK | SEAL_GROW):
        memory = os.memfd_create("tap", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, buffer_bytes)
        os.pwrite(memory, content, 0)
        fcntl.fcntl(memory, F_ADD_SEALS, seals)
        body = struct.pack("<IIQQIHH16s32s", os.getpid(), os.getuid(), 1, buffer_bytes, 2, VERSION, 0, b"", b"0.1.0")
        self.send(HELLO, body, version, [memory, self.wake[1].fileno()])
        os.close(memory)

    def send(self, kind, body, version=VERSION, descriptors=()):
        packet = HEADER.pack(MAGIC, version, kind, HEADER.size + len(body), 0) + body
        try:
            socket.send_fds(self.socket, [packet], list(descriptors))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has been hung up on

    def is_hung_up(self):
        self.socket.setblocking(False)
        try:
            return self.socket.recv(65536) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self):
        for each in (self.socket, *self.wake):
            each.close()


class HostileTest(SecureCase):
    def lines(self, process):
        return process.log.read_text()

    def refuse(self, words, act):
        """The tap that `act` makes of it is hung up on, and the agent's log says why."""
        tap = Tap(self.fleet.socket_of("i-0001"))
        self.addCleanup(tap.close)
        act(tap)
        wait_until(tap.is_hung_up, f"the agent to hang up: {words}")
        wait_until(lambda: words in self.lines(self.fleet.agents["i-0001"]), f"the words: {words}")

    def test_a_hostile_tap(self):
        self.start_secure_fleet()
        capture = self.start_capture()
        self.refuse("an invalid message", lambda tap: tap.socket.send(os.urandom(200)))
        self.refuse("use a tap and an agent of the same release", lambda tap: tap.hello(version=99))
        self.refuse("not sealed against resizing", lambda tap: tap.hello(seals=0))
        self.refuse("has an invalid size of", lambda tap: tap.hello(buffer_bytes=1))
        self.refuse("wrong magic", lambda tap: tap.hello(content=b"\xff" * 4096))
        self.refuse("before HELLO", lambda tap: tap.send(STATUS, bytes(48)))
        self.refuse("of unknown type 77", lambda tap: tap.send(77, b""))
        self.refuse("descriptors, not 2", lambda tap: tap.send(HELLO, bytes(80), descriptors=[0]))
        self.wait_for_events(capture, 200)
        self.assertEqual(len(self.fleet.list_workers()), 1, "no worker came of it")
        self.stop_capture(capture)
        self.check_whole(capture)

    def test_a_hostile_agent(self):
        self.start_secure_fleet()
        capture = self.start_capture()
        self.wait_for_events(capture, 100)
        _, ca, _, certificate, _, key = self.agent
        done = subprocess.run([self.fleet.build / "tests" / "hostile_agent", self.fleet.address, ca, certificate, key,
                               capture, "agent-i-0001"], capture_output=True, text=True, timeout=240, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        printed = dict(line.split("\t", 1) for line in done.stdout.splitlines())
        expected = {
            "no hello": "the first report of a Control call must be a hello",
            "long name": "agent_id has 100000 bytes; the limit is 512",
            "huge hello": "larger than max",
            "no header": "REFUSAL_CODE_MALFORMED",
            "wrong checksum": "REFUSAL_CODE_MALFORMED the chunk's checksum is",
            "another's stream": "REFUSAL_CODE_MALFORMED a chunk of agent agent-i-0001's stream",
            "no such capture": "REFUSAL_CODE_UNKNOWN_CAPTURE",
            "huge chunk": "larger than max",
            "nobody": "needs the agent's id",
            "path out of it": "'..' is not an inspect directory",
            "name with a line": "'ntrace.pb?error: all is lost' is not an artifact's file name",
        }
        self.assertEqual(printed.keys(), expected.keys())
        for what, words in expected.items():
            with self.subTest(what):
                self.assertIn(words, printed[what])
        self.wait_for_events(capture, 200)
        self.assertEqual(self.fleet.cli_json("status")["agents_connected"], 1)
        self.stop_capture(capture)
        self.check_whole(capture)

    def test_escaping_and_truncated_files(self):
        watched, secret = self.fleet.dir / "profiles", self.fleet.dir / "secret.json"
        watched.mkdir()
        secret.write_text('{"traceEvents": [{"ph": "X", "name": "a secret", "ts": 5, "dur": 1, "pid": 1, "tid": 1}]}')
        self.start_secure_fleet(agent_options=("--framework-dir", watched))
        for name, make, words in (
                ("trace.json", lambda path: path.symlink_to(secret), "symbolic links below"),
                ("cut.trace.json", lambda path: path.write_text(secret.read_text()[:40]), "is truncated")):
            with self.subTest(name):
                capture = self.start_capture()
                self.wait_for_events(capture, 100)
                make(watched / name)
                ended = self.stop_capture(capture, None)
                worker, files = sorted(ended["workers"], key=lambda each: each["framework"])
                self.assertEqual((worker["state"], worker["events_lost"]), ("CAPTURE_WORKER_STATE_COMPLETE", "0"))
                self.assertIn(words, files["detail"])
                self.assertNotIn("a secret", self.fleet.export_events(capture).read_text())
                (watched / name).unlink()


if __name__ == "__main__":
    suite.main()
