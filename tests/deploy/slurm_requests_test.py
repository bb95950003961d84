# SPDX-License-Identifier: Apache-2.0
"""The requests of jobs and the actions of the head node's service, with a Slurm and an aggregator whose answers the
test sets, and a clock that is moved by hand."""

import importlib.util
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest import mock

import suite

SCRIPT = Path(__file__).resolve().parents[2] / "deploy" / "parallelcluster" / "slurm" / "neurontrace_slurm.py"
spec = importlib.util.spec_from_file_location("neurontrace_slurm", SCRIPT)
service = importlib.util.module_from_spec(spec)
sys.modules["neurontrace_slurm"] = service
spec.loader.exec_module(service)
stops = sys.modules["capture_stops"]

START = 1_000_000.0


class FakeSlurm:
    def __init__(self):
        self.jobs = {}
        self.away = False

    def add(self, job_id, comment, nodes=2, start=START):
        self.jobs[job_id] = service.Job(job_id, start, nodes, "alice", comment)

    def running(self):
        if self.away:
            raise service.Failed("squeue: slurmctld is away")
        return list(self.jobs.values())


class FakeStop:
    """One that a test ends, or that has ended at once."""

    def __init__(self, printed=None):
        self.printed = printed

    def outcome(self):
        return self.printed


class FakeNeurontrace:
    """As the aggregator: what was begun stays, whoever asks."""

    def __init__(self):
        self.workers = {}
        self.begun = {}  # run: capture
        self.starts = []
        self.stopped = []
        self.stops = []  # (capture, its stop), in the order of their begin
        self.stop_output = ""  # None: stops continue until a test ends them
        self.refuses = False

    def workers_of(self, job_id):
        return self.workers.get(job_id, [])

    def captures(self, *arguments):
        found = dict(self.begun)
        if "--running" in arguments:
            found = {run: capture for run, capture in found.items() if capture["capture_id"] not in self.stopped}
        if "--tag" in arguments:
            tagged = arguments[arguments.index("--tag") + 1].removeprefix("slurm_run=")
            found = {run: capture for run, capture in found.items() if run == tagged}
        return found

    def start(self, job, request):
        self.starts.append((job.id, request.words))
        if self.refuses:
            raise service.Failed("the quota is used up")
        self.begun[job.run] = {"capture_id": f"capture-of-{job.run}", "state": "CAPTURE_STATE_RECORDING"}
        return f"capture-of-{job.run}"

    def begin_stop(self, capture_id):
        stop = FakeStop(self.stop_output)
        self.stops.append((capture_id, stop))
        if self.stop_output == "":
            self.stopped.append(capture_id)
        return stop


