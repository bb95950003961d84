# SPDX-License-Identifier: Apache-2.0
"""Perfetto's trace processor with one imported trace, asked as Perfetto's page asks it.

Requests and answers are messages of Perfetto's trace_processor.proto, over `trace_processor_shell server stdio`. The
statements are those of ui/src/components/tracks/slice_track.ts, as of v58: for each row, tables of slices at all zooms
and of slices without an end, made once, and then two queries for each window.
"""

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from xspace_reader import fields, varint  # noqa: E402

# {0} is the number of a track or a list of them, {1} and {2} are begin and end of the window, {3} is a pixel's length.
SOURCE = """(SELECT id, ts, dur, depth, name, thread_dur, category, arg_set_id, parent_id, track_id, 0 AS layer,
             extract_arg(arg_set_id, 'correlation_id') AS correlation_id FROM slice WHERE track_id = {0})"""
MAKE_TABLES = (
    f"SELECT IFNULL(depth, 0) + 1 FROM {SOURCE} ORDER BY depth DESC LIMIT 1",
    f"""CREATE VIRTUAL TABLE nt_spans_{{0}} USING __intrinsic_slice_mipmap((
        SELECT id, ts, dur, layer + depth AS depth FROM {SOURCE} WHERE dur > 0))""",
    f"""CREATE VIRTUAL TABLE nt_instants_{{0}} USING __intrinsic_slice_mipmap((
        SELECT id, ts, dur, layer + depth AS depth FROM {SOURCE} WHERE dur = 0))""",
    f"""CREATE PERFETTO TABLE nt_open_{{0}} AS SELECT id, ts, depth, (SELECT i.ts FROM {SOURCE} i
        WHERE i.ts > o.ts AND o.depth = i.depth ORDER BY i.ts LIMIT 1) AS next_ts FROM {SOURCE} o WHERE dur = -1""")
ASK_TABLES = (
    f"""SELECT s.id, z.ts / {{3}} * {{3}} - {{1}}, z.count, s.*
        FROM nt_instants_{{0}}({{1}}, {{2}}, {{3}}) z CROSS JOIN {SOURCE} s USING (id)""",
    f"""SELECT z.ts / {{3}} * {{3}} - {{1}}, (z.ts + z.dur + {{3}} - 1) / {{3}} * {{3}} - {{1}}, z.count, 0, s.*
        FROM nt_spans_{{0}}({{1}}, {{2}}, {{3}}) z CROSS JOIN {SOURCE} s USING (id)
        UNION ALL SELECT i.ts - {{1}}, i.next_ts - {{1}}, 1, 1, s.* FROM nt_open_{{0}} i JOIN {SOURCE} s ON i.id = s.id
        WHERE i.ts < {{2}} AND IFNULL(i.next_ts, {{2}}) > {{1}}""")
IN_WINDOW = "FROM slice WHERE track_id IN ({0}) AND ts < {2} AND (ts >= {1} OR ts + dur > {1} OR dur = -1)"
ONE_QUERY = (f"SELECT track_id, depth, name, MIN(ts), MAX(ts + dur), COUNT(*), MAX(dur) {IN_WINDOW} "
             "GROUP BY track_id, depth, IIF(dur BETWEEN 0 AND {3}, ts / {3}, -id)")


class PeerError(Exception):
    """The trace processor ended, or refused a query; says what and why."""


def encoded(number):
    data = b""
    while number > 0x7F:
        data, number = data + bytes([number & 0x7F | 0x80]), number >> 7
    return data + bytes([number])


def member(number, data):
    return encoded(number << 3 | 2) + encoded(len(data)) + data


class TracePeer:
    """A process that imports a file at its start. One call at a time."""

    def __init__(self, program, trace, log):
        begin = time.monotonic()
        self._log, self._sequence = log, 0
        with open(log, "ab") as errors:
            self._popen = subprocess.Popen([program, "server", "stdio", trace], stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=errors)
        self.pid = self._popen.pid
        self.rows_of("SELECT 1")  # answered once the file is imported
        self.import_s = time.monotonic() - begin

    def close(self):
        self._popen.stdin.close()
        self._popen.wait(60)
        self._popen.stdout.close()

    def _read(self, size):
        data = self._popen.stdout.read(size)
        if len(data) != size:
            raise PeerError(f"the trace processor ended; see {self._log}")
        return data

    def _batches(self, sql):
        """The CellsBatch messages of a query's result, undecoded, after the number of its columns."""
        self._sequence += 1
        request = b"\x08" + encoded(self._sequence) + b"\x10\x03" + member(103, member(1, sql.encode()))
        self._popen.stdin.write(member(1, request))
        self._popen.stdin.flush()
        columns = 0
        while True:
            self._read(1)  # of TraceProcessorRpcStream.msg
            size = self._read(1)
            while size[-1] & 0x80:
                size += self._read(1)
            answer = dict(fields(self._read(varint(size, 0)[0])))
            if 203 not in answer:
                raise PeerError(f"the trace processor answered {answer.get(5, answer)}")
            for number, value in fields(answer[203]):
                columns += number == 1
                if number == 2 and value:
                    raise PeerError(f"{bytes(value).decode()}: {sql}")
                if number == 3:
                    batch = dict(fields(value))
                    yield columns, batch
                    if batch.get(6):
                        return

    def rows_of(self, sql):
        """How many rows a query gives. They are received, not decoded."""
        return sum(len(batch.get(1, b"")) // columns for columns, batch in self._batches(sql) if columns)

    def texts_of(self, sql):
        """The rows of a query that gives one text each."""
        return [text for _, batch in self._batches(sql) for text in batch.get(5, b"").decode().split("\0")[:-1]]

    def tracks(self):
        """(number, name) of each track that has a name."""
        rows = self.texts_of("SELECT id || ' ' || name FROM track WHERE name != ''")
        return [(int(number), name) for number, name in (row.split(" ", 1) for row in rows)]

    def make_tables(self, tracks):
        for track in tracks:
            for sql in MAKE_TABLES:
                self.rows_of(sql.format(track))

    def view_by_tables(self, tracks, window, pixels):
        """Returns how many rows the peer answered."""
        step_ns = max(1, (window[1] - window[0]) // pixels)
        return sum(self.rows_of(sql.format(track, *window, step_ns)) for track in tracks for sql in ASK_TABLES)

    def view_by_one_query(self, tracks, window, pixels):
        """The same without tables."""
        step_ns = max(1, (window[1] - window[0]) // pixels)
        return self.rows_of(ONE_QUERY.format(",".join(map(str, tracks)), *window, step_ns))

    def spans_in(self, tracks, window):
        """How many spans and instants the window has."""
        sql = f"SELECT CAST(COUNT(*) AS TEXT) {IN_WINDOW}"
        return int(self.texts_of(sql.format(",".join(map(str, tracks)), *window))[0])
