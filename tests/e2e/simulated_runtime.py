# SPDX-License-Identifier: Apache-2.0
"""The simulated runtime (tests/fake_nrt) in a Python process: executions that the process itself makes, as a framework's
would, beside whatever the framework does. LD_PRELOAD has to have the library, behind the tap."""

import contextlib
import ctypes
import os
import threading
import time

PYTORCH = 2  # nrt_framework_type_t
UNSIGNED, STRING = 0, 5  # fake_nrt_kind
VALUES_MAX = 8
DEVICE_COUNTER_BEHIND_NS = 1_700_000_000_000_000_000  # a counter that began somewhere, without a drift


class _Field(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("kind", ctypes.c_int)]


class _Event(ctypes.Structure):
    _fields_ = [("form", ctypes.c_void_p), ("nc_idx", ctypes.c_uint32), ("has_nrta_seq_id", ctypes.c_bool),
                ("thread_id", ctypes.c_uint64), ("tracking_id", ctypes.c_uint64), ("timestamp_ns", ctypes.c_uint64),
                ("nrta_seq_id", ctypes.c_uint64), ("values", ctypes.c_uint64 * VALUES_MAX)]


class SimulatedRuntime:
    """The runtime of this process, with its first core, which has a rank of the job. To be used by one thread at a time."""

    def __init__(self, rank=0, world_size=1, framework=PYTORCH):
        self._library = ctypes.CDLL(None)
        self._library.fake_nrt_define.restype = ctypes.c_void_p
        self._library.fake_nrt_string.restype = ctypes.c_uint64
        self._library.fake_nrt_next_tracking_id.restype = ctypes.c_uint64
        # The tap is in front of the runtime and sees the call.
        status = self._library.nrt_init(framework, b"", b"")
        if status == 0:
            status = self._library.nrt_build_global_comm(0, rank, world_size)
        if status != 0:
            raise RuntimeError(f"the simulated runtime has failed with status {status}")
        self._core = self._library.fake_nrt_first_physical_core()
        self._executions = 0
        self._model = self._library.fake_nrt_string(b"/models/train.neff")
        self._forms = {
            "execute": self._define("nrt_execute", ("model_id", UNSIGNED), ("model_name", STRING)),
            "prepare": self._define("kbl_exec_pre", ("exec_id", UNSIGNED), ("model_name", STRING)),
            "sync": self._define("timestamp_sync_point", ("exec_id", UNSIGNED), ("nc_timestamp_ns", UNSIGNED),
                                 ("cpu_timestamp_ns", UNSIGNED)),
            "running": self._define("nc_exec_running", ("device_core_idx", UNSIGNED), ("exec_id", UNSIGNED),
                                    ("nc_timestamp_ns", UNSIGNED), ("model_id", UNSIGNED), ("model_name", STRING)),
        }

    def _define(self, event_type, *fields):
        """The forms of both ends of a span, or of an instant."""
        def form(phase, some):
            array = (_Field * max(len(some), 1))(*[_Field(key.encode(), kind) for key, kind in some])
            return self._library.fake_nrt_define(event_type.encode(), phase, array, len(some))
        if event_type == "timestamp_sync_point":
            return (form(b"instant", fields),)
        ticks = [field for field in fields if field[0] == "nc_timestamp_ns"]
        return form(b"start", fields), form(b"stop", ticks)

    def _emit(self, form, tracking_id, timestamp_ns, *values):
        event = _Event(form=form, nc_idx=self._core, thread_id=threading.get_native_id(), tracking_id=tracking_id,
                       timestamp_ns=timestamp_ns, values=(ctypes.c_uint64 * VALUES_MAX)(*values))
        self._library.fake_nrt_emit(ctypes.byref(event), None)

    @contextlib.contextmanager
    def execution(self):
        """An nrt_execute of this thread around the block; the core runs for as long."""
        def next_id():
            return self._library.fake_nrt_next_tracking_id(self._core)
        exec_id, self._executions = self._executions, self._executions + 1
        call, prepare, running = next_id(), next_id(), next_id()
        begin_ns = time.time_ns()
        self._emit(self._forms["execute"][0], call, begin_ns, 1, self._model)
        # Its exec_id joins the call to what the core runs.
        self._emit(self._forms["prepare"][0], prepare, time.time_ns(), exec_id, self._model)
        self._emit(self._forms["prepare"][1], prepare, time.time_ns())
        synced_ns = time.time_ns()
        self._emit(self._forms["sync"][0], next_id(), time.time_ns(), exec_id, synced_ns - DEVICE_COUNTER_BEHIND_NS, synced_ns)
        device_begin_ns = time.time_ns()
        self._emit(self._forms["running"][0], running, device_begin_ns, self._core, exec_id,
                   device_begin_ns - DEVICE_COUNTER_BEHIND_NS, 1, self._model)
        try:
            yield
        finally:
            device_end_ns = time.time_ns()
            self._emit(self._forms["running"][1], running, device_end_ns, device_end_ns - DEVICE_COUNTER_BEHIND_NS)
            self._emit(self._forms["execute"][1], call, time.time_ns())

    def close(self):
        self._library.nrt_close()


def runtime_of_environment():
    """With the rank that torchrun and Slurm's launchers tell a process."""
    return SimulatedRuntime(int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1")))