class Requests(unittest.TestCase):
    def test_accepted_requests(self):
        for words, duration, offset in (("30s@start", "30s", 0), ("500ms@start", "500ms", 0), ("2m@1h", "2m", 3600),
                                        ("1s@0s", "1s", 0), ("whole", None, 0)):
            request = service.Request.parse(words)
            self.assertEqual((request.duration, request.offset), (duration, offset), words)

    def test_unknown_request_lists_valid_ones(self):
        for words in ("", "30s", "@start", "30s@", "30x@start", "0s@start", "-1s@start", "30s@begin", "30s@-1s", "Whole",
                      "30s@start@start", "30 s@start", "1e3s@start", "9999999s@start", "999999d@start", "30s@start;rm"):
            with self.assertRaises(service.BadRequest, msg=words) as caught:
                service.Request.parse(words)
            self.assertIn("30s@start (the first 30 seconds)", str(caught.exception))

    def test_comments_of_people_are_left_alone(self):
        for comment in ("", "try 7", "myneurontrace=30s@start", "neurontrace"):
            self.assertIsNone(service.Request.of_comment(comment), comment)
        for comment in ("neurontrace=1s@start", "try 7, neurontrace=1s@start; urgent",
                        "neurontrace=1s@start neurontrace=1s@start"):
            self.assertEqual(service.Request.of_comment(comment).words, "1s@start", comment)
        with self.assertRaises(service.BadRequest):
            service.Request.of_comment("neurontrace=1s@start neurontrace=2s@start")

    def test_no_comment_passes_for_the_record_of_another_job(self):
        slurm = service.Slurm("")
        forged = "x\n4711\x1f2026-01-01T00:00:00\x1f1\x1froot\x1fneurontrace=whole"

        def squeue(_, *arguments):
            mark = arguments[-1].removeprefix("--format=").split("%")[0]
            return f"{mark}42\x1f2026-01-01T00:00:00\x1f2\x1fmallory\x1f{forged}\n"
        with mock.patch.object(service.Slurm, "_command", squeue):
            jobs = slurm.running()
        self.assertEqual([(job.id, job.user, job.comment) for job in jobs], [("42", "mallory", forged)])

    def test_distinguishes_array_element_from_array(self):
        def squeue(_, *arguments):
            self.assertIn("42", arguments)
            mark = arguments[-1].removeprefix("--format=").split("%")[0]
            return "".join(f"{mark}{record}\n" for record in ("40\x1f42_1\x1fone", "42\x1f42_3\x1fthree",
                                                              "41\x1f42_2\x1f(null)"))
        with mock.patch.object(service.Slurm, "_command", squeue):
            self.assertEqual(service.Slurm("").comment_of("42"), ("42_3", "three"))
        with mock.patch.object(service.Slurm, "_command", lambda *_: ""), self.assertRaises(service.Failed):
            service.Slurm("").comment_of("42")

    def test_a_list_that_is_not_understood_is_no_list(self):
        with self.assertRaises(service.Failed):
            service.job_of("42\x1fN/A\x1f2\x1falice\x1f")


class Asking(unittest.TestCase):
    """What task_prolog.sh passes on to Slurm, which takes each line for an order."""

    def ask(self, comment, variable=None, fails=False):
        printed, kept = io.StringIO(), []
        environment = {"SLURM_JOB_ID": "42", **({"NEURONTRACE_CAPTURE": variable} if variable is not None else {})}

        def comment_of(_, job_id):
            self.assertEqual(job_id, "42")
            if fails:
                raise service.Failed("squeue: away\nexport LD_PRELOAD=evil.so")
            return "40_2", comment
        with mock.patch.dict(os.environ, environment, clear=True), redirect_stdout(printed), \
                mock.patch.object(service.Slurm, "comment_of", comment_of), \
                mock.patch.object(service.Slurm, "set_comment", lambda _, name, text: kept.append((name, text))):
            self.assertEqual(service.ask(mock.Mock(slurm_bin="")), 0)
        return printed.getvalue(), kept

    def test_job_without_request_gets_no_message(self):
        self.assertEqual(self.ask("try 7"), ("", []))

    def test_the_variable_becomes_part_of_the_comment(self):
        printed, kept = self.ask("try 7", "30s@start")
        self.assertEqual(kept, [("40_2", "try 7 neurontrace=30s@start")])
        self.assertIn("print neurontrace: capture slurm-42 (30s@start)", printed)

    def test_the_comment_is_before_the_variable(self):
        printed, kept = self.ask("neurontrace=whole", "30s@start")
        self.assertEqual(kept, [])
        self.assertIn("(whole)", printed)

    def test_every_line_is_one_for_the_jobs_output(self):
        for arguments in (("", "30x@start"), ("", "30s@start\nexport LD_PRELOAD=evil.so"), ("", "whole", True)):
            printed, kept = self.ask(*arguments)
            self.assertEqual(kept, [])
            self.assertEqual(len(printed.splitlines()), 1)
            self.assertTrue(printed.startswith("print neurontrace: no capture of this job: "), printed)


