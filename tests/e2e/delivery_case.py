# SPDX-License-Identifier: Apache-2.0
"""What the tests of exports that the aggregator writes have in common, into directories and into buckets."""
import hashlib
import json
import os
import pathlib
import subprocess

from fleet_case import FleetCase

SESSION = "1776672348756756905"


class DeliveryCase(FleetCase):
    """Captures with artifacts, and what a reader of a destination looks at."""

    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.fleet.dir, "volume")
        self.root.mkdir()
        self.artifacts = {}  # of the capture, by their paths

    def start(self, *options):
        self.fleet.start_aggregator("--export-root", self.root, *options)

    def capture(self, artifacts=None, instances=2):
        """The id of a capture of some instances that has ended, with `artifacts` (name to content) of the first."""
        inspected = self.fleet.dir / "inspect"
        inspected.mkdir()
        names = [f"i-{i:04x}" for i in range(1, instances + 1)]
        self.start_instances(*names, agent_options=("--inspect-dir", inspected))
        for i, name in enumerate(names):
            self.fleet.start_worker(name, "--cores", 2, "--rank-start", 2 * i, "--world-size", 2 * instances,
                                    "--mix", "graph", "--executions-per-second", 20)
        self.fleet.wait_for_workers(instances)
        capture_id = self.start_capture()
        self.wait_for_events(capture_id, 200)
        folder = inspected / f"{names[0]}_pid_7" / SESSION
        folder.mkdir(parents=True)
        for name, content in (artifacts or {}).items():
            (folder / name).write_bytes(content)
            self.artifacts[str((folder / name).relative_to(inspected))] = content
        self.assertEqual(int(self.stop_capture(capture_id).get("artifacts", 0)), len(self.artifacts))
        return capture_id

    def begin(self, *arguments, fleet=None):
        """A command that continues while the test does."""
        fleet = fleet or self.fleet
        command = [str(fleet.program("neurontrace")), "--aggregator", fleet.address, *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL, env={**os.environ, "NEURONTRACE_CONFIG": ""})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def check_steps(self, destination, capture_id):
        """Every file that the manifest names is there, as it says, and every artifact in its place; returns it."""
        manifest = json.loads((destination / f"neurontrace_{capture_id}" / "manifest.json").read_text())
        self.assertTrue(manifest["complete"])
        for step in manifest["steps"]:
            self.assertTrue(step["done"], step["name"])
            for file in step["files"]:
                content = (destination / file["name"]).read_bytes()
                self.assertEqual(len(content), file["bytes"], file["name"])
                self.assertEqual(hashlib.sha256(content).hexdigest(), file["sha256"], file["name"])
        for path, content in self.artifacts.items():
            self.assertTrue((destination / path).read_bytes() == content, f"{path} is not the artifact")
        return manifest

    def check_whole(self, destination, capture_id):
        """As check_steps, and there is nothing else."""
        manifest = self.check_steps(destination, capture_id)
        named = {file["name"] for step in manifest["steps"] for file in step["files"]}
        subprocess.run(["sha256sum", "--check", "--quiet", f"neurontrace_{capture_id}/SHA256SUMS"], cwd=destination,
                       check=True)
        there = {str(path.relative_to(destination)) for path in destination.rglob("*") if path.is_file()}
        about = {f"neurontrace_{capture_id}/manifest.json", f"neurontrace_{capture_id}/SHA256SUMS"}
        self.assertEqual(there, named | about, "nothing temporary is left, no claim either")
        return manifest

    def check_one_or_both(self, processes):
        """Of exports at once each wrote all of it, or was told who writes; at least one wrote. Returns how many."""
        written = 0
        for process in processes:
            _, error = process.communicate(timeout=120)
            if process.returncode == 0:
                written += 1
                continue
            self.assertEqual(process.returncode, 1, error)
            self.assertRegex(error, "is being written by export [0-9a-f]{16} of aggregator agg-|is being claimed by")
            self.assertNotIn("Check that neurontrace-aggregator runs there", error)
        self.assertGreaterEqual(written, 1)
        return written
