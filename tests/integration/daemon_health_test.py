# SPDX-License-Identifier: Apache-2.0
"""The state that agent and aggregator publish over HTTP: health, readiness with its reason, and metrics under their
documented names with values that agree with the capture."""

import re
import signal

import suite
from fleet import wait_until
from fleet_case import FleetCase

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")


def metrics(process):
    """Samples as {name: {labels: value}}."""
    status, text, _ = process.ask("/metrics")
    assert status == 200, text
    samples = {}
    for line in text.splitlines():
        if line.startswith("# "):
            continue
        name, labels, value = SAMPLE.match(line).groups()
        samples.setdefault(name, {})[labels or ""] = float(value)
    return samples


def total(samples, name):
    return sum(samples.get(name, {}).values())


class Health(FleetCase):
    def daemons(self):
        return {"agent": self.fleet.agents["i-0001"], "aggregator": self.fleet.aggregator}

    def test_healthy_and_ready(self):
        self.start_fleet()
        for process in self.daemons().values():
            self.assertEqual(process.ask("/healthz")[0], 200)
            wait_until(lambda p=process: p.ask("/readyz")[0] == 200, f"{process.name} to be ready")
            self.assertEqual(process.ask("/no-such-page")[0], 404)

    def test_an_agent_without_aggregator_is_alive_and_not_ready(self):
        self.start_fleet()
        self.fleet.aggregator.kill()
        agent = self.fleet.agents["i-0001"]
        status, text, _ = wait_until(lambda: next((answer for answer in [agent.ask("/readyz")] if answer[0] == 503), None),
                                  "the agent to notice")
        self.assertIn("aggregator", text)
        self.assertEqual(agent.ask("/healthz")[0], 200)
        self.fleet.start_aggregator()
        wait_until(lambda: agent.ask("/readyz")[0] == 200, "the agent to be ready again")

    def test_metrics_agree_with_the_capture(self):
        self.start_fleet(instances=1, workers=2)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 2000)
        events = int(self.stop_capture(capture_id)["events"])
        agent = wait_until(
            lambda: next((m for m in [metrics(self.daemons()["agent"])]
                          if total(m, "neurontrace_agent_events_stored_total") == events), None),
            "the agent's sums to be those of the capture")
        self.assertEqual(total(agent, "neurontrace_agent_events_decoded_total"), events)
        self.assertEqual(total(agent, "neurontrace_agent_core_events_total"), events)
        self.assertEqual(total(agent, "neurontrace_agent_events_lost_total"), 0)
        self.assertEqual(total(agent, "neurontrace_agent_workers"), 2)
        aggregator = metrics(self.daemons()["aggregator"])
        self.assertEqual(total(aggregator, "neurontrace_aggregator_events_stored_total"), events)
        wait_until(lambda: total(metrics(self.fleet.aggregator), "neurontrace_aggregator_agents_connected") == 1,
                   "the gauges to follow")
        self.check_whole(capture_id)

    def test_reports_canaries_and_headroom_during_capture(self):
        reported = {"neurontrace_agent_canary_age_seconds", "neurontrace_agent_canary_round_trip_seconds",
                "neurontrace_agent_ring_seconds_to_overwrite", "neurontrace_agent_tap_buffer_seconds_to_full"}
        self.start_fleet(instances=1, workers=2)
        agent = self.daemons()["agent"]
        self.assertFalse(reported & metrics(agent).keys(), "nothing is made up before there is a stream")
        capture_id = self.start_capture()
        samples = wait_until(lambda: next((m for m in [metrics(agent)] if reported <= m.keys()), None),
                             "canaries to come back, and rates to be known")
        for name in reported:
            for labels, seconds in samples[name].items():
                self.assertGreaterEqual(seconds, 0, f"{name}{{{labels}}}")
                self.assertLessEqual(seconds, 86400, f"{name}{{{labels}}}")
        self.assertLess(total(samples, "neurontrace_agent_canary_age_seconds"), 120)
        self.assertIn("neuroncore=", next(iter(samples["neurontrace_agent_ring_seconds_to_overwrite"])))
        self.assertGreater(total(metrics(self.fleet.aggregator), "neurontrace_aggregator_canaries_stored_total"), 0)
        age = "neurontrace_aggregator_canary_age_seconds"
        here = wait_until(lambda: next((m for m in [metrics(self.fleet.aggregator)] if age in m), None),
                          "the aggregator to report streams")
        self.assertLess(total(here, age), 120)
        self.assertGreater(total(here, "neurontrace_aggregator_streams_live"), 0)
        self.assertEqual(agent.ask("/readyz")[0], 200)
        self.assertIn("data flow", agent.ask("/readyz")[1])
        self.stop_capture(capture_id)
        wait_until(lambda: age not in metrics(self.fleet.aggregator), "no stream to be live at the aggregator")
        wait_until(lambda: not reported & metrics(agent).keys(), "what is over to be told no longer")
        self.check_whole(capture_id)

    def test_agent_reports_silent_aggregator(self):
        self.start_fleet()
        agent = self.daemons()["agent"]
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 1)
        self.fleet.aggregator.signal(signal.SIGSTOP)
        self.addCleanup(self.fleet.aggregator.signal, signal.SIGCONT)
        wait_until(lambda: "NOT upload: " in agent.ask("/readyz")[1], "the agent to say so", 60)
        self.assertGreaterEqual(total(metrics(agent), "neurontrace_agent_answer_wait_seconds"), 10)
        self.fleet.aggregator.signal(signal.SIGCONT)
        wait_until(lambda: agent.ask("/readyz")[0] == 200, "the agent to be ready again", 60)
        self.stop_capture(capture_id)
        self.check_whole(capture_id)


if __name__ == "__main__":
    suite.main()
