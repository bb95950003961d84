# SPDX-License-Identifier: Apache-2.0
"""What a capture reports about itself, compared with the workers' own accounts: every number of the certificate, in
the command line's JSON, in summary.json, and inside each export. Then an agent that comes back late."""

import json
import time

import suite
from fleet_case import FleetCase
from ground_truth import read_capture_log, read_events
from pftrace_reader import Pftrace

HOUR_NS = 3_600_000_000_000


def short(name):
    """The word of an enum's name behind its prefix."""
    for prefix in ("WORKER_PART_", "WORKER_ABSENCE_", "AGENT_PART_", "CONSERVATION_"):
        name = name.removeprefix(prefix)
    return name


def without_clocks(certificate):
    """But for how well clocks are known, which more evidence may have made better meanwhile, and for what an export
    finds out of the order of things done together."""
    workers = [{key: value for key, value in worker.items() if key != "clock"} for worker in certificate["workers"]]
    notes = [note for note in certificate.get("notes", [])
             if not any(words in note for words in ("of the reference", "the clock of", "contradict"))]
    return {**certificate, "workers": workers, "notes": notes}


class CertificateTest(FleetCase):
    def parts(self, certificate):
        """(part, absence) by pid."""
        return {w["worker"]["pid"]: (short(w["part"]), short(w["absence"])) for w in certificate["workers"]}

    def by_pid(self, certificate, pid):
        return next(w for w in certificate["workers"] if w["worker"]["pid"] == pid)

    def produced(self, worker, capture_id):
        """Events that left the runtime of a worker of one core that has ended, or were overwritten in it. Where the
        very first, number 0, was overwritten before any was fetched, nobody can tell that there was one."""
        row, = read_capture_log(worker.capture_log).values()
        first = min(event["event"]["nc_local_id"] for event in read_events(self.fleet.export_events(capture_id))
                    if event["pid"] == worker.pid)
        return row["accepted"] - row["lost_at_stop"] - (first > 0)

    def check_account(self, reported, produced):
        """The law, and the truth."""
        account = reported["account"]
        self.assertEqual(int(account["expected"]), produced)
        self.assertEqual(int(account["expected"]), int(account["stored"]) + int(account["lost"]))
        self.assertEqual(account["conserved"], "CONSERVATION_YES")
        self.assertEqual(int(account["lost"]), sum(int(loss["events"]) for loss in account["losses"]))
        self.assertFalse(reported["events_read_differs"])

    def export(self, capture_id, name, *options, verdict="incomplete: "):
        path = self.fleet.dir / name
        done = self.fleet.cli("export", capture_id, "-o", path, *options, codes=(3,))
        self.assertIn(f"capture: {verdict}", done.stdout)
        return path

    def test_distinguishes_all_callers(self):
        """A worker that records, one that loses, one that has nothing to say, one that another profiler has, and one
        whose agent is killed."""
        self.start_instances("i-0001", "i-0002")
        steady = self.fleet.start_worker("i-0001", "--cores", 1, "--rank-start", 0, "--world-size", 16, "--mix", "bare",
                                         "--executions-per-second", 5)
        lossy = self.fleet.start_worker("i-0001", "--cores", 1, "--rank-start", 1, "--world-size", 16,
                                        "--mix", "eager", "--executions-per-second", 300)
        idle = self.fleet.start_worker("i-0001", "--cores", 1, "--rank-start", 2, "--world-size", 16, "--mix", "bare",
                                       "--start-at", time.time_ns() + HOUR_NS, ready=False)
        busy = self.fleet.start_worker("i-0001", "--cores", 1, "--rank-start", 3, "--world-size", 16,
                                       "--profiler", "sys-trace")
        alone = self.fleet.start_worker("i-0002", "--cores", 1, "--rank-start", 4, "--world-size", 16, "--mix", "bare",
                                        "--executions-per-second", 5)
        self.fleet.wait_for_workers(4)
        self.fleet.wait_for_workers(1, "WORKER_STATE_BUSY_OTHER_PROFILER")
        # Rings of 1024 events: the lossy worker's last for a few milliseconds.
        capture_id = self.start_capture("--ring-events", 1024)
        self.fleet.wait_for_capture(
            capture_id, lambda c: int(c["events_lost"]) > 0 and len(c["streams"]) >= 3, "losses, and all streams")
        live = self.fleet.show_capture(capture_id)["certificate"]
        self.assertTrue(live["provisional"])
        self.assertTrue(live["verdict"].startswith("provisional: "), live["verdict"])
        self.fleet.agents["i-0002"].kill()
        capture = self.stop_capture(capture_id, code=3)
        for worker in (steady, lossy, busy, idle):
            worker.stop()
        self.check_parts(capture, steady, lossy, idle, busy, alone)
        self.check_exports(capture_id, capture["certificate"], lossy)

        # The agent comes back: what the tap has kept arrives, and the capture is no longer waiting.
        self.fleet.start_agent("i-0002")
        capture = self.fleet.wait_for_capture(
            capture_id, lambda c: all(short(a["part"]) == "FINISHED" for a in c["certificate"]["agents"]),
            "the late agent to finish", seconds=60)
        alone.stop()
        self.assertEqual(self.parts(capture["certificate"])[alone.pid], ("RECORDED", "NONE"))
        self.check_account(self.by_pid(capture["certificate"], alone.pid), self.produced(alone, capture_id))

    def test_reports_rank_claimed_twice(self):
        self.start_instances("i-0001", "i-0002")
        for instance, job in (("i-0001", "llama"), ("i-0002", "llama"), ("i-0002", "whisper")):
            self.fleet.start_worker(instance, "--cores", 1, "--rank-start", 3, "--world-size", 8, "--mix", "graph",
                                    "--executions-per-second", 20, env={"NEURONTRACE_JOB": job})
        self.fleet.wait_for_workers(3)
        self.fleet.wait_for_ranks(3)
        words = "worker_gid 3 of job llama is claimed by 2 cores at once: i-0001 pid "
        table = self.fleet.cli("workers", codes=(3,)).stdout
        self.assertIn("conflict: " + words, table)
        self.assertRegex(table, r"(?m)^llama +2 +2  1 of 8 +0 +1 +0$")
        self.assertRegex(table, r"(?m)^whisper +1 +1  1 of 8 +0 +0 +0$")
        self.assertEqual(self.fleet.cli("workers", "--job", "whisper").returncode, 0)

        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 300)
        capture = self.stop_capture(capture_id, code=3)
        jobs = {job["job"]: job for job in capture["certificate"]["jobs"]}
        dispute, = jobs["llama"]["disputes"]
        self.assertEqual({claimant["worker"]["instance_id"] for claimant in dispute["claimants"]}, {"i-0001", "i-0002"})
        self.assertTrue(all(claimant["evidence"]["detail"] for claimant in dispute["claimants"]))
        self.assertFalse(jobs["whisper"]["has_conflict"])
        self.assertTrue(any(words in finding for finding in capture["certificate"]["findings"]))
        self.assertTrue(all(stream["rank_evidence"] for stream in capture["streams"]))
        # All of it is in exports, which are looked at when the job is long gone.
        file = self.export(capture_id, "summary.json", verdict="every event is stored, but worker_gid 3")
        summary = json.loads(file.read_text())
        self.assertEqual(summary["certificate"]["jobs"], capture["certificate"]["jobs"])
        shown = self.fleet.cli("captures", "show", capture_id, "--brief", codes=(3,)).stdout
        self.assertIn(words, shown)
        self.assertRegex(shown, r"(?m)^llama +2 +2  1 of 8 +0 +1 +0 +[0-9,]+ +0$")
        self.check_whole(capture_id)  # none is taken for the other

    def check_parts(self, capture, steady, lossy, idle, busy, alone):
        certificate = capture["certificate"]
        self.assertEqual(capture["state"], "CAPTURE_STATE_INCOMPLETE")
        self.assertFalse(certificate["complete"])
        self.assertEqual(self.parts(certificate), {
            steady.pid: ("RECORDED", "NONE"), lossy.pid: ("RECORDED", "NONE"), idle.pid: ("IDLE", "NONE"),
            busy.pid: ("NEVER", "BUSY_OTHER_PROFILER"), alone.pid: ("VANISHED", "NONE")})
        for worker in (steady, lossy):
            self.check_account(self.by_pid(certificate, worker.pid), self.produced(worker, capture["capture_id"]))
        self.assertEqual(self.by_pid(certificate, steady.pid)["account"]["lost"], "0")
        reported = self.by_pid(certificate, lossy.pid)
        self.assertGreater(int(reported["account"]["lost"]), 0)
        self.assertEqual({loss["place"] for loss in reported["account"]["losses"]}, {"LOSS_PLACE_RUNTIME_RING"})
        self.assertGreater(int(reported["gaps"]), 0)
        self.assertTrue(reported["longest_gaps"])
        vanished = self.by_pid(certificate, alone.pid)["account"]
        self.assertTrue(vanished["lost_unknown"])
        self.assertEqual(vanished["conserved"], "CONSERVATION_CANNOT_SAY")
        self.assertEqual(certificate["workers"][0]["worker"]["pid"], alone.pid, "worst first")
        for worker in certificate["workers"]:
            if worker["worker"]["instance_id"] == "i-0002":
                continue  # its agent may have been killed before it had told anything of its clocks
            self.assertTrue(worker["clock"]["aligned"], worker)
            self.assertGreater(int(worker["clock"]["bound_ns"]), 0, worker)
            self.assertTrue(worker["clock"]["words"].startswith("within "), worker)
        agents = {agent["instance_id"]: short(agent["part"]) for agent in certificate["agents"]}
        self.assertEqual(agents, {"i-0001": "FINISHED", "i-0002": "AWAITED"})
        ranks, = certificate["ranks"]
        self.assertEqual(ranks["never_seen"], [{"first": "5", "last": "15"}])
        shown = self.fleet.cli("captures", "show", capture["capture_id"], codes=(3,)).stdout
        for words in ("waiting for i-0002 (agent agent-i-0002), away since ", "never: other profiler", "vanished",
                      "11 of 16 ranks were never seen: 5-15", f"\n{certificate['verdict']}\n"):
            self.assertIn(words, shown)

    def check_exports(self, capture_id, certificate, lossy):
        certificate = without_clocks(certificate)
        summary = json.loads(self.export(capture_id, "summary.json").read_text())
        self.assertEqual(without_clocks(summary["certificate"]), certificate)
        self.assertEqual(summary["capture"]["capture_id"], capture_id)

        with open(self.export(capture_id, "events.jsonl"), encoding="utf-8") as lines:
            self.assertEqual(without_clocks(json.loads(next(lines))["certificate"]), certificate)

        account = certificate["account"]
        trace = json.loads(self.export(capture_id, "trace.json").read_text())
        self.assertEqual(without_clocks(trace["system_profile_metadata"][0]["certificate"]), certificate)
        sentence = (f"{account['lost']} or more trace events were dropped during capture (stored {account['stored']} "
                    f"out of at least {account['expected']} total events). Consider increasing buffer size, reducing "
                    "trace duration, or filtering events.")
        self.assertIn({"message": sentence, "category": "Missing Data"}, trace["warnings"])

        path = self.export(capture_id, "trace.pftrace")
        perfetto = Pftrace(path)
        self.assertEqual(without_clocks(perfetto.certificate()), certificate)
        reported = self.by_pid(certificate, lossy.pid)["account"]
        losses = perfetto.losses()
        self.assertEqual({key[1:]: events for key, events in losses.items() if key[0] == "gid1-nc0-losses"},
                         {("runtime ring", "overwritten"): int(reported["lost"])}, losses)

    def test_unmatched_capture_lists_excluded_workers(self):
        self.start_instances("i-0001")
        self.fleet.start_worker("i-0001", "--cores", 1)
        self.fleet.wait_for_workers(1)
        path = self.fleet.dir / "none.pftrace"
        done = self.fleet.cli("capture", "--duration", "300ms", "--job", "no-such-job", "-o", path, check=False)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("no worker matched", done.stdout)
        self.assertIn("the capture selects job no-such-job", done.stdout)
        self.assertFalse(path.exists())
        capture_id = self.fleet.cli_json("captures")["captures"][-1]["capture_id"]
        self.assertEqual(self.fleet.show_capture(capture_id)["state"], "CAPTURE_STATE_NOT_BEGUN")
        refused = self.fleet.cli("export", capture_id, "-o", path, check=False)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("there is nothing to export", refused.stderr)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    suite.main()
