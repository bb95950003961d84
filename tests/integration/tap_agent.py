# SPDX-License-Identifier: Apache-2.0
"""An agent for tests: the other side of tap/agent_protocol.h and tap/buffer_format.h, in plain Python.

Everything that waits polls for its condition up to a deadline.
"""

import array
import dataclasses
import json
import mmap
import os
import select
import socket
import struct
import time

HEADER = struct.Struct("<IHHII")
RECORD = struct.Struct("<IIHHIQ16s")
HELLO = struct.Struct("<IIQQII16s32s")
STATUS = struct.Struct("<IIIi16sII")
MAGIC, VERSION = 0x5041544E, 1
HELLO_TYPE, START, STOP, STATUS_TYPE, COLLECT = 1, 2, 3, 4, 5
HOLD = 1  # a flag of START
STATES = {1: "not_initialised", 2: "idle", 3: "streaming", 4: "busy", 5: "too_old", 6: "closed",
          7: "exited", 8: "start_failed", 9: "holding"}
RESULTS = {0: "none", 1: "ok", 2: "accepted", 3: "another", 4: "not_running", 5: "unsupported", 6: "invalid",
           7: "too_far", 8: "nothing_held"}
DOCUMENT, STARTED, STOPPED, LIFECYCLE, LOSS = 1, 2, 3, 4, 5
COUNTERS = ("documents", "document_bytes", "refused_documents", "refused_bytes", "refused_events",
            "deferred_fetches", "refused_control_records", "facts_truncated", "fetches", "empty_fetches",
            "fetch_errors", "fetch_ns", "drain_ns", "drain_rounds", "invalid_read_pos", "invalid_commands")
WAIT_SECONDS = 20

_TABLE = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    _TABLE.append(_c)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def wait_for(condition, what, seconds=WAIT_SECONDS):
    """Polls `condition` until it is true and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.002)  # tidy: poll


@dataclasses.dataclass
class Record:
    type: int
    flags: int
    nc_idx: int
    realtime_ns: int
    capture_id: bytes
    payload: bytes


class Buffer:
    """A worker's shared buffer, mapped."""

    def __init__(self, fd, size):
        self.size = size
        self.inode = os.fstat(fd).st_ino
        self.map = mmap.mmap(fd, size)
        os.close(fd)
        assert self.map[:8] == b"NTTAPBUF"
        self.ring_offset, self.ring_bytes = struct.unpack_from("<QQ", self.map, 32)
        self.pos = self.read_pos  # decoded so far, not committed

    def _u64(self, offset):
        return struct.unpack_from("<Q", self.map, offset)[0]

    @property
    def state(self):
        return STATES[struct.unpack_from("<I", self.map, 128)[0]]

    @property
    def write_pos(self):
        return self._u64(192)

    @property
    def read_pos(self):
        return self._u64(256)

    @read_pos.setter
    def read_pos(self, value):
        struct.pack_into("<Q", self.map, 256, value)

    @property
    def counters(self):
        return dict(zip(COUNTERS, struct.unpack_from("<16Q", self.map, 320)))

    def _copy(self, position, size):
        at = position % self.ring_bytes
        first = min(size, self.ring_bytes - at)
        start = self.ring_offset
        return self.map[start + at:start + at + first] + self.map[start:start + size - first]

    def read(self, commit=True, check=True):
        """The records since the last read."""
        records = []
        end = self.write_pos
        assert end - self.pos <= self.ring_bytes, (end, self.pos)
        while self.pos < end:
            head = self._copy(self.pos, RECORD.size)
            length, crc, kind, flags, nc_idx, realtime_ns, capture = RECORD.unpack(head)
            assert RECORD.size <= length <= end - self.pos, length
            whole = self._copy(self.pos, length)
            if check and length < 65536:
                assert crc == crc32c(whole[8:]), "checksum"
            records.append(Record(kind, flags, nc_idx, realtime_ns, capture, whole[RECORD.size:]))
            self.pos += (length + 7) & ~7
        if commit:
            self.read_pos = self.pos
        return records

    def facts(self):
        def attempt():
            copy = self.map[4096:65536]
            generation, used, crc = struct.unpack_from("<QII", copy)
            body = copy[16:16 + used]
            return (body,) if generation % 2 == 0 and crc32c(body) == crc else None

        body = wait_for(attempt, "a stable copy of the facts")[0]
        facts = {}
        while body:
            key_bytes, _, value_bytes = struct.unpack_from("<HHI", body)
            key = body[8:8 + key_bytes].decode()
            facts[key] = body[8 + key_bytes:8 + key_bytes + value_bytes].decode()
            body = body[8 + key_bytes + value_bytes:]
        return facts


