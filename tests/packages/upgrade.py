# SPDX-License-Identifier: Apache-2.0
"""A store and a spool that a former version wrote: opened, delivered, and what is in them afterwards."""

import hashlib
import json
import subprocess
from pathlib import Path

from account import reported_by
from fleet import wait_until

INSTANCE = "i-0001"
FIXTURES = Path(__file__).resolve().parents[1] / "upgrade"
FULL = "full"  # beside each fixture: one whose spool and store are at their limits
STORE_FULL = "the quota of the store is exhausted"
ENDED = ("CAPTURE_STATE_COMPLETE", "CAPTURE_STATE_INCOMPLETE")


def releases():
    return sorted(path.parent for path in FIXTURES.glob("*/facts.json"))


def full_releases():
    return sorted(path.parent for path in FIXTURES.glob(f"*/{FULL}/facts.json"))


def parse(version):
    return tuple(map(int, version.split(".")))


def faults_of_versions(project, listed, fixtures):
    """What is wrong with the list of versions: it ends with the project's, and of all before it there are fixtures,
    by name, of either kind."""
    faults = []
    if not listed or listed[-1] != project:
        faults.append(f"the version is {project}: add it to tests/upgrade/versions.txt, whose last is {listed[-1:]}")
    if listed != sorted(set(listed), key=parse):
        faults.append(f"tests/upgrade/versions.txt is not in order: {listed}")
    for version in listed:
        if version != project and version not in fixtures:
            faults.append(f"tests/upgrade has not all of {version}: scripts/make_upgrade_fixture, with its own programs")
    return faults


def unpack(fixture, fleet):
    """Where the fleet's aggregator and agent look for them."""
    for name, place in (("store", fleet.dir / "store"), ("spool", fleet.spool_of(INSTANCE))):
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "--zstd", "-C", place, "--strip-components=1", "-xf", fixture / f"{name}.tar.zst"],
                       check=True)


def spool_check(agent, spool):
    done = subprocess.run([agent, "--spool-check", spool, "--output", "json"], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise AssertionError(f"the spool is not sound: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def store_check(aggregator, store):
    done = subprocess.run([aggregator, "--store-check", "--store", store, "--output", "json"], capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"the store is not sound: {done.stdout}{done.stderr}")
    return json.loads(done.stdout)


def deliver_spool(fleet, capture_id):
    """Starts both on what was unpacked, until the spool is empty, and ends the capture that continued."""
    fleet.start_aggregator()
    fleet.start_agent(INSTANCE)
    wait_until(lambda: spool_check(fleet.program("neurontrace-agent"), fleet.spool_of(INSTANCE))["segments"] == [],
               "the spool to be delivered", 60)
    fleet.cli("capture", "stop", capture_id, codes=(0, 3))


def events_of(fleet, capture_id):
    """What a capture holds, with the times that hosts stamped, so that no clock has a say; and what its certificate
    counts. The text of a certificate may change between versions."""
    first, *lines = fleet.export_events(capture_id, "--clock", "raw").read_text(encoding="utf-8").splitlines()
    account = json.loads(first)["certificate"]["account"]
    return {"id": capture_id, "events": len(lines), "sha256": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest(),
            "account": {name: int(account[name]) for name in ("expected", "stored", "lost")}}


def chunks_in(report):
    return sum(segment["chunks"] for segment in report["segments"])


def agent_limits(limits):
    return "--spool-bytes", str(limits["spool_bytes"]), "--spool-capture-bytes", str(limits["spool_bytes"])


def aggregator_limits(limits):
    return "--quota-store-bytes", str(limits["quota_store_bytes"])


def deliver_full(fleet, limits, capture_id):
    """Starts both under the limits of before, until the spool is empty and the capture that continued has ended: there is
    no room for more, so that its quota stops it."""
    fleet.start_aggregator(*aggregator_limits(limits))
    fleet.start_agent(INSTANCE, *agent_limits(limits))
    wait_until(lambda: spool_check(fleet.program("neurontrace-agent"), fleet.spool_of(INSTANCE))["segments"] == [],
               "the spool to be delivered", 60)
    fleet.wait_for_capture(capture_id, lambda c: c["state"] in ENDED, "its end")


def refusal_of(fleet):
    """What a command to start a capture is told, which must not be let."""
    done = fleet.cli("capture", "start", "--name", "refused", check=False)
    if done.returncode == 0:
        raise AssertionError(f"there is room for another capture: {done.stdout}")
    return done.stderr


def losses_of(fleet, capture_id):
    """{"PLACE/REASON": events} of a capture's reported losses."""
    losses = {}
    for reported in reported_by(fleet.show_capture(capture_id)).values():
        if reported.unknown:
            raise AssertionError(f"{capture_id} has losses of unknown size: {reported.unknown}")
        for (place, reason), events in reported.lost.items():
            losses[f"{place}/{reason}"] = losses.get(f"{place}/{reason}", 0) + events
    return losses
