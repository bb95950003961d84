# SPDX-License-Identifier: Apache-2.0
"""The conservation law, checked from outside: what the runtimes accepted is stored once, or counted in a loss.

Four independent accounts meet: every worker's own list of what entered its rings, the runtime's sums for each core, the
rows of the `events` export, and the losses that the capture reports each stream. Unlike ground_truth.compare this one
allows losses, and asks that they are told to the last event.
"""

import collections
from dataclasses import dataclass, field

from ground_truth import key_of, read_capture_log, read_events, read_truth

ROWS_SHOWN = 3
NO_CORE = -1  # nc_idx of what a worker has without a core


@dataclass
class Account:
    """All cores of a capture together, and what broke the law."""

    cores: int = 0
    produced: int = 0          # accepted by the rings and not left in them when their trace ended
    stored: int = 0
    lost: collections.Counter = field(default_factory=collections.Counter)  # (place, reason) -> events
    unknown: collections.Counter = field(default_factory=collections.Counter)  # (place, reason) -> streams that say so
    unreported: int = 0            # of killed workers: in the truth, not stored, and covered by an unknown loss alone
    untold: int = 0            # cores of killed workers that the capture never heard of
    violations: list = field(default_factory=list)

    def summary(self):
        lost = ", ".join(f"{place}/{reason} {count}" for (place, reason), count in sorted(self.lost.items()))
        unknown = ", ".join(f"{place}/{reason} in {n}" for (place, reason), n in sorted(self.unknown.items()))
        return (f"{self.cores} cores: {self.produced} produced, {self.stored} stored, {sum(self.lost.values())} lost"
                f"{f' ({lost})' if lost else ''}{f', of unknown size: {unknown}' if unknown else ''}"
                f"{f', {self.unreported} behind those' if self.unreported else ''}"
                f"{f'; {self.untold} cores died unheard of' if self.untold else ''}")


@dataclass
class StreamAccount:
    """A capture's account of one stream."""

    events: int
    lost: collections.Counter
    unknown: set
    ended: bool


def _short(name, prefix):
    return name.removeprefix(prefix).lower()


def _loss_key(loss):
    return _short(loss["place"], "LOSS_PLACE_"), _short(loss["reason"], "LOSS_REASON_")


def reported_by(capture):
    """The capture's own account by (instance, pid, nc_idx)."""
    reported = {}
    for stream in capture["streams"]:
        identity = stream["identity"]
        if identity["kind"] != "STREAM_KIND_NEURON_CORE":
            continue
        lost = collections.Counter()
        for loss in stream["losses"]:
            lost[_loss_key(loss)] += int(loss["events"])
        unknown = {_loss_key(loss) for loss in stream["losses"] if loss["events_unknown"]}
        core = (identity["worker"]["instance_id"], identity["worker"]["pid"], identity["nc_idx"])
        reported[core] = StreamAccount(int(stream["events"]), +lost, unknown, stream["ended"])
    return reported


def outcomes_of(capture):
    return {(w["worker"]["instance_id"], w["worker"]["pid"]): _short(w["state"], "CAPTURE_WORKER_STATE_")
            for w in capture["workers"]}


