# SPDX-License-Identifier: Apache-2.0
"""Many small captures of framework files on one fleet: how the cases of framework_cases_test.py are run.

A test method names its input by a decorator and gets a CaseResult:

    @file_case(cases.control_characters)             # one file, by --framework-file
    def test_control_characters(self, result): ...

    @directory_case(copy_and_overwrite)              # a folder, by --framework-dir, filled while the capture runs
    def test_overwritten(self, result): ...

All inputs of a class are recorded before its first test: one aggregator, an agent and a capture for each case, several
at once. A case has its own instance, so that its capture, exit code and exports are its own.
"""

import collections
import concurrent.futures
import functools
import json
import os
import subprocess
import unittest

from fleet import Fleet, wait_until
from ground_truth import read_events

# What an event's "ph" is called in the store.
PHASES = {"complete": "X", "instant": "i", "flow_start": "s", "flow_end": "f", "metadata": "M", "counter": "C"}
AT_ONCE = 6  # of the 16 captures that an aggregator runs


def file_case(write_input, *arguments, **options):
    """`write_input(folder, *arguments)` writes the file and returns its path. `agent_options`: of its agent."""
    def decorate(test):
        test.framework_case = ("file", functools.partial(_call, write_input, arguments), options)
        return test
    return decorate


def directory_case(script, *arguments, **options):
    """`script(run, *arguments)` fills the folder of a DirectoryRun while its capture records; the capture is stopped when
    it returns. `before(folder)` is called before the capture begins."""
    def decorate(test):
        test.framework_case = ("directory", functools.partial(_call, script, arguments), options)
        return test
    return decorate


def _call(function, arguments, first):
    return function(first, *arguments)


class DirectoryRun:
    def __init__(self, fleet, folder, capture_id):
        self.fleet, self.folder, self.capture_id = fleet, folder, capture_id

    def wait_for_events(self, count, seconds=20):
        return self.fleet.wait_for_capture(self.capture_id, lambda c: int(c["events"]) >= count, f"{count} events",
                                           seconds)

    def wait_for_remark(self, kind, seconds=30):
        """Until the capture's certificate, or the status of its worker, has a remark of this kind."""
        return self.fleet.wait_for_capture(self.capture_id, lambda c: kind in json.dumps(c), kind, seconds)


class CaseResult:
    """A capture that has ended; exports are made when they are asked for, in raw time."""

    def __init__(self, fleet, folder, capture_id, exit_code, output):
        self.fleet, self.folder, self.capture_id = fleet, folder, capture_id
        self.exit_code, self.output = exit_code, output
        self.capture = fleet.show_capture(capture_id)

    @property
    def stored(self):
        return int(self.capture["events"])

    @property
    def lost(self):
        return int(self.capture["events_lost"])

    @property
    def lost_unknown(self):
        return bool(self.capture["certificate"]["account"].get("lost_unknown"))

    @property
    def printed(self):
        """Everything that the capture says about itself, as text: to look for a name or a sentence in it."""
        return json.dumps(self.capture, ensure_ascii=False)

    @functools.cached_property
    def shown(self):
        """What `captures show` prints for people."""
        return self.fleet.cli("captures", "show", self.capture_id, codes=(0, 1, 3)).stdout

    def streams(self):
        """Streams by name."""
        return {stream["identity"]["name"]: stream for stream in self.capture["streams"]}

    @functools.cached_property
    def events(self):
        """Rows of the `events` format."""
        return list(read_events(self.fleet.export_events(self.capture_id)))

    def spans(self):
        """(name, start in ns after `since`, length in ns) of the store's complete events, counted."""
        return collections.Counter(
            (row["event"].get("name"), row["event"]["timestamp_ns"], row["event"].get("dur_ns", 0))
            for row in self.events if PHASES.get(row["event"]["phase"]) == "X")

    def names(self):
        return sorted(row["event"].get("name", "") for row in self.events)

    def export(self, format, name, *options):
        """The path of an export in one of the formats."""
        path = self.folder / name
        self.fleet.cli("export", self.capture_id, "--format", format, "--clock", "raw", "-o", path, *options,
                       codes=(0, 3))
        return path

    @functools.cached_property
    def json(self):
        return json.loads(self.export("json", "export.json").read_text(encoding="utf-8"))

    @functools.cached_property
    def chrome_json(self):
        return json.loads(self.export("chrome-json", "export.trace.json").read_text(encoding="utf-8"))

    @functools.cached_property
    def pftrace(self):
        return self.export("perfetto", "export.pftrace")

    @functools.cached_property
    def xspace(self):
        """The folder of the export."""
        return self.export("xspace", "xspace")

    def validate(self, *options):
        """`neurontrace validate` of the Perfetto export."""
        return subprocess.run([self.fleet.program("neurontrace"), "validate", *options, self.pftrace],
                              capture_output=True, text=True, check=False)


