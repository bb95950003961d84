# SPDX-License-Identifier: Apache-2.0
"""A worker must not feel its agent: missing, slow or hostile, with real processes."""

import array
import os
import random
import socket
import struct
import unittest

from tap_agent import HEADER, LOSS, MAGIC, START, STOP, STOPPED, VERSION, sequence_numbers, wait_for
from tap_worker import CAPTURE, TapTestCase

SMALL_RING = str(1 << 20)


class MissingAgent(TapTestCase):
    def test_a_worker_without_an_agent_works_and_ends_as_ever(self):
        worker = self.worker()
        self.assertEqual(worker.ask("init"), ["0", "42"])
        wait_for(lambda: "neurontrace" in worker.threads(), "the tap's thread")
        self.assertEqual(worker.emit(0, 1000)[0], 0)
        worker.ask("close")
        self.assertEqual(worker.exit(), 0)

    def test_an_agent_that_comes_later_is_found(self):
        worker = self.worker()
        worker.ask("init")
        wait_for(lambda: "neurontrace" in worker.threads(), "the tap's thread")
        connection = self.agent().accept()
        connection.start(CAPTURE)
        self.assertEqual(connection.answer(2)["result"], "ok")

    def test_a_socket_path_that_is_no_socket_harms_nothing(self):
        with open(self.socket_path, "w", encoding="ascii") as file:
            file.write("not a socket")
        worker = self.worker()
        self.assertEqual(worker.ask("init"), ["0", "42"])
        self.assertEqual(worker.exit(), 0)


class SlowAgent(TapTestCase):
    def test_a_full_ring_keeps_the_oldest_and_never_stops_the_worker(self):
        _, worker, connection = self.streaming(NEURONTRACE_TAP_BUFFER_BYTES=SMALL_RING)
        buffer = connection.buffer
        self.assertEqual(buffer.ring_bytes, 1 << 20)
        worker.emit(0, 20000)
        wait_for(lambda: buffer.counters["deferred_fetches"] > 3, "a full ring")
        accepted, ms = worker.emit(0, 20000)
        self.assertEqual(accepted, 20000)
        self.assertLess(ms, 5000)
        # The agent wakes up: what the runtime's own ring kept meanwhile is not lost either.
        records = []

        def drain():
            records.extend(buffer.read())
            return sum(map(len, sequence_numbers(records).values())) >= 40000

        wait_for(drain, "every event")
        seen = sequence_numbers(records)[0]
        self.assertEqual(seen, list(range(seen[0], seen[0] + 40000)))
        self.assertEqual(buffer.counters["refused_documents"], 0)
        self.assertTrue([r for r in records if r.type == LOSS])
        self.assertEqual(worker.exit(), 0)

    def test_counts_refused_data_at_end(self):
        _, worker, connection = self.streaming(NEURONTRACE_TAP_BUFFER_BYTES=SMALL_RING)
        worker.emit(0, 30000)
        worker.ask("close")
        counters = connection.buffer.counters
        self.assertGreater(counters["refused_documents"], 0)
        records = connection.buffer.read()
        losses = [struct.unpack("<8Q", r.payload) for r in records if r.type == LOSS]
        self.assertEqual({r.nc_idx for r in records if r.type == LOSS}, {0})
        self.assertEqual(sum(loss[0] for loss in losses), counters["refused_documents"])
        self.assertEqual(sum(loss[2] for loss in losses), counters["refused_events"])
        kept = len(sequence_numbers(records)[0])
        self.assertEqual(kept + counters["refused_events"], 30000)
        self.assertEqual([struct.unpack_from("<I", r.payload)[0] for r in records if r.type == STOPPED], [2])
        self.assertEqual(worker.exit(), 0)

    def test_an_agent_that_never_reads_its_socket_harms_nothing(self):
        _, worker, connection = self.streaming()
        for _ in range(40):
            connection.start(CAPTURE)
            connection.stop(CAPTURE)
        self.assertLess(worker.emit(0, 10000)[1], 5000)
        self.assertEqual(worker.exit(), 0)


