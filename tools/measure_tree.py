#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints how production code is divided: sizes of files and functions, share of comments, headers with one includer.

    tools/measure_tree.py                 this tree
    tools/measure_tree.py --root DIR      another one, such as LevelDB's
    tools/measure_tree.py aggregator cli  only these folders

Nothing is enforced here: tools/tidy.py checks the limits of files and functions.
"""

import argparse
import os
import re
import statistics
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tidy_functions  # noqa: E402
import tidy_rules  # noqa: E402

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
ASSERT = re.compile(r"(?<![\w_])assert\(|\bNT_CHECK\(")
SKIPPED = {".git", "build", "third_party"}


def sources(root, folders):
    """{path: text} of every C and C++ file below the folders."""
    found = {}
    for top in folders or ["."]:
        for folder, names, files in os.walk(os.path.join(root, top)):
            names[:] = sorted(name for name in names if name not in SKIPPED)
            for name in sorted(files):
                if name.endswith((".h", ".cc", ".c")):
                    path = os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")
                    with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                        found[path] = file.read()
    return found


def of_median(values, *shares):
    """The median, then the quantile of each share, then the greatest."""
    ordered = sorted(values) or [0]
    cuts = [ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in shares]
    return " / ".join(f"{value:g}" for value in [statistics.median(ordered), *cuts, ordered[-1]])


def comment_share(texts):
    comment_lines = lines = 0
    for text in texts:
        code, comments = tidy_functions.split_cc(text)
        for code_line, comment_line in zip(code.split("\n"), comments.split("\n")):
            comment_lines += bool(comment_line.strip()) and not code_line.strip()
            lines += bool(comment_line.strip() or code_line.strip())
    return f"{100 * comment_lines / max(lines, 1):.1f} %"


def rows(root, folders):
    everything = sources(root, [])
    chosen = {path: text for path, text in sources(root, folders).items() if not tidy_rules.is_test(path)}
    headers = {path: text for path, text in chosen.items() if path.endswith(".h")}
    bodies = {path: text for path, text in chosen.items() if not path.endswith(".h")}
    includers = {}
    for path, text in everything.items():
        if not tidy_rules.is_test(path):
            for header in INCLUDE.findall(text):
                includers.setdefault(header, set()).add(os.path.splitext(path)[0])
    lengths = [last - first + 1 for text in bodies.values() for _, first, last in tidy_functions.functions_cc(text)]
    single = sum(len(includers.get(path, set()) - {os.path.splitext(path)[0]}) == 1 for path in headers)
    sizes = [text.count("\n") for text in chosen.values()]
    return [("files, mean lines", f"{len(chosen)}, {statistics.mean(sizes or [0]):.0f}"),
            ("header median / p90 / max", of_median([text.count("\n") for text in headers.values()], 0.9)),
            (".cc median / p90 / max", of_median([text.count("\n") for text in bodies.values()], 0.9)),
            ("function median / p90 / max", of_median(lengths, 0.9)),
            ("comment share, headers / .cc", f"{comment_share(headers.values())} / {comment_share(bodies.values())}"),
            ("headers with a single other includer", f"{100 * single / max(len(headers), 1):.0f} %"),
            ("assertions of invariants", sum(len(ASSERT.findall(text)) for text in chosen.values()))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0],
                                     epilog="example: tools/measure_tree.py aggregator agent")
    parser.add_argument("folders", nargs="*", help="only these folders of the tree")
    parser.add_argument("--root", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    arguments = parser.parse_args()
    print("| | |\n| --- | --- |")
    for name, value in rows(arguments.root, arguments.folders):
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
