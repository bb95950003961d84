# SPDX-License-Identifier: Apache-2.0
"""What agent and aggregator serve at /metrics while they record is what docs/operator/metrics.md says, both ways: names, types and
labels. promtool has nothing to say against it."""

import re
import subprocess
from pathlib import Path

import suite
from fleet import FleetError, wait_until
from fleet_case import FleetCase
from promtool import THERE, Metric, documented

SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$")
HISTOGRAM_SERIES = re.compile(r"_(bucket|sum|count)$")


def read_exposition(text):
    """{name: Metric} of Prometheus text; `there` stays empty, and a family without a series is none."""
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    labels = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        name, pairs = SAMPLE.match(line).groups()
        family = HISTOGRAM_SERIES.sub("", name)
        family = family if types.get(family) == "histogram" else name
        found = set(re.findall(r'(\w+)="', pairs or ""))
        labels.setdefault(family, set()).update(found - {"le"} if family != name else found)
    return {name: Metric(types[name], frozenset(keys), "") for name, keys in labels.items()}


def old_names():
    """{old name: present name} of the metrics that CHANGELOG.md lists, which are served under both for one release."""
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\| `(neurontrace_\w+)` \| `(neurontrace_\w+)` \|$", text, re.MULTILINE))


class MetricsWhileRecording(FleetCase):
    def scrape_both(self):
        return "".join(process.ask("/metrics")[1] for process in (self.fleet.aggregator, *self.fleet.agents.values()))

    def record(self):
        """A capture that continues, until all is served that a capture brings; and what was served then."""
        self.start_fleet()
        capture = self.start_capture()
        self.wait_for_events(capture, 1)
        wanted = {name for name, metric in documented().items() if metric.there != "event"}

        def all_there():
            text = self.scrape_both()
            missing = wanted - read_exposition(text).keys()
            self.missing = sorted(missing)
            return None if missing else text
        try:
            return wait_until(all_there, "every metric that a capture brings")
        except FleetError as error:  # with the names, which is what the reader needs
            self.fail(f"{error}; documented and not served: {self.missing}")

    def test_what_is_served_is_what_is_documented(self):
        page = documented()
        self.assertEqual({metric.there for metric in page.values()} - set(THERE), set())
        served = read_exposition(self.record())
        for old, new in old_names().items():
            self.assertEqual(served.pop(old, None), served.get(new), f"{old} is an alias of {new}")
        self.assertEqual(sorted(served.keys() - page.keys()), [], "served and not documented")
        for name, metric in served.items():
            self.assertEqual((name, metric.type, metric.labels), (name, page[name].type, page[name].labels))

    def test_promtool_accepts_it(self):
        program, why = suite.built_by("setup_promtool")
        if not program:
            suite.skip_without_setup(why)
        self.record()
        printed = set()
        for process in (self.fleet.aggregator, *self.fleet.agents.values()):
            done = subprocess.run([program, "check", "metrics"], input=process.ask("/metrics")[1], capture_output=True,
                                  text=True, check=False)
            printed.update((done.stdout + done.stderr).splitlines())
        self.assertEqual(printed, set())


if __name__ == "__main__":
    suite.main()
