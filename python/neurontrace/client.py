# SPDX-License-Identifier: Apache-2.0
"""The client of an aggregator."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterable, Iterator

from .settings import find_settings

if TYPE_CHECKING:
    from .capture import Capture, Why
    from .v1 import agent_gateway_pb2, operator_service_pb2

CALL_SECONDS = 5.0  # as the command's --connect-timeout-ms


class Client:
    """A connection to an aggregator. What is not given comes from the environment, else from the files of options of
    the `neurontrace` command, else `address` is ``127.0.0.1:9400``.

    `ca`, `cert` and `key` are PEM files, read when the client is made; `token_file` has a bearer token, read for every
    call; `server_name` is the name in the aggregator's certificate if it differs from the address; `insecure` allows
    plain text with other machines. `timeout` is in seconds, for each call.

    May be used from any thread, but not in a process that was forked after it was made. Raises `SettingsError`.

    >>> client.status().agents_connected
    2
    """

    def __init__(self, address: str | None = None, *, ca: str | None = None, cert: str | None = None,
                 key: str | None = None, server_name: str | None = None, token_file: str | None = None,
                 insecure: bool | None = None, timeout: float = CALL_SECONDS):
        self.settings = find_settings(address=address, ca=ca, cert=cert, key=key, server_name=server_name,
                                      token_file=token_file, insecure=insecure)
        # Not before: gRPC starts threads, and the module must be importable in processes that fork.
        from . import capture, spec, wire
        from .v1 import operator_service_pb2
        self._captures = capture
        self._spec = spec
        self._messages = operator_service_pb2
        self._connection = wire.Connection(self.settings, timeout)

    def close(self) -> None:
        """Closes the connection. Captures continue; objects of this client cannot be used any more."""
        self._connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Client of {self.settings.address}>"

    # -- the fleet -----------------------------------------------------------------------------------------------

    def status(self) -> operator_service_pb2.GetStatusReply:
        """Returns the state of the aggregator, with its agents and their clocks."""
        return self._connection.call("GetStatus", self._messages.GetStatusRequest())

    def workers(self, *, job: str = "",
                instances: Iterable[str] = ()) -> list[agent_gateway_pb2.WorkerInventory]:
        """Returns the workers that agents know, with their cores and ranks.

        >>> sorted(core.rank_evidence[0].worker_gid for worker in client.workers() for core in worker.cores)
        [0, 1, 2, 3]
        """
        request = self._messages.ListWorkersRequest(job=job, instance_ids=self._spec.texts("instances", instances))
        return list(self._connection.call("ListWorkers", request).workers)

    def why(self, *, job: str = "") -> Why:
        """Returns which ranks are slow or hung now, if the aggregator has a watch (docs/operator/watch.md)."""
        from .v1 import insight_pb2
        request = insight_pb2.ExplainRequest(job=job)
        return self._captures.Why(
            self._connection.call("Explain", request, timeout=self._captures.EXPLAIN_SECONDS))

    # -- captures ------------------------------------------------------------------------------------------------

    def captures(self) -> list[Capture]:
        """Returns all captures, running and stored, the oldest first."""
        reply = self._connection.call("ListCaptures", self._messages.ListCapturesRequest())
        return [self._captures.Capture(self._connection, message) for message in reply.captures]

    def get(self, capture_id: str) -> Capture:
        """Returns a capture by its id or a unique beginning of it.

        >>> client.get(cap.id).id == cap.id
        True
        """
        message = self._connection.call("GetCapture", self._messages.CaptureReference(capture_id=capture_id))
        return self._captures.Capture(self._connection, message)

    def start(self, **options: Any) -> Capture:
        """Starts a capture and returns once its workers record; `Capture.stop` ends it.

        Selection of workers: `job`, `facts` (such as ``{"slurm": "4711"}``), `instances`, `ranks`, `cores`. Selection
        of events: `event_types`, `all_events`, `neuron`, `framework`, `ring_events` per core. End: `duration` in
        seconds, `executions`, `max_bytes`; without one of them it records until it is stopped. Begin: `at_execution`,
        a number or ``"next"``. `last` takes a snapshot of the flight recorder instead: seconds before now, or
        ``"all"``. `frameworks`, such as ``["pytorch"]``, has these record in the workers, too, for `duration` or for
        `framework_steps` of the optimizer (from `framework_first_step` on, or as soon as possible), with
        `framework_stacks` also call stacks; the capture then begins seven seconds later. Others: `name`, `labels`,
        `keep_for` in seconds after its end, `require_percent` of the selected workers.

        Raises `CaptureNotBegun` if it records nothing, and warns with `IncompleteWarning` if some workers do not
        record.
        """
        request = self._messages.StartCaptureRequest(spec=self._spec.capture_spec(**options))
        # Never repeated: the first one may have started a capture.
        started = self._captures.Capture(self._connection, self._connection.call("StartCapture", request))
        started.wait_until_begun()
        started.warn_if_partial()
        return started

    @contextlib.contextmanager
    def capture(self, **options: Any) -> Iterator[Capture]:
        """Records while the block runs, and stores everything before it ends. Arguments are those of `start`.

        >>> with client.capture(name="example") as recorded:
        ...     train_some()
        >>> recorded.state
        'complete'
        """
        started = self.start(**options)
        try:
            yield started
        finally:
            started.stop()

    def fire(self, rule: str, cause: str = "") -> operator_service_pb2.FireTriggerReply:
        """Fires a trigger rule (docs/user/triggers.md). The reply has the capture's id, or why there is no new one."""
        return self._connection.call("FireTrigger", self._messages.FireTriggerRequest(name=rule, cause=cause))
