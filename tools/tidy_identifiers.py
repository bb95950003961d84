# SPDX-License-Identifier: Apache-2.0
"""Identifiers are the field's nouns and verbs: no clause as a name, none of the words that read like a translation."""

import re

# (word of an identifier, what to write instead)
WORDS = {
    "tell": "Report, Notify, Describe", "tells": "Reports", "told": "reported", "teller": "reporter",
    "say": "Report, Print, Describe", "says": "Reports", "said": "reported",
    "hear": "Receive, Read", "hears": "Receives", "heard": "received", "unheard": "undelivered",
    "anew": "again, restart", "mend": "repair", "mends": "repairs", "mended": "repaired",
    "beat": "tick", "beats": "ticks",
    "odd": "invalid, extreme", "oddity": "anomaly", "whisper": "a plain noun", "seer": "reader", "rubble": "damaged",
    "sag": "sagitta", "drip": "SendSlowly", "unkept": "unspooled", "unsaid": "unreported",
    "poorer": "lower", "richer": "higher", "eldest": "oldest", "surroundings": "context",
}
# Several words, which only together are a turn of speech. Matched against the words joined by underscores.
TURNS = [
    (r"(?:go|goes|going|went)_on", "continue, resume"),
    (r"(?:give|gives|gave|given|giving)_(?:back|way)", "release, suspend"),
    (r"(?:let|lets)_go", "release, drop"),
    (r"take_back", "revoke, acquire"),
    (r"(?:look|looks|looked|looking)_(?:at|for|in|into|again|later|after|through)", "inspect, detect, poll"),
    (r"under_way|on_(?:its|the)_way", "in progress, in flight"),
    (r"in_words", "as text"),
    (r"of_which", "a noun"),
    (r"for_want", "without"),
]
# A name that begins so is a clause. Only for functions, types and tests, which begin with a capital.
CLAUSE = re.compile(r"(?:What(?:Ever|ever)?|Who(?:m|se|ever)?|Whose|Why|Of|May|Where(?:ver)?)(?=[A-Z])")
# Names that stay: those of foreign interfaces.
ALLOWED = {"Tell"}  # arrow::io::OutputStream::Tell
IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
# Python's literals are not blanked, so only what declares a name counts there.
PYTHON_NAME = re.compile(r"\b(?:def|class)\s+(\w+)|^\s*(?:self\.)?(\w+)\s*(?::[^=\"']*)?=(?!=)")
HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
TURN = re.compile("|".join(rf"(?P<t{i}>(?:^|_)(?:{turn})(?=_|$))" for i, (turn, _) in enumerate(TURNS)))
# Cheaper than splitting every identifier: what contains none of these has no finding.
CANDIDATE = re.compile("|".join(sorted(WORDS)) + "|go|give|gave|let|lets|take|look|way|words|which|want|"
                       "what|who|why|^of|^may|where", re.IGNORECASE)
# These name the words they look for.
OWN_FILES = re.compile(r"^tools/tidy\w*\.py$")


def problem(name):
    """What is wrong with a name, or None."""
    if not CANDIDATE.search(name):
        return None
    words = [word.lower() for word in HUMP.findall(name)]
    for word in words:
        if word in WORDS:
            return f"'{word}' in a name: {WORDS[word]}"
    turn = TURN.search("_".join(words))
    if turn:
        index = int(turn.lastgroup[1:])
        return f"'{turn.group().strip('_').replace('_', ' ')}' in a name: {TURNS[index][1]}"
    clause = CLAUSE.match(name)
    if clause:
        return f"a name that begins with '{clause.group()}' is a clause: use a noun or a verb (Describe, Find)"
    return None


def names_in(code, language):
    if language == "cc":
        return IDENTIFIER.findall(code)
    return [first or second for first, second in PYTHON_NAME.findall(code)]


def check(sources):
    """No identifier in C++ and Python has a banned word or is a clause; names in .proto files are those of the wire."""
    wire, found = set(), {}
    for source in sources:
        if source.language == "proto":
            wire.update(IDENTIFIER.findall(source.text))
    for source in sorted(sources, key=lambda s: (not s.path.endswith(".h"), s.path)):
        if source.language not in ("cc", "python") or OWN_FILES.match(source.path):
            continue
        for number, (code, _) in enumerate(source.code_and_comments, 1):
            if code.lstrip().startswith("#include"):
                continue
            for name in names_in(code, source.language):
                if name not in found:
                    found[name] = (problem(name), source.path, number)
    for name, (wrong, path, number) in sorted(found.items(), key=lambda item: item[1][1:]):
        if wrong and name not in ALLOWED and not is_wire(name, wire):
            yield path, number, f"{name}: {wrong}"


def is_wire(name, wire):
    """A field of a message, an enumerator, or an accessor that protoc makes of one."""
    bare = re.sub(r"^(?:set|has|mutable|clear|add|release)_|_size$", "", name)
    return name in wire or bare in wire
