# SPDX-License-Identifier: Apache-2.0
"""A capture, running or stored. `Client` makes these objects."""

from __future__ import annotations

import pathlib
import tempfile
import time
import warnings
from typing import TYPE_CHECKING, Any, Iterator

from . import exports, perfetto, spec, views
from .errors import CallFailed, CaptureNotBegun, IncompleteCapture, IncompleteWarning
from .tables import Tables
from .v1 import agent_gateway_pb2, certificate_pb2, insight_pb2
from .v1 import operator_service_pb2 as messages
from .wire import Connection

if TYPE_CHECKING:
    import duckdb
    import pandas
    import pyarrow

EXPLAIN_SECONDS = 600.0  # reading a large capture takes minutes
RECONNECT_SECONDS = 30.0  # a restarting aggregator is waited for; the capture continues without it

_ENDED = (messages.CAPTURE_STATE_COMPLETE, messages.CAPTURE_STATE_INCOMPLETE, messages.CAPTURE_STATE_NOT_BEGUN)
_LEFT_OUT = (agent_gateway_pb2.CAPTURE_WORKER_STATE_REFUSED, agent_gateway_pb2.CAPTURE_WORKER_STATE_LOST,
             agent_gateway_pb2.CAPTURE_WORKER_STATE_SUSPENDED)


class Why:
    """The answer to which ranks are slow or hung: verdicts, or refusals with their reasons.

    `str()` returns the lines of `neurontrace why`.
    """

    def __init__(self, report: insight_pb2.InsightReport):
        self.report = report

    @property
    def verdicts(self) -> list[insight_pb2.Verdict]:
        """The most expensive first; hangs before all."""
        return list(self.report.verdicts)

    @property
    def refusals(self) -> list[insight_pb2.InsightRefusal]:
        """What was not judged, and what is missing for it."""
        return list(self.report.refusals)

    @property
    def ranks(self) -> list[int]:
        """The global ranks that verdicts name; cores whose rank is unknown are in `verdicts` alone."""
        return sorted({core.worker_gid for verdict in self.report.verdicts for core in verdict.suspects
                       if core.worker_gid >= 0})

    def __str__(self) -> str:
        answers = [verdict.text for verdict in self.report.verdicts]
        answers += [refusal.text for refusal in self.report.refusals]
        return "\n".join(filter(None, [*answers, self.report.text, *self.report.warnings]))

    def __repr__(self) -> str:
        return f"<Why {len(self.report.verdicts)} verdicts, {len(self.report.refusals)} refusals: {self.report.text}>"

    def _repr_html_(self) -> str:
        return views.why_html(self.report)


