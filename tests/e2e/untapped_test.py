# SPDX-License-Identifier: Apache-2.0
"""Workers that no tap speaks for: who looks at a fleet is told about them, what to do, and that captures lack them."""

import os
import sys

import suite
from fleet import Process, wait_until
from fleet_case import FleetCase

INSTANCE = "i-0001"
OPTIONS = ("--cores", 2, "--rank-start", 0, "--world-size", 2, "--mix", "graph", "--executions-per-second", 20)


class UntappedWorkers(FleetCase):
    def setUp(self):
        super().setUp()
        self.fleet.start_aggregator()
        self.fleet.start_agent(INSTANCE, process_scan=True)

    def worker(self, process, state, seconds=30.0):
        """What is said of the process, once it is in that state. Other tests' workers may be in the list."""
        def there():
            return next((w for w in self.fleet.list_workers()
                         if int(w["identity"]["pid"]) == process.pid and w["state"] == state), None)
        return wait_until(there, f"pid {process.pid} in {state}", seconds)

    def test_a_worker_without_a_tap_is_listed_with_the_fix_until_it_ends(self):
        bare = self.fleet.start_worker(INSTANCE, *OPTIONS, tapped=False,
                                       env={"SLURM_JOB_ID": "4711", "NEURONTRACE_LABELS": "team=search"})
        listed = self.worker(bare, "WORKER_STATE_NO_TAP")
        self.assertEqual(listed["identity"]["instance_id"], INSTANCE)
        self.assertEqual(listed["job"], "4711")
        facts = {(fact["key"], fact["value"]) for fact in listed["job_facts"]}
        self.assertEqual(facts, {("slurm", "4711"), ("label:team", "search")})
        self.assertIn("sim_worker", listed["command"])
        library = self.fleet.build / "lib" / "libneurontrace_tap.so"
        self.assertIn(f"LD_PRELOAD={library}", listed["detail"])
        table = self.fleet.cli("workers").stdout
        row = next(line for line in table.splitlines() if str(bare.pid) in line.split())
        self.assertIn("no tap", row)
        self.assertIn(f"LD_PRELOAD={library}", table)
        bare.stop()
        wait_until(lambda: all(int(w["identity"]["pid"]) != bare.pid for w in self.fleet.list_workers()),
                   "the worker to be gone")

    def test_the_same_worker_with_the_tap_is_listed_once(self):
        tapped = self.fleet.start_worker(INSTANCE, *OPTIONS)
        bare = self.fleet.start_worker(INSTANCE, *OPTIONS, tapped=False)
        self.worker(bare, "WORKER_STATE_NO_TAP")
        self.worker(tapped, "WORKER_STATE_IDLE")
        pids = [int(w["identity"]["pid"]) for w in self.fleet.list_workers()]
        self.assertEqual(pids.count(tapped.pid), 1)
        self.assertEqual(pids.count(bare.pid), 1)

    def test_distinguishes_process_with_tap_before_nrt_init(self):
        runtime = self.fleet.build / "tests" / "fake_nrt" / "libnrt.so.1"
        script = f"import ctypes, sys; ctypes.CDLL({str(runtime)!r}); print('loaded', flush=True); sys.stdin.read()"
        reader, writer = os.pipe()
        self.addCleanup(os.close, writer)
        idle = Process("idle", [sys.executable, "-c", script], self.fleet.logs, stdin=reader,
                       env={"LD_PRELOAD": str(self.fleet.build / "lib" / "libneurontrace_tap.so"),
                            "NEURONTRACE_AGENT_SOCKET": str(self.fleet.socket_of(INSTANCE))})
        os.close(reader)
        self.addCleanup(idle.kill)
        idle.wait_for_line("loaded")
        # An agent that is new waits for taps that lost the one before it: twelve seconds.
        self.assertIn("nrt_init", self.worker(idle, "WORKER_STATE_NOT_INITIALISED", 60.0)["detail"])


if __name__ == "__main__":
    suite.main()
