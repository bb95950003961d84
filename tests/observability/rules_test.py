# SPDX-License-Identifier: Apache-2.0
"""Alerts, their runbooks and the dashboards: promtool accepts and tests them, and they use nothing that is not there."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import suite
from promtool import ROOT, documented, series_of

FOLDER = ROOT / "deploy" / "observability"
RUNBOOKS = ROOT / "docs" / "operator" / "runbooks.md"
PARTS = ("Meaning", "Impact", "Check", "Fix")
OWN_LABELS = {"job", "instance"}  # that Prometheus adds
SELECTOR = re.compile(r"\b((?:neurontrace|process)_\w+|up)\b(?:\{([^}]*)\})?")


def alerts():
    """{name: expression} of alerts.yaml, which has one form of YAML only."""
    text = (FOLDER / "alerts.yaml").read_text()
    found = {}
    for name, rest in re.findall(r"^      - alert: (\w+)\n((?:        .*\n)+)", text, re.MULTILINE):
        found[name] = re.search(r"expr: (.*\n(?:          .*\n)*)", rest).group(1)
    return found


def dashboards():
    return {path.name: json.loads(path.read_text()) for path in sorted((FOLDER / "dashboards").glob("*.json"))}


def queries(dashboard):
    """[(panel, expression, legend)]"""
    return [(panel["title"], target["expr"], target["legendFormat"])
            for panel in dashboard["panels"] for target in panel.get("targets", ())]


class Rules(unittest.TestCase):
    def setUp(self):
        self.program, self.why = suite.built_by("setup_promtool")
        self.series = {**series_of(documented()), "up": frozenset()}

    def promtool(self, *arguments, cwd=FOLDER):
        if not self.program:
            suite.skip_without_setup(self.why)
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, check=False, cwd=cwd)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def check_names(self, expression, where):
        """Metrics, labels that are selected by and labels that are summed by are documented."""
        used = SELECTOR.findall(expression)
        self.assertTrue(used, f"{where}: no metric in {expression}")
        labels = set(OWN_LABELS)
        for name, selectors in used:
            self.assertIn(name, self.series, where)
            known = self.series[name] | OWN_LABELS
            labels |= known
            self.assertEqual(set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selectors)) - known, set(), f"{where}: {name}")
        for grouped in re.findall(r"\b(?:by|without|on|ignoring) \(([^)]*)\)", expression):
            self.assertEqual({label.strip() for label in grouped.split(",")} - labels, set(), where)
        return labels

    def test_alerts_are_accepted(self):
        self.assertIn(f"SUCCESS: {len(alerts())} rules found", self.promtool("check", "rules", "alerts.yaml"))

    def test_alerts_fire_when_they_should_and_not_else(self):
        self.promtool("test", "rules", "alerts_test.yaml")
        text = (FOLDER / "alerts_test.yaml").read_text()
        cases = dict(re.findall(r"^  - name: (\w+)\n(.*?)(?=^  - name|\Z)", text, re.MULTILINE | re.DOTALL))
        self.assertEqual(list(cases), list(alerts()))
        for name, case in cases.items():  # one instance that fires, and one that is in order
            fires, quiet = case.split("      # in order\n")
            instances = [set(re.findall(r"instance=\"([^\"]+)\"", half)) for half in (fires, quiet)]
            self.assertEqual([len(each) for each in instances], [1, 1], name)
            self.assertNotEqual(*instances, name)
            self.assertEqual(case.count("- exp_labels:"), 1, name)

    def test_further_cases(self):
        self.promtool("test", "rules", "alerts_cases_test.yaml")

    def test_descriptors_are_counted_as_the_aggregator_does(self):
        limits = dict(re.findall(r"(?:int|uint64_t) (k\w+) = ([\d']+);", (ROOT / "lib" / "trace" / "access_limits.h").read_text()))
        rule = alerts()["NeurontraceFewDescriptors"]
        for name in ("kDescriptorsForFiles", "kGrpcConnectionsMax"):
            self.assertIn(f", {limits[name].replace(chr(39), '')})", rule, name)

    def test_what_is_inhibited_is_there_and_inhibits_nothing_in_a_circle(self):
        text = (FOLDER / "alertmanager.yaml").read_text()
        found = re.findall(r"^  - source_matchers: (.*)\n    target_matchers:\n      - (.*)\n    equal: \[cluster", text,
                           re.MULTILINE)
        self.assertEqual(len(found), text.count("source_matchers"))
        inhibited = {}
        for source, target in found:
            sources, targets = (set(re.findall(r"Neurontrace\w+", half)) for half in (source, target))
            self.assertEqual((sources | targets) - alerts().keys(), set())
            for name in sources:
                inhibited.setdefault(name, set()).update(targets)
        for name, targets in inhibited.items():
            for target in targets:  # or both would be silent
                self.assertNotIn(name, inhibited.get(target, ()), f"{name} and {target}")

    @unittest.skipUnless(shutil.which("amtool"), "there is no amtool on the PATH")
    def test_the_example_of_alertmanager_is_accepted(self):
        done = subprocess.run(["amtool", "check-config", FOLDER / "alertmanager.yaml"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_sample_configuration_is_accepted(self):
        self.promtool("check", "config", "prometheus.yaml")

    def test_alerts_use_what_is_documented(self):
        for name, expression in alerts().items():
            self.check_names(expression, name)

    def test_every_alert_has_its_runbook_and_every_runbook_its_alert(self):
        text = RUNBOOKS.read_text()
        sections = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL))
        self.assertEqual(sorted(sections), sorted(alerts()))
        for name, section in sections.items():
            self.assertEqual(re.findall(r"^\*\*(\w+)\.\*\* ", section, re.MULTILINE), list(PARTS), name)
        for name in set(re.findall(r"neurontrace_(?:agent|aggregator)_\w+", text)):
            self.assertIn(name, self.series.keys() | documented().keys(), "named by a runbook")
        rules = (FOLDER / "alerts.yaml").read_text()
        for name in alerts():
            self.assertIn(f"runbook_url: docs/operator/runbooks.md#{name.lower()}\n", rules)

    def test_dashboards_are_as_they_are_made(self):
        done = subprocess.run([FOLDER / "make_dashboards.py", "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_dashboards_use_what_is_documented(self):
        self.assertEqual(len(dashboards()), 3)
        for file, dashboard in dashboards().items():
            for title, expression, legend in queries(dashboard):
                known = self.check_names(expression, f"{file}: {title}")
                self.assertEqual(set(re.findall(r"\{\{(\w+)\}\}", legend)) - known, set(), f"{file}: {title}")

    def test_queries_of_dashboards_are_promql(self):
        rules = []
        for file, dashboard in dashboards().items():
            for number, (_, expression, _) in enumerate(queries(dashboard)):
                for name, value in (("$__rate_interval", "5m"), ("$__range", "1h"), ("$instance_id", ".*"),
                                    ("$instance", ".*")):
                    expression = expression.replace(name, value)
                self.assertNotIn("$", expression)
                rules.append({"record": f"panel:{pathlib.Path(file).stem}:{number}", "expr": expression})
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "panels.json")  # JSON is YAML
            path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
            self.assertIn(f"SUCCESS: {len(rules)} rules found", self.promtool("check", "rules", path))


if __name__ == "__main__":
    suite.main()
