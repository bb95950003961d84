# SPDX-License-Identifier: Apache-2.0
"""Agents behind bad links, each in a network namespace of its own: late, lost, repeated and reordered packets, cuts, and
an aggregator that moves. The links are bad_link.cc's; TCP on both ends is the kernel's."""

import os
import random

import namespaces
import suite
from fault_case import FaultCase
from fleet import wait_until

INSTANCES = ["i-0001", "i-0002", "i-0003"]


class Network(FaultCase):
    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("NT_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        self.random = random.Random(self.seed)
        self.links = {}
        self.fleet.listen = "0.0.0.0:0"
        self.fleet.start_aggregator()

    def start_behind_links(self, instances=INSTANCES):
        print(f"{self.id().rsplit('.', 1)[-1]}: NT_FAULT_SEED={self.seed}", flush=True)
        for number, instance in enumerate(instances, 1):
            self.links[instance] = namespaces.Link(self.fleet, number, self.random.randrange(1 << 32))
            self.addCleanup(self.links[instance].close)
            self.start_agent_behind_link(instance)
            self.start_workers(instance)
        self.fleet.wait_for_workers(len(instances))
        return self.start_capture()

    def start_agent_behind_link(self, instance):
        link = self.links[instance]
        port = self.fleet.address.rsplit(":", 1)[1]
        self.fleet.start_agent(instance, prefix=link.prefix, wrapped=False, aggregator=f"{link.near}:{port}")

    def finish(self, capture_id, seconds=60):
        self.fleet.cli("capture", "stop", capture_id, seconds=seconds)
        capture = self.fleet.show_capture(capture_id)
        self.assertEqual(capture["state"], "CAPTURE_STATE_COMPLETE", capture["warnings"])
        self.check_account(capture_id)

    def test_late_lost_repeated_and_reordered_packets(self):
        capture_id = self.start_behind_links()
        for share, link in zip((0.02, 0.05, 0.1), self.links.values()):
            link.set(loss=share, duplicate=0.02, delay_us=20_000, jitter_us=10_000)
        for _ in range(3):
            self.wait_for_flow(capture_id, INSTANCES)
        self.finish(capture_id)

    def test_a_cut_instance_catches_up_and_the_others_do_not_wait(self):
        capture_id = self.start_behind_links()
        self.wait_for_flow(capture_id, INSTANCES)
        self.links["i-0002"].cut()
        self.pass_time(6)
        at_cut = self.stored_of(capture_id)["i-0002"]
        self.wait_for_flow(capture_id, ["i-0001", "i-0003"])
        self.assertEqual(self.stored_of(capture_id)["i-0002"], at_cut, "the cut holds")
        self.links["i-0002"].heal()
        self.wait_for_flow(capture_id, INSTANCES)
        self.finish(capture_id)

    def test_links_that_come_and_go_while_processes_die(self):
        capture_id = self.start_behind_links()
        for _ in range(12):
            instance = self.random.choice(INSTANCES)
            link = self.links[instance]
            link.cut()
            self.pass_time(self.random.uniform(0, 0.8))
            if self.random.random() < 0.3:
                self.fleet.agents[instance].kill()
                self.start_agent_behind_link(instance)
            elif self.random.random() < 0.3:
                self.fleet.aggregator.kill()
                self.fleet.start_aggregator()
            link.heal()
            link.set(loss=self.random.choice((0, 0, 0.05)), delay_us=self.random.choice((0, 10_000)))
        for link in self.links.values():
            link.repair()
        self.wait_for_flow(capture_id, INSTANCES)
        self.finish(capture_id)

    def test_the_aggregator_moves_to_another_address(self):
        """Its name leads somewhere else, as a Kubernetes service or a DNS entry does; the store moves with it."""
        hosts = self.fleet.dir / "hosts"
        self.fleet.aggregator.kill()
        port = self.fleet.address.rsplit(":", 1)[1]

        def move(address):
            hosts.write_text(f"127.0.0.1 localhost\n{address} aggregator.neurontrace.test\n", encoding="ascii")
            self.fleet.address = f"{address}:{port}"
            self.fleet.start_aggregator()
        hosts.touch()
        namespaces.bind(hosts, "/etc/hosts")
        self.addCleanup(namespaces.unbind, "/etc/hosts")
        move("127.0.0.2")
        self.fleet.start_agent("i-0001", aggregator=f"aggregator.neurontrace.test:{port}")
        self.start_workers("i-0001")
        self.fleet.wait_for_workers(1)
        capture_id = self.start_capture()
        self.wait_for_flow(capture_id, ["i-0001"])
        self.fleet.aggregator.kill()
        move("127.0.0.3")
        self.wait_for_flow(capture_id, ["i-0001"], 60)
        self.finish(capture_id)


if __name__ == "__main__":
    namespaces.enter(devices=["/dev/net/tun"])
    suite.main()
