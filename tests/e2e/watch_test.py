# SPDX-License-Identifier: Apache-2.0
"""Verdicts while the fleet runs, with everything real but the runtime: who is slow, hung or dead is named, and nobody
else; a rule records the suspects and their peers; restarts of any part change nothing."""

import json
import signal
import time

import suite
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import read_truth
from processor_share import NoProcessorShare, ProcessorShare

CEILING_SECONDS = 120  # on a busy machine; what it took is printed
STRAGGLER = 5
INSTANCES = [f"i-{i:04x}" for i in range(1, 5)]
PER_SECOND = 10
AHEAD = 8 * PER_SECOND  # executions until all wait
HOST_WORK_US = 20_000  # of each core and execution, where the host's work is real
SLOW_KINDS = ("SLOW_HOST", "SLOW_PROCESS", "HOST_CODE")
QUOTA_US, QUOTA_PERIOD_US = 5_000, 50_000  # so that even the core that comes first is late: 200 ms for its 20


class WatchFleet(FleetCase):
    def start_job(self, *options, aggregator=(), agent_options=(), own_options=None):
        """Eight ranks on four instances that begin together, so that their executions have the same numbers."""
        self.fleet.start_aggregator(*aggregator)
        self.start_instances(*INSTANCES, agent_options=agent_options)
        return self.start_workers(*options, own_options=own_options)

    def start_workers(self, *options, state="WORKER_STATE_IDLE", own_options=None):
        """`own_options`: of the worker of an instance alone."""
        start = time.time_ns() + 5_000_000_000
        workers = [self.fleet.start_worker(
            name, "--cores", 2, "--rank-start", 2 * i, "--world-size", 8, "--start-at", start, "--mix", "graph",
            "--executions-per-second", PER_SECOND, "--wait-file", self.fleet.dir / "wait", *options,
            *(own_options or {}).get(name, ())) for i, name in enumerate(INSTANCES)]
        self.fleet.wait_for_workers(len(workers), state)
        return workers

    def watch_on(self):
        """With a budget that is never exceeded, however slow this machine is: what it leaves out is not judged."""
        return self.fleet.cli_json("watch", "on", "--budget-core", "100%")["capture_id"]

    def report(self):
        """What is said now; nothing while the aggregator has not seen the watch."""
        done = self.fleet.cli("why", "--live", "--json", codes=(0, 1, 3))
        return json.loads(done.stdout) if done.returncode != 1 else {}

    def wait_for_report(self, condition, what):
        """What `condition` returns of a report once it is true; prints the last report if it never is."""
        seen = {}

        def there():
            seen["report"] = self.report()
            return condition(seen["report"])
        try:
            return wait_until(there, what, CEILING_SECONDS)
        except Exception:
            print("last report:", json.dumps(seen), flush=True)
            raise

    def wait_for_verdict(self, kind, fault):
        """The verdict, and prints how long after the fault it came."""
        verdict = self.wait_for_report(
            lambda report: next((v for v in report.get("verdicts", []) if v["kind"].endswith(kind)), None),
            f"the verdict {kind}")
        print(f"{self.id()}: {kind} {time.monotonic() - fault:.1f} s after the fault", flush=True)
        return verdict

    def wait_for_judged(self, cores):
        self.wait_for_report(lambda report: int(report.get("cores_judged", 0)) >= cores, f"{cores} judged cores")

    def newest_execution(self, worker):
        return max(row["exec_id"] for row in read_truth(worker.truth))

    def let_all_wait(self):
        """From an execution on that nobody has begun yet. Returns the last one that ends."""
        last = max(map(self.newest_execution, self.fleet.workers)) + AHEAD
        scratch = self.fleet.dir / "wait.new"
        scratch.write_text(str(last))
        scratch.rename(self.fleet.dir / "wait")
        return last

    def ranks(self, verdict):
        return sorted(int(core["worker_gid"]) for core in verdict["suspects"])


