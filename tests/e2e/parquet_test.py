# SPDX-License-Identifier: Apache-2.0
"""Captures out as Parquet, read back by readers that are not ours: pyarrow and DuckDB, with the recipes of
docs/recipes.md as they stand there. Every row is compared with the JSON of the same capture, or with the files that
went in.

Runs where scripts/setup has put both into build/python (PYTHONPATH names it).
"""

import collections
import json
import os
import re
import unittest

import duckdb
import pyarrow.parquet

import framework_test
from fleet_case import FleetCase

RECIPES = framework_test.SOURCE_ROOT / "docs" / "recipes.md"
BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Those that find nothing in a capture that is well.
MAY_BE_EMPTY = ("Warning", "is_last_known")


def read_table(folder, name):
    """The rows of all files of a table, as dicts; the files are single or numbered from 0 without a hole."""
    single = folder / f"{name}.parquet"
    numbered = sorted(folder.glob(f"{name}_*.parquet"), key=lambda path: int(path.stem.rsplit("_", 1)[1]))
    if single.exists():
        assert not numbered, numbered
        numbered = [single]
    else:
        assert [path.name for path in numbered] == [f"{name}_{i}.parquet" for i in range(len(numbered))], numbered
    return [row for path in numbered for row in pyarrow.parquet.read_table(path).to_pylist()]


def spans_of(rows):
    return collections.Counter((row["name"], row["start_ts"], row["duration_ns"]) for row in rows)


class ParquetCase(FleetCase):
    def export(self, capture_id, *options, name="profile"):
        out = self.fleet.dir / name
        self.fleet.cli("export", capture_id, "--format", "parquet", "-o", out, *options, codes=(0, 3))
        return out

    def check_schema(self, folder):
        """SchemaFields says of every file what is in it."""
        about = collections.defaultdict(list)
        for row in read_table(folder, "SchemaFields"):
            about[row["table_name"]].append((row["field_name"], row["field_required"]))
        for path in folder.iterdir():
            schema = pyarrow.parquet.read_schema(path)
            table = re.sub(r"(_\d+)?\.parquet$", "", path.name)
            self.assertEqual([(field.name, not field.nullable) for field in schema], about[table], path)
            self.assertEqual(schema.metadata[b"profile_schema_version"], b"7.4.0")


