# SPDX-License-Identifier: Apache-2.0
"""What each role may do, whose captures, with which token, and that all of it is written down."""

import contextlib
import hashlib
import json
import os
import signal
import socket

import suite
from fleet import wait_until
from secure_case import SecureCase

RULES = """
[agents]
certificate = "uri:neurontrace:agent"
role = "agent"
[root]
certificate = "cn:root"
role = "admin"
[alice]
certificate = "cn:alice"
role = "operator"
jobs = "team-a-*"
[eve]
certificate = "cn:eve"
role = "viewer"
"""


class AccessTest(SecureCase):
    def setUp(self):
        super().setUp()
        self.alice = self.ca.issue("alice")
        self.eve = self.ca.issue("eve")
        self.rules = self.fleet.dir / "access"
        self.write_rules(RULES)

    def write_rules(self, text):
        new = self.rules.with_suffix(".new")
        new.write_text(text)
        new.rename(self.rules)

    def start(self, *options):
        self.start_secure_fleet("--access", self.rules, *options)

    def test_each_role_has_its_rights(self):
        root = self.fleet.dir / "exports"
        root.mkdir()
        self.start("--export-root", root)
        capture = self.start_capture()
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        # A viewer looks, and takes a file for itself.
        self.assertEqual(self.cli_as(self.eve, "captures", "show", capture).returncode, 0)
        self.assertEqual(self.cli_as(self.eve, "export", capture, "-o", self.fleet.dir / "eve.pftrace").returncode, 0)
        # So small a fleet has no peers to judge by: the answer is a refusal, which is one.
        self.assertIn(self.cli_as(self.eve, "why", capture).returncode, (0, 3))
        self.check_refused(self.cli_as(self.eve, "why", "--live"), "no watch is on")
        self.check_refused(self.cli_as(self.eve, "capture", "start"), "'eve' has the role viewer; StartCapture needs "
                           "operator")
        self.check_refused(self.cli_as(self.eve, "capture", "stop", capture), "StopCapture needs operator")
        self.check_refused(self.cli_as(self.eve, "export", capture, "--to", root / "eve"), "'eve' has the role viewer")
        self.check_refused(self.cli_as(self.eve, "captures", "delete", capture),
                           "DeleteCapture needs admin")
        self.check_refused(self.cli_as(self.alice, "captures", "delete", capture),
                           "DeleteCapture needs admin")
        self.check_refused(self.cli_as(self.eve, "captures", "star", capture), "UpdateCapture needs operator")
        self.assertEqual(self.fleet.cli("captures", "tag", capture, "baseline").returncode, 0)
        # Agents and people are apart, and who is in no rule is nobody.
        self.check_refused(self.cli_as(self.agent, "status"), "'agents' has the role agent")
        mallory = self.ca.issue("mallory", "URI:neurontrace:admin")
        self.check_refused(self.cli_as(mallory, "status"), "no access rule of the aggregator matches this certificate")
        self.fleet.client_security = self.eve
        agent = self.fleet.start_agent("i-0002")
        agent.wait_for_line("'eve' has the role viewer; Control needs agent")
        self.fleet.client_security = self.admin
        self.assertEqual(self.fleet.cli_json("status")["agents_connected"], 1)
        self.assertFalse((root / "eve").exists())
        self.assertEqual(self.fleet.cli("captures", "delete", capture).returncode, 0)
        self.check_audit(capture)

    def check_audit(self, capture):
        lines = [(line["action"], line.get("caller"), line["outcome"]) for line in self.audit()
                 if line.get("capture") == capture or line["action"] == "call"]
        for expected in (("capture.start", "root", "done"), ("capture.stop", "root", "done"),
                         ("export", "eve", "done"), ("call", "eve", "refused"), ("call", "agents", "refused"),
                         ("capture.update", "root", "done"), ("capture.delete", "root", "done")):
            self.assertIn(expected, lines)
        self.assertIn("+baseline", [line.get("detail") for line in self.audit() if line["action"] == "capture.update"])
        self.assertTrue(all(line["from"].startswith("ipv4:127.0.0.1:") for line in self.audit()
                            if line.get("caller") in ("root", "eve", "alice") and line["action"] != "call"))
        # Refused calls say whose they were, and what they were about.
        refused = [line for line in self.audit() if line["outcome"] == "refused"]
        self.assertTrue(all("127.0.0.1" in line.get("from", "") for line in refused), refused)
        about = [(line["action"], line.get("caller")) for line in refused if line.get("capture") == capture]
        for expected in (("capture.stop", "eve"), ("export", "eve"), ("capture.update", "eve"), ("capture.delete", "eve"),
                         ("capture.delete", "alice")):
            self.assertIn(expected, about)

    def test_handshakes_that_fail_are_written_down(self):
        self.start()
        host, port = self.fleet.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), 10) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            name = "%s:%d" % stranger.getsockname()
            stranger.settimeout(10)
            with contextlib.suppress(OSError):
                while stranger.recv(4096):
                    pass
            lines = wait_until(lambda: [line for line in self.audit() if line["action"] == "connection"],
                               "the failed handshake in the audit log", 30)
        self.assertIn(name, lines[0]["from"])
        self.assertEqual(lines[0]["outcome"], "refused")
        self.assertIn("handshake failed", lines[0]["reason"])

    def test_an_operator_has_the_captures_of_their_jobs_alone(self):
        self.start()
        other = self.start_capture()
        self.check_refused(self.cli_as(self.alice, "capture", "start"), "choose one with --job")
        self.check_refused(self.cli_as(self.alice, "capture", "start", "--job", "team-b"), "but this capture is of team-b")
        for command in (("captures", "show"), ("capture", "stop"), ("captures", "star"),
                        ("export", "-o", self.fleet.dir / "x.pftrace")):
            self.check_refused(self.cli_as(self.alice, *command, other), f"no capture has an id that begins with '{other}'")
        self.assertFalse((self.fleet.dir / "x.pftrace").exists())
        self.assertNotIn(other, self.cli_as(self.alice, "captures").stdout)
        self.assertEqual(self.fleet.show_capture(other)["state"], "CAPTURE_STATE_RECORDING")
        self.stop_capture(other)

    def test_an_operator_has_the_captures_of_their_users_alone(self):
        mine, other = os.getuid(), os.getuid() + 1
        bob = self.ca.issue("bob")
        limited = '\n[bob]\ncertificate = "cn:bob"\nrole = "operator"\njob-uids = {}\n'
        self.write_rules(RULES + limited.format(other))
        self.start()
        facts = [{(fact["key"], fact["value"]) for fact in worker["job_facts"]}
                 for worker in self.fleet.cli_json("workers")["workers"]]
        self.assertTrue(all(("uid", str(mine)) in each for each in facts), facts)
        everybody = self.start_capture()
        self.check_refused(self.cli_as(bob, "captures", "show", everybody), "no capture has an id that begins with")
        self.check_refused(self.cli_as(bob, "capture", "start", "--job", f"uid={mine}"), f"but this capture is of {mine}")
        # Their one user goes without saying, and nobody here is it.
        nobody = self.cli_as(bob, "capture", "start")
        self.assertEqual(nobody.returncode, 3, nobody.stderr)
        self.assertIn("no worker matched", nobody.stderr)
        ended = self.fleet.wait_for_capture(nobody.stdout.strip(), lambda c: c["state"] == "CAPTURE_STATE_NOT_BEGUN",
                                            "nobody to be found")
        self.assertIn("no worker matched", " ".join(ended["warnings"]))
        self.write_rules(RULES + limited.format(mine))
        self.fleet.aggregator.signal(signal.SIGHUP)
        self.fleet.aggregator.wait_for_line("take effect")
        self.stop_capture(everybody)
        done = self.cli_as(bob, "capture", "start")
        self.assertEqual(done.returncode, 0, done.stderr)
        own = done.stdout.strip()
        self.wait_for_events(own, 100)
        self.assertIn({"key": "uid", "value": str(mine)}, self.fleet.show_capture(own)["spec"]["job_facts"])
        self.assertIn(own, self.cli_as(bob, "captures").stdout)
        self.assertNotIn(everybody, self.cli_as(bob, "captures").stdout)
        self.assertEqual(self.cli_as(bob, "capture", "stop", own).returncode, 0)

    def test_viewer_of_one_job_cannot_see_others(self):
        viewer = self.ca.issue("viewer")
        self.write_rules(RULES + '[viewer]\ncertificate = "cn:viewer"\nrole = "viewer"\njobs = "team-a-*"\n')
        self.start()
        self.fleet.start_worker("i-0001", "--cores", 1, env={"NEURONTRACE_JOB": "team-a-1"})
        self.fleet.start_worker("i-0001", "--cores", 1, env={"NEURONTRACE_JOB": "team-b-1"})
        self.fleet.wait_for_workers(3)
        jobs = {worker["job"] for worker in self.fleet.list_workers()}
        self.assertLessEqual({"team-a-1", "team-b-1"}, jobs)
        # Arguments, which can hold secrets, are not even collected.
        self.assertTrue(all(" " not in worker["command"] and "--cores" not in worker["command"]
                            for worker in self.fleet.list_workers()))

        listed = json.loads(self.cli_as(viewer, "--output", "json", "workers").stdout)
        self.assertEqual([worker["job"] for worker in listed["workers"]], ["team-a-1"])
        self.assertEqual([job["job"] for job in listed["jobs"]], ["team-a-1"])
        status = json.loads(self.cli_as(viewer, "--output", "json", "status").stdout)
        self.assertEqual((status["workers"], [agent["workers"] for agent in status["agents"]]), (1, [1]))

        everybody = self.start_capture()
        self.stop_capture(everybody, code=None)
        mine = self.start_capture("--job", "team-a-1")
        self.stop_capture(mine, code=None)
        # They share the beginning of their ids, as those begin with the time.
        self.check_refused(self.cli_as(viewer, "captures", "show", everybody), "no capture has an id that begins with")
        self.assertEqual(json.loads(self.cli_as(viewer, "--output", "json", "captures", "show", mine[:2]).stdout)
                         ["capture_id"], mine)
        self.check_refused(self.cli_as(viewer, "why", everybody), "no capture has an id that begins with")
        self.check_refused(self.cli_as(viewer, "why", "--live"), "choose one with --job")
        for arguments in (("workers",), ("why", mine), ("workers", "--facts", "--wide"), ("captures",), ("captures", "show", mine),
                          ("captures", "show", mine, "--wide"), ("--output", "json", "captures", "show", mine),
                          ("--output", "json", "captures"), ("triggers",), ("status",)):
            done = self.cli_as(viewer, *arguments)
            for secret in ("team-b-1", everybody):
                self.assertNotIn(secret, done.stdout + done.stderr, arguments)

    def test_a_token_does_not_widen_what_a_certificate_may(self):
        self.write_rules(RULES + '[wide]\nrole = "admin"\ntoken-sha256 = "'
                         + hashlib.sha256(b"an admin's token").hexdigest() + '"\n')
        self.start()
        token = self.fleet.dir / "token"
        token.write_text("an admin's token")
        both = (*self.eve, "--token-file", str(token))
        self.check_refused(self.cli_as(both, "capture", "start"), "'wide' has the role viewer; StartCapture needs")
        self.assertEqual(self.cli_as(both, "status").returncode, 0)
        self.check_refused(self.cli_as((*self.agent, "--token-file", str(token)), "status"), "use only one of them")
        alone = ("--tls-ca", str(self.ca.ca), "--token-file", str(token))
        self.assertEqual(self.cli_as(alone, "capture", "start").returncode, 0)

    def test_tokens_count_while_the_file_lists_them(self):
        self.start()
        token = self.fleet.dir / "token"
        token.write_text("a secret of grafana's\n")
        grafana = ("--tls-ca", str(self.ca.ca), "--token-file", str(token))
        self.check_refused(self.cli_as(grafana, "status"), "the token is unknown or outdated")
        self.check_refused(self.cli_as(grafana[:2], "status"), "has neither a certificate")
        digest = hashlib.sha256(b"a secret of grafana's").hexdigest()
        self.write_rules(f'{RULES}[grafana]\ntoken-sha256 = "{digest}"\nrole = "viewer"\n')
        self.fleet.aggregator.signal(signal.SIGHUP)
        wait_until(lambda: self.cli_as(grafana, "status").returncode == 0, "the token to count")
        self.check_refused(self.cli_as(grafana, "capture", "start"), "'grafana' has the role viewer")
        # A bad file changes nothing; a good one without it makes the token an old one.
        self.write_rules(RULES + "[broken\n")
        self.fleet.aggregator.signal(signal.SIGHUP)
        self.fleet.aggregator.wait_for_line("the previous 5 rules stay in effect")
        self.assertEqual(self.cli_as(grafana, "status").returncode, 0)
        self.write_rules(RULES)
        wait_until(lambda: self.cli_as(grafana, "status").returncode != 0, "the token to count no more")
        self.check_refused(self.cli_as(grafana, "status"), "unknown or outdated")
        # A token is never sent where others could read it, and is in no log.
        self.check_refused(self.cli_as(("--insecure", "--token-file", str(token)), "status"),
                           "a token is never sent in plain text", code=2)
        for log in (*self.fleet.logs.iterdir(), self.fleet.dir / "store" / "audit.log"):
            self.assertNotIn("a secret of", log.read_text(errors="replace"), log)

    def test_audits_automatic_actions(self):
        root, rules = self.fleet.dir / "exports", self.fleet.dir / "triggers"
        root.mkdir()
        rules.write_text('[by-hand]\nwhen = "post"\nrecord-last = 0\nrecord-for = "1s"\n')
        self.start("--triggers", rules, "--export-root", root, "--standing-export",
                   f'{{name = "all", to = "{root}", formats = "summary-json"}}')
        capture = self.fleet.cli_json("triggers", "fire", "by-hand")["capture_id"]
        self.fleet.wait_for_capture(capture, lambda c: c["state"].endswith("COMPLETE"), "its end")

        def written():
            lines = [(line["action"], line["caller"], line["outcome"]) for line in self.audit()
                     if line.get("capture") == capture]
            return lines if ("export", "standing export all", "done") in lines else None
        lines = wait_until(written, "the standing export in the audit log", 120)
        for expected in (("capture.start", "rule by-hand", "done"), ("capture.end", "aggregator", "done"),
                         ("export.begin", "standing export all", "done")):
            self.assertIn(expected, lines)
        self.assertIn(("trigger.fire", "root"), [(line["action"], line.get("caller")) for line in self.audit()])
        short = self.start_capture("--duration", "1s", "--keep-for", "1s")
        wait_until(lambda: (short, "capture.delete", "retention", "done") in
                   [(line.get("capture"), line["action"], line["caller"], line["outcome"]) for line in self.audit()
                    if "caller" in line], "its deletion in the audit log", 60)

    def test_operators_keep_captures_longer_and_admins_shorter(self):
        self.write_rules(RULES + '[carol]\ncertificate = "cn:carol"\nrole = "operator"\n')
        self.start()
        carol = self.ca.issue("carol")
        capture = self.start_capture("--keep-for", "1h")
        self.wait_for_events(capture, 100)
        self.check_refused(self.cli_as(self.eve, "captures", "keep", capture, "--forever"),
                           "UpdateCapture needs operator")
        done = self.cli_as(carol, "captures", "keep", capture, "--for", "30d")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_refused(self.cli_as(carol, "captures", "keep", capture, "--for", "1d"),
                           "'carol' has the role operator; a shorter retention deletes, and needs admin")
        self.stop_capture(capture)
        self.check_refused(self.fleet.cli("captures", "keep", capture, "--for", "1ms", check=False),
                           "would be deleted at once")
        self.assertEqual(self.fleet.cli("captures", "keep", capture, "--for", "1d").returncode, 0)
        self.assertEqual(int(self.fleet.show_capture(capture)["spec"]["retention_ns"]), 86_400 * 1_000_000_000)
        lines = [(line["caller"], line["outcome"], line.get("detail", "")) for line in self.audit()
                 if line["action"] == "capture.update"]
        for expected in (("carol", "done", "keep for 2592000.0 s"), ("carol", "refused", "keep for 86400.0 s"),
                         ("root", "failed", "keep for 0.0 s"), ("root", "done", "keep for 86400.0 s")):
            self.assertIn(expected, lines)
        # The new time counts: this one goes soon after its end, which had a day to go.
        short = self.start_capture("--keep-for", "1d")
        self.assertEqual(self.fleet.cli("captures", "keep", short, "--for", "1ms").returncode, 0)
        # It may be gone before the command has shown it.
        self.fleet.cli("capture", "stop", short, check=False)
        wait_until(lambda: (short, "capture.delete", "retention") in
                   [(line.get("capture"), line["action"], line.get("caller")) for line in self.audit()],
                   "its deletion in the audit log", 60)

    def test_each_caller_has_a_rate_of_calls(self):
        self.fleet.start_aggregator("--access", self.rules, "--calls-per-second", "1")

        def refused():
            done = self.cli_as(self.eve, "status")
            return done if done.returncode != 0 else None
        self.check_refused(wait_until(refused, "too many calls"), "eve exceeds 1 calls per second")
        self.assertIn(("call", "eve", "refused"), [(line["action"], line.get("caller"), line["outcome"])
                                                   for line in self.audit()])
        wait_until(lambda: self.cli_as(self.alice, "status").returncode == 0, "a call of somebody else")

    def test_an_export_stays_below_its_roots(self):
        root, outside = self.fleet.dir / "exports", self.fleet.dir / "outside"
        root.mkdir()
        outside.mkdir()
        (root / "link").symlink_to(outside)
        self.start("--export-root", root)
        capture = self.start_capture()
        self.wait_for_events(capture, 200)
        self.stop_capture(capture)
        for place in (outside, root / ".." / "outside", root / "link", "/etc"):
            done = self.fleet.cli("export", capture, "--to", place, check=False)
            self.assertNotEqual(done.returncode, 0, place)
            self.assertIn(str(root), done.stderr, place)
        self.assertEqual(list(outside.iterdir()), [])
        refused = [line for line in self.audit() if line["action"] == "export"]
        self.assertEqual(len(refused), 4)
        self.assertTrue(all(line["outcome"] == "failed" for line in refused), refused)

    def test_rules_without_tls_and_bad_rules_are_refused_at_the_start(self):
        done = self.run_program("neurontrace-aggregator", "--listen", "127.0.0.1:0", "--store",
                                self.fleet.dir / "store", "--access", self.rules)
        self.assertEqual(done.returncode, 1)
        self.assertIn("needs TLS to identify callers", done.stderr)
        self.write_rules('[alice]\ncertificate = "cn:alice"\nrole = "king"\n')
        done = self.run_program("neurontrace-aggregator", "--listen", "127.0.0.1:0", "--store",
                                self.fleet.dir / "store", "--access", self.rules, *self.fleet.server_security)
        self.assertEqual(done.returncode, 1)
        self.assertIn(':3:1: [alice]: role = "king": role must be one of', done.stderr)


if __name__ == "__main__":
    suite.main()
