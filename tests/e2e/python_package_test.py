# SPDX-License-Identifier: Apache-2.0
"""The Python package against a fleet: the examples of its documentation, its tables beside the command's own exports, and
the notebook of examples/.

Runs where scripts/setup has put gRPC, pandas and the readers of Parquet into build/python (PYTHONPATH names it).
"""

import ast
import contextlib
import doctest
import importlib
import json
import os
import sys
import time
import unittest.mock
from pathlib import Path

import suite
from fleet import wait_until
from fleet_case import FleetCase
from framework_input import write_fixture
from ground_truth import compare
from kineto_job import KinetoJob
from pftrace_reader import Pftrace

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "examples" / "notebook"
sys.path.insert(0, str(ROOT / "python" / "tests"))

try:
    import duckdb  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    from built_package import HAS_GRPC
    MISSING = "" if HAS_GRPC else "no grpcio"
except ImportError as error:
    MISSING = str(error)

if not MISSING:
    import neurontrace as nt
    CAPTURE, CLIENT = (importlib.import_module(f"neurontrace.{name}") for name in ("capture", "client"))


def run_notebook(path, namespace):
    """Runs the code cells of a notebook in order; returns the HTML or text that each shows, as Jupyter would."""
    shown = []
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"]), f"{path.name}, cell {number}")
        last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
        exec(compile(body, f"{path.name}, cell {number}", "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), f"{path.name}, cell {number}", "eval"), namespace)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    return shown


@suite.needs_of_setup(MISSING, f"{MISSING}: see scripts/setup")
class PackageTest(FleetCase):
    def setUp(self):
        super().setUp()
        self.enterContext(unittest.mock.patch.dict(os.environ, NEURONTRACE_CONFIG=""))

    def start(self, *options):
        self.start_instances("i-0001", "i-0002")
        workers = self.start_ranks(*options)
        client = nt.Client(self.fleet.address, timeout=60)
        self.addCleanup(client.close)
        return workers, client

    def test_the_documentation_and_the_tables(self):
        workers, client = self.start()
        with client.capture(name="from python", labels={"step": 7}) as cap:
            self.wait_for_more_work(workers, 40)  # `why` judges from a few executions on
        self.assertEqual((cap.state, cap.name), ("complete", "from python"))
        self.check_documentation(client, cap, workers)
        self.check_tables(cap)
        self.check_files(cap)
        self.assertIn(cap.id, [one.id for one in client.captures()])
        cap.delete()
        with self.assertRaises(nt.CallFailed) as caught:
            cap.refresh()
        self.assertEqual(caught.exception.code, "NOT_FOUND")

    def check_documentation(self, client, cap, workers):
        """The examples in the documentation of the classes are as written there."""
        names = {"client": client, "cap": cap, "directory": self.fleet.dir,
                 "train_some": lambda: self.wait_for_more_work(workers)}
        tried = 0
        for module in (CAPTURE, CLIENT):
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            result = doctest.testmod(module, extraglobs=names, optionflags=flags)
            self.assertEqual(result.failed, 0, module)
            tried += result.attempted
        self.assertGreater(tried, 10)

    def check_tables(self, cap):
        """Executions by rank as the command's own Parquet export has them, in all three ways to read them."""
        rows = cap.to_arrow("NtExecutions").to_pylist()
        self.assertEqual({row["worker_gid"] for row in rows}, {0, 1, 2, 3})
        self.assertEqual(len(cap.to_pandas("NtExecutions")), len(rows))
        self.assertEqual(cap.sql("SELECT count(*) FROM NtExecutions").fetchall(), [(len(rows),)])
        self.assertEqual(cap.sql("SELECT count(*) FROM NtLosses").fetchall(), [(0,)])
        one = cap.to_arrow("NtExecutions", ranks=[2]).to_pylist()
        self.assertEqual({row["worker_gid"] for row in one}, {2})
        with self.assertRaisesRegex(nt.NeurontraceError, "the tables are CpuUsage, "):
            cap.to_arrow("NoSuchTable")

    def check_files(self, cap):
        made = cap.save(self.fleet.dir / "all.pftrace")
        self.assertEqual(len({entry.track.process for entry in Pftrace(made.path).events()}), 2)
        events = cap.save(self.fleet.dir / "events.jsonl")
        for worker in self.fleet.workers:
            self.assertEqual(worker.stop(), 0, worker.log.read_text())
        # The examples of the documentation have captured later.
        result = compare(self.fleet.workers, events.path, traces={1})
        self.assertTrue(result.ok(), result)

    def test_why_names_the_planted_straggler(self):
        workers, client = self.start("--straggler-rank", 3, "--straggler-extra-us", 8_000, "--start-at",
                                     time.time_ns() + 2_000_000_000)
        with client.capture() as cap:
            self.wait_for_more_work(workers, 40)
        command = json.loads(self.fleet.cli("why", cap.id, "--json", codes=(0, 3)).stdout)
        answer = cap.why()
        self.assertEqual([verdict.text for verdict in answer.verdicts],
                         [verdict["text"] for verdict in command["verdicts"]])
        self.assertEqual(len(answer.refusals), len(command["refusals"]))

    def test_a_trigger_from_a_worker(self):
        rules = self.fleet.dir / "triggers"
        rules.write_text('[loss-is-nan]\nwhen = "post"\nrecord-for = "200ms"\n')
        self.fleet.start_aggregator("--triggers", rules)
        _, client = self.start()
        port = self.fleet.agents["i-0001"].health_port
        answer = nt.trigger("loss-is-nan", "step 812", address=f"127.0.0.1:{port}", timeout=60)
        self.assertTrue(answer.accepted, answer.text)
        found = wait_until(lambda: client.captures(), "the rule's capture")[0]
        self.assertIn("step 812", found.message.spec.cause)
        found.wait()

    def test_the_notebook(self):
        self.fleet.start_aggregator()
        fixture = self.fleet.dir / "worker0.pt.trace.json"
        write_fixture(fixture, rank=0)
        self.start_instances("i-0001", "i-0002", agent_options=("--framework-file", fixture))
        self.start_ranks()
        namespace = {}
        with unittest.mock.patch.dict(os.environ, NEURONTRACE_AGGREGATOR=self.fleet.address):
            shown = run_notebook(NOTEBOOKS / "slow_operators.ipynb", namespace)
        self.assertTrue(any("complete" in text for text in shown), shown)
        slowest = namespace["slowest"]
        self.assertEqual(set(slowest["rank"].dropna()), {0, 1, 2, 3})
        self.assertEqual(list(slowest["total_ms"]), sorted(slowest["total_ms"], reverse=True))
        self.assertIn("framework", set(namespace["operators"]["source"]))

    def test_the_notebook_of_framework_operators(self):
        """With stand-ins of PyTorch's processes; tests/framework_real runs it with PyTorch."""
        self.fleet.start_aggregator()
        for rank, instance in enumerate(("i-0001", "i-0002")):
            jobs = KinetoJob(self.fleet, instance)
            jobs.start_agent()
            jobs.start_worker("record", KINETO_USE_DAEMON="1", RANK=str(rank), WORLD_SIZE="2")
        self.fleet.wait_for_workers(2)
        self.fleet.wait_for_ranks(2)
        self.fleet.wait_for_planning(2)
        namespace = {}
        with unittest.mock.patch.dict(os.environ, NEURONTRACE_AGGREGATOR=self.fleet.address), \
                contextlib.chdir(self.fleet.dir):
            shown = run_notebook(NOTEBOOKS / "framework_operators.ipynb", namespace)
        self.assertTrue(any("complete" in text for text in shown), shown)
        slowest = namespace["slowest"]
        self.assertEqual((list(slowest.index), list(slowest.columns)), (["aten::mm"], [0, 1]))
        # Three seconds of operators of 100 ms.
        self.assertEqual(slowest.loc["aten::mm"].round().tolist(), [3_000, 3_000])
        self.assertTrue((self.fleet.dir / "operators.pftrace").exists())

    def start_ranks(self, *options):
        """A worker with two ranks on each of the two instances."""
        workers = [self.fleet.start_worker(
            instance, "--cores", 2, "--rank-start", 2 * number, "--world-size", 4, "--mix", "graph",
            "--executions-per-second", 20, *options) for number, instance in enumerate(("i-0001", "i-0002"))]
        self.fleet.wait_for_workers(2)
        self.fleet.wait_for_ranks(4)
        return workers


if __name__ == "__main__":
    suite.main()
