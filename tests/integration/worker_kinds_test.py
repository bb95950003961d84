# SPDX-License-Identifier: Apache-2.0
"""Workers that cannot be recorded, or not now, or that look like one another, each with a whole fleet around it."""

import json
import os
import subprocess
import unittest

import suite
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import read_capture_log, read_events, read_truth

PID_NAMESPACE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def may_make_pid_namespaces():
    return subprocess.run([*PID_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0


class NotRecordable(FleetCase):
    def assert_nothing_matches(self, *words):
        done = self.fleet.cli("capture", "--duration", "300ms", check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stdout + done.stderr)

    def test_nrt_init_was_never_called(self):
        """Such a process carries the library and nothing else: no thread, no connection, no place in any list."""
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--no-init")
        with open(f"/proc/{worker.pid}/maps", encoding="utf-8") as maps:
            self.assertIn("libneurontrace_tap.so", maps.read())
        self.assertEqual(len(os.listdir(f"/proc/{worker.pid}/task")), 1)
        self.assertEqual(self.fleet.list_workers(), [])
        self.assert_nothing_matches("no worker")
        self.assertEqual(worker.stop(), 0)

    def test_nrt_init_failed(self):
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", env={"FAKE_NRT_INIT_STATUS": "1"}, ready=False)
        self.assertEqual(worker.wait(), 1)
        self.assertEqual(self.fleet.list_workers(), [])

    def test_nrt_close_was_called(self):
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--duration", "0.2", "--no-close", "--close-delay", 60)
        self.fleet.wait_for_workers(1)
        self.assertEqual(worker.stop(), 0)
        wait_until(lambda: self.fleet.list_workers() == [], "the worker to be gone from the list")

    def test_the_runtime_is_too_old(self):
        self.start_instances("i-0001")
        old = self.fleet.build / "tests" / "fake_nrt" / "libnrt_nosystrace"
        worker = self.fleet.start_worker("i-0001", "--cores", 2, env={"LD_LIBRARY_PATH": str(old)})
        found, = self.fleet.wait_for_workers(1, "WORKER_STATE_RUNTIME_TOO_OLD")
        self.assertIn("nrt_sys_trace_fetch_events", found["detail"])
        self.assertIn("runtime too old", self.fleet.cli("workers").stdout)
        capture_id = self.start_capture()
        capture = self.stop_capture(capture_id, code=1)  # nobody else was there, and nothing began
        self.assertEqual(self.outcomes(capture), {("i-0001", worker.pid): "REFUSED"})
        self.assertIn("too old", capture["workers"][0]["detail"] + found["detail"])
        self.assertEqual(capture["events"], "0")
        self.assertEqual(worker.stop(), 0)
        self.assertEqual(worker.report()["misuse"], 0)


class OtherProfiler(FleetCase):
    """Another profiler has the runtime's one capture: it is left alone, and every event is still its own."""

    def assert_refused_while_busy(self, worker):
        self.fleet.wait_for_workers(1, "WORKER_STATE_BUSY_OTHER_PROFILER")
        self.assertIn("busy: other profiler", self.fleet.cli("workers").stdout)
        capture_id = self.start_capture()
        capture = self.fleet.wait_for_capture(capture_id, lambda c: c["workers"], "a word about the worker")
        self.assertIn("profile", capture["workers"][0]["detail"])
        capture = self.stop_capture(capture_id, code=1)
        self.assertEqual(capture["state"], "CAPTURE_STATE_NOT_BEGUN")
        self.assertEqual(self.outcomes(capture), {("i-0001", worker.pid): "REFUSED"})
        self.assertEqual(capture["events"], "0")

    def assert_unharmed(self, worker):
        """The profiler got every event that its rings accepted."""
        self.assertEqual(worker.stop(), 0, worker.log.read_text())
        report = worker.report()
        self.assertEqual(report["misuse"], 0)
        self.assertEqual(report["profiler_refused"], False)
        return report

    def test_its_own_sys_trace(self):
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--profiler", "sys-trace")
        self.assert_refused_while_busy(worker)
        report = self.assert_unharmed(worker)
        self.assertEqual(report["profiler_fetched"], report["accepted"])

    def test_inspect(self):
        self.start_instances("i-0001")
        out = self.fleet.dir / "inspect"
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--profiler", "inspect",
                                         "--profiler-output-dir", out)
        self.assert_refused_while_busy(worker)
        self.assert_unharmed(worker)
        self.assert_none_stolen(out, worker)

    def test_inspect_by_environment(self):
        self.start_instances("i-0001")
        out = self.fleet.dir / "inspect"
        worker = self.fleet.start_worker("i-0001", "--cores", 2, env={
            "NEURON_RT_INSPECT_ENABLE": "1", "NEURON_RT_INSPECT_OUTPUT_DIR": str(out)})
        self.assert_refused_while_busy(worker)
        self.assert_unharmed(worker)
        self.assert_none_stolen(out, worker)

    def assert_none_stolen(self, out, worker):
        sums = json.loads((out / f"fake_inspect_pid_{worker.pid}.json").read_text())
        self.assertGreater(sums["accepted"], 0)
        self.assertEqual(sums["stolen"], 0)

    def test_profiler_starting_mid_capture_suspends_it(self):
        """Ours ends before its trace begins, and continues in the same capture when it has stopped."""
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--profiler", "sys-trace", "--profiler-delay", 1.5,
                                         "--profiler-duration", 1)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        self.fleet.wait_for_workers(1, "WORKER_STATE_BUSY_OTHER_PROFILER")
        held = int(self.fleet.show_capture(capture_id)["events"])
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        self.wait_for_events(capture_id, held + 1000)
        self.stop_capture(capture_id, code=None)
        report = self.assert_unharmed(worker)
        # Of the process's traces the second was the profiler's: the capture holds the first and the third.
        theirs = [sums for (trace, _), sums in read_capture_log(worker.capture_log).items() if trace == 2]
        self.assertEqual(sum(row["capture"] == 2 for row in read_truth(worker.truth)),
                         sum(sums["accepted"] for sums in theirs))
        # What it had not fetched when it stopped went with the rings; all else it fetched itself.
        self.assertEqual(report["profiler_fetched"], sum(sums["accepted"] - sums["lost_at_stop"] for sums in theirs))
        self.assertGreater(report["profiler_fetched"], 0)
        self.check_whole(capture_id, traces={1, 3})


