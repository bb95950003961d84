# SPDX-License-Identifier: Apache-2.0
"""Hosts that reach the runtime by dlopen and dlsym, as Python's ctypes does."""

import os
import sys
import unittest

from tap_agent import sequence_numbers
from tap_worker import CAPTURE, TAP_LIBRARY, TapTestCase

FRAMEWORK = os.environ["NT_TAP_FRAMEWORK"]

# What every host below has in common: answers lines of standard input, as tap_host does.
LOOP = """
import ctypes, sys, threading
tap_path = {tap!r}

class Field(ctypes.Structure):
    _fields_ = [("key", ctypes.c_char_p), ("kind", ctypes.c_int)]

class Event(ctypes.Structure):
    _fields_ = [("form", ctypes.c_void_p), ("nc_idx", ctypes.c_uint32), ("has_nrta_seq_id", ctypes.c_bool),
                ("thread_id", ctypes.c_uint64), ("tracking_id", ctypes.c_uint64),
                ("timestamp_ns", ctypes.c_uint64), ("nrta_seq_id", ctypes.c_uint64),
                ("values", ctypes.c_uint64 * 8)]

def emit(nrt, count):
    nrt.fake_nrt_define.restype = ctypes.c_void_p
    form = nrt.fake_nrt_define(b"nc_exec_running", b"instant", (Field * 1)(Field(b"exec_id", 0)), 1)
    nrt.fake_nrt_emit.restype = ctypes.c_bool
    return sum(nrt.fake_nrt_emit(ctypes.byref(Event(form=form, timestamp_ns=i)), None) for i in range(count))

{prologue}
for line in sys.stdin:
    words = line.split()
    if words[0] == "init":
        {init}
        print(status, flush=True)
    elif words[0] == "emit":
        print(emit(nrt, int(words[2])), flush=True)
    elif words[0] == "close":
        {close}
        print("closed", flush=True)
    elif words[0] == "misuses":
        print(nrt.fake_nrt_misuse_count(), flush=True)
    elif words[0] == "exit":
        sys.exit(0)
"""


class PythonHosts(TapTestCase):
    def host(self, preload, prologue, init, close):
        program = LOOP.format(tap=TAP_LIBRARY, prologue=prologue, init=init, close=close)
        return self.worker(preload=preload, command=[sys.executable, "-c", program])

    def check_capture(self, worker):
        agent = self.agent()
        self.assertEqual(worker.ask("init"), ["0"])
        connection = agent.accept()
        connection.start(CAPTURE)
        self.assertEqual(connection.answer(2)["result"], "ok")
        self.assertEqual(worker.ask("emit 0 300"), ["300"])
        self.assertEqual(worker.ask("close"), ["closed"])
        self.assertEqual(len(sequence_numbers(connection.buffer.read())[0]), 300)
        self.assertEqual(worker.ask("misuses"), ["0"])
        self.assertEqual(worker.exit(), 0)

    def test_calls_through_the_tap_under_ld_preload(self):
        # ctypes.CDLL(None) searches as the linker does, and finds the tap first.
        self.check_capture(self.host(
            preload=True, prologue='nrt = ctypes.CDLL("libnrt.so.1"); everything = ctypes.CDLL(None)',
            init='status = everything.nrt_init(1, b"", b"")', close="everything.nrt_close()"))

    def test_calls_through_a_tap_that_was_loaded_by_hand(self):
        self.check_capture(self.host(
            preload=False, prologue='nrt = ctypes.CDLL("libnrt.so.1"); tap = ctypes.CDLL(tap_path)',
            init='status = tap.nrt_init(1, b"", b"")', close="tap.nrt_close()"))

    def test_a_host_vouches_for_a_runtime_it_initialised_itself(self):
        self.check_capture(self.host(
            preload=False, prologue='nrt = ctypes.CDLL("libnrt.so.1")',
            init='status = nrt.nrt_init(1, b"", b""); tap = ctypes.CDLL(tap_path); '
                 'assert tap.neurontrace_tap_runtime_initialized() == 0',
            close="tap.neurontrace_tap_runtime_closing(); nrt.nrt_close()"))

    def test_a_host_vouches_under_ld_preload(self):
        self.check_capture(self.host(
            preload=True, prologue='nrt = ctypes.CDLL("libnrt.so.1"); everything = ctypes.CDLL(None)',
            init='status = nrt.nrt_init(1, b"", b""); everything.neurontrace_tap_runtime_initialized()',
            close="everything.neurontrace_tap_runtime_closing(); nrt.nrt_close()"))

    def test_a_library_that_links_the_runtime_is_seen_under_ld_preload(self):
        # As frameworks do it: Python loads a library that has libnrt.so.1 among its dependencies.
        self.check_capture(self.host(
            preload=True, prologue='nrt = ctypes.CDLL("libnrt.so.1"); '
                                   f"framework = ctypes.CDLL({FRAMEWORK!r})",
            init="status = framework.framework_init()", close="framework.framework_close()"))

    def test_without_a_runtime_vouching_is_refused_and_calls_fail(self):
        worker = self.host(
            preload=False, prologue='tap = ctypes.CDLL(tap_path)',
            init='status = tap.nrt_init(1, b"", b"") * 10 + tap.neurontrace_tap_runtime_initialized()',
            close="tap.nrt_close()")
        self.assertEqual(worker.ask("init"), ["11"])
        self.assertEqual(worker.ask("close"), ["closed"])
        self.assertEqual(worker.exit(), 0)


if __name__ == "__main__":
    unittest.main()
