# SPDX-License-Identifier: Apache-2.0
"""A fleet on one machine: real aggregator, agents and taps around simulated workers.

Used by the demo and by the end-to-end tests. Everything listens on ports and sockets of its own choosing; every wait
has a deadline and says what it waited for.
"""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path


class FleetError(Exception):
    """Something did not come up or did not answer in time; the message names its log."""


def wait_until(condition, what, seconds=20.0):
    """Polls `condition` until it gives something true and returns that."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise FleetError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(0.02)  # tidy: poll


class Process:
    """A child whose output goes to a log, and whose lines can be waited for."""

    def __init__(self, name, command, log_dir, env=None):
        self.name = name
        self.log = Path(log_dir) / f"{name}.log"
        self._lines = []
        self._changed = threading.Condition()
        merged = dict(os.environ)
        merged.update(env or {})
        self.popen = subprocess.Popen(
            [str(part) for part in command], env=merged, stdin=subprocess.DEVNULL, text=True,
            errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        with open(self.log, "a", encoding="utf-8") as log:
            for line in self.popen.stdout:
                log.write(line)
                log.flush()
                with self._changed:
                    self._lines.append(line.rstrip("\n"))
                    self._changed.notify_all()
        with self._changed:
            self._lines.append(None)
            self._changed.notify_all()

    def wait_for_line(self, text, seconds=20.0):
        """The first line that holds `text`."""
        deadline = time.monotonic() + seconds
        with self._changed:
            seen = 0
            while True:
                for line in self._lines[seen:]:
                    if line is None:
                        raise FleetError(f"{self.name} ended before it said '{text}'; see {self.log}")
                    if text in line:
                        return line
                seen = len(self._lines)
                if not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise FleetError(f"{self.name} did not say '{text}'; see {self.log}")

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def wait(self, seconds=30.0):
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FleetError(f"{self.name} is still running; see {self.log}") from None
        self._reader.join(seconds)
        return self.popen.returncode

    def stop(self, seconds=30.0):
        """SIGTERM, then its exit code."""
        if self.running():
            self.popen.terminate()
        return self.wait(seconds)

    def kill(self):
        """SIGKILL: no chance to tidy up."""
        if self.running():
            self.popen.send_signal(signal.SIGKILL)
        return self.wait()


class Fleet:
    """An aggregator, and as many simulated instances as are added. Use it as a context manager."""

    def __init__(self, build_dir, work_dir=None):
        self.build = Path(build_dir).resolve()
        self._own_dir = None
        if work_dir is None:
            self._own_dir = tempfile.TemporaryDirectory(prefix="neurontrace-fleet-")
            work_dir = self._own_dir.name
        self.dir = Path(work_dir).resolve()
        self.dir.mkdir(parents=True, exist_ok=True)
        self.logs = self.dir / "logs"
        self.logs.mkdir(exist_ok=True)
        # The path of a unix socket has room for 107 bytes: a short directory of its own.
        self._sockets = tempfile.TemporaryDirectory(prefix="nt-")
        self.aggregator = None
        self.address = "127.0.0.1:0"
        self.agents = {}
        self.workers = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shut_down()

    def program(self, name):
        return self.build / "bin" / name

    # -- aggregator ----------------------------------------------------------------------------------------------

    def start_aggregator(self, *options):
        """Starts it, or starts it again on the same port and store."""
        self.aggregator = Process(
            "aggregator",
            [self.program("neurontrace-aggregator"), "--listen", self.address, "--store",
             self.dir / "store", "--health-address", "127.0.0.1:0", *options], self.logs)
        line = self.aggregator.wait_for_line("listening on ")
        self.address = line.split("listening on ", 1)[1].split()[0]
        return self.aggregator

    # -- instances -----------------------------------------------------------------------------------------------

    def socket_of(self, instance_id):
        return Path(self._sockets.name) / f"{instance_id}.sock"

    def start_agent(self, instance_id, *options):
        agent = Process(
            f"agent-{instance_id}",
            [self.program("neurontrace-agent"), "--aggregator", self.address, "--socket",
             self.socket_of(instance_id), "--instance-id", instance_id, "--agent-id",
             f"agent-{instance_id}", "--health-address", "127.0.0.1:0", *options], self.logs)
        self.agents[instance_id] = agent
        return agent

    def start_worker(self, instance_id, *options, name=None, env=None, program="sim_worker"):
        """A simulated worker with the tap preloaded; waits until it says that it is ready."""
        name = name or f"worker-{instance_id}-{len(self.workers)}"
        environment = {
            "LD_PRELOAD": str(self.build / "lib" / "libneurontrace_tap.so"),
            "NEURONTRACE_AGENT_SOCKET": str(self.socket_of(instance_id)),
        }
        environment.update(env or {})
        worker = Process(
            name, [self.build / "tests" / "fake_nrt" / program, "--print-ready", *options],
            self.logs, environment)
        self.workers.append(worker)
        worker.wait_for_line("ready")
        return worker

    # -- the operator's command line -----------------------------------------------------------------------------

    def cli(self, *arguments, check=True, seconds=120.0):
        """Runs `neurontrace …` and returns the finished process; with `check`, exit code 0 is asked for."""
        command = [str(self.program("neurontrace")), "--aggregator", self.address,
                   *[str(a) for a in arguments]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, check=False)
        if check and done.returncode != 0:
            raise FleetError(f"{' '.join(command)}: exit code {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
        return done

    def cli_json(self, *arguments, **options):
        return json.loads(self.cli("--output", "json", *arguments, **options).stdout)

    def wait_for_workers(self, count, state="WORKER_STATE_IDLE", seconds=20.0):
        def there():
            workers = self.cli_json("workers")["workers"]
            return workers if sum(w["state"] == state for w in workers) == count else None
        return wait_until(there, f"{count} workers in {state}", seconds)

    # -- the end -------------------------------------------------------------------------------------------------

    def shut_down(self):
        for process in [*self.workers, *self.agents.values(), self.aggregator]:
            if process is not None and process.running():
                process.popen.terminate()
        for process in [*self.workers, *self.agents.values(), self.aggregator]:
            if process is not None:
                try:
                    process.wait(10)
                except FleetError:
                    process.kill()
        self._sockets.cleanup()
        if self._own_dir is not None:
            self._own_dir.cleanup()
