# SPDX-License-Identifier: Apache-2.0
"""Completion in the shells themselves: what each offers for a half-typed line."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite

BASH = r'''
eval "$(neurontrace completion bash)"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"
_neurontrace
printf '%s\n' "${COMPREPLY[@]}"
'''

# _describe and its like work only inside the line editor: these replace them.
ZSH = r'''
compdef() { }
_describe() { local -a all; all=("${(@P)3}"); print -l -- "${(@)all%%:*}" }
_files() { print -l -- *(N) }
_command_names() { print -l -- ${(k)commands} }
eval "$(neurontrace completion zsh)"
words=("$@"); CURRENT=$#
_neurontrace
'''

FISH = r'''
neurontrace completion fish | source
complete -C "$argv[1]"
'''


class CompletionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build = Path(os.environ["NT_BUILD_DIR"]).resolve()
        cls.dir = tempfile.TemporaryDirectory(prefix="nt-completion-")
        (Path(cls.dir.name) / "a file.pftrace").touch()
        (Path(cls.dir.name) / "folder").mkdir()

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def environment(self):
        return {**os.environ, "PATH": f"{self.build / 'bin'}:{os.environ['PATH']}", "HOME": self.dir.name,
                "NEURONTRACE_CONFIG": ""}

    def run_shell(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment(), cwd=self.dir.name,
                              timeout=60, check=False)
        self.assertEqual(done.stderr, "", command)
        return [line.split("\t")[0] for line in done.stdout.splitlines() if line]

    def in_bash(self, *words):
        return self.run_shell("bash", "--norc", "-c", BASH, "bash", "neurontrace", *words)

    def in_zsh(self, *words):
        return self.run_shell("zsh", "-f", "-c", ZSH, "zsh", "neurontrace", *words)

    def in_fish(self, *words):
        return self.run_shell("fish", "--no-config", "-c", FISH, " ".join(["neurontrace", *words]))

    def check(self, complete):
        self.assertIn("record", complete("re"))
        self.assertLessEqual({"list", "show", "rename", "star", "unstar", "tag", "delete"}, set(complete("captures", "")))
        self.assertIn("--system-trace-filter-event-type", complete("capture", "--system"))
        self.assertEqual(set(complete("--output", "")), {"table", "json"})
        self.assertIn("summary-json", complete("export", "--format", "sum"))
        self.assertIn("a file.pftrace", [name.replace("\\", "") for name in complete("export", "-o", "")])
        self.assertIn("folder", [name.rstrip("/") for name in complete("record", "--directory", "")])
        self.assertIn("python3", complete("record", "--", "python"))

    def test_bash(self):
        self.check(self.in_bash)
        self.assertEqual(self.in_bash("--output", "=", "j"), ["json"])

    @suite.needs_of_setup(not shutil.which("zsh"), "zsh is not installed: scripts/setup")
    def test_zsh(self):
        self.check(self.in_zsh)

    @suite.needs_of_setup(not shutil.which("fish"), "fish is not installed: scripts/setup")
    def test_fish(self):
        self.check(self.in_fish)


if __name__ == "__main__":
    suite.main()
