# SPDX-License-Identifier: Apache-2.0
"""What agents record besides the runtime: processors and memory of their hosts, files of the vendor's profiler."""
import collections
import contextlib
import hashlib
import json
import os
import socket
import socketserver
import threading

import suite
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


class Gate(socketserver.ThreadingTCPServer):
    """Passes connections on to an address. Once so many bytes have gone there it passes no more, until it is opened."""

    daemon_threads = True

    def __init__(self, goal, bytes_max):
        super().__init__(("127.0.0.1", 0), GatedConnection)
        self.address = f"127.0.0.1:{self.server_address[1]}"
        self.goal = goal
        self.bytes_left = bytes_max
        self.changed = threading.Condition()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def take(self, count):
        with self.changed:
            self.changed.wait_for(lambda: self.bytes_left >= count)
            self.bytes_left -= count

    def open(self):
        with self.changed:
            self.bytes_left = float("inf")
            self.changed.notify_all()

    def stop(self):
        self.open()
        self.shutdown()
        self.server_close()


class GatedConnection(socketserver.BaseRequestHandler):
    def handle(self):
        host, port = self.server.goal.rsplit(":", 1)
        try:
            onward = socket.create_connection((host, int(port)))
        except OSError:
            return  # nobody is there just now
        with onward:
            back = threading.Thread(target=self.pump, args=(onward, self.request, lambda count: None), daemon=True)
            back.start()
            self.pump(self.request, onward, self.server.take)
            back.join()

    @staticmethod
    def pump(source, sink, take):
        try:
            while data := source.recv(1 << 16):
                take(len(data))
                sink.sendall(data)
        except OSError:
            pass  # one of the two is gone, and so is the connection
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class ArtifactsTest(FleetCase):
    """Files of the vendor's profiler under a directory that all instances share."""

    def setUp(self):
        super().setUp()
        self.out = self.fleet.dir / "inspect"
        self.out.mkdir()

    def start(self, *names, gated_at=None):
        """A capture of a worker on each instance, with its agent: behind a gate (below) if it is to be."""
        self.fleet.start_aggregator()
        self.gate = None if gated_at is None else Gate(self.fleet.address, gated_at)
        if self.gate is not None:
            self.addCleanup(self.gate.stop)
        for name in names:
            self.fleet.start_agent(name, "--inspect-dir", self.out, aggregator=self.gate and self.gate.address)
            self.fleet.start_worker(name, "--cores", 1)
        self.fleet.wait_for_workers(len(names))
        capture_id = self.start_capture()
        # What is armed begins a little later, and would take nothing if it were stopped before.
        self.wait_for_events(capture_id, len(names))
        return capture_id

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
        self.assertEqual(self.fleet.aggregator.metric("neurontrace_aggregator_artifact_bytes_total"),
                         sum(map(len, hashes.values())), "what both have came once")
        self.assertIn("artifacts   10 files", self.fleet.cli("captures", "show", capture_id).stdout)
        self.check_device_profiles(capture_id, [path for path in written if path.suffix == ".ntff"])
        self.fleet.cli("captures", "delete", capture_id)
        self.assertEqual(self.kept(), {})

    def check_device_profiles(self, capture_id, paths):
        """The JSON export lists them by their names."""
        out = self.fleet.dir / "trace.json"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        with open(out, encoding="utf-8") as file:
            listed = json.load(file)["device_profile_list"]
        self.assertEqual(len(paths), 2)
        self.assertEqual(sorted(listed, key=lambda profile: profile["path"]), [
            {"device_profile_name": f"{path.parts[-3]}_nc_0_session_1", "instance_id": path.parts[-3].split("_pid_")[0],
             "process_id": int(path.parts[-3].split("_")[2]), "nc_id": 0, "session_id": 1,
             "path": "/".join(path.parts[-3:])} for path in sorted(paths)])

    def test_resumes_broken_upload(self):
        capture_id = self.start("i-0001", gated_at=16 << 20)
        content = os.urandom(1 << 20) * 64
        name = self.write("i-0001_pid_7", "profile_nc_0_session_1.ntff", content)
        partial = self.fleet.dir / "store" / "artifacts" / "partial" / name
        wait_until(lambda: partial.exists() and partial.stat().st_size > 8 << 20, "a part of the file", 60)
        self.fleet.aggregator.kill()
        come = partial.stat().st_size
        self.assertLess(come, len(content), "the gate has kept the rest back")
        self.gate.open()
        self.fleet.start_aggregator()
        wait_until(lambda: name in self.kept(), "the file", 60)
        self.assertEqual(self.kept()[name].read_bytes(), content)
        self.assertLessEqual(self.fleet.aggregator.metric("neurontrace_aggregator_artifact_bytes_total"),
                             len(content) - come, "what had come was not sent again")
        self.assertEqual(int(self.stop_capture(capture_id, code=None)["artifacts"]), 1)


if __name__ == "__main__":
    suite.main()
