# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of several nodes on this machine, from Debian's packages, in a directory of its own.

It needs no configuration of the system and no systemd: munged, slurmctld and one slurmd for each node are children of
the test, with their own key, sockets, ports, state and logs, and are gone when it ends.
"""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from fleet import FleetError, Process, free_ports, wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel")
PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing_programs():
    return [name for name in PROGRAMS if shutil.which(name, path=PATH) is None]


def processes_of(directory):
    """(pid, command line) of everything that runs from below it or was told about it. To look at, not to kill: somebody
    may be reading a log."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(directory) in words or str(directory) in os.readlink(entry / "exe"):
                    found.append((int(entry.name), words))
            except OSError:
                continue
    return found


class SlurmCluster:
    """`nodes` are the names of its nodes; `settings` are further lines of slurm.conf. Jobs run as `user` where the
    test is root, else as who runs it."""

    def __init__(self, directory, nodes, settings=(), user="nobody"):
        self.dir = Path(directory)
        self.nodes = list(nodes)
        self.user = user if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.output = self.dir / "output"
        self._settings = list(settings)
        self._processes = []
        for name in ("munge", "state", "spool", "log", "output"):
            (self.dir / name).mkdir(parents=True)
        # munged wants a log directory that nobody else can look into, and a socket that everybody can reach.
        (self.dir / "munge" / "private").mkdir(mode=0o700)
        (self.dir / "munge").chmod(0o755)
        self.output.chmod(0o777)
        self.config = self.dir / "slurm.conf"
        self.environment = {"SLURM_CONF": str(self.config), "PATH": PATH}

    def start(self):
        self._start_munge()
        self._write_config()
        self._start("slurmctld", "slurmctld", "-D", "-i")
        wait_until(lambda: self.run("scontrol", "ping", check=False).returncode == 0, "slurmctld")
        for node in self.nodes:
            self._start(f"slurmd-{node}", "slurmd", "-D", "-N", node)
        wait_until(lambda: self._idle() == len(self.nodes), f"{len(self.nodes)} idle nodes", 30)

    def stop(self):
        """Ends everything, also jobs that a test left running."""
        for partition in ("all", "hidden"):
            self.run("scancel", f"--partition={partition}", check=False)
        try:
            wait_until(lambda: not self.run("squeue", "--all", "-h", check=False).stdout, "jobs to end", 15)
        except FleetError:
            print("SlurmCluster: jobs do not end and are killed", flush=True)
        for process in reversed(self._processes):
            process.popen.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(15)
            except FleetError:
                process.kill()
        for pid in self._left():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _left(self):
        """What this cluster's daemons started, by what they gave it in its environment, and by nothing else."""
        mark = f"SLURM_CONF={self.config}".encode()
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != os.getpid():
                with contextlib.suppress(OSError):
                    if mark in (entry / "environ").read_bytes().split(b"\0"):
                        yield int(entry.name)

    def pids(self):
        return [process.popen.pid for process in self._processes]

    def _start(self, name, program, *arguments):
        command = [shutil.which(program, path=PATH), *arguments]
        process = Process(name, command, self.dir / "log", env=self.environment)
        self._processes.append(process)
        return process

    def _start_munge(self):
        private = self.dir / "munge" / "private"
        key = private / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.munge_socket = self.dir / "munge" / "socket"
        options = [f"--socket={self.munge_socket}", f"--key-file={key}", f"--log-file={private / 'log'}",
                   f"--pid-file={private / 'pid'}", f"--seed-file={private / 'seed'}", "--num-threads=2"]
        self._start("munged", "munged", "--foreground", *options)
        wait_until(self.munge_socket.exists, "munged's socket")

    def _write_config(self):
        me = pwd.getpwuid(os.geteuid()).pw_name
        host = socket.gethostname().split(".")[0]
        controller, *ports = free_ports(1 + len(self.nodes))
        lines = [
            "ClusterName=neurontrace", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={controller}",
            "AuthType=auth/munge", f"AuthInfo=socket={self.munge_socket}", "CryptoType=crypto/munge",
            f"SlurmUser={me}", f"SlurmdUser={me}", f"StateSaveLocation={self.dir}/state",
            f"SlurmdSpoolDir={self.dir}/spool/%n", f"SlurmctldPidFile={self.dir}/slurmctld.pid",
            f"SlurmdPidFile={self.dir}/slurmd-%n.pid", "ProctrackType=proctrack/linuxproc", "TaskPlugin=task/none",
            "SwitchType=switch/none", "MpiDefault=none", "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_CPU", "SlurmdParameters=config_overrides", "ReturnToService=2", "KillWait=2",
            # Jobs are looked at as soon as they come. As in ParallelCluster, a prolog that fails holds no job.
            "SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=1000,nohold_on_prolog_fail",
            *self._settings]
        for node, port in zip(self.nodes, ports):
            lines.append(f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=8 State=UNKNOWN")
        lines.append(f"PartitionName=all Nodes={','.join(self.nodes)} Default=YES State=UP MaxTime=INFINITE")
        lines.append(f"PartitionName=hidden Nodes={','.join(self.nodes)} Hidden=YES State=UP MaxTime=INFINITE")
        self.config.write_text("\n".join(lines) + "\n")

    # -- commands ------------------------------------------------------------------------------------------------

    def run(self, *command, check=True, environment=None):
        # Slurm's commands take options from the environment, and this must not be that of another job.
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "NEURONTRACE"))}
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False, cwd=self.output,
                              env={**kept, **self.environment, **(environment or {})})
        if check and done.returncode != 0:
            raise FleetError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def _idle(self):
        return self.run("sinfo", "-h", "-N", "-p", "all", "-o", "%T", check=False).stdout.split().count("idle")

    def submit(self, script, *options, arguments=(), environment=None):
        """Submits a batch script as the cluster's user and returns the job's id."""
        as_user = ["--uid", self.user, "--gid", str(pwd.getpwnam(self.user).pw_gid)] if os.geteuid() == 0 else []
        path = self.output / f"script-{time.monotonic_ns()}"
        path.write_text(script)
        path.chmod(0o755)
        done = self.run("sbatch", "--parsable", *as_user, "--chdir", self.output, "--output",
                        f"{self.output}/job-%j.out", *options, path, *arguments, environment=environment)
        return done.stdout.strip()

    def output_of(self, job):
        path = self.output / f"job-{job}.out"
        return path.read_text() if path.exists() else ""

    def state(self, job):
        done = self.run("scontrol", "--oneliner", "show", "job", job)
        return next(word.split("=", 1)[1] for word in done.stdout.split() if word.startswith("JobState="))

    def wait_for_state(self, job, *states, seconds=30.0):
        return wait_until(lambda: self.state(job) in states, f"job {job} to be one of {states}", seconds)

    def finish(self, job, seconds=30.0):
        """Waits for the job's end; returns its state."""
        ended = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        self.wait_for_state(job, *ended, seconds=seconds)
        return self.state(job)
