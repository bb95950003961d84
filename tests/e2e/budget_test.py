# SPDX-License-Identifier: Apache-2.0
"""A capture with a budget that its worker exceeds: what is left out, where the trace says so, and the certificate's
note."""

import json

import suite
from fleet_case import FleetCase
from ground_truth import read_events
from pftrace_reader import Pftrace

INSTANCE = "i-0001"
ALLOCATIONS = ("nrt_tensor_free", "nrt_tensor_allocate", "nrt_dma_mem_alloc", "nrt_dma_mem_dealloc")


class BudgetTest(FleetCase):
    def test_worker_over_budget_records_less_and_trace_reports_it(self):
        self.start_instances(INSTANCE)
        worker = self.fleet.start_worker(INSTANCE, "--cores", 2, "--rank-start", 0, "--world-size", 2, "--mix", "eager",
                                         "--executions-per-second", 20)
        self.fleet.wait_for_workers(1)
        # Bytes rather than processor time: a machine's other work has no part in them.
        capture_id = self.start_capture("--all-events", "--budget-rate", "20KB/s")

        def notes_of(capture):
            return [note for note in capture["certificate"].get("notes", []) if "because the budget of" in note]

        def seen(capture):
            path = self.fleet.export_events(capture_id)
            rows = [row["event"] for row in read_events(path)]
            reported = [row for row in rows if row["event_type"] == "neurontrace.fidelity"]
            behind = max((row["timestamp_ns"] for row in reported), default=0)
            return reported and any(row["timestamp_ns"] > behind and row["event_type"] == "nc_exec_running" for row in rows)
        self.fleet.wait_for_capture(capture_id, seen, "a change of fidelity, and events behind it", seconds=60)
        capture = self.stop_capture(capture_id)
        worker.stop()

        # The certificate: complete, nothing lost, and a note of the worker.
        certificate = capture["certificate"]
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", certificate)
        self.assertTrue(certificate["complete"])
        self.assertEqual(certificate["account"]["lost"], "0")
        self.assertIn("1 worker omitted some to stay within the budget", certificate["verdict"])
        note, = notes_of(capture)
        self.assertRegex(note, rf"^{INSTANCE} pid {worker.pid} \(ranks 0-1\) recorded from \S+ \S+Z to \S+ \S+Z without "
                               r"\S.* because the budget of 20000 bytes/s is used up$")  # the poorest that there was

        # The events: each core is told about each change, and what is left out does not come behind it.
        rows = [row["event"] for row in read_events(self.fleet.export_events(capture_id))]
        for core in (0, 1):
            own = sorted((row for row in rows if row["nc_idx"] == core), key=lambda row: row["timestamp_ns"])
            reported = [row for row in own if row["event_type"] == "neurontrace.fidelity"]
            self.assertTrue(reported)
            first = reported[0]
            self.assertEqual((first["phase"], first["data"]["level"], first["data"]["reason"],
                              first["data"]["leaves_out"]), ("instant", 1, "bytes_budget", "allocation events"))
            self.assertGreater(first["data"]["bytes_per_second"], 20_000)
            before = [row for row in own if row["timestamp_ns"] < first["timestamp_ns"]]
            self.assertTrue(any(row["event_type"] in ALLOCATIONS for row in before))
            until = next((row["timestamp_ns"] for row in reported if row["data"]["level"] == 0), own[-1]["timestamp_ns"] + 1)
            behind = [row for row in own if first["timestamp_ns"] < row["timestamp_ns"] < until]
            self.assertTrue(behind)
            self.assertEqual([row for row in behind if row["event_type"] in ALLOCATIONS], [])

        # Other exports: an instant, and no loss.
        path = self.fleet.dir / "budget.pftrace"
        self.fleet.cli("export", capture_id, "-o", path)
        trace = Pftrace(path)
        instants = [entry for entry in trace.slices if entry.name == "neurontrace.fidelity"]
        self.assertEqual(len(instants), sum(row["event_type"] == "neurontrace.fidelity" for row in rows))
        self.assertTrue(all(entry.instant for entry in instants))
        self.assertIn("allocation events", json.dumps([entry.args for entry in instants]))
        self.assertEqual(trace.losses(), {})
        path = self.fleet.dir / "budget.json"
        self.fleet.cli("export", capture_id, "--format", "json", "-o", path)
        self.assertIn("neurontrace.fidelity", path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    suite.main()
