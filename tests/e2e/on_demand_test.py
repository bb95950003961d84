# SPDX-License-Identifier: Apache-2.0
"""Captures on demand, as an operator meets them: participants and others, in text, JSON and exit codes; the
past out of a flight recorder; one execution for all cores."""

import collections
import json
import os
import resource
import signal

import suite
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import key_of, read_events, read_truth

SECOND_NS = 1_000_000_000
# How far REALTIME, in which events are stamped, and the reference may be apart on one machine, and what a test needs
# to be sure on which side of a cut an event lies.
APART_NS = 20_000_000


class OnDemandTest(FleetCase):

    def capture(self, *options, code=0):
        done = self.fleet.cli("--output", "json", "capture", *options, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def obstacles(self, capture):
        """By pid, 0 for an instance as a whole."""
        return {w["worker"]["pid"]: w["obstacle"].removeprefix("CAPTURE_OBSTACLE_") for w in capture["workers"]}

    def check_table(self, capture, words):
        """What people read of the capture: a row for each pid, with these words in it."""
        table = self.fleet.cli("captures", "show", capture["capture_id"], check=False).stdout
        for pid, word in words.items():
            rows = [line for line in table.splitlines() if str(pid) in line.split()]
            self.assertTrue(any(word in row for row in rows), f"{pid}: '{word}' in\n{table}")

    # -- workers without a part ----------------------------------------------------------------------------------

    def test_reports_refusals_in_table_json_and_exit_code(self):
        self.start_instances()
        self.fleet.start_agent("i-0001", process_scan=True)
        good = self.fleet.start_worker("i-0001", "--cores", 1, "--mix", "graph", "--executions-per-second", 20)
        busy = self.fleet.start_worker("i-0001", "--cores", 1, "--mix", "graph", "--profiler", "sys-trace",
                                       "--executions-per-second", 20)
        old = self.fleet.start_worker(
            "i-0001", "--cores", 1,
            env={"LD_LIBRARY_PATH": str(self.fleet.build / "tests" / "fake_nrt" / "libnrt_nosystrace")})
        bare = self.fleet.start_worker("i-0001", "--cores", 1, "--mix", "graph", tapped=False)
        expected = {good.pid: "NONE", busy.pid: "OTHER_PROFILER", old.pid: "RUNTIME_TOO_OLD", bare.pid: "NO_TAP"}
        states = {good.pid: "IDLE", busy.pid: "BUSY_OTHER_PROFILER", old.pid: "RUNTIME_TOO_OLD", bare.pid: "NO_TAP"}

        def settled():
            seen = {w["identity"]["pid"]: w["state"].removeprefix("WORKER_STATE_") for w in self.fleet.list_workers()}
            return all(seen.get(pid) == state for pid, state in states.items())
        wait_until(settled, "all workers to be known for what they are", 40)
        reported = self.obstacles(self.capture("--instance", "i-0001", "--duration", "500ms", code=3))
        self.assertEqual({pid: reported.get(pid) for pid in expected}, expected)
        table = self.fleet.cli("capture", "--duration", "500ms", check=False)
        self.assertEqual(table.returncode, 3, table.stdout)
        rows = {pid: next(line for line in table.stdout.splitlines() if str(pid) in line.split()) for pid in expected}
        self.assertIn("recorded", rows[good.pid])
        self.assertIn("other profiler", rows[busy.pid])
        self.assertIn("runtime too old", rows[old.pid])
        self.assertIn("no tap", rows[bare.pid])
        # Who requires all gets none, and nothing has begun anywhere.
        none = self.capture("--duration", "500ms", "--require", "all", code=1)
        self.assertEqual(none["state"], "CAPTURE_STATE_NOT_BEGUN")
        self.assertEqual((int(none["events"]), int(none["events_lost"])), (0, 0))
        self.assertTrue(none["certificate"]["verdict"].startswith("not begun"), none["certificate"]["verdict"])

    def test_reports_reason_of_unstarted_workers(self):
        self.start_instances()
        self.fleet.start_agent("i-0001", process_scan=True)
        good, poor = [self.fleet.start_worker("i-0001", "--cores", 1, "--mix", "graph", "--executions-per-second", 20)
                      for _ in range(2)]
        silent = self.fleet.start_worker("i-0001", "--no-init", ready=False)
        wait_until(lambda: {good.pid, poor.pid, silent.pid} <= {w["identity"]["pid"] for w in self.fleet.list_workers()},
                   "all workers", 40)
        # A runtime without memory for its rings.
        with open(f"/proc/{poor.pid}/statm", encoding="ascii") as statm:
            used = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.prlimit(poor.pid, resource.RLIMIT_AS, (used + (16 << 20), used + (16 << 20)))
        capture = self.capture("--duration", "500ms", "--ring-events", 1_000_000, code=3)
        expected = {good.pid: "NONE", poor.pid: "RUNTIME_REFUSED", silent.pid: "NOT_INITIALISED"}
        reported = self.obstacles(capture)
        self.assertEqual({pid: reported.get(pid) for pid in expected}, expected, capture["workers"])
        self.check_table(capture, {good.pid: "recorded", poor.pid: "runtime refused", silent.pid: "not initialised"})

    def test_a_snapshot_of_rings_that_another_capture_has_is_refused(self):
        worker, = self.start_fleet()
        self.fleet.cli("flight-recorder", "on")
        stream = self.start_capture("--name", "in the way")
        self.wait_for_events(stream, 1)
        snapshot = self.capture("--last", "1s", code=1)
        self.assertEqual(self.obstacles(snapshot), {worker.pid: "NOT_ARMED"})
        self.assertIn("does not hold the rings", snapshot["workers"][0]["detail"])
        self.check_table(snapshot, {worker.pid: "not armed"})
        self.stop_capture(stream)
        wait_until(lambda: self.fleet.cli("capture", "--last", "1s", check=False).returncode in (0, 3),
                   "the flight recorder to hold the rings again")

    def test_names_instance_with_lost_agent(self):
        self.start_fleet(instances=2)
        self.fleet.agents["i-0002"].kill()
        self.fleet.wait_for_status(1)
        capture = self.capture("--duration", "500ms", code=3)
        lost = [w for w in capture["workers"] if w["obstacle"] == "CAPTURE_OBSTACLE_AGENT_LOST"]
        self.assertEqual([w["worker"]["instance_id"] for w in lost], ["i-0002"], capture["workers"])
        self.check_table(capture, {"i-0002": "agent lost"})

    def test_a_worker_that_is_stopped_while_others_record_is_no_part_of_it(self):
        good, frozen = self.start_fleet(workers=2)
        os.kill(frozen.pid, signal.SIGSTOP)
        try:
            capture = self.capture("--duration", "500ms", code=3)
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        self.assertEqual(self.obstacles(capture), {good.pid: "NONE", frozen.pid: "NO_ANSWER"}, capture["workers"])
        self.check_table(capture, {good.pid: "recorded", frozen.pid: "no answer"})
        self.assertEqual(capture["state"], "CAPTURE_STATE_INCOMPLETE")
        # It comes round, and takes part in the next one.
        wait_until(lambda: self.fleet.cli("capture", "--duration", "500ms", check=False).returncode == 0,
                   "both to record", 20)

    def test_second_operator_learns_about_first(self):
        self.start_fleet()
        first = self.start_capture("--name", "first")
        self.wait_for_events(first, 500)
        second = self.capture("--duration", "500ms", code=1)
        self.assertEqual(second["state"], "CAPTURE_STATE_NOT_BEGUN")
        self.assertEqual(set(self.obstacles(second).values()), {"OTHER_CAPTURE"})
        self.assertIn(first, second["workers"][0]["detail"])
        self.check_table(second, {pid: "other capture" for pid in self.obstacles(second)})
        self.wait_for_events(first, int(self.fleet.show_capture(first)["events"]) + 500)
        self.assertEqual(self.stop_capture(first)["state"], "CAPTURE_STATE_COMPLETE")
        self.check_whole(first)

    def test_unmatched_selection_lists_workers(self):
        worker, = self.start_fleet()
        done = self.fleet.cli("capture", "--duration", "500ms", "--job", "no-such-job", check=False)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("no worker matched", done.stdout)
        self.assertIn(str(worker.pid), done.stdout)
        wrong = self.fleet.cli("capture", "--duration", "500ms", "--event-type", "nc_exec_runing", check=False)
        self.assertEqual(wrong.returncode, 2)
        self.assertIn("'nc_exec_running'", wrong.stderr)

    # -- what is recorded ----------------------------------------------------------------------------------------

    def test_all_begin_as_planned_and_report_offset(self):
        self.start_fleet(instances=2, workers=2)
        self.fleet.wait_for_planning(2)
        capture = self.capture("--duration", "500ms")
        for worker in capture["workers"]:
            self.assertTrue(worker["begun_as_planned"], worker)
            self.assertIn("begin_offset_ns", worker)
        self.assertGreater(int(capture["begin"]["bound_ns"]), 0)

    def test_the_preview_records_nothing(self):
        self.start_fleet()
        preview = self.capture("--duration", "10s", "--dry-run")["preview"]
        self.assertGreater(preview["events_per_second"], 0)
        self.assertGreater(int(preview["bytes"]), 0)
        wait_until(lambda: not self.fleet.cli_json("captures")["captures"], "the preview to be gone")

    def capture_by_execution(self, attempts=4):
        """A capture of twenty executions that all cores began at one. Where agents get no processor for as long as is
        planned ahead, some begin later: the capture says so then, and is made again."""
        for _ in range(attempts):
            done = self.fleet.cli("--output", "json", "capture", "--at-execution", "next", "--executions", "20",
                                  check=False)
            self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
            capture = json.loads(done.stdout)
            first = int(capture["begin"]["first_execution"])
            # The lowest and the highest first execution of each worker's cores: together they stand for all cores.
            reached = {int(w[field]) for w in capture["workers"]
                       for field in ("first_execution", "highest_first_execution")}
            without = sum(int(w["cores_without_execution"]) for w in capture["workers"])
            is_whole = reached == {first} and without == 0
            self.assertEqual(done.returncode == 0, is_whole, capture["workers"])
            self.assertGreaterEqual(min(reached), first)
            if is_whole:
                return capture
        self.fail(f"{attempts} captures began late")

    def test_all_cores_begin_at_one_execution(self):
        self.start_fleet(instances=2)
        capture = self.capture_by_execution()
        first = int(capture["begin"]["first_execution"])
        self.assertGreater(first, 0)
        self.assertEqual(int(capture["begin"]["last_execution"]), first + 19)
        executions = collections.defaultdict(set)
        for row in read_events(self.fleet.export_events(capture["capture_id"])):
            attributes = row["event"].get("data", {})
            if row["event"]["event_type"] == "nc_exec_running" and "exec_id" in attributes:
                executions[(row["instance_id"], row["pid"], row["nc_idx"])].add(int(attributes["exec_id"]))
        self.assertEqual(len(executions), 4)
        for core, seen in executions.items():
            self.assertEqual(seen, set(range(first, first + 20)), core)

    def test_the_last_seconds_of_a_flight_recorder_are_whole_up_to_one_cut(self):
        workers = self.start_fleet(instances=2)
        without = self.fleet.cli("capture", "--last", "1s", check=False)
        self.assertEqual(without.returncode, 1)
        self.assertIn("flight-recorder on", without.stderr)
        self.fleet.cli("flight-recorder", "on", "--all-events")
        self.wait_for_more_work(workers, 60)
        snapshot = self.capture("--last", "1500ms")
        cut = int(snapshot["begin"]["reference_ns"])
        for worker in snapshot["workers"]:
            self.assertGreaterEqual(int(worker["reaches_back_ns"]), 1.45 * SECOND_NS, worker)
        self.wait_for_more_work(workers, 10)
        self.assertEqual(self.fleet.cli("flight-recorder", "off").returncode, 0)
        self.check_window(workers, snapshot["capture_id"], cut - 3 * SECOND_NS // 2, cut)

    def check_window(self, workers, capture_id, begin_ns, cut_ns):
        """The capture holds every event of the window once, and none that is newer or older."""
        stored = collections.Counter()
        for row in read_events(self.fleet.export_events(capture_id, "--clock", "raw")):
            event = row["event"]
            self.assertLess(event["timestamp_ns"], cut_ns + APART_NS)
            self.assertGreater(event["timestamp_ns"], begin_ns - APART_NS)
            stored[(row["pid"], row["nc_idx"], key_of(event))] += 1
        self.assertEqual(max(stored.values()), 1)
        for worker in workers:
            self.assertEqual(worker.stop(), 0)
            inside = {(worker.reported_pid, row["nc_idx"], key_of(row)) for row in read_truth(worker.truth)
                      if begin_ns + APART_NS < row["timestamp_ns"] < cut_ns - APART_NS}
            self.assertGreater(len(inside), 1_000)
            self.assertEqual(inside - stored.keys(), set())

    def test_adds_late_workers_with_start_time(self):
        first, = self.start_fleet()
        capture_id = self.start_capture("--all-events")
        self.wait_for_events(capture_id, 500)
        options = ("--cores", 2, "--mix", "graph", "--executions-per-second", 20, "--world-size", 4)
        late = self.fleet.start_worker("i-0001", *options, "--rank-start", 2)
        self.assertEqual(first.stop(), 0)
        again = self.fleet.start_worker("i-0001", *options, "--rank-start", 0)
        pids = [worker.pid for worker in (first, late, again)]

        def all_there(capture):
            stored = {w["worker"]["pid"]: int(w["events_stored"]) for w in capture["workers"]}
            return all(stored.get(pid, 0) > 500 for pid in pids)
        self.fleet.wait_for_capture(capture_id, all_there, "events of all")
        capture = self.stop_capture(capture_id)
        reported = {w["worker"]["pid"]: w for w in capture["workers"]}
        self.assertEqual([reported[pid]["joined_late"] for pid in pids], [False, True, True])
        begun = [int(reported[pid]["begun_realtime_ns"]) for pid in pids]
        # Both late ones may have been accepted at one moment.
        self.assertLess(begun[0], min(begun[1:]))
        self.check_table(capture, {late.pid: "late", again.pid: "late"})
        self.check_whole(capture_id)

    def test_a_job_that_ends_in_the_middle_is_kept(self):
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--mix", "graph", "--executions-per-second", 50)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture("--duration", "6s")
        self.wait_for_events(capture_id, 1_000)
        self.assertEqual(worker.stop(), 0)
        capture = self.fleet.wait_for_capture(capture_id, lambda c: c["state"] == "CAPTURE_STATE_COMPLETE", "its end")
        self.assertEqual([w["state"] for w in capture["workers"]], ["CAPTURE_WORKER_STATE_COMPLETE"])
        self.check_whole(capture_id)


if __name__ == "__main__":
    suite.main()
