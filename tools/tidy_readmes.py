# SPDX-License-Identifier: Apache-2.0
"""The rules readme-form and readme-name: the README of each folder has one form, and its names exist."""

import functools
import os
import re

import check_layers

HEADINGS = ("In", "Out", "May include", "Threads", "Invariants")
HEADING = re.compile(r"^\*\*(" + "|".join(HEADINGS) + r"):\*\* ")
# A name as code has it: `core_watch`, `CoreWatch`, `core_watch.h`. A single plain word may be anything.
NAME = re.compile(r"`([A-Za-z]\w*_\w+|[A-Z][a-z0-9]+[A-Z]\w*|[\w-]+\.(?:h|cc|py|proto|ts))(?:\(\))?`")
SKIPPED_FOLDERS = {".git", "build", "out", "__pycache__", ".cache", ".venv"}


@functools.lru_cache(maxsize=4)
def folders_of(root):
    """The folders that tools/layers.txt names."""
    path = os.path.join(root, "tools", "layers.txt")
    if not os.path.exists(path):
        return frozenset()
    with open(path, encoding="utf-8") as file:
        return frozenset(name.removesuffix("/**") for name in check_layers.Layers.parse(file.read()).folders())


@functools.lru_cache(maxsize=4)
def names_in(root):
    """Every word in the tree's files apart from Markdown, and the names of files with and without their ending."""
    names = set()
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if name not in SKIPPED_FOLDERS]
        names.update(below)
        for name in files:
            names |= {name, os.path.splitext(name)[0]}
            if not name.endswith((".md", ".zst", ".gz", ".json", ".pftrace")):
                with open(os.path.join(folder, name), encoding="utf-8", errors="ignore") as file:
                    names.update(re.findall(r"\w+", file.read()))
    return names


def is_of_a_folder(source):
    if source.name != "README.md" or source.root is None:
        return False
    return os.path.dirname(source.path) in folders_of(source.root)


def check_form(source, report):
    """A title, the folder's job, then the five headings once each in their order."""
    if not is_of_a_folder(source):
        return
    found = [(number, match.group(1)) for number, match in
             ((number, HEADING.match(line)) for number, line in enumerate(source.lines, 1)) if match]
    if [name for _, name in found] != list(HEADINGS):
        report(found[0][0] if found else 1, "a folder's README has one line for each of "
               f"{', '.join(f'**{name}:**' for name in HEADINGS)}, in this order")
    job = source.lines[2] if len(source.lines) > 2 else ""
    if not source.lines[0].startswith("# ") or not re.match(r"[A-Z]", job):
        report(1, "a folder's README begins with its title, an empty line and a sentence about the folder's one job")


def check_names(source, report):
    if not is_of_a_folder(source):
        return
    for number, line in enumerate(source.lines, 1):
        for name in NAME.findall(line):
            if name not in names_in(source.root):
                report(number, f"{name} does not exist: no file has this name, and no code has this word")
