#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures for Slurm jobs that ask for one, with `sbatch --comment neurontrace=30s@start` or NEURONTRACE_CAPTURE.

`run` is a service on the head node: it looks at the jobs that run, begins the capture that a job's comment asks for
once its workers are there, and stops captures whose job has ended. `ask` is called by task_prolog.sh as the job's user:
it says in the job's output what will be recorded or why nothing will be, and puts the request of the environment into
the job's comment, where Slurm vouches for whose it is. `check` reads a request and says what is wrong with it.

Nothing here is in the way of a job. A job's captures are known by their tags, so that a restart neither forgets one nor
begins it twice.
"""

import argparse
import json
import os
import re
import secrets
import select
import signal
import stat
import subprocess
import sys
import threading
import time

# Python's -I leaves out the directory of this file, which is root's as the file is. Nothing is written there.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from capture_stops import Stop, Stops  # noqa: E402, after the path that it is on

UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
DURATION = re.compile(r"([0-9]{1,6})(ms|s|m|h|d)")
SECONDS_MAX = 10**9  # as `neurontrace capture start` has it
IN_COMMENT = re.compile(r"(?:^|[\s,;])neurontrace=([^\s,;]*)")
FORMS = ("30s@start (the first 30 seconds), 30s@10m (30 seconds, 10 minutes after the job began) or whole (the whole "
         "job); the units are ms, s, m, h and d")
STARTS_MAX = 6  # how often it is tried to begin one capture, each time this much later than the time before:
STARTS_SECONDS = 5
COMMAND_SECONDS = 60
REST_SECONDS = 0.5  # from one look to the next, however often somebody rings


class BadRequest(Exception):
    """The text of a request are not understood; the message says what would be."""


class Failed(Exception):
    """A command failed or took too long; the message has its words."""


class Request:
    """What a job asks for: `duration` as it is written (None: until the job ends), `offset` in seconds after the job's
    begin."""

    def __init__(self, words, duration, offset):
        self.words = words
        self.duration = duration
        self.offset = offset

    @staticmethod
    def parse(words):
        if words == "whole":
            return Request(words, None, 0)
        duration, at, when = words.partition("@")
        if not at or seconds_of(duration) == 0 or (when != "start" and seconds_of(when) is None):
            raise BadRequest(f"cannot parse '{words}'; use {FORMS}")
        if seconds_of(duration) is None:
            raise BadRequest(f"cannot parse '{words}': '{duration}' is not a duration; use {FORMS}")
        return Request(words, duration, 0 if when == "start" else seconds_of(when))

    @staticmethod
    def of_comment(comment):
        """None where the comment asks for nothing."""
        found = set(IN_COMMENT.findall(comment))
        if len(found) > 1:
            raise BadRequest(f"the comment requests {len(found)} captures, but a job can have only one")
        return Request.parse(found.pop()) if found else None


def seconds_of(text):
    match = DURATION.fullmatch(text)
    seconds = int(match[1]) * UNITS[match[2]] if match else None
    return None if seconds is None or seconds > SECONDS_MAX else seconds


def run_command(command):
    # Of its users' settings: times are to be in the form that is read here.
    environment = {**os.environ, "SLURM_TIME_FORMAT": "standard"}
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              timeout=COMMAND_SECONDS, stdin=subprocess.DEVNULL, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(f"{command[0]}: {error}") from None


class Job:
    """A job that runs. `run` tells one run of a job that was requeued from the next."""

    def __init__(self, job_id, start, nodes, user, comment):
        self.id = job_id
        self.start = start
        self.nodes = nodes
        self.user = user
        self.comment = comment
        self.run = f"{job_id}.{int(start)}"


class Slurm:
    def __init__(self, directory):
        self._directory = directory

    def _command(self, name, *arguments):
        program = os.path.join(self._directory, name) if self._directory else name
        done = run_command([program, *arguments])
        if done.returncode != 0:
            raise Failed(f"{name}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def _records(self, form, *options):
        # Who submits a job writes its comment, line ends and all: a mark that nobody can guess divides the records, so
        # that no comment passes for the record of another's job. --all: partitions can be hidden from our user.
        mark = secrets.token_hex(16)
        text = self._command("squeue", "--all", "--noheader", *options, f"--format={mark}{form}")
        return [record.rstrip("\n") for record in text.split(mark)[1:]]

    def running(self):
        return [job_of(record) for record in
                self._records("%A\x1f%S\x1f%D\x1f%u\x1f%k", "--states=RUNNING,SUSPENDED")]

    def comment_of(self, job_id):
        """(what it is called in an update, its comment). The id of one job can be that of its whole array: squeue lists
        all elements for it, and an update with it changes all."""
        for record in self._records("%A\x1f%i\x1f%k", "--jobs", job_id):
            own_id, name, comment = record.split("\x1f", 2)
            if own_id == job_id:
                return name, "" if comment == "(null)" else comment
        raise Failed(f"squeue does not list job {job_id}")

    def set_comment(self, name, comment):
        self._command("scontrol", "update", f"JobId={name}", f"Comment={comment}")


def job_of(record):
    try:
        job_id, start, nodes, user, comment = record.split("\x1f", 4)
        began = time.mktime(time.strptime(start, "%Y-%m-%dT%H:%M:%S"))
        return Job(job_id, began, int(nodes), user, "" if comment == "(null)" else comment)
    except (ValueError, OverflowError) as error:
        # Not passed over: a job that is not in the list would count as ended.
        raise Failed(f"cannot parse the output of squeue: {error}") from None


class Neurontrace:
    """The command `neurontrace`; where the aggregator is, and who asks, is in its environment and its files."""

    def __init__(self, program):
        self._program = program

    def _json(self, *arguments):
        done = run_command([self._program, "--output", "json", *arguments])
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Failed(f"neurontrace {arguments[0]}: {done.stderr.strip() or done.returncode}") from None

    def workers_of(self, job_id):
        """The instance of each worker of the job that can be recorded."""
        fact = {"key": "slurm", "value": job_id}
        return [worker["identity"]["instance_id"] for worker in self._json("workers")["workers"]
                if worker["state"] in ("WORKER_STATE_IDLE", "WORKER_STATE_STREAMING") and fact in worker["job_facts"]]

    def captures(self, *arguments):
        """Those that this program began, by their run; without those that came to nothing."""
        found = {}
        for capture in self._json("captures", "list", "--all", *arguments)["captures"]:
            tags = {tag["key"]: tag["value"] for tag in capture["spec"]["labels"]}
            if "slurm_run" in tags and capture["state"] != "CAPTURE_STATE_NOT_BEGUN":
                found[tags["slurm_run"]] = capture
        return found

    def start(self, job, request):
        command = [self._program, "capture", "start", "--job", f"slurm={job.id}", "--name", f"slurm-{job.id}",
                   "--tag", f"slurm_job={job.id}", "--tag", f"slurm_run={job.run}", "--tag", f"slurm_user={job.user}"]
        if request.duration is not None:
            command += ["--duration", request.duration]
        done = run_command(command)
        if done.returncode not in (0, 3):
            raise Failed(f"neurontrace capture start: {(done.stderr or done.stdout).strip()}")
        return done.stdout.strip()

    def begin_stop(self, capture_id):
        return Stop([self._program, "capture", "stop", capture_id])


class Watch:
    """One pass over all jobs a turn. What it remembers only saves questions: the aggregator has the truth."""

    def __init__(self, slurm, neurontrace, patience, report, clock=time.time):
        self._slurm = slurm
        self._neurontrace = neurontrace
        self._patience = patience
        self._log = report
        self._clock = clock
        self._stops = Stops(neurontrace, report, clock)
        self._followed = None  # runs that have a capture; None: not known, as after a restart
        self._settled = set()  # runs whose request needs no more looking at
        self._reported = set()  # runs whose request is not understood
        self._seen = {}  # run: when its first worker was there, and how many the last look found
        self._starts = {}  # run: how often its capture was tried to begin, and when it is to be tried again

    def turn(self):
        jobs = self._slurm.running()
        runs = {job.run for job in jobs}
        self._stops.look()
        if self._followed is None or self._followed - runs:
            self._followed = self._stop_orphans(runs)
        self._settled &= runs
        self._reported &= runs
        for table in (self._seen, self._starts):
            for run in set(table) - runs:
                del table[run]
        for job in jobs:
            if job.run not in self._settled:
                request = self._request_of(job)
                if request is not None:
                    self._serve(job, request)

    def _stop_orphans(self, runs):
        """Has the captures of jobs that have ended stopped; returns the runs that still have one,
        so that they are checked again until none belongs to a job that has ended."""
        captures = self._neurontrace.captures("--running")
        self._stops.forget_all_but({capture["capture_id"] for capture in captures.values()})
        for run in set(captures) - runs:
            if captures[run]["state"] != "CAPTURE_STATE_STOPPING":
                self._stops.stop(captures[run]["capture_id"], run.split(".")[0])
        return set(captures)

    def _all_are_there(self, job, workers, now):
        """Each node has a worker, and no further one came since the last look; or they had long enough."""
        first, before = self._seen.get(job.run, (now, 0))
        self._seen[job.run] = (first, len(workers))
        return now >= first + self._patience or (len(set(workers)) >= job.nodes and len(workers) == before)

    def _request_of(self, job):
        try:
            return Request.of_comment(job.comment)
        except BadRequest as error:
            # The comment may be repaired while the job runs: looked at again, told once.
            if job.run not in self._reported:
                self._reported.add(job.run)
                self._log(f"job {job.id} of {job.user}: {error}")
            return None

    def _serve(self, job, request):
        now = self._clock()
        tries, again = self._starts.get(job.run, (0, job.start + request.offset))
        if now < again:
            return
        workers = self._neurontrace.workers_of(job.id)
        if not workers or not self._all_are_there(job, workers, now):
            return
        if self._neurontrace.captures("--tag", f"slurm_run={job.run}"):
            self._settled.add(job.run)
            return
        try:
            capture_id = self._neurontrace.start(job, request)
            self._log(f"job {job.id} of {job.user}: capture {capture_id} ({request.words}), {len(workers)} workers on "
                      f"{len(set(workers))} of {job.nodes} nodes")
            self._followed.add(job.run)
            self._settled.add(job.run)
        except Failed as error:
            tries += 1
            self._starts[job.run] = (tries, now + STARTS_SECONDS * tries)
            self._log(f"job {job.id} of {job.user}: {error}")
            if tries >= STARTS_MAX:
                self._log(f"job {job.id} of {job.user}: no capture, because {STARTS_MAX} attempts to start it failed")
                self._settled.add(job.run)


def report(text):
    print(f"neurontrace-slurm: {text}", file=sys.stderr, flush=True)


class Bell:
    """What ends the wait between two looks before its time: a signal to this process, or a write to a FIFO, as
    epilog_slurmctld.sh does when a job has ended. Who may ring is not looked at, and what is written is not read: it
    says that it is time to look, and no more."""

    def __init__(self, fifo=""):
        signals, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._ends = [signals]
        if fifo:
            self._ends.append(self._open(fifo))

    @staticmethod
    def _open(path):
        try:
            if not os.path.exists(path):
                os.mkfifo(path)
            # For writing too: else it would be at its end whenever a writer is.
            end = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
            if not stat.S_ISFIFO(os.fstat(end).st_mode):
                raise Failed(f"{path} is not a FIFO; remove it, or set another path with --wake")
            os.fchmod(end, 0o622)
            return end
        except OSError as error:
            raise Failed(f"cannot create the FIFO {path}: {error}") from None

    def wait(self, seconds):
        for end in select.select(self._ends, [], [], seconds)[0]:
            os.read(end, 65536)  # all that one holds


def run_service(options):
    """Until SIGTERM. Running captures continue, and the next service to start looks after them."""
    try:
        bell = Bell(options.wake)
    except Failed as error:
        report(f"{error}; captures of ended jobs stop with the next check")
        bell = Bell()
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    watch = Watch(Slurm(options.slurm_bin), Neurontrace(options.neurontrace), options.patience, report)
    trouble = ""
    report(f"checking the jobs every {options.interval} s")
    while not end.is_set():
        began = time.monotonic()
        try:
            watch.turn()
            trouble = ""
        except Failed as error:
            if str(error) != trouble:  # once, not every turn
                trouble = str(error)
                report(trouble)
        bell.wait(options.interval)
        end.wait(max(0.0, began + min(REST_SECONDS, options.interval) - time.monotonic()))
    return 0


def ask(options):
    """Lines for Slurm: `print` goes to the job's output. A request of the environment becomes part of the comment."""
    slurm = Slurm(options.slurm_bin)
    job_id = os.environ.get("SLURM_JOB_ID", "")
    words = os.environ.get("NEURONTRACE_CAPTURE", "")
    try:
        name, comment = slurm.comment_of(job_id)
        request = Request.of_comment(comment)
        if request is None and words:
            request = Request.parse(words)
            slurm.set_comment(name, f"{comment} neurontrace={words}".strip())
    except (BadRequest, Failed) as error:
        print(f"print neurontrace: no capture of this job: {' '.join(str(error).split())}")
        return 0
    if request is not None:
        print(f"print neurontrace: capture slurm-{job_id} ({request.words}) of this job starts when its workers "
              "are running")
    return 0


def check(options):
    try:
        Request.parse(options.words)
    except BadRequest as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--slurm-bin", default="", help="directory of Slurm's commands (default: search PATH)")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run the service on the head node")
    run.add_argument("--neurontrace", default="neurontrace", help="path of the neurontrace command")
    run.add_argument("--interval", type=float, default=2.0, help="seconds between two checks of the jobs")
    run.add_argument("--wake", default="", metavar="FIFO",
                     help="FIFO to create; a write to it starts the next check at once")
    run.add_argument("--patience", type=float, default=30.0,
                     help="seconds to wait, after a job's first worker appears, for workers on its other nodes before "
                          "the capture starts")
    commands.add_parser("ask", help="report the capture of this job (called by task_prolog.sh)")
    commands.add_parser("check", help="check the syntax of a request").add_argument("words")
    options = parser.parse_args()
    return {"run": run_service, "ask": ask, "check": check}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