class HostileAgent(TapTestCase):
    def test_garbage_costs_the_connection_and_nothing_else(self):
        agent, worker, connection = self.streaming()
        garbage = random.Random(7)
        connection.send(bytes(garbage.randbytes(500)))
        connection.wait_ended()
        worker.emit(0, 100)
        again = agent.accept()
        self.assertEqual(again.hello_state, "streaming")
        self.assertEqual(again.buffer.counters["invalid_commands"], 1)
        self.assertEqual(worker.exit(), 0)

    def test_every_kind_of_broken_command_is_refused(self):
        agent = self.agent()
        good = struct.pack("<16sQ4QIIIIQ", CAPTURE, 65536, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        commands = [
            HEADER.pack(MAGIC, VERSION, START, 16, 0),
            HEADER.pack(MAGIC, VERSION, START, 16 + len(good), 0) + good[:-12] + b"\xff\xff\xff\xff" + good[-8:],
            HEADER.pack(MAGIC, VERSION, STOP, 16, 0) + CAPTURE,
            b"\0" * 16385,
            b"x",
        ]
        for command in commands:
            # A tap that was misused comes back after five seconds only: a worker for each.
            worker = self.worker()
            worker.ask("init")
            connection = agent.accept()
            connection.send(command)
            connection.wait_ended()
            self.assertEqual(connection.statuses[-1]["result"], "invalid")
            self.assertEqual(worker.exit(), 0)

    def test_closing_at_once_again_and_again(self):
        agent = self.agent()
        worker = self.worker()
        worker.ask("init")
        for _ in range(4):
            agent.accept_raw().close()
        self.assertEqual(agent.accept().hello_state, "idle")
        self.assertEqual(worker.exit(), 0)

    def test_scribbling_over_the_shared_memory(self):
        _, worker, connection = self.streaming(NEURONTRACE_TAP_BUFFER_BYTES=SMALL_RING)
        noise = random.Random(11)
        for _ in range(30):
            for offset in range(0, 65536, 8):
                if noise.random() < 0.02 or offset in (192, 256, 264, 40):
                    struct.pack_into("<Q", connection.buffer.map, offset, noise.getrandbits(64))
            worker.emit(0, 500)
        for value in (0, 8, 2**63, 2**64 - 8, 2**64 - 1):
            connection.buffer.read_pos = value
            worker.emit(1, 500)
        worker.ask("close")
        self.assertEqual(worker.exit(), 0)

    def test_descriptors_sent_to_the_tap_do_not_pile_up(self):
        agent = self.agent()
        worker = self.worker()
        worker.ask("init")
        connection = agent.accept()
        before = len(os.listdir(f"/proc/{worker.pid}/fd"))
        with open("/dev/null", encoding="ascii") as null:
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null.fileno()] * 8))]
            packet = HEADER.pack(MAGIC, VERSION, STOP, 40, 0) + CAPTURE + bytes(8)
            for _ in range(5):
                connection.sock.sendmsg([packet], rights)
                self.assertEqual(connection.answer(3)["result"], "not_running")
        self.assertLess(len(os.listdir(f"/proc/{worker.pid}/fd")), before + 8)  # 40 were sent

    def test_a_flood_of_starts_and_stops_does_not_keep_the_worker_busy(self):
        _, worker, connection = self.streaming()
        try:
            for _ in range(2000):
                connection.stop(CAPTURE)
                connection.start(CAPTURE)
                connection.poll()
        except (BrokenPipeError, ConnectionResetError, BlockingIOError):
            pass  # thrown out, as it should be
        connection.wait_ended()
        self.assertLess(worker.emit(0, 1000)[1], 5000)
        self.assertEqual(worker.exit(), 0)


if __name__ == "__main__":
    unittest.main()
