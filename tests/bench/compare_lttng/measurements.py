# SPDX-License-Identifier: Apache-2.0
"""What is measured: the highest rate without a loss, cost and bytes at one rate, and what a killed daemon costs."""

import math
import statistics
import sys
import threading
import time

from fleet import FleetError

START = time.monotonic()
# A rate is sustained when nothing is lost and, once the producers end, what buffers still hold is handed over in this
# part of the time that the producers took, beyond what ending a capture takes at a low rate.
BACKLOG_SHARE_MAX = 0.1
IDLE_RATE, IDLE_SECONDS = 20_000, 0.3
LATE_SHARE_MAX = 0.05  # a producer that takes so much longer did not reach its rate
COARSE_FACTOR = 1.3
FINE_FACTOR = 1.07
PATIENCE_SECONDS = 25  # for the first measurement, past the deadline


def progress(text):
    print(f"[{time.monotonic() - START:5.0f} s] {text}", file=sys.stderr, flush=True)


def spread(values):
    """Median, least and greatest; the whole list stays in the JSON."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "values": list(values)}


def capture(side, rate, seconds):
    """One whole capture: what was produced, and how long it took beyond the producers' end until all was stored."""
    side.begin()
    side.producers.begin(rate, seconds)
    sums = side.producers.finish()
    sums["end_seconds"] = side.end()
    return sums


class RateSearch:
    """Steps up while a rate is sustained and down while it is not, first coarsely. Each time the two meet, the rate
    that held is one measurement."""

    def __init__(self, side, seconds, guess):
        self.side = side
        self.seconds = seconds
        self.rate = guess
        self.probes = []
        # What ending a capture takes that is nowhere near a limit.
        self.idle_end = statistics.median(self._idle() for _ in range(3))

    def _idle(self):
        end_seconds = capture(self.side, IDLE_RATE, IDLE_SECONDS)["end_seconds"]
        self.side.forget()
        return end_seconds

    def _probe(self):
        sums = capture(self.side, self.rate, self.seconds)
        events, _, problem = self.side.read()
        self.side.forget()
        backlog = max(0.0, sums["end_seconds"] - self.idle_end) / self.seconds
        late = sums["seconds"] / self.seconds - 1
        why = ("lost" if events != sums["produced"] or sums["produced"] != sums["emitted"] or problem else
               "producers late" if late > LATE_SHARE_MAX else "backlog" if backlog > BACKLOG_SHARE_MAX else "")
        self.probes.append({"rate": self.rate, "produced": sums["produced"], "read": events, "backlog": backlog,
                            "late": late, "sustained": not why, "why": why})
        progress(f"{self.side.name}: {self.rate / 1e6:.2f} M events/s {why or 'sustained'}"
                 f" ({events:,} of {sums['produced']:,} read, backlog {100 * backlog:.0f} %)")
        return not why

    def run(self, wanted, deadline):
        """`wanted` measurements, or as many as there is time for (at least one)."""
        factor, held, found, limits = COARSE_FACTOR, None, [], []
        while len(found) < wanted and not (found and time.monotonic() > deadline):
            if time.monotonic() > deadline + PATIENCE_SECONDS:
                held_rates = [probe["rate"] for probe in self.probes if probe["sustained"]]
                if not held_rates:
                    raise FleetError(f"no rate was found that {self.side.name} sustains, down to {self.rate:.0f}")
                found, limits = [max(held_rates)], ["no time to look further"]
                break
            sustained = self._probe()
            if held is not None and sustained != held:
                if factor == COARSE_FACTOR:
                    factor, held = FINE_FACTOR, None
                    self.rate *= (math.sqrt(COARSE_FACTOR) if sustained else 1 / math.sqrt(COARSE_FACTOR))
                    continue
                found.append(self.rate if sustained else self.rate / factor)
                limits.append(next(p["why"] for p in reversed(self.probes) if p["why"]))
            held = sustained
            self.rate *= factor if sustained else 1 / factor
        return {"rate": spread(found), "limits": limits, "probes": self.probes, "idle_end_seconds": self.idle_end}


def measure_cost(side, rate, seconds, rounds):
    """Processor time of each part and bytes on disk, for events that all arrived, at a rate that all sides hold."""
    costs, producer, stored, bytes_each, lost = {}, [], 0, [], 0
    for number in range(rounds):
        before = side.cpu()
        sums = capture(side, rate, seconds)
        after = side.cpu()
        events, _, problem = side.read()
        lost += sums["produced"] - events
        stored += events
        for part, value in after.items():
            costs.setdefault(part, []).append(1e6 * (value - before[part]) / max(1, events))
        costs.setdefault("total", []).append(
            sum(values[-1] for part, values in costs.items() if part in side.collector_parts))
        producer.append(1e6 * sums["cpu_seconds"] / sums["emitted"])
        if side.bytes_each_round:
            bytes_each.append(side.bytes_on_disk() / max(1, events))
            side.forget()
        progress(f"{side.name}: round {number + 1} of {rounds}: {costs['total'][-1]:.3f} s a million events {problem}")
    if not bytes_each:
        bytes_each.append(side.bytes_on_disk() / max(1, stored))
    return {"rate": rate, "cpu_seconds_per_million": {part: spread(values) for part, values in costs.items()},
            "producer_cpu_seconds_per_million": spread(producer), "bytes_per_event": spread(bytes_each),
            "events": stored, "lost": lost}


def measure_kill(make_side, daemon, rate, seconds, moments):
    """For each moment (a share of the producers' time) a fresh start, SIGKILL then, and what a reader finds."""
    rounds = []
    for moment in moments:
        side = make_side()
        try:
            side.begin()
            killer = threading.Timer(moment * seconds, side.kill, [daemon])
            side.producers.begin(rate, seconds)
            killer.start()
            sums = side.producers.finish()
            killer.join()
            side.end_somehow()
            events, reported, problem = side.read(with_discarded=True)
        finally:
            side.close()
        lost = sums["produced"] - events
        rounds.append({"moment": moment, "produced": sums["produced"], "readable": events, "lost": lost,
                       "lost_as_told": reported, "counted": reported == lost, "problem": problem})
        progress(f"{daemon} killed at {100 * moment:.0f} %: {events:,} of {sums['produced']:,} readable, {lost:,} lost, "
                 f"told {reported} {problem}")
    return {"name": side.name, "daemon": daemon, "rounds": rounds,
            "readable_share": spread([r["readable"] / r["produced"] for r in rounds]),
            "lost": spread([r["lost"] for r in rounds]),
            "rounds_counted": sum(r["counted"] for r in rounds),
            "problems": sorted({r["problem"] for r in rounds if r["problem"]})}
