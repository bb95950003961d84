# SPDX-License-Identifier: Apache-2.0
"""A configuration that changes while agent and aggregator run: what is good is taken, what is bad changes nothing and says
why, and people see it all at /statusz. Their logs as JSON are JSON."""

import json
import re
import signal
import socket
import subprocess

import suite
from fleet import wait_until
from fleet_case import FleetCase


class Configuration(FleetCase):
    def setUp(self):
        super().setUp()
        self.file = self.fleet.dir / "daemon.toml"

    def write(self, text):
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def wait_for_metric(self, process, name, value):
        line = re.compile(rf"^{name}(?:{{.*}})? {value}$", re.MULTILINE)
        wait_until(lambda: line.search(process.ask("/metrics")[1]), f"{name} to be {value}")

    def test_aggregator_accepts_valid_and_rejects_invalid(self):
        self.write('quota-capture-bytes = "5GiB"\nlog-format = "json"\n')
        aggregator = self.fleet.start_aggregator("--config", self.file)
        self.write('quota-capture-bytes = "6GiB"\nlog-format = "json"\ndurability = "page-cache"\n')
        aggregator.signal(signal.SIGHUP)
        self.wait_for_metric(aggregator, "neurontrace_aggregator_options_after_restart", 1)
        self.write('quota-capture-byte = "7GiB"\n')
        self.wait_for_metric(aggregator, "neurontrace_aggregator_config_valid", 0)
        lines = [json.loads(line) for line in (self.fleet.logs / "aggregator.log").read_text().splitlines()
                 if line.startswith("{")]
        words = " | ".join(line["message"] for line in lines)
        self.assertIn(f"{self.file}: quota-capture-bytes is now '6442450944' (was '5368709120')", words)
        self.assertIn("durability = 'page-cache' needs a restart; 'synced' stays in effect until then", words)
        self.assertIn("quota-capture-byte is not an option", words)
        for line in lines:
            self.assertEqual(line["program"], "aggregator")
            self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        _, html, headers = aggregator.ask("/statusz")
        self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
        self.assertIn("<td>quota-capture-bytes<td>6442450944", html)
        self.assertIn("quota-capture-byte is not an option", html)
        self.write("# no options\n")
        self.wait_for_metric(aggregator, "neurontrace_aggregator_config_valid", 1)

    def test_a_quota_counts_from_when_it_is_written(self):
        self.write("# no options\n")
        self.fleet.start_aggregator("--config", self.file)
        self.start_fleet()
        capture = self.start_capture()
        self.wait_for_events(capture, 1)
        self.write("quota-capture-bytes = 1000\n")
        self.fleet.aggregator.signal(signal.SIGHUP)
        ended = self.fleet.wait_for_capture(capture, lambda c: c["state"] == "CAPTURE_STATE_COMPLETE",
                                            "the capture to be stopped by its quota")
        self.assertIn("--quota-capture-bytes", json.dumps(ended))

    def test_agent_shows_workers_and_survives_hangup(self):
        self.write('log-level = "warn"\n')
        self.start_instances("i-0001", agent_options=("--config", self.file))
        worker = self.fleet.start_worker("i-0001", "--cores", 2)
        self.fleet.wait_for_workers(1)
        agent = self.fleet.agents["i-0001"]
        self.write('log-level = "info"\ndrain-seconds = 3\n')
        agent.signal(signal.SIGHUP)
        self.wait_for_metric(agent, "neurontrace_agent_config_reloads_total", 1)
        html = agent.ask("/statusz")[1]
        self.assertIn(f"<td>{worker.reported_pid}<td>ready", html)
        self.assertIn("<td>drain-seconds<td>3", html)
        self.assertIn("ok aggregator", html)

    def test_failed_start_logs_in_configured_format(self):
        file = self.fleet.dir / "a-file"
        file.write_text("")
        for program, options in (("aggregator", ("--store", file, "--listen", "127.0.0.1:0")),
                                 ("agent", ("--aggregator", "127.0.0.1:1", "--spool", "none", "--instance-id", "i-0001",
                                            "--socket", file / "agent.sock"))):
            with self.subTest(program):
                done = subprocess.run([self.fleet.program(f"neurontrace-{program}"), *options, "--health-address",
                                       "127.0.0.1:0", "--log-format", "json"], capture_output=True, text=True, timeout=30,
                                      check=False)
                self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
                lines = [json.loads(line) for line in done.stderr.splitlines()]
                self.assertEqual((lines[-1]["level"], lines[-1]["program"]), ("critical", program))
                self.assertIn(str(file), lines[-1]["message"])

    def validate(self, program, *options):
        return subprocess.run([self.fleet.program(program), *options, "--validate-config"], capture_output=True,
                              text=True, timeout=30, check=False)

    def test_a_configuration_is_validated_without_beginning_anything(self):
        store = self.fleet.dir / "never-made"
        self.write(f'store = "{store}"\nlisten = "127.0.0.1:0"\n')
        good = self.validate("neurontrace-aggregator", "--config", self.file)
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        self.assertIn(f"the configuration is valid\n  artifact-bytes = 68719476736\n", good.stdout)
        self.assertIn(f"  store = {store}\n", good.stdout)
        self.assertFalse(store.exists())
        rules = self.fleet.dir / "rules"
        rules.write_text('[slow]\nwhen = "sometimes"\n')
        for words, program, options in (
                ("listen", "neurontrace-aggregator", ("--listen", "nowhere")),
                ("--insecure", "neurontrace-aggregator", ("--listen", "0.0.0.0:0")),
                (f"{rules}:2:", "neurontrace-aggregator", ("--triggers", rules)),
                ("no-such-file", "neurontrace-aggregator", ("--config", "no-such-file")),
                ("--export-root", "neurontrace-aggregator", ("--standing-export", '{name = "a", to = "/nowhere"}')),
                (f"--s3-ca: {rules} has no certificate", "neurontrace-aggregator", ("--s3-ca", rules)),
                ("aggregator", "neurontrace-agent", ()),
                ("ca.pem", "neurontrace-agent", ("--aggregator", "a:1", "--tls-ca", "ca.pem", "--tls-cert", "a.pem",
                                                 "--tls-key", "a.key"))):
            with self.subTest(words):
                bad = self.validate(program, *options)
                self.assertEqual((bad.returncode, bad.stdout), (2, ""))
                self.assertIn(words, bad.stderr)

    # What may appear or be made later is not checked when a daemon starts.
    LATER_FILES = ("--audit-log", "--framework-file")

    def test_an_error_about_a_file_names_its_option(self):
        for program, more in (("neurontrace-aggregator", ()), ("neurontrace-agent", ("--aggregator", "127.0.0.1:9"))):
            text = subprocess.run([self.fleet.program(program), "--help"], capture_output=True, text=True, timeout=30,
                                  check=True).stdout
            # Options whose description begins with what file they name: "PEM file of …", "Access policy file, …".
            options = [option for option, about in re.findall(r"(?m)^ +(--[\w-]+)[^\n]*\n +([^\n]*)", text)
                       if re.match(r"(\S+ ){0,2}[Ff]ile\b", about) and option not in self.LATER_FILES]
            self.assertIn("--tls-ca", options, text)
            for option in options:
                given = ("--tls-ca", "--tls-cert", "--tls-key") if option.startswith("--tls-") else (option,)
                with self.subTest(option):
                    bad = self.validate(program, *more, *(word for name in given for word in (name, "/none/file")))
                    self.assertEqual(bad.returncode, 2)
                    self.assertIn("--tls-ca: " if option.startswith("--tls-") else option, bad.stderr)

    def test_a_port_in_use_is_reported_with_its_option(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            for program, option in (("neurontrace-aggregator", "--listen"), ("neurontrace-aggregator", "--health-address"),
                                    ("neurontrace-aggregator", "--view-address"), ("neurontrace-agent", "--health-address")):
                options = {"--listen": "127.0.0.1:0", "--health-address": "127.0.0.1:0",
                           "--store": self.fleet.dir / "other-store"}
                if program == "neurontrace-agent":
                    options = {"--aggregator": "127.0.0.1:9", "--socket": self.fleet.dir / "other.sock", "--spool": "none"}
                options[option] = address
                with self.subTest(f"{program} {option}"):
                    failed = subprocess.run(
                        [self.fleet.program(program), *(word for pair in options.items() for word in pair)],
                        capture_output=True, text=True, timeout=30, check=False)
                    self.assertNotEqual(failed.returncode, 0)
                    self.assertIn(option, failed.stdout + failed.stderr)
                    self.assertRegex(failed.stdout + failed.stderr, r"[Aa]ddress already in use.*(choose another|Choose another)")


if __name__ == "__main__":
    suite.main()
