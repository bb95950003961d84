# SPDX-License-Identifier: Apache-2.0
"""The rules of tidy.py: one entry in RULES for each, in the order of docs/developer/STYLE.md."""

import os
import re

import tidy_functions
import tidy_readmes
import tidy_sentences
import tidy_words

MAX_LINES = 700
MAX_HEADER_LINES = 350
MAX_TEST_LINES = 900
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100
MAX_COLUMNS_ELSEWHERE = 120  # in Python and TypeScript

ALLOW = re.compile(r"tidy: allow\(([\w-]+)\)\s*(.*)")
POLL = "tidy: poll"
SUFFIXES = {".h": "cc", ".cc": "cc", ".c": "cc", ".proto": "proto", ".py": "python", ".sh": "shell",
            ".cmake": "cmake", ".md": "text", ".txt": "text", ".yaml": "yaml", ".yml": "yaml",
            ".json": "text", ".ts": "ts", ".css": "text", ".html": "text"}
CODE = ("cc", "proto", "python", "shell", "cmake", "ts")
# The simulated runtime and fleet are programs under tests/ that pace themselves; they test nothing.
SIMULATORS = ("tests/fake_nrt/", "tests/sim/")
# These name the words they look for.
OWN_FILES = re.compile(r"^tools/tidy\w*\.py$")
BANNED_FOLDERS = {"util", "utils", "common", "misc", "helper", "helpers", "stuff"}


def language_of(path, text=""):
    name = os.path.basename(path)
    if name == "CMakeLists.txt":
        return "cmake"
    language = SUFFIXES.get(os.path.splitext(name)[1])
    if language is None and text.startswith("#!"):
        return "python" if "python" in text.split("\n", 1)[0] else "shell"
    return language or "text"


def is_checked(path, full):
    """Every text file of a kind we write, and scripts without a suffix."""
    if path.startswith("tools/tidy_baseline"):
        return False
    suffix = os.path.splitext(path)[1]
    if suffix in SUFFIXES:
        return not os.path.islink(full)
    if suffix or os.path.islink(full) or not os.path.isfile(full):
        return False
    with open(full, "rb") as file:
        return file.read(2) == b"#!"


def is_test(path):
    stem = os.path.splitext(os.path.basename(path))[0]
    if stem.endswith(("_test", ".test", "_fuzzer", "_bench", "_fixture", "_test_support")) or stem.startswith("test_"):
        return True
    return path.startswith("tests/") or "/testing/" in path


class Rule:
    def __init__(self, name, summary, check):
        self.name = name
        self.summary = summary
        self.run = check

    def check(self, source, report):
        self.run(source, lambda line, message, size=1: report(line, self.name, message, size))


# --- Lengths -------------------------------------------------------------------------------------

def check_file_length(source, report):
    if source.language not in CODE:
        return
    limit, kind = MAX_LINES, "a file"
    if source.is_test:
        limit, kind = MAX_TEST_LINES, "a test file"
    elif source.path.endswith(".h"):
        limit, kind = MAX_HEADER_LINES, "a header"
    if len(source.lines) > limit:
        report(1, f"{len(source.lines)} lines; {kind} has at most {limit}: split it by noun", len(source.lines))


def check_function_length(source, report):
    if source.language == "cc":
        functions = tidy_functions.functions_cc(source.text)
    elif source.language == "python":
        functions = tidy_functions.functions_python(source.text)
    elif source.language == "ts":
        functions = tidy_functions.functions_ts(source.text)
    else:
        return
    for name, first, last in functions:
        length = last - first + 1
        if length > MAX_FUNCTION_LINES:
            report(first, f"{name} has {length} lines; a function has at most {MAX_FUNCTION_LINES}", length)


