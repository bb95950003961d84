# SPDX-License-Identifier: Apache-2.0
"""Reads what an exported .pftrace says, from the wire format alone: slices, instants, flows, tracks, times in epoch ns.

Written from Perfetto's public field numbers and sharing no code with the writer, so that a mistake of one is not made
by the other. It knows what a trace of neurontrace's holds, and stops with PftraceError at anything it has no rule for.
"""

import dataclasses
import json
import struct
import zlib
from typing import Optional


class PftraceError(Exception):
    pass


@dataclasses.dataclass
class Track:
    uuid: int
    parent: Optional[int] = None
    name: str = ""
    process: str = ""
    pid: Optional[int] = None
    tid: Optional[int] = None


@dataclasses.dataclass
class Slice:
    track: int
    name: str
    start_ns: int
    category: str = ""
    args: dict = dataclasses.field(default_factory=dict)
    flows: tuple = ()
    flows_ended: tuple = ()
    end_ns: Optional[int] = None  # None: open to the end of the trace; equal to start_ns for an instant
    instant: bool = False


def flows_of(event):
    """The ids of the arrows that an event touches: flow_ids, and the one that a legacy event ends here."""
    legacy = next((value for number, value in fields(event) if number == 6), b"")
    return tuple(v for n, v in fields(event) if n in (47, 36)) + tuple(v for n, v in fields(legacy) if n == 8)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a message; bytes for length-delimited ones, ints for all others."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif kind == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise PftraceError("a message ends in the middle")
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise PftraceError(f"wire type {kind}")
        yield number, value


def first(data, number, default=None):
    return next((value for n, value in fields(data) if n == number), default)


def text(data):
    return bytes(data).decode()


class _Sequence:
    """What is remembered between packets of one writer."""

    def __init__(self):
        self.clear()

    def clear(self):
        self.interned = {}  # (field of InternedData, iid) -> text
        self.clocks = {}    # clock id -> [now, multiplier or 0 for absolute]
        self.default_clock = None
        self.default_track = None


