# SPDX-License-Identifier: Apache-2.0
"""Reads what an exported .xplane.pb says, from the wire format alone: planes, lines and events, times in epoch ns.

Written from the field numbers of xplane.proto and sharing no code with the writer.
"""

import dataclasses
import struct

PICOSECONDS = 1000
ENVIRONMENT = "Task Environment"


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
                raise ValueError("a message ends in the middle")
        elif kind == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise ValueError(f"wire type {kind}")
        yield number, value


def first(data, number, default=None):
    return next((value for n, value in fields(data) if n == number), default)


def text(data):
    return bytes(data).decode()


@dataclasses.dataclass
class Event:
    plane: str
    line: str
    name: str
    start_ns: int
    duration_ns: int
    stats: dict


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def names(plane, number):
    found = {}
    for n, entry in fields(plane):
        if n == number:
            found[first(entry, 1, 0)] = text(first(first(entry, 2, b""), 2, b""))
    return found


def stat_of(data, stat_names):
    value = None
    for number, raw in fields(data):
        if number == 2:
            value = struct.unpack("<d", struct.pack("<Q", raw))[0]
        elif number == 3:
            value = raw
        elif number == 4:
            value = signed(raw)
        elif number == 5:
            value = text(raw)
        elif number == 7:
            value = stat_names[raw]
    return stat_names[first(data, 1)], value


class XSpace:
    def __init__(self, path):
        self.events, self.origin_ns, self.hostnames = [], None, []
        planes = []
        for number, value in fields(path.read_bytes()):
            if number == 1:
                planes.append(value)
            elif number == 4:
                self.hostnames.append(text(value))
        for plane in planes:
            if text(first(plane, 2)) == ENVIRONMENT:
                stats = dict(stat_of(stat, names(plane, 5)) for n, stat in fields(plane) if n == 6)
                self.origin_ns = stats["profile_start_time"]
        for plane in planes:
            self._read(plane)

    def _read(self, plane):
        event_names, stat_names = names(plane, 4), names(plane, 5)
        for number, line in fields(plane):
            if number != 3:
                continue
            line_ns = self.origin_ns + first(line, 3, 0)
            for n, event in fields(line):
                if n != 4:
                    continue
                assert first(event, 2, 0) % PICOSECONDS == 0 and first(event, 3, 0) % PICOSECONDS == 0
                self.events.append(Event(
                    text(first(plane, 2)), text(first(line, 2)), event_names[first(event, 1)],
                    line_ns + first(event, 2, 0) // PICOSECONDS, first(event, 3, 0) // PICOSECONDS,
                    dict(stat_of(stat, stat_names) for k, stat in fields(event) if k == 4)))
