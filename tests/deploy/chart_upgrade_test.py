# SPDX-License-Identifier: Apache-2.0
"""The chart, compared with the charts before it: what Kubernetes cannot change in place stays the same."""
import copy
import re

import suite
from chart import CHART, GOLDEN, ROOT, ChartCase, pod_of


def what_cannot_change(thing):
    """The fields of an object that an upgrade must leave as they are."""
    spec = thing.get("spec", {})
    if thing["kind"] == "DaemonSet":
        return {"selector": spec["selector"]}
    if thing["kind"] == "StatefulSet":
        return {name: spec.get(name) for name in ("selector", "serviceName", "volumeClaimTemplates", "podManagementPolicy")}
    if thing["kind"] == "Service":
        return {"clusterIP": spec.get("clusterIP")}
    if thing["kind"] == "PersistentVolumeClaim":
        return {name: value for name, value in spec.items() if name != "resources"}
    if thing["kind"] == "StorageClass":
        return {name: thing.get(name) for name in ("provisioner", "parameters", "reclaimPolicy")}
    if thing["kind"] == "ClusterRoleBinding":
        return {"roleRef": thing["roleRef"]}
    return {}


def hindrances(before, after):
    """What would keep a release of `before` from an upgrade to `after`, or lose it its data."""
    found = []
    for name, thing in before.items():
        if name not in after:
            # Gone with its name: the store's claim, spool and certificates are known by these.
            if what_cannot_change(thing):
                found.append(f"{name} is gone")
            continue
        fields, now = what_cannot_change(thing), what_cannot_change(after[name])
        found += [f"{name}: {field} changed" for field in fields if fields[field] != now[field]]
    return found


class UpgradeTest(ChartCase):
    """previous/VERSION.yaml is what the chart of that version rendered from the minimal values; 0.1.0 is the first."""

    def previous(self):
        return {path.stem: self.parse(path.read_text(encoding="utf-8")) for path in (GOLDEN / "previous").glob("*.yaml")}

    def test_upgrades_change_nothing_that_cannot_be_changed(self):
        now = self.things()
        previous = self.previous()
        self.assertTrue(previous)
        for version, before in previous.items():
            self.assertEqual(hindrances(before, now), [], f"upgrade from {version}")

    def test_each_change_that_cannot_be_made_is_found(self):
        before = self.things()
        changes = {
            ("DaemonSet", "neurontrace-agent"): lambda spec: spec["selector"]["matchLabels"].update(a="b"),
            ("StatefulSet", "neurontrace-aggregator"): lambda spec: spec["volumeClaimTemplates"][0]["spec"].update(a="b"),
            ("Service", "neurontrace-aggregator-headless"): lambda spec: spec.pop("clusterIP"),
        }
        for name, change in changes.items():
            after = copy.deepcopy(before)
            change(after[name]["spec"])
            self.assertEqual(len(hindrances(before, after)), 1, name)
            del after[name]
            self.assertEqual(hindrances(before, after), [f"{name} is gone"])

    def test_pods_stay_those_of_their_objects(self):
        """What the previous version's selectors select of this version's pods: all of them."""
        now = self.things()
        for version, before in self.previous().items():
            for name, thing in before.items():
                if pod_of(thing):
                    wanted = thing["spec"]["selector"]["matchLabels"]
                    self.assertLessEqual(wanted.items(), pod_of(now[name])["metadata"]["labels"].items(), version)

    def test_versions_of_chart_and_programs_are_one(self):
        chart = (CHART / "Chart.yaml").read_text(encoding="utf-8")
        project = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        version = re.search(r"project\(neurontrace VERSION ([0-9.]+)", project).group(1)
        self.assertEqual(re.findall(r"(?m)^(?:version|appVersion): \"?([0-9.]+)", chart), [version, version])


if __name__ == "__main__":
    suite.main()
