# SPDX-License-Identifier: Apache-2.0
"""One type name per namespace: two definitions break the one-definition rule, and no linker says so."""

import re

# A namespace, a type's definition, or a bracket. `struct Outer::Inner {` defines a nested type, with its name.
OPENING = re.compile(r"""
      (?:inline\s+)?namespace\b\s*(?P<namespace>[\w:]*)\s*\{
    | (?:\benum\s+)?\b(?:class|struct|union|enum)\s+(?:\[\[.*?\]\]\s*|alignas\s*\([^)]*\)\s*)*
      (?P<type>[A-Za-z_][\w:]*)(?:\s+final)?\s*(?::[^;{}()]*)?\{
    | \{ | \}""", re.VERBOSE)


def defined_types(code):
    """Yields (qualified name, offset) of each type defined directly in a named namespace.

    Types outside every namespace are those of foreign C interfaces, which several stand-ins define.
    """
    scopes = []  # a namespace's name; None for every other bracket
    for match in OPENING.finditer(code):
        if match.group() == "}":
            if scopes:
                scopes.pop()
        elif match.group("namespace") is not None:
            scopes.append(match.group("namespace"))
        else:
            if match.group("type") and scopes and all(scopes):
                yield "::".join(scopes + [match.group("type")]), match.start()
            scopes.append(None)


def check(sources):
    """Yields (path, line, message) for every definition of a type that another file defines too."""
    places = {}
    for source in sources:
        if source.language == "cc":
            code = "\n".join(code for code, _ in source.code_and_comments)
            for name, offset in defined_types(code):
                places.setdefault(name, []).append((source.path, code.count("\n", 0, offset) + 1))
    for name, found in sorted(places.items()):
        if len({path for path, _ in found}) > 1:
            for path, line in found:
                others = ", ".join(sorted({other for other, _ in found if other != path}))
                yield path, line, f"{name} is defined in {others} too: rename one, or give it a namespace of its own"
