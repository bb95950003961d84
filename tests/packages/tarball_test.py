# SPDX-License-Identifier: Apache-2.0
"""The relocatable archive: its programs work where there is nothing else, not even a C library.

Where root may make a root directory of its own, they run in one that holds the archive, /proc and /dev/null: a library
that was left out is then not found by luck.
"""
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from fleet import Process, wait_until

BUILD = Path(os.environ["NT_BUILD_DIR"])
PACKAGES = Path(os.environ["NT_PACKAGES_DIR"])
PROGRAMS = ("neurontrace", "neurontrace-agent", "neurontrace-aggregator")
TAP_GLIBC_MAX = (2, 17)  # every distribution's that containers run
KERNEL_MAX = (5, 10)  # the oldest that instances run
# Of an archive at /opt/neurontrace, in a mount namespace that ends with the shell.
EMPTY_ROOT = """set -e
root=$1; shift
mount --make-rprivate /
mount -t proc none "$root/proc"
touch "$root/dev/null" && mount --bind /dev/null "$root/dev/null"
exec chroot "$root" "$@" """


def glibc_of(path):
    """The highest version of the C library whose symbols an ELF file asks for, or None."""
    text = subprocess.run(["readelf", "-W", "--version-info", path], capture_output=True, text=True, check=True).stdout
    needs = text.split("Version needs section", 1)
    found = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", needs[1]) if len(needs) > 1 else []
    return max(((int(a), int(b)) for a, b in found), default=None)


class TarballTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory(prefix="neurontrace-tarball-")
        cls.addClassCleanup(scratch.cleanup)
        cls.root = Path(scratch.name)
        archive, = PACKAGES.glob("neurontrace-*-linux-*.tar.gz")
        cls.top = cls.root / "opt/neurontrace"
        for folder in (cls.top, cls.root / "proc", cls.root / "dev", cls.root / "tmp"):
            folder.mkdir(parents=True)
        subprocess.run(["tar", "-C", cls.top, "--strip-components=1", "-xf", archive], check=True)

    def elf_files(self):
        for path in sorted(self.top.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.read_bytes()[:4] == b"\x7fELF":
                yield path

    def loaded(self, program, **environment):
        """The files that the loader takes for a program."""
        done = subprocess.run([self.top / "bin" / program, "--version"], capture_output=True, text=True, check=True,
                              env={"LD_DEBUG": "files", **environment})
        return set(re.findall(r"calling init: (\S+)", done.stderr))

    def test_every_library_comes_from_the_archive(self):
        for program in PROGRAMS:
            loaded = self.loaded(program)
            self.assertTrue(any("libc.so.6" in path for path in loaded), loaded)
            self.assertTrue(any("libgrpc++" in path for path in loaded), loaded)
            self.assertEqual([path for path in loaded if not path.startswith(f"{self.top}/")], [])

    def test_libraries_of_others_that_jobs_point_to_are_not_taken(self):
        with tempfile.TemporaryDirectory() as other:
            Path(other, "libgrpc++.so.1.51").write_bytes(b"not a library")
            self.loaded("neurontrace", LD_LIBRARY_PATH=other)

    def test_nodes_of_parallelcluster_install_themselves_from_it(self):
        """on_node_configured.sh takes its files from the archive and from nowhere else."""
        source = Path(__file__).resolve().parents[2] / "deploy" / "parallelcluster"
        copy = self.top / "share" / "neurontrace" / "parallelcluster"
        names = sorted(path.relative_to(source) for path in source.rglob("*")
                       if path.is_file() and path.parent.name != "__pycache__")
        self.assertEqual(sorted(path.relative_to(copy) for path in copy.rglob("*") if path.is_file()), names)
        for name in names:
            self.assertEqual((copy / name).read_bytes(), (source / name).read_bytes())
            is_program = (source / name).read_bytes().startswith(b"#!")
            self.assertEqual((copy / name).stat().st_mode & 0o777, 0o755 if is_program else 0o644, name)

    def test_nothing_escapes_root(self):
        for path in self.elf_files():
            text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
            for found in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", text):
                self.assertTrue(found.startswith("$ORIGIN"), f"{path}: {found}")
        for path in self.top.rglob("*"):
            self.assertFalse(path.is_symlink(), path)

    def test_libraries_of_workers_need_an_old_c_library_and_nothing_else(self):
        for name in ("libneurontrace_tap.so", "libneurontrace_annotate.so"):
            library = self.top / "lib" / name
            self.assertLessEqual(glibc_of(library), TAP_GLIBC_MAX, name)
            text = subprocess.run(["readelf", "-dW", library], capture_output=True, text=True, check=True).stdout
            # The loader is the C library's own.
            needed = [found for found in re.findall(r"\(NEEDED\).*\[(.*)\]", text) if not found.startswith("ld-linux")]
            self.assertEqual(needed, ["libc.so.6"], name)

    def test_nothing_asks_for_more_than_the_c_library_that_is_in_it(self):
        inside = subprocess.run([self.top / "libexec/neurontrace", "--version"], capture_output=True, text=True,
                                check=True).stdout
        version = tuple(int(part) for part in re.search(r"version (\d+)\.(\d+)", inside).groups())
        rows = []
        for path in self.elf_files():
            needed = glibc_of(path)
            rows.append(f"{'.'.join(map(str, needed)) if needed else '-':6} {path.relative_to(self.top)}")
            self.assertLessEqual(needed or (0, 0), version, path)
        print("\n".join(sorted(rows, reverse=True)))  # with --verbose of ctest; docs/operator/packages.md has the summary

    def test_old_kernels_are_enough(self):
        text = subprocess.run(["readelf", "-nW", self.top / "lib/neurontrace/libc.so.6"], capture_output=True, text=True,
                              check=True).stdout
        oldest = re.search(r"OS: Linux, ABI: (\d+)\.(\d+)", text)
        self.assertLessEqual((int(oldest[1]), int(oldest[2])), KERNEL_MAX)

    def test_licences_of_all_that_is_in_it_are_in_it(self):
        documents = self.top / "share/doc/neurontrace"
        self.assertTrue((documents / "sbom.spdx.json").exists())
        for name in ("libc6", "libstdc++6", "librocksdb-dev"):
            self.assertTrue(list((documents / "licences" / name).iterdir()), name)

    def test_records_on_this_machine_from_any_place(self):
        """`neurontrace record` finds agent, aggregator and tap beside itself, also through a link."""
        link = self.root / "tmp/a link to neurontrace"
        link.symlink_to(self.top / "bin/neurontrace")
        output = self.root / "tmp/trace.pftrace"
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("NEURONTRACE", "LD_"))}
        done = subprocess.run([link, "record", "-o", output, "--", BUILD / "tests/fake_nrt/sim_worker", "--cores", "1",
                               "--duration", "1"], capture_output=True, text=True, check=False, timeout=120,
                              env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(output.stat().st_size, 1000)

    @unittest.skipIf(os.geteuid() != 0, "only root has a root directory of its own")
    def test_serves_in_a_root_with_nothing_else(self):
        def inside(*command):
            return ["unshare", "--mount", "bash", "-c", EMPTY_ROOT, "bash", self.root, *command]

        def start(name, *options):
            process = Process(name, inside(f"/opt/neurontrace/bin/{name}", *options), self.root / "tmp",
                              env={"LD_PRELOAD": ""})
            self.addCleanup(process.kill)
            return process

        for program in PROGRAMS:
            done = subprocess.run(inside(f"/opt/neurontrace/bin/{program}", "--version"), capture_output=True, text=True,
                                  check=False)
            self.assertRegex(done.stdout, rf"^{program} \d", done.stderr)
        aggregator = start("neurontrace-aggregator", "--listen", "127.0.0.1:0", "--store", "/tmp/store", "--health-address",
                           "127.0.0.1:0")
        address = aggregator.wait_for_line("listening on ").split()[-1]
        agent = start("neurontrace-agent", "--aggregator", address, "--socket", "/tmp/agent.sock", "--spool", "/tmp/spool",
                      "--health-address", "127.0.0.1:0", "--instance-id", "i-0001", "--no-host-samples")
        status = inside("/opt/neurontrace/bin/neurontrace", "--aggregator", address, "--output", "json", "status")

        def connected():
            done = subprocess.run(status, capture_output=True, text=True, check=False)
            return done.returncode == 0 and re.search(r'"agents_connected": ?1\b', done.stdout)
        wait_until(connected, "the agent to be connected")
        self.assertEqual((agent.stop(), aggregator.stop()), (0, 0))


if __name__ == "__main__":
    suite.main()
