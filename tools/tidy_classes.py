# SPDX-License-Identifier: Apache-2.0
"""One class, one file pair: a header has at most one class whose member functions are in the .cc file beside it.

Structs are data: one may stand beside the class that uses it, whatever functions describe it. Nested classes and
classes without a function in the .cc file, such as interfaces, do not count either.
"""

import os
import re

import tidy_functions

# The headers whose classes are one abstraction, with the reason, which the header gives too. It may only shrink.
SHARED = {
    "agent/source/framework/xspace_file.h": "the readings of one file format, which share how they read it",
    "aggregator/align/core/clock_map.h": "a map and its cursor, which reads the map's pieces",
    "aggregator/derive/summary_rows.h": "one small table for each part of a summary; one class uses them all",
    "aggregator/store/capture_reader.h": "a reader and what it hands out, which share their private parts",
    "aggregator/store/stored_bytes.h": "the writer and the reader of one encoding",
    "lib/base/random.h": "an interface and its implementations of a line each",
}

# The formatter leaves only classes that are not nested at the beginning of a line.
CLASS = re.compile(r"^class (?:\[\[.*?\]\] |\w+\([^()]*\) )*(\w+)(?: final)?\s*(?::[^;{}]*)?\{", re.MULTILINE)


def classes_with_functions(header, implementation):
    """[(name, line)] of the classes that the header's text defines and the text of the .cc file implements."""
    owners = {part for name, _, _ in tidy_functions.functions_cc(implementation) for part in name.split("::")[:-1]}
    code = tidy_functions.split_cc(header)[0]
    return [(match.group(1), code.count("\n", 0, match.start()) + 1)
            for match in CLASS.finditer(code) if match.group(1) in owners]


def check(source, report):
    if not source.path.endswith(".h") or source.is_test or source.root is None:
        return
    implementation = os.path.join(source.root, source.path[:-len(".h")] + ".cc")
    found = []
    if os.path.isfile(implementation):
        with open(implementation, encoding="utf-8") as file:
            found = classes_with_functions(source.text, file.read())
    if source.path in SHARED:
        if len(found) < 2:
            report(1, "has one class with functions in its .cc file now: "
                   "remove it from SHARED in tools/tidy_classes.py")
        return
    for name, line in found[1:]:
        report(line, f"{name} shares its files with {found[0][0]}: give it a pair of its own, named after it")
