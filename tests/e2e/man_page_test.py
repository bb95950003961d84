# SPDX-License-Identifier: Apache-2.0
"""Man pages say all that --help says, and are sound."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from man_page import Help, ask, page

PROGRAMS = {"neurontrace": 1, "neurontrace-simulate": 1, "neurontrace-agent": 8, "neurontrace-aggregator": 8}


def shown(text):
    """A page as a terminal shows it, in one line."""
    done = subprocess.run(["mandoc", "-T", "utf8", "-O", "width=200"], input=text, capture_output=True, text=True,
                          check=True)
    return " ".join(re.sub(r".\x08", "", done.stdout).split())


class ManPageTest(unittest.TestCase):
    def setUp(self):
        self.bin = Path(os.environ["NT_BUILD_DIR"]) / "bin"

    def page_of(self, name):
        return page(str(self.bin / name), PROGRAMS[name], "2026-01-31")

    @suite.needs_of_setup(not shutil.which("mandoc"), "mandoc is not installed: scripts/setup")
    def test_pages_are_sound(self):
        for name in PROGRAMS:
            with tempfile.NamedTemporaryFile("w", suffix=f".{PROGRAMS[name]}", encoding="utf-8") as file:
                file.write(self.page_of(name))
                file.flush()
                done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", file.name], capture_output=True,
                                      text=True, check=False)
                self.assertEqual((done.returncode, done.stdout), (0, ""), name)

    @suite.needs_of_setup(not shutil.which("mandoc"), "mandoc is not installed: scripts/setup")
    def test_pages_have_every_option_of_every_command(self):
        for name in PROGRAMS:
            text = shown(self.page_of(name))
            self.check_command(str(self.bin / name), [], text)

    def check_command(self, program, words, text):
        reported = Help(ask(program, *words, "--help"))
        self.assertIn(" ".join(reported.usage.split()), text)
        for heading in ("Positionals:", "Options:"):
            for option, description in reported.entries[heading]:
                if words and option.startswith("-h,"):
                    continue
                self.assertNotEqual(description, "", f"{words} {option} says what it is")
                self.assertIn(option, text)
                self.assertIn(" ".join(description.replace("…", "...").split()), text, words)
        for line in reported.footer.splitlines():
            self.assertIn(" ".join(line.replace("…", "...").split()), text, words)
        for command in reported.commands():
            self.check_command(program, [*words, command], text)

    def test_help_is_read_as_it_is_meant(self):
        reported = Help("Does things.\nUsage: x [OPTIONS]\n\nOptions:\n"
                    "  -h,--help                   Print this\n"
                    "  --a-rather-long-name-of-an-option TEXT\n"
                    "                              What it is,\n"
                    "                              and more\n"
                    "  --exactly-so-long-as-can TE Said\n"
                    "\nExamples:\n  x --help\n\nMore.\n")
        self.assertEqual(reported.entries["Options:"], [
            ("-h,--help", "Print this"), ("--a-rather-long-name-of-an-option TEXT", "What it is, and more"),
            ("--exactly-so-long-as-can TE", "Said")])
        self.assertEqual(reported.footer, "Examples:\n  x --help\n\nMore.")


if __name__ == "__main__":
    suite.main()
