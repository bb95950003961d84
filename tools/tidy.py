#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the rules of docs/developer/STYLE.md that a script can check, with a ratchet.

    tools/tidy.py                    check the repository this script stands in
    tools/tidy.py lib/base/clock.h ...   check these files only
    tools/tidy.py --rules            print every rule
    tools/tidy.py --update           rewrite tools/tidy_baseline.json; it may only shrink

A finding is one line, FILE:LINE: [rule] what is wrong and what to do instead. The baseline holds what was
there before a rule came: such a finding passes, a new or a worse one fails, and one that is gone must
leave the baseline too. A line that has to break a rule says so itself, with the reason after it:
`// tidy: allow(rule) reason`. A test that polls a condition up to a deadline marks its wait `// tidy: poll`.
The exit code is 0 when all is well, 1 when there are findings, 2 on wrong usage.
"""

import argparse
import functools
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate_docs  # noqa: E402
import tidy_functions  # noqa: E402
import tidy_identifiers  # noqa: E402
import tidy_metrics  # noqa: E402
import tidy_rules  # noqa: E402
import tidy_types  # noqa: E402

SKIPPED_FOLDERS = {".git", "build", "out", "__pycache__", ".cache", ".venv", "golden"}
BASELINE = os.path.join("tools", "tidy_baseline.json")
# What needs all files at once.
TREE_RULES = {"metric": tidy_metrics, "type-name": tidy_types, "plain-names": tidy_identifiers,
              "generated": generate_docs}


class Source:
    """One file as the rules see it."""

    def __init__(self, path, text, root=None):
        self.path = path
        self.root = root  # of the tree, to look for other files; None: do not look
        self.text = text
        self.lines = text.split("\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        self.name = os.path.basename(path)
        self.language = tidy_rules.language_of(path, text)
        self.is_test = tidy_rules.is_test(path)

    @functools.cached_property
    def code_and_comments(self):
        """Per line (code, comment): literals blanked in the code, comment text apart."""
        return tidy_functions.split_lines(self.lines, self.language)


class Finding:
    def __init__(self, path, line, rule, message, size=1):
        self.path = path
        self.line = line
        self.rule = rule
        self.message = message
        self.size = size  # what the ratchet compares: lines for a length, 1 for all else

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def check_source(source):
    """Every finding in one file that no mark on its line allows."""
    findings = []

    def report(line, rule, message, size=1):
        text = source.lines[line - 1] if 0 < line <= len(source.lines) else ""
        allowed = tidy_rules.ALLOW.search(text)
        if allowed and allowed.group(1) == rule:
            if allowed.group(2).strip():
                return
            message = f"an allowance needs its reason after it: tidy: allow({rule}) reason"
        findings.append(Finding(source.path, line, rule, message, size))

    for rule in tidy_rules.RULES:
        rule.check(source, report)
    return findings


def read_sources(root, paths):
    for path in paths:
        full = os.path.join(root, path)
        if tidy_rules.is_checked(path, full):
            with open(full, encoding="utf-8", errors="replace", newline="") as file:
                yield Source(path, file.read(), root)


def all_paths(root):
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED_FOLDERS)
        for name in sorted(files):
            yield os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/")


def totals(findings):
    """{"rule": {"path": size}}: the shape of the baseline."""
    sums = {}
    for finding in findings:
        by_path = sums.setdefault(finding.rule, {})
        by_path[finding.path] = by_path.get(finding.path, 0) + finding.size
    return sums


def ratchet(findings, baseline):
    """The findings over what the baseline permits, and a line for each baseline entry that is too high."""
    now = totals(findings)
    stale = []
    for rule, by_path in sorted(baseline.items()):
        for path, permitted in sorted(by_path.items()):
            size = now.get(rule, {}).get(path, 0)
            if size < permitted:
                stale.append(f"{BASELINE}: [{rule}] {path} got better, {permitted} -> {size}: "
                             "run tools/tidy.py --update so that it stays so")
    over = [f for f in findings
            if now[f.rule][f.path] > baseline.get(f.rule, {}).get(f.path, 0)]
    return over, stale


def update(root, findings, baseline):
    """Writes the baseline; refuses to let it grow."""
    over, _ = ratchet(findings, baseline)
    for finding in over:
        print(finding)
    if over:
        print(f"tidy: the baseline may only shrink; fix the {len(over)} findings above first")
        return 1
    with open(os.path.join(root, BASELINE), "w", encoding="utf-8") as file:
        json.dump(totals(findings), file, indent=2, sort_keys=True)
        file.write("\n")
    return 0


def load_baseline(root):
    path = os.path.join(root, BASELINE)
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("files", nargs="*", help="files to check (default: all), from the repository root")
    parser.add_argument("--root", default=here, help="the tree to check (default: this repository)")
    parser.add_argument("--rules", action="store_true", help="print every rule and exit")
    parser.add_argument("--update", action="store_true", help="rewrite the baseline (it may only shrink)")
    options = parser.parse_args(arguments)
    if options.rules:
        for rule in tidy_rules.RULES:
            print(f"{rule.name:20} {rule.summary}")
        for rule, check in TREE_RULES.items():
            print(f"{rule:20} {check.__doc__.splitlines()[0]}")
        return 0
    if options.files and options.update:
        parser.error("--update takes no files: the baseline is of the whole tree")
    for path in options.files:
        if not os.path.isfile(os.path.join(options.root, path)):
            parser.error(f"no such file under {options.root}: {path}")
    baseline = load_baseline(options.root)
    sources = list(read_sources(options.root, options.files or all_paths(options.root)))
    findings = [finding for source in sources for finding in check_source(source)]
    if not options.files:
        for rule, check in TREE_RULES.items():
            findings += [Finding(path, line, rule, message) for path, line, message in check.check(sources)]
    if options.update:
        return update(options.root, findings, baseline)
    over, stale = ratchet(findings, baseline)
    if options.files:
        stale = []
    for finding in sorted(over, key=lambda f: (f.path, f.line)):
        print(finding)
    for line in stale:
        print(line)
    print(f"tidy: {len(sources)} files, {len(over) + len(stale)} wrong")
    return 1 if over or stale else 0


if __name__ == "__main__":
    sys.exit(main())