def check_line_length(source, report):
    if source.language not in ("cc", "python", "ts") or source.is_test:
        return
    limit = MAX_COLUMNS if source.language == "cc" else MAX_COLUMNS_ELSEWHERE
    for number, line in enumerate(source.lines, 1):
        if len(line) > limit and not re.match(r"\s*(//|#)\s*\S+$|#include", line):
            report(number, f"{len(line)} columns; a line has at most {limit}")


# --- Form ----------------------------------------------------------------------------------------

def check_spdx(source, report):
    if source.language not in CODE:
        return
    head = source.lines[:2] if source.text.startswith("#!") else source.lines[:1]
    if not any("SPDX-License-Identifier: Apache-2.0" in line for line in head):
        report(1, "the first line is the licence: SPDX-License-Identifier: Apache-2.0")


def check_pragma_once(source, report):
    if source.path.endswith(".h") and not any(line.strip() == "#pragma once" for line in source.lines):
        report(1, "a header begins with #pragma once")


def check_white_space(source, report):
    for number, line in enumerate(source.lines, 1):
        if line != line.rstrip():
            report(number, "white space at the end of the line (or a carriage return)")
        elif "\t" in line and source.language in ("cc", "python", "proto", "cmake", "ts"):
            report(number, "a tab: indent with spaces, write \\t in literals")
    if source.text and not source.text.endswith("\n"):
        report(len(source.lines), "no line end at the end of the file")
    elif source.text.endswith("\n\n"):
        report(len(source.lines), "empty lines at the end of the file")


def check_folder_names(source, report):
    for folder in source.path.split("/")[:-1]:
        if folder in BANNED_FOLDERS:
            report(1, f"a folder '{folder}' says nothing: name it by what it is (backoff, bounded_queue)")
    stem = os.path.splitext(source.name)[0]
    if stem in BANNED_FOLDERS or stem.endswith(("_util", "_utils", "_misc")):
        report(1, f"a file '{source.name}' says nothing: name it by the noun it holds")


# --- Words ---------------------------------------------------------------------------------------

UNFINISHED = re.compile(r"\bnot (?:yet )?implemented\b|\bstubs?\b|\bplaceholders?\b|\bfor now\b", re.IGNORECASE)
UNFINISHED_MARK = re.compile(r"\b(?:FIXME|XXX|HACK)\b")
NOT_A_STUB = re.compile(r"\bg?RPC|\bgrpc|\b(?:New)?Stub(?:Interface)?\b|generated")
TODO = re.compile(r"\bTODO\b")
TODO_FORM = re.compile(r"\bTODO\(#\d+\): \S")
MACHINE_PATH = re.compile(r"(?<![\w.~}/-])"
                          r"(?:/workspace/|/home/(?!ubuntu\b|ec2-user\b|neurontrace\b)\w|/Users/\w|/root/)")


def check_unfinished(source, report):
    if source.language not in CODE or OWN_FILES.match(source.path):
        return
    lines = source.code_and_comments
    for number, (line, (_, comment)) in enumerate(zip(source.lines, lines), 1):
        word = UNFINISHED.search(comment)
        if word and not (word.group().lower().startswith("stub") and NOT_A_STUB.search(comment)):
            report(number, f"'{word.group()}' marks unfinished work: finish it, or open an issue and say TODO(#123)")
        elif re.search(r"not (?:yet )?implemented", line, re.IGNORECASE) and not word:
            report(number, "'not implemented' marks unfinished work: finish it or leave it out")
        mark = UNFINISHED_MARK.search(comment)
        if mark:
            report(number, f"'{mark.group()}': open an issue and say TODO(#123)")


def check_todo(source, report):
    if source.language not in CODE or OWN_FILES.match(source.path):
        return
    for number, (_, comment) in enumerate(source.code_and_comments, 1):
        if TODO.search(comment) and not TODO_FORM.search(comment):
            report(number, "a TODO names its issue: TODO(#123): what is to be done")


def check_machine_paths(source, report):
    if OWN_FILES.match(source.path):
        return
    for number, line in enumerate(source.lines, 1):
        match = MACHINE_PATH.search(line)
        if match:
            report(number, f"'{match.group()}' is a path of one developer's machine")


