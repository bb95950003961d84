# SPDX-License-Identifier: Apache-2.0
"""`neurontrace record -- COMMAND`: the command's own exit code, output and signals, a trace at its end, and nothing that
stays behind."""

import fcntl
import json
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import unittest
from pathlib import Path

import suite
from certificates import Authority
from fleet import wait_until
from pftrace_reader import Pftrace

WORK = ("--executions-per-second", "20", "--print-ready")
CLIENT = Path("bin") / "neurontrace"


def processes_naming(text):
    """The processes of this machine whose command line or environment holds `text`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            seen = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
            state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if text.encode() in seen and state not in "ZX" and int(process.name) != os.getpid():
            found.append(int(process.name))
    return found


class RecordTest(unittest.TestCase):
    def setUp(self):
        self.build = Path(os.environ["NT_BUILD_DIR"]).resolve()
        holder = tempfile.TemporaryDirectory(prefix="nt-record-")
        self.addCleanup(holder.cleanup)
        self.dir = Path(holder.name)
        self.scratch = self.dir / "scratch"
        self.scratch.mkdir()
        self.trace = self.dir / "trace.pftrace"
        self.truth = self.dir / "truth.tsv"
        self.sim = str(self.build / "tests" / "fake_nrt" / "sim_worker")

    def command(self, *words, options=(), out=True):
        """`neurontrace record … -- WORDS`."""
        written = ("-o", self.trace) if out else ()
        return [str(part) for part in (self.build / CLIENT, "record", "--directory", self.scratch, *written, *options,
                                       "--", *words)]

    def run_record(self, *words, options=(), out=True, env=None, **arguments):
        return subprocess.run(self.command(*words, options=options, out=out), capture_output=True, text=True,
                              env={**os.environ, "NEURONTRACE_CONFIG": "", **(env or {})}, timeout=120, check=False,
                              cwd=self.dir, **{"stdin": subprocess.DEVNULL, **arguments})

    def start_record(self, *words, **arguments):
        process = subprocess.Popen(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, **arguments)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def recorded(self, events=300):
        """Waits until the worker, told by --ground-truth, has put so many events into the runtime's rings."""
        wait_until(lambda: self.truth.exists() and len(self.truth.read_bytes().splitlines()) > events, "events")

    def nothing_is_left(self):
        wait_until(lambda: not processes_naming(str(self.scratch)), "every process to be gone")
        self.assertEqual(list(self.scratch.iterdir()), [])

    def check_trace(self, workers=1):
        trace = Pftrace(self.trace)
        events = trace.events()
        self.assertGreater(len(events), 100)
        pids = {entry.track.process for entry in events}
        self.assertEqual(len(pids), workers, pids)

    # -- what the command sees and says --------------------------------------------------------------------------

    def test_a_worker_that_ends_well_leaves_a_trace(self):
        done = self.run_record(self.sim, "--cores", "2", "--duration", "1.5", *WORK)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("ready pid="), "stdout is the command's alone")
        json.loads(lines[-1])
        self.assertIn("ended with exit code 0", done.stderr)
        self.assertIn(f"wrote {self.trace}", done.stderr)
        self.check_trace()
        self.nothing_is_left()

    def test_the_exit_code_is_the_commands(self):
        done = self.run_record("sh", "-c", f"{self.sim} --duration 1 {' '.join(WORK)}; exit 7")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.check_trace()
        done = self.run_record("sh", "-c", "kill -KILL $$")
        self.assertEqual(done.returncode, 128 + signal.SIGKILL, done.stderr)
        self.nothing_is_left()

    def test_a_command_that_cannot_be_run_has_codes_of_its_own(self):
        done = self.run_record("no-such-command-of-anyone")
        self.assertEqual(done.returncode, 127)
        self.assertIn("no-such-command-of-anyone: command not found", done.stderr)
        plain = self.dir / "plain"
        plain.write_text("no program")
        done = self.run_record(plain)
        self.assertEqual(done.returncode, 126)
        self.assertIn(str(plain), done.stderr)
        for wrong in ((), ("--no-such-option",)):
            self.assertEqual(self.run_record(*wrong).returncode, 2 if not wrong else 127)
        done = subprocess.run([self.build / CLIENT, "record", "true"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("record -- true", done.stderr)
        self.nothing_is_left()

    def test_two_workers_of_one_command(self):
        work = f"{self.sim} --duration 1.5 --world-size 2 {' '.join(WORK)}"
        done = self.run_record("sh", "-c", f"{work} --rank-start 0 & {work} --rank-start 1 & wait")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_trace(workers=2)

    def test_a_command_without_neuron_is_left_alone(self):
        done = self.run_record("sh", "-c", "cat; echo err >&2; exit 3", input="from stdin\n", stdin=None)
        self.assertEqual((done.returncode, done.stdout), (3, "from stdin\n"))
        self.assertIn("err\n", done.stderr)
        self.assertIn("no worker appeared", done.stderr)
        self.assertIn("libnrt.so.1", done.stderr)
        self.assertFalse(self.trace.exists())
        self.nothing_is_left()

    def test_names_unsupported_event_types(self):
        done = self.run_record(self.sim, "--duration", "1", *WORK, options=("--event-type", "nc_exec_runing"))
        self.assertEqual(done.returncode, 0, "the exit code is the command's")
        self.assertIn("its workers recorded nothing", done.stderr)
        self.assertIn("unknown event type 'nc_exec_runing' (did you mean 'nc_exec_running'?)", done.stderr)
        self.assertFalse(self.trace.exists())

    def test_words_and_environment_come_through(self):
        words = ["a b", "", "[1,2]", "--", "--output", "-o", "x", "-q", "status"]
        show = "import os, sys; print(sys.argv[1:], os.environ['LD_PRELOAD'], os.environ['NVTX_INJECTION64_PATH'])"
        other = str(self.build / "lib" / ".." / "lib" / "libneurontrace_tap.so")
        done = self.run_record(sys.executable, "-c", show, *words, env={"LD_PRELOAD": other})
        self.assertEqual(done.returncode, 0, done.stderr)
        tap = (self.build / "lib" / "libneurontrace_tap.so").resolve()
        self.assertEqual(done.stdout, f"{words} {tap}:{other} {tap.with_name('libneurontrace_annotate.so')}\n")

    def test_quiet_and_json(self):
        done = self.run_record(self.sim, "--duration", "1", "--executions-per-second", "20", options=("--quiet",))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = self.run_record(self.sim, "--duration", "1", "--executions-per-second", "20",
                               options=("--output", "json"))
        reported = json.loads(done.stderr)
        self.assertEqual((reported["exit_code"], reported["problem"], reported["reasons"], reported["store"]), (0, "", [], ""))
        self.assertEqual(reported["capture"]["state"], "CAPTURE_STATE_COMPLETE")
        self.assertGreater(int(reported["export"]["total"]["spans"]), 100)

    def reported_at_end(self, *words, options=(), **arguments):
        """The object that is the last line of what is written, whatever the command wrote before it."""
        done = self.run_record(*words, options=("--output", "json", *options), **arguments)
        reported = json.loads(done.stderr.splitlines()[-1])
        self.assertEqual(reported["exit_code"], done.returncode)
        return reported, done.stderr

    def test_json_is_always_the_last_line(self):
        reported, written = self.reported_at_end("sh", "-c", "printf 'a bar that ends nowhere' >&2; exit 3")
        self.assertEqual(len(written.splitlines()), 2, "no prose beside it")
        self.assertIsNone(reported["export"])
        self.assertIn("no worker appeared", reported["problem"])
        self.assertIn("libnrt.so.1", reported["reasons"][0])
        reported, _ = self.reported_at_end("no-such-command-of-anyone")
        self.assertIsNone(reported["capture"])
        self.assertIn("command not found", reported["problem"])
        reported, _ = self.reported_at_end("true", options=("--keep-store",))
        self.assertTrue(Path(reported["store"]).is_dir())
        shutil.rmtree(Path(reported["store"]).parent)

    def certificates(self):
        """What who works with a secured aggregator has in the environment."""
        authority = Authority(self.dir / "authority")
        authority.issue("me", "URI:neurontrace:operator")
        return {"NEURONTRACE_TLS_CA": str(authority.ca), "NEURONTRACE_TLS_CERT": str(authority.dir / "me.pem"),
                "NEURONTRACE_TLS_KEY": str(authority.dir / "me.key")}

    def test_ignores_site_daemon_settings(self):
        rules = self.dir / "rules"
        rules.mkdir()  # no file that could be read
        done = self.run_record(self.sim, "--duration", "1", *WORK,
                               env={"NEURONTRACE_TRIGGERS": str(rules), "NEURONTRACE_CLOCK_PROBES": "of another version",
                                    "NEURONTRACE_SPOOL_ADOPT": "of another version"} | self.certificates())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_trace()

    def test_the_command_begins_when_the_capture_has(self):
        done = self.run_record("sh", "-c", f"date +%s%N; {self.sim} --duration 1 {' '.join(WORK)}",
                               options=("--output", "json"))
        began_ns = int(done.stdout.splitlines()[0])
        capture = json.loads(done.stderr)["capture"]
        self.assertGreater(began_ns, int(capture["begin"]["reference_ns"]))

    def test_the_file_has_a_name_of_its_own_time(self):
        done = self.run_record(self.sim, "--duration", "1", *WORK, out=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        name, = (path.name for path in self.dir.glob("*.pftrace"))
        self.assertRegex(name, r"^neurontrace-\d{8}-\d{6}Z\.pftrace$")

    # -- signals -------------------------------------------------------------------------------------------------

    def test_the_terminals_interrupt_is_the_commands(self):
        master, slave = pty.openpty()
        log = self.dir / "out"
        with open(log, "w", encoding="utf-8") as out:
            process = subprocess.Popen(
                self.command(self.sim, "--ground-truth", self.truth, *WORK), stdin=slave, stdout=out, stderr=out,
                preexec_fn=lambda: take_terminal(slave))
        os.close(slave)
        self.recorded()
        os.write(master, b"\x03")
        self.assertEqual(process.wait(60), 0, log.read_text())  # the simulated worker ends well on SIGINT
        os.close(master)
        self.check_trace()
        self.nothing_is_left()

    def test_sigterm_is_passed_on(self):
        process = self.start_record(self.sim, "--ground-truth", self.truth, *WORK)
        self.recorded()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 0)
        self.check_trace()
        process = self.start_record("sh", "-c", "echo here; exec sleep 100")
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(60), 128 + signal.SIGTERM)
        self.nothing_is_left()

    def test_a_killed_record_leaves_no_process(self):
        process = self.start_record(self.sim, *WORK)
        process.stdout.readline()
        self.assertGreaterEqual(len(processes_naming(str(self.scratch))), 4)  # itself, two daemons, the worker
        process.kill()
        process.wait(20)
        wait_until(lambda: not processes_naming(str(self.scratch)), "every process to be gone")
        self.run_record("true")  # removes what the killed one left on the disk
        self.nothing_is_left()

    # -- when things are not as they should be -------------------------------------------------------------------

    def test_reports_unwritable_trace_before_running_command(self):
        mark = self.dir / "mark"
        self.trace = Path("/proc/no/such/folder/trace.pftrace")
        done = self.run_record("touch", mark)
        self.assertEqual(done.returncode, 125)
        self.assertIn(str(self.trace), done.stderr)
        self.assertFalse(mark.exists())
        done = self.run_record("touch", mark, options=("-o", "-"), out=False)
        self.assertEqual(done.returncode, 2)
        for directory in (self.dir, f"{self.dir}/there-is-none/"):
            done = self.run_record("touch", mark, options=("-o", directory), out=False)
            self.assertEqual(done.returncode, 125)
            self.assertIn("it is a directory", done.stderr)
        self.assertFalse(mark.exists())
        self.nothing_is_left()

    def test_a_place_that_vanishes_costs_the_file_and_not_the_events(self):
        place = self.dir / "place"
        place.mkdir()
        self.trace = place / "trace.pftrace"
        done = self.run_record("sh", "-c", f"{self.sim} --duration 1; rmdir {place}; exit 5")
        self.assertEqual(done.returncode, 5, done.stderr)
        store = Path(re.search(r"The recorded data is in (\S+)/store:", done.stderr).group(1))
        self.assertTrue((store / "store" / "CURRENT").exists(), "it can be exported from there")
        shutil.rmtree(store)

    def test_missing_programs_are_named(self):
        done = self.run_record("true", options=("--programs", self.dir))
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"there is no {self.dir}/neurontrace-agent", done.stderr)
        done = self.run_record("true", options=("--tap", self.dir / "tap.so"))
        self.assertEqual(done.returncode, 125)
        self.assertIn("NEURONTRACE_TAP", done.stderr)

    def test_a_lost_preload_is_found_out(self):
        done = self.run_record("env", "-u", "LD_PRELOAD", self.sim, "--duration", "1.5", *WORK)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("had libnrt.so.1 but no tap", done.stderr)


def take_terminal(slave):
    """Makes the terminal the controlling one of a new session, as a login does."""
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)


if __name__ == "__main__":
    suite.main()
