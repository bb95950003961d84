# SPDX-License-Identifier: Apache-2.0
"""The Helm chart, rendered by the real helm and compared with the real schemas."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import suite

try:
    import yaml
except ImportError:
    yaml = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "deploy" / "helm" / "neurontrace"
GOLDEN = ROOT / "tests" / "deploy" / "golden"
KUBERNETES = "1.36.0"
POLICIES = "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"
# The least that has to be said.
MINIMAL = {"image": {"registry": "registry.example"}, "tls": {"certManager": {"enabled": True}}}


def find_tools():
    """The folder of helm and the others, or why there is none."""
    if yaml is None:
        return None, "there is no Python package yaml: Debian's python3-yaml"
    folder, why = suite.built_by("setup_helm")
    return pathlib.Path(folder) if folder else None, why


def blocks(path, heading):
    """The commands and files that a page gives under a heading."""
    text = path.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"(?ms)^```\w*\n(.*?)^```$", text)


def merged(values, more):
    """Like helm's own: objects field by field, all else in its place."""
    result = dict(values)
    for name, value in more.items():
        both = isinstance(value, dict) and isinstance(result.get(name), dict)
        result[name] = merged(result[name], value) if both else value
    return result


def key(thing):
    return thing["kind"], thing["metadata"]["name"]


def pod_of(thing):
    """The pod that a workload makes, as its template; nothing for all else."""
    return thing["spec"]["template"] if thing["kind"] in ("DaemonSet", "StatefulSet", "Job") else None


def containers_of(thing):
    pod = pod_of(thing)
    return pod["spec"].get("initContainers", []) + pod["spec"]["containers"] if pod else []


class ChartCase(unittest.TestCase):
    """Left out, with words, where scripts/setup_helm could not build what this needs; in continuous integration a failure."""

    # {(values, words, chart): text}, of all tests of a process: each render takes a program of its own.
    renders_made = {}

    def setUp(self):
        self.tools, why = find_tools()
        if not self.tools:
            suite.skip_without_setup(why)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="neurontrace-chart-"))
        self.addCleanup(shutil.rmtree, self.dir)

    def helm(self, *words, values=None, chart=CHART):
        file = self.dir / "values.json"
        file.write_text(json.dumps(values or {}), encoding="utf-8")
        command, *rest = words
        release = ["neurontrace"] if command == "template" else []
        # A home of its own: no plugin and no repository of who runs this has a say.
        environment = {"HOME": str(self.dir), "PATH": "/usr/bin:/bin"}
        return subprocess.run([self.tools / "helm", command, *release, chart, "--namespace", "neurontrace", "--values", file,
                               "--kube-version", KUBERNETES, *rest],
                              capture_output=True, text=True, check=False, env=environment)

    def render(self, more=None, *words, chart=CHART):
        """What the minimal values with `more` come to, as text."""
        values = merged(MINIMAL, more or {})
        asked = json.dumps(values, sort_keys=True), words, chart
        if asked not in self.renders_made:
            done = self.helm("template", *words, values=values, chart=chart)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.renders_made[asked] = done.stdout
        return self.renders_made[asked]

    def things(self, more=None, *words):
        return self.parse(self.render(more, *words))

    @staticmethod
    def parse(text):
        return {key(thing): thing for thing in yaml.safe_load_all(text) if thing}

    def refusal(self, values):
        """The words with which such values are refused."""
        done = self.helm("template", values=values)
        self.assertNotEqual(done.returncode, 0, "such values are taken")
        return done.stderr

    def find_faults(self, texts):
        """What the schemas do not allow, over all of {name: manifests}."""
        folder = self.dir / "renders"
        folder.mkdir(exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        schemas = f"{self.tools}/schemas/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
        done = subprocess.run([self.tools / "kubeconform", "-strict", "-schema-location", schemas, folder],
                              capture_output=True, text=True, check=False)
        shutil.rmtree(folder)
        self.assertEqual(done.stderr, "")
        return done.stdout
