# SPDX-License-Identifier: Apache-2.0
"""Finds the sentences of a Markdown page, in paragraphs, list items, headings and table cells, and the table cells."""

import re

MAX_WORDS = 40
MAX_CELL_WORDS = 25

# Nothing in here is prose: a block of code, and the list of options, whose words are those of --help.
FENCE = re.compile(r"\s*(?:```|~~~)")
LEFT_OUT = re.compile(r"<!-- generated: options -->")
END_OF_LEFT_OUT = re.compile(r"<!-- end of generated -->")
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.) +")
CELL_EDGE = re.compile(r"(?<!\\)\|")
# A full stop ends a sentence where a capital letter, a figure or a mark follows: not in "e.g. this".
SENTENCE_END = re.compile(r"(?<=[.!?])[*_)\"”]*\s+(?=[A-Z0-9`*_\[(\"“→])|<br>")
CODE_OR_TARGET = re.compile(r"(`+)(?:.+?)\1|\]\([^)]*\)")


def blocks(lines):
    """Yields (line number, text) of each paragraph, list item, heading and table cell."""
    start, text, in_code, left_out = 0, [], False, False
    for number, line in enumerate([*lines, ""], 1):
        fence = FENCE.match(line)
        left_out = (left_out or bool(LEFT_OUT.match(line))) and not END_OF_LEFT_OUT.match(line)
        in_code ^= bool(fence)
        is_prose = bool(line.strip()) and not (fence or in_code or left_out or line.startswith("<!--"))
        alone = line.lstrip().startswith(("|", "#"))
        if text and (not is_prose or alone or ITEM.match(line)):
            yield start, " ".join(text)
            text = []
        if not is_prose:
            continue
        if alone:
            yield from ((number, cell.strip("# ")) for cell in CELL_EDGE.split(line) if cell.strip())
            continue
        if not text:
            start = number
        text.append(ITEM.sub("", line).strip())


def prose(text):
    """The text with code in backquotes as one word, and a link as its text."""
    return CODE_OR_TARGET.sub(lambda match: "`code`" if match.group(1) else "]", text)


def sentences(lines):
    """Yields (line number, words) of each sentence."""
    for number, text in blocks(lines):
        for sentence in SENTENCE_END.split(prose(text)):
            yield number, sentence.split()


def cells(lines):
    """Yields (line number, words) of each cell of a table."""
    in_code = False
    for number, line in enumerate(lines, 1):
        in_code ^= bool(FENCE.match(line))
        if not in_code and line.lstrip().startswith("|"):
            yield from ((number, prose(cell).replace("<br>", " ").split()) for cell in CELL_EDGE.split(line))
