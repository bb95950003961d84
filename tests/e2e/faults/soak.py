#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kill rounds and bad networks for as long as asked: scripts/soak. Every minute or so a capture ends and is held against
the accounts of its workers; then the next seed begins with a new fleet."""

import argparse
import random
import shutil
import sys
import time
from pathlib import Path

import namespaces
from fleet import FleetError
from kill_rounds import KilledFleet

CAPTURE_SECONDS = 60
AGENT_RSS_MAX = 128 << 20
AGGREGATOR_RSS_MAX = 512 << 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--no-network", action="store_true", help="only kill and stop processes; does not require root")
    return parser.parse_args()


def run_one(options, seed, seconds, directory):
    """One fleet and one capture; returns (faults, account or None, violations)."""
    with KilledFleet(options.build, seed, work_dir=directory, bad_links=not options.no_network) as killed:
        try:
            killed.start()
            killed.run(seconds=seconds, pause=0.25, progress_every=50,
                       on_round=lambda number: number % 20 == 0 and progress(seed, killed))
            account = killed.finish()
            violations = list(account.violations)
        except FleetError as error:
            account, violations = None, [str(error)]
        for kind, limit in (("agent", AGENT_RSS_MAX), ("aggregator", AGGREGATOR_RSS_MAX)):
            if killed.rss_peak[kind] > limit:
                violations.append(f"{kind}: {killed.rss_peak[kind]} bytes resident")
        if account is not None and sum(account.lost.values()):
            violations.append(f"nothing was full, and yet: {account.summary()}")
        return killed.faults, account, violations


def progress(seed, killed):
    print(f"\rseed {seed}: {sum(killed.faults.values())} faults, {killed.events_seen} events stored   ", end="",
          file=sys.stderr, flush=True)


def main():
    options = arguments()
    if not options.no_network:
        namespaces.enter(devices=["/dev/net/tun"])
    end = time.monotonic() + options.minutes * 60
    root = Path(options.build) / "soak"
    seeds = random.Random(options.seed)
    seed, bad, rows, totals = options.seed, 0, [], {}
    print(f"soak of {options.minutes:g} minutes, seed {options.seed}", flush=True)
    while True:
        directory = root / str(seed)
        shutil.rmtree(directory, ignore_errors=True)
        left = end - time.monotonic()
        faults, account, violations = run_one(options, seed, max(5.0, min(CAPTURE_SECONDS, left)), directory)
        for kind, count in faults.items():
            totals[kind] = totals.get(kind, 0) + count
        rows.append((seed, sum(faults.values()), account.summary() if account else "not finished", len(violations)))
        print(f"\rseed {seed}: {sum(faults.values())} faults; {rows[-1][2]}; {len(violations)} violations", flush=True)
        for violation in violations:
            print(f"  VIOLATION: {violation}", flush=True)
        if violations:
            bad += 1
            print(f"  kept: {directory}; again: scripts/soak --minutes 1 --seed {seed}", flush=True)
        else:
            shutil.rmtree(directory, ignore_errors=True)
        if time.monotonic() >= end:
            break
        seed = seeds.randrange(1 << 32)
    print(f"\n{'SEED':>10} {'FAULTS':>6} {'BAD':>4} ACCOUNT")
    for seed, count, summary, violations in rows:
        print(f"{seed:>10} {count:>6} {violations:>4} {summary}")
    print("\n" + ", ".join(f"{count} {kind}" for kind, count in totals.items()))
    print(f"{len(rows)} captures, {bad} with violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
