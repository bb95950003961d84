# SPDX-License-Identifier: Apache-2.0
"""The aggregator's disk fills up, turns read-only, or has other bytes than were written. Agents wait, nothing that was
acknowledged goes, and a message says what a person has to do."""

import json
import os
import random
import shutil
import subprocess

import namespaces
import suite
from fault_case import FaultCase
from fleet import FleetError, Process, wait_until

STORE_MEBIBYTES = 64


class StoreDisk(FaultCase):
    tried = 0  # aggregators

    def setUp(self):
        super().setUp()
        self.disk = namespaces.Disk(self.fleet.dir / "store", STORE_MEBIBYTES)
        self.addCleanup(self.disk.close)

    def start_recording(self):
        self.start_instances("i-0001", "i-0002")
        for instance in self.fleet.agents:
            self.start_workers(instance)
        self.fleet.wait_for_workers(2)
        capture_id = self.start_capture()
        self.wait_for_flow(capture_id, self.fleet.agents)
        return capture_id

    def finish(self, capture_id):
        self.wait_for_flow(capture_id, self.fleet.agents, 60)
        capture = self.stop_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.check_account(capture_id)

    def start_without_effect(self):
        """Starts an aggregator that must refuse, by itself and with code 1; returns its message."""
        aggregator, line = self.try_to_start(self.disk.path)
        self.assertEqual(line, "", "it must not serve")
        self.assertEqual(aggregator.popen.returncode, 1, aggregator.log.read_text())
        self.assertNotIn("terminate called", aggregator.log.read_text())
        return aggregator.log.read_text()

    def try_to_start(self, store):
        """An aggregator on a free port; with the line that says where it listens, or "" where it ends before."""
        name = f"aggregator-tried-{self.tried}"
        self.tried += 1
        aggregator = Process(name, [self.fleet.program("neurontrace-aggregator"), "--listen", "127.0.0.1:0", "--store",
                                    store, "--health-address", "127.0.0.1:0"], self.fleet.logs)
        self.addCleanup(lambda: aggregator.running() and aggregator.kill())
        try:
            return aggregator, aggregator.wait_for_line("listening on ", 30)
        except FleetError:
            aggregator.wait(5)  # it must serve or end
            return aggregator, ""

    def check_store(self, store=None):
        """Exit code of --store-check and what it found wrong."""
        done = subprocess.run(
            [self.fleet.program("neurontrace-aggregator"), "--store-check", "--output", "json", "--store",
             store or self.disk.path], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
            check=False)
        faults = json.loads(done.stdout)["faults"] if done.stdout.startswith("{") else [{"what": repr(done)}]
        return done.returncode, [fault["what"] for fault in faults]

    def test_full_and_room_again(self):
        capture_id = self.start_recording()
        self.disk.fill()
        before = self.wait_until_nothing_is_stored(capture_id)
        self.pass_time(2)
        self.assertTrue(self.fleet.aggregator.running(), "a full disk ends nothing")
        self.assertGreaterEqual(sum(self.stored_of(capture_id).values()), before)
        self.check_reported(capture_id)
        self.disk.unfill()
        self.finish(capture_id)
        self.assertNotIn("store_problem", self.fleet.cli_json("status"))
        warnings = "\n".join(self.fleet.show_capture(capture_id)["warnings"])
        self.assertIn("the store took no data from", warnings)
        self.assertIn("the store took data again from", warnings)

    def check_reported(self, capture_id):
        """The reason why nothing is stored is in the status, in the capture and in what a waiting command prints."""
        for told in (self.fleet.cli_json("status"), self.fleet.show_capture(capture_id)):
            problem = told["store_problem"]
            self.assertIn("the disk is full", problem["text"])
            self.assertTrue(problem["lacks_room"], problem)
            self.assertIn("free_bytes", problem)
        findings = self.fleet.show_capture(capture_id)["certificate"]["findings"]
        self.assertTrue(any("the store takes no data" in finding for finding in findings), findings)
        self.assertIn("has taken no data since", self.fleet.cli("status").stdout)
        watch = Process("watch-full-store", self.fleet.cli_command("captures", "watch", capture_id), self.fleet.logs)
        self.addCleanup(lambda: watch.running() and watch.kill())
        watch.wait_for_line("has taken no data since")
        watch.kill()

    def wait_until_nothing_is_stored(self, capture_id):
        """Until two looks in a row find the same; returns the number."""
        last = -1

        def stands():
            nonlocal last
            before, last = last, sum(self.stored_of(capture_id).values())
            self.pass_time(1)
            return before == last
        wait_until(stands, "the store to take no more", 60)
        return last

    def test_full_over_a_restart(self):
        """The aggregator dies with its disk full; it may refuse to start, with a message, until there is room."""
        capture_id = self.start_recording()
        self.disk.fill()
        before = self.wait_until_nothing_is_stored(capture_id)
        self.fleet.aggregator.kill()
        self.disk.unfill()
        self.disk.fill()
        self.assertIn("space", self.start_without_effect())
        self.disk.unfill()
        self.fleet.start_aggregator()
        self.assertGreaterEqual(sum(self.stored_of(capture_id).values()), before)
        self.finish(capture_id)

    def test_read_only(self):
        capture_id = self.start_recording()
        before = sum(self.stored_of(capture_id).values())
        self.fleet.aggregator.kill()
        self.disk.set_read_only(True)
        self.assertIn("read-only", self.start_without_effect().lower())
        self.disk.set_read_only(False)
        self.fleet.start_aggregator()
        self.assertGreaterEqual(sum(self.stored_of(capture_id).values()), before)
        self.finish(capture_id)

    def test_flipped_bytes(self):
        """Whatever byte of the database is another one: --store-check finds it, the aggregator serves or
        reports what is wrong, and no export is wrong without saying so."""
        seed = int(os.environ.get("NT_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"test_flipped_bytes: NT_FAULT_SEED={seed}", flush=True)
        chance = random.Random(seed)
        capture_id = self.start_recording()
        self.fleet.aggregator.kill()  # and begun again, so that there are tables beside the log
        self.fleet.start_aggregator()
        self.finish(capture_id)
        whole = self.fleet.export_events(capture_id).read_bytes()
        self.fleet.aggregator.kill()
        self.assertEqual(self.check_store(), (0, []), "sound after kill -9")
        files = sorted(path.name for path in self.disk.path.iterdir()
                       if path.name.startswith(("CURRENT", "MANIFEST")) or path.suffix in (".log", ".sst", ".blob"))
        self.assertTrue(any(name.endswith(".sst") for name in files), files)
        for name in files:
            damaged = self.fleet.dir / "damaged"
            shutil.copytree(self.disk.path, damaged)
            content = bytearray((damaged / name).read_bytes())
            if content:
                position = chance.randrange(len(content))
                content[position] ^= 1 << chance.randrange(8)
                (damaged / name).write_bytes(content)
                with self.subTest(file=name, position=position, size=len(content)):
                    self.check_damage_is_reported(damaged, name, capture_id, whole)
            shutil.rmtree(damaged)

    def check_damage_is_reported(self, store, name, capture_id, whole):
        code, faults = self.check_store(store)
        self.assertEqual(code != 0, bool(faults))
        aggregator, line = self.try_to_start(store)
        if not line:
            self.assertEqual(aggregator.popen.returncode, 1)
            printed = aggregator.log.read_text()
            self.assertRegex(printed, "damaged|corrupt")
            print(f"  {name}: refused: {printed.strip().splitlines()[-1][:200]}")
            return
        out = self.fleet.dir / "damaged.jsonl"
        out.unlink(missing_ok=True)
        done = subprocess.run(
            [self.fleet.program("neurontrace"), "--aggregator", line.split("listening on ")[1], "export", capture_id,
             "--format", "events", "-o", out], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
            check=False)
        aggregator.kill()
        complete = done.returncode == 0 and out.read_bytes() == whole
        printed = (done.stderr + done.stdout).strip()
        self.assertTrue(complete or done.returncode != 0 or "warning" in printed, f"{done.returncode}: {printed}")
        self.assertTrue(complete or faults, f"--store-check finds nothing, and yet: {printed}")
        print(f"  {name}: {'all is there' if complete else printed.splitlines()[-1][:200]}; check: {str(faults)[:120]}")


if __name__ == "__main__":
    namespaces.enter()
    suite.main()