# --- Documents -----------------------------------------------------------------------------------

LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")


def check_links(source, report):
    if not source.path.endswith(".md") or source.root is None:
        return
    for number, line in enumerate(source.lines, 1):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if not os.path.exists(os.path.join(source.root, os.path.dirname(source.path), target)):
                report(number, f"the link to {target} leads nowhere")


def check_sentences(source, report):
    if not source.path.endswith(".md"):
        return
    for number, words in tidy_sentences.sentences(source.lines):
        if len(words) > tidy_sentences.MAX_WORDS:
            report(number, f"the sentence '{' '.join(words[:6])} ...' has {len(words)} words; a sentence has at most "
                   f"{tidy_sentences.MAX_WORDS}: make it two")


def check_cells(source, report):
    """Decisions are left as they were made."""
    if not source.path.endswith(".md") or source.path.startswith("docs/decisions/"):
        return
    for number, words in tidy_sentences.cells(source.lines):
        if len(words) > tidy_sentences.MAX_CELL_WORDS:
            report(number, f"the cell '{' '.join(words[:6])} ...' has {len(words)} words; a table cell has at most "
                   f"{tidy_sentences.MAX_CELL_WORDS}: put the rest into sentences below the table")


def check_places(source, report):
    """What a row of where_things_are.md names stands in the file that the row links to."""
    if source.path != "docs/developer/where_things_are.md" or source.root is None:
        return
    for number, line in enumerate(source.lines, 1):
        targets = [os.path.join(source.root, os.path.dirname(source.path), target) for target in LINK.findall(line)]
        texts = []
        for target in targets:
            if os.path.isfile(target):
                with open(target, encoding="utf-8") as file:
                    texts.append(file.read())
        for name in re.findall(r"(?<!\[)`(\w+)`", line) if texts else []:
            if not any(re.search(rf"\b{name}\b", text) for text in texts):
                report(number, f"{name} is in none of the files that this row links to")


def check_file_table(source, report):
    """In a folder's README the first cells of a table with the head `file` name files there, without their endings."""
    if source.name != "README.md" or source.root is None or "/" not in source.path:
        return
    folder = os.path.join(source.root, os.path.dirname(source.path))
    stems, is_of_files = None, False
    for number, line in enumerate(source.lines, 1):
        is_of_files = line.startswith("| file |") or (is_of_files and line.startswith("|"))
        names = re.findall(r"`([a-z0-9_]+)`", line.split("|")[1]) if is_of_files else []
        if names and stems is None:
            stems = {os.path.splitext(file)[0] for _, _, files in os.walk(folder) for file in files}
            stems |= {name for _, names_of_folders, _ in os.walk(folder) for name in names_of_folders}
        for name in names:
            if name not in stems:
                report(number, f"{name} is no file of this folder")


def check_decision_index(source, report):
    """ARCHITECTURE.md lists every decision."""
    if source.path != "docs/developer/ARCHITECTURE.md" or source.root is None:
        return
    folder = os.path.join(source.root, "docs", "decisions")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if re.match(r"\d{4}-", name) and f"(../decisions/{name})" not in source.text:
            report(1, f"docs/decisions/{name} is not in the index of decisions")


# --- Tests ---------------------------------------------------------------------------------------

SLEEPS = {
    "cc": re.compile(r"\bsleep_for\b|\bsleep_until\b|\b(?:u|nano)?sleep\s*\(|\bSleepFor\b|\bclock_nanosleep\b"),
    "python": re.compile(r"\btime\.sleep\s*\(|\bsleep\s*\("),
    "shell": re.compile(r"(?:^|[;&|]|\bdo|\bthen)\s*sleep\s+[\d.$]"),
}