class Many(FleetCase):
    def test_64_cores_in_one_process(self):
        self.start_instances("i-0001")
        self.fleet.start_worker("i-0001", "--cores", 64, "--mix", "bare", "--executions-per-second", 5,
                                "--rank-start", 128, "--world-size", 256)
        found, = self.fleet.wait_for_workers(1)
        self.assertEqual(len(found["cores"]), 64)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 10_000)
        capture = self.stop_capture(capture_id)
        self.assertEqual(sorted(int(s["worker_gid"]) for s in capture["streams"]), list(range(128, 192)))
        self.assertEqual(len(self.check_whole(capture_id).cores), 64)


class Ranks(FleetCase):
    def test_a_late_communicator_binds_the_whole_capture(self):
        """Events recorded before the communicator exists say -1; they are the rank's all the same."""
        self.start_instances("i-0001")
        worker = self.fleet.start_worker("i-0001", "--cores", 2, "--rank-start", 6, "--world-size", 8,
                                         "--communicator", "late", "--communicator-after", 40)
        found, = self.fleet.wait_for_workers(1)
        self.assertEqual([core["rank_evidence"] for core in found["cores"]], [[], []])
        capture_id = self.start_capture()
        self.fleet.wait_for_capture(
            capture_id, lambda c: sorted(int(s["worker_gid"]) for s in c["streams"]) == [6, 7],
            "the ranks to be known")
        self.wait_for_events(capture_id, int(self.fleet.show_capture(capture_id)["events"]) + 1000)
        capture = self.stop_capture(capture_id)
        self.assertEqual({s["evidence"]["source"] for s in capture["streams"]}, {"RANK_SOURCE_COMMUNICATOR"})
        result = self.check_whole(capture_id)
        printed = {row["event"]["worker_gid"] for row in read_events(self.fleet.export_events(capture_id))}
        self.assertEqual(printed, {-1, 6, 7}, "the events themselves stay as the runtime wrote them")
        self.assertEqual(len(result.cores), 2)
        self.assertEqual(worker.report()["misuse"], 0)