class Neuron(ParquetCase):
    def record_fleet(self):
        """Two instances of two cores, with what their hosts do."""
        self.fleet.start_aggregator()
        workers = []
        for number in range(2):
            self.fleet.start_agent(f"i-{number:04x}", host_samples=True)
            workers.append(self.fleet.start_worker(
                f"i-{number:04x}", "--cores", 2, "--rank-start", number * 2, "--world-size", 4, "--mix", "graph",
                "--executions-per-second", 20))
        self.fleet.wait_for_workers(len(workers))
        capture_id = self.start_capture("--all-events")
        self.wait_for_events(capture_id, 20_000)
        self.fleet.wait_for_capture(capture_id, lambda capture: sum(
            stream["identity"]["kind"] == "STREAM_KIND_HOST" and int(stream["events"]) > 0
            for stream in capture["streams"]) == 2, "samples of both hosts")
        self.stop_capture(capture_id)
        for worker in workers:
            self.assertEqual(worker.stop(), 0)
        return capture_id

    def test_rows_and_recipes(self):
        capture_id = self.record_fleet()
        folder = self.export(capture_id)
        self.check_schema(folder)
        self.check_rows(folder, capture_id)
        self.check_parts(folder, capture_id)
        self.check_recipes(folder)

    def check_rows(self, folder, capture_id):
        out = self.fleet.dir / "trace.json"
        self.fleet.cli("export", capture_id, "-o", out, codes=(0, 3))
        with open(out, encoding="utf-8") as file:
            document = json.load(file)
        rows = read_table(folder, "SystemProfileEvents")
        self.assertEqual(len({row["id"] for row in rows}), len(rows))
        key = ("name", "instance_id", "nc_idx", "worker_gid", "thread_id", "trace_event_source")
        expected = collections.Counter(
            (*(span.get(k) for k in key), int(span["process_id"]), span["timestamp"], span["duration"], span.get("id"),
             span.get("exec_id")) for span in document["trace_event"])
        found = collections.Counter(
            (*(row[k] for k in key), row["process_id"], row["start_ts"], row["duration_ns"], row["nt_event_id"],
             row["nt_exec_id"]) for row in rows)
        self.assertGreater(sum(expected.values()), 5_000)
        self.assertEqual(list((expected - found).items())[:3], [])
        self.assertEqual(list((found - expected).items())[:3], [])
        self.assertEqual([row["message"] for row in read_table(folder, "Warning")],
                         [warning["message"] for warning in document["warnings"]])
        self.assertEqual(len(read_table(folder, "CpuUsage")), len(document["cpu_util"]))
        self.assertEqual(len(read_table(folder, "HostMemUsage")), len(document["mem_usage"]))
        for row in rows[:2_000]:
            if row["extra_attributes_json"] is not None:
                self.assertIsInstance(json.loads(row["extra_attributes_json"]), dict)
        ids = {row["id"]: row for row in rows}
        flows = read_table(folder, "Flow")
        self.assertGreater(len(flows), 10)
        for flow in flows:
            gap = ids[flow["out_id"]]["start_ts"] - ids[flow["in_id"]]["end_ts"]
            self.assertEqual(flow["gap_time"], gap, flow)

    def check_parts(self, folder, capture_id):
        """In parts there is the same."""
        parts = self.export(capture_id, "--max-size", "100KB", name="parts")
        self.assertGreater(len(list(parts.glob("SystemProfileEvents_*.parquet"))), 1)
        self.assertEqual(spans_of(read_table(parts, "SystemProfileEvents")),
                         spans_of(read_table(folder, "SystemProfileEvents")))

    def check_recipes(self, folder):
        self.assertEqual(folder.name, "profile")
        os.chdir(folder.parent)
        database = duckdb.connect()
        blocks = BLOCK.findall(RECIPES.read_text(encoding="utf-8"))
        self.assertGreater(len(blocks), 10)
        for language, text in blocks:
            if language == "python":
                exec(compile(text, str(RECIPES), "exec"), {})  # noqa: S102 (our own page)
                continue
            rows = database.execute(text).fetchall()
            if not text.startswith("CREATE") and not any(word in text for word in MAY_BE_EMPTY):
                self.assertGreater(len(rows), 0, text)


class Framework(ParquetCase, framework_test.FrameworkCase):
    def check(self, files):
        capture_id = self.record(files)["capture_id"]
        folder = self.export(capture_id)
        self.check_schema(folder)
        rows = read_table(folder, "SystemProfileEvents")
        spans = collections.defaultdict(collections.Counter)
        arrows = collections.Counter()
        ids = {row["id"]: row for row in rows}
        for row in rows:
            self.assertEqual(row["trace_event_source"], "framework")
            self.assertEqual(row["end_ts"] - row["start_ts"], row["duration_ns"])
            spans[row["instance_id"]][(row["name"], row["start_ts"], row["duration_ns"])] += 1
        for flow in read_table(folder, "Flow"):
            instances = {ids[flow["in_id"]]["instance_id"], ids[flow["out_id"]]["instance_id"]}
            self.assertEqual(len(instances), 1)
            arrows[instances.pop()] += 1
        for instance, file in self.files.items():
            expected = collections.Counter((name, start, duration) for name, _, _, start, duration in file.complete)
            expected.update((name, time, 0) for name, _, _, time in file.instants)
            self.assert_same(spans[instance], expected, instance)
            ends = len(framework_test.matched_flow_ends(file))
            # An arrow whose end lies before its start, by the clocks of the two, is in no row.
            self.assertLessEqual(arrows[instance], ends)
            self.assertGreater(arrows[instance], ends * 0.9, instance)

    def test_fixture(self):
        path = self.fleet.dir / "worker0.pt.trace.json"
        framework_test.write_fixture(path, rank=0)
        self.check([path])

    @unittest.skipUnless(framework_test.real_archive().exists(), "no real data: name its folder in NEURONTRACE_TEST_DATA")
    def test_eight_ranks_of_a_dlrm_training(self):
        framework_test.RealJob.test_eight_ranks_of_a_dlrm_training(self)


if __name__ == "__main__":
    unittest.main()