class WatchTest(WatchFleet):
    def test_names_the_straggler_and_nobody_else(self):
        self.start_job("--straggler-rank", STRAGGLER, "--straggler-extra-us", 4000)
        self.watch_on()
        fault = time.monotonic()
        verdict = wait_until(lambda: next(iter(self.report().get("verdicts", [])), None), "a verdict", CEILING_SECONDS)
        print(f"{self.id()}: {verdict['kind']} {time.monotonic() - fault:.1f} s after watch on", flush=True)
        self.assertEqual(self.ranks(verdict), [STRAGGLER], verdict)
        self.assertGreater(self.fleet.aggregator.metric("neurontrace_verdicts_total"), 0)
        self.restart_aggregator()
        again = wait_until(lambda: next(iter(self.report().get("verdicts", [])), None), "it again", CEILING_SECONDS)
        self.assertEqual(self.ranks(again), [STRAGGLER], again)

    def restart_aggregator(self):
        self.fleet.aggregator.signal(signal.SIGKILL)
        self.fleet.aggregator.wait()
        self.fleet.start_aggregator()
        self.fleet.wait_for_status(agents=4)

    def test_a_restart_ends_and_repeats_nothing_for_a_follower(self):
        self.start_job("--straggler-rank", STRAGGLER, "--straggler-extra-us", 4000)
        self.watch_on()
        self.wait_for_judged(8)
        follower = self.fleet.start_command("why", "--watch")
        follower.wait_for_line("SLOW ", CEILING_SECONDS)
        self.restart_aggregator()
        follower.wait_for_line("RESTARTED ", CEILING_SECONDS)
        wait_until(lambda: next(iter(self.report().get("verdicts", [])), None), "it again", CEILING_SECONDS)
        follower.signal(signal.SIGINT)
        self.assertIn(follower.wait(), (0, 3))
        lines = follower.log.read_text(encoding="utf-8").splitlines()
        named = [line.split(":")[0] for line in lines if line.startswith("SLOW ")]
        self.assertEqual(len(named), len(set(named)), lines)
        self.assertFalse([line for line in lines if line.startswith("ENDED ")], lines)

    def test_continues_after_a_restart_of_all_agents(self):
        self.start_job()
        self.watch_on()
        self.wait_for_judged(8)
        for name, agent in list(self.fleet.agents.items()):
            agent.kill()
            self.fleet.start_agent(name)
        self.fleet.wait_for_status(agents=4)
        fault = time.monotonic()
        self.let_all_wait()
        self.wait_for_verdict("HANG_INSIDE", fault)

    def test_judges_the_workers_of_a_job_that_is_started_again(self):
        workers = self.start_job()
        self.watch_on()
        self.wait_for_judged(8)
        for worker in workers:
            worker.stop()
        self.fleet.wait_for_workers(0)
        self.start_workers("--straggler-rank", STRAGGLER, "--straggler-extra-us", 4000, state="WORKER_STATE_STREAMING")
        verdict = wait_until(lambda: next(iter(self.report().get("verdicts", [])), None), "a verdict", CEILING_SECONDS)
        self.assertEqual(self.ranks(verdict), [STRAGGLER], verdict)

    def test_names_nobody_without_a_fault(self):
        self.start_job()
        self.watch_on()
        self.wait_for_judged(8)
        self.assertEqual(self.report().get("verdicts", []), [])
        self.assertEqual(self.fleet.aggregator.metric("neurontrace_verdicts_total"), 0)

    def test_stopped_worker_has_not_entered(self):
        workers = self.start_job()
        self.watch_on()
        self.wait_for_judged(8)
        self.addCleanup(workers[2].signal, signal.SIGCONT)
        workers[2].signal(signal.SIGSTOP)
        fault = time.monotonic()
        self.let_all_wait()
        verdict = self.wait_for_verdict("HANG_NOT_ENTERED", fault)
        self.assertEqual(self.ranks(verdict), [4, 5], verdict)

    def test_killed_worker_is_dead(self):
        workers = self.start_job()
        self.watch_on()
        self.wait_for_judged(8)
        workers[1].kill()
        fault = time.monotonic()
        self.let_all_wait()
        verdict = self.wait_for_verdict("DEAD_WORKER", fault)
        self.assertEqual(self.ranks(verdict), [2, 3], verdict)

    def test_worker_with_a_share_of_a_processor_is_slow(self):
        """The host's work of one process is real, and its quota makes it slow. The others' is only scheduled, so that
        the load of this machine makes none of them slow."""
        try:
            share = ProcessorShare(QUOTA_US, QUOTA_PERIOD_US)
        except NoProcessorShare as error:
            self.skipTest(str(error))
        self.addCleanup(share.close)
        workers = self.start_job("--host-work-us", HOST_WORK_US, "--meeting-file", self.fleet.dir / "meeting",
                                 own_options={INSTANCES[2]: ("--do-host-work",)})
        self.watch_on()
        self.wait_for_judged(8)
        share.add(workers[2].pid)
        fault = time.monotonic()

        def named(report):
            """The verdict on both cores. One of them may be named before, and both may be taken for hung where this
            machine gives them less than their share."""
            verdicts = report.get("verdicts", [])
            for verdict in verdicts:
                self.assertLessEqual(set(self.ranks(verdict)), {4, 5}, verdict)
            return next((v for v in verdicts if self.ranks(v) == [4, 5] and v["kind"].endswith(SLOW_KINDS)), None)

        verdict = self.wait_for_report(named, "a verdict on ranks 4 and 5")
        print(f"{self.id()}: {verdict['text']}, {time.monotonic() - fault:.1f} s after the quota", flush=True)
        self.assertGreater(share.throttled(), 0)

    def test_all_inside(self):
        self.start_job()
        self.watch_on()
        self.wait_for_judged(8)
        fault = time.monotonic()
        self.let_all_wait()
        self.wait_for_verdict("HANG_INSIDE", fault)

    def test_rule_records_suspects_and_peers(self):
        rules = self.fleet.dir / "triggers"
        rules.write_text('[slow]\nwhen = "verdict"\nverdict = "slow-*,host-code,hang-*"\npeers = 1\nrecord-for = "1s"\n')
        self.start_job("--straggler-rank", STRAGGLER, "--straggler-extra-us", 4000, aggregator=("--triggers", rules))
        blind = self.fleet.cli_json("triggers")["triggers"][0]["last_problem"]
        self.assertIn("no watch is on", blind)
        self.watch_on()

        def fired():
            trigger = self.fleet.cli_json("triggers")["triggers"][0]
            return trigger if int(trigger.get("fired", 0)) > 0 else None
        trigger = wait_until(fired, "the rule to fire", CEILING_SECONDS)
        capture = self.fleet.wait_for_capture(trigger["last_capture_id"], lambda c: c["state"].endswith("COMPLETE"), "its end")
        self.assertRegex(capture["spec"]["cause"], f"^trigger slow: .*{STRAGGLER}")
        ranges = [(int(r.get("first", 0)), int(r["last"])) for r in capture["spec"]["worker_gids"]]
        self.assertTrue(any(first <= STRAGGLER <= last for first, last in ranges), ranges)
        self.assertEqual(sum(last - first + 1 for first, last in ranges), 2, "the suspect and one peer")

    def test_one_watch_of_a_job(self):
        self.start_job()
        watch = self.watch_on()
        self.assertEqual(self.watch_on(), watch)
        self.assertIn("keeps        600 s", self.fleet.cli("watch", "status").stdout)
        self.fleet.cli("watch", "off")
        self.fleet.cli("watch", "status", codes=(1,))
        self.assertIn("no watch is on", self.fleet.cli("why", "--live", codes=(1,)).stderr)


if __name__ == "__main__":
    suite.main()
