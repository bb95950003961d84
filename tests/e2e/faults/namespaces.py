# SPDX-License-Identifier: Apache-2.0
"""Mounts and networks of a test's own: small disks, read-only disks and bad links that vanish with the test.

`enter` runs the test again in a new mount and network namespace. That takes root, or a kernel that allows user
namespaces; where neither is there the test ends with the code that CTest counts as skipped, and says so.
"""

import os
import subprocess
import sys
from pathlib import Path

from fleet import FleetError, Process
from in_namespaces import set_loopback_up
from suite import SKIPPED

MARK = "NT_FAULT_NAMESPACES"


def enter(devices=()):
    """Returns inside of the namespaces, or ends the test as skipped. `devices` must be there to open."""
    if MARK in os.environ:
        set_loopback_up()
        return
    command = ["unshare", "--mount", "--net"]
    if os.geteuid() != 0:
        command += ["--user", "--map-root-user"]
    able = subprocess.run([*command, "true"], capture_output=True, text=True, check=False)
    closed = [device for device in devices if not os.access(device, os.R_OK | os.W_OK)]
    if able.returncode != 0 or closed:
        why = f"cannot open {', '.join(closed)}" if closed else able.stderr.strip()
        print(f"SKIPPED: {Path(sys.argv[0]).name} needs mounts and networks of its own: run it as root ({why})")
        sys.exit(SKIPPED)
    os.execvpe("unshare", [*command, sys.executable, "-B", *sys.argv], {**os.environ, MARK: "1"})


def _mount(*arguments, command="mount"):
    done = subprocess.run([command, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FleetError(f"{command} {arguments}: {done.stderr.strip()}")


def bind(source, target):
    """Puts one file in the place of another, for this test alone."""
    _mount("--bind", source, target)


def unbind(target):
    _mount(target, command="umount")


class Disk:
    """A disk in memory of a given size, mounted at a directory of the test's."""

    def __init__(self, path, mebibytes):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        _mount("-t", "tmpfs", "-o", f"size={mebibytes}m,mode=755", "none", self.path)

    def close(self):
        """Before the directory is removed. What still uses it keeps it to its end."""
        _mount("--lazy", self.path, command="umount")

    def set_read_only(self, read_only):
        """Fails while somebody has a file open for writing, as it does on any disk."""
        _mount("-o", f"remount,{'ro' if read_only else 'rw'}", self.path)

    def free_bytes(self):
        found = os.statvfs(self.path)
        return found.f_bavail * found.f_bsize

    def fill(self, leave_bytes=0):
        """Takes the room away; `unfill` gives it back."""
        left = self.free_bytes() - leave_bytes
        if left > 0:
            with open(self.path / "ballast", "ab") as file:
                os.posix_fallocate(file.fileno(), file.tell(), left)

    def unfill(self):
        (self.path / "ballast").unlink(missing_ok=True)


class Link:
    """A network namespace behind a bad link (bad_link.cc); `prefix` runs a command in it."""

    def __init__(self, fleet, number, seed):
        self.near = f"10.77.{number}.1"
        self._process = Process(f"link-{number}", [fleet.build / "tests" / "bad_link", number, seed], fleet.logs,
                                stdin=subprocess.PIPE)
        pid = self._process.wait_for_line("link ").split()[1]
        self.prefix = ("nsenter", f"--net=/proc/{pid}/ns/net")

    def set(self, **settings):
        """loss, duplicate (shares of one), delay_us, near_us (more on the way to the near end), jitter_us, cut (0 or
        1)."""
        for name, value in settings.items():
            self._process.popen.stdin.write(f"{name} {value}\n")
        self._process.popen.stdin.flush()

    def cut(self):
        self.set(cut=1)

    def heal(self):
        self.set(cut=0)

    def repair(self):
        """A good link again."""
        self.set(cut=0, loss=0, duplicate=0, delay_us=0, near_us=0, jitter_us=0)

    def close(self):
        self._process.popen.stdin.close()
        self._process.wait()
