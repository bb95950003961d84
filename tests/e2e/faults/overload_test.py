# SPDX-License-Identifier: Apache-2.0
"""More than usual: an aggregator that stands still while workers are loud, and 32 agents at once. Memory stays within
its budget, and what there was no room for is counted."""

import signal

import suite
from fault_case import FaultCase
from fleet import wait_until
from kill_rounds import resident_bytes

AGENTS = 32
# limits::kAgentQueueBytesMax and kIngestBytesInFlightMax are 64 and 128 MiB; the rest is the programs and RocksDB.
AGENT_RSS_MAX = 192 << 20
AGGREGATOR_RSS_MAX = 512 << 20


class Overload(FaultCase):
    def setUp(self):
        super().setUp()
        self.peak = {}

    def watch(self):
        for process in (self.fleet.aggregator, *self.fleet.agents.values()):
            self.peak[process.name] = max(self.peak.get(process.name, 0), resident_bytes(process.popen.pid))

    def check_memory(self):
        print(f"{self.id().rsplit('.', 1)[-1]}: peak RSS in MiB: aggregator {self.peak['aggregator'] >> 20}, agents "
              f"at most {max(v for k, v in self.peak.items() if k != 'aggregator') >> 20}", flush=True)
        for name, peak in self.peak.items():
            self.assertLess(peak, AGGREGATOR_RSS_MAX if name == "aggregator" else AGENT_RSS_MAX, name)

    def test_stopped_aggregator_with_busy_workers(self):
        self.start_instances("i-0001", "i-0002")
        for instance in self.fleet.agents:
            self.start_workers(instance, events_per_second=15_000, cores=2)
        self.fleet.wait_for_workers(2)
        capture_id = self.start_capture()
        self.wait_for_flow(capture_id, self.fleet.agents)
        self.fleet.aggregator.signal(signal.SIGSTOP)
        self.addCleanup(self.fleet.aggregator.signal, signal.SIGCONT)
        self.pass_time(6, self.watch)
        self.fleet.aggregator.signal(signal.SIGCONT)
        self.wait_for_flow(capture_id, self.fleet.agents)
        self.watch()
        stored = 0

        def caught_up():
            nonlocal stored
            self.watch()
            before, stored = stored, sum(self.stored_of(capture_id).values())
            return before and stored - before < 60_000
        wait_until(caught_up, "the backlog to be stored", 60)
        capture = self.stop_capture(capture_id)
        self.watch()
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.check_account(capture_id, lossless=False)
        self.check_memory()

    def test_32_agents_at_once(self):
        names = [f"i-{i:04x}" for i in range(1, AGENTS + 1)]
        self.start_instances(*names)
        for instance in names:
            self.start_workers(instance, events_per_second=100)
        self.fleet.wait_for_workers(AGENTS, seconds=60)
        capture_id = self.start_capture()
        self.wait_for_flow(capture_id, names)
        self.fleet.aggregator.kill()
        self.fleet.start_aggregator()
        self.wait_for_flow(capture_id, names, 60)
        self.watch()
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        account = self.check_account(capture_id)
        self.assertEqual(account.cores, AGENTS)
        self.check_memory()


if __name__ == "__main__":
    suite.main()
