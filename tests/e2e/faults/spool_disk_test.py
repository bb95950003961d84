# SPDX-License-Identifier: Apache-2.0
"""The agent's disk fills up, turns read-only, or has other bytes than were written; or the spool is small. The agent
continues by itself, and what is lost is counted to the last event."""

import os
import random

import namespaces
import suite
from fault_case import FaultCase
from fleet import wait_until
from kill_rounds import resident_bytes

INSTANCE = "i-0001"
SPOOL_MEBIBYTES = 32
AGENT_RSS_MAX = 192 << 20


class SpoolDisk(FaultCase):
    def setUp(self):
        super().setUp()
        self.spool = self.fleet.spool_of(INSTANCE)
        self.disk = namespaces.Disk(self.spool, SPOOL_MEBIBYTES)
        self.addCleanup(self.disk.close)

    @property
    def agent(self):
        return self.fleet.agents[INSTANCE]

    def start_recording(self, *agent_options, events_per_second=None, env=None, capture_options=()):
        self.start_instances(INSTANCE, agent_options=agent_options)
        self.fleet.start_worker(INSTANCE, "--cores", 2, "--rank-start", 0, "--world-size", 2, "--mix", "bare",
                                "--events-per-second", events_per_second or self.events_per_second, env=env)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture(*capture_options)
        self.wait_for_flow(capture_id, [INSTANCE])
        return capture_id

    def finish(self, capture_id, lossless=True):
        self.wait_for_flow(capture_id, [INSTANCE], 60)
        capture = self.stop_capture(capture_id, code=0 if lossless else None)
        if lossless:
            self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.assertTrue(self.agent.running())
        return self.check_account(capture_id, lossless=lossless)

    def spooled_bytes(self):
        return sum(path.stat().st_size for path in self.spool.rglob("*.seg"))

    def wait_for_spool(self, more_bytes):
        goal = self.spooled_bytes() + more_bytes
        wait_until(lambda: self.spooled_bytes() >= goal, f"{more_bytes} more bytes in the spool", 60)

    def test_full_while_the_aggregator_is_there(self):
        capture_id = self.start_recording()
        self.disk.fill()
        for _ in range(3):
            self.wait_for_flow(capture_id, [INSTANCE])
        self.disk.unfill()
        self.finish(capture_id)

    def test_full_and_then_both_are_killed(self):
        """Nothing can be kept: the tap's buffer holds what no aggregator has."""
        capture_id = self.start_recording()
        self.disk.fill()
        self.fleet.aggregator.kill()
        self.pass_time(2)
        self.agent.kill()
        self.fleet.start_agent(INSTANCE)
        self.pass_time(1)
        self.assertTrue(self.agent.running(), "a full disk ends nothing")
        self.fleet.start_aggregator()
        self.wait_for_flow(capture_id, [INSTANCE], 60)
        self.disk.unfill()
        self.finish(capture_id)

    def test_read_only_over_a_restart_with_chunks_in_the_spool(self):
        capture_id = self.start_recording()
        self.fleet.aggregator.kill()
        self.wait_for_spool(10_000)
        self.agent.kill()
        self.disk.set_read_only(True)
        self.fleet.start_agent(INSTANCE)
        self.pass_time(1)
        self.assertTrue(self.agent.running(), "a read-only disk ends nothing")
        self.fleet.start_aggregator()
        self.wait_for_flow(capture_id, [INSTANCE], 60)
        self.disk.set_read_only(False)
        self.finish(capture_id)

    def test_flipped_bytes(self):
        """A byte of the spool is another one, six times over: the agent starts, continues, and counts."""
        seed = int(os.environ.get("NT_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"test_flipped_bytes: NT_FAULT_SEED={seed}", flush=True)
        chance = random.Random(seed)
        capture_id = self.start_recording()
        for _ in range(6):
            self.fleet.aggregator.kill()
            self.wait_for_spool(10_000)
            self.agent.kill()
            path = chance.choice(sorted(p for p in self.spool.rglob("*") if p.is_file() and p.stat().st_size > 0))
            content = bytearray(path.read_bytes())
            position = chance.randrange(len(content))
            content[position] ^= 1 << chance.randrange(8)
            path.write_bytes(content)
            print(f"  {path.relative_to(self.spool)}: byte {position} of {len(content)}", flush=True)
            self.fleet.start_agent(INSTANCE)
            self.fleet.start_aggregator()
            self.wait_for_flow(capture_id, [INSTANCE], 60)
        account = self.finish(capture_id, lossless=False)
        self.assertLessEqual({place for place, _ in account.lost}, {"spool"})

    def test_small_and_refusing_the_newest(self):
        """The last resort is the runtime's ring: sources wait, memory does not grow, and every hole is counted."""
        capture_id = self.start_recording(
            "--spool-bytes", "1MiB", "--spool-capture-bytes", "1MiB", "--spool-when-full", "refuse-newest",
            events_per_second=15_000, env={"NEURONTRACE_TAP_BUFFER_BYTES": "2097152"},
            capture_options=("--ring-events", "16384"))
        self.fleet.aggregator.kill()
        peak = 0

        def look():
            nonlocal peak
            peak = max(peak, resident_bytes(self.agent.popen.pid))
        self.pass_time(8, look)
        self.fleet.start_aggregator()
        account = self.finish(capture_id, lossless=False)
        self.assertLessEqual({place for place, _ in account.lost}, {"runtime_ring", "tap_buffer"})
        self.assertGreater(sum(account.lost.values()), 0, "it was full")
        self.assertLess(peak, AGENT_RSS_MAX)


if __name__ == "__main__":
    namespaces.enter()
    suite.main()