def check_account(workers, events_path, capture, killed=(), may_be_unknown=lambda core: False):
    """Holds the capture in `events_path` against the accounts of `workers`, which have ended.

    Of `killed` workers nobody knows what their rings still held: their streams must say so, and what is known must
    still add up. `may_be_unknown` returns for another core whether a loss of unknown size is documented there.
    """
    account = Account()
    rows = collections.defaultdict(collections.Counter)
    for row in read_events(events_path):
        rows[(row["instance_id"], row["pid"], row["nc_idx"])][key_of(row["event"])] += 1
    reported = reported_by(capture)
    outcomes = outcomes_of(capture)
    for worker in workers:
        if worker in killed and not worker.truth.exists():
            continue  # it had not begun
        sums = read_capture_log(worker.capture_log)
        truth = collections.defaultdict(set)
        for row in read_truth(worker.truth):
            truth[(worker.instance_id, worker.reported_pid, row["nc_idx"])].add(key_of(row))
        if worker in killed:  # perhaps before it had written a line about what was drained
            for core in {*rows, *reported}:
                if core[:2] == (worker.instance_id, worker.reported_pid) and core[2] != NO_CORE:
                    truth.setdefault(core, set())
        # What was lost of a worker and of no core that anybody knows.
        nothing = StreamAccount(0, collections.Counter(), set(), False)
        anywhere = reported.pop((worker.instance_id, worker.reported_pid, NO_CORE), nothing)
        account.lost.update(anywhere.lost)
        account.unknown.update(anywhere.unknown)
        spare = sum(anywhere.lost.values())
        if anywhere.unknown and worker not in killed and not any(may_be_unknown(core) for core in truth):
            account.violations.append(f"{worker.name} pid {worker.reported_pid}: of no core, told {anywhere}")
        for core, keys in truth.items():
            log = [entry for (_, nc_idx), entry in sums.items() if nc_idx == core[2]]
            spare = _check_core(account, core, keys, rows.pop(core, collections.Counter()), reported.pop(core, None), log,
                                worker in killed, outcomes.get(core[:2]), may_be_unknown(core) or anywhere.unknown,
                                spare)
        if spare and worker not in killed:
            account.violations.append(f"{worker.name}: {spare} counted as lost of no core, and no core lacks them")
    for core, left in rows.items():
        account.violations.append(f"{core}: {sum(left.values())} rows of a core that recorded nothing")
    for core, stream in reported.items():
        if stream.events:
            account.violations.append(f"{core}: a stream with {stream.events} events of a core that recorded nothing")
    if account.stored != int(capture["events"]):
        account.violations.append(f"the capture says {capture['events']} events, {account.stored} are there")
    if sum(account.lost.values()) != int(capture["events_lost"]):
        account.violations.append(
            f"the capture says {capture['events_lost']} lost, its streams {sum(account.lost.values())}")
    return account


def _check_core(account, core, truth, rows, reported, log, killed, outcome, may_be_unknown, spare):
    """Returns what is left of `spare`, the losses of the worker that name no core."""
    reported = reported or StreamAccount(0, collections.Counter(), set(), False)
    stored, lost = sum(rows.values()), sum(reported.lost.values())
    account.cores += 1
    account.stored += stored
    account.lost.update(reported.lost)
    account.unknown.update(reported.unknown)

    def violated(what, keys=()):
        account.violations.append(f"{core}: {what} {sorted(keys)[:ROWS_SHOWN] if keys else ''}; "
                                  f"{len(truth)} in the truth, {stored} stored, told {reported}, outcome {outcome}, {log}")

    twice = [key for key, count in rows.items() if count > 1]
    if twice:
        violated(f"{len(twice)} rows stored twice", twice)
    if reported.events != stored:
        violated("the stream says another number of events")
    extra = rows.keys() - truth
    if killed:
        # A killed worker's list lacks its last execution. Some of its events had been drained.
        newest = max((key[0] for key in truth), default=-1)
        extra = {key for key in extra if key[0] <= newest}
    if extra:
        violated(f"{len(extra)} rows that were never recorded", extra)
    if killed:
        printed = reported.unknown or may_be_unknown or outcome in ("lost", "refused")
        _check_killed(account, truth | rows.keys(), rows, reported, printed, outcome, violated)
        return spare
    produced = sum(entry["accepted"] - entry["lost_at_stop"] for entry in log)
    account.produced += produced
    missing = produced - stored - lost
    used = max(0, min(missing, spare))
    missing -= used
    if reported.unknown and not may_be_unknown:
        violated(f"a loss of unknown size, {missing} missing")
    elif missing < 0 or (missing > 0 and not (reported.unknown or may_be_unknown)):
        violated(f"{missing} of {produced} neither stored nor counted", truth - rows.keys())
    elif missing > 0:
        account.unreported += missing
    return spare - used


def _check_killed(account, truth, rows, reported, printed, outcome, violated):
    """What is missing in the middle is counted or said to be unknown in its stream; what is missing at the end is said,
    by any stream of the worker or by its outcome."""
    stored, lost = len(rows), sum(reported.lost.values())
    account.produced += len(truth)
    last = max((key[0] for key in rows), default=-1)
    holes = sum(1 for key in truth if key[0] < last) - sum(1 for key in rows if key[0] < last)
    missing = len(truth) - stored - lost
    if holes > lost and not reported.unknown:
        violated(f"{holes} missing below the last one stored, {lost} counted")
    if outcome is None and not reported.events:
        account.untold += 1  # it began and died while its agent or the aggregator was away, and the agent died too
    elif missing > 0 and not printed:
        violated(f"killed, {missing} neither stored nor counted, and nothing says so")
    account.unreported += max(0, missing)
