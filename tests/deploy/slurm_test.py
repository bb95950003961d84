# SPDX-License-Identifier: Apache-2.0
"""deploy/parallelcluster/slurm in a real Slurm: jobs of several nodes and tasks get the tap and their ranks, captures
begin and end as they ask, and nothing of neurontrace, whatever state it is in, is in the way of a job."""

import json
import os
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

import suite
from fleet import Fleet, Process, wait_until
from slurm_cluster import SlurmCluster, missing_programs, processes_of

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "parallelcluster" / "slurm"
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "slurm" / "train.sbatch"
NODES = ("n1", "n2", "n3", "n4")
SCRIPT = """#!/bin/bash
echo "preloaded: $LD_PRELOAD"
echo "annotations: $NVTX_INJECTION64_PATH"
srun --kill-on-bad-exit=1 {directory}/worker {worker}
echo "code of srun: $?"
"""
# A rank is nothing that the worker is told: neurontrace has it from Slurm's variables.
WORKER = """#!/bin/bash
run() {{
  {bin}/sim_worker --mix graph --executions-per-second 10 --communicator none "$@" &
}}
if [[ $1 == short ]]; then
  run "${{@:2}}" --executions 2
  wait $!
  exit
elif [[ $1 == per-node ]]; then
  # As torchrun does: one task for each node starts the node's workers.
  for local in 0 1; do
    RANK=$((SLURM_NODEID * 2 + local)) LOCAL_RANK=$local WORLD_SIZE=$((SLURM_NNODES * 2)) LOCAL_WORLD_SIZE=2 \\
      TORCHELASTIC_RUN_ID=none run "${{@:2}}"
  done
else
  run "$@"
fi
# The test says when the job is done.
until [[ -e {directory}/done-$SLURM_JOB_ID ]]; do sleep 0.1; done
kill -TERM $(jobs -p)
for worker in $(jobs -p); do wait "$worker" || exit; done
"""
ENDED = ("CAPTURE_STATE_COMPLETE", "CAPTURE_STATE_INCOMPLETE")
DEV_SHM = Path("/dev/shm")


