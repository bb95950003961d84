#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a man page of what a program reports about itself with --help, so that the two cannot drift apart.

    tools/man_page.py PROGRAM [--section N] [--date YYYY-MM-DD] > PAGE

Asks PROGRAM, and each of its commands and theirs, for help, and for its version. The page is in man(7)'s macros.
"""

import argparse
import os
import re
import subprocess
import sys

DESCRIPTION_COLUMN = 30
HEADINGS = ("Positionals:", "Options:", "Subcommands:")


class Help:
    """What one --help says: description, usage, entries under its headings, and the text at the end."""

    def __init__(self, text):
        self.description, self.usage, self.footer = "", "", ""
        self.entries = {heading: [] for heading in HEADINGS}
        lines = text.rstrip("\n").split("\n")
        usage = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
        self.description = " ".join(line.strip() for line in lines[:usage]).strip()
        self.usage = lines[usage].removeprefix("Usage: ").strip()
        heading, rest = None, lines[usage + 1:]
        for at, line in enumerate(rest):
            if line in HEADINGS:
                heading = line
            elif not line:
                heading = None
            elif heading is None:
                self.footer = "\n".join(rest[at:])
                return
            else:
                following = rest[at + 1] if at + 1 < len(rest) else ""
                self._read(self.entries[heading], line, following)

    def _read(self, entries, line, following):
        if line.startswith(" " * DESCRIPTION_COLUMN):
            name, text = entries[-1]
            entries[-1] = (name, f"{text} {line.strip()}".strip())
            return
        name, text = line.strip(), ""
        padded = line[:DESCRIPTION_COLUMN]
        continues_below = following.startswith(" " * DESCRIPTION_COLUMN)
        if padded.endswith("  ") or (padded.endswith(" ") and not continues_below):
            name, text = padded.strip(), line[DESCRIPTION_COLUMN:].strip()
        entries.append((name, text))

    def commands(self):
        return [name for name, _ in self.entries["Subcommands:"]]


def ask(program, *words):
    done = subprocess.run([program, *words], capture_output=True, text=True, check=True, env={
        **os.environ, "NEURONTRACE_CONFIG": ""})
    return done.stdout


def escape(text):
    """Text as roff takes it: nothing at the start of a line is a command, and a hyphen stays one."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("…", "...")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def entry(name, text):
    """An option: what is typed is bold, what it stands for is not."""
    match = re.match(r"((?:-{1,2}[\w-]+,?)+|\w[\w-]*)(.*)$", name)
    typed, rest = match.groups() if match else (name, "")
    lines = [".TP", f"\\fB{escape(typed)}\\fR{escape(rest)}"]
    return lines + [escape(text)] if text else lines + ["\\&"]


def verbatim(text):
    """Lines that stay as they are."""
    lines = [".nf"]
    for line in text.split("\n"):
        lines.append(escape(line) if line.strip() else ".sp")
    return lines + [".fi"]


def section_of(program, name, words, level):
    """A command with all that it takes, and those below it."""
    reported = Help(ask(program, *words, "--help"))
    lines = [f".SS {escape(' '.join([name, *words]))}", escape(reported.description), ".PP",
             f"\\fBUsage:\\fR {escape(reported.usage)}"]
    for heading in ("Positionals:", "Options:"):
        for option, text in reported.entries[heading]:
            if not option.startswith("-h,"):
                lines += entry(option, text)
    if reported.footer:
        lines += [".PP", *verbatim(reported.footer)]
    for command in reported.commands():
        lines += section_of(program, name, [*words, command], level + 1)
    return lines


def page(program, section, date):
    name = os.path.basename(program)
    reported = Help(ask(program, "--help"))
    version = ask(program, "--version").split()[1]
    lines = [f'.TH {name.upper()} {section} "{date}" "neurontrace {version}" "neurontrace"',
             ".SH NAME", f"{escape(name)} \\- {escape(reported.description.rstrip('.'))}",
             ".SH SYNOPSIS", escape(reported.usage), ".SH OPTIONS"]
    for heading in ("Positionals:", "Options:"):
        for option, text in reported.entries[heading]:
            lines += entry(option, text)
    if reported.commands():
        lines.append(".SH COMMANDS")
        for command in reported.commands():
            lines += section_of(program, name, [command], 0)
    if reported.footer:
        lines += [".SH NOTES", *verbatim(reported.footer)]
    others = [other for other in ("neurontrace(1)", "neurontrace-agent(8)", "neurontrace-aggregator(8)")
              if not other.startswith(name + "(")]
    lines.append(".SH SEE ALSO")
    for at, other in enumerate(others):
        base, number = other.rstrip(")").split("(")
        lines.append(f".BR {escape(base)} ({number})" + ("," if at + 1 < len(others) else ""))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--section", default="1")
    parser.add_argument("--date", required=True)
    arguments = parser.parse_args()
    sys.stdout.write(page(arguments.program, arguments.section, arguments.date))


if __name__ == "__main__":
    main()