class TaskProlog(unittest.TestCase):
    """What the prolog of a task sets for PyTorch's profiler."""

    def exports(self, **settings):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory)
            shutil.copy(SCRIPT.parent / "task_prolog.sh", folder)
            (folder / "tap.so").touch()
            (folder / "n1").mkdir()
            given = {"TAP": folder / "tap.so", **{name: value.replace("DIR", directory) for name, value in settings.items()}}
            (folder / "neurontrace.conf").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
            done = subprocess.run(["bash", folder / "task_prolog.sh"], capture_output=True, text=True, check=True,
                                  env={"PATH": os.environ["PATH"], "SLURMD_NODENAME": "n1"})
            lines = [line.removeprefix("export ").split("=", 1) for line in done.stdout.splitlines()]
            return {name: value.replace(directory, "DIR") for name, value in lines if name.startswith("KINETO")}

    def test_a_directory_that_the_user_can_use(self):
        self.assertEqual(self.exports(KINETO_DIR="DIR/%n", FRAMEWORK_DIR="/traces/%n"), {
            "KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": "DIR/n1", "KINETO_ONDEMAND_TRACE_DIR": "/traces/n1"})

    def test_without_one_the_profiler_does_not_listen(self):
        for settings in ({}, {"KINETO_DIR": "", "FRAMEWORK_DIR": ""}, {"KINETO_DIR": "DIR/none", "FRAMEWORK_DIR": "/traces"},
                         {"KINETO_DIR": "DIR/n1"}):
            self.assertEqual(self.exports(**settings), {})


