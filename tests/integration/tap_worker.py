# SPDX-License-Identifier: Apache-2.0
"""Worker processes for the tests of the tap, and what is common to these tests.

CTest passes where things are built in the environment; see tests/integration/CMakeLists.txt.
"""

import os
import shutil
import subprocess
import tempfile
import unittest

from tap_agent import Agent

TAP_LIBRARY = os.environ["NT_TAP_LIBRARY"]
HOST = os.environ["NT_TAP_HOST"]
RUNTIME_DIR = os.environ["NT_FAKE_NRT_DIR"]
CAPTURE = bytes(range(1, 17))
OTHER_CAPTURE = bytes(range(2, 18))


class Worker:
    """tests/integration/tap_host.cc, or another command that speaks as it does."""

    def __init__(self, socket_path, preload=True, command=None, **environment):
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("NEURON", "LD_", "FAKE_NRT"))}
        env.update(LD_LIBRARY_PATH=RUNTIME_DIR, NEURON_RT_NUM_CORES="4", FAKE_NRT_MISUSE_FATAL="1",
                   NEURONTRACE_AGENT_SOCKET=socket_path)
        if preload:
            env["LD_PRELOAD"] = TAP_LIBRARY
        env.update(environment)
        self.process = subprocess.Popen(command or [HOST], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=env, text=True, bufsize=1)

    @property
    def pid(self):
        return self.process.pid

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def receive(self):
        answer = self.process.stdout.readline()
        if not answer:
            raise AssertionError(f"the worker died with {self.process.wait()}")
        return answer.split()

    def ask(self, line):
        self.send(line)
        return self.receive()

    def emit(self, core, count):
        """Emits events and returns (how many a capture accepted, milliseconds it took)."""
        accepted, ms = self.ask(f"emit {core} {count}")
        return int(accepted), float(ms)

    def exit(self):
        """exit() in the worker; returns its status. A worker that does not end fails the test."""
        self.send("exit")
        return self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def threads(self):
        """The names of the worker's threads."""
        names = []
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/comm", encoding="ascii") as comm:
                names.append(comm.read().strip())
        return names

    def close(self):
        if self.process.poll() is None:
            self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


class TapTestCase(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="nt_tap_")
        self.addCleanup(shutil.rmtree, self.directory)
        self.socket_path = os.path.join(self.directory, "agent.sock")

    def agent(self):
        agent = Agent(self.socket_path)
        self.addCleanup(agent.stop)
        return agent

    def worker(self, **arguments):
        worker = Worker(self.socket_path, **arguments)
        self.addCleanup(worker.close)
        return worker

    def streaming(self, events=65536, **arguments):
        """An agent, a worker after nrt_init and a running capture."""
        agent = self.agent()
        worker = self.worker(**arguments)
        self.assertEqual(worker.ask("init"), ["0", "42"])
        connection = agent.accept()
        connection.start(CAPTURE, events=events)
        self.assertEqual(connection.answer(2)["result"], "ok")
        return agent, worker, connection
