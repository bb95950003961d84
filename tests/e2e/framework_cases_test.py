# SPDX-License-Identifier: Apache-2.0
"""Framework trace files as they are found outside: damaged, cut, replaced while they are read, oddly named. Nothing of
them is lost or left out without a word, and no element costs another.

One case of each kind, through a whole fleet. The other cases are in the tests of agent/source/framework.
"""

import gzip

import suite
import framework_cases as cases
from framework_case import FrameworkCases, directory_case, file_case


def names_of_operations(count, prefix="op_"):
    return sorted(f"{prefix}{i}" for i in range(count))


class Files(FrameworkCases):
    """Files that were damaged, cut or packed, and one that is no trace."""

    @file_case(cases.quotes_in_a_name, '{"device": "npu", "index": 3}(12): run')
    def test_an_element_that_is_no_json(self, result):
        self.check_lost(result, stored=51, lost=1)
        self.assertEqual(result.names(), sorted(["load_batch"] + [f"op_{i:02}" for i in range(50)]))
        self.assertIn("quotes.pt.trace.json: element 1, to byte ", result.printed)
        self.check_exports(result)

    @file_case(cases.thousand, "plain.pt.trace.json")
    def test_a_whole_file(self, result):
        self.check_whole(result, 1000)
        self.assertEqual(result.names(), names_of_operations(1000))
        self.check_exports(result)

    @file_case(cases.thousand, "cut.pt.trace.json", cases.plain_cut)
    def test_cut(self, result):
        self.assertAlmostEqual(result.stored, 500, delta=5)
        self.check_lost(result, stored=result.stored)
        self.assertEqual(result.names(), names_of_operations(result.stored))
        self.assertIn(f"cut.pt.trace.json: after {result.stored} elements: the file is truncated at byte ", result.printed)

    @file_case(cases.thousand, "cut.pt.trace.json.gz", cases.packed_cut)
    def test_packed_and_cut(self, result):
        self.assertGreater(result.stored, 100)
        self.check_lost(result, stored=result.stored)
        self.assertEqual(result.names(), names_of_operations(result.stored))

    @file_case(cases.thousand, "plain.pt.trace.json.gz")
    def test_name_of_a_packed_file_that_is_not(self, result):
        self.check_whole(result, 1000)

    @file_case(cases.thousand, "packed.pt.trace.json", gzip.compress)
    def test_name_of_a_plain_file_that_is_packed(self, result):
        self.check_whole(result, 1000)

    @file_case(cases.text_file, "a.trace.json", "<html><body>404 Not Found</body></html>")
    def test_no_trace(self, result):
        self.check_lost(result, stored=0)
        self.assertIn("not a trace: HTML or XML", result.printed)


def copy_versions(run):
    """A file of rank 0, and one of rank 1 in its place."""
    for rank in range(2):
        events = cases.operations(100, f"rank{rank}_op_", pid=5500 + rank)
        cases.write(run.folder / "trace.trace.json", cases.document(events, rank, 2))
        run.wait_for_events(100 * (rank + 1))


def copy_names(run):
    cases.named_by_others(run.folder)
    (run.folder / "config.json").write_text('{"model_type":"llama"}', encoding="utf-8")
    (run.folder / "checkpoint.pt").touch()
    run.wait_for_events(len(cases.NAMES))
    run.wait_for_remark("config.json")


class Watched(FrameworkCases):
    """A directory that is watched while a capture runs."""

    @directory_case(copy_versions)
    def test_overwritten(self, result):
        self.check_whole(result, 200)
        streams = result.streams()
        self.assertEqual({name: int(stream["worker_gid"]) for name, stream in streams.items()},
                         {"trace.trace.json": 0, "~2/trace.trace.json": 1})
        for row in result.events:
            self.assertTrue(row["event"]["name"].startswith(f"rank{row['worker_gid']}_"), row)
        self.assertIn("REMARK_KIND_FILE_REWRITTEN", result.printed)

    @directory_case(copy_names)
    def test_names_of_other_programs(self, result):
        self.check_whole(result, len(cases.NAMES))
        self.assertEqual(result.names(), names_of_operations(len(cases.NAMES), "file_"))
        self.assertIn("1 with names other than *.json, *.json.gz and *.pb, such as checkpoint.pt", result.printed)


class RelativeTimes(FrameworkCases):
    """Times that count from the file's own start."""

    @file_case(cases.relative_steps)
    def test_unknown_origin(self, result):
        self.assertEqual((result.stored, result.lost, result.exit_code), (3, 0, 3), result.output)
        self.assertIn("from an unknown origin", result.printed)
        self.assertIn('"own_time": true', result.printed)
        self.assertEqual(sorted(result.spans()), [(f"train_step {step}", 1_000_000 + 500_000 * step, 400_000)
                                                  for step in range(3)])
        window = result.folder / "window.json"
        result.fleet.cli("export", result.capture_id, "--format", "json", "--from", "0s", "--to", "1h", "-o", window,
                         codes=(0, 3))
        self.assertNotIn("train_step", window.read_text(encoding="utf-8"))
        self.check_exports(result)

    @directory_case(cases.jax_session)
    def test_a_session_of_jax(self, result):
        self.check_whole(result, 5)
        self.assertEqual(sorted(result.spans()), [("train_step", cases.T_NS + 1_000_000 + 500_000 * step, 400_000)
                                                  for step in range(3)])
        self.assertIn("plugins/profile/2026_09_21_14_13_20/vm.xplane.pb has the events of the same session",
                      result.printed)


if __name__ == "__main__":
    suite.main()