@suite.needs_of_setup(missing_programs(), f"no Slurm here ({', '.join(missing_programs())}): ./scripts/setup installs it")
class SlurmTest(unittest.TestCase):
    """One cluster and one fleet for all: what a test leaves behind is a failure of the last one, see tearDown."""

    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory(prefix="nt-slurm-")
        cls.addClassCleanup(directory.cleanup)
        cls.dir = Path(directory.name)
        cls.dir.chmod(0o755)
        cls.fleet = Fleet(os.environ["NT_BUILD_DIR"], cls.dir / "fleet")
        cls.addClassCleanup(cls.fleet.shut_down)
        cls.socket_dir = cls.fleet.socket_of("n1").parent
        cls.socket_dir.chmod(0o755)
        cls.install()
        cls.fleet.start_aggregator()
        for node in NODES:
            cls.start_agent(node)
        scripts = [f"TaskProlog={cls.scripts}/task_prolog.sh", f"Prolog={cls.scripts}/prolog.d/*",
                   f"EpilogSlurmctld={cls.scripts}/epilog_slurmctld.sh"]
        cls.slurm = SlurmCluster(cls.dir / "slurm", NODES, scripts)
        cls.addClassCleanup(cls.slurm.stop)
        cls.slurm.start()
        cls.start_service()

    @classmethod
    def install(cls):
        """As on_node_configured.sh does, with paths of this test; users that run jobs need not see the build."""
        cls.scripts = cls.dir / "scripts"
        shutil.copytree(FOLDER, cls.scripts)
        (cls.scripts / "prolog.d").mkdir()
        (cls.scripts / "prolog.d" / "50_neurontrace").symlink_to(cls.scripts / "prolog.sh")
        bin_dir = cls.dir / "bin"
        bin_dir.mkdir()
        build = cls.fleet.build
        for file in (build / "lib" / "libneurontrace_tap.so", build / "lib" / "libneurontrace_annotate.so", build / "tests" / "fake_nrt" / "sim_worker",
                     build / "tests" / "fake_nrt" / "libnrt.so.1"):
            shutil.copy(file, bin_dir)
        cls.tap = bin_dir / "libneurontrace_tap.so"
        (cls.dir / "worker").write_text(WORKER.format(bin=bin_dir, directory=cls.dir))
        (cls.dir / "worker").chmod(0o755)
        cls.write_settings()

    @classmethod
    def write_settings(cls, **changes):
        settings = {"WAKE": cls.dir / "job-ended", "TAP": cls.tap, "SOCKET": f"{cls.socket_dir}/%n.sock", "SLURM_BIN": "/usr/bin",
                    "START_AGENT": f"/usr/bin/touch {cls.dir}/prolog-%n", **changes}
        (cls.scripts / "neurontrace.conf").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))

    @classmethod
    def start_agent(cls, node):
        """As the unit does: with a socket that every user reaches."""
        cls.fleet.start_agent(node, "--socket-mode", "0666")
        wait_until(cls.fleet.socket_of(node).exists, f"{node}'s socket")

    @classmethod
    def start_service(cls, interval=0.2):
        cls.service = Process(
            "neurontrace-slurm",
            [sys.executable, "-I", cls.scripts / "neurontrace_slurm.py", "run", "--interval", interval, "--wake",
             cls.dir / "job-ended", "--neurontrace", cls.fleet.program("neurontrace")],
            cls.fleet.logs, env={**cls.slurm.environment, "NEURONTRACE_AGGREGATOR": cls.fleet.address,
                                 "NEURONTRACE_CONFIG": ""})
        cls.addClassCleanup(lambda service=cls.service: service.running() and service.stop())
        cls.service.wait_for_line("checking the jobs")

    def setUp(self):
        self.shared_memory = set(DEV_SHM.iterdir())
        self.addCleanup(self._show_of_failure)

    def tearDown(self):
        """Nothing is left behind, whatever the test did."""
        kept = [process.popen.pid for process in (self.service, self.fleet.aggregator, *self.fleet.agents.values())]
        kept += self.slurm.pids()

        def left():
            return [(pid, words) for pid, words in processes_of(self.dir) if pid not in kept]
        wait_until(lambda: not left(), "every process of jobs to be gone", 15)
        self.assertEqual(self.slurm.run("squeue", "--all", "-h").stdout, "")
        self.assertEqual(self.fleet.cli_json("captures", "list", "--running")["captures"], [])
        self.assertEqual(set(DEV_SHM.iterdir()) - self.shared_memory, set())
        sockets = {path.name for path in self.socket_dir.iterdir() if path.is_socket()}
        self.assertEqual(sockets, {f"{node}.sock" for node in self.fleet.agents})

    def _show_of_failure(self):
        result = self._outcome.result
        if self in [getattr(test, "test_case", test) for test, _ in result.errors + result.failures]:
            for log in (*sorted(self.slurm.output.glob("job-*.out")), *sorted((self.slurm.dir / "log").iterdir()),
                        *sorted(self.fleet.logs.iterdir())):
                print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-25:]), flush=True)

    # -- jobs ----------------------------------------------------------------------------------------------------

    def submit(self, *options, worker=("--cores", 2), environment=None):
        script = SCRIPT.format(directory=self.dir, worker=" ".join(map(str, worker)))
        library_path = {"LD_LIBRARY_PATH": f"{self.dir}/bin"}
        return self.slurm.submit(script, *options, environment={**library_path, **(environment or {})})

    def finish(self, job):
        """Lets its workers end as they do when their work is done; everything of the job has to have gone well."""
        (self.dir / f"done-{job}").touch()
        self.assertEqual(self.slurm.finish(job), "COMPLETED", self.slurm.output_of(job))
        output = self.slurm.output_of(job)
        self.assertIn("code of srun: 0", output)
        return output

    def workers_of(self, job):
        fact = {"key": "slurm", "value": job}
        return [worker for worker in self.fleet.list_workers() if fact in worker["job_facts"]]

    def captures_of(self, job):
        return self.fleet.cli_json("captures", "list", "--tag", f"slurm_job={job}")["captures"]

    def wait_for_capture(self, job, *states):
        def there():
            return next((capture for capture in self.captures_of(job) if capture["state"] in states), None)
        return wait_until(there, f"a capture of job {job} in {states}", 30)

    def wait_for_ranks(self, capture_id, count):
        """Until it has events of so many ranks."""
        self.fleet.wait_for_capture(
            capture_id, lambda c: sum(int(s["events"]) > 0 for s in c["streams"]) >= count, f"events of {count} cores")

    def ranks(self, capture_id):
        """What the exported trace has: the ranks of each node's cores."""
        ranks = {}
        for line in self.fleet.export_events(capture_id).read_text().splitlines():
            row = json.loads(line)
            if "event" in row and not row.get("host"):
                ranks.setdefault(row["instance_id"], set()).add(row["worker_gid"])
        return {node: sorted(found) for node, found in ranks.items()}

    def check_capture(self, job, workers, ranks):
        """It is the job's only one, says whose it is, has so many workers with just these ranks, and lost nothing."""
        captures = self.captures_of(job)
        self.assertEqual(len(captures), 1)
        capture = self.fleet.show_capture(captures[0]["capture_id"])
        labels = {label["key"]: label["value"] for label in capture["spec"]["labels"]}
        self.assertEqual(capture["spec"]["name"], f"slurm-{job}")
        self.assertEqual((labels["slurm_job"], labels["slurm_user"]), (job, self.slurm.user))
        self.assertEqual(capture["spec"]["job_facts"], [{"key": "slurm", "value": job}])
        self.assertEqual(int(capture["events_lost"]), 0)
        self.assertEqual(len({(w["worker"]["instance_id"], w["worker"]["pid"]) for w in capture["workers"]}), workers)
        self.assertEqual(self.ranks(capture["capture_id"]), ranks)
        return capture

    # -- tests ---------------------------------------------------------------------------------------------------

    def test_one_task_a_node_with_a_request_in_the_comment(self):
        job = self.submit("-N4", "--ntasks-per-node=1", "--comment", "try 7, neurontrace=1s@start",
                          worker=("--cores", 4))
        other = self.submit("-N2", "--ntasks-per-node=1")
        wait_until(lambda: len(self.workers_of(other)) == 2, "the workers of the other job")
        self.wait_for_capture(job, *ENDED)
        self.assertEqual(self.slurm.state(job), "RUNNING", "a capture of the first second does not last to the end")
        workers = self.workers_of(job)
        self.assertEqual({worker["job"] for worker in workers}, {job})
        for worker in workers:
            facts = {fact["key"]: fact["value"] for fact in worker["job_facts"]}
            self.assertEqual(facts["label:slurm_user"], self.slurm.user)
            first = 4 * NODES.index(worker["identity"]["instance_id"])
            gids = [int(core["rank_evidence"][0]["worker_gid"]) for core in worker["cores"]]
            self.assertEqual(gids, list(range(first, first + 4)))
            self.assertIn("SLURM_PROCID", worker["cores"][0]["rank_evidence"][0]["detail"])
        self.assertIn(f"capture slurm-{job} (1s@start) of this job starts", self.finish(job))
        self.assertNotIn("neurontrace:", self.finish(other))
        capture = self.check_capture(job, 4, {node: list(range(4 * i, 4 * i + 4)) for i, node in enumerate(NODES)})
        self.assertEqual(self.captures_of(other), [])
        trace = self.fleet.dir / "trace.pftrace"
        self.fleet.cli("export", capture["capture_id"], "-o", trace, codes=(0, 3))
        tree = self.fleet.cli("validate", "--tree", trace).stdout
        for node, ranks in zip(NODES, ("gid0-3", "gid4-7", "gid8-11", "gid12-15")):
            self.assertRegex(tree, rf"{node}-pid\d+ \[{ranks}\]")

    def test_the_example(self):
        script = EXAMPLE.read_text()
        self.assertIn("--comment=neurontrace=30s@start", script)
        job = self.slurm.submit(script, "--comment", "neurontrace=1s@start", arguments=(self.dir / "worker", "--cores", 2),
                                environment={"LD_LIBRARY_PATH": f"{self.dir}/bin"})
        self.wait_for_capture(job, *ENDED)
        (self.dir / f"done-{job}").touch()
        self.assertEqual(self.slurm.finish(job), "COMPLETED", self.slurm.output_of(job))
        self.assertIn(f"capture slurm-{job} (1s@start) of this job starts", self.slurm.output_of(job))
        self.check_capture(job, 2, {"n1": [0, 1], "n2": [2, 3]})

    def test_several_tasks_a_node_with_a_request_in_the_environment(self):
        # A runtime that the job itself preloads: the tap has to precede it.
        runtime = self.dir / "bin" / "libnrt.so.1"
        job = self.submit("-N2", "--ntasks-per-node=4",
                          environment={"NEURONTRACE_CAPTURE": "whole", "LD_PRELOAD": str(runtime)})
        capture = self.wait_for_capture(job, "CAPTURE_STATE_RECORDING")
        self.assertEqual(capture["spec"]["duration_ns"], "0")
        self.wait_for_ranks(capture["capture_id"], 16)
        output = self.finish(job)
        self.wait_for_capture(job, *ENDED)
        self.check_capture(job, 8, {"n1": list(range(8)), "n2": list(range(8, 16))})
        self.assertIn(f"capture slurm-{job} (whole) of this job starts", output)
        self.assertEqual(output.count("neurontrace:"), 1, "once a job, not once a task")
        self.assertIn(f"preloaded: {self.tap}:{runtime}\n", output)
        self.assertIn(f"annotations: {self.tap.with_name('libneurontrace_annotate.so')}\n", output)

    def test_one_task_a_node_that_starts_several_workers(self):
        job = self.submit("-N2", "--ntasks-per-node=1", "--comment", "neurontrace=1s@start",
                          worker=("per-node", "--cores", 2))
        self.wait_for_capture(job, *ENDED)
        self.finish(job)
        self.check_capture(job, 4, {"n1": [0, 1, 2, 3], "n2": [4, 5, 6, 7]})

    def elements_of(self, array):
        """The job's id and the comment of each element."""
        rows = self.slurm.run("squeue", "--all", "-h", "-r", "-j", array, "-o", "%K|%A|%k").stdout.splitlines()
        return {int(index): (job, comment) for index, job, comment in (row.split("|") for row in rows)}

    def jobs_that_the_user_sees(self):
        """As the service does, which is not root: root has nothing hidden from it."""
        code = ("import sys; sys.path.insert(0, sys.argv[1]); import neurontrace_slurm as service; "
                "print(*(job.id for job in service.Slurm('').running()))")
        as_user = ["setpriv", f"--reuid={self.slurm.user}", "--clear-groups"] if os.geteuid() == 0 else []
        return set(self.slurm.run(*as_user, sys.executable, "-B", "-c", code, self.scripts).stdout.split())

    def test_each_element_of_an_array_asks_for_itself_in_a_partition_that_is_hidden(self):
        array = self.submit("-N1", "--ntasks-per-node=1", "--array=1-2", "--hold", "--partition=hidden",
                            environment={"NEURONTRACE_CAPTURE": "whole"})
        for index, words in ((1, "first"), (2, "second")):
            self.slurm.run("scontrol", "update", f"JobId={array}_{index}", f"Comment={words}")
        self.slurm.run("scontrol", "release", array)
        comments = {1: "first neurontrace=whole", 2: "second neurontrace=whole"}
        wait_until(lambda: {index: comment for index, (_, comment) in self.elements_of(array).items()} == comments,
                   "each element's own request", 30)
        elements = self.elements_of(array)
        self.assertIn(array, [job for job, _ in elements.values()], "the id that stands for the array too")
        for job, _ in elements.values():
            self.wait_for_capture(job, "CAPTURE_STATE_RECORDING")
        self.assertEqual(self.jobs_that_the_user_sees(), {job for job, _ in elements.values()})
        ended, running_element = elements[1][0], elements[2][0]
        (self.dir / f"done-{ended}").touch()
        self.wait_for_capture(ended, *ENDED)
        self.assertEqual([capture["state"] for capture in self.captures_of(running_element)], ["CAPTURE_STATE_RECORDING"])
        (self.dir / f"done-{running_element}").touch()
        self.wait_for_capture(running_element, *ENDED)
        for job, _ in elements.values():
            self.assertIn("code of srun: 0", self.slurm.output_of(job))

    def test_a_cancelled_job_ends_its_capture_also_when_the_service_was_killed(self):
        job = self.submit("-N2", "--ntasks-per-node=1", "--comment", "neurontrace=whole")
        capture = self.wait_for_capture(job, "CAPTURE_STATE_RECORDING")
        self.service.kill()
        self.start_service()
        self.wait_for_ranks(capture["capture_id"], 4)
        self.service.kill()
        self.slurm.run("scancel", job)
        self.assertEqual(self.slurm.finish(job), "CANCELLED")
        self.start_service()
        self.wait_for_capture(job, *ENDED)
        self.assertEqual(len(self.captures_of(job)), 1)

    def test_slurms_epilog_ends_a_capture_at_once_however_seldom_the_service_looks(self):
        jobs = [self.submit("-N1", "--ntasks-per-node=1", "--comment", "neurontrace=whole") for _ in range(2)]
        for job in jobs:
            self.wait_for_capture(job, "CAPTURE_STATE_RECORDING")
        self.service.stop()
        self.start_service(interval=3600)
        try:
            self.finish(jobs[0])
            self.wait_for_capture(jobs[0], *ENDED)
            self.assertEqual(self.captures_of(jobs[1])[0]["state"], "CAPTURE_STATE_RECORDING")
            self.slurm.run("scancel", jobs[1])
            self.wait_for_capture(jobs[1], *ENDED)
        finally:
            self.service.stop()
            self.start_service()
            (self.dir / f"done-{jobs[1]}").touch()

    def test_reports_invalid_request_in_job_output(self):
        for words, options, environment in (("soon", ["--comment", "neurontrace=soon"], {}),
                                            ("30x@start", [], {"NEURONTRACE_CAPTURE": "30x@start"})):
            output = self.run_short_job(*options, environment=environment)
            self.assertIn(f"neurontrace: no capture of this job: cannot parse '{words}'", output)
        self.assertEqual(self.fleet.cli_json("captures", "list", "--tag", "slurm_job=" + self.last_job)["captures"], [])

    def run_short_job(self, *options, **arguments):
        self.last_job = self.submit("-N2", "--ntasks-per-node=2", *options, worker=("short", "--cores", 2), **arguments)
        output = self.finish(self.last_job)
        self.assertEqual(self.slurm.run("sinfo", "-h", "-R").stdout, "", "no node is drained")
        return output

    def fifo_of_nobody(self):
        path = self.dir / "of-nobody"
        os.mkfifo(path)
        return path

    def test_no_state_of_neurontrace_stops_a_job(self):
        with self.subTest("as it should be"):
            self.run_short_job()
            self.assertTrue((self.dir / "prolog-n1").exists() and (self.dir / "prolog-n2").exists())
        with self.subTest("a job that wants no tap"):
            output = self.run_short_job(environment={"NEURONTRACE": "off"})
            self.assertNotIn(str(self.tap), output)
            self.assertIn("annotations: \n", output)
        with self.subTest("a job with another tool of NVTX"):
            self.assertIn("annotations: /other.so\n",
                          self.run_short_job(environment={"NVTX_INJECTION64_PATH": "/other.so"}))
        self.addCleanup(self.write_settings)
        for name, changes in (("no tap", {"TAP": "/nowhere/tap.so"}), ("Slurm elsewhere", {"SLURM_BIN": "/nowhere"}),
                              ("an agent that does not start", {"START_AGENT": "/bin/false"}),
                              ("no such command", {"START_AGENT": "/nowhere/start me"}),
                              ("nobody to wake", {"WAKE": "/nowhere"}),
                              ("a FIFO of nobody", {"WAKE": self.fifo_of_nobody()})):
            with self.subTest(name):
                self.write_settings(**changes)
                output = self.run_short_job("--comment", "neurontrace=1s@10m")
                self.assertEqual("no capture of this job" in output, name == "Slurm elsewhere", output)
                self.assertNotIn("cannot be preloaded", output)
        with self.subTest("no settings"):
            (self.scripts / "neurontrace.conf").unlink()
            self.run_short_job()
        with self.subTest("an epilog that is removed before Slurm is told"):
            epilog = self.scripts / "epilog_slurmctld.sh"
            self.addCleanup(epilog.with_suffix(".kept").rename, epilog)
            epilog.rename(epilog.with_suffix(".kept"))
            self.run_short_job()

    def test_neither_dead_agents_nor_an_aggregator_that_is_away_stop_a_job(self):
        self.fleet.agents["n1"].kill()
        self.fleet.socket_of("n2").chmod(0)
        self.fleet.aggregator.kill()
        try:
            self.run_short_job("--comment", "neurontrace=1s@start")
        finally:
            self.fleet.socket_of("n2").chmod(0o666)
            self.fleet.start_aggregator()
            self.start_agent("n1")
            self.fleet.wait_for_status(len(NODES))


if __name__ == "__main__":
    suite.main()
