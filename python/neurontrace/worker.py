# SPDX-License-Identifier: Apache-2.0
"""For code of a training job: names of phases and steps on the timeline, and triggers.

Imports neither gRPC nor protobuf and starts no thread. Where nothing listens, `annotate` and `step` do nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import logging
import os
import re
from typing import Any, Callable, NamedTuple

log = logging.getLogger("neurontrace")

# Numbers of NVTX 3 (nvToolsExt, Apache-2.0 with LLVM exception): the table of callbacks, its module of core functions,
# and the functions in it.
_ETID_CALLBACKS = 1
_MODULE_CORE = 1
_CORE_SIZE = 16
_PUSH_A = 9
_POP = 11

MESSAGE_BYTES_MAX = 1_024
CAUSE_BYTES_MAX = 4 << 10  # as the agent's
RULE_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")

# Keeps its arguments alive, and runs without releasing the interpreter's lock, which costs more than the call.
_Push = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p)
_Pop = ctypes.PYFUNCTYPE(ctypes.c_int)
_GetExportTable = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)
_GetTable = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint))


class _Callbacks(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("get_module_function_table", _GetTable)]


class _Nvtx:
    """The client's side of NVTX: a table of functions that an injection library fills in.

    The library keeps pointers into this object, so that it lives as long as the process.
    """

    def __init__(self, path: str):
        """Loads the library. Raises OSError or AttributeError if it is none for NVTX."""
        self._slots = (ctypes.c_void_p * _CORE_SIZE)()
        self._table = (ctypes.c_void_p * (_CORE_SIZE + 1))()
        for number in range(1, _CORE_SIZE):
            self._table[number] = ctypes.addressof(self._slots) + number * ctypes.sizeof(ctypes.c_void_p)
        self._get_table = _GetTable(self._give_table)
        self._callbacks = _Callbacks(ctypes.sizeof(_Callbacks), self._get_table)
        self._get_export_table = _GetExportTable(self._give_export_table)
        self._library = ctypes.CDLL(path)
        self._library.InitializeInjectionNvtx2(self._get_export_table)
        self.push: Callable[[bytes], Any] | None = None
        self.pop: Callable[[], Any] | None = None
        if self._slots[_PUSH_A] and self._slots[_POP]:
            self.push, self.pop = _Push(self._slots[_PUSH_A] or 0), _Pop(self._slots[_POP] or 0)

    def _give_table(self, module: int, table: Any, size: Any) -> int:
        if module != _MODULE_CORE:
            return 0
        if table:
            table[0] = ctypes.addressof(self._table)
        if size:
            size[0] = _CORE_SIZE
        return 1

    def _give_export_table(self, table: int) -> int | None:
        return ctypes.addressof(self._callbacks) if table == _ETID_CALLBACKS else None


_nvtx: _Nvtx | None = None
_push: Callable[[bytes], Any] | None = None
_pop: Callable[[], Any] | None = None


def _load(path: str) -> None:
    """Sets what `annotate` calls. Called once, when the module is imported."""
    global _nvtx, _push, _pop
    if not path:
        return
    try:
        _nvtx = _Nvtx(path)
    except (OSError, AttributeError) as error:
        log.warning("annotations are not recorded: NVTX_INJECTION64_PATH names %s: %s", path, error)
        return
    _push, _pop = _nvtx.push, _nvtx.pop
    if _push is None:
        log.warning("annotations are not recorded: %s takes no ranges of NVTX", path)


class annotate(contextlib.ContextDecorator):
    """Names what the block, or the decorated function, does: a span on the thread's row of the timeline.

    Goes to the NVTX injection library in NVTX_INJECTION64_PATH, as `nvtx.annotate` does; without one it does nothing.
    The variable is read when this package is imported. A message has at most 1,024 bytes; the rest is cut off.

    >>> with annotate("forward"):
    ...     loss = 1.0
    >>> @annotate("load batch")
    ... def load():
    ...     return 7
    >>> load()
    7
    """

    __slots__ = ("_message",)

    def __init__(self, message: str):
        self._message = message.encode("utf-8", "replace").replace(b"\0", b" ")[:MESSAGE_BYTES_MAX]

    def __enter__(self) -> annotate:
        if _push is not None:
            _push(self._message)
        return self

    def __exit__(self, *_: object) -> None:
        if _pop is not None:
            _pop()


def step(number: int) -> annotate:
    """Returns an `annotate` that marks a training step: a span "step 812".

    >>> with step(812):
    ...     loss = 1.0
    """
    return annotate(f"step {number:d}")


class Triggered(NamedTuple):
    """The answer to `trigger`."""

    accepted: bool  # the agent forwards it; the aggregator decides whether a capture starts
    text: str  # of the answer, or why there is none


def trigger(rule: str, cause: str = "", *, address: str | None = None, timeout: float = 2.0) -> Triggered:
    """Fires a trigger rule with ``when = "post"`` (docs/user/triggers.md) through the agent of this machine.

    `address` is the agent's HTTP port, else NEURONTRACE_TRIGGER_ADDRESS, else ``127.0.0.1:9401``. Waits for the answer
    for `timeout` seconds at most. Never raises for what happens outside of the process: a job must not end because of
    its tracing. Failures are logged as warnings, and `Triggered.text` has them.

    >>> trigger("loss-is-nan", "step 812", address="127.0.0.1:1").accepted
    False
    """
    if not RULE_NAME.fullmatch(rule):
        raise ValueError(f"rule {rule!r}: a name has 1 to 64 letters, digits and - _ .")
    place = address or os.environ.get("NEURONTRACE_TRIGGER_ADDRESS") or "127.0.0.1:9401"
    body = cause.encode("utf-8", "replace")[:CAUSE_BYTES_MAX]
    try:
        connection = http.client.HTTPConnection(place, timeout=timeout)
        with contextlib.closing(connection):
            connection.request("POST", f"/triggers/{rule}", body)
            answer = connection.getresponse()
            result = Triggered(answer.status == 202, answer.read(CAUSE_BYTES_MAX).decode("utf-8", "replace").strip())
    except (OSError, http.client.HTTPException) as error:
        result = Triggered(False, f"no answer from the agent at {place}: {error}")
    if not result.accepted:
        log.warning("trigger %s: %s", rule, result.text)
    return result


_load(os.environ.get("NVTX_INJECTION64_PATH", ""))
