# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: what is in them, what they depend on, and that an upgrade keeps what is the user's."""
import os
import re
import tempfile
import unittest
from pathlib import Path

import suite
from package_root import FORMER, PACKAGES, ROOT, PackageRoot, container_base, deb, run

PROGRAMS = {"neurontrace": "neurontrace", "neurontrace-agent": "neurontrace-agent",
            "neurontrace-aggregator": "neurontrace-aggregator"}
FILES = {
    "neurontrace": {"usr/bin/neurontrace", "usr/share/man/man1/neurontrace.1",
                    "usr/bin/neurontrace-simulate", "usr/share/man/man1/neurontrace-simulate.1",
                    "usr/share/bash-completion/completions/neurontrace", "usr/share/zsh/site-functions/_neurontrace",
                    "usr/share/fish/vendor_completions.d/neurontrace.fish", "usr/share/doc/neurontrace/copyright"},
    "neurontrace-agent": {"usr/bin/neurontrace-agent", "usr/share/man/man8/neurontrace-agent.8",
                          "usr/lib/tmpfiles.d/neurontrace-agent.conf", "usr/lib/sysusers.d/neurontrace-agent.conf",
                          "etc/neurontrace/agent.toml",
                          "usr/share/doc/neurontrace-agent/copyright"},
    "neurontrace-aggregator": {"usr/bin/neurontrace-aggregator", "usr/share/man/man8/neurontrace-aggregator.8",
                               "usr/lib/tmpfiles.d/neurontrace-aggregator.conf",
                               "usr/lib/sysusers.d/neurontrace-aggregator.conf", "etc/neurontrace/aggregator.toml",
                               "usr/share/doc/neurontrace-aggregator/copyright"},
    "neurontrace-tap": {"usr/lib/libneurontrace_tap.so", "usr/lib/libneurontrace_annotate.so",
                        "usr/bin/neurontrace-install-tap", "usr/share/doc/neurontrace-tap/copyright"},
}


def field(package, name):
    return run("dpkg-deb", "--field", deb(package), name).strip()


class DebTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.top = Path(scratch.name)

    def test_there_are_four_of_one_version(self):
        self.assertEqual({field(package, "Package") for package in FILES}, set(FILES))
        self.assertEqual(len(list(PACKAGES.glob("*.deb"))), len(FILES))
        version, = {field(package, "Version") for package in FILES}
        self.assertRegex(version, r"^\d+\.\d+\.\d+-\d+$")

    def test_hold_what_they_should_as_root_and_writable_to_nobody_else(self):
        for package, files in FILES.items():
            found = set()
            for line in run("dpkg-deb", "--contents", deb(package)).splitlines():
                mode, owner, *_, name = line.split()
                self.assertEqual(owner, "root/root", line)
                self.assertNotIn("w", mode[5] + mode[8], line)
                if mode[0] == "-":
                    found.add(name.removeprefix("./"))
            units = {name for name in found if name.endswith(f"/{package}.service")}
            libraries = {name for name in found if re.match(r"usr/lib/neurontrace/lib(arrow|parquet)\.so", name)}
            self.assertEqual(found - units - libraries, files)
            self.assertTrue(not libraries or package == "neurontrace-aggregator", libraries)
            unit = ROOT / f"deploy/parallelcluster/{package}.service"
            self.assertEqual(len(units), int(unit.exists()))

    def test_depend_on_what_they_load_and_on_nothing_else(self):
        self.assertRegex(field("neurontrace-tap", "Depends"), r"^libc6 \(>= 2\.\d+\)$")
        needed = re.search(r"2\.(\d+)", field("neurontrace-tap", "Depends"))
        self.assertLessEqual(int(needed[1]), 34)
        for package in PROGRAMS:
            names = {entry.split()[0] for entry in field(package, "Depends").split(", ")}
            self.assertLessEqual({"libgrpc++1.51", "libprotobuf32", "libc6"}, names)
            self.assertEqual("libcurl4" in names, package == "neurontrace-aggregator")
            self.assertEqual([name for name in names if name.endswith("-dev")], [])

    def test_programs_describe_themselves(self):
        for package in FILES:
            first, *rest = field(package, "Description").splitlines()
            self.assertTrue(0 < len(first) <= 80, first)
            self.assertTrue(rest, package)

    def test_programs_run_where_they_are_unpacked(self):
        for package in FILES:
            run("dpkg-deb", "-x", deb(package), self.top)
        for program in PROGRAMS.values():
            path = self.top / "usr/bin" / program
            self.assertRegex(run(path, "--version"), rf"^{program} \d+\.\d+\.\d+ \(commit ")
            self.assertIn("Examples:", run(path, "--help"))
            for line in run("readelf", "-d", path).splitlines():
                if "RUNPATH" in line or "RPATH" in line:
                    self.assertIn("[$ORIGIN/../lib/neurontrace]", line)
        for line in run("ldd", self.top / "usr/bin/neurontrace-aggregator").splitlines():
            self.assertNotIn("not found", line)
            if "libarrow" in line or "libparquet" in line:
                self.assertIn(str(self.top), os.path.realpath(line.split()[2]))

    def test_man_pages_are_of_this_version(self):
        run("dpkg-deb", "-x", deb("neurontrace-agent"), self.top)
        page = (self.top / "usr/share/man/man8/neurontrace-agent.8").read_text()
        version = field("neurontrace-agent", "Version").split("-")[0]
        self.assertIn(f'"neurontrace {version}"', page.splitlines()[0])


