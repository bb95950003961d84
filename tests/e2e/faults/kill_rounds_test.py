# SPDX-License-Identifier: Apache-2.0
"""kill -9 of workers, agents and the aggregator at random moments, hundreds of times within one capture. Nothing that
was acknowledged is lost, everything is there once, and nothing needs a hand.

NT_FAULT_SEED replays the choices of a run, NT_FAULT_ROUNDS asks for another number of rounds.
"""

import os
import random
import unittest

import suite
from kill_rounds import KilledFleet

ROUNDS = int(os.environ.get("NT_FAULT_ROUNDS", "200"))
AGENT_RSS_MAX = 128 << 20
AGGREGATOR_RSS_MAX = 512 << 20


class KillRounds(unittest.TestCase):
    def test_killed_at_random_moments(self):
        seed = int(os.environ.get("NT_FAULT_SEED", random.SystemRandom().randrange(1 << 32)))
        print(f"NT_FAULT_SEED={seed} NT_FAULT_ROUNDS={ROUNDS}", flush=True)
        with KilledFleet(os.environ["NT_BUILD_DIR"], seed) as killed:
            killed.start()
            killed.run(rounds=ROUNDS, pause=0.15, progress_every=50)
            account = killed.finish()
            print(f"faults {killed.faults}, peak RSS {killed.rss_peak}\n{account.summary()}", flush=True)
            self.assertEqual(account.violations, [])
            self.assertEqual(sum(account.lost.values()), 0, "nothing was full: nothing may be lost")
            self.assertLess(killed.rss_peak["agent"], AGENT_RSS_MAX)
            self.assertLess(killed.rss_peak["aggregator"], AGGREGATOR_RSS_MAX)


if __name__ == "__main__":
    suite.main()