class Pftrace:
    """slices (instants among them, in file order), tracks by uuid, attributes of the trace."""

    def __init__(self, path):
        self.slices = []
        self.tracks = {}
        self.attributes = {}
        self._sequences = {}
        self._open = {}
        with open(path, "rb") as file:
            self._read_packets(file.read())
        for uuid in self.tracks:
            self.process_of(uuid)  # every ancestor is described

    def events(self):
        """What was recorded: not what is derived, nor what tells of the capture: its certificate, losses, warnings."""
        return [s for s in self.slices
                if not s.args.get("derived") and not (s.instant and self._is_about_capture(s.track))]

    def _is_about_capture(self, uuid):
        names = self.process_of(uuid)[1]
        return names == ["neurontrace warnings"] or names[-1].endswith("-losses")

    def certificate(self):
        """The capture's certificate, which stands in the attributes and, for older readers, in an instant."""
        whole = json.loads(self.attributes["io.neurontrace.certificate"])
        instant, = (s for s in self.slices if s.instant and s.name == "certificate")
        if json.loads(instant.args["certificate"]) != whole:
            raise PftraceError("two certificates")
        return whole

    def losses(self):
        """What instants say of losses: (names of the track, place, reason) -> events, of unknown ones -1."""
        sums = {}
        for entry in self.slices:
            if entry.instant and entry.name == "events lost":
                key = (tuple(self.process_of(entry.track)[1]), entry.args["place"], entry.args["reason"])
                unknown = -1 if entry.args.get("events_unknown") else 0
                sums[key] = sums.get(key, 0) + (entry.args["events"] or unknown)
        return sums

    def process_of(self, uuid):
        """The process row above a track, and the names on the way to it, outermost first."""
        names = []
        for _ in range(100):
            track = self.tracks.get(uuid)
            if track is None:
                raise PftraceError(f"track {uuid} was never described")
            if track.name:
                names.insert(0, track.name)
            if track.process or track.parent is None:
                return track.process, names
            uuid = track.parent
        raise PftraceError(f"track {uuid} is its own ancestor")

    def _read_packets(self, data):
        for number, packet in fields(data):
            if number != 1:
                raise PftraceError(f"field {number} where packets are")
            compressed = first(packet, 50)
            if compressed is not None:
                self._read_packets(zlib.decompress(compressed))
            else:
                self._read_packet(packet)

    def _read_packet(self, packet):
        known = dict(fields(packet))
        sequence = self._sequences.setdefault(known.get(10, 0), _Sequence())
        if known.get(13, 0) & 1:
            sequence.clear()
        if 59 in known:
            sequence.default_clock = first(known[59], 58)
            event_defaults = first(known[59], 11)
            if event_defaults is not None:
                sequence.default_track = first(event_defaults, 11)
        for number, value in fields(packet):
            if number == 12:
                for kind, entry in fields(value):
                    sequence.interned[(kind, first(entry, 1))] = text(first(entry, 2, b""))
        if 126 in known:
            for _, attribute in fields(known[126]):
                self.attributes[text(first(attribute, 1))] = text(first(attribute, 3, b""))
        if 6 in known:
            self._read_clocks(sequence, known[6])
        if 60 in known:
            self._read_track(known[60])
        if 11 in known:
            self._read_event(sequence, known[11], self._time(sequence, known))

    @staticmethod
    def _read_clocks(sequence, snapshot):
        for number, value in fields(snapshot):
            if number == 1:
                clock = dict(fields(value))
                multiplier = clock.get(4, 1) if clock.get(3) else 0
                sequence.clocks[clock[1]] = [clock.get(2, 0), multiplier]

    @staticmethod
    def _time(sequence, packet):
        if 8 not in packet:
            raise PftraceError("an event without a time")
        clock_id = packet.get(58, sequence.default_clock)
        clock = sequence.clocks.get(clock_id)
        if clock is None or clock[1] == 0:
            return packet[8]
        clock[0] += packet[8] * clock[1]
        return clock[0]

    def _read_track(self, descriptor):
        track = Track(uuid=first(descriptor, 1, 0))
        for number, value in fields(descriptor):
            if number in (2, 10):
                track.name = text(value)
            elif number == 5:
                track.parent = value
            elif number == 3:
                track.pid = first(value, 1)
                # Without the worker_gids that it ends with: " [gid0-3]".
                track.process = text(first(value, 6, b"")).split(" [gid", 1)[0]
            elif number == 4:
                track.pid, track.tid = first(value, 1), first(value, 2)
                track.name = text(first(value, 5, b""))
        if track.tid is not None and track.parent is None:
            track.parent = next((t.uuid for t in self.tracks.values() if t.process and t.pid == track.pid), None)
        self.tracks[track.uuid] = track

    def _read_event(self, sequence, event, time_ns):
        known = dict(fields(event))
        uuid = known.get(11, sequence.default_track)
        if uuid not in self.tracks:
            raise PftraceError(f"an event on track {uuid} before its description")
        kind = known[9]
        stack = self._open.setdefault(uuid, [])
        if kind == 2:
            if not stack:
                raise PftraceError(f"an end without a begin on track {uuid}")
            entry = stack.pop()  # its end can touch arrows, too
            entry.end_ns = time_ns
            entry.flows += flows_of(event)
            entry.flows_ended += tuple(v for n, v in fields(event) if n in (48, 42))
            return
        if kind == 4:
            return  # a counter's value
        if kind not in (1, 3):
            raise PftraceError(f"event type {kind}")
        name = sequence.interned[(2, known[10])] if 10 in known else text(known.get(23, b""))
        entry = Slice(uuid, name, time_ns, instant=kind == 3)
        if 3 in known:
            entry.category = sequence.interned[(1, known[3])]
        elif 22 in known:
            entry.category = text(known[22])
        entry.flows = flows_of(event)
        entry.flows_ended = tuple(v for n, v in fields(event) if n in (48, 42))
        entry.args = dict(self._argument(sequence, value) for number, value in fields(event) if number == 4)
        self.slices.append(entry)
        if kind == 1:
            stack.append(entry)
        else:
            entry.end_ns = time_ns

    def _argument(self, sequence, annotation):
        known = dict(fields(annotation))
        name = sequence.interned[(3, known[1])] if 1 in known else text(known.get(10, b""))
        if 17 in known:
            return name, sequence.interned[(29, known[17])]
        if 6 in known:
            return name, text(known[6])
        if 5 in known:
            return name, struct.unpack("<d", struct.pack("<Q", known[5]))[0]
        if 4 in known:
            return name, known[4] - (1 << 64 if known[4] >> 63 else 0)
        if 2 in known:
            return name, bool(known[2])
        if 9 in known:
            return name, text(known[9])
        return name, known.get(3, known.get(7))
