# SPDX-License-Identifier: Apache-2.0
"""A watch while one instance is behind a slow or a cut link: nobody is named for what the link does. What does not
arrive is refused with its instance, and once the link is good again the verdicts are as before."""

import os
import random

import namespaces
import suite
from fault_case import FaultCase
from fleet import wait_until
from watch_test import CEILING_SECONDS, INSTANCES, STRAGGLER, WatchFleet

FAR = INSTANCES[1]  # ranks 2 and 3, behind the link; the straggler is elsewhere
FAR_RANKS = {2, 3}
SLOW = ("--straggler-rank", STRAGGLER, "--straggler-extra-us", 4000)
HANG_SECONDS = 8  # by when a hang of cores that can be heard has its verdict


class WatchLinkTest(WatchFleet, FaultCase):
    def setUp(self):
        super().setUp()
        self.fleet.listen = "0.0.0.0:0"
        seed = int(os.environ.get("NT_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"{self.id().rsplit('.', 1)[-1]}: NT_FAULT_SEED={seed}", flush=True)
        self.fleet.start_aggregator()
        self.link = namespaces.Link(self.fleet, 1, seed)
        self.addCleanup(self.link.close)

    def start_watch(self, *options):
        self.start_instances(*(name for name in INSTANCES if name != FAR))
        port = self.fleet.address.rsplit(":", 1)[1]
        self.fleet.start_agent(FAR, prefix=self.link.prefix, wrapped=False, aggregator=f"{self.link.near}:{port}")
        self.start_workers(*options)
        self.watch_on()
        self.wait_for_judged(8)

    def named(self, report):
        """The ranks of all verdicts."""
        return {rank for verdict in report.get("verdicts", []) for rank in self.ranks(verdict)}

    def wait_for_named(self, ranks, judged=8):
        """Until `ranks` are named and so many cores are judged. Nobody else may be named on the way."""
        def there(report):
            self.assertLessEqual(self.named(report), ranks, report)
            return self.named(report) == ranks and int(report["cores_judged"]) >= judged
        self.wait_for_report(there, f"ranks {sorted(ranks)} to be named, {judged} cores judged")

    def wait_for_silence(self, may_be_named=frozenset()):
        """Until the answer is that nothing arrives from the instance behind the link. Only `may_be_named` may be named
        on the way."""
        def there(report):
            self.assertLessEqual(self.named(report), may_be_named, report)
            return next((refusal for refusal in report.get("refusals", []) if refusal["reason"] == "no-canary"), None)
        refusal = self.wait_for_report(there, f"the silence of {FAR}")
        print(f"{self.id()}: {refusal['text']}", flush=True)
        self.assertEqual({int(core["worker_gid"]) for core in refusal["cores"]}, FAR_RANKS, refusal)
        self.assertEqual({core["instance_id"] for core in refusal["cores"]}, {FAR}, refusal)
        self.assertIn(FAR, refusal["text"])

    def test_a_slow_link_makes_nobody_slow(self):
        self.start_watch(*SLOW)
        self.link.set(delay_us=300_000, jitter_us=100_000, loss=0.02)
        self.wait_for_named({STRAGGLER})
        self.link.repair()
        self.wait_for_named({STRAGGLER})

    def test_a_cut_link_is_refused_and_ends_without_a_trace(self):
        self.start_watch(*SLOW)
        self.wait_for_named({STRAGGLER})
        self.link.cut()
        self.wait_for_silence(may_be_named={STRAGGLER})
        self.wait_for_named({STRAGGLER}, judged=6)
        self.link.heal()
        self.wait_for_named({STRAGGLER})

    def test_a_hang_behind_a_cut_link_is_refused_until_the_link_is_back(self):
        self.start_watch()
        self.link.cut()
        last = self.let_all_wait()
        self.wait_for_silence()
        for worker in self.fleet.workers:
            wait_until(lambda w=worker: self.newest_execution(w) > last, f"{worker.name} to wait", CEILING_SECONDS)
        self.pass_time(HANG_SECONDS, lambda: self.assertEqual(self.report().get("verdicts"), []))
        self.link.heal()
        verdict = self.wait_for_report(
            lambda report: next((v for v in report.get("verdicts", []) if v["kind"].endswith("HANG_INSIDE")), None),
            "the hang of all")
        self.assertEqual(self.ranks(verdict), list(range(8)), verdict)


if __name__ == "__main__":
    namespaces.enter(devices=["/dev/net/tun"])
    suite.main()
