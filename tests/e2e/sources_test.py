# SPDX-License-Identifier: Apache-2.0
"""What agents record besides the runtime: the processors and the memory of their hosts."""
import collections
import json
import unittest

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


if __name__ == "__main__":
    unittest.main()
