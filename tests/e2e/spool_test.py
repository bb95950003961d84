# SPDX-License-Identifier: Apache-2.0
"""The agent's spool in a real fleet: what it keeps while there is no aggregator, through kill -9 and restarts."""

import json
import os
import shutil
import subprocess

import suite
from fleet import wait_until
from fleet_case import FleetCase
from ground_truth import compare, read_capture_log

INSTANCE = "i-0001"
TAP_BUFFER_BYTES = 16 << 20  # some seconds: longer than a tap takes to find its next agent


class SpoolTest(FleetCase):

    def spool_check(self, code=0):
        done = subprocess.run(
            [self.fleet.program("neurontrace-agent"), "--spool-check", self.fleet.spool_of(INSTANCE), "--output", "json"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def spooled_chunks(self, report=None):
        report = report or self.spool_check()
        return sum(segment["chunks"] for segment in report["segments"])

    def begin(self, *agent_options):
        """A fleet whose aggregator is gone in the middle of a capture."""
        self.start_instances(INSTANCE, agent_options=agent_options)
        worker = self.fleet.start_worker(INSTANCE, "--cores", 2, "--rank-start", 0, "--world-size", 2, "--mix", "graph",
                                         "--executions-per-second", 50)
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture("--name", "spooled")
        self.wait_for_events(capture_id, 1_000)
        self.fleet.aggregator.kill()
        return worker, capture_id

    def wait_for_spool(self, chunks):
        wait_until(lambda: self.spooled_chunks() >= chunks, f"{chunks} chunks in the spool", 60)

    def test_agent_killed_with_a_full_spool_delivers_everything_once(self):
        self.fleet.host_samples = True
        worker, capture_id = self.begin()
        self.wait_for_spool(20)
        for _ in range(3):
            self.fleet.agents[INSTANCE].kill()
            self.fleet.start_agent(INSTANCE).wait_for_line("spool: ")
            self.assertGreaterEqual(self.spooled_chunks(), 20)
        self.fleet.start_aggregator()
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        self.wait_for_more_work([worker])
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture)
        host, = capture["certificate"]["hosts"]
        self.assertTrue(host["ended"])
        self.assertIn(f"the host {INSTANCE} was not sampled continuously", " ".join(capture["certificate"]["notes"]))
        self.check_whole(capture_id)
        wait_until(lambda: self.spool_check()["segments"] == [], "the spool to be empty")

    def test_agent_that_starts_without_an_aggregator_continues_a_capture(self):
        self.start_instances(INSTANCE)
        worker = self.fleet.start_worker(INSTANCE, "--cores", 2, "--rank-start", 0, "--world-size", 2, "--mix", "graph",
                                         "--executions-per-second", 50,
                                         env={"NEURONTRACE_TAP_BUFFER_BYTES": str(TAP_BUFFER_BYTES)})
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture("--name", "alone")
        self.wait_for_events(capture_id, 1_000)
        self.fleet.aggregator.kill()
        for _ in range(3):
            self.fleet.agents[INSTANCE].kill()
            self.fleet.start_agent(INSTANCE).wait_for_line("continues")
            # More than the tap could hold for an agent that does not read.
            wait_until(lambda: self.metric("neurontrace_agent_document_bytes_total") > 1.25 * TAP_BUFFER_BYTES,
                       "the tap to be read", 120)
        self.fleet.start_aggregator()
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        self.wait_for_more_work([worker])
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture)
        self.check_whole(capture_id)
        wait_until(lambda: self.spool_check()["segments"] == [], "the spool to be empty")

    def test_aggregator_with_another_store_gets_nothing_and_costs_nothing(self):
        worker, capture_id = self.begin()
        self.wait_for_spool(10)
        first = self.spool_check()["aggregator_id"]
        store, aside = self.fleet.dir / "store", self.fleet.dir / "aside"
        store.rename(aside)
        self.fleet.start_aggregator()
        agent = self.fleet.agents[INSTANCE]
        agent.wait_for_line("which has a different store")
        wait_until(lambda: self.metric("neurontrace_agent_aggregators_refused_total") >= 2, "a second try", 30)
        self.assertGreaterEqual(self.spooled_chunks(), 10)
        agent.kill()
        self.fleet.start_agent(INSTANCE).wait_for_line("which has a different store")
        self.assertEqual(self.spool_check()["aggregator_id"], first)
        # Back with its store, and elsewhere: another address is the same aggregator.
        self.fleet.aggregator.kill()
        shutil.rmtree(store)
        aside.rename(store)
        self.fleet.address = None
        self.fleet.start_aggregator()
        self.fleet.agents[INSTANCE].kill()
        self.fleet.start_agent(INSTANCE)
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        self.wait_for_more_work([worker])
        self.assertEqual(self.stop_capture(capture_id)["state"], "CAPTURE_STATE_COMPLETE")
        self.check_whole(capture_id)

    def test_adopts_other_store_when_configured(self):
        self.begin()
        self.wait_for_spool(10)
        first = self.spool_check()["aggregator_id"]
        shutil.rmtree(self.fleet.dir / "store")
        self.fleet.start_aggregator()
        self.fleet.agents[INSTANCE].kill()
        self.fleet.start_agent(INSTANCE, "--spool-adopt")
        wait_until(lambda: self.spool_check()["segments"] == [], "the spool to be empty")
        self.assertNotIn(self.spool_check()["aggregator_id"], ("", first))
        self.fleet.wait_for_status(1)

    def test_worker_that_ended_meanwhile_is_delivered_by_the_next_agent(self):
        worker, capture_id = self.begin()
        self.wait_for_spool(10)
        self.assertEqual(worker.stop(), 0)
        fetched = sum(row["fetched"] for row in read_capture_log(worker.capture_log).values())
        wait_until(lambda: self.metric("neurontrace_agent_events_decoded_total") >= fetched, "all to be read")
        self.assertEqual(self.fleet.agents[INSTANCE].stop(), 0)
        self.fleet.start_agent(INSTANCE)
        self.fleet.start_aggregator()
        self.fleet.wait_for_status(1)
        self.stop_capture(capture_id, code=None)
        self.check_whole(capture_id)

    def test_term_leaves_the_rest_in_the_spool(self):
        _, capture_id = self.begin()
        agent = self.fleet.agents[INSTANCE]
        self.assertEqual(agent.stop(10), 0)
        report = self.spool_check()
        self.assertGreater(self.spooled_chunks(report), 0)
        self.assertTrue(report["sound"])
        # The same spool under another name of its directory, as after a move to another disk.
        moved = self.fleet.dir / "moved"
        shutil.move(self.fleet.spool_of(INSTANCE), moved)
        self.fleet.start_aggregator()
        self.fleet.start_agent(INSTANCE, "--spool", moved)
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        self.stop_capture(capture_id)
        self.check_whole(capture_id)

    def test_small_spool_drops_the_oldest_and_counts_it(self):
        _, capture_id = self.begin("--spool-bytes", "1MiB", "--spool-capture-bytes", "1MiB")
        wait_until(lambda: self.metric("neurontrace_agent_spool_segments_dropped_total") > 2, "dropped segments", 120)
        self.fleet.agents[INSTANCE].kill()
        self.fleet.start_agent(INSTANCE)
        self.fleet.start_aggregator()
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        capture = self.stop_capture(capture_id, code=None)
        losses = {}
        for stream in capture["streams"]:
            for loss in stream.get("losses", []):
                losses[loss["place"]] = losses.get(loss["place"], 0) + int(loss.get("events", 0))
        self.assertEqual(set(losses), {"LOSS_PLACE_SPOOL"}, capture)
        self.fleet.workers[0].stop()
        stored = int(capture["events"])
        result = compare(self.fleet.workers, self.fleet.export_events(capture_id))
        self.assertEqual((result.extra, result.twice, result.wrong_rank), (0, 0, 0), result)
        self.assertEqual(result.missing, losses["LOSS_PLACE_SPOOL"], result)
        self.assertEqual(result.expected, stored + losses["LOSS_PLACE_SPOOL"])

    def metric(self, name):
        return self.fleet.agents[INSTANCE].metric(name)

    def test_check_finds_damage_and_the_agent_lives_with_it(self):
        _, capture_id = self.begin()
        self.wait_for_spool(20)
        self.fleet.agents[INSTANCE].kill()
        segment = sorted(self.fleet.spool_of(INSTANCE).glob("*/*.seg"))[0]
        with open(segment, "r+b") as file:
            file.seek(os.path.getsize(segment) // 3)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 0x40]))
        report = self.spool_check(code=1)
        self.assertFalse(report["sound"])
        self.fleet.start_agent(INSTANCE)
        self.fleet.start_aggregator()
        self.fleet.wait_for_workers(1, "WORKER_STATE_STREAMING")
        capture = self.stop_capture(capture_id, code=None)
        lost = sum(int(loss.get("events", 0)) for stream in capture["streams"] for loss in stream.get("losses", [])
                   if loss["place"] == "LOSS_PLACE_SPOOL")
        self.assertGreater(lost, 0, capture)


if __name__ == "__main__":
    suite.main(verbosity=2)
