# SPDX-License-Identifier: Apache-2.0
"""Captures out as Parquet, read back by readers that are not ours: pyarrow and DuckDB, with the recipes of
docs/user/recipes.md as they are there. Every row is compared with the JSON of the same capture, or with the files that
went in.

Runs where scripts/setup has put both into build/python (PYTHONPATH names it).
"""

import collections
import json
import os
import re

import duckdb
import pyarrow.parquet

import suite
from format_case import SOURCE_ROOT, FormatCase, expected_spans, needs_real_archive
from framework_input import matched_flows

SLOW = 2  # the rank that the simulation delays
RECIPES = SOURCE_ROOT / "docs" / "user" / "recipes.md"
BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Those that find nothing in a capture that is well, or that has no framework's file.
MAY_BE_EMPTY = ("Warning", "is_last_known", "framework_call")


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


class ParquetCase(FormatCase):
    def export(self, capture_id, *options, name="profile"):
        out = self.fleet.dir / name
        self.fleet.cli("export", capture_id, "--format", "parquet", "-o", out, *options, codes=(0, 3))
        return out

    def check_schema(self, folder):
        """SchemaFields describes the contents of every file."""
        about = collections.defaultdict(list)
        for row in read_table(folder, "SchemaFields"):
            about[row["table_name"]].append((row["field_name"], row["field_required"]))
        for path in folder.iterdir():
            schema = pyarrow.parquet.read_schema(path)
            table = re.sub(r"(_\d+)?\.parquet$", "", path.name)
            self.assertEqual([(field.name, not field.nullable) for field in schema], about[table], path)
            self.assertEqual(schema.metadata[b"profile_schema_version"], b"7.4.0")


class Neuron(ParquetCase):
    def test_rows_and_recipes(self):
        capture_id = self.record_fleet("--straggler-rank", SLOW, "--straggler-extra-us", 1_500)
        folder = self.export(capture_id)
        self.check_schema(folder)
        self.check_verdicts(folder, capture_id)
        self.check_rows(folder, capture_id)
        self.check_parts(folder, capture_id)
        self.check_recipes(folder)

    def check_verdicts(self, folder, capture_id):
        """The planted rank is named, and nobody else."""
        verdicts = [row for row in read_table(folder, "NtVerdicts") if not row["is_refusal"]]
        self.assertEqual({gid for row in verdicts for gid in row["worker_gids"] or []}, {SLOW}, verdicts)
        for row in verdicts:
            self.assertEqual((row["capture_id"], row["reason"]), (capture_id, None))
            self.assertGreater(row["cost_ns"], 1_000_000)
            self.assertLess(row["since_ts"], row["until_ts"])
            self.assertIn(str(SLOW), row["text"])
        self.assertNotEqual(read_table(folder, "SystemProfileMetadata")[0]["nt_judged"], "")

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


class Framework(ParquetCase):
    def check(self, files):
        capture_id = self.record(files)["capture_id"]
        folder = self.export(capture_id)
        self.check_schema(folder)
        rows = read_table(folder, "SystemProfileEvents")
        spans = collections.defaultdict(collections.Counter)
        arrows = collections.defaultdict(collections.Counter)
        ids = {row["id"]: row for row in rows}
        for row in rows:
            self.assertEqual(row["trace_event_source"], "framework")
            self.assertEqual(row["end_ts"] - row["start_ts"], row["duration_ns"])
            spans[row["instance_id"]][(row["name"], row["start_ts"], row["duration_ns"])] += 1
        for flow in read_table(folder, "Flow"):
            begin, end = ids[flow["in_id"]], ids[flow["out_id"]]
            self.assertEqual(begin["instance_id"], end["instance_id"])
            self.assertEqual(flow["dependency_type"], "framework")
            self.assertEqual(flow["gap_time"], end["start_ts"] - begin["end_ts"])
            arrows[begin["instance_id"]][(begin["start_ts"], end["start_ts"])] += 1
        for instance, file in self.files.items():
            self.assert_same(spans[instance], expected_spans(file), instance)
            # Both ends of each are at the beginning of the span that it goes from, and to.
            self.assert_same(arrows[instance], collections.Counter(
                (begin[-1], end[-1]) for begin, end in matched_flows(file)), f"arrows of {instance}")

    def test_fixture(self):
        self.check(self.fixture_files())

    @needs_real_archive
    def test_eight_ranks_of_a_dlrm_training(self):
        self.check(self.real_files())


if __name__ == "__main__":
    suite.main()
