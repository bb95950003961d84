# SPDX-License-Identifier: Apache-2.0
"""The operator's command line, command by command: tables, JSON, files, exit codes, words."""

import json
import os
import re
import socket
import subprocess

import suite
from fleet_case import FleetCase
from ground_truth import read_events
from pftrace_reader import Pftrace

COMMANDS = [["status"], ["workers"], ["capture"], ["capture", "start"], ["capture", "stop"], ["captures"],
            ["captures", "list"], ["captures", "show"], ["captures", "watch"], ["captures", "rename"],
            ["captures", "star"], ["captures", "unstar"], ["captures", "tag"], ["captures", "delete"], ["export"], ["why"],
            ["flight-recorder"], ["flight-recorder", "on"], ["flight-recorder", "off"], ["flight-recorder", "status"],
            ["triggers"], ["triggers", "list"], ["triggers", "fire"], ["triggers", "check"],
            ["completion"]]


class NoFleet(FleetCase):
    def test_help(self):
        overview = self.fleet.cli("--help").stdout
        for command in COMMANDS:
            done = self.fleet.cli(*command, "--help")
            self.assertEqual(done.stderr, "")
            self.assertIn("Usage:", done.stdout)
            if len(command) == 1:
                self.assertIn(command[0], overview)
                self.assertRegex(done.stdout, rf"Examples?:\n +(\S.*)?neurontrace {command[0]}", "an example")
        for program in ("neurontrace-agent", "neurontrace-aggregator"):
            done = subprocess.run([self.fleet.program(program), "--help"], capture_output=True, text=True, check=True)
            self.assertRegex(done.stdout, rf"Examples?:\s+(.*\n)*? *{program} ", "an example")
            needed = ["--aggregator", "127.0.0.1:1"] if program == "neurontrace-agent" else []
            wrong = subprocess.run([self.fleet.program(program), *needed, "--no-such-flag"], capture_output=True, text=True,
                                   check=False)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn("--no-such-flag", wrong.stderr)

    def test_version(self):
        versions, builds, formats = set(), set(), set()
        for program, known in (("neurontrace", {"protocol", "chunk"}),
                               ("neurontrace-agent", {"protocol", "chunk", "spool", "tap buffer"}),
                               ("neurontrace-aggregator", {"protocol", "chunk", "store"})):
            done = subprocess.run([self.fleet.program(program), "--version"], capture_output=True, text=True, check=True)
            printed = re.fullmatch(r"(\S+) (\d+\.\d+\.\d+) \((commit \S+, (?:gcc|clang) \d.*, [a-z, ]+); (.*)\)\n", done.stdout)
            self.assertIsNotNone(printed, done.stdout)
            self.assertEqual(printed[1], program)
            versions.add(printed[2])
            builds.add(printed[3])
            self.assertEqual({entry.rsplit(" ", 1)[0] for entry in printed[4].split(", ")}, known)
            formats.update(printed[4].split(", "))
        self.assertEqual((len(versions), len(builds)), (1, 1), (versions, builds))
        self.assertEqual(len(formats), 5, formats)

    def test_wrong_usage_is_2(self):
        for arguments in ([], ["no-such-command"], ["status", "--no-such-option"], ["export"], ["captures", "show"],
                          ["capture", "--duration", "soon"], ["capture", "--core", "x", "--duration", "1s"],
                          ["--output", "yaml", "status"], ["export", "X", "--format", "csv"],
                          ["capture", "--last", "20s", "--duration", "5s"], ["capture", "--continuous"],
                          ["capture", "--job", "tier=gold"], ["flight-recorder"], ["triggers", "fire"],
                          ["capture", "-d", "5"], ["captures", "show", "X", "--state", "bogus"],
                          ["captures", "rename", "X"], ["captures", "star"], ["captures", "tag", "X"],
                          ["captures", "list", "--tag", ""]):
            done = self.fleet.cli(*arguments, check=False)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertTrue(done.stderr, arguments)

    def test_no_aggregator_exits_with_1_and_remedy(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.fleet.address = f"127.0.0.1:{listener.getsockname()[1]}"
        done = self.fleet.cli("--connect-timeout-ms", 300, "status", check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(self.fleet.address, done.stderr)
        self.assertIn("--aggregator", done.stderr)

    def test_an_empty_system(self):
        self.fleet.start_aggregator()
        self.assertIn("No agent", self.fleet.cli("status").stdout)
        self.assertIn("No worker", self.fleet.cli("workers").stdout)
        self.assertIn("No capture", self.fleet.cli("captures").stdout)
        self.assertEqual(self.fleet.cli_json("status")["agents_connected"], 0)
        self.assertEqual(self.fleet.cli_json("workers").get("workers", []), [])
        self.assertEqual(self.fleet.cli_json("captures").get("captures", []), [])
        for command in (["captures", "show", "01JD"], ["captures", "delete", "01JD"], ["export", "01JD"],
                        ["capture", "stop", "01JD"], ["captures", "rename", "01JD", "n"], ["captures", "star", "01JD"],
                        ["captures", "tag", "01JD", "t"]):
            done = self.fleet.cli(*command, check=False)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("01JD", done.stderr)


class Input(FleetCase):
    """What is typed, set or written in a file and means nothing is refused with a message before anything happens."""

    def run_program(self, program, *arguments, env=(), **options):
        return subprocess.run([self.fleet.program(program), *arguments], stdin=subprocess.DEVNULL, check=False,
                              capture_output="stdout" not in options, timeout=60,
                              env={**os.environ, "NEURONTRACE_CONFIG": "", **dict(env)}, **options)

    def check_usage(self, done, *words):
        self.assertEqual(done.returncode, 2, done)
        for word in words:
            self.assertIn(word, done.stderr.decode(errors="replace"))

    def test_addresses(self):
        for address in ("127.0.0.1:99999", "127.0.0.1:27400x", ":9400", "127.0.0.1", "127.0.0.1:", "127.0.0.1:-1",
                        "127.0.0.1:0x10", "127.0.0.1:65536", "http://127.0.0.1:1", "::1:9400", "[::1:9400", "a b:1"):
            self.check_usage(self.run_program("neurontrace", "--aggregator", address, "status"), address)
            self.check_usage(self.run_program("neurontrace", "status", env={"NEURONTRACE_AGGREGATOR": address}), address)
            self.check_usage(self.run_program("neurontrace-agent", "--aggregator", address), address)
            self.check_usage(self.run_program("neurontrace-agent", "--aggregator", "127.0.0.1:1", "--health-address", address),
                             address)
            self.check_usage(self.run_program("neurontrace-aggregator", "--listen", address), address)
            self.check_usage(self.run_program("neurontrace-aggregator", "--health-address", address), address)
        self.check_usage(self.run_program("neurontrace", "--aggregator", "127.0.0.1:0", "status"), "port 0")
        for endpoint in ("host:99999", "host:27400x", "host:"):
            self.check_usage(self.run_program("neurontrace-aggregator", "--s3-endpoint", endpoint), endpoint)
        for port in ("99999", "-1", "27400x", "0x10"):
            self.check_usage(self.run_program("neurontrace-aggregator", "--probe-port", port), port)

    def test_numbers_and_sizes(self):
        for number in ("-5", "010", "0x10", "1e3", "5x", "99999999999999999999"):
            for command in (["neurontrace", "capture", "--ring-events"], ["neurontrace", "--connect-timeout-ms"],
                            ["neurontrace-agent", "--aggregator", "127.0.0.1:1", "--drain-seconds"],
                            ["neurontrace-agent", "--aggregator", "127.0.0.1:1", "--worker-count"],
                            ["neurontrace-aggregator", "--calls-per-second"],
                            ["neurontrace-aggregator", "--clock-evidence-hours"]):
                # With =, as a word that begins with a minus may be another option.
                self.check_usage(self.run_program(*command[:-1], f"{command[-1]}={number}"), number)
        for size in ("-5GB", "1XB", "1e9", "0x10", "5GBx", "20000PB"):
            for command in (["neurontrace", "capture", "--max-size"], ["neurontrace", "export", "01JD", "--max-size"],
                            ["neurontrace-agent", "--aggregator", "127.0.0.1:1", "--spool-bytes"],
                            ["neurontrace-aggregator", "--quota-store-bytes"],
                            ["neurontrace-aggregator", "--artifact-bytes"]):
                self.check_usage(self.run_program(*command[:-1], f"{command[-1]}={size}"), size)


class Output(FleetCase):
    """Results that cannot be written are failures with a message; and files are written where they were asked for."""

    def run_with_output(self, output, program, *arguments):
        command = [self.fleet.program(program), *arguments]
        if program == "neurontrace":
            command = self.fleet.cli_command(*arguments)
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, check=False,
                              text=True, timeout=60, env={**os.environ, "NEURONTRACE_CONFIG": ""})

    def check_full(self, program, *arguments):
        with open("/dev/full", "wb") as full:
            done = self.run_with_output(full, program, *arguments)
        self.assertEqual(done.returncode, 1, (arguments, done.stderr))
        self.assertIn("standard output", done.stderr)
        return done.stderr

    def test_output_that_is_lost(self):
        self.start_fleet()
        capture = self.fleet.cli("capture", "--duration", "300ms", "--output", "json")
        capture_id = json.loads(capture.stdout)["capture_id"]
        for command in (["--help"], ["--version"], ["capture", "--help"], ["status"], ["workers"], ["clocks"], ["captures"],
                        ["captures", "show", capture_id], ["--output", "json", "captures"], ["config", "show", "--all"],
                        ["completion", "bash"], ["flight-recorder", "on"], ["flight-recorder", "off"],
                        ["capture", "--duration", "200ms"], ["export", capture_id, "-o", self.fleet.dir / "a.json"],
                        ["export", capture_id, "--format", "json", "-o", "-"],
                        ["export", capture_id, "--format", "json", "-o", "/dev/stdout"]):
            self.check_full("neurontrace", *command)
        started = self.check_full("neurontrace", "capture", "start")
        running = self.fleet.cli_json("captures", "list", "--running")["captures"]
        self.assertEqual(len(running), 1)
        self.assertIn(running[0]["capture_id"], started, "the id is all that leads back to it")
        self.fleet.cli("capture", "stop", running[0]["capture_id"], codes=(0, 3))
        for program, needed in (("neurontrace-agent", ["--aggregator", "127.0.0.1:1"]), ("neurontrace-aggregator", [])):
            for option in ("--help", "--version", "--validate-config"):
                self.check_full(program, *needed, option)
        done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *self.fleet.cli_command("status")], check=False,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("standard output", done.stderr)


