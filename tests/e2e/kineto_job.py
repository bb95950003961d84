# SPDX-License-Identifier: Apache-2.0
"""An instance whose agent asks PyTorch's profilers, and stand-ins of PyTorch's processes (kineto_worker.py) on it."""

import subprocess
import sys
from pathlib import Path

from fleet import Process

WORKER = Path(__file__).with_name("kineto_worker.py")


class KinetoJob:
    def __init__(self, fleet, instance_id):
        self._fleet, self._instance_id, self._count = fleet, instance_id, 0
        self.traces = fleet.dir / f"traces-{instance_id}"
        # Paths of sockets are short.
        self.kineto = Path(fleet.socket_of(instance_id).parent) / f"kineto-{instance_id}"

    def start_agent(self):
        self.traces.mkdir()
        return self._fleet.start_agent(self._instance_id, "--framework-dir", self.traces, "--kineto-dir", self.kineto)

    def start_worker(self, kind, **variables):
        """A process with the tap and the runtime, that asks for orders several times a second, or never."""
        libraries = [self._fleet.build / "lib" / "libneurontrace_tap.so",
                     self._fleet.build / "tests" / "fake_nrt" / "libnrt.so.1"]
        environment = {
            "NEURONTRACE_AGENT_SOCKET": str(self._fleet.socket_of(self._instance_id)),
            "KINETO_IPC_SOCKET_DIR": str(self.kineto),
            "ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS": "0.25",
            "NEURON_RT_NUM_CORES": "1",
            **variables,
        }
        command = ["env", "LD_PRELOAD=" + ":".join(map(str, libraries)), sys.executable, "-B", WORKER, kind]
        worker = self._fleet._start(Process(f"torch-{self._instance_id}-{self._count}", command, self._fleet.logs, environment,
                                            stdin=subprocess.PIPE))
        self._count += 1
        worker.wait_for_line("ready")
        return worker
