# SPDX-License-Identifier: Apache-2.0
"""Framework trace files as they are found outside: damaged, cut, replaced while they are read, oddly named. Nothing of
them is lost or left out without a word, and no element costs another."""

import gzip
import json
import os

import suite
import framework_cases as cases
from framework_case import FrameworkCases, directory_case, file_case


def names_of_operations(count, prefix="op_"):
    return sorted(f"{prefix}{i}" for i in range(count))


class Damaged(FrameworkCases):
    """Elements that are no JSON cost nothing but themselves, and are named."""

    def check_damaged(self, result, lost, words):
        self.check_lost(result, stored=51, lost=lost)
        self.assertEqual(result.names(), sorted(["load_batch"] + [f"op_{i:02}" for i in range(50)]))
        self.assertIn(words, result.said)
        self.check_exports(result)

    @file_case(cases.control_characters)
    def test_control_characters_are_kept(self, result):
        self.check_whole(result, 5)
        self.assertEqual(result.names(), sorted(["load_batch", "\x01S(1): <module>", "tab\there", "forward", "backward"]))
        self.check_exports(result)

    @file_case(cases.quotes_in_a_name, '{"device": "npu", "index": 3}(12): run')
    def test_quotation_marks_in_pairs(self, result):
        self.check_damaged(result, 1, "quotes.pt.trace.json: element 1, to byte ")

    @file_case(cases.quotes_in_a_name, '5" disk(3): read')
    def test_an_odd_quotation_mark(self, result):
        self.check_damaged(result, 1, "quotes.pt.trace.json: element 1, to byte ")

    @file_case(cases.quotes_in_a_name, '","args":[{"x":1},{"y":[2')
    def test_brackets_that_do_not_match(self, result):
        self.check_damaged(result, 1, "element 1, to byte ")

    @file_case(cases.text_file, "a.trace.json",
               '[\n{"ph":"X","name":"two\nlines","pid":1,"tid":1,"ts":1790000000000000,"dur":1},\n'
               '{"ph":"X","name":"ok","pid":1,"tid":1,"ts":1790000000000005,"dur":1}\n]')
    def test_a_line_feed_in_a_name(self, result):
        self.check_whole(result, 2)
        self.assertEqual(result.names(), ["ok", "two\nlines"])


class NotWhole(FrameworkCases):
    """Files that were cut or packed."""

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
        self.assertIn(f"cut.pt.trace.json: after {result.stored} elements: the file ends in the middle", result.said)

    @file_case(cases.thousand, "cut.pt.trace.json.gz", cases.packed_cut)
    def test_packed_and_cut(self, result):
        self.assertGreater(result.stored, 100)
        self.check_lost(result, stored=result.stored)
        self.assertEqual(result.names(), names_of_operations(result.stored))

    @file_case(cases.thousand, "members.pt.trace.json.gz", cases.second_member_cut)
    def test_second_gzip_member_is_cut(self, result):
        self.assertGreater(result.stored, 500)
        self.check_lost(result, stored=result.stored)

    @file_case(cases.thousand, "garbage.pt.trace.json.gz", cases.garbage_behind)
    def test_zeros_behind_the_gzip_data(self, result):
        self.check_whole(result, 1000)

    @file_case(cases.thousand, "plain.pt.trace.json.gz")
    def test_name_of_a_packed_file_that_is_not(self, result):
        self.check_whole(result, 1000)

    @file_case(cases.thousand, "packed.pt.trace.json", gzip.compress)
    def test_name_of_a_plain_file_that_is_packed(self, result):
        self.check_whole(result, 1000)


