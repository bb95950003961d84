# SPDX-License-Identifier: Apache-2.0
"""A share of a processor for some processes, as a container with a limit has it: a control group with a quota, below
or beside the group of the test itself. Takes root, and version 1 or 2 of control groups with the controller `cpu`."""

import os
from pathlib import Path


class NoProcessorShare(Exception):
    """This machine does not let the test make such a group; the message has the reason."""


def _own_group():
    """The group of this process that has the controller `cpu`, where a new one may be made, and if it is version 2."""
    paths = {}
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        paths.update({name: path for name in controllers.split(",")})
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        place, kind = (part.split() for part in line.split(" - ", 1))
        is_version_2 = kind[0] == "cgroup2"
        name = "" if is_version_2 else "cpu"
        if name not in paths or not (is_version_2 or (kind[0] == "cgroup" and "cpu" in kind[2].split(","))):
            continue
        # What is mounted may be a part of the hierarchy, as in a container.
        root, mounted = place[3], Path(place[4])
        group = mounted / os.path.relpath(paths[name], root)
        if not is_version_2:
            return group, group, False
        # Only groups without processes of their own, and the first one, hand the controller to those below them.
        for parent in (group, group.parent):
            control = parent / "cgroup.subtree_control"
            if parent.is_relative_to(mounted) and control.exists() and "cpu" in control.read_text().split():
                return group, parent, True
    raise NoProcessorShare("no control group here hands the controller cpu to groups below it")


class ProcessorShare:
    """`quota_us` of each `period_us` for all processes that are added, together."""

    def __init__(self, quota_us, period_us):
        try:
            self._own, parent, is_version_2 = _own_group()
            self.path = parent / f"neurontrace-test-{os.getpid()}-{id(self):x}"
            self.path.mkdir()
        except OSError as error:
            raise NoProcessorShare(f"cannot make a control group: {error}") from error
        try:
            if is_version_2:
                (self.path / "cpu.max").write_text(f"{quota_us} {period_us}")
            else:
                (self.path / "cpu.cfs_period_us").write_text(str(period_us))
                (self.path / "cpu.cfs_quota_us").write_text(str(quota_us))
        except OSError as error:
            self.path.rmdir()
            raise NoProcessorShare(f"cannot set the quota of a control group: {error}") from error

    def add(self, pid):
        (self.path / "cgroup.procs").write_text(str(pid))

    def throttled(self):
        """How often the quota was used up."""
        lines = (self.path / "cpu.stat").read_text().splitlines()
        return int(dict(line.split() for line in lines)["nr_throttled"])

    def close(self):
        """Its processes have no quota from then on."""
        for pid in (self.path / "cgroup.procs").read_text().split():
            (self._own / "cgroup.procs").write_text(pid)
        self.path.rmdir()
