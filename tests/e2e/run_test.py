# SPDX-License-Identifier: Apache-2.0
"""`neurontrace run`: the command's processes are workers of the running agent, and the command is otherwise as it would be
without it."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

import suite
from fleet import Process, wait_until
from fleet_case import FleetCase

BUILD = pathlib.Path(os.environ["NT_BUILD_DIR"])
TAP = (BUILD / "lib" / "libneurontrace_tap.so").resolve()
OURS = ("LD_PRELOAD", "NVTX_INJECTION64_PATH", "NEURONTRACE_AGENT_SOCKET", "KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR",
        "NEURONTRACE_XLA_PORT")


class Run(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())).resolve()

    def run_command(self, *arguments, code=0, **variables):
        clean = {name: value for name, value in os.environ.items() if name not in OURS}
        done = subprocess.run([BUILD / "bin" / "neurontrace", *map(str, arguments)], capture_output=True, text=True,
                              check=False, env={**clean, "NEURONTRACE_CONFIG": "", **variables}, timeout=60)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def variables(self, *arguments, **variables):
        """Those that the command gets and this process does not have."""
        lines = self.run_command("run", *arguments, "--", "env", **variables).stdout.splitlines()
        return {name: value for name, value in (line.split("=", 1) for line in lines if "=" in line) if name in OURS}

    def test_variables(self):
        self.assertEqual(self.variables(), {"LD_PRELOAD": str(TAP),
                                            "NVTX_INJECTION64_PATH": str(TAP.with_name("libneurontrace_annotate.so"))})
        # A copy elsewhere, with an annotation library beside it.
        tap, annotate = self.directory / "libneurontrace_tap.so", self.directory / "libneurontrace_annotate.so"
        tap.write_bytes(TAP.read_bytes())
        annotate.touch()
        options = ("--tap", tap, "--agent-socket", "/x.sock", "--kineto-dir", self.directory)
        other = str(BUILD / "tests" / "libshifted_clock.so")
        self.assertEqual(self.variables(*options, LD_PRELOAD=other),
                         {"LD_PRELOAD": f"{tap}:{other}", "NVTX_INJECTION64_PATH": str(annotate),
                          "NEURONTRACE_AGENT_SOCKET": "/x.sock", "KINETO_USE_DAEMON": "1",
                          "KINETO_IPC_SOCKET_DIR": str(self.directory)})
        self.assertEqual(self.variables(*options, NVTX_INJECTION64_PATH="/mine.so")["NVTX_INJECTION64_PATH"], "/mine.so")

    def test_the_port_of_xla(self):
        self.assertEqual(self.variables("--xla-port", 9012)["NEURONTRACE_XLA_PORT"], "9012")
        listens = "import os, socket; socket.create_server(('', int(os.environ['NEURONTRACE_XLA_PORT'])))"
        self.run_command("run", "--xla-port", "auto", "--", sys.executable, "-c", listens)

    def test_the_command_is_itself(self):
        self.assertEqual(self.run_command("run", "--", "echo", "[a,b]", "--help").stdout, "[a,b] --help\n")
        self.run_command("run", "--", "sh", "-c", "exit 7", code=7)
        self.run_command("run", "--", "sh", "-c", "kill -TERM $$", code=-signal.SIGTERM)

    def test_refusals(self):
        for code, arguments, text in (
                (2, ("run",), "no command given"), (2, ("run", "true"), "write -- before the command"),
                (127, ("run", "--", "no-such-command"), "command not found"),
                (2, ("run", "--xla-port", "any", "--", "true"), "neither a port nor auto"),
                (126, ("run", "--", str(self.directory)), "cannot be run"),
                (125, ("run", "--tap", self.directory / "none.so", "--", "true"), "none.so; set the tap library"),
                (2, ("status", "--", "true"), "accept a command after --")):
            self.assertIn(text, self.run_command(*arguments, code=code).stderr)

    def test_a_missing_agent_is_reported(self):
        missing = ("run", "--agent-socket", self.directory / "none.sock", "--", "true")
        self.assertIn("there is no agent at", self.run_command(*missing).stderr)
        self.assertEqual(self.run_command("--quiet", *missing).stderr, "")


class Worker(FleetCase):
    def test_it_is_a_worker_of_the_running_agent(self):
        self.start_instances("i-0001")
        worker = self.fleet.build / "tests" / "fake_nrt" / "sim_worker"
        command = self.fleet.cli_command("run", "--agent-socket", self.fleet.socket_of("i-0001"), "--", worker,
                                         "--print-ready", "--cores", 2, "--rank-start", 0, "--world-size", 2)
        process = Process("run", command, self.fleet.logs, env={"NEURONTRACE_CONFIG": ""})
        self.addCleanup(process.kill)
        process.wait_for_line("ready")
        pids = [known["identity"]["pid"] for known in self.fleet.wait_for_workers(1)]
        self.assertEqual(pids, [process.pid])
        self.assertEqual(process.stop(), 0)
        wait_until(lambda: not process.running(), "the command to end")


if __name__ == "__main__":
    suite.main()