class FrameworkCases(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        cls.fleet = Fleet(os.environ["NT_BUILD_DIR"])
        cls.addClassCleanup(cls.fleet.shut_down)
        wanted = [name for name in unittest.TestLoader().getTestCaseNames(cls)
                  if hasattr(getattr(cls, name), "framework_case")]
        cls.fleet.start_aggregator()
        runs = {name: _Run(cls.fleet, name, *getattr(cls, name).framework_case) for name in wanted}
        for run in runs.values():
            run.start_agent()
        cls.fleet.wait_for_status(agents=len(runs))
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            cls.results = {name: pool.submit(run.record) for name, run in runs.items()}

    def __getattribute__(self, name):
        method = super().__getattribute__(name)
        if not hasattr(method, "framework_case"):
            return method
        return functools.wraps(method)(lambda: method(type(self).results[name].result()))

    def setUp(self):
        self.addCleanup(self._show_log_of_failure)

    def _show_log_of_failure(self):
        result = self._outcome.result
        log = self.fleet.logs / f"agent-{_instance(self._testMethodName)}.log"
        if self in [test for test, _ in result.errors + result.failures] and log.exists():
            print(f"--- {log.name}\n" + "\n".join(log.read_text(errors="replace").splitlines()[-20:]), flush=True)

    # -- checks ------------------------------------------------------------------------------------------------------

    def check_whole(self, result, events):
        """All is there and nothing else is said."""
        self.assertEqual((result.stored, result.lost, result.lost_unknown), (events, 0, False), result.printed)
        self.assertEqual(result.exit_code, 0, result.output)

    def check_lost(self, result, stored, lost=None):
        """`lost` None: an unknown number. What is lost is said, and never as "0 lost"."""
        self.assertEqual(result.stored, stored, result.printed)
        self.assertEqual(result.exit_code, 3, result.output)
        if lost is None:
            self.assertTrue(result.lost_unknown, result.printed)
        else:
            self.assertEqual((result.lost, result.lost_unknown), (lost, False), result.printed)
        self.assertNotRegex(result.shown, r"\b0 lost|\b0 or more")

    def check_exports(self, result):
        """Every format can be written, and Perfetto's is sound."""
        self.assertIn("trace_event", result.json)
        self.assertIn("traceEvents", result.chrome_json)
        self.assertTrue(list(result.xspace.glob("plugins/profile/*/*.xplane.pb")))
        done = result.validate("--strict")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def _instance(test_name):
    return test_name.removeprefix("test_").replace("_", "-")[:60]


class _Run:
    def __init__(self, fleet, name, kind, act, options):
        self.fleet, self.kind, self.act, self.options = fleet, kind, act, options
        self.instance = _instance(name)
        self.folder = fleet.dir / self.instance
        self.folder.mkdir()

    def start_agent(self):
        if self.kind == "file":
            source = ("--framework-file", self.act(self.folder))
        else:
            watched = self.folder / "watched"
            watched.mkdir()
            source = ("--framework-dir", watched)
        self.fleet.start_agent(self.instance, *source, *self.options.get("agent_options", ()))

    def record(self):
        if self.kind == "directory":
            return self._record_directory()
        done = self.fleet.cli("capture", "--duration", "300ms", "--no-neuron", "--instance", self.instance,
                              "--name", self.instance, check=False)
        return self._result(self._capture_id(), done)

    def _record_directory(self):
        watched = self.folder / "watched"
        if "before" in self.options:
            self.options["before"](watched)
        capture_id = self.fleet.cli("capture", "start", "--no-neuron", "--instance", self.instance, "--name",
                                    self.instance).stdout.strip()
        wait_until(lambda: self._takes_part(capture_id), f"{self.instance} to take part")
        self.act(DirectoryRun(self.fleet, watched, capture_id))
        done = self.fleet.cli("capture", "stop", capture_id, check=False)
        return self._result(capture_id, done)

    def _takes_part(self, capture_id):
        return any(worker.get("framework") and worker["state"] == "CAPTURE_WORKER_STATE_RECORDING"
                   for worker in self.fleet.show_capture(capture_id)["workers"])

    def _capture_id(self):
        return next(capture["capture_id"] for capture in self.fleet.cli_json("captures")["captures"]
                    if capture["spec"].get("name") == self.instance)

    def _result(self, capture_id, done):
        return CaseResult(self.fleet, self.folder, capture_id, done.returncode, done.stdout + done.stderr)