class UpgradeOfPackagesTest(unittest.TestCase):
    """Real dpkg in a root of its own, from a version that says that it is older to this one."""

    @classmethod
    def setUpClass(cls):
        cls.base = container_base()[3]

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.packages = PackageRoot(self.base, Path(scratch.name))
        self.root = self.packages.root

    def test_options_and_recordings_stay(self):
        packages = ("neurontrace-tap", "neurontrace-agent", "neurontrace-aggregator")
        self.packages.install_former(*packages)
        agent, aggregator = (self.root / "etc/neurontrace" / name for name in ("agent.toml", "aggregator.toml"))
        agent.write_text('aggregator = "aggregator.example:9400"\n')
        self.assertTrue(aggregator.read_text().startswith("# as it was"))
        state = self.root / "var/lib/neurontrace"
        users = dict(line.split(":", 3)[0:3:2] for line in (self.root / "etc/passwd").read_text().splitlines())
        user = int(users["neurontrace"])
        for place, mode, owner in (("spool", 0o700, user), ("aggregator", 0o750, user)):
            found = (state / place).stat()
            self.assertEqual((found.st_mode & 0o7777, found.st_uid), (mode, owner), place)
            (state / place / "recorded").write_text("kept")

        self.packages.install(*packages)
        self.assertEqual(agent.read_text(), 'aggregator = "aggregator.example:9400"\n')
        self.assertFalse(aggregator.read_text().startswith("# as it was"), "what nobody changed follows the package")
        for place in ("spool", "aggregator"):
            self.assertEqual((state / place / "recorded").read_text(), "kept")
        listed = run("dpkg-query", f"--admindir={self.root}/var/lib/dpkg", "-W", "-f", "${Version} ${Status}\n", *packages)
        self.assertEqual({line.split(" ", 1)[1] for line in listed.splitlines()}, {"install ok installed"})
        self.assertNotIn(FORMER, listed)
        done = run("chroot", self.root, "/usr/bin/neurontrace-install-tap", "/srv/tap")
        self.assertIn("libneurontrace_tap.so", done)

        # As `systemctl enable` makes them.
        wants = self.root / "etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True, exist_ok=True)
        for unit in ("neurontrace-agent", "neurontrace-aggregator", "neurontrace-slurm"):
            (wants / f"{unit}.service").symlink_to(f"/lib/systemd/system/{unit}.service")
        self.packages.dpkg("--purge", *packages)
        self.assertEqual([path.name for path in wants.glob("neurontrace-*")], ["neurontrace-slurm.service"],
                         "the links of what is gone, and of nothing else")
        self.assertFalse(agent.exists() or aggregator.exists())
        self.assertEqual((state / "spool/recorded").read_text(), "kept", "recordings are the user's")


if __name__ == "__main__":
    suite.main()
