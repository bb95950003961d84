# SPDX-License-Identifier: Apache-2.0
"""The images: built by buildah from a base of Debian's packages, and run with a root file system that is read-only.

There is no engine here: programs run as the image's user in the image's files, under chroot, without the isolation that
an engine adds.
"""
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import suite
from fleet import FleetError, Process, wait_until
from package_root import PACKAGES, ROOT, container_base

TARGETS = {"agent": "neurontrace-agent", "aggregator": "neurontrace-aggregator", "cli": "neurontrace"}
LABELS = {"version": "1.2.3", "revision": "0123456789abcdef", "source": "https://neurontrace.example/source"}
BUILD_SECONDS_MAX = 240
# As an engine with --read-only: the image's files read-only, its volumes and /tmp not, its user and no capability.
READ_ONLY = """set -e
image=$1 user=$2 volumes=$3 writable=$4; shift 4
mount --make-rprivate /
mount --bind "$image" "$image"
mount -o remount,bind,ro "$image"
mount -t proc none "$image/proc"
mount --bind /dev/null "$image/dev/null" 2>/dev/null || mount --rbind /dev "$image/dev"
for place in $writable; do mount --bind "$volumes$place" "$image$place"; done
exec chroot "$image" setpriv --reuid="$user" --regid="$user" --clear-groups --reset-env --bounding-set=-all --inh-caps=-all \
  --no-new-privs "$@" """


class ContainerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        storage, driver, base, _ = container_base()
        scratch = tempfile.TemporaryDirectory(prefix="nt-images-")
        cls.addClassCleanup(scratch.cleanup)
        cls.top = Path(scratch.name)
        cls.buildah = ["buildah", "--root", storage, "--runroot", str(cls.top / "run"), "--storage-driver", driver]
        cls.tag = f"localhost/neurontrace-test-{os.getpid()}"
        # Only what the image needs: the packages that are there already, as build/packages of a clone may have them.
        context = cls.top / "context"
        shutil.copytree(ROOT / "deploy/container", context / "deploy/container")
        shutil.copytree(PACKAGES, context / "build/packages", ignore=shutil.ignore_patterns("*.tar.gz"))
        cls.addClassCleanup(cls.remove_images)
        cls.arguments = ["--build-arg", f"BASE={base}"]
        cls.arguments += [f"--build-arg={name.upper()}={value}" for name, value in LABELS.items()]
        # They mostly wait for packages. Nothing is kept between them: this buildah mounts nothing from a kept stage.
        with concurrent.futures.ThreadPoolExecutor() as pool:
            cls.images = dict(zip(TARGETS, pool.map(cls.build, TARGETS)))

    @classmethod
    def build(cls, target):
        context, image = cls.top / "context", f"{cls.tag}-{target}"
        done = subprocess.run(
            [*cls.buildah, "build", "--isolation", "chroot", "--no-cache", "--file",
             context / "deploy/container/Containerfile", *cls.arguments, "--target", target, "--tag", image, context],
            capture_output=True, text=True, check=False, timeout=BUILD_SECONDS_MAX)
        if done.returncode != 0:
            raise AssertionError(f"{target}: {done.stdout[-6000:]}{done.stderr[-3000:]}")
        return image

    @classmethod
    def run_buildah(cls, *arguments, check=True):
        done = subprocess.run([*cls.buildah, *arguments], capture_output=True, text=True, check=False)
        if check and done.returncode != 0:
            raise AssertionError(f"buildah {arguments}: {done.stderr}")
        return done.stdout.strip()

    @classmethod
    def remove_images(cls):
        """All but the base, also the layers in between."""
        for line in cls.run_buildah("images", "--all", "--format", "{{.ID}} {{.Name}}", check=False).splitlines():
            image, _, name = line.partition(" ")
            if not name.endswith("/neurontrace-base"):
                cls.run_buildah("rmi", "--force", image, check=False)

    def inspect(self, target):
        return json.loads(self.run_buildah("inspect", "--type", "image", self.images[target]))["OCIv1"]

    def mounted(self, target):
        """The image's files in a folder of this machine, and a folder for what it may write."""
        container = self.run_buildah("from", self.images[target])
        self.addCleanup(self.run_buildah, "rm", container)
        place = self.run_buildah("mount", container)
        self.addCleanup(self.run_buildah, "umount", container)
        return Path(place)

    def command(self, target, *command, writable=()):
        place = self.mounted(target)
        user = self.inspect(target)["config"].get("User", "0:0").split(":")[0] or "0"
        volumes = Path(tempfile.mkdtemp(prefix="volumes-", dir=self.top))
        for name in writable:
            folder = volumes / name.removeprefix("/")
            folder.mkdir(parents=True)
            os.chown(folder, int(user), int(user))
        return ["unshare", "--mount", "bash", "-c", READ_ONLY, "bash", str(place), user, str(volumes),
                " ".join(writable), *command]

    def test_labels_users_and_entry_points(self):
        for target, program in TARGETS.items():
            image = self.inspect(target)
            labels = image["config"]["Labels"]
            for name, value in LABELS.items():
                self.assertEqual(labels[f"org.opencontainers.image.{name}"], value)
            self.assertEqual(labels["org.opencontainers.image.licenses"], "Apache-2.0")
            self.assertEqual(labels["org.opencontainers.image.title"], program)
            self.assertEqual(image["config"]["Entrypoint"], [f"/usr/bin/{program}"])
            self.assertEqual(image["config"].get("User", ""), "" if target == "agent" else "65532:65532")

    def test_programs_run_read_only_as_their_users(self):
        for target, program in TARGETS.items():
            done = subprocess.run(self.command(target, f"/usr/bin/{program}", "--version"), capture_output=True, text=True,
                                  check=False)
            self.assertRegex(done.stdout, rf"^{program} \d", done.stderr)
            refused = subprocess.run(self.command(target, "/usr/bin/touch", "/usr/bin/new"), capture_output=True, text=True,
                                     check=False)
            self.assertIn("Read-only file system", refused.stderr)

    def test_hold_no_more_than_they_need(self):
        for target in TARGETS:
            place = self.mounted(target)
            names = subprocess.run(["dpkg-query", f"--admindir={place}/var/lib/dpkg", "-W", "-f", "${Package}\n"],
                                   capture_output=True, text=True, check=True).stdout.split()
            self.assertEqual([name for name in names if re.search(r"-dev$|^g\+\+|^cmake|^git$", name)], [])
            self.assertEqual(list((place / "var/lib/apt/lists").glob("*Packages*")), [])
            self.assertFalse((place / "packages").exists() and list((place / "packages").iterdir()))
            self.assertFalse((place / "source").exists())

    def test_an_init_container_puts_the_tap_onto_the_host(self):
        command = self.command("agent", "/usr/bin/neurontrace-install-tap", "/srv", writable=("/srv",))
        subprocess.run(command, check=True, capture_output=True)
        link, = self.top.glob("volumes-*/srv/libneurontrace_tap.so")
        loaded = subprocess.run(["/bin/true"], env={"LD_PRELOAD": str(link)}, capture_output=True, text=True, check=True)
        self.assertEqual(loaded.stderr, "")
        self.assertTrue(link.with_name("libneurontrace_annotate.so").exists())

    def test_aggregator_agent_and_command_work_together(self):
        def start(name, command):
            process = Process(name, command, self.top)
            self.addCleanup(process.kill)
            return process

        aggregator = start("aggregator", self.command(
            "aggregator", "/usr/bin/neurontrace-aggregator", "--listen", "127.0.0.1:0", "--health-address", "127.0.0.1:0",
            writable=("/var/lib/neurontrace/aggregator",)))
        address = aggregator.wait_for_line("listening on ").split()[-1]
        agent = start("agent", self.command(
            "agent", "/usr/bin/neurontrace-agent", "--aggregator", address, "--instance-id", "i-0001", "--health-address",
            "127.0.0.1:0", "--no-host-samples", writable=("/run/neurontrace", "/var/lib/neurontrace")))
        status = self.command("cli", "/usr/bin/neurontrace", "--aggregator", address, "--output", "json", "status")

        def connected():
            done = subprocess.run(status, capture_output=True, text=True, check=False)
            printed.append(done.stdout + done.stderr)
            return done.returncode == 0 and re.search(r'"agents_connected": ?1\b', done.stdout)
        printed = []
        try:
            wait_until(connected, "the agent to be connected")
        except FleetError as error:
            self.fail(f"{error}\n{printed[-1]}\n{agent.log.read_text()}\n{aggregator.log.read_text()}")
        self.assertEqual((agent.stop(), aggregator.stop()), (0, 0))


if __name__ == "__main__":
    suite.main()
