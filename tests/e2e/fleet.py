# SPDX-License-Identifier: Apache-2.0
"""A fleet on one machine: real aggregator, agents and taps around simulated workers.

Used by the demo and by the end-to-end tests. Everything listens on ports and sockets of its own choosing; every wait
has a deadline and says what it waited for.
"""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path


class FleetError(Exception):
    """Something did not come up or did not answer in time; the message names its log."""


def wait_until(condition, what, seconds=20.0, every=0.02):
    """Polls `condition` until it gives something true and returns that; one that is much work not so often."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise FleetError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(every)  # tidy: poll


def free_ports(count):
    """Of as many sockets that are bound at one time, so that no two are the same."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [made.getsockname()[1] for made in sockets]


class Process:
    """A child whose output goes to a log, and whose lines can be waited for."""

    def __init__(self, name, command, log_dir, env=None, wrapped=False, stdin=subprocess.DEVNULL):
        """`wrapped`: the command is one that runs the program as its child, and signals are meant for that."""
        self.name = name
        self._wrapped = wrapped
        self.log = Path(log_dir) / f"{name}.log"
        self._lines = []
        self._changed = threading.Condition()
        merged = dict(os.environ)
        merged.update(env or {})
        self.popen = subprocess.Popen(
            [str(part) for part in command], env=merged, stdin=stdin, text=True,
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
        """Of the program, as this machine sees it."""
        if not self._wrapped:
            return self.popen.pid
        children = Path(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children")
        return int(wait_until(children.read_text, f"the child of {self.name}").split()[0])

    @property
    def health_port(self):
        """Of a daemon."""
        return int(re.search(r"health on port (\d+)", self.wait_for_line("health on port "))[1])

    def ask(self, path, body=None, headers=None):
        """Asks a daemon at its health port, with POST if there is a body; returns status, text and headers."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.health_port}{path}", body, headers or {})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode(), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode(), error.headers

    def metric(self, name):
        """Returns the sum of a daemon's metric over its labels; `name` may begin some of these."""
        return sum(float(line.rsplit(" ", 1)[1]) for line in self.ask("/metrics")[1].splitlines() if line.startswith(name))

    def signal(self, number):
        if self.running():
            os.kill(self.pid, number)

    def running(self):
        return self.popen.poll() is None

    def wait(self, seconds=30.0):
        try:
            self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FleetError(f"{self.name} is still running; see {self.log}") from None
        self._reader.join(seconds)
        self.popen.stdout.close()
        return self.popen.returncode

    def stop(self, seconds=30.0):
        """SIGTERM, then its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def kill(self):
        """SIGKILL: no chance to tidy up."""
        self.signal(signal.SIGKILL)
        return self.wait()


class Worker(Process):
    """A simulated worker with the tap loaded, and the files in which it and the runtime account for its events."""

    def __init__(self, name, command, log_dir, env, wrapped, instance_id, truth, capture_log):
        super().__init__(name, command, log_dir, env, wrapped)
        self.instance_id = instance_id
        self.truth = Path(truth)
        self.capture_log = Path(capture_log)
        self.pid_seen = None  # what the agent calls it, where it is not our child's pid

    @property
    def reported_pid(self):
        return self.pid if self.pid_seen is None else self.pid_seen

    def report(self):
        """The one line of JSON of its end."""
        return json.loads(next(line for line in reversed(self._lines) if line and line.startswith("{")))


class Fleet:
    """An aggregator, and as many simulated instances as are added. Use it as a context manager."""

    def __init__(self, build_dir, work_dir=None):
        self.build = Path(build_dir).resolve()
        self._own_dir = None
        if work_dir is None:
            self._own_dir = tempfile.TemporaryDirectory(prefix="neurontrace-fleet-")
            work_dir = self._own_dir.name
        self.dir = Path(work_dir).resolve()
        self.listen = "127.0.0.1:0"  # where the aggregator starts for the first time
        self.server_security = ()  # options of the aggregator …
        self.client_security = ()  # … and of agents and commands; without TLS, other addresses ask for some
        self.dir.mkdir(parents=True, exist_ok=True)
        self.logs = self.dir / "logs"
        self.logs.mkdir(exist_ok=True)
        # The path of a unix socket has room for 107 bytes: a short directory of its own.
        self._sockets = tempfile.TemporaryDirectory(prefix="nt-")
        self.aggregator = None
        self.address = None  # where it listens
        self.true_time = None  # a TrueTime: every process has shifted clocks …
        self.host_clocks = {}  # … those of an instance (None: of the aggregator) by its HostClock, where it has one
        self.host_samples = False  # of agents that set nothing else
        self.agents = {}
        self.workers = []
        self._started = []  # every process there ever was, for shut_down

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shut_down()

    def program(self, name):
        return self.build / "bin" / name

    # -- aggregator ----------------------------------------------------------------------------------------------

    def start_aggregator(self, *options, prefix=()):
        """Starts it, or starts it again on the same port and store. `prefix` is a command that becomes it."""
        self.aggregator = self._start(Process(
            "aggregator",
            [*prefix, *self._dress(None), self.program("neurontrace-aggregator"), "--listen", self.address or self.listen,
             "--store", self.dir / "store", "--health-address", "127.0.0.1:0",
             *(self.server_security or self._insecure()), *options], self.logs))
        line = self.aggregator.wait_for_line("listening on ")
        self.address = line.split("listening on ", 1)[1].split()[0]
        return self.aggregator

    # -- instances -----------------------------------------------------------------------------------------------

    def socket_of(self, instance_id):
        return Path(self._sockets.name) / f"{instance_id}.sock"

    def spool_of(self, instance_id):
        return self.dir / f"spool-{instance_id}"

    def start_agent(self, instance_id, *options, prefix=(), wrapped=None, aggregator=None, process_scan=False,
                    host_samples=None):
        """Starts the agent of an instance, or starts it again as the same agent. `prefix` is a command that runs it,
        as its child unless `wrapped` is false; `aggregator` is the address that this agent knows it by. Its spool
        stays where it is, unless `options` have another. Unless it is to look through `/proc`, where it would find
        other tests' workers, it does not. Nor does it sample this machine's processors, which would be in every
        account, unless it or its fleet is to."""
        if "--spool" not in options:
            options = ("--spool", self.spool_of(instance_id), *options)
        if host_samples is None:
            host_samples = self.host_samples
        agent = self._start(Process(
            f"agent-{instance_id}",
            [*prefix, *self._dress(instance_id), self.program("neurontrace-agent"), "--aggregator",
             aggregator or self.address, "--socket", self.socket_of(instance_id), "--instance-id", instance_id,
             "--agent-id", f"agent-{instance_id}", "--health-address", "127.0.0.1:0",
             "--process-scan" if process_scan else "--no-process-scan",
             "--host-samples" if host_samples else "--no-host-samples",
             *(self.client_security or self._insecure()), *options], self.logs,
            wrapped=bool(prefix) if wrapped is None else wrapped))
        self.agents[instance_id] = agent
        return agent

    def start_worker(self, instance_id, *options, name=None, env=None, prefix=(), ready=True, tapped=True):
        """A simulated worker with the tap preloaded, unless it is not to be `tapped`; waits until it says that it is
        ready. `prefix` is a command that runs it."""
        name = name or f"worker-{len(self.workers)}"
        truth, capture_log = self.dir / f"truth-{name}.tsv", self.dir / f"captures-{name}.tsv"
        environment = {
            "NEURONTRACE_AGENT_SOCKET": str(self.socket_of(instance_id)),
            "FAKE_NRT_CAPTURE_LOG": str(capture_log),
        }
        environment.update(env or {})
        taps = [self.build / "lib" / "libneurontrace_tap.so"] if tapped else []
        command = [*prefix, *self._dress(instance_id, *taps), self.build / "tests" / "fake_nrt" / "sim_worker",
                   "--print-ready", "--ground-truth", truth, *options]
        worker = self._start(Worker(name, command, self.logs, environment, bool(prefix), instance_id, truth,
                                    capture_log))
        self.workers.append(worker)
        if ready:
            worker.wait_for_line("ready")
        return worker

    def _dress(self, instance_id, *preloads):
        """A command that runs a program with these libraries, and the clocks of its instance, in its place."""
        variables = []
        if self.true_time is not None:
            preloads = (self.build / "tests" / "libshifted_clock.so", *preloads)
            variables.append(f"NEURONTRACE_TRUE_MINUS_RAW={self.true_time.minus_raw_ns}")
            if instance_id in self.host_clocks:
                variables.append(f"NEURONTRACE_HOST_CLOCK={self.host_clocks[instance_id].words()}")
        if preloads:
            variables.append("LD_PRELOAD=" + ":".join(map(str, preloads)))
        return ("env", *variables) if variables else ()

    def _insecure(self):
        return () if self.listen.startswith("127.") else ("--insecure",)

    def _start(self, process):
        self._started.append(process)
        return process

    # -- the operator's command line -----------------------------------------------------------------------------

    def cli_command(self, *arguments):
        """What runs `neurontrace …` against the fleet."""
        return [str(self.program("neurontrace")), "--aggregator", self.address or self.listen,
                *map(str, self.client_security or self._insecure()), *map(str, arguments)]

    def cli(self, *arguments, check=True, codes=(0,), seconds=120.0):
        """Runs `neurontrace …` and returns the finished process; with `check`, one of the exit codes is asked for."""
        command = self.cli_command(*arguments)
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds,
                              stdin=subprocess.DEVNULL, check=False, env={**os.environ, "NEURONTRACE_CONFIG": ""})
        if check and done.returncode not in codes:
            raise FleetError(f"{' '.join(command)}: exit code {done.returncode}\n"
                             f"{done.stdout}{done.stderr}")
        return done

    def start_command(self, *arguments):
        """Starts `neurontrace …` that runs until it is interrupted; both of its outputs are its lines."""
        return self._start(Process(f"command-{len(self._started)}", self.cli_command(*arguments), self.logs,
                                   env={"NEURONTRACE_CONFIG": ""}))

    def start_page(self, *arguments):
        """Starts `neurontrace view` on a free port; returns the process and the address, which has the token."""
        page = self._start(Process(
            f"page-{len(self._started)}",
            self.cli_command("--output", "json", "view", "--listen", "127.0.0.1:0", *arguments), self.logs,
            env={"NEURONTRACE_CONFIG": ""}))
        return page, json.loads(page.wait_for_line('"url"'))["url"]

    def cli_json(self, *arguments, **options):
        return json.loads(self.cli("--output", "json", *arguments, **options).stdout)

    def wait_for_status(self, agents, seconds=20.0):
        return wait_until(lambda: self.cli_json("status")["agents_connected"] == agents, f"{agents} agents", seconds)

    def list_workers(self, *arguments):
        return self.cli_json("workers", *arguments, codes=(0, 3))["workers"]  # 3: ranks that are claimed twice

    def wait_for_workers(self, count, state="WORKER_STATE_IDLE", seconds=20.0):
        """Until as many workers are in that state and, where they have a runtime, known with their cores."""
        def there():
            workers = self.list_workers()
            known = [w for w in workers if w["state"] == state and (w["cores"] or "TOO_OLD" in state)]
            return workers if len(known) == count else None
        return wait_until(there, f"{count} workers in {state}", seconds)

    def wait_for_ranks(self, count, seconds=20.0):
        """Until the ranks of `count` cores are known: a worker is listed before its communicator exists."""
        def known():
            return sum(bool(core["rank_evidence"]) for worker in self.list_workers() for core in worker["cores"])
        wait_until(lambda: known() == count, f"the ranks of {count} cores", seconds)

    def wait_for_clocks(self, count, seconds=20.0):
        """Until the clocks of as many instances are known."""
        def known():
            return sum(bool(clock.get("aligned")) for clock in self.cli_json("clocks").get("clocks", []))
        wait_until(lambda: known() == count, f"the clocks of {count} instances", seconds)

    def wait_for_planning(self, count, seconds=20.0):
        """Until the aggregator can plan moments on as many instances: by its own models, not by the fits of `clocks`."""
        def known():
            return self.aggregator.ask("/metrics")[1].count("\nneurontrace_aggregator_clock_bound_seconds{")
        wait_until(lambda: known() == count, f"the aggregator's models of {count} clocks", seconds)

    def show_capture(self, capture_id):
        return self.cli_json("captures", "show", capture_id, codes=(0, 1, 3))  # 1: not begun

    def wait_for_capture(self, capture_id, condition, what, seconds=30.0):
        """Polls the capture until `condition` holds of it and returns it."""
        def there():
            capture = self.show_capture(capture_id)
            return capture if condition(capture) else None
        return wait_until(there, f"capture {capture_id}: {what}", seconds)

    def export_events(self, capture_id, *options):
        """The capture in the `events` format; returns the file."""
        path = self.dir / f"events-{capture_id}.jsonl"
        self.cli("export", capture_id, "--format", "events", "-o", path, *options, codes=(0, 3))
        return path

    # -- the end -------------------------------------------------------------------------------------------------

    def shut_down(self):
        """Ends everything: workers first, so that nothing waits for what is gone."""
        order = [*reversed([p for p in self._started if p is not self.aggregator]), self.aggregator]
        order = [process for process in order if process is not None]
        for process in order:
            process.signal(signal.SIGTERM)
        for process in order:
            try:
                process.wait(10)
            except FleetError:
                process.kill()
        self._sockets.cleanup()
        if self._own_dir is not None:
            self._own_dir.cleanup()
