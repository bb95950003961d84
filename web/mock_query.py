# SPDX-License-Identifier: Apache-2.0
"""The query grammar of docs/formats/view_api.md, for mock_server.py."""

import re

UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9}


def parse(text):
    """[(negated, key, value)]. Raises ValueError for a term that means nothing."""
    terms = []
    for part in re.findall(r'(?:[^\s"]|"[^"]*"?)+', text):
        negated = part.startswith("-") and len(part) > 1
        part = part[1:] if negated else part
        length = re.fullmatch(r"dur([<>])(\d+(?:\.\d+)?)(\w+)", part)
        if length:
            terms.append((negated, "dur" + length.group(1), float(length.group(2)) * UNITS[length.group(3)]))
            continue
        key, colon, value = part.partition(":")
        if colon and key in ("rank", "type", "name", "core", "arg") and value:
            terms.append((negated, key, value.replace('"', "")))
        else:
            terms.append((negated, "word", part.replace('"', "").lower()))
    return terms


def matches(terms, stream, event):
    return all(matches_term(key, value, stream, event) != negated for negated, key, value in terms)


def matches_term(key, value, stream, event):
    _, duration, name, _, seed, _ = event
    if key == "dur>":
        return duration > value
    if key == "dur<":
        return duration < value
    if key == "rank":
        first, _, last = value.partition("-")
        return stream["gid"] is not None and int(first) <= stream["gid"] <= int(last or first)
    if key == "core":
        return stream["core"] == int(value)
    if key == "type":
        return name.split(" ")[0] == value
    if key == "name":
        return name == value
    if key == "arg":
        return value in (f"exec_id={seed}", "op=all_reduce")
    return value in name.lower()
