# SPDX-License-Identifier: Apache-2.0
"""Agents that die at the worst moments for their account: before anything of a capture is stored, and while it stops."""

import threading

import suite
from fault_case import FaultCase
from fleet import wait_until


class UnluckyAgent(FaultCase):
    def test_dies_before_the_first_chunk_and_the_capture_is_stopped_before_the_tap_returns(self):
        self.start_instances("i-0001")
        worker, = self.start_workers("i-0001")
        self.fleet.wait_for_workers(1)
        for _ in range(5):  # a tap that lost its agent often looks for it every five seconds only
            self.fleet.agents["i-0001"].kill()
            self.fleet.start_agent("i-0001")
            self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        wait_until(lambda: len(worker.truth.read_text(encoding="ascii").splitlines()) > 50, "events in the ring")
        self.fleet.agents["i-0001"].kill()
        self.assertEqual(self.stored_of(capture_id), {}, "killed in time")
        stopping = threading.Thread(target=self.fleet.cli, args=("capture", "stop", capture_id))
        stopping.start()
        self.fleet.wait_for_capture(capture_id, lambda c: c["state"] == "CAPTURE_STATE_STOPPING", "to stop")
        self.fleet.start_agent("i-0001")
        stopping.join()
        self.assertEqual(self.fleet.show_capture(capture_id)["state"], "CAPTURE_STATE_COMPLETE")
        self.check_account(capture_id)


if __name__ == "__main__":
    suite.main()
