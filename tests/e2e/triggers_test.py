# SPDX-License-Identifier: Apache-2.0
"""Triggers, with everything real but the runtime: each kind of rule makes one capture of the whole job, with its
cause; none is made by a rule in its cool-down period; a bad file changes nothing."""

import signal

import suite
from fleet import wait_until
from fleet_case import FleetCase

RECORD = 'record-last = "10s"\nrecord-for = "1s"\ncool-down = "1h"\n'


class Triggers(FleetCase):
    def write_rules(self, text):
        path = self.fleet.dir / "triggers"
        scratch = self.fleet.dir / "triggers.new"
        scratch.write_text(text)
        scratch.rename(path)
        return path

    def start(self, rules, options=(), instances=2):
        """A fleet of one job whose agents all know these rules."""
        self.fleet.start_aggregator("--triggers", self.write_rules(rules))
        workers = self.start_fleet(instances=instances, options=options)
        for instance, agent in self.fleet.agents.items():
            wait_until(lambda a=agent: a.metric("neurontrace_agent_trigger_rules") == rules.count("when ="),
                       f"the rules at {instance}")
        return workers

    def daemon(self, name):
        return self.fleet.aggregator if name == "aggregator" else self.fleet.agents[name]

    def post(self, name, rule, body="", headers=None):
        return self.daemon(name).ask(f"/triggers/{rule}", body.encode(), headers)

    def triggers(self):
        return {t["rule"]["name"]: t for t in self.fleet.cli_json("triggers").get("triggers", [])}

    def wait_for_trigger(self, name, seconds=40):
        def fired():
            trigger = self.triggers()[name]
            return trigger if int(trigger.get("fired", 0)) > 0 else None
        return wait_until(fired, f"{name} to fire", seconds)

    def captures_of(self, name):
        return [c for c in self.fleet.cli_json("captures", "list").get("captures", [])
                if {"key": "trigger", "value": name} in c["spec"].get("labels", [])]

    def check_capture(self, name, cause, workers):
        """One capture, ended, of all these workers, that says why it is."""
        trigger = self.wait_for_trigger(name)
        self.assertRegex(trigger["last_cause"], cause)
        capture_id = trigger["last_capture_id"]
        capture = self.fleet.wait_for_capture(
            capture_id, lambda c: c["state"].endswith(("COMPLETE", "NOT_BEGUN")), "its end")
        self.assertRegex(capture["spec"]["cause"], f"^trigger {name}: .*{cause}")
        self.assertEqual(capture["spec"]["name"], name)
        recorded = {w["worker"]["pid"] for w in capture["workers"] if int(w.get("events_stored", 0)) > 0}
        self.assertEqual(recorded, {worker.pid for worker in workers}, capture)
        self.assertEqual([c["capture_id"] for c in self.captures_of(name)], [capture_id])
        return capture

    # -- the kinds -----------------------------------------------------------------------------------------------

    def test_worker_died(self):
        workers = self.start(f'[died]\nwhen = "worker-died"\n{RECORD}')
        stopped, killed = workers
        gone = killed.pid
        killed.kill()
        self.check_capture("died", f"i-0002 pid {gone}: the process ended without closing its runtime", [stopped])

    def test_a_worker_that_ends_in_good_order_has_not_died(self):
        # The third is there for the capture: one without workers does not begin, and does not count.
        workers = self.start(f'[died]\nwhen = "worker-died"\n{RECORD}', instances=3)
        self.assertEqual(workers[0].stop(), 0)
        workers[1].kill()
        trigger = self.wait_for_trigger("died")
        self.assertIn("i-0002", trigger["last_cause"])
        self.assertNotIn("more)", trigger["last_cause"])

    def test_post(self):
        workers = self.start(f'[alert]\nwhen = "post"\n{RECORD}\n[died]\nwhen = "worker-died"\n{RECORD}')
        self.assertEqual(self.post("aggregator", "alarm")[0], 404)
        self.assertEqual(self.post("aggregator", "died")[0], 404)
        self.assertEqual(self.post("aggregator", "alert", headers={"Origin": "http://x.example"})[0], 403)
        self.assertEqual(self.post("aggregator", "alert", "x" * 5000)[0], 413)
        code, body, _ = self.post("aggregator", "alert", "loss is nan")
        self.assertEqual(code, 202)
        capture = self.check_capture("alert", "POST: loss is nan", workers)
        self.assertIn(capture["capture_id"], body)
        code, body, headers = self.post("aggregator", "alert")
        self.assertEqual(code, 429, body)
        self.assertIn("cool-down period", body)
        self.assertLessEqual(int(headers["Retry-After"]), 3601)
        done = self.fleet.cli("triggers", "fire", "alert", codes=(1,))
        self.assertIn("cool-down period", done.stderr)
        self.assertEqual(len(self.captures_of("alert")), 1)

    def test_post_at_an_agent(self):
        workers = self.start(f'[alert]\nwhen = "post"\n{RECORD}')
        self.assertEqual(self.post("i-0001", "alarm")[0], 404)
        self.assertEqual(self.post("i-0001", "alert", "from the node")[0], 202)
        self.check_capture("alert", "i-0001: POST: from the node", workers)
        self.assertEqual(self.post("i-0001", "alert")[0], 429)

    def stream_and_stall(self):
        """Events leave the workers, as long as medians take to be known; then one rank stops in an execution."""
        capture_id = self.start_capture("--continuous", "--keep", "5m")
        self.wait_for_events(capture_id, 40_000)
        (self.fleet.dir / "stall").touch()
        return capture_id

    def test_slow_execution(self):
        workers = self.start(f'[slow]\nwhen = "slow-execution"\ntimes-median = 3\n{RECORD}',
                             options=("--stall-rank", 3, "--stall-file", self.fleet.dir / "stall"))
        blind = self.triggers()["slow"]["last_problem"]
        self.assertIn("sees no events now", blind)
        continuous = self.stream_and_stall()
        capture = self.check_capture("slow", "i-0002 pid .* nc 1: execution .* has not ended after", workers)
        # It has what came after; the other one what came before, and says what it has not.
        self.assertEqual(capture["spec"].get("mode", "CAPTURE_MODE_STREAM"), "CAPTURE_MODE_STREAM")
        self.assertIn(f"; earlier events are in continuous capture {continuous}, for 5m", capture["spec"]["cause"])
        words = f"capture {capture['capture_id']} had the worker"

        def all_report_it():
            certificate = self.fleet.show_capture(continuous)["certificate"]
            notes = [n for n in certificate.get("notes", []) if words in n]
            return certificate if len(notes) == len(workers) else None
        certificate = wait_until(all_report_it, "the certificate to say what it has not")
        self.assertIn("except while other captures used 2 workers", certificate["verdict"])
        suspended = [w for w in certificate["workers"] if w["suspensions"]]
        self.assertEqual(len(suspended), len(workers))
        for suspension in (s for w in suspended for s in w["suspensions"]):
            self.assertLess(int(suspension["begin_ns"]), int(suspension["end_ns"]))
        for note in certificate["notes"]:
            if words in note:
                self.assertRegex(note, r"pid \d+.* did not record from 20\S+ \S+Z to 20\S+ \S+Z \(\d+\.\d s\): ")

    def test_silent_core(self):
        workers = self.start(f'[silent]\nwhen = "silent-core"\nsilent-for = "2s"\n{RECORD}',
                             options=("--stall-rank", 1, "--stall-file", self.fleet.dir / "stall"))
        self.stream_and_stall()
        self.check_capture("silent", "i-0001 pid .* nc 1: no events for", workers)

    # -- what came before ----------------------------------------------------------------------------------------

    def test_snapshot_with_flight_recorder(self):
        workers = self.start(f'[alert]\nwhen = "post"\n{RECORD}')
        self.fleet.cli("flight-recorder", "on")
        self.wait_for_more_work(workers, executions=20)
        self.assertEqual(self.post("aggregator", "alert", "why")[0], 202)
        capture = self.check_capture("alert", "POST: why", workers)
        self.assertEqual(capture["spec"]["mode"], "CAPTURE_MODE_SNAPSHOT")

    # -- the file ------------------------------------------------------------------------------------------------

    def test_a_bad_new_file_leaves_the_rules_before(self):
        self.start(f'[alert]\nwhen = "post"\n{RECORD}', instances=1)
        path = self.write_rules('[alert]\nwhen = "post"\nper-hour = "many"\n')
        self.fleet.aggregator.signal(signal.SIGHUP)
        reply = wait_until(lambda: (r := self.fleet.cli_json("triggers")).get("problem") and r, "the problem")
        self.assertIn(f'{path}:3:1: [alert]: per-hour = "many"', reply["problem"])
        self.assertEqual([t["rule"]["name"] for t in reply["triggers"]], ["alert"])
        self.write_rules(f'[alert]\nwhen = "post"\n{RECORD}[other]\nwhen = "post"\n{RECORD}')
        # Nobody says that it has changed.
        wait_until(lambda: self.fleet.agents["i-0001"].metric("neurontrace_agent_trigger_rules") == 2,
                   "the new rules at the agent")
        self.assertEqual(self.fleet.cli_json("triggers").get("problem", ""), "")

    def test_restart_keeps_cool_down(self):
        self.start(f'[alert]\nwhen = "post"\n{RECORD}', instances=1)
        self.assertEqual(self.post("aggregator", "alert")[0], 202)
        self.wait_for_trigger("alert")
        self.fleet.aggregator.kill()
        self.fleet.start_aggregator("--triggers", self.fleet.dir / "triggers")
        self.fleet.wait_for_status(1)
        code = self.post("aggregator", "alert")[0]
        self.assertIn(code, (202, 429))  # the same event, or the cool-down period
        self.assertEqual(len(self.captures_of("alert")), 1)
        self.assertEqual(int(self.triggers()["alert"].get("fired", 0)), 1)


if __name__ == "__main__":
    suite.main()
