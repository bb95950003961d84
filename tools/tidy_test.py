#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Goal: every rule of tidy.py finds what it is for and leaves good code alone, and the ratchet only turns one way.
Method: sources given as text; whole runs in a temporary folder."""

import contextlib
import io
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy  # noqa: E402
import tidy_functions  # noqa: E402

SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
HASH_SPDX = "# SPDX-License-Identifier: Apache-2.0\n"


def rules_of(path, text):
    """[(line, rule)] for one file."""
    return [(f.line, f.rule) for f in tidy.check_source(tidy.Source(path, text))]


def cc(text, path="lib/base/x.cc"):
    return rules_of(path, SPDX + text)


def function_of(lines, head="int Busy()"):
    return head + " {\n" + "  Step();\n" * (lines - 2) + "}\n"


class Lengths(unittest.TestCase):
    def test_files(self):
        for path, limit in (("lib/base/x.cc", 700), ("lib/base/x_test.cc", 900), ("tests/e2e/run.cc", 900)):
            self.assertEqual(cc("int a;\n" * (limit - 1), path), [])
            self.assertEqual(cc("int a;\n" * limit, path), [(1, "file-length")])
        header = "#pragma once\n"
        self.assertEqual(cc(header + "int a;\n" * 348, "lib/base/x.h"), [])
        self.assertEqual(cc(header + "int a;\n" * 349, "lib/base/x.h"), [(1, "file-length")])
        self.assertEqual(rules_of("tools/x.py", HASH_SPDX + "a = 1\n" * 700), [(1, "file-length")])

    def test_functions_up_to_the_limit(self):
        self.assertEqual(cc(function_of(70)), [])
        self.assertEqual(cc(function_of(71)), [(2, "function-length")])

    def test_python_functions(self):
        body = "    step()\n" * 70
        self.assertEqual(rules_of("tools/x.py", HASH_SPDX + "def busy():\n" + body), [(2, "function-length")])

    def test_lines(self):
        self.assertEqual(cc("int a;  " + "+" * 100 + "\n"), [(2, "line-length")])
        self.assertEqual(cc("int a;  " + "+" * 100 + "\n", "lib/base/x_test.cc"), [])


class TypeScript(unittest.TestCase):
    def found(self, text, path="web/timeline/x.ts"):
        return rules_of(path, SPDX + text)

    def test_licence_and_lengths(self):
        self.assertEqual(rules_of("web/x.ts", "let a = 1;\n"), [(1, "spdx")])
        self.assertEqual(self.found("let a = 1;\n" * 700), [(1, "file-length")])
        self.assertEqual(self.found("let a = 1;\n" * 899, "web/model/x.test.ts"), [])
        self.assertEqual(self.found("let a;  " + "+" * 113 + "\n"), [(2, "line-length")])
        self.assertEqual(self.found("let a;  " + "+" * 112 + "\n"), [])

    def test_functions_and_methods(self):
        for head in ("function busy(a: {b: number}): void", "export async function busy(): Promise<number[]>",
                     "export function busy(): {a: number, b: string}[]", "function busy(text = `a ' {`)"):
            self.assertEqual(self.found(function_of(70, head)), [], head)
            self.assertEqual(self.found(function_of(71, head)), [(2, "function-length")], head)
        member = function_of(71, "  private async load(a: string): Promise<void>")
        self.assertEqual(self.found("export class Busy {\n  a = 1;\n" + member + "}\n"), [(4, "function-length")])

    def test_words_and_marks(self):
        for text in ("// It goes on.", "const a = 'it goes on';", "const a = `it goes on`;", 'const a = "it goes on";'):
            self.assertEqual(self.found(text + "\n"), [(2, "plain-words")], text)
        self.assertEqual(self.found("// A stub.\n// TODO later\n"), [(2, "unfinished"), (3, "todo")])
        self.assertEqual(self.found("const a = `// ${b} it's`;\nconst goesOn = 1;\n"), [])

    def test_imports(self):
        for line, path in (("import {a} from 'react';", "web/main.ts"), ("import 'react';", "web/main.ts"),
                           ("const a = await import('react');", "web/main.ts"),
                           ("import {a} from '../api/api_types';", "web/model/x.ts"),
                           ("import {\n  a,\n} from '../api/api_types';", "web/model/x.ts"),
                           ("import test from 'node:test';", "web/model/x.ts")):
            self.assertEqual(self.found(line + "\n", path), [(2, "ts-import")], line)
        for line, path in (("import {a} from '../model/x';", "web/timeline/y.ts"),
                           ("import {a} from './y';", "web/model/x.ts"),
                           ("import test from 'node:test';", "web/model/x.test.ts")):
            self.assertEqual(self.found(line + "\n", path), [], line)

    def test_html_is_never_made_of_text(self):
        for line in ("a.innerHTML = name;", "a.insertAdjacentHTML('beforeend', name);", "eval(name);"):
            self.assertEqual(self.found(line + "\n"), [(2, "html-sink")], line)
        self.assertEqual(self.found("a.textContent = 'no .innerHTML';\n"), [])


class PlainWords(unittest.TestCase):
    PATH = "tools/x/y.cc"

    def found(self, text, path=PATH):
        return [line for line, rule in cc(text, path) if rule == "plain-words"]

    def test_phrases_in_comments_and_literals(self):
        for phrase in ("it begins anew", "two, of which one is old", "rows, each of which has a name", "rows, both of which have one", "the capture goes on", "Likewise", "says it in words",
                       "mend it", "no lock is had", "what the file says counts", "what came of it", "for want of room"):
            self.assertEqual(self.found(f"// {phrase}.\n"), [2], phrase)
            self.assertEqual(self.found(f'const char* a = "{phrase}";\n'), [2], phrase)

    def test_phrases_over_line_ends(self):
        self.assertEqual(self.found("int a;\n// The capture goes\n// on.\n"), [3])
        self.assertEqual(self.found('const char* a =\n    "two, of "\n    "which";\n'), [3])
        self.assertEqual(rules_of("x.md", "Two, of\nwhich one.\n"), [(1, "plain-words")])
        self.assertEqual(rules_of("x/y.py", HASH_SPDX + "# it goes\n# on\n"), [(2, "plain-words")])
        self.assertEqual(rules_of("x/y.yaml", "a: 1  # it\n# is mended\n"), [(2, "plain-words")])
        self.assertEqual(rules_of("x/y.yaml", "anew: 'of which'\n"), [(1, "plain-words")])
        self.assertEqual(rules_of("x/y.py", HASH_SPDX + '"""Begins.\n\nIt is mended.\n"""\n'), [(4, "plain-words")])

    def test_plain_text_and_code(self):
        self.assertEqual(self.found("int anew = mend(likewise);\n"), [])
        self.assertEqual(self.found("// Rows. Both have a name. Recommended: continue.\n"), [])
        self.assertEqual(rules_of("x.md", "`goes on`\n```\nanew\n```\n[a](what_came_of.md)\n"), [])

    def test_sentences_of_messages(self):
        words = "word " * 39
        self.assertEqual(self.found(f'const char* a = "{words} end. {words} end";\n'), [])
        self.assertEqual(self.found(f'const char* a = "{words} one more";\n'), [2])
        self.assertEqual(self.found(f'const char* a = "{words} one more";\n', "tools/x/y_test.cc"), [])


class TypeNames(unittest.TestCase):
    def check(self, *texts):
        """[(path, line)] for files a.cc, b.cc … in one tree."""
        sources = [tidy.Source(f"lib/base/{chr(ord('a') + i)}.cc", text) for i, text in enumerate(texts)]
        return [(path, line) for path, line, _ in tidy.tidy_types.check(sources)]

    def test_one_name_in_one_namespace(self):
        first = "namespace neurontrace {\nstruct Request {\n  int a;\n};\n}\n"
        for second in ("namespace neurontrace {\nclass Request final : public Base {};\n}\n",
                       "namespace neurontrace {\nenum class Request : int { kA };\n}\n",
                       "namespace neurontrace {\nstruct alignas(64) Request {};\n}\n"):
            self.assertEqual(self.check(first, second), [("lib/base/a.cc", 2), ("lib/base/b.cc", 2)])
        nested = "namespace neurontrace::cli {\nstruct Request {};\n}\n"
        self.assertEqual(self.check(nested, "namespace neurontrace {\nnamespace cli {\nstruct Request {};\n}\n}\n"),
                         [("lib/base/a.cc", 1 + 1), ("lib/base/b.cc", 3)])

    def test_others_may_share_a_name(self):
        definition = "namespace neurontrace {\nstruct Request {};\n}\n"
        for other in ("namespace neurontrace::tap {\nstruct Request {};\n}\n",
                      "namespace neurontrace {\nnamespace {\nstruct Request {};\n}\n}\n",
                      "namespace neurontrace {\nstruct Request;\nstruct Request Make();\n}\n",
                      "namespace neurontrace {\nstruct Reply::Request {};\nclass Reply {\n  struct Request {};\n};\n}\n",
                      "namespace neurontrace {\nvoid Send() {\n  struct Request {};\n}\n}\n",
                      "// struct Request {};\nconst char* text = \"struct Request {\";\n",
                      "struct Request {};\n"):
            self.assertEqual(self.check(definition, other), [], other)


class Functions(unittest.TestCase):
    """What counts as a function."""

    def found(self, text):
        return [(name, first, last) for name, first, last in tidy_functions.functions_cc(text)]

    def test_namespaces_and_classes_are_not_functions_but_hold_them(self):
        text = ("namespace neurontrace {\nclass A : public B<int> {\n public:\n  int Get() const {\n"
                "    return 1;\n  }\n};\nenum class E : int { kA };\nvoid F() {\n}\n}  // namespace\n")
        self.assertEqual(self.found(text), [("Get", 4, 6), ("F", 9, 10)])

    def test_a_constructor_with_brace_initialisers_counts_its_body(self):
        text = "A::A(int a, std::map<int, int> m)\n    : a_{a},\n      m_{std::move(m)},\n      c_(0) {\n  Go();\n}\n"
        self.assertEqual(self.found(text), [("A::A", 1, 6)])

    def test_initialisers_are_not_functions(self):
        self.assertEqual(self.found("constexpr Row kRows[] = {\n  {1, F(2)},\n  {3, 4},\n};\n"), [])
        self.assertEqual(self.found("const auto x = Make(A{1}, B{2});\nint y;\n"), [])

    def test_a_lambda_at_file_level_is_one(self):
        self.assertEqual(self.found("const auto f = [](int x) {\n  return x;\n};\n"), [("a function", 1, 3)])

    def test_braces_in_literals_comments_and_macros_do_not_count(self):
        text = ('#define OPEN {\nvoid F() {\n  Use("{{{", \'{\', R"j({"a": {)j");  // {\n  /* { */\n}\n'
                "void G() {\n  int n = 1\'000\'000;\n}\n")
        self.assertEqual(self.found(text), [("F", 2, 5), ("G", 6, 8)])

    def test_tests_and_extern_c_are_functions(self):
        text = 'extern "C" {\nint f(void) {\n}\n}\nextern "C" int g(void) {\n}\nTEST_F(Spool, Drops) {\n}\n'
        self.assertEqual(self.found(text), [("f", 2, 3), ("g", 5, 6), ("TEST_F(Spool, Drops)", 7, 8)])

    def test_a_function_in_many_layers(self):
        text = "namespace {\nstruct alignas(64) Slot {\n  int a;\n};\nstatic absl::StatusOr<std::map<int, int>>\nMake(int a) {\n  if (a) {\n  }\n}\n}\n"
        self.assertEqual(self.found(text), [("Make", 5, 9)])


class Form(unittest.TestCase):
    def test_licence(self):
        self.assertEqual(rules_of("lib/base/x.cc", "int a;\n"), [(1, "spdx")])
        self.assertEqual(rules_of("scripts/x", "#!/usr/bin/env bash\n" + HASH_SPDX + "true\n"), [])
        self.assertEqual(rules_of("scripts/x", "#!/usr/bin/env bash\ntrue\n"), [(1, "spdx")])
        self.assertEqual(rules_of("docs/x.md", "# Words\n"), [])

    def test_pragma_once(self):
        self.assertEqual(cc("int a;\n", "lib/base/x.h"), [(1, "pragma-once")])

    def test_white_space(self):
        self.assertEqual(cc("int a; \n"), [(2, "white-space")])
        self.assertEqual(cc("int a;\r\n"), [(2, "white-space")])
        self.assertEqual(cc("\tint a;\n"), [(2, "white-space")])
        self.assertEqual(cc("int a;"), [(2, "white-space")])
        self.assertEqual(cc("int a;\n\n"), [(3, "white-space")])

    def test_folder_and_file_names(self):
        self.assertEqual(cc("int a;\n", "lib/base/util/x.cc"), [(1, "folder-name")])
        self.assertEqual(cc("int a;\n", "lib/trace/event_utils.cc"), [(1, "folder-name")])


class Words(unittest.TestCase):
    def test_unfinished_work(self):
        for comment in ("not implemented", "a stub", "placeholder", "good enough for now", "FIXME", "XXX", "HACK"):
            self.assertEqual(cc(f"int a;  // {comment}\n"), [(2, "unfinished")], comment)
        self.assertEqual(cc('Fail("not implemented");\n'), [(2, "unfinished")])

    def test_words_that_only_look_unfinished(self):
        self.assertEqual(cc('auto stub = Gateway::NewStub(channel);\nmkstemp("/tmp/aXXXXXX");\n'), [])
        self.assertEqual(cc("// The generated stub is not thread safe.\n"), [])

    def test_todo_form(self):
        self.assertEqual(cc("// TODO: more\n"), [(2, "todo")])
        self.assertEqual(cc("// TODO(#12): say why\n"), [])

    def test_machine_paths(self):
        self.assertEqual(rules_of("docs/x.md", "see /home/anna/trace\n"), [(1, "machine-path")])
        self.assertEqual(rules_of("docs/x.md", "see https://host/home/anna and ./work/x\n"), [])

    def test_banned_words(self):
        for text in ("absl::Mutex mu_;", "std::mutex mu_;", "std::condition_variable cv;",
                     "std::shared_mutex m;", "std::cout << 1;", "Pool::getInstance();", "catch (...) {",
                     "int a = rand();", "using namespace std;", "exit(1);", "thread.detach();", "std::regex r;"):
            self.assertEqual(cc(text + "\n", "agent/spool/x.cc"), [(2, "banned-word")], text)

    def test_banned_words_where_they_are_right(self):
        self.assertEqual(cc("std::cout << 1;\nexit(1);\n", "cli/main.cc"), [])
        self.assertEqual(cc("_exit(1);\nobject.exit(1);\nusing namespace std::literals;\n"), [])
        self.assertEqual(cc('Log("absl::Mutex");  // absl::Mutex\n'), [])

    def test_locks_of_the_standard_library_where_they_are_right(self):
        for path in ("lib/base/mutex.h", "tap/a.cc", "agent/spool/x_test.cc", "tests/sim/a.cc"):
            found = rules_of(path, "std::mutex mu_;\nstd::once_flag once;\n")
            self.assertNotIn("banned-word", [rule for _, rule in found], path)
        self.assertEqual(cc("std::once_flag once;\n"), [])

    def test_an_allowance_needs_a_reason(self):
        self.assertEqual(cc("exit(1);  // tidy: allow(banned-word) the child of a fork\n"), [])
        self.assertEqual(cc("exit(1);  // tidy: allow(banned-word)\n"), [(2, "banned-word")])
        self.assertEqual(cc("exit(1);  // tidy: allow(sleep) wrong rule\n"), [(2, "banned-word")])


class Sentences(unittest.TestCase):
    LONG = "Word " + "word " * 39 + "end."

    def lines_of(self, text):
        return [line for line, rule in rules_of("docs/x.md", text) if rule == "long-sentence"]

    def test_up_to_the_limit(self):
        self.assertEqual(self.lines_of("# Title\n\n" + self.LONG.replace("end", "", 1).replace(" .", ".") + "\n"), [])
        self.assertEqual(self.lines_of("# Title\n\n" + self.LONG + "\n"), [3])

    def test_sentences_in_paragraphs_items_and_cells(self):
        half, rest = "Word " + "word " * 19 + "\n", "word " * 20 + "end.\n"
        self.assertEqual(self.lines_of("Short one.\n" + half + rest), [1])
        self.assertEqual(self.lines_of(f"- {half}  {rest}- {half}"), [1])
        self.assertEqual(self.lines_of(f"| a | {self.LONG} |\n"), [1])

    def test_what_ends_a_sentence(self):
        half = "Word " + "word " * 24 + "end"
        for text in (f"{half}. {half}.\n", f"{half}? `code` {half}\n", f"{half}.\n\n{half}.\n", f"- {half}\n- {half}\n",
                     f"| {half} | {half} |\n", f"| {half}<br>{half} |\n", f"# {half}\n{half}.\n"):
            self.assertEqual(self.lines_of(text), [], text)
        self.assertEqual(self.lines_of(f"{half}, e.g. {half.lower()}.\n"), [1])

    def test_what_is_no_prose(self):
        for text in (f"```\n{self.LONG}\n```\n", f"Set `{self.LONG}` there.\n", f"See [this](x/{self.LONG.replace(' ', '-')}).\n",
                     f"<!-- generated: options -->\n| {self.LONG} |\n<!-- end of generated -->\n"):
            self.assertEqual(self.lines_of(text), [], text)
        self.assertEqual(self.lines_of(f"<!-- generated: limits -->\n| {self.LONG} |\n<!-- end of generated -->\n"), [2])
        self.assertEqual(rules_of("docs/x.txt", self.LONG + "\n"), [])


class Cells(unittest.TestCase):
    FULL = "word " * 25

    def lines_of(self, text, path="docs/x.md"):
        return [line for line, rule in rules_of(path, text) if rule == "long-cell"]

    def test_up_to_the_limit(self):
        self.assertEqual(self.lines_of(f"| a | b |\n| --- | --- |\n| {self.FULL}| {self.FULL}|\n"), [])
        self.assertEqual(self.lines_of(f"| a | b |\n| --- | --- |\n| {self.FULL}more | |\n"), [3])
        self.assertEqual(self.lines_of(f"| Short.<br>{self.FULL}|\n"), [1])

    def test_code_is_a_word_and_a_link_its_text(self):
        self.assertEqual(self.lines_of(f"| {'word ' * 23}`a b c` [d](e-{'f' * 9}) |\n"), [])
        self.assertEqual(self.lines_of(f"| {'word ' * 24}`a b c` [d](e) |\n"), [1])

    def test_generated_tables_too(self):
        self.assertEqual(self.lines_of(f"<!-- generated: options -->\n| {self.FULL}more |\n<!-- end of generated -->\n"), [2])

    def test_what_is_no_cell_of_a_page(self):
        cell = f"| {self.FULL}more |\n"
        self.assertEqual(self.lines_of(f"```\n{cell}```\n"), [])
        self.assertEqual(self.lines_of(f"{self.FULL}more\n"), [])
        self.assertEqual(self.lines_of(cell, "docs/decisions/0001-a.md"), [])
        self.assertEqual(self.lines_of(cell, "docs/x.txt"), [])


class Sleeps(unittest.TestCase):
    def test_in_tests(self):
        for text in ("std::this_thread::sleep_for(1s);", "usleep(5);", "absl::SleepFor(d);", "sleep(1);"):
            self.assertEqual(cc(text + "\n", "lib/base/x_test.cc"), [(2, "sleep")], text)
            self.assertEqual(cc(text + "  // tidy: poll\n", "lib/base/x_test.cc"), [], text)
        self.assertEqual(rules_of("tests/e2e/x.py", HASH_SPDX + "time.sleep(1)\n"), [(2, "sleep")])
        self.assertEqual(rules_of("tests/e2e/x.py", HASH_SPDX + "time.sleep(1)  # tidy: poll\n"), [])
        self.assertEqual(rules_of("tests/e2e/x.sh", HASH_SPDX + "sleep 1\n"), [(2, "sleep")])

    def test_programs_may(self):
        self.assertEqual(cc("usleep(5);\n", "lib/base/x.cc"), [])
        self.assertEqual(cc("usleep(5);\n", "tests/fake_nrt/x.cc"), [])

    def test_disabled_tests(self):
        self.assertEqual(cc("TEST(A, DISABLED_B) {}\n", "lib/base/x_test.cc"), [(2, "disabled-test")])


class Ratchet(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.write("lib/base/x.cc", SPDX + "int a; \n")

    def write(self, path, text):
        full = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)

    def baseline(self, content):
        self.write("tools/tidy_baseline.json", json.dumps(content))

    def run_tidy(self, *arguments):
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = tidy.main(["--root", self.folder.name, *arguments])
        return code, output.getvalue()

    def test_a_new_finding_fails(self):
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("lib/base/x.cc:2: [white-space]", output)

    def test_an_old_finding_passes_until_it_gets_worse(self):
        self.baseline({"white-space": {"lib/base/x.cc": 1}})
        self.assertEqual(self.run_tidy()[0], 0)
        self.write("lib/base/x.cc", SPDX + "int a; \nint b; \n")
        self.assertEqual(self.run_tidy()[0], 1)

    def test_a_mended_finding_must_leave_the_baseline(self):
        self.baseline({"white-space": {"lib/base/x.cc": 1}})
        self.write("lib/base/x.cc", SPDX + "int a;\n")
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("got better, 1 -> 0", output)
        self.assertEqual(self.run_tidy("--update")[0], 0)
        self.assertEqual(self.run_tidy()[0], 0)

    def test_the_baseline_cannot_grow(self):
        self.assertEqual(self.run_tidy("--update")[0], 1)
        self.assertFalse(os.path.exists(os.path.join(self.folder.name, "tools/tidy_baseline.json")))

    def test_links_lead_somewhere(self):
        self.write("lib/base/x.cc", SPDX + "int a;\n")
        self.write("docs/x.md", "[code](../lib/base/x.cc#L1) [web](https://a.b/c) [here](#part) `[no](link)`\n")
        self.assertEqual(self.run_tidy()[0], 0)
        self.write("docs/x.md", "[code](../lib/base/gone.cc)\n")
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("docs/x.md:1: [link] the link to ../lib/base/gone.cc", output)

    def test_places_name_what_is_there(self):
        self.write("lib/base/x.cc", SPDX + "int Parse();\n")
        page = "docs/developer/where_things_are.md"
        self.write(page, "| parsing | [`x.cc`](../../lib/base/x.cc) | `Parse` |\n")
        self.assertEqual(self.run_tidy()[0], 0)
        self.write(page, "| parsing | [`x.cc`](../../lib/base/x.cc) | `Read` |\n")
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("[place] Read is in none of the files", output)

    def test_a_table_of_files_names_files_of_its_folder(self):
        self.write("lib/base/x.cc", SPDX + "int a;\n")
        self.write("lib/base/README.md", "| file | contents |\n| --- | --- |\n| `x` | it calls `y` |\n")
        self.assertEqual(self.run_tidy()[0], 0)
        self.write("lib/base/README.md", "| file | contents |\n| `x`, `gone` | both |\n\n| `option` | of no file |\n")
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("lib/base/README.md:2: [file-table] gone is no file of this folder", output)

    README = ("# base\n\nKeeps time.\n\n**In:** {0}.\n**Out:** none.\n**May include:** nothing of ours.\n**Threads:** any.\n"
              "**Invariants:** none.\n")

    def test_readmes_of_folders_have_one_form(self):
        self.write("lib/base/x.cc", SPDX + "int a;\n")
        self.write("tools/layers.txt", "lib/base:\n")
        self.write("lib/base/README.md", self.README.format("none"))
        self.write("lib/README.md", "# lib\n\nno headings: layers.txt does not name it\n")
        self.assertEqual(self.run_tidy()[0], 0)
        for text in (self.README.replace("**Threads:** any.\n", ""), self.README.replace("Keeps", "keeps"),
                     self.README.replace("**In:** {0}.\n**Out:** none.\n", "**Out:** none.\n**In:** {0}.\n")):
            self.write("lib/base/README.md", text.format("none"))
            code, output = self.run_tidy()
            self.assertEqual(code, 1, text)
            self.assertIn("lib/base/README.md", output)
            self.assertIn("[readme-form]", output)

    def test_readmes_of_folders_name_what_exists(self):
        self.write("tools/layers.txt", "lib/base:\n")
        self.write("lib/base/x.cc", SPDX + "int ReadClock();\n")
        for name in ("x.cc", "ReadClock", "ReadClock()", "anything"):
            self.write("lib/base/README.md", self.README.format(f"`{name}`"))
            self.assertEqual(self.run_tidy()[0], 0, name)
        for name in ("core_watch", "core_watch.h", "CoreWatch"):
            self.write("lib/base/README.md", self.README.format(f"`{name}`"))
            self.assertIn(f"lib/base/README.md:5: [readme-name] {name} does not exist", self.run_tidy()[1])

    def test_the_index_of_decisions_is_whole(self):
        self.write("lib/base/x.cc", SPDX + "int a;\n")
        self.write("docs/decisions/0001-a.md", "# A\n")
        self.write("docs/developer/ARCHITECTURE.md", "[0001](../decisions/0001-a.md)\n")
        self.assertEqual(self.run_tidy()[0], 0)
        self.write("docs/decisions/0002-b.md", "# B\n")
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("[decision-index] docs/decisions/0002-b.md", output)

    def test_metrics_are_described_and_described_ones_are_made(self):
        self.write("lib/base/x.cc", SPDX + 'Counter("neurontrace_agent_chunks_total");\n')
        self.write("docs/operator/metrics.md", "| `neurontrace_agent_chunks_total{place}` | chunks |\n")
        self.assertEqual(self.run_tidy()[0], 0)
        self.write("docs/operator/metrics.md", "| `neurontrace_agent_bytes` | bytes |\n")
        code, output = self.run_tidy()
        self.assertEqual(code, 1)
        self.assertIn("lib/base/x.cc:2: [metric] neurontrace_agent_chunks_total is not described", output)
        self.assertIn("docs/operator/metrics.md:1: [metric] no code makes neurontrace_agent_bytes", output)

    def test_named_files_only(self):
        self.write("lib/base/good.cc", SPDX + "int b;\n")
        self.assertEqual(self.run_tidy("lib/base/good.cc")[0], 0)
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()):
            self.run_tidy("lib/base/gone.cc")


if __name__ == "__main__":
    unittest.main()
