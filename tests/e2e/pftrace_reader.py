# SPDX-License-Identifier: Apache-2.0
"""What an exported .pftrace says, as pftrace_check reads it: slices, instants, arrows, tracks, times in epoch ns.

pftrace_check decodes with protobuf, shares no code with the writer, and fails on a file that is not sound.
"""

import dataclasses
import json
import os
import subprocess
from pathlib import Path


class PftraceError(Exception):
    pass


@dataclasses.dataclass(frozen=True)
class Track:
    uuid: int
    name: str
    process: str  # without the worker_gids that the name in the file ends with


@dataclasses.dataclass
class Slice:
    track: Track
    name: str
    category: str
    start_ns: int
    end_ns: int  # of an instant: start_ns
    args: dict   # values as text
    flows: list  # ids of the arrows that begin, continue or end here
    instant: bool


class Pftrace:
    """slices (instants among them, by time; of two that begin together the longer first), tracks, attributes."""

    def __init__(self, path):
        checker = Path(os.environ["NT_BUILD_DIR"]) / "tests" / "pftrace_check"
        done = subprocess.run([checker, path, "--json"], capture_output=True, check=False)
        report = json.loads(done.stdout or b"{}")
        if done.returncode != 0:
            raise PftraceError(done.stderr.decode(), report.get("errors"))
        self.attributes = dict(report["attributes"])
        self.tracks, self.slices = [], []
        for row in report["tracks"]:
            track = Track(row["uuid"], row["name"], row["process"])
            self.tracks.append(track)
            for kind in ("slices", "instants"):
                self.slices += [Slice(track, entry["name"], entry["category"], entry["start_ns"], entry["end_ns"],
                                      entry["arguments"], entry["flows"] + entry["terminating_flows"],
                                      kind == "instants") for entry in row[kind]]
        self.slices.sort(key=lambda entry: (entry.start_ns, -entry.end_ns))

    def events(self):
        """What was recorded: not what is derived, nor what reports the capture: its certificate, losses, warnings."""
        return [s for s in self.slices if "derived" not in s.args and not (
            s.instant and (s.track.name == "neurontrace warnings" or s.track.name.endswith("-losses")))]

    def certificate(self):
        """The capture's certificate, which is in the attributes and, for older readers, in an instant."""
        whole = json.loads(self.attributes["io.neurontrace.certificate"])
        instant, = (s for s in self.slices if s.instant and s.name == "certificate")
        if json.loads(instant.args["certificate"]) != whole:
            raise PftraceError("two certificates")
        return whole

    def losses(self):
        """The losses that instants report: (name of the track, place, reason) -> events, of unknown ones -1."""
        sums = {}
        for entry in self.slices:
            if entry.instant and entry.name == "events lost":
                key = (entry.track.name, entry.args["place"], entry.args["reason"])
                unknown = -1 if entry.args.get("events_unknown") == "true" else 0
                sums[key] = sums.get(key, 0) + (int(entry.args["events"]) or unknown)
        return sums
