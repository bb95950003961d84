#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command in process, mount, IPC and network namespaces of its own, so that fleets can run beside each other.

usage: in_namespaces.py [--host-network] COMMAND...

An agent sees every worker of its process namespace. The command has its own /proc and /dev/shm and, unless it keeps the
host's network, a loopback interface only. Exits with the command's code; whatever the command leaves running is killed.
Without root it takes a kernel that allows user namespaces, and the command keeps its user and has no capabilities.
"""

import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys

MARK = "NT_IN_NAMESPACES"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def set_loopback_up():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(sock, SIOCGIFFLAGS, request))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def run_as_init(command):
    """Runs the command as the first process of its namespace: reaps orphans until it ends, returns its exit code."""
    child = subprocess.Popen(command)  # pylint: disable=consider-using-with
    # An interrupt reaches the command too, and its end ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: child.send_signal(signal.SIGTERM))
    while True:
        pid, status = os.wait()
        if pid == child.pid:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def main():
    host_network = sys.argv[1:2] == ["--host-network"]
    command = sys.argv[2 if host_network else 1:]
    if not command:
        sys.exit(__doc__)
    if MARK not in os.environ:
        unshare = ["unshare", "--pid", "--mount", "--ipc", "--fork", "--kill-child", "--mount-proc"]
        if not host_network:
            unshare.append("--net")
        if os.geteuid() != 0:
            unshare += ["--user", "--map-current-user", "--keep-caps"]
        os.execvpe("unshare", [*unshare, sys.executable, "-B", *sys.argv], {**os.environ, MARK: "1"})
    del os.environ[MARK]
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"], check=True)
    if not host_network:
        set_loopback_up()
    if os.geteuid() != 0:
        command = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--", *command]
    sys.exit(run_as_init(command))


if __name__ == "__main__":
    main()