def sequence_numbers(records):
    """nc_local_id of every event in the documents, per core, in order."""
    seen = {}
    for record in records:
        if record.type == DOCUMENT:
            for event in json.loads(record.payload)["events"]:
                seen.setdefault(event["nc_idx"], []).append(event["nc_local_id"])
    return seen


class Connection:
    def __init__(self, sock):
        self.sock = sock
        sock.setblocking(False)
        wait_for(lambda: select.select([sock], [], [], 0.1)[0], "HELLO")
        data, ancillary, _, _ = sock.recvmsg(4096, socket.CMSG_SPACE(8))
        fds = array.array("i")
        fds.frombytes(ancillary[0][2])
        magic, version, kind, length, _ = HEADER.unpack_from(data)
        assert (magic, version, kind, length) == (MAGIC, VERSION, HELLO_TYPE, len(data))
        (self.pid, self.uid, self.start_ticks, size, state, _, self.capture_id,
         version_text) = HELLO.unpack_from(data, HEADER.size)
        self.hello_state = STATES[state]
        self.tap_version = version_text.rstrip(b"\0").decode()
        self.buffer = Buffer(fds[0], size)
        self.wake_fd = fds[1]
        self.statuses = []

    def send(self, packet):
        self.sock.send(packet)

    def start(self, capture, events=65536):
        body = struct.pack("<16sQ4QIIIIQ", capture, events, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        self.send(HEADER.pack(MAGIC, VERSION, START, HEADER.size + len(body), 0) + body)

    def hold(self, capture, events=65536, begin_at_ns=0):
        """START of a trace that is not fetched."""
        body = struct.pack("<16sQ4QIIIIQ", capture, events, 0, 0, 0, 0, 0, 0, HOLD, 0, begin_at_ns)
        self.send(HEADER.pack(MAGIC, VERSION, START, HEADER.size + len(body), 0) + body)

    def collect(self, recorder, capture, at_ns=0):
        body = struct.pack("<16s16sQ", capture, recorder, at_ns)
        self.send(HEADER.pack(MAGIC, VERSION, COLLECT, HEADER.size + len(body), 0) + body)

    def stop(self, capture):
        body = struct.pack("<16sQ", capture, 0)
        self.send(HEADER.pack(MAGIC, VERSION, STOP, HEADER.size + len(body), 0) + body)

    def poll(self):
        """Reads what came; false when the tap has gone."""
        while True:
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                return True
            except ConnectionResetError:
                return False
            if not data:
                return False
            state, result, command, nrt, capture, size, _ = STATUS.unpack_from(data, HEADER.size)
            self.statuses.append({"state": STATES[state], "result": RESULTS[result], "command": command,
                                  "nrt": nrt, "capture": capture, "detail": data[-size:].decode() if size else ""})

    def answer(self, command):
        """Waits for the answer to a command and returns it; forgets what came before."""
        def find():
            self.poll()
            return next((s for s in self.statuses if s["command"] == command), None)

        found = wait_for(find, f"an answer to command {command}")
        self.statuses.clear()
        return found

    def wait_state(self, state):
        wait_for(lambda: self.buffer.state == state, f"state {state} (is {self.buffer.state})")

    def wait_ended(self):
        wait_for(lambda: not self.poll(), "the end of the connection")

    def close(self):
        self.sock.close()


class Agent:
    def __init__(self, path):
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen(16)
        self.listener.settimeout(WAIT_SECONDS)
        self.sockets = [self.listener]

    def accept_raw(self):
        self.sockets.append(self.listener.accept()[0])
        return self.sockets[-1]

    def accept(self):
        return Connection(self.accept_raw())

    def stop(self):
        """As an agent that ends: every socket closed, the path gone."""
        for sock in self.sockets:
            sock.close()
        self.sockets.clear()
        if os.path.exists(self.path):
            os.unlink(self.path)