class Capture:
    """One capture of the aggregator. Attributes are as of the last call; `refresh` asks again.

    Calls raise `CallFailed` if the aggregator refuses or does not answer.
    """

    def __init__(self, connection: Connection, message: messages.Capture):
        self._connection = connection
        self.message = message  # all that the aggregator says about it
        self._tables: dict[str, Tables] = {}

    # -- what it is ----------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        return self.message.capture_id

    @property
    def name(self) -> str:
        return self.message.spec.name

    @property
    def state(self) -> str:
        """One of arming, recording, stopping, complete, incomplete and not_begun."""
        return messages.CaptureState.Name(self.message.state)[len("CAPTURE_STATE_"):].lower()

    @property
    def ended(self) -> bool:
        return self.message.state in _ENDED

    @property
    def complete(self) -> bool:
        """Every event that the runtimes produced is stored. False while it runs."""
        return self.message.state == messages.CAPTURE_STATE_COMPLETE

    @property
    def certificate(self) -> certificate_pb2.Certificate:
        """What the capture holds and lacks (docs/user/certificates.md).

        >>> cap.certificate.account.stored == cap.certificate.account.expected
        True
        """
        if not self.message.certificate.capture_id and not self.message.certificate.workers:
            self.refresh()
        return self.message.certificate

    @property
    def verdict(self) -> str:
        """The certificate in one line.

        >>> print(cap.verdict)
        complete...
        """
        return self.certificate.verdict

    @property
    def warnings(self) -> list[str]:
        return list(self.message.warnings)

    def refresh(self) -> Capture:
        """Asks the aggregator for the present state, and returns this object."""
        self.message = self._connection.call("GetCapture", self._reference())
        return self

    def require_complete(self) -> Capture:
        """Returns this object if every event is stored; raises `IncompleteCapture` with the findings otherwise.

        >>> cap.require_complete().complete
        True
        """
        self.refresh()
        certificate = self.message.certificate
        if not self.ended:
            raise IncompleteCapture(f"capture {self.id} is still {self.state}; stop it first")
        if not certificate.complete:
            raise IncompleteCapture("\n  ".join([f"capture {self.id}: {certificate.verdict}", *certificate.findings]))
        return self

    def why(self, *, job: str = "", start: float | None = None, end: float | None = None) -> Why:
        """Asks which ranks are slow or hung and why (docs/user/why.md). `start` and `end` select a window, in seconds
        from the capture's first event.

        >>> print(cap.why())
        Nobody to name...
        """
        request = insight_pb2.ExplainRequest(capture_id=self.id, job=job)
        if start is not None:
            request.begin_ns, request.begin_is_relative = spec.nanoseconds("start", start, zero=True), True
        if end is not None:
            request.end_ns, request.end_is_relative = spec.nanoseconds("end", end), True
        return Why(self._connection.call("Explain", request, timeout=EXPLAIN_SECONDS))

    # -- while it runs -------------------------------------------------------------------------------------------

    def stop(self) -> Capture:
        """Stops it and waits until all data is stored. Does nothing to a capture that has ended."""
        self.message = self._connection.call("StopCapture", self._reference())
        return self.wait()

    def wait(self) -> Capture:
        """Waits until the capture has ended, also through restarts of the aggregator."""
        for message in self._changes():
            if message.state in _ENDED:
                break
        return self.refresh()

    def wait_until_begun(self) -> Capture:
        """Waits until its workers record. Raises `CaptureNotBegun` with the reasons if they cannot."""
        for message in self._changes():
            if message.state not in (messages.CAPTURE_STATE_ARMING, messages.CAPTURE_STATE_UNSPECIFIED):
                break
        if self.message.state == messages.CAPTURE_STATE_NOT_BEGUN:
            raise CaptureNotBegun("\n  ".join([f"capture {self.id} did not begin", *self._reasons()]))
        # All workers begin at one planned moment, shortly after the last of them was armed.
        ahead_ns = self.message.begin.reference_ns - self.message.server_realtime_ns
        if ahead_ns > 0 and not self.ended:
            time.sleep(ahead_ns / spec.NS_PER_SECOND)
        return self

    def _changes(self) -> Iterator[messages.Capture]:
        """Yields the capture now and after every change, until it has ended."""
        while True:
            newest = self.message.server_realtime_ns
            failure: CallFailed | None = None
            try:
                for self.message in self._connection.stream("WatchCapture", self._reference()):
                    yield self.message
                    if self.message.state in _ENDED:
                        return
            except CallFailed as error:
                if error.code not in ("UNAVAILABLE", "DEADLINE_EXCEEDED"):
                    raise
                failure = error
            # Waits for the aggregator, and tells a restart from one that repeats itself.
            self.message = self._connection.call("GetCapture", self._reference(), timeout=RECONNECT_SECONDS)
            if self.message.server_realtime_ns <= newest and failure is not None:
                raise failure
            yield self.message
            if self.message.state in _ENDED:
                return

    def _reasons(self) -> list[str]:
        """Returns its warnings, and why each worker that was left out does not record."""
        reasons = list(self.message.warnings)
        for worker in self.message.workers:
            if worker.framework or (worker.state not in _LEFT_OUT and not worker.obstacle):
                continue
            obstacle = agent_gateway_pb2.CaptureObstacle.Name(worker.obstacle)[len("CAPTURE_OBSTACLE_"):]
            text = worker.detail or obstacle.replace("_", " ").lower()
            reasons.append(f"{worker.worker.instance_id} pid {worker.worker.pid}: {text}")
        return reasons[:views.ROWS_MAX]

    def warn_if_partial(self) -> None:
        """Warns with `IncompleteWarning` if some selected workers do not record."""
        reasons = self._reasons()
        if reasons:
            warnings.warn("\n  ".join([f"capture {self.id} does not record everything:", *reasons]), IncompleteWarning,
                          stacklevel=3)

    # -- its data ------------------------------------------------------------------------------------------------

    def save(self, path: str | pathlib.Path, *, format: str | None = None, **selection: Any) -> exports.Exported:
        """Writes the capture to a file, or to a new directory for the formats parquet and xspace.

        The format is that of the path's ending, as with `neurontrace export`; ``.gz`` compresses. `selection` narrows:
        `instances`, `ranks`, `cores`, `event_types`, `start` and `end` in seconds from the first event; `raw_clocks`
        leaves times unaligned. Warns with `IncompleteWarning` if the file lacks events.

        >>> made = cap.save(directory / "trace.pftrace")
        >>> made.path.name, made.incomplete, made.bytes > 1000
        ('trace.pftrace', False, True)
        """
        named, is_gzip = exports.format_of(path)
        chosen = format or named
        request = spec.export_request(self.id, chosen, gzip=is_gzip, **selection)
        made = exports.save(self._connection, request, pathlib.Path(path), chosen in exports.DIRECTORY_FORMATS)
        self._warn_of(made)
        return made

    def _warn_of(self, made: exports.Exported) -> None:
        sentences = list(made.warnings)
        if made.incomplete:
            sentences.insert(0, made.verdict)
        if sentences:
            warnings.warn("\n  ".join([f"the export of capture {self.id}:", *sentences]), IncompleteWarning,
                          stacklevel=4)

    def tables(self, **selection: Any) -> Tables:
        """Downloads the capture's tables, once for each selection of an ended capture; see `save` for `selection`."""
        request = spec.export_request(self.id, "parquet", **selection)
        key = repr(sorted((name, repr(value)) for name, value in selection.items()))
        if key in self._tables:
            return self._tables[key]
        if not self.ended:
            self.refresh()
        tables = Tables(self._connection, request)
        self._warn_of(tables.exported)
        if self.ended:
            self._tables[key] = tables
        return tables

    def to_arrow(self, table: str = "SystemProfileEvents", **selection: Any) -> pyarrow.Table:
        """Returns one of the tables of docs/formats/parquet.md; needs ``pip install 'neurontrace[arrow]'``.

        >>> events = cap.to_arrow("SystemProfileEvents")
        >>> events.num_rows > 0, cap.to_arrow("NtLosses").num_rows
        (True, 0)
        """
        return self.tables(**selection).arrow(table)

    def to_pandas(self, table: str = "SystemProfileEvents", **selection: Any) -> pandas.DataFrame:
        """Returns a table as a DataFrame; needs ``pip install 'neurontrace[pandas]'``."""
        return self.to_arrow(table, **selection).to_pandas()

    def sql(self, query: str, **selection: Any) -> duckdb.DuckDBPyRelation:
        """Returns the result of an SQL query over the tables; needs ``pip install 'neurontrace[sql]'``.

        The result has `fetchall()`, `arrow()` and `df()`. docs/user/recipes.md has queries.

        >>> cap.sql("SELECT count(DISTINCT worker_gid) FROM NtExecutions").fetchall()
        [(4,)]
        """
        return self.tables(**selection).sql(query)

    def open_perfetto(self, *, timeout: float = 60, **selection: Any) -> None:
        """Opens the trace at https://ui.perfetto.dev in the browser of this machine, and returns when the page has it.
        The trace stays on this machine."""
        with tempfile.TemporaryDirectory(prefix="neurontrace-") as directory:
            made = self.save(pathlib.Path(directory, "trace.pftrace"), **selection)
            perfetto.open_trace(made.path, timeout)

    def delete(self) -> None:
        """Deletes the capture and its data from the aggregator."""
        self._connection.call("DeleteCapture", self._reference())

    def _reference(self) -> messages.CaptureReference:
        return messages.CaptureReference(capture_id=self.id)

    def __repr__(self) -> str:
        return f"<Capture {self.id} {self.state}: {self.message.events:,} events, {self.message.events_lost:,} lost>"

    def _repr_html_(self) -> str:
        # Lists of captures lack the certificate's workers.
        if not self.message.certificate.workers:
            self.refresh()
        return views.capture_html(self.message, self.state)