class Walk(FleetCase):
    """What the README shows, in its order, on two instances."""

    def table(self, *arguments):
        """Rows of the last table of an output, as lists of cells."""
        blocks = self.fleet.cli(*arguments).stdout.strip().split("\n\n")
        return [re.split(r"\s{2,}", line.strip()) for line in blocks[-1].splitlines()]

    def test_walk(self):
        workers = self.start_fleet(instances=2)
        self.walk_status(workers)
        self.walk_workers(workers)
        trace = self.fleet.dir / "trace.pftrace"
        done = self.fleet.cli("capture", "--duration", "800ms", "--name", "walk", "-o", trace)
        self.assertIn("complete", done.stdout)
        self.assertIn(f"wrote {trace}", done.stdout)
        capture_id = self.walk_captures(workers)
        self.walk_export(capture_id, trace)
        self.walk_updates(capture_id)
        self.walk_delete(capture_id)

    def walk_status(self, workers):
        rows = self.table("status")
        self.assertEqual(rows[0][0], "INSTANCE")
        self.assertEqual([row[0] for row in rows[1:]], ["i-0001", "i-0002"])
        self.assertEqual({row[3] for row in rows[1:]}, {"connected"})
        status = self.fleet.cli_json("status")
        self.assertEqual((status["agents_connected"], status["workers"]), (2, len(workers)))
        self.assertEqual({a["hello"]["instance_id_source"] for a in status["agents"]}, {"flag"})

    def walk_workers(self, workers):
        self.fleet.wait_for_ranks(4)
        rows = self.table("workers")
        self.assertEqual([(row[0], row[1], row[2], row[3], row[4]) for row in rows[1:]],
                         [("i-0001", str(workers[0].pid), "ready", "2", "0-1"),
                          ("i-0002", str(workers[1].pid), "ready", "2", "2-3")])
        only, = self.fleet.list_workers("--instance", "i-0002")
        self.assertEqual(only["identity"]["pid"], workers[1].pid)
        self.assertTrue(only["command"].endswith("sim_worker"), only["command"])
        self.assertTrue(only["runtime_version"])

    def walk_captures(self, workers):
        listed, = self.table("captures")[1:]
        capture, = self.fleet.cli_json("captures", "list")["captures"]
        self.assertEqual(listed[:3], [capture["capture_id"], "walk", "complete"])
        shown = self.fleet.cli("captures", "show", capture["capture_id"][:12]).stdout
        self.assertIn(capture["capture_id"], shown)
        whole = self.fleet.show_capture(capture["capture_id"])
        self.assertEqual(whole["spec"]["duration_ns"], "800000000")
        self.assertEqual(sum(int(s["events"]) for s in whole["streams"]), int(whole["events"]))
        self.assertEqual(sum(int(w["events_stored"]) for w in whole["workers"]), int(whole["events"]))
        self.assertEqual({w["worker"]["pid"] for w in whole["workers"]}, {w.pid for w in workers})
        return capture["capture_id"]

    def walk_export(self, capture_id, trace):
        for name, arguments in (("again.pftrace", []), ("trace.json", []), ("events.jsonl", []),
                                ("x.bin", ["--format", "perfetto"]), ("y.bin", ["--format", "json"])):
            done = self.fleet.cli("export", capture_id, *arguments, "-o", self.fleet.dir / name)
            self.assertIn(f"wrote {self.fleet.dir / name}", done.stdout)
        clocks = self.fleet.cli_json("clocks", "--capture", capture_id)
        reported = json.loads((self.fleet.dir / "trace.json").read_text())["system_profile_metadata"][0]["clocks"]
        if reported["instances"]:
            is_final = clocks.get("final", False)
            self.assertEqual((clocks["version"], is_final), (reported["version"], reported["final"]))
            self.assertGreaterEqual(reported["version"], 1, "the models of a capture that has ended are stored")
            if not is_final:  # nor was it a moment ago
                self.assertIn("note: the clock models are not final yet", done.stdout)
        read = [(self.fleet.dir / name).read_bytes() for name in ("trace.pftrace", "again.pftrace", "x.bin")]
        self.assertEqual(read[0], read[1], "an export is the same each time")
        self.assertEqual(read[0], read[2])
        self.assertEqual((self.fleet.dir / "trace.json").read_bytes(), (self.fleet.dir / "y.bin").read_bytes())
        to_pipe = self.fleet.cli("export", capture_id, "--format", "json", "-o", "-")
        spans = json.loads(to_pipe.stdout)["trace_event"]
        self.assertEqual(spans, json.loads((self.fleet.dir / "trace.json").read_text())["trace_event"])
        self.assertEqual(len(Pftrace(trace).events()), len(spans))
        self.assertGreater(sum(1 for _ in read_events(self.fleet.dir / "events.jsonl")), len(spans))
        done = self.fleet.cli_json("export", capture_id, "-o", self.fleet.dir / "again.pftrace")
        # Not compared with the first: the models of the clocks may have become final since.
        self.assertEqual(int(done["total"]["bytes_written"]), (self.fleet.dir / "again.pftrace").stat().st_size)
        blocked = self.fleet.cli("export", capture_id, "-o", "/no/such/folder/x.pftrace", check=False)
        self.assertEqual(blocked.returncode, 1)
        self.assertIn("/no/such/folder/x.pftrace", blocked.stderr)

    def walk_updates(self, capture_id):
        self.assertIn("is named night run", self.fleet.cli("captures", "rename", capture_id, "night run").stdout)
        self.fleet.cli("captures", "star", capture_id)
        self.fleet.cli("captures", "tag", capture_id[:12], "baseline", "needs review")
        self.fleet.cli("captures", "tag", capture_id, "needs review", "--remove")
        for refused in ("a,b", "trigger=x", "x" * 129):
            done = self.fleet.cli("captures", "tag", capture_id, refused, check=False)
            self.assertEqual(done.returncode, 1, refused)
            self.assertIn("add_tags[0]", done.stderr)
        unprintable = self.fleet.cli("captures", "tag", capture_id, "a\tb", check=False)
        self.assertEqual(unprintable.returncode, 2)
        self.assertIn("TAG 'a?b' has control characters", unprintable.stderr)
        self.fleet.aggregator.stop()
        self.fleet.start_aggregator()
        for found in (["--starred"], ["--tag", "baseline"], ["--starred", "--tag", "baseline"]):
            capture, = self.fleet.cli_json("captures", "list", *found)["captures"]
            self.assertEqual((capture["spec"]["name"], capture["starred"], capture["tags"]), ("night run", True, ["baseline"]))
        self.assertEqual(self.fleet.cli_json("captures", "list", "--tag", "needs review")["captures"], [])
        self.assertEqual(self.table("captures")[0][-2:], ["STAR", "TAGS"])
        self.fleet.cli("captures", "unstar", capture_id)
        self.assertEqual(self.fleet.cli_json("captures", "list", "--starred")["captures"], [])

    def walk_delete(self, capture_id):
        self.assertIn("deleted", self.fleet.cli("captures", "delete", capture_id).stdout)
        self.assertIn("No capture", self.fleet.cli("captures").stdout)


if __name__ == "__main__":
    suite.main()