def check_sleeps(source, report):
    if not source.is_test or source.path.startswith(SIMULATORS) or OWN_FILES.match(source.path):
        return
    pattern = SLEEPS.get(source.language)
    if pattern is None:
        return
    for number, (code, comment) in enumerate(source.code_and_comments, 1):
        if pattern.search(code) and POLL not in comment:
            report(number, "a test does not sleep: advance a fake clock, or poll for the condition up to a "
                   "deadline and mark the wait 'tidy: poll'")


def check_disabled_tests(source, report):
    if source.language != "cc" or OWN_FILES.match(source.path):
        return
    for number, (code, _) in enumerate(source.code_and_comments, 1):
        if re.search(r"\bDISABLED_\w+", code):
            report(number, "a disabled test tests nothing: fix it or delete it")


# --- The page ------------------------------------------------------------------------------------

TS_IMPORT = re.compile(r"^(?:import|export)\b(?:[^;'\"]*\bfrom)?\s*['\"]([^'\"]+)['\"]|\bimport\(['\"]([^'\"]+)['\"]\)",
                       re.MULTILINE)


def check_ts_imports(source, report):
    """The page has no packages, and its model knows neither the browser's page nor the API."""
    if source.language != "ts" or not source.path.startswith("web/"):
        return
    for match in TS_IMPORT.finditer(source.text):
        target, number = match.group(1) or match.group(2), source.text.count("\n", 0, match.start()) + 1
        if not target.startswith("."):
            if not (source.is_test and target.startswith("node:")):
                report(number, f"'{target}': the page has no packages; import files of web/ by a relative path")
        elif source.path.startswith("web/model/") and not re.match(r"\./\w+$", target):
            report(number, f"'{target}': web/model imports web/model alone, so that it is tested without a browser")


HTML_SINK = re.compile(r"\.(?:innerHTML|outerHTML|insertAdjacentHTML|srcdoc)\b"
                       r"|\bdocument\.write|\beval\s*\(|\bnew Function\b")


def check_html_sinks(source, report):
    if source.language != "ts":
        return
    for number, (code, _) in enumerate(source.code_and_comments, 1):
        match = HTML_SINK.search(code)
        if match:
            report(number, f"'{match.group()}' runs what a name contains; set textContent")


# --- Words with a replacement --------------------------------------------------------------------

class Ban:
    """A word in C++ code, the replacement, and the paths where it is right."""

    def __init__(self, pattern, instead, except_in=r"(?!)", tests=True):
        self.pattern = re.compile(pattern)
        self.instead = instead
        self.except_in = re.compile(except_in)
        self.tests = tests


BANS = [
    Ban(r"\babsl::(?:Reader|Writer)?Mutex(?:Lock)?\b", "lib/base/mutex.h: ThreadSanitizer cannot see into absl::Mutex"),
    Ban(r"\bstd::(?:(?:shared_|recursive_|timed_)*mutex|shared_timed_mutex|condition_variable(?:_any)?)\b",
        "Mutex and CondVar of lib/base/mutex.h, which clang checks", r"^lib/base/mutex\.h$|^tap/", tests=False),
    Ban(r"\bstd::c(?:out|err)\b", "spdlog in a daemon; only main.cc, config.cc and the CLI write to the terminal",
        r"(?:^|/)(?:main|config)\.cc$|^cli/|^tests/", tests=False),
    Ban(r"\b(?:getInstance|GetInstance|Singleton)\b", "build it in the composition root and pass it by reference"),
    Ban(r"\bcatch\s*\(\s*\.\.\.\s*\)", "catch the type you can handle: a catch-all swallows bugs"),
    Ban(r"^using\s+namespace\s+(?!.*literals)", "using-declarations of the names you need"),
    Ban(r"(?<![\w:.>])(?:std::)?s?rand\s*\(", "lib/base/random.h: seeded, so that a run can be replayed",
        r"^tests/"),
    Ban(r"\bstd::random_device\b", "lib/base/random.h: seeded, so that a run can be replayed",
        r"^lib/base/|(?:^|/)main\.cc$"),
    Ban(r"\bstd::endl\b", r"'\n': std::endl flushes on every line"),
    Ban(r"(?<![\w.>_:])(?:std::)?(?:quick_)?exit\s*\(", "return an absl::Status: only main.cc ends the process",
        r"(?:^|/)main\.cc$|^cli/|^tests/", tests=False),
    Ban(r"\.detach\s*\(\s*\)", "a thread that its owner joins"),
    Ban(r"\bstd::(?:auto_ptr|bind)\b", "std::unique_ptr, a lambda"),
    Ban(r"\bstd::regex\b", "a small parser: std::regex overflows its stack on long input"),
    Ban(r"\b(?:strcpy|strcat|sprintf|vsprintf|gets|strtok)\s*\(", "the form that takes a size"),
]


