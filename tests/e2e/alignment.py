# SPDX-License-Identifier: Apache-2.0
"""How true a merged timeline is: an exported capture held against the true times of its events.

An event in the `events` format has its stamp, and, if the instance's clock is known, its time by the reference and how
far off that can be. What really happened when is in the workers' ground truth.
"""

import bisect
import collections
from dataclasses import dataclass, field

from ground_truth import key_of, read_events, read_truth

# The reference began as a reading of one clock next to another, and is true time to within that.
REFERENCE_OFF_NS = 1_000


@dataclass
class Aligned:
    """One event of one instance."""
    instance: str
    rank: int
    event_type: str
    phase: str
    true_ns: int
    stamp_ns: int
    reference_ns: int = None  # None: its clock is not known
    eps_ns: int = None        # None: no bound is stated

    @property
    def error_ns(self):
        return self.reference_ns - self.true_ns

    @property
    def raw_error_ns(self):
        return self.stamp_ns - self.true_ns


@dataclass
class Alignment:
    """The events of a capture in the order of true time."""
    events: list = field(default_factory=list)
    unknown: int = 0  # exported, and in no worker's truth

    def bounded(self):
        return [event for event in self.events if event.eps_ns is not None]

    def beyond_bounds(self):
        """Events whose time is farther from the truth than is stated: by the reference as it is, wherever within its
        own error of true time that lies."""
        shift = self._reference_off()
        return [event for event in self.bounded() if abs(event.error_ns - shift) > event.eps_ns]

    def _reference_off(self):
        least = max((event.error_ns - event.eps_ns for event in self.bounded()), default=0)
        most = min((event.error_ns + event.eps_ns for event in self.bounded()), default=0)
        wanted = 0 if least <= 0 <= most else least if least > 0 else most
        return max(-REFERENCE_OFF_NS, min(REFERENCE_OFF_NS, wanted))

    def barriers(self, period_ns, event_type="enc_barrier", phase="stop"):
        """Events of all ranks that report one barrier, for each barrier that several instances report; a rank has
        one of these in each period of the job."""
        events = [e for e in self.events if e.event_type == event_type and e.phase == phase]
        groups, last = [], None
        for event in events:
            if last is None or event.true_ns - last > period_ns // 2:
                groups.append([])
            groups[-1].append(event)
            last = event.true_ns
        return [group for group in groups if len({event.instance for event in group}) > 1]


@dataclass
class BarrierReport:
    """How the ranks of barriers stand to each other in a trace, against how they truly did."""
    barriers: int
    raw_apart_ns: int      # as the instances' own clocks have it: the farthest
    aligned_apart_ns: int  # in the merged trace: the farthest
    aligned_usual_ns: int  # half of the barriers are better
    bound_ns: int          # stated for the two ranks in question: the widest
    beyond: int            # pairs that are farther apart than is stated of them

    def words(self):
        return (f"{self.barriers} barriers: {seconds(self.raw_apart_ns)} apart by their own clocks, merged within "
                f"{seconds(self.aligned_apart_ns)} (half of them {seconds(self.aligned_usual_ns)}), stated "
                f"{seconds(self.bound_ns)}, {self.beyond} beyond that")


def seconds(ns):
    """A time in a unit that a person reads."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if abs(ns) >= size:
            return f"{ns / size:.3f} {unit}"
    return f"{ns / 1e3:.1f} us" if abs(ns) >= 1e3 else f"{ns} ns"


def report_barriers(groups):
    """Of groups as of `Alignment.barriers`."""
    raw, aligned, bounds, beyond = [], [], [], 0
    for group in groups:
        of_instance = {event.instance: event for event in group}  # one each: their clock is one
        members = sorted(of_instance.values(), key=lambda event: event.error_ns)
        errors = [event.raw_error_ns for event in members]
        raw.append(max(errors) - min(errors))
        aligned.append(members[-1].error_ns - members[0].error_ns)
        bounds.append(sum(sorted(event.eps_ns for event in members)[-2:]))
        beyond += sum(other.error_ns - one.error_ns > one.eps_ns + other.eps_ns
                      for place, one in enumerate(members) for other in members[place:])
    return BarrierReport(len(groups), max(raw), max(aligned), sorted(aligned)[len(aligned) // 2], max(bounds), beyond)


def align(workers, events_path, event_types=None):
    """The Alignment of what `fleet.export_events` wrote, which are events of these types (None: any). The workers have
    ended."""
    truth = {}
    for worker in workers:
        for row in read_truth(worker.truth):
            if event_types is not None and row["event_type"] not in event_types:
                continue
            core = (worker.instance_id, worker.reported_pid, row["nc_idx"])
            truth[(core, key_of(row))] = row
    result = Alignment()
    for row in read_events(events_path):
        event = row["event"]
        known = truth.get(((row["instance_id"], row["pid"], row["nc_idx"]), key_of(event)))
        if known is None:
            result.unknown += 1
            continue
        result.events.append(Aligned(row["instance_id"], known["rank"], event["event_type"], event["phase"],
                                     known["true_ns"], int(event["timestamp_ns"]), row.get("reference_ns"),
                                     row.get("eps_ns")))
    result.events.sort(key=lambda event: event.true_ns)
    return result


def percentile(values, share):
    """Of any values; `share` of one of them are not greater."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def between(events, begin_ns, end_ns):
    """Those of events in the order of true time that happened in a stretch of it."""
    times = [event.true_ns for event in events]
    return events[bisect.bisect_left(times, begin_ns):bisect.bisect_left(times, end_ns)]


def by_instance(events):
    found = collections.defaultdict(list)
    for event in events:
        found[event.instance].append(event)
    return dict(found)
