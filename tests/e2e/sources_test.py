# SPDX-License-Identifier: Apache-2.0
"""What agents record besides the runtime: the processors and the memory of their hosts."""
import collections
import hashlib
import json
import os
import unittest
import urllib.request

from fleet import wait_until
from fleet_case import FleetCase

CPU = {"cpu_id", "util_percent", "duration_ns"}
MEMORY = {"used_bytes", "used_percent", "total_bytes"}


def read_lines(path):
    """The lines of an export of the format `events`, without its first."""
    with open(path, encoding="utf-8") as file:
        next(file)
        return [json.loads(line) for line in file]


class HostSamplesTest(FleetCase):
    def test_hosts_are_sampled_while_a_capture_records_there(self):
        self.fleet.start_aggregator()
        for name in ("i-0001", "i-0002", "i-0003"):
            self.fleet.start_agent(name, host_samples=True)
        for name in ("i-0001", "i-0002"):
            self.fleet.start_worker(name, "--cores", 2)
        self.fleet.wait_for_workers(2)
        capture_id = self.start_capture()
        self.fleet.wait_for_capture(capture_id, lambda c: self.sampled(c) == 2, "samples of both hosts", 30)
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["certificate"]["verdict"])

        hosts = capture["certificate"]["hosts"]
        self.assertEqual([h["stream"]["worker"]["instance_id"] for h in hosts], ["i-0001", "i-0002"],
                         "where nothing records nothing is sampled")
        self.assertTrue(all(h["ended"] and not h.get("cut_short", False) for h in hosts))
        self.assertEqual(len(capture["certificate"]["workers"]), 2, "a host is no worker")
        of_workers = sum(int(s["events"]) for s in capture["streams"] if s["identity"]["kind"] != "STREAM_KIND_HOST")
        self.assertEqual(int(capture["events"]), of_workers, "samples are in no count of events")
        self.assertIn("hosts       2 sampled", self.fleet.cli("captures", "show", capture_id).stdout)
        self.check_events(capture_id)

    @staticmethod
    def sampled(capture):
        """How many hosts have samples in the store."""
        return sum(s["identity"]["kind"] == "STREAM_KIND_HOST" and int(s["events"]) > 0 for s in capture["streams"])

    def check_events(self, capture_id):
        lines = [line for line in read_lines(self.fleet.export_events(capture_id)) if line.get("host")]
        self.assertEqual({line["instance_id"] for line in lines}, {"i-0001", "i-0002"})
        seen = collections.defaultdict(set)
        for line in lines:
            self.assertEqual((line["pid"], line["nc_idx"], line["worker_gid"]), (0, -1, -1))
            event = line["event"]
            self.assertEqual(event["phase"], "counter")
            data = event["data"]
            if event["event_type"] == "host_cpu":
                self.assertEqual(set(data), CPU)
                self.assertTrue(0 <= data["util_percent"] <= 100, data)
                # Stopping cuts the last interval short; a busy machine makes one longer.
                self.assertTrue(1e8 <= data["duration_ns"] < 20e9, data)
                seen[event["timestamp_ns"], line["instance_id"]].add(data["cpu_id"])
            else:
                self.assertEqual(event["event_type"], "host_memory")
                self.assertEqual(set(data), MEMORY)
                self.assertTrue(0 < data["used_bytes"] < data["total_bytes"], data)
                self.assertAlmostEqual(data["used_percent"], 100 * data["used_bytes"] / data["total_bytes"], delta=0.01)
        with open("/proc/stat", encoding="utf-8") as file:
            processors = {line.split()[0][3:] or "average" for line in file if line.startswith("cpu")}
        self.assertTrue(any(ids == processors for ids in seen.values()), (processors, dict(seen)))
        self.assertTrue(all("average" in ids for ids in seen.values()))


class ArtifactsTest(FleetCase):
    """Files of the vendor's profiler under a directory that all instances share."""

    def setUp(self):
        super().setUp()
        self.out = self.fleet.dir / "inspect"
        self.out.mkdir()

    def start(self, *names):
        """A capture of a worker on each instance, with its agent."""
        self.fleet.start_aggregator()
        for name in names:
            self.fleet.start_agent(name, "--inspect-dir", self.out)
            self.fleet.start_worker(name, "--cores", 1)
        self.fleet.wait_for_workers(len(names))
        return self.start_capture()

    def metric(self, process, name):
        port = process.wait_for_line("health on port").rsplit(" ", 1)[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as reply:
            text = reply.read().decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))

    def kept(self):
        """Everything that the aggregator keeps, by its name."""
        return {path.name: path for path in (self.fleet.dir / "store" / "artifacts").glob("??/*")}

    def write(self, directory, name, content):
        folder = self.out / directory / "1776672348756756905"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        return hashlib.sha256(content).hexdigest()

    def test_files_of_profiled_workers_are_kept_once_and_go_with_their_captures(self):
        capture_id = self.start("i-0001", "i-0002")
        for name in ("i-0001", "i-0002"):
            worker = self.fleet.start_worker(name, "--cores", 1, tapped=False, env={
                "NEURON_RT_INSPECT_ENABLE": "1", "NEURON_RT_INSPECT_OUTPUT_DIR": str(self.out),
                "NEURON_RT_INSPECT_CPU_UTIL": "1", "FAKE_NRT_INSTANCE_ID": name})
            self.assertEqual(worker.stop(), 0)
        written = {path: path.read_bytes() for path in self.out.glob("*_pid_*/*/*")}
        self.assertEqual(len(written), 2 * 5, "each a NEFF, an NTFF and three .pb")
        capture = self.stop_capture(capture_id, code=None)
        self.assertEqual(int(capture["artifacts"]), 10)
        hashes = {hashlib.sha256(content).hexdigest(): content for content in written.values()}
        self.assertEqual(len(hashes), 9, "both have one NEFF")
        self.assertEqual(int(capture["artifact_bytes"]), sum(map(len, hashes.values())))
        self.assertEqual({name: path.read_bytes() for name, path in self.kept().items()}, hashes)
        self.assertIn("artifacts   10 files", self.fleet.cli("captures", "show", capture_id).stdout)
        self.fleet.cli("captures", "delete", capture_id)
        self.assertEqual(self.kept(), {})

    def test_broken_upload_goes_on_where_it_was(self):
        capture_id = self.start("i-0001")
        content = os.urandom(1 << 20) * 400
        name = self.write("i-0001_pid_7", "profile_nc_0_session_1.ntff", content)
        partial = self.fleet.dir / "store" / "artifacts" / "partial" / name
        wait_until(lambda: partial.exists() and partial.stat().st_size > len(content) // 10, "a part of the file", 60)
        self.fleet.aggregator.kill()
        come = partial.stat().st_size
        self.assertLess(come, len(content), "killed while it was received")
        self.fleet.start_aggregator()
        wait_until(lambda: name in self.kept(), "the file", 60)
        self.assertEqual(self.kept()[name].read_bytes(), content)
        self.assertLessEqual(self.metric(self.fleet.aggregator, "neurontrace_aggregator_artifact_bytes_total"),
                             len(content) - come, "what had come was not sent again")
        self.assertEqual(int(self.stop_capture(capture_id, code=None)["artifacts"]), 1)


if __name__ == "__main__":
    unittest.main()
