# SPDX-License-Identifier: Apache-2.0
"""Clocks of simulated instances: what they are wrong by, and the true time that this is said against."""

import time
from dataclasses import dataclass, field


def _bracketed_offset():
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    realtime = time.clock_gettime_ns(time.CLOCK_REALTIME)
    after = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    return after - before, realtime - (before + after) // 2


class TrueTime:
    """The true time of a fleet: this machine's CLOCK_MONOTONIC_RAW, put next to UTC once, which its time service
    cannot steer. tests/e2e/clocks/shifted_clock.cc gives it to the fleet's processes."""

    def __init__(self):
        self.minus_raw_ns = min(_bracketed_offset() for _ in range(100))[1]

    def now_ns(self):
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW) + self.minus_raw_ns


@dataclass
class HostClock:
    """The clocks of one instance; tests/fake_nrt/host_clock.h says what the fields are, and computes with them."""
    offset_ns: int = 0
    drift_ppm: float = 0.0
    raw_offset_ns: int = 0
    raw_drift_ppm: float = 0.0
    origin_ns: int = 0
    steps: list = field(default_factory=list)         # (at_ns, by_ns)
    slews: list = field(default_factory=list)         # (begin_ns, end_ns, ppm)
    hidden_slews: list = field(default_factory=list)  # the same, without a word of adjtimex(2)

    def words(self):
        """As NEURONTRACE_HOST_CLOCK has it."""
        names = ("offset_ns", "drift_ppm", "raw_offset_ns", "raw_drift_ppm", "origin_ns")
        words = [f"{name}={getattr(self, name)}" for name in names]
        slews = [("slew", s) for s in self.slews] + [("hidden_slew", s) for s in self.hidden_slews]
        for name, entry in [("step", s) for s in sorted(self.steps)] + sorted(slews, key=lambda s: s[1]):
            words.append(f"{name}={':'.join(map(str, entry))}")
        return " ".join(words)
