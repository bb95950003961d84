# SPDX-License-Identifier: Apache-2.0
"""Jobs of real PyTorch and JAX in a fleet (tests/e2e/fleet.py): their processes have the tap and the simulated runtime."""

import dataclasses
from pathlib import Path

from fleet import Process, free_ports

FOLDER = Path(__file__).resolve().parent
POLL_SECONDS = 1  # of PyTorch's profiler, which asks every five seconds otherwise
START_SECONDS = 180  # of a framework on a machine that does other things, too


@dataclasses.dataclass(frozen=True)
class Step:
    number: int
    begin_ns: int
    end_ns: int


class RealWorker(Process):
    """A process of torch_worker.py or jax_worker.py."""

    def __init__(self, name, command, log_dir, env, instance_id, stamps):
        super().__init__(name, command, log_dir, env)
        self.instance_id = instance_id
        self._stamps = Path(stamps)

    def steps(self):
        """The program's own stamps, by step. It has to have ended, or the last lines may be missing."""
        lines = self._stamps.read_text(encoding="ascii").splitlines(keepends=True)
        return {step.number: step for step in (Step(*map(int, line.split())) for line in lines if line.endswith("\n"))}

    def newest_ns(self):
        """When the newest step ended that has been written."""
        lines = self._stamps.read_text(encoding="ascii").splitlines(keepends=True)
        whole = [line for line in lines if line.endswith("\n")]
        return int(whole[-1].split()[2]) if whole else 0


class RealJobs:
    """Instances of a fleet whose agents ask frameworks, and the workers on them."""

    def __init__(self, fleet, pythons):
        """`pythons`: {"torch": the Python that has it, …}, see scripts/setup_frameworks."""
        self.fleet, self._pythons, self.workers = fleet, pythons, []
        self._sockets = Path(fleet.socket_of("any").parent)  # paths of sockets are short

    def kineto_of(self, instance_id):
        return self._sockets / f"kineto-{instance_id}"

    def traces_of(self, instance_id):
        return self.fleet.dir / f"traces-{instance_id}"

    def start_instance(self, instance_id, *options, **arguments):
        self.traces_of(instance_id).mkdir(exist_ok=True)
        return self.fleet.start_agent(instance_id, "--framework-dir", self.traces_of(instance_id), "--kineto-dir",
                                      self.kineto_of(instance_id), *options, **arguments)

    def start_worker(self, framework, instance_id, *options, rank=0, world_size=1, listens=True, ready=True, env=None):
        """`listens`: PyTorch's profiler asks the agent, JAX's has a server. Waits for the first step, if `ready`."""
        name = f"{framework}-{len(self.workers)}"
        stamps = self.fleet.dir / f"steps-{name}"
        libraries = [self.fleet.build / "lib" / "libneurontrace_tap.so",
                     self.fleet.build / "tests" / "fake_nrt" / "libnrt.so.1"]
        variables = {"NEURONTRACE_AGENT_SOCKET": str(self.fleet.socket_of(instance_id)), "RANK": str(rank),
                     "WORLD_SIZE": str(world_size), "NEURON_RT_NUM_CORES": "1",
                     "PYTHONPATH": f"{FOLDER}:{FOLDER.parent / 'e2e'}", **(env or {})}
        if framework == "torch":
            variables["KINETO_LOG_LEVEL"] = "3"
            if listens:
                variables.update(KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=str(self.kineto_of(instance_id)),
                                 KINETO_ONDEMAND_TRACE_DIR=str(self.traces_of(instance_id)),
                                 ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=str(POLL_SECONDS))
        elif listens:
            port = free_ports(1)[0]
            variables["NEURONTRACE_XLA_PORT"] = str(port)
            options = ("--port", port, *options)
        # The environment of this Python is not one of the framework's.
        command = ["env", "-u", "PYTHONHOME", "LD_PRELOAD=" + ":".join(map(str, libraries)), self._pythons[framework], "-B",
                   FOLDER / f"{framework}_worker.py", "--stamps", stamps, *options]
        worker = self.fleet._start(RealWorker(name, command, self.fleet.logs, variables, instance_id, stamps))
        self.workers.append(worker)
        if ready:
            worker.wait_for_line("ready", START_SECONDS)
        return worker
