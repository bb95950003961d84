# SPDX-License-Identifier: Apache-2.0
"""Aggregator, agent and workers end or die in the middle of a capture. Nothing that was acknowledged is lost, nothing
is there twice, and what cannot be had is said."""

import signal

import suite
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import compare


class AggregatorRestart(FleetCase):
    def restart_in_mid_capture(self, end):
        workers = self.start_fleet(instances=2, workers=1)
        capture_id = self.start_capture("--name", "restarted")
        before = int(self.wait_for_events(capture_id, 2000)["events"])
        end()
        self.wait_for_more_work(workers)
        self.fleet.start_aggregator()
        after = self.fleet.show_capture(capture_id)
        self.assertEqual(after["state"], "CAPTURE_STATE_RECORDING")
        self.assertGreaterEqual(int(after["events"]), before, "what was acknowledged is stored")
        self.wait_for_events(capture_id, int(after["events"]) + 2000)
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE")
        self.assertEqual(capture["events_lost"], "0")
        self.assertEqual(set(self.outcomes(capture).values()), {"COMPLETE"})
        result = self.check_whole(capture_id)
        self.assertEqual(result.stored, int(capture["events"]))

    def test_killed(self):
        self.restart_in_mid_capture(lambda: self.fleet.aggregator.kill())

    def test_terminated(self):
        self.restart_in_mid_capture(lambda: self.assertEqual(self.fleet.aggregator.stop(), 0))

    def test_stored_captures_are_there_again(self):
        self.start_fleet()
        self.fleet.cli("capture", "--duration", "300ms", "--name", "first")
        before = self.fleet.cli_json("captures")["captures"]
        self.assertEqual(self.fleet.aggregator.stop(), 0)
        self.fleet.start_aggregator()
        after = self.fleet.cli_json("captures")["captures"]
        for capture in before + after:
            del capture["server_realtime_ns"]
        self.assertEqual(after, before)
        self.check_whole(after[0]["capture_id"])


class AgentRestart(FleetCase):
    def restart_in_mid_capture(self, end):
        workers = self.start_fleet(instances=1, workers=2)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 2000)
        end(self.fleet.agents["i-0001"])
        self.wait_for_more_work(workers)
        self.fleet.start_agent("i-0001")
        self.wait_for_events(capture_id, int(self.fleet.show_capture(capture_id)["events"]) + 2000)
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.assertEqual(len(capture["streams"]), 4, "one stream a core, continued")
        self.assertEqual(capture["events_lost"], "0")
        self.check_whole(capture_id)

    def test_killed(self):
        self.restart_in_mid_capture(lambda agent: agent.kill())

    def test_terminated(self):
        self.restart_in_mid_capture(lambda agent: self.assertEqual(agent.stop(), 0))

    def test_killed_again_and_again(self):
        workers = self.start_fleet(instances=1, workers=1, cores=1)
        capture_id = self.start_capture()
        for _ in range(4):
            self.wait_for_events(capture_id, int(self.fleet.show_capture(capture_id)["events"]) + 500)
            self.fleet.agents["i-0001"].kill()
            self.fleet.start_agent("i-0001")
        self.wait_for_more_work(workers)
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.check_whole(capture_id)

    def test_stop_while_the_agent_is_away(self):
        """The capture waits for its agent to return, and what the tap held meanwhile comes."""
        workers = self.start_fleet(instances=1, workers=1)
        capture_id = self.start_capture("--duration", "1500ms")
        self.wait_for_events(capture_id, 500)
        self.fleet.agents["i-0001"].kill()
        self.fleet.wait_for_capture(capture_id, lambda c: c["state"] == "CAPTURE_STATE_STOPPING", "to stop")
        self.wait_for_more_work(workers, 2)
        self.fleet.start_agent("i-0001")
        capture = self.fleet.wait_for_capture(
            capture_id, lambda c: c["state"] in ("CAPTURE_STATE_COMPLETE", "CAPTURE_STATE_INCOMPLETE"), "to end")
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.check_whole(capture_id)

    def test_sigterm_drains_in_flight_data(self):
        """All that the agent had read when it was told to end is stored when it has ended."""
        workers = self.start_fleet(instances=1, workers=1)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 500)
        self.wait_for_more_work(workers)
        agent = self.fleet.agents["i-0001"]
        self.assertEqual(agent.stop(), 0, agent.log.read_text())
        after = int(self.fleet.show_capture(capture_id)["events"])
        self.assertGreater(after, 500)
        # What is stored has no hole, though nothing was waited for.
        result = compare(workers, self.fleet.export_events(capture_id), killed=workers)
        self.assertTrue(result.ok(), result)
        self.fleet.start_agent("i-0001")
        self.assertEqual(self.stop_capture(capture_id)["state"], "CAPTURE_STATE_COMPLETE")
        self.check_whole(capture_id)


class WorkerRestart(FleetCase):
    def test_a_new_incarnation_is_a_new_stream(self):
        first, other = self.start_fleet(instances=1, workers=2)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 2000)
        self.assertEqual(first.stop(), 0)
        second = self.fleet.start_worker("i-0001", "--cores", 2, "--rank-start", 0, "--world-size", 4)
        wait_until(lambda: any(s["identity"]["worker"]["pid"] == second.pid and int(s["events"]) > 0
                               for s in self.fleet.show_capture(capture_id)["streams"]),
                   "events of the new worker")
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        streams = [(s["identity"]["worker"]["pid"], s["identity"]["nc_idx"], int(s["worker_gid"]))
                   for s in capture["streams"]]
        self.assertCountEqual(streams, [(first.pid, 0, 0), (first.pid, 1, 1), (second.pid, 0, 0), (second.pid, 1, 1),
                                        (other.pid, 0, 2), (other.pid, 1, 3)])
        self.assertEqual(capture["warnings"], [], "one after the other is no conflict of ranks")
        self.check_whole(capture_id)

    def test_a_killed_worker_is_lost_and_what_it_had_drained_is_stored(self):
        victim, other = self.start_fleet(instances=1, workers=2)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 2000)
        self.wait_for_more_work([victim])
        self.assertEqual(victim.kill(), -signal.SIGKILL)
        self.wait_for_more_work([other])
        capture = self.stop_capture(capture_id, code=3)
        self.assertEqual(capture["state"], "CAPTURE_STATE_INCOMPLETE")
        self.assertEqual(self.outcomes(capture),
                         {("i-0001", victim.pid): "LOST", ("i-0001", other.pid): "COMPLETE"})
        self.assertTrue(capture["warnings"])
        text = self.fleet.cli("captures", "show", capture_id, codes=(3,)).stdout
        self.assertRegex(text, rf"(?m)^i-0001\s+{victim.pid}\s+\S+\s+vanished\b")
        result = self.check_whole(capture_id, killed=[victim])
        victims_cores = {core for core in result.cores if core[1] == victim.pid}
        self.assertEqual(len(victims_cores), 2, "what it had drained is there")

    def test_a_worker_that_exits_without_nrt_close_is_drained(self):
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--no-close")
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 500)
        self.assertEqual(worker.stop(), 0)
        capture = self.stop_capture(capture_id)
        self.assertEqual(self.outcomes(capture), {("i-0001", worker.pid): "COMPLETE"})
        self.check_whole(capture_id)


if __name__ == "__main__":
    suite.main()