class Watching(unittest.TestCase):
    def setUp(self):
        self.slurm, self.neurontrace, self.printed, self.now = FakeSlurm(), FakeNeurontrace(), [], START
        self.watch = self.new_watch()

    def new_watch(self):
        return service.Watch(self.slurm, self.neurontrace, 30.0, self.printed.append, clock=lambda: self.now)

    def turn(self, seconds=2.0):
        self.now += seconds
        self.watch.turn()

    def test_one_capture_once_every_node_has_its_workers(self):
        self.slurm.add("7", "neurontrace=30s@start")
        self.slurm.add("8", "nothing")
        for workers in ([], ["a"], ["a", "b"], ["a", "b", "b"]):
            self.neurontrace.workers["7"] = workers
            self.turn()
            self.assertEqual(self.neurontrace.starts, [])
        for _ in range(3):
            self.turn()
        self.assertEqual(self.neurontrace.starts, [("7", "30s@start")])

    def test_nodes_that_never_come_are_not_waited_for(self):
        self.slurm.add("7", "neurontrace=30s@start")
        self.neurontrace.workers["7"] = ["a"]
        self.turn()
        self.turn(29.0)
        self.assertEqual(self.neurontrace.starts, [])
        self.turn(1.0)
        self.assertEqual(len(self.neurontrace.starts), 1)

    def test_an_offset_counts_from_the_jobs_begin(self):
        self.slurm.add("7", "neurontrace=30s@10m")
        self.neurontrace.workers["7"] = ["a", "b"]
        self.turn(598.0)
        self.turn(1.0)
        self.assertEqual(self.neurontrace.starts, [])
        self.turn(1.0)
        self.turn(1.0)
        self.assertEqual(len(self.neurontrace.starts), 1)

    def recording(self, comment="neurontrace=whole"):
        self.slurm.add("7", comment)
        self.neurontrace.workers["7"] = ["a", "b"]
        self.turn()
        self.turn()
        self.assertEqual(len(self.neurontrace.starts), 1)

    def test_a_capture_ends_with_its_job(self):
        self.recording()
        self.turn()
        self.assertEqual(self.neurontrace.stopped, [])
        del self.slurm.jobs["7"]
        self.turn()
        self.turn()
        self.assertEqual(self.neurontrace.stopped, ["capture-of-7.1000000"])

    def two_jobs_one_ended(self):
        self.recording()
        del self.slurm.jobs["7"]
        self.slurm.add("8", "neurontrace=whole", start=self.now)
        self.neurontrace.workers["8"] = ["a", "b"]

    def test_a_stop_that_is_slow_holds_up_no_other_job_and_is_the_only_one(self):
        self.neurontrace.stop_output = None
        self.two_jobs_one_ended()
        for _ in range(10):
            self.turn()
        self.assertEqual([job for job, _ in self.neurontrace.starts], ["7", "8"])
        self.assertEqual([capture for capture, _ in self.neurontrace.stops], ["capture-of-7.1000000"])
        self.neurontrace.stops[0][1].printed = ""
        self.neurontrace.stopped.append("capture-of-7.1000000")
        for _ in range(10):
            self.turn()
        self.assertEqual(len(self.neurontrace.stops), 1)

    def test_a_stop_that_fails_holds_up_no_other_job_and_is_tried_again_later_each_time(self):
        self.neurontrace.stop_output = "the aggregator is away"
        self.two_jobs_one_ended()
        times = []
        for _ in range(200):
            before = len(self.neurontrace.stops)
            self.turn(1.0)
            if len(self.neurontrace.stops) > before:
                times.append(self.now)
        self.assertEqual([job for job, _ in self.neurontrace.starts], ["7", "8"])
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertEqual(gaps[:3], [6.0, 11.0, 16.0])  # it is seen to have failed a turn later
        self.assertEqual(max(gaps), 31.0)
        self.assertIn("capture capture-of-7.1000000: the aggregator is away", self.printed)
        self.neurontrace.stop_output = ""
        for _ in range(40):
            self.turn(1.0)
        self.assertEqual(self.neurontrace.stopped, ["capture-of-7.1000000"])

    def test_leaves_stopping_captures_alone(self):
        self.recording()
        self.neurontrace.begun["7.1000000"]["state"] = "CAPTURE_STATE_STOPPING"
        del self.slurm.jobs["7"]
        self.watch = self.new_watch()
        for _ in range(3):
            self.turn()
        self.assertEqual(self.neurontrace.stops, [])

    def test_many_stops_are_not_begun_at_once(self):
        self.neurontrace.stop_output = None
        for i in range(3 * stops.STOPS_MAX):
            self.neurontrace.begun[f"{i}.1"] = {"capture_id": f"c{i}", "state": "CAPTURE_STATE_RECORDING"}
        self.turn()
        self.assertEqual(len(self.neurontrace.stops), stops.STOPS_MAX)
        for capture, stop in self.neurontrace.stops:
            self.neurontrace.stopped.append(capture)
            stop.printed = ""
        self.turn()
        self.assertEqual(len(self.neurontrace.stops), 2 * stops.STOPS_MAX)

    def test_unavailable_slurm_ends_nothing(self):
        self.recording()
        self.slurm.away = True
        with self.assertRaises(service.Failed):
            self.turn()
        self.assertEqual(self.neurontrace.stopped, [])

    def test_a_restart_begins_nothing_twice_and_forgets_nothing(self):
        self.recording()
        self.watch = self.new_watch()
        for _ in range(3):
            self.turn()
        self.assertEqual(len(self.neurontrace.starts), 1)
        del self.slurm.jobs["7"]
        self.watch = self.new_watch()
        self.turn()
        self.assertEqual(len(self.neurontrace.stopped), 1)

    def test_a_requeued_job_is_another_run(self):
        self.recording()
        self.slurm.add("7", "neurontrace=whole", start=START + 100)
        self.now = START + 100
        for _ in range(3):
            self.turn()
        self.assertEqual(self.neurontrace.stopped, ["capture-of-7.1000000"])
        self.assertEqual(len(self.neurontrace.starts), 2)

    def test_retries_refusals_with_bounded_backoff(self):
        self.neurontrace.refuses = True
        self.slurm.add("7", "neurontrace=whole")
        self.neurontrace.workers["7"] = ["a", "b"]
        times = []
        for _ in range(300):
            before = len(self.neurontrace.starts)
            self.turn(1.0)
            if len(self.neurontrace.starts) > before:
                times.append(self.now - START)
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertEqual(gaps, [5.0, 10.0, 15.0, 20.0, 25.0])
        self.assertIn("no capture, because 6 attempts", self.printed[-1])

    def test_reports_invalid_request_once(self):
        self.slurm.add("7", "neurontrace=soon")
        for _ in range(3):
            self.turn()
        self.assertEqual(len(self.printed), 1)
        self.assertIn("cannot parse 'soon'", self.printed[0])


