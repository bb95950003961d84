#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: generate_docs.py reads the code, notices a page that says otherwise, and names the command to run.
Method: small trees in a temporary folder, and headers and help texts given as text."""

import contextlib
import io
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate_docs  # noqa: E402

PAGE = "# A\n<!-- generated: {0} -->\n<!-- end of generated -->\nby hand\n"


class Tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        self.write("tools/layers.txt", "lib/base:\nagent: lib/base\n@only rocksdb/: agent\n")
        self.write("lib/base/README.md", "# base\n\nWhat e.g. any\ndaemon [needs](x.md). More.\n")
        self.write("agent/README.md", "# agent\n\nSends chunks.\n")

    def write(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def generate(self):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as errors:
            code = generate_docs.main(["--root", self.root])
        return code, errors.getvalue()


class Pages(Tree):
    def test_a_block_is_written_once_and_the_rest_of_the_page_stays(self):
        self.write("docs/developer/ARCHITECTURE.md", PAGE.format("folders"))
        self.assertIn("run tools/generate_docs.py", generate_docs.out_of_date(self.root)[0][2])
        self.assertEqual(self.generate()[0], 0)
        self.assertEqual(generate_docs.out_of_date(self.root), [])
        text = generate_docs.read(self.root, "docs/developer/ARCHITECTURE.md")
        self.assertTrue(text.startswith("# A\n") and text.endswith("by hand\n"))
        self.write("agent/README.md", "# agent\n\nSends other chunks.\n")
        self.assertEqual(generate_docs.out_of_date(self.root)[0][:2], ("docs/developer/ARCHITECTURE.md", 2))

    def test_folders(self):
        text = generate_docs.folders(self.root)
        self.assertIn("- [`lib/base/`](../../lib/base/README.md): What e.g. any daemon needs.\n", text)
        self.assertIn("agent/README.md): Sends chunks. May include: `lib/base`, `<rocksdb>`.\n", text)
        os.remove(os.path.join(self.root, "agent/README.md"))
        self.write("docs/developer/ARCHITECTURE.md", PAGE.format("folders"))
        self.assertEqual(self.generate()[0], 1)
        self.assertEqual(generate_docs.out_of_date(self.root)[0][0], "agent/README.md")

    def test_readme_lists_allowed_includes(self):
        self.write("agent/README.md", "# agent\n\nSends.\n\n**In:** a.\n**May include:** all,\nby hand\n**Threads:** one.\n")
        self.assertEqual(generate_docs.out_of_date(self.root)[0][:2], ("agent/README.md", 6))
        self.assertEqual(self.generate()[0], 0)
        self.assertIn("**In:** a.\n**May include:** `lib/base`, `<rocksdb>`.\n**Threads:** one.\n",
                      generate_docs.read(self.root, "agent/README.md"))
        self.assertEqual(generate_docs.out_of_date(self.root), [])

    def test_a_file_with_a_line_of_its_own_is_named_with_its_folder(self):
        self.write("tools/layers.txt", "lib/base:\nagent: lib/base\nagent/all.cc: agent lib/base\n")
        self.assertIn("Sends chunks. May include: `lib/base`; `all.cc` also `agent`.\n", generate_docs.folders(self.root))

    def test_finds_options_of_no_program(self):
        self.write("docs/user/options.md", "- `--listen`, `--token-file`: Both.\n")
        self.write("docs/user/cli.md", "Give `--listen HOST` or `--token-file`, `--quota-…` as well\nand `--gone-by X`.\n")
        self.assertEqual(generate_docs.out_of_date(self.root), [("docs/user/cli.md", 2, "no program has the option --gone-by")])

    def test_threads(self):
        self.write("agent/a.h", "// A.\n// thread: spool: writes\n//   the disk.\nclass A {\n  std::thread thread_;\n};\n")
        self.write("agent/a.cc", "thread_ = std::thread([] {});\n")
        self.assertIn("| agent | spool | [`agent/a.h`](../../agent/a.h) | writes the disk |", generate_docs.threads(self.root))
        self.write("agent/b.h", "class B {\n  std::vector<std::thread> threads_;\n};\n")
        with self.assertRaisesRegex(generate_docs.DocsError, "agent/b.h: .*// thread: NAME"):
            generate_docs.threads(self.root)


class States(Tree):
    HEADER = ("enum class WorkerPhase : uint8_t {\n  kIdle,  // Nothing runs,\n          // yet.\n  kEnded,  // All is over.\n};\n"
              "enum class WorkerEvent : uint8_t {\n  kGo,   // It begins.\n  kHalt,  // It stops.\n  kEnd,  // It ends.\n};\n"
              "enum class WorkerAction : uint8_t {\n  kNone,  // Nothing.\n  kReport,  // Reports.\n};\n"
              "enum class TraceState : uint8_t {\n  kUnseen,  // None.\n  kRunning,  // One.\n};\n"
              "enum class TraceSign : uint8_t {\n  kRuns,  // It runs.\n};\n")
    ROWS = ("    {P::kIdle, E::kGo, P::kIdle, A::kReport},\n    {P::kIdle, E::kHalt, P::kEnded, A::kNone},\n"
            "    {P::kIdle, E::kEnd, P::kEnded, A::kNone},\n"
            "    {TraceState::kUnseen, TraceSign::kRuns, TraceState::kRunning},\n")

    def setUp(self):
        super().setUp()
        self.write(generate_docs.STATES + ".h", self.HEADER)
        self.write(generate_docs.STATES + ".cc", self.ROWS)

    def test_the_diagram_has_what_changes_the_phase_and_the_table_has_every_row(self):
        text = generate_docs.worker_states(self.root)
        self.assertIn("stateDiagram-v2\n    [*] --> Idle\n    Idle --> Ended: Halt\n```\n", text)
        self.assertIn("| `Idle` | Nothing runs, yet. |\n", text)
        self.assertIn("| `Go` | `Idle` | `Idle` | `Report` |\n| `Halt` | `Idle` | `Ended` | - |\n| `End` |", text)
        self.assertIn("    Unseen --> Running: Runs\n", generate_docs.trace_states(self.root))

    def test_a_page_that_shows_another_table_is_found(self):
        self.write("docs/developer/worker_states.md", PAGE.format("worker_states"))
        self.assertEqual(self.generate()[0], 0)
        self.assertEqual(generate_docs.out_of_date(self.root), [])
        self.write(generate_docs.STATES + ".cc", self.ROWS.replace("E::kHalt, P::kEnded", "E::kHalt, P::kIdle"))
        self.assertIn("worker_states", generate_docs.out_of_date(self.root)[0][2])

    def test_a_table_that_cannot_be_read_is_an_error(self):
        self.write("docs/developer/worker_states.md", PAGE.format("worker_states"))
        self.write(generate_docs.STATES + ".cc", "no rows\n")
        self.assertEqual(self.generate()[0], 1)
        self.assertEqual(generate_docs.out_of_date(self.root)[0][0], generate_docs.STATES + ".cc")


class Limits(Tree):
    def limits(self, text):
        self.write("lib/trace/limits.h", text)
        return generate_docs.limits(self.root)

    def test_values_have_units(self):
        for name, expression, shown in (("kXBytesMax", "size_t{64} << 20", "64 MiB"), ("kXBytes", "1'000", "1,000 bytes"),
                                        ("kXNs", "7ull * 24 * 3'600'000'000'000", "7 d"), ("kXMax", "1u << 20", "1,048,576"),
                                        ("kXMsMax", "0x10", "16 ms"), ("kXTimesMin", "1.1", "1.1")):
            self.assertIn(f"- `{name}`: {shown}. About.\n",
                          self.limits(f"namespace x {{\n// About.\ninline constexpr auto_t {name} = {expression};\n"))

    def test_constants_share_the_comment_before_them(self):
        text = self.limits("// Of all.\nnamespace x {\n// Two\n// lines.\ninline constexpr int kB = kA * 2;  // beyond: cut\n"
                           "inline constexpr int kA =\n    3;\nstatic_assert(kA < kB);\n\ninline constexpr int kC = 4;\n")
        self.assertIn("Of all.", text)
        self.assertIn("- Two lines.\n  - `kB`: 6 (beyond: cut)\n  - `kA`: 3\n- `kC`: 4\n", text)

    def test_constants_without_a_comment_are_items_of_their_own(self):
        text = self.limits("namespace x {\ninline constexpr int kA = 1;\ninline constexpr int kB = 2;\n")
        self.assertIn("\n\n- `kA`: 1\n- `kB`: 2\n", text)


class Options(unittest.TestCase):
    def test_items(self):
        item = generate_docs.option_item
        for name, text, shown in (
                ("--listen TEXT=127.0.0.1:9400 (Env:NT_LISTEN)", "Address.",
                 "`--listen` (text; default `127.0.0.1:9400`): Address. Environment: `NT_LISTEN`."),
                ("-o,--output TEXT:{text,json}=text", "How", "`-o`, `--output` (text, json; default `text`): How."),
                ("--bytes UINT:SIZE:UINT in [1048576 - 2097152]=1048576", "Size",
                 "`--bytes` (1 MiB to 2 MiB; default `1 MiB`): Size."),
                ("--scan,--no-scan{false}", "Look", "`--scan`, `--no-scan`: Look."),
                ("--dir TEXT ...", "Where <it> is", "`--dir` (text, repeatable): Where &lt;it> is."),
                ("--state TEXT", "In this state: idle, …", "`--state` (text): In this state: idle, …"),
                ("FILE TEXT REQUIRED", "What", "`FILE` (text): What.")):
            self.assertEqual(item(name, text), f"- {shown}\n")


if __name__ == "__main__":
    unittest.main()
