# SPDX-License-Identifier: Apache-2.0
"""The tap in real worker processes: the life of the runtime, fork, and signals. What a whole fleet shows as well is in the
fleets' tests: worker_kinds_test, operator_test and restart_test."""

import os
import signal
import struct
import unittest

from tap_agent import DOCUMENT, LOSS, STARTED, STOPPED, sequence_numbers, wait_for
from tap_worker import CAPTURE, OTHER_CAPTURE, TapTestCase


def reasons(records):
    return [struct.unpack_from("<I", r.payload)[0] for r in records if r.type == STOPPED]


class Lifecycle(TapTestCase):
    def test_every_event_arrives_once_and_in_order(self):
        _, worker, connection = self.streaming()
        accepted = [worker.emit(core, 5000)[0] for core in range(4)]
        self.assertEqual(accepted, [5000] * 4)
        connection.stop(CAPTURE)
        self.assertEqual(connection.answer(3)["result"], "ok")
        records = connection.buffer.read()
        seen = sequence_numbers(records)
        for core in range(4):
            self.assertEqual(len(seen[core]), 5000)
            self.assertEqual(seen[core], sorted(set(seen[core])))
            self.assertEqual(seen[core][-1] - seen[core][0], 4999)
        self.assertTrue(all(r.capture_id == CAPTURE for r in records if r.type in (DOCUMENT, STARTED)))
        self.assertEqual(worker.ask("buffers"), ["0"])
        self.assertEqual(worker.exit(), 0)

    def test_close_drains_and_second_init_continues(self):
        _, worker, connection = self.streaming()
        worker.emit(0, 30000)
        worker.ask("close")
        records = connection.buffer.read()
        self.assertEqual(len(sequence_numbers(records)[0]), 30000)
        self.assertEqual(reasons(records), [2])
        connection.wait_state("closed")
        self.assertEqual(worker.ask("init"), ["0", "42"])
        connection.wait_state("streaming")
        worker.emit(1, 10)
        worker.ask("close")
        records = connection.buffer.read()
        self.assertEqual(len(sequence_numbers(records)[1]), 10)
        self.assertEqual([r.flags for r in records if r.type == STARTED], [2])
        self.assertEqual(worker.ask("misuses"), ["0"])

    def test_exit_without_close_drains_remainder(self):
        _, worker, connection = self.streaming()
        worker.emit(2, 20000)
        self.assertEqual(worker.exit(), 0)
        connection.wait_ended()
        records = connection.buffer.read()
        self.assertEqual(len(sequence_numbers(records)[2]), 20000)
        self.assertEqual(reasons(records), [3])
        self.assertEqual(connection.buffer.state, "exited")

    def test_facts_identify_worker(self):
        agent = self.agent()
        worker = self.worker(RANK="3", SLURM_PROCID="1", SLURM_JWT="secret", NEURONTRACE_JOB="llama")
        worker.ask("init")
        connection = agent.accept()
        self.assertEqual(connection.pid, worker.pid)
        self.assertEqual(worker.ask("comm 1 33 64"), ["0"])
        wait_for(lambda: "communicator.1" in connection.buffer.facts(), "the communicator fact")
        facts = connection.buffer.facts()
        self.assertEqual(facts["communicator.1"], "33 64 nrt_build_global_comm")
        self.assertEqual(facts["env.RANK"], "3")
        self.assertEqual(facts["env.NEURONTRACE_JOB"], "llama")
        self.assertNotIn("env.SLURM_JWT", facts)
        self.assertEqual(facts["runtime.visible_cores"], "4")
        self.assertIn("nc_exec_running", facts["runtime.event_types"].split(","))
        self.assertIn("tap_host", facts["process.command_line"])


class Fork(TapTestCase):
    def test_a_child_that_does_not_init_has_no_tap(self):
        _, worker, connection = self.streaming()
        worker.send("fork misuses,pause")
        self.assertEqual(worker.receive(), ["child", "pauses"])
        with open(f"/proc/{worker.pid}/task/{worker.pid}/children", encoding="ascii") as file:
            child = int(file.read().split()[0])
        self.assertEqual(len(os.listdir(f"/proc/{child}/task")), 1)
        with open(f"/proc/{child}/maps", encoding="ascii") as maps:
            self.assertNotIn("memfd:neurontrace_tap", maps.read())
        links = [os.readlink(f"/proc/{child}/fd/{fd}") for fd in os.listdir(f"/proc/{child}/fd")]
        self.assertFalse([link for link in links if "memfd" in link or "socket" in link], links)
        worker.send("go on")
        self.assertEqual(worker.receive(), ["0"])
        # The parent's tap is as it was.
        worker.emit(0, 50)
        connection.stop(CAPTURE)
        connection.answer(3)
        self.assertEqual(len(sequence_numbers(connection.buffer.read())[0]), 50)
        self.assertEqual(worker.exit(), 0)

    def test_a_child_that_inits_has_a_tap_of_its_own(self):
        agent, worker, connection = self.streaming()
        worker.send("fork init,pause,emit 0 25,close")
        self.assertEqual(worker.receive(), ["child", "pauses"])
        child = agent.accept()
        self.assertNotEqual(child.pid, worker.pid)
        self.assertNotEqual(child.buffer.inode, connection.buffer.inode)
        child.start(OTHER_CAPTURE)
        self.assertEqual(child.answer(2)["result"], "ok")
        worker.send("go on")
        self.assertEqual(worker.receive(), ["0"])
        child.wait_ended()
        records = child.buffer.read()
        self.assertEqual(len(sequence_numbers(records)[0]), 25)
        self.assertTrue(all(r.capture_id == OTHER_CAPTURE for r in records if r.type == DOCUMENT))
        self.assertEqual(connection.buffer.state, "streaming")
        self.assertFalse([r for r in connection.buffer.read() if r.type in (STOPPED, LOSS)])
        self.assertEqual(worker.exit(), 0)


class Signals(TapTestCase):
    def test_the_taps_thread_takes_no_signals(self):
        _, worker, _ = self.streaming()
        for task in os.listdir(f"/proc/{worker.pid}/task"):
            with open(f"/proc/{worker.pid}/task/{task}/status", encoding="ascii") as status:
                fields = dict(line.split(":\t", 1) for line in status.read().splitlines() if ":\t" in line)
            if fields["Name"] == "neurontrace":
                blocked = int(fields["SigBlk"], 16)
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGPROF, signal.SIGCHLD):
                    self.assertTrue(blocked >> (number - 1) & 1, number)
                return
        self.fail("the tap has no thread")


if __name__ == "__main__":
    unittest.main()
