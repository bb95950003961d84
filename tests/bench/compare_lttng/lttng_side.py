# SPDX-License-Identifier: Apache-2.0
"""LTTng, run from Debian's packages: session daemon, consumer daemon and, for a cluster, relay daemon.

Where we are root, LTTng runs as `nobody`: root's session daemon would use the machine's one socket, which may belong to
somebody.
"""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from fleet import FleetError, free_ports, wait_until
from producers import Producers, cpu_seconds, directory_bytes

SUBBUFFER, SUBBUFFERS = "4M", 8  # for each processor
ROTATION_US = 500_000
KINDS = {"lttng": "LTTng, local", "lttng-net": "LTTng, streamed to lttng-relayd",
         "lttng-net-rotated": "LTTng, streamed, rotated each 0.5 s"}
PROGRAMS = ("lttng", "lttng-sessiond", "lttng-relayd", "babeltrace2")
COUNTED = re.compile(r"^\s*([\d,]+) (.+?) messages?", re.MULTILINE)
TRACER_DISCARDED = re.compile(r"Tracer discarded (\d+) event")


def accepts(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def children(parent, name):
    """Pids of the children of a process with that command name."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path(f"/proc/{entry}/stat").read_text(encoding="ascii", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        comm, rest = stat[stat.index("(") + 1:].rsplit(")", 1)
        if comm == name and int(rest.split()[1]) == parent:
            found.append(int(entry))
    return found


class LttngSide:
    """Sessions one after the other; those of `lttng-net…` are streamed to a relay daemon,
    those of `lttng` written by the consumer daemon."""

    collector_parts = ("lttng-consumerd", "lttng-sessiond", "lttng-relayd")
    bytes_each_round = True

    def __init__(self, build, directory, kind, processes, seed, cores):
        self.name = KINDS[kind]
        self.net = kind != "lttng"
        self.rotates = kind == "lttng-net-rotated"
        self.dir = Path(directory)
        self.dir.mkdir(parents=True)
        (self.dir / "home").mkdir()
        producer = self.dir / "producer"
        shutil.copy(Path(build) / "bench" / "compare_lttng_producer", producer)
        self._options = {}
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._options = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            for path in (self.dir, self.dir / "home", producer):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        home = str(self.dir / "home")
        self._options["env"] = {**os.environ, "HOME": home, "LTTNG_HOME": home, "LTTNG_UST_REGISTER_TIMEOUT": "10000",
                                "LC_ALL": "C"}
        self._options["cwd"] = str(self.dir)
        self._log = open(self.dir / "daemons.log", "ab")
        self._ports = free_ports(4)
        self._number = 0
        self._daemons = []
        self.relayd = None
        self.sessiond = None
        if self.net:
            self.start_relayd()
        self.start_sessiond()
        self.producers = Producers(processes, lambda number: [producer, seed + 1000 * number, cores, number * cores],
                                   self.dir / "producers.log", **self._options)

    # -- daemons -------------------------------------------------------------------------------------------------

    def _start(self, command):
        daemon = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL, stdout=self._log,
                                  stderr=self._log, **self._options)
        self._daemons.append(daemon)
        return daemon

    def start_relayd(self):
        control, data, live, _ = self._ports
        self.relayd = self._start(["lttng-relayd", "-o", self.dir / "relay", "-C", f"tcp://127.0.0.1:{control}", "-D",
                                   f"tcp://127.0.0.1:{data}", "-L", f"tcp://127.0.0.1:{live}"])
        wait_until(lambda: accepts(control) and accepts(data), "lttng-relayd to listen")

    def start_sessiond(self):
        self.sessiond = self._start(["lttng-sessiond", "--no-kernel", f"--agent-tcp-port={self._ports[3]}"])
        wait_until(lambda: self._lttng("list", check=False).returncode == 0, "lttng-sessiond to answer")

    def consumerd_pids(self):
        return children(self.sessiond.pid, "lttng-consumerd")

    def _lttng(self, *arguments, check=True, seconds=60):
        command = ["lttng", "--no-sessiond", *[str(part) for part in arguments]]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
                              stdin=subprocess.DEVNULL, **self._options)
        self._log.write(f"{command}\n{done.stdout}{done.stderr}".encode())
        self._log.flush()
        if check and done.returncode != 0:
            raise FleetError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
        return done

    # -- one capture ---------------------------------------------------------------------------------------------

    @property
    def trace(self):
        return self.dir / "relay" if self.net else self.dir / f"local-{self._number}"

    def begin(self):
        self._number += 1
        session = f"s{self._number}"
        target = ([f"--set-url=net://127.0.0.1:{self._ports[0]}:{self._ports[1]}"] if self.net
                  else ["--output", self.trace])
        self._lttng("create", session, *target)
        self._lttng("enable-channel", "-u", "-s", session, "--subbuf-size", SUBBUFFER, "--num-subbuf", SUBBUFFERS,
                    "--discard", "ch")
        self._lttng("enable-event", "-u", "-s", session, "-c", "ch", "neuron:*")
        if self.rotates:
            self._lttng("enable-rotation", "-s", session, f"--timer={ROTATION_US}")
        self._lttng("start", session)

    def end(self):
        """Ends the session; the seconds until all data was with whoever writes it."""
        begin = time.monotonic()
        self._lttng("stop", f"s{self._number}")
        seconds = time.monotonic() - begin
        self._lttng("destroy", f"s{self._number}")
        return seconds

    def end_somehow(self):
        """The same after a daemon was killed: whatever an operator would try, no longer than it is worth waiting."""
        for command in ("stop", "destroy"):
            try:
                self._lttng(command, f"s{self._number}", check=False, seconds=4)
            except subprocess.TimeoutExpired:
                pass

    def _babeltrace(self, *arguments, stdout):
        return subprocess.Popen(["babeltrace2", str(self.trace), *arguments], stdout=stdout, stderr=subprocess.PIPE,
                                stdin=subprocess.DEVNULL, **self._options)

    def read(self, with_discarded=False):
        """Counts at the reader: (events, lost as the trace itself says, what went wrong in a word)."""
        if not self.trace.exists():
            return 0, 0, "there is no trace"
        with self._babeltrace("-c", "sink.utils.counter", "-p", "step=+0", stdout=subprocess.PIPE) as reader:
            printed = reader.communicate()[0].decode(errors="replace")
        counts = {name: int(count.replace(",", "")) for count, name in COUNTED.findall(printed)}
        if reader.returncode == 0 and not (counts.get("Discarded event") and with_discarded):
            return counts.get("Event", 0), 0, ""
        return self._read_as_text()

    def _read_as_text(self):
        """Slower: what precedes an error, and how many events the tracer says that it discarded."""
        with self._babeltrace(stdout=subprocess.PIPE) as reader, tempfile.TemporaryFile() as words:
            events = 0
            copy = threading.Thread(target=shutil.copyfileobj, args=(reader.stderr, words))
            copy.start()
            while block := reader.stdout.read1(1 << 20):
                events += block.count(b"\n")
            copy.join()
            words.seek(0)
            lost = sum(map(int, TRACER_DISCARDED.findall(words.read().decode(errors="replace"))))
        if reader.returncode == 0:
            return events, lost, ""
        empty = [path for path in self.trace.rglob("metadata") if path.stat().st_size == 0]
        return events, lost, ("babeltrace2 fails: the metadata is empty" if empty else "babeltrace2 stops at an error")

    def bytes_on_disk(self):
        return directory_bytes(self.trace)

    def forget(self):
        shutil.rmtree(self.trace, ignore_errors=True)

    # -- processor time ------------------------------------------------------------------------------------------

    def cpu(self):
        """Seconds so far, by part."""
        parts = {"lttng-consumerd": sum(map(cpu_seconds, self.consumerd_pids())),
                 "lttng-sessiond": cpu_seconds(self.sessiond.pid)}
        if self.net:
            parts["lttng-relayd"] = cpu_seconds(self.relayd.pid)
        return parts

    # -- the end -------------------------------------------------------------------------------------------------

    def kill(self, daemon):
        """SIGKILL; then what brings it back where something would: an init system for relayd and sessiond."""
        if daemon == "lttng-consumerd":
            for pid in self.consumerd_pids():
                os.kill(pid, signal.SIGKILL)
            return
        process = self.relayd if daemon == "lttng-relayd" else self.sessiond
        process.kill()
        process.wait()
        if daemon == "lttng-relayd":
            self.start_relayd()
        else:
            self.start_sessiond()

    def close(self):
        self.producers.close()
        consumers = self.consumerd_pids()
        for daemon in reversed(self._daemons):
            if daemon.poll() is None:
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
        for pid in consumers:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._log.close()
        shutil.rmtree(self.dir, ignore_errors=True)
