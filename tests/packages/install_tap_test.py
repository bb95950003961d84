# SPDX-License-Identifier: Apache-2.0
"""neurontrace-install-tap: what is mapped is never written into, and whoever looks finds a whole library."""
import mmap
import os
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

import suite

BUILD = Path(os.environ["NT_BUILD_DIR"])
PROGRAM = BUILD / "deploy/packages/neurontrace-install-tap"
TAP = BUILD / "lib/libneurontrace_tap.so"
NAME = "libneurontrace_tap.so"
ANNOTATE = "libneurontrace_annotate.so"


class InstallTapTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = Path(scratch.name)
        self.target = self.top / "host" / "tap"
        self.old = TAP.read_bytes()
        self.taps = []
        for generation in range(4):  # bytes behind an ELF file do no harm
            path = self.top / f"tap-{generation}.so"
            path.write_bytes(self.old + bytes([generation]) * 64)
            self.taps.append(path)

    def install(self, tap, code=0):
        done = subprocess.run([PROGRAM, "--from", tap, self.target], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def libraries(self, name=NAME):
        return sorted(path.name for path in self.target.glob(f"{name.removesuffix('.so')}-*.so"))

    def test_a_link_leads_to_a_file_named_by_its_content(self):
        done = self.install(TAP)
        link = self.target / NAME
        self.assertRegex(os.readlink(link), r"^libneurontrace_tap-\d+\.\d+\.\d+-[0-9a-f]{12}\.so$")
        self.assertIn(os.readlink(link), done.stdout)
        self.assertEqual(link.read_bytes(), self.old)
        self.assertEqual(link.stat().st_mode & 0o7777, 0o755)
        self.assertEqual(self.target.stat().st_mode & 0o7777, 0o755)
        loaded = subprocess.run(["/bin/true"], env={"LD_PRELOAD": str(link)}, capture_output=True, text=True, check=True)
        self.assertEqual(loaded.stderr, "")

    def test_again_changes_nothing(self):
        self.install(TAP)
        before = {path.name: (path.lstat().st_ino, path.lstat().st_mtime_ns) for path in self.target.iterdir()}
        self.install(TAP)
        self.assertEqual(before, {p.name: (p.lstat().st_ino, p.lstat().st_mtime_ns) for p in self.target.iterdir()})

    def test_the_annotation_library_beside_the_tap_is_installed_in_the_same_way(self):
        self.install(self.taps[0])
        self.assertFalse((self.target / ANNOTATE).is_symlink(), "there is none beside this tap")
        generations = [BUILD.joinpath("lib", ANNOTATE).read_bytes() + bytes([i]) * 64 for i in range(3)]
        for tap, generation in zip(self.taps, generations):
            (self.top / ANNOTATE).write_bytes(generation)
            self.assertIn(f"{self.target / ANNOTATE} -> ", self.install(tap).stdout)
            self.assertEqual((self.target / NAME).read_bytes(), tap.read_bytes())
            self.assertEqual((self.target / ANNOTATE).read_bytes(), generation)
        link = self.target / ANNOTATE
        self.assertRegex(os.readlink(link), r"^libneurontrace_annotate-\d+\.\d+\.\d+-[0-9a-f]{12}\.so$")
        self.assertEqual(link.stat().st_mode & 0o7777, 0o755)
        self.assertEqual({(self.target / name).read_bytes() for name in self.libraries(ANNOTATE)}, set(generations[1:]))

    def test_keeps_mapped_versions_across_upgrades(self):
        self.install(self.taps[0])
        with open(self.target / NAME, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped:
            for tap in self.taps[1:]:
                self.install(tap)
                self.assertEqual((self.target / NAME).read_bytes(), tap.read_bytes())
                self.assertEqual(mapped[:], self.taps[0].read_bytes())
        # The last two: those that a process may be about to open.
        self.assertEqual({(self.target / name).read_bytes() for name in self.libraries()},
                         {tap.read_bytes() for tap in self.taps[2:]})

    def test_a_file_that_was_copied_there_by_hand_is_replaced_and_not_written_into(self):
        self.target.mkdir(parents=True)
        (self.target / NAME).write_bytes(b"by hand")
        with open(self.target / NAME, "rb") as before:
            self.install(TAP)
            self.assertEqual(before.read(), b"by hand")
        self.assertEqual((self.target / NAME).read_bytes(), self.old)

    def test_a_damaged_file_of_the_right_name_is_replaced(self):
        self.install(TAP)
        file = self.target / os.readlink(self.target / NAME)
        file.write_bytes(self.old[:100])
        self.install(TAP)
        self.assertEqual((self.target / NAME).read_bytes(), self.old)

    def test_many_at_once_and_a_reader_always_finds_a_whole_one(self):
        self.install(self.taps[0])
        whole = {tap.read_bytes() for tap in self.taps}
        ended, seen, wrong = threading.Event(), set(), []

        def read():
            while not ended.is_set():
                found = (self.target / NAME).read_bytes()
                seen.add(found)
                if found not in whole:
                    wrong.append(len(found))
        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(5):
                started = [subprocess.Popen([PROGRAM, "--from", tap, self.target], stdout=subprocess.DEVNULL)
                           for tap in (*self.taps, *self.taps)]
                self.assertEqual([process.wait() for process in started], [0] * 8)
        finally:
            ended.set()
            reader.join()
        self.assertEqual(wrong, [])
        self.assertTrue(seen)
        self.assertEqual(len(self.libraries()), 2)
        self.assertEqual(list(self.target.glob(".installing*")), [], "nothing half done stays")

    def test_refusals_name_what_is_wrong(self):
        self.assertIn("--from FILE", self.install(self.top / "nothing.so", 1).stderr)
        self.target.parent.mkdir()
        self.target.write_text("a file")
        self.assertIn("cannot create", self.install(TAP, 1).stderr)
        for arguments in ([], ["--from"], ["--unknown"], ["a", "b"]):
            done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("usage:", done.stderr)


if __name__ == "__main__":
    suite.main()
