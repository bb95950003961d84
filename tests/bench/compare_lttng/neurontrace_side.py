# SPDX-License-Identifier: Apache-2.0
"""neurontrace: producers on the simulated runtime with the tap loaded, an agent, an aggregator."""

import os
import shutil
import struct
import subprocess
import time
from pathlib import Path

from fleet import Fleet, wait_until
from producers import Producers, cpu_seconds, directory_bytes, thread_cpu_seconds

INSTANCE = "i-compare"
TAP_THREAD = "neurontrace"
KINDS = {"page-cache": "neurontrace, page cache", "synced": "neurontrace, acknowledged and synced",
         "replay": "neurontrace, page cache, documents written in advance"}
# tap/buffer_format.h
TAP_MAGIC, TAP_FETCH_NS = b"NTTAPBUF", 320 + 11 * 8


def fetch_seconds(agent_pid):
    """Time that taps spent inside the runtime's fetch, from the buffers that the agent has mapped; only root may look."""
    buffers = {}
    with open(f"/proc/{agent_pid}/maps", encoding="ascii", errors="replace") as maps:
        ranges = [line.split()[0] for line in maps if "/memfd:" in line]
    for addresses in ranges:
        try:
            with open(f"/proc/{agent_pid}/map_files/{addresses}", "rb") as file:
                header = file.read(TAP_FETCH_NS + 8)
                if header[:8] == TAP_MAGIC:
                    buffers[os.fstat(file.fileno()).st_ino] = struct.unpack_from("<Q", header, TAP_FETCH_NS)[0]
        except OSError:
            continue
    return sum(buffers.values()) / 1e9


class NeurontraceSide:
    """Captures one after the other, into one store."""

    collector_parts = ("agent", "aggregator")
    bytes_each_round = False  # of all rounds together: a store has files in common

    def __init__(self, build, directory, kind, processes, seed, cores):
        self.name = KINDS[kind]
        durability = "synced" if kind == "synced" else "page-cache"
        self.dir = Path(directory)
        self.fleet = Fleet(build, self.dir)
        self._options = ("--durability", durability)
        self._agent_options = ("--log-level", "warn", "--spool-durability", durability)
        self.fleet.start_aggregator(*self._options)
        self.fleet.start_agent(INSTANCE, *self._agent_options)
        tap = self.fleet.build / "lib" / "libneurontrace_tap.so"
        env = {**os.environ, "LD_PRELOAD": str(tap), "NEURON_RT_NUM_CORES": str(cores),
               "NEURONTRACE_AGENT_SOCKET": str(self.fleet.socket_of(INSTANCE))}
        program = "compare_replay_producer" if kind == "replay" else "compare_neuron_producer"
        producer = self.fleet.build / "bench" / program
        self.producers = Producers(processes, lambda number: [producer, seed + 1000 * number, cores, number * cores],
                                   self.dir / "producers.log", env=env)
        self._processes = processes
        self.fleet.wait_for_workers(processes)
        self.capture = None

    # -- one capture ---------------------------------------------------------------------------------------------

    def begin(self):
        self.capture = self.fleet.cli("capture", "start").stdout.strip()
        wait_until(lambda: sum(worker["state"] == "WORKER_STATE_STREAMING"
                               for worker in self.fleet.list_workers()) == self._processes, "workers to record")

    def end(self):
        """Ends the capture; the seconds until all of it was stored."""
        begin = time.monotonic()
        self.fleet.cli("capture", "stop", self.capture, check=False)
        seconds = time.monotonic() - begin
        self.fleet.wait_for_workers(self._processes)
        return seconds

    def end_somehow(self):
        self.fleet.cli("capture", "stop", self.capture, check=False)

    def read(self, with_discarded=False):
        """Counts at the reader: (events, lost as the capture itself says, what went wrong in a word)."""
        del with_discarded  # it always says so
        command = [str(self.fleet.program("neurontrace")), "--aggregator", self.fleet.address, "export", self.capture,
                   "--format", "events", "-o", "-"]
        events = -1  # the first line is the certificate
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL) as export:
            while block := export.stdout.read1(1 << 20):
                events += block.count(b"\n")
        shown = self.fleet.show_capture(self.capture)
        return events, int(shown["events_lost"]), "" if export.returncode in (0, 3) else "the export fails"

    def bytes_on_disk(self):
        """Of all captures, as a store that was closed and opened again has them."""
        self.fleet.aggregator.stop()
        self.fleet.start_aggregator(*self._options)
        self.fleet.aggregator.stop()
        total = directory_bytes(self.dir / "store")
        self.fleet.start_aggregator(*self._options)
        self.fleet.wait_for_status(1)
        self.fleet.wait_for_workers(self._processes)
        return total

    def forget(self):
        self.fleet.cli("captures", "delete", self.capture, check=False)

    # -- processor time ------------------------------------------------------------------------------------------

    def cpu(self):
        """Seconds so far, by part."""
        agent = self.fleet.agents[INSTANCE].pid
        return {"agent": cpu_seconds(agent),
                "aggregator": cpu_seconds(self.fleet.aggregator.pid),
                "tap's thread": sum(thread_cpu_seconds(pid, TAP_THREAD) for pid in self.producers.pids),
                "the runtime's fetch": fetch_seconds(agent)}

    # -- the end -------------------------------------------------------------------------------------------------

    def kill(self, daemon):
        """SIGKILL, and started again, as an init system would."""
        if daemon == "agent":
            self.fleet.agents[INSTANCE].kill()
            self.fleet.start_agent(INSTANCE, *self._agent_options)
        else:
            self.fleet.aggregator.kill()
            self.fleet.start_aggregator(*self._options)
            self.fleet.wait_for_status(1)

    def close(self):
        self.producers.close()
        self.fleet.shut_down()
        shutil.rmtree(self.dir, ignore_errors=True)
