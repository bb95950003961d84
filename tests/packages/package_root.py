# SPDX-License-Identifier: Apache-2.0
"""A root directory of its own with a real dpkg, into which the packages that were made are installed."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import suite

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(os.environ["NT_PACKAGES_DIR"])
FORMER = "0.0.9"


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def deb(package):
    found, = PACKAGES.glob(f"{package}_*.deb")
    return found


def container_base():
    """What scripts/setup_container_base has built, in its words: the last is the archive of a Debian 12 of minimal size. A test
    is skipped without."""
    built, why = suite.built_by("setup_container_base")
    if not built:
        suite.skip_without_setup(why)
    return built.split()


class PackageRoot:
    """In `folder`, which is the caller's and is to be empty."""

    def __init__(self, base, folder):
        self.root = folder / "root"
        self.root.mkdir()
        run("tar", "-C", self.root, "--exclude=./dev/*", "-xf", base)

    def dpkg(self, *arguments):
        """As an unattended upgrade calls it. What the programs link is in no root of this size: they are not run in it."""
        return run("dpkg", f"--root={self.root}", "--force-confdef", "--force-confold", "--force-depends", *arguments,
                   env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, stdin=subprocess.DEVNULL)

    def _former(self, package):
        """The package as version FORMER had it, with other words in its file of options."""
        folder = self.root.parent / package
        run("dpkg-deb", "-R", deb(package), folder)
        control = folder / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^Version: .*", f"Version: {FORMER}-1", control.read_text()))
        for options in folder.glob("etc/neurontrace/*.toml"):
            options.write_text("# as it was\n" + options.read_text())
        made = self.root.parent / f"{package}_{FORMER}-1.deb"
        run("dpkg-deb", "-Znone", "-b", folder, made)
        shutil.rmtree(folder)
        return made

    def install_former(self, *packages):
        self.dpkg("--install", *[self._former(package) for package in packages])

    def install(self, *packages):
        self.dpkg("--install", *[deb(package) for package in packages])