@unittest.skipUnless(may_make_pid_namespaces(),
                     "needs to make pid namespaces (unshare --pid): run as root or in a container that may")
class SamePid(FleetCase):
    """Two containers on one instance in which the worker has the same pid."""

    def start_pair(self):
        workers = [self.fleet.start_worker("i-0001", "--cores", 2, "--rank-start", 2 * i, "--world-size", 4,
                                           prefix=PID_NAMESPACE) for i in range(2)]
        ready = [worker.wait_for_line("ready pid=") for worker in workers]
        self.assertEqual(ready[0], ready[1], "both are the same pid to themselves")
        return workers

    def record_both(self, workers, pids):
        capture_id = self.start_capture()
        self.fleet.wait_for_capture(
            capture_id, lambda c: len(c["streams"]) == 4 and all(int(s["events"]) > 500 for s in c["streams"]),
            "events of all cores")
        capture = self.stop_capture(capture_id)
        identities = {tuple(sorted((k, str(v)) for k, v in s["identity"]["worker"].items()))
                      for s in capture["streams"]}
        self.assertEqual(len(identities), 2, identities)
        self.assertEqual(sorted(int(s["worker_gid"]) for s in capture["streams"]), [0, 1, 2, 3])
        for worker, pid in zip(workers, pids):
            worker.pid_seen = pid
        return capture_id

    def test_agent_sees_the_host_pids(self):
        self.start_instances("i-0001")
        workers = self.start_pair()
        self.fleet.wait_for_workers(2)
        self.fleet.wait_for_ranks(4)
        found = self.fleet.list_workers()
        self.assertEqual(sum(w["pid_claimed"] for w in found), 0)
        pids = {w["cores"][0]["rank_evidence"][0]["worker_gid"]: w["identity"]["pid"] for w in found}
        self.assertNotEqual(pids["0"], pids["2"])
        capture_id = self.record_both(workers, [pids["0"], pids["2"]])
        self.check_whole(capture_id)

    def test_agent_sees_no_pid_at_all(self):
        """The agent lives in a pid namespace of its own: the kernel tells it pid 0, and the taps' claims are equal."""
        self.fleet.start_aggregator()
        self.fleet.start_agent("i-0001", prefix=PID_NAMESPACE)
        workers = self.start_pair()
        found = self.fleet.wait_for_workers(2)
        self.assertTrue(all(w["pid_claimed"] for w in found), found)
        claimed = {w["identity"]["pid"] for w in found}
        self.assertEqual(len(claimed), 1, "the claims are the same")
        capture_id = self.record_both(workers, [claimed.pop()] * 2)
        for worker in self.fleet.workers:
            self.assertEqual(worker.stop(), 0)
        rows = list(read_events(self.fleet.export_events(capture_id)))
        for worker in workers:
            ranks = {row["rank"] for row in read_truth(worker.truth)}
            truth = {(row["rank"], row["nc_local_id"], row["timestamp_ns"]) for row in read_truth(worker.truth)}
            stored = [(row["worker_gid"], row["event"]["nc_local_id"], row["event"]["timestamp_ns"])
                      for row in rows if row["worker_gid"] in ranks]
            self.assertEqual(len(stored), len(set(stored)), "nothing twice")
            self.assertLessEqual(set(stored), truth, "nothing of the other worker")
            self.assertGreater(len(stored), 1000)


if __name__ == "__main__":
    suite.main()