def check_banned_words(source, report):
    if source.language != "cc":
        return
    for number, (code, _) in enumerate(source.code_and_comments, 1):
        for ban in BANS:
            if ban.except_in.search(source.path) or (source.is_test and not ban.tests):
                continue
            match = ban.pattern.search(code)
            if match:
                report(number, f"'{match.group().strip()}' is not used here; instead: {ban.instead}")


RULES = [
    Rule("file-length", f"{MAX_LINES} lines a file, {MAX_HEADER_LINES} a header, {MAX_TEST_LINES} a test",
         check_file_length),
    Rule("function-length", f"{MAX_FUNCTION_LINES} lines a function, in C++, Python and TypeScript",
         check_function_length),
    Rule("line-length", f"{MAX_COLUMNS} columns, outside tests (Python, TypeScript: {MAX_COLUMNS_ELSEWHERE})",
         check_line_length),
    Rule("spdx", "the first line names the licence", check_spdx),
    Rule("pragma-once", "every header has #pragma once", check_pragma_once),
    Rule("white-space", "none at the end of a line, no tabs, one line end at the end", check_white_space),
    Rule("folder-name", "no folder or file called util, common, misc", check_folder_names),
    Rule("unfinished", "no stub, placeholder, 'for now', 'not implemented', FIXME, XXX, HACK", check_unfinished),
    Rule("todo", "a TODO names its issue: TODO(#123)", check_todo),
    Rule("machine-path", "no absolute path of a developer's machine", check_machine_paths),
    Rule("link", "links between documents and to code lead somewhere", check_links),
    Rule("long-sentence", f"{tidy_sentences.MAX_WORDS} words a sentence in Markdown, "
         "code and the list of options left out", check_sentences),
    Rule("long-cell", f"{tidy_sentences.MAX_CELL_WORDS} words a table cell in Markdown, outside docs/decisions",
         check_cells),
    Rule("place", "docs/developer/where_things_are.md names what is in the files that it links to", check_places),
    Rule("file-table", "a table in a folder's README names files of that folder", check_file_table),
    Rule("readme-form", "the README of each folder in tools/layers.txt has the same headings", tidy_readmes.check_form),
    Rule("readme-name", "the README of such a folder names what exists", tidy_readmes.check_names),
    Rule("decision-index", "docs/developer/ARCHITECTURE.md lists every decision", check_decision_index),
    Rule("sleep", "tests do not sleep", check_sleeps),
    Rule("disabled-test", "no DISABLED_ tests", check_disabled_tests),
    Rule("ts-import", "the page imports no packages, and web/model imports web/model alone", check_ts_imports),
    Rule("html-sink", "the page never makes HTML, or code, of a text", check_html_sinks),
    Rule("banned-word", "no absl::Mutex, std::mutex, std::cout, getInstance, catch (...), rand: each has a better one",
         check_banned_words),
    Rule("plain-words", f"no translated phrase in comments, literals and Markdown; at most "
         f"{tidy_sentences.MAX_WORDS} words in a sentence of a message", tidy_words.check_plain_words),
]