class Ringing(unittest.TestCase):
    """What Slurm's epilog does to the service, and that nobody waits for it."""

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="nt-bell-")
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)
        shutil.copy(SCRIPT.parent / "epilog_slurmctld.sh", self.dir)
        self.fifo = self.dir / "job-ended"
        (self.dir / "neurontrace.conf").write_text(f"WAKE={self.fifo}\n")
        self.addCleanup(signal.set_wakeup_fd, signal.set_wakeup_fd(-1))

    def epilog(self):
        done = subprocess.run(["bash", self.dir / "epilog_slurmctld.sh"], capture_output=True, text=True, timeout=30,
                              check=False, env={"SLURM_JOB_ID": "42"})
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def rings(self, bell):
        """Whether a wait of a minute ends at once."""
        began = time.monotonic()
        bell.wait(60)
        return time.monotonic() - began < 30

    def test_an_end_of_a_job_ends_the_wait(self):
        bell = service.Bell(str(self.fifo))
        self.assertEqual(oct(self.fifo.stat().st_mode & 0o777), "0o622")
        for _ in range(2):
            self.epilog()
            self.epilog()
            self.assertTrue(self.rings(bell))
            began = time.monotonic()
            bell.wait(0.05)
            self.assertGreaterEqual(time.monotonic() - began, 0.05, "two ends that come together are one")
        # The FIFO of a service that was killed.
        service.Bell(str(self.fifo))

    def test_a_signal_ends_the_wait(self):
        bell = service.Bell()
        before = signal.signal(signal.SIGTERM, lambda *_: None)
        self.addCleanup(signal.signal, signal.SIGTERM, before)
        os.kill(os.getpid(), signal.SIGTERM)
        self.assertTrue(self.rings(bell))

    def test_tolerates_missing_socket_reader_and_space(self):
        self.epilog()
        self.assertFalse(self.fifo.exists())
        self.fifo.write_text("a file")
        self.epilog()
        self.assertEqual(self.fifo.read_text(), "a file")
        with self.assertRaisesRegex(service.Failed, "is not a FIFO"):
            service.Bell(str(self.fifo))
        self.fifo.unlink()
        os.mkfifo(self.fifo)
        self.epilog()
        end = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(os.close, end)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(end, b"\n" * 4096)
        self.epilog()
        with self.assertRaisesRegex(service.Failed, "cannot create the FIFO"):
            service.Bell("/nowhere/job-ended")


class Stopping(unittest.TestCase):
    """The command itself. Nobody waits for its end."""

    def test_reports_its_end(self):
        for script, printed in (("exit 0", ""), ("exit 3", ""), ("echo no such capture >&2; exit 1",
                             "neurontrace capture stop: no such capture"), ("exit 1", "neurontrace capture stop: 1")):
            stop, deadline = stops.Stop(["bash", "-c", script]), time.monotonic() + 20
            outcome = stop.outcome()
            while outcome is None and time.monotonic() < deadline:
                time.sleep(0.01)  # tidy: poll
                outcome = stop.outcome()
            self.assertEqual(outcome, printed)
        with self.assertRaises(OSError):
            stops.Stop(["/nowhere/neurontrace"])

    def test_one_without_an_end_is_ended(self):
        with mock.patch.object(stops, "STOP_SECONDS", 0.0):
            self.assertIn("not finished after", stops.Stop(["sleep", "600"]).outcome())
        stop = stops.Stop(["sleep", "600"])
        self.assertIsNone(stop.outcome())
        stop._deadline = 0
        self.assertIn("not finished after", stop.outcome())


if __name__ == "__main__":
    suite.main()
