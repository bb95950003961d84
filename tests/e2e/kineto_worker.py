# SPDX-License-Identifier: Apache-2.0
"""A stand-in for a PyTorch process: it uses the simulated runtime and speaks Kineto's daemon protocol as
libkineto does, with the same variables of the environment. The tap and the runtime are preloaded.

usage: kineto_worker.py record|busy

`busy` is a process whose program uses the profiler itself. A process without KINETO_USE_DAEMON=1 asks nobody. It ends
when its standard input does.
"""

import json
import mmap
import os
import select
import socket
import struct
import sys
import tempfile
import time
import uuid
from pathlib import Path

from simulated_runtime import runtime_of_environment

POLL_SECONDS = float(os.environ.get("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS", "5"))
ANSWER_SECONDS = 0.09  # libkineto looks nine times, every 10 ms
HEADER = struct.Struct("<Q32s")
MICROSECOND_NS = 1_000
STEP_US = 100_000


class Profiler:
    """What has been ordered, and whether another order would be taken."""

    def __init__(self, is_busy):
        self.is_busy = is_busy
        self.config = None

    def takes_orders(self):
        return not self.is_busy and self.config is None

    def end_seconds(self):
        return (int(self.config["PROFILE_START_TIME"]) + int(self.config["ACTIVITIES_DURATION_MSECS"])) / 1000

    def write_if_over(self):
        """Kineto inserts the pid before the ending, and renames the file when it is whole."""
        if self.config is None or time.time() < self.end_seconds():
            return
        config, self.config = self.config, None
        begin_us = int(config["PROFILE_START_TIME"]) * 1000
        end_us = begin_us + int(config["ACTIVITIES_DURATION_MSECS"]) * 1000
        events = []
        for step, start_us in enumerate(range(begin_us, end_us, STEP_US)):
            for category, name in (("user_annotation", f"ProfilerStep#{step}"), ("cpu_op", "aten::mm")):
                events.append({"ph": "X", "cat": category, "name": name, "pid": os.getpid(), "tid": os.getpid(),
                               "ts": start_us, "dur": STEP_US})
        path = config["ACTIVITIES_LOG_FILE"].replace(".pt.trace.json", f"_{os.getpid()}.pt.trace.json")
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            json.dump({"schemaVersion": 1, "trace_id": config["REQUEST_TRACE_ID"], "traceEvents": events}, file)
        os.rename(path + ".tmp", path)


def ask(client, daemon, profiler):
    """One request for orders; nobody need answer."""
    kind = 3 if profiler.takes_orders() else 0
    body = struct.pack("<iiqii", kind, 2, 0, os.getpid(), os.getppid())
    try:
        client.sendto(HEADER.pack(len(body), b"req") + body, daemon)
    except OSError:
        return
    client.settimeout(ANSWER_SECONDS)
    try:
        answer = client.recv(65_536)
    except TimeoutError:
        return
    size, kind = HEADER.unpack_from(answer)
    if kind.rstrip(b"\0") == b"req" and size:
        text = answer[HEADER.size:HEADER.size + size].decode()
        profiler.config = dict(line.split("=", 1) for line in text.splitlines())


def map_library():
    """Maps a file by which the agent sees that the process has PyTorch; the mapping stays for as long as it is held."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "libtorch_cpu.so"
        path.write_bytes(bytes(mmap.PAGESIZE))
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)


def main():
    library = map_library()
    runtime = runtime_of_environment()
    profiler = Profiler(sys.argv[1] == "busy")
    client = daemon = None
    if os.environ.get("KINETO_USE_DAEMON") == "1":
        directory = os.environ["KINETO_IPC_SOCKET_DIR"]
        daemon = f"{directory}/dynolog"
        client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        client.bind(f"{directory}/dynoconfigclient{uuid.uuid4()}")
        context = struct.pack("<iiq", 0, os.getpid(), 0)
        client.sendto(HEADER.pack(len(context), b"ctxt") + context, daemon)
        client.settimeout(ANSWER_SECONDS)
        assert HEADER.unpack_from(client.recv(4096))[1].startswith(b"ctxt")
    print("ready", flush=True)
    while True:
        with runtime.execution():
            pass
        if client is not None:
            ask(client, daemon, profiler)
            profiler.write_if_over()
        # Waits until the next request, or for the end.
        readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        if readable and not sys.stdin.read(1):
            break
    library.close()
    if client is not None:
        os.unlink(client.getsockname())


if __name__ == "__main__":
    main()