class NoTraces(FrameworkCases):
    """What is no trace is refused, with its reason."""

    def check_refused(self, result, words):
        self.check_lost(result, stored=0)
        self.assertIn(words, result.said)

    @file_case(cases.thousand, "twice.pt.trace.json.gz", cases.packed_twice)
    def test_packed_twice(self, result):
        self.check_refused(result, "gzip data inside gzip data")

    @file_case(cases.text_file, "a.trace.json", "<html><body>404 Not Found</body></html>")
    def test_html(self, result):
        self.check_refused(result, "no trace: HTML or XML")

    @file_case(cases.text_file, "a.trace.json", "")
    def test_an_empty_file(self, result):
        self.check_refused(result, "the file is empty")

    @file_case(cases.text_file, "a.trace.json", "[")
    def test_a_bracket_alone(self, result):
        self.check_refused(result, "the file ends before its first event")

    @file_case(cases.text_file, "a.trace.json", '{"model_type":"llama"}')
    def test_json_that_is_no_trace(self, result):
        self.check_refused(result, "JSON without a list")

    @file_case(cases.text_file, "a.trace.json", json.dumps(
        {"traceEvents": {"traceEvents": [cases.complete("inside", 0)]}}))
    def test_a_list_inside_an_object_of_its_name(self, result):
        self.check_whole(result, 1)


def copy_versions(run, replace):
    """A file of rank 0, and one of rank 1 in its place."""
    path = run.folder / "trace.trace.json"
    texts = [cases.document(cases.operations(100, f"rank{rank}_op_", pid=5500 + rank), rank, 2) for rank in range(2)]
    cases.write(path, texts[0])
    run.wait_for_events(100)
    before = path.stat()
    if replace == "rename":
        cases.write(run.folder / "other", texts[1]).rename(path)
    else:
        cases.write(path, texts[1])
    if replace == "unseen":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    run.wait_for_events(200)


def pack_in_place(run):
    path = cases.thousand(run.folder, "worker0.pt.trace.json")
    run.wait_for_events(1000)
    cases.write(path.with_name(path.name + ".gz"), path.read_bytes())
    path.unlink()
    run.wait_for_remark("SAME_CONTENT")


def copy_names(run):
    cases.named_by_others(run.folder)
    (run.folder / "config.json").write_text('{"model_type":"llama"}', encoding="utf-8")
    (run.folder / "checkpoint.pt").touch()
    run.wait_for_events(len(cases.NAMES))
    run.wait_for_remark("config.json")


class Watched(FrameworkCases):
    """A directory that is watched while a capture runs."""

    def check_versions(self, result):
        self.check_whole(result, 200)
        streams = result.streams()
        self.assertEqual({name: int(stream["worker_gid"]) for name, stream in streams.items()},
                         {"trace.trace.json": 0, "~2/trace.trace.json": 1})
        for row in result.events:
            self.assertTrue(row["event"]["name"].startswith(f"rank{row['worker_gid']}_"), row)
        self.assertIn("REMARK_KIND_FILE_REWRITTEN", result.said)

    @directory_case(copy_versions, "in place")
    def test_overwritten(self, result):
        self.check_versions(result)

    @directory_case(copy_versions, "rename")
    def test_replaced(self, result):
        self.check_versions(result)

    @directory_case(copy_versions, "unseen")
    def test_overwritten_with_the_same_size_and_time(self, result):
        self.check_versions(result)

    @directory_case(pack_in_place)
    def test_packed_in_place(self, result):
        self.check_whole(result, 1000)
        self.assertIn("worker0.pt.trace.json.gz: the content of worker0.pt.trace.json", result.said)

    @directory_case(copy_names)
    def test_names_of_other_programs(self, result):
        self.check_whole(result, len(cases.NAMES))
        self.assertEqual(result.names(), names_of_operations(len(cases.NAMES), "file_"))
        self.assertIn("1 of other names than *.json, *.json.gz and *.pb, such as checkpoint.pt", result.said)


class RelativeTimes(FrameworkCases):
    """Times that count from the file's own start."""

    @file_case(cases.relative_steps)
    def test_an_origin_that_nobody_knows(self, result):
        self.assertEqual((result.stored, result.lost, result.exit_code), (3, 0, 3), result.output)
        self.assertIn("from an unknown moment", result.said)
        self.assertIn('"own_time": true', result.said)
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
        self.assertIn("of the session in plugins/profile/2026_09_21_14_13_20/vm.xplane.pb", result.said)


if __name__ == "__main__":
    suite.main()
