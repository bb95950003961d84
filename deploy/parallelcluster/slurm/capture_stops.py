# SPDX-License-Identifier: Apache-2.0
"""How neurontrace_slurm.py, which lies beside this, has captures stopped: without waiting for it."""

import subprocess
import tempfile
import time

STOP_SECONDS = 600  # a capture is stored by then, or its stop is tried again
STOPS_MAX = 16  # at once
PAUSE_SECONDS = 5  # after a stop that failed, each time this much longer than the time before, up to
PAUSES_MAX = 6  # so many times this
WORDS_BYTES_MAX = 4096


class Stop:
    """A capture that is being stopped. The command follows it until all of it is stored, which can take a minute, so
    nobody waits for it: `outcome` is asked now and then."""

    def __init__(self, command):
        self._words = tempfile.TemporaryFile()
        self._deadline = time.monotonic() + STOP_SECONDS
        try:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                             stderr=self._words)
        except OSError:
            self._words.close()
            raise

    def outcome(self):
        """None while it continues; then what went wrong, or nothing."""
        code = self._process.poll()
        if code is None:
            if time.monotonic() < self._deadline:
                return None
            self._process.kill()
            self._process.wait()
        with self._words:
            self._words.seek(0)
            words = self._words.read(WORDS_BYTES_MAX).decode(errors="replace").strip()
        if code is None:
            return f"neurontrace capture stop: not finished after {STOP_SECONDS} s"
        return "" if code in (0, 3) else f"neurontrace capture stop: {words or code}"


class Stops:
    """Of captures whose job has ended: at most one at a time for each, and not many at once. One that fails is tried
    again later, as the capture continues."""

    def __init__(self, neurontrace, report, clock):
        self._neurontrace = neurontrace
        self._log = report
        self._clock = clock
        self._running = {}  # capture: its stop
        self._again = {}  # capture whose stop failed: how often, and when it is tried again

    def look(self):
        for capture_id, stop in list(self._running.items()):
            failure = stop.outcome()
            if failure is not None:
                del self._running[capture_id]
                self._note(capture_id, failure)

    def stop(self, capture_id, job_id):
        if capture_id in self._running or len(self._running) >= STOPS_MAX:
            return
        if self._clock() < self._again.get(capture_id, (0, 0))[1]:
            return
        self._log(f"job {job_id} has ended: stopping capture {capture_id}")
        try:
            self._running[capture_id] = self._neurontrace.begin_stop(capture_id)
        except OSError as error:
            self._note(capture_id, str(error))

    def _note(self, capture_id, failure):
        if not failure:
            self._again.pop(capture_id, None)
            return
        self._log(f"capture {capture_id}: {failure}")
        tries = self._again.get(capture_id, (0, 0))[0] + 1
        self._again[capture_id] = (tries, self._clock() + PAUSE_SECONDS * min(tries, PAUSES_MAX))

    def forget_all_but(self, capture_ids):
        """What is not there any more needs no further try."""
        self._again = {capture: when for capture, when in self._again.items() if capture in capture_ids}
