# SPDX-License-Identifier: Apache-2.0
"""A store and a spool that a former version wrote: opened, delivered, and what is in them afterwards."""

import hashlib
import json
import subprocess
from pathlib import Path

from fleet import wait_until

INSTANCE = "i-0001"
FIXTURES = Path(__file__).resolve().parents[1] / "upgrade"


def releases():
    return sorted(path.parent for path in FIXTURES.glob("*/facts.json"))


def unpack(fixture, fleet):
    """Where the fleet's aggregator and agent look for them."""
    for name, place in (("store", fleet.dir / "store"), ("spool", fleet.spool_of(INSTANCE))):
        place.mkdir(parents=True)
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
    """Starts both on what was unpacked, until the spool is empty, and ends the capture that went on."""
    fleet.start_aggregator()
    fleet.start_agent(INSTANCE)
    wait_until(lambda: spool_check(fleet.program("neurontrace-agent"), fleet.spool_of(INSTANCE))["segments"] == [],
               "the spool to be delivered", 60)
    fleet.cli("capture", "stop", capture_id, codes=(0, 3))


def events_of(fleet, capture_id):
    """What a capture holds, with the times that hosts stamped, so that no clock has a say; and what its certificate
    counts. The words of a certificate may change between versions."""
    first, *lines = fleet.export_events(capture_id, "--clock", "raw").read_text(encoding="utf-8").splitlines()
    account = json.loads(first)["certificate"]["account"]
    return {"id": capture_id, "events": len(lines), "sha256": hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest(),
            "account": {name: int(account[name]) for name in ("expected", "stored", "lost")}}
