# SPDX-License-Identifier: Apache-2.0
"""Instances whose clocks are seconds apart behind networks that are late, irregular, longer one way than the other, and
lose packets: namespaces and bad_link.cc of tests/e2e/faults. Half of the asymmetry is in every event and cannot be seen;
it is within what is said of it."""

import os
import random

import namespaces
import suite
from alignment import by_instance, percentile
from clock_case import INSTANCES, MILLISECOND, SECOND, ClockCase

# Of each instance's network: us each way, us more on the way to the aggregator, us that jitter adds at most, loss.
LINKS = {"i-0001": (1_000, 0, 1_000, 0.02), "i-0002": (2_000, 3_000, 2_000, 0.05), "i-0003": (500, 1_500, 500, 0.1)}


class ClocksOverNetworks(ClockCase):
    def start_behind_links(self):
        seed = int(os.environ.get("NT_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"{self.id().rsplit('.', 1)[-1]}: NT_FAULT_SEED={seed}", flush=True)
        self.fleet.listen = "0.0.0.0:0"
        self.fleet.start_aggregator()
        for number, instance in enumerate(INSTANCES, 1):
            link = namespaces.Link(self.fleet, number, seed + number)
            self.addCleanup(link.close)
            delay, near, jitter, loss = LINKS[instance]
            link.set(delay_us=delay, near_us=near, jitter_us=jitter, loss=loss)
            port = self.fleet.address.rsplit(":", 1)[1]
            self.fleet.start_agent(instance, prefix=link.prefix, wrapped=False, aggregator=f"{link.near}:{port}")

    def test_delayed_irregular_asymmetric_and_lost_probes(self):
        self.start_behind_links()
        self.start_job()
        self.fleet.wait_for_clocks(len(INSTANCES))
        capture_id = self.start_capture("--name", "networks")
        self.work_until(self.true_after(6))
        self.end_job(capture_id)
        alignment = self.aligned(capture_id)
        self.check_within_bounds(alignment, bound_usual_ns=20 * MILLISECOND)
        report = self.check_barriers(alignment)
        self.assertGreater(report.raw_apart_ns, 5 * SECOND)
        for instance, events in by_instance(alignment.bounded()).items():
            delay, near, _, _ = LINKS[instance]
            # Nobody can know it better than half of the shortest way there and back.
            self.assertGreater(min(event.eps_ns for event in events), (2 * delay + near) * 1_000 / 2)
            error = percentile([event.error_ns for event in events], 0.5)
            print(f"{instance}: half of the asymmetry is {near / 2:.0f} us, the error {error / 1e3:.0f} us")


if __name__ == "__main__":
    namespaces.enter(devices=["/dev/net/tun"])
    suite.main()
