# SPDX-License-Identifier: Apache-2.0
"""Stacks of workers, with everything real but the runtime and py-spy: a hang makes the aggregator ask, `why` shows
where the odd ranks differ, and files are in the capture. A stand-in prints what py-spy 0.4.3 printed of a real program
(tests/golden/py_spy_dump.json), with the number of the process that it is asked about; stopped workers are elsewhere
in it."""

import json
import pathlib
import signal
import stat
import sys
import time

import suite
import watch_test
from fleet import wait_until

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "py_spy_dump.json"
STAND_IN = """#!{python}
import json, pathlib, sys
assert sys.argv[1:5] == ["dump", "--json", "--nonblocking", "--pid"], sys.argv
pid = int(sys.argv[5])
threads = json.loads(pathlib.Path({golden!r}).read_text())
was = threads[0]["pid"]
state = pathlib.Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[0]
for thread in threads:
    is_main = thread["os_thread_id"] == was
    thread["pid"] = pid
    thread["os_thread_id"] = pid if is_main else thread["os_thread_id"]
    if is_main and state in "Tt":
        thread["frames"][0]["name"] = "load_batch"
json.dump(threads, sys.stdout)
"""


class StacksTest(watch_test.WatchFleet):
    def setUp(self):
        super().setUp()
        self.program = self.fleet.dir / "py-spy"
        self.program.write_text(STAND_IN.format(python=sys.executable, golden=str(GOLDEN)))
        self.program.chmod(self.program.stat().st_mode | stat.S_IXUSR)

    def test_a_hang_shows_where_ranks_differ(self):
        workers = self.start_job(agent_options=("--stacks-program", self.program))
        watch = self.watch_on()
        self.wait_for_judged(8)
        self.addCleanup(workers[2].signal, signal.SIGCONT)
        workers[2].signal(signal.SIGSTOP)
        fault = time.monotonic()
        self.let_all_wait()
        self.wait_for_verdict("HANG_NOT_ENTERED", fault)

        def collected():
            report = next(iter(self.report().get("stacks", [])), None)
            return report if report and report["pending"] == 0 else None
        report = wait_until(collected, "the stacks of the hang", watch_test.CEILING_SECONDS)
        self.assertEqual({m["outcome"] for m in report["members"]}, {"STACKS_OUTCOME_TAKEN"}, report)
        self.assertEqual(len(report["members"]), 4, "the suspect and its peers")
        minority = [node for node in report["nodes"] if node["is_minority"] and node["is_main"]]
        self.assertEqual([node["function"] for node in minority], ["load_batch"], report)
        self.assertEqual([m["worker_gids"] for i, m in enumerate(report["members"]) if i in minority[0]["members"]],
                         [["4", "5"]])
        self.assertTrue(all(m["kernel_threads"] for m in report["members"]), report)

        text = self.fleet.cli("why", "--live", codes=(0, 3)).stdout
        self.assertIn("train (worker.py) > all_reduce (worker.py)", text)
        self.assertIn("odd: gid 4-5 after train (worker.py): load_batch (worker.py)", text)
        self.check_files(watch, 4)
        audit = (self.fleet.dir / "store" / "audit.log").read_text()
        self.assertIn('"stacks.collect"', audit)

    def check_files(self, watch, processes):
        def listed():
            paths = [a["path"] for a in self.fleet.cli_json("artifacts", watch)["artifacts"]]
            raw = [path for path in paths if path.endswith("/stacks.json")]
            merged = [path for path in paths if path.endswith("/merged.json")]
            return (raw, merged) if len(raw) == processes and merged else None
        raw, merged = wait_until(listed, "the files", watch_test.CEILING_SECONDS)
        threads = json.loads(self.fleet.cli("artifacts", watch, raw[0], "-o", "-").stdout)
        self.assertEqual(len(threads), 3)
        target = self.fleet.dir / "merged.json"
        self.fleet.cli("artifacts", watch, merged[0], "-o", target)
        self.assertEqual(len(json.loads(target.read_text())["members"]), processes)

    def test_on_demand_and_what_is_missing(self):
        workers = self.start_job()
        watch = self.watch_on()
        self.wait_for_judged(8)
        none = self.fleet.cli("stacks", "--worker-gid", "0-3", codes=(3,))
        self.assertIn("no-program", none.stdout)
        self.assertIn("--stacks-program", none.stdout)
        self.fleet.agents["i-0001"].stop()
        self.fleet.start_agent("i-0001", "--stacks-program", self.program)
        self.fleet.wait_for_workers(len(workers), "WORKER_STATE_STREAMING")

        def taken():
            done = self.fleet.cli("stacks", watch, "--worker-gid", "0-1", "--json", codes=(0, 1, 3))
            return json.loads(done.stdout)["stacks"][0] if done.returncode == 0 else None
        report = wait_until(taken, "stacks of rank 0", watch_test.CEILING_SECONDS)
        self.assertEqual(report["members"][0]["worker_gids"], ["0", "1"])
        self.assertIn("all_reduce (worker.py)", report["lines"][0])
        self.assertIn("no worker", self.fleet.cli("stacks", "--worker-gid", "99", codes=(1,)).stderr)
        self.assertIn("all_reduce (worker.py)", self.fleet.cli("stacks", watch, "--show").stdout)


if __name__ == "__main__":
    suite.main()
