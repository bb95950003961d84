# SPDX-License-Identifier: Apache-2.0
"""Turns the arguments of a capture or of an export into the messages of the operator service. Pure functions.

The aggregator checks names, ranges and limits again; here only what a message cannot express is refused.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from .errors import NeurontraceError
from .v1 import operator_service_pb2 as messages
from .v1 import vocabulary_pb2

NS_PER_SECOND = 1_000_000_000
UINT64_MAX = (1 << 64) - 1


def nanoseconds(name: str, seconds: float, *, zero: bool = False) -> int:
    """Returns seconds as ns.

    >>> nanoseconds("duration", 1.5)
    1500000000
    >>> nanoseconds("duration", -1)
    Traceback (most recent call last):
    ...
    neurontrace.errors.NeurontraceError: duration=-1: must be a number of seconds above 0
    """
    limit = "of at least 0" if zero else "above 0"
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise NeurontraceError(f"{name}={seconds!r}: must be a number of seconds {limit}")
    if not (0 <= seconds if zero else 0 < seconds) or seconds * NS_PER_SECOND > UINT64_MAX:
        raise NeurontraceError(f"{name}={seconds}: must be a number of seconds {limit}")
    return round(seconds * NS_PER_SECOND)


def texts(name: str, values: Iterable[str]) -> list[str]:
    """Returns the values as a list. A single text is refused: it would count as its letters."""
    if isinstance(values, str):
        raise NeurontraceError(f"{name}={values!r}: must be a list, such as [{values!r}]")
    return list(values)


def ranges(ranks: Iterable[int]) -> list[tuple[int, int]]:
    """Returns ranks as ranges that include both ends.

    >>> ranges([5, 0, 1, 2, 2])
    [(0, 2), (5, 5)]
    """
    found: list[tuple[int, int]] = []
    for rank in sorted(set(ranks)):
        if found and rank == found[-1][1] + 1:
            found[-1] = (found[-1][0], rank)
        else:
            found.append((rank, rank))
    return found


def _gid_ranges(ranks: Iterable[int]) -> list[vocabulary_pb2.GidRange]:
    return [vocabulary_pb2.GidRange(first=first, last=last) for first, last in ranges(ranks)]


def _pairs(values: Mapping[str, Any]) -> list[vocabulary_pb2.KeyValue]:
    return [vocabulary_pb2.KeyValue(key=key, value=str(value)) for key, value in values.items()]


def _set_end(spec: vocabulary_pb2.CaptureSpec, duration: float | None, executions: int | None,
             at_execution: int | str | None, max_bytes: int | None) -> None:
    if duration is not None:
        spec.duration_ns = nanoseconds("duration", duration)
    if executions is not None:
        spec.executions = executions
    if at_execution == "next":
        spec.at_next_execution = True
    elif isinstance(at_execution, str):
        raise NeurontraceError(f"at_execution={at_execution!r}: must be a number of at least 1, or 'next'")
    elif at_execution is not None:
        spec.at_execution = at_execution
    if max_bytes is not None:
        spec.bytes_max = max_bytes


def capture_spec(*, name: str = "", job: str = "", facts: Mapping[str, str] = {}, instances: Iterable[str] = (),
                 ranks: Iterable[int] = (), cores: Iterable[int] = (), event_types: Iterable[str] = (),
                 all_events: bool = False, neuron: bool = True, framework: bool = True, duration: float | None = None,
                 executions: int | None = None, at_execution: int | str | None = None, max_bytes: int | None = None,
                 last: float | str | None = None, keep_for: float | None = None, require_percent: int = 0,
                 ring_events: int = 0, labels: Mapping[str, Any] = {}, frameworks: Iterable[str] = (),
                 framework_steps: int = 0, framework_first_step: int = 0, framework_stacks: bool = False,
                 ) -> vocabulary_pb2.CaptureSpec:
    """Returns what `Client.start` asks for; its documentation describes the arguments."""
    try:
        spec = vocabulary_pb2.CaptureSpec(
            name=name, job=job, job_facts=_pairs(facts), instance_ids=texts("instances", instances),
            worker_gids=_gid_ranges(ranks), neuron_cores=list(cores), event_types=texts("event_types", event_types),
            all_events=all_events, include_neuron=neuron, include_framework=framework, require_percent=require_percent,
            ring_events_per_core=ring_events, labels=_pairs(labels), frameworks=texts("frameworks", frameworks),
            framework_steps=framework_steps, framework_first_step=framework_first_step,
            framework_stacks=framework_stacks)
        _set_end(spec, duration, executions, at_execution, max_bytes)
    except (TypeError, ValueError) as error:  # of protobuf, whose text names value and type
        raise NeurontraceError(f"a wrong argument of a capture: {error}") from None
    if keep_for is not None:
        spec.retention_ns = nanoseconds("keep_for", keep_for)
    if last is not None:
        if duration is not None or executions is not None or at_execution is not None:
            raise NeurontraceError("last selects events before now; omit duration, executions and at_execution")
        spec.mode = vocabulary_pb2.CAPTURE_MODE_SNAPSHOT
        spec.include_framework = False  # the rings hold no framework files
        if last != "all":
            spec.last_ns = nanoseconds("last", last)  # type: ignore[arg-type]
    return spec


def export_request(capture_id: str, format_name: str, *, instances: Iterable[str] = (), ranks: Iterable[int] = (),
                   cores: Iterable[int] = (), event_types: Iterable[str] = (), start: float | None = None,
                   end: float | None = None, raw_clocks: bool = False, gzip: bool = False) -> messages.ExportRequest:
    """Returns the request of an export; `Capture.save` describes the arguments."""
    wanted = "EXPORT_FORMAT_" + format_name.upper().replace("-", "_")
    if wanted not in messages.ExportFormat.keys() or format_name == "unspecified":
        known = ", ".join(name[len("EXPORT_FORMAT_"):].lower().replace("_", "-")
                          for name in messages.ExportFormat.keys()[1:])
        raise NeurontraceError(f"format={format_name!r} does not exist; the formats are {known}")
    try:
        request = messages.ExportRequest(
            capture_id=capture_id, format=wanted,
            instance_ids=texts("instances", instances), worker_gids=_gid_ranges(ranks), neuron_cores=list(cores),
            event_types=texts("event_types", event_types), raw_clocks=raw_clocks)
    except (TypeError, ValueError) as error:
        raise NeurontraceError(f"a wrong argument of an export: {error}") from None
    if start is not None:
        request.window_start_ns = nanoseconds("start", start, zero=True)
        request.window_start_is_relative = True
    if end is not None:
        request.window_end_ns = nanoseconds("end", end)
        request.window_end_is_relative = True
    if gzip:
        request.compression = messages.EXPORT_COMPRESSION_GZIP
    return request
