# SPDX-License-Identifier: Apache-2.0
"""What ParallelCluster's nodes run when they start, in directories that stand for their disks: twice the same, whatever
the node is, with certificates that openssl accepts for what they are for and for nothing else."""

import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import tomllib
import unittest
from pathlib import Path

import suite
from fleet import wait_until

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "parallelcluster"
BUILD = Path(os.environ["NT_BUILD_DIR"])
# What `systemd-analyze security` says, as README.md has it; less is better.
EXPOSURE_MAX = {"neurontrace-agent": 2.9, "neurontrace-aggregator": 1.6, "neurontrace-slurm": 1.5,
                "neurontrace-certificates": 1.7}
ADDRESS = "10.0.7.5"
# Of a package that stands for one: it takes every option but "wrong".
PROGRAM = """#!/bin/bash
# {mark}
[[ "$1 $3" == "--config --validate-config" ]] || exit 1
! grep -n "^wrong" "$2" >&2 || exit 2
"""


def missing(*programs):
    return [name for name in programs if shutil.which(name) is None]


class Units(unittest.TestCase):
    @suite.needs_of_setup(missing("systemd-analyze"), "no systemd-analyze here: ./scripts/setup installs it")
    def test_unit_hardening_matches_readme(self):
        readme = (FOLDER / "README.md").read_text()
        units = sorted(path.stem for path in FOLDER.glob("*.service"))
        self.assertEqual(units, sorted(EXPOSURE_MAX))
        for name in units:
            done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                                   FOLDER / f"{name}.service"], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
            self.assertIsNotNone(found, done.stdout)
            self.assertLessEqual(float(found[1]), EXPOSURE_MAX[name], done.stdout)
            self.assertIn(f"| `{name}.service` | {EXPOSURE_MAX[name]} |", readme)

    @suite.needs_of_setup(missing("systemd-analyze"), "no systemd-analyze here: ./scripts/setup installs it")
    def test_units_are_understood_by_systemd(self):
        with tempfile.TemporaryDirectory() as directory:
            for path in [*FOLDER.glob("*.service"), *FOLDER.glob("*.timer")]:
                # The programs are not installed here.
                text = re.sub(r"^(Exec\w+)=\S+", r"\1=/bin/true", path.read_text(), flags=re.M)
                text = re.sub(r"^EnvironmentFile=\S+\n", "", text, flags=re.M)
                (Path(directory) / path.name).write_text(text)
            drop_in = Path(directory) / "neurontrace-agent.service.d" / "framework_on_demand.conf"
            drop_in.parent.mkdir()
            shutil.copy(FOLDER / drop_in.name, drop_in)
            for path in sorted(file for file in Path(directory).iterdir() if file.is_file()):
                done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True,
                                      check=False, env={**os.environ, "SYSTEMD_UNIT_PATH": f"{directory}:"})
                printed = [line for line in done.stderr.splitlines() if "neurontrace" in line]
                self.assertEqual(printed, [])


    @unittest.skipIf(os.geteuid() != 0 or missing("setpriv"), "without root or setpriv")
    def test_agent_can_read_job_variables_of_other_users(self):
        unit = (FOLDER / "neurontrace-agent.service").read_text()
        capabilities = re.search(r"^AmbientCapabilities=(.*)$", unit, flags=re.M)[1].split()
        self.assertEqual(capabilities, re.search(r"^CapabilityBoundingSet=(.*)$", unit, flags=re.M)[1].split())
        added = ",".join("+" + name.removeprefix("CAP_").lower() for name in capabilities)
        worker = subprocess.Popen(["setpriv", "--reuid=65534", "--clear-groups", "sleep", "600"],
                                  env={**os.environ, "SLURM_JOB_ID": "4711"})
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        wait_until(lambda: Path(f"/proc/{worker.pid}/comm").read_text() == "sleep\n", "the worker to be another user's")
        as_agent = ["setpriv", "--reuid=64999", "--regid=64999", "--clear-groups", f"--inh-caps={added}",
                    f"--ambient-caps={added}", f"--bounding-set=-all,{added}", "--no-new-privs"]
        for words, found in ((["cat", "environ"], "SLURM_JOB_ID=4711"), (["ls", "fd"], "0\n"),
                             (["cat", "maps"], "sleep")):
            done = subprocess.run([*as_agent, words[0], f"/proc/{worker.pid}/{words[1]}"], capture_output=True,
                                  text=True, check=False)
            self.assertIn(found, done.stdout, words + [done.stderr])


class Scripts(unittest.TestCase):
    @suite.needs_of_setup(missing("shellcheck"), "no shellcheck here: ./scripts/setup installs it")
    def test_shellcheck_finds_nothing(self):
        scripts = sorted(FOLDER.rglob("*.sh"))
        self.assertGreaterEqual(len(scripts), 4)
        done = subprocess.run(["shellcheck", *scripts], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_setup_installs_what_these_tests_are_skipped_without(self):
        done = subprocess.run([FOLDER.parents[1] / "scripts" / "setup", "--list"], capture_output=True, text=True,
                              check=True)
        self.assertLessEqual({"systemd", "shellcheck", "openssl"}, set(done.stdout.split()))

    def test_every_option_of_the_files_is_one_of_the_programs(self):
        for program in ("agent", "aggregator"):
            usage = subprocess.run([BUILD / "bin" / f"neurontrace-{program}", "--help"], capture_output=True, text=True,
                                   check=True).stdout
            text = (FOLDER / f"{program}.toml").read_text()
            options = tomllib.loads(re.sub(r"^# (?=\[\[|[a-z-]+ = )", "", text, flags=re.M))
            self.assertGreater(len(options), 4)
            for option in options:
                if not option.startswith("tls-") or "--tls-ca" in usage:
                    self.assertIn(f"--{option}", usage)


@unittest.skipIf(os.geteuid() != 0, "only root gives files to other users")
@suite.needs_of_setup(missing("openssl", "useradd", "systemctl"), "without openssl, useradd or systemctl: ./scripts/setup")
class Nodes(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="nt-nodes-")
        self.addCleanup(directory.cleanup)
        self.dir = Path(directory.name)
        self.environment = {}
        self.package = self.dir / "neurontrace.tar.gz"
        self.make_package("first")
        self.head = self.make_node("head", "HeadNode")

    def make_package(self, mark):
        tree = self.dir / f"package-{mark}" / "neurontrace"
        for name in ("bin/neurontrace-agent", "bin/neurontrace-aggregator", "bin/neurontrace",
                     "lib/libneurontrace_tap.so"):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(PROGRAM.format(mark=mark))
            (tree / name).chmod(0o755)
        shutil.copytree(FOLDER, tree / "share" / "neurontrace" / "parallelcluster")
        with tarfile.open(self.package, "w:gz") as tar:
            tar.add(tree, "neurontrace")

    def make_node(self, name, node_type, address=ADDRESS):
        root = self.dir / name
        (root / "etc" / "parallelcluster").mkdir(parents=True)
        (root / "opt" / "slurm" / "etc").mkdir(parents=True)
        lines = ["stack_name=test", f"cfn_node_type={node_type}"]
        if address:
            lines.append(f"cfn_head_node_private_ip={address}")
        (root / "etc" / "parallelcluster" / "cfnconfig").write_text("\n".join(lines) + "\n")
        # As on trn1: the node's own line names an address of another network card.
        (root / "etc" / "hosts").write_text(f"169.254.1.1 {name}\n")
        (root / "etc" / "passwd").write_text("root:x:0:0:root:/root:/bin/bash\n")
        (root / "etc" / "group").write_text("root:x:0:\n")
        for shadow in ("shadow", "gshadow"):
            (root / "etc" / shadow).touch(0o600)
        return root

    def share(self, node):
        """What a compute node sees of the head node's disk over NFS."""
        shutil.rmtree(node / "opt" / "slurm")
        (node / "opt" / "slurm").symlink_to(self.head / "opt" / "slurm")

    def systemctl(self, fails_at=""):
        """A systemctl that writes down what it is told, and does not do one thing; returns what it was told."""
        self.reported = self.dir / "told"
        self.reported.write_text("")
        stub = self.dir / "systemctl"
        stub.write_text(f'#!/bin/bash\necho "$*" >>{self.reported}\n[[ "$*" != "{fails_at}" ]]\n')
        stub.chmod(0o755)
        self.environment["NT_SYSTEMCTL"] = str(stub)

    def orders(self):
        """What systemctl was told since this was last asked."""
        orders = self.reported.read_text().splitlines()
        self.reported.write_text("")
        return orders

    def configure(self, node, *arguments, code=0):
        done = subprocess.run(["bash", FOLDER / "on_node_configured.sh", *map(str, arguments)], capture_output=True,
                              text=True, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, "NT_ROOT": str(node), **self.environment})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def tree(self, node):
        """Every file with its mode, owner and contents, but what useradd writes for itself."""
        found = {}
        for path in sorted(node.rglob("*")):
            about = path.lstat()
            what = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            found[str(path.relative_to(node))] = (oct(about.st_mode), about.st_uid, about.st_gid, what)
        return found

    def openssl(self, *arguments):
        return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)

    def test_a_head_node_twice_is_the_same_and_keeps_what_people_wrote(self):
        self.assertIn("changed", self.configure(self.head, self.package))
        first = self.tree(self.head)
        self.assertIn("nothing changed", self.configure(self.head, self.package))
        self.assertEqual(self.tree(self.head), first)
        self.assertIn(f'listen = "{ADDRESS}:9400"', (self.head / "etc/neurontrace/aggregator.toml").read_text())
        self.assertNotIn("@", (self.head / "etc/neurontrace/slurm.env").read_text())
        wanted = self.head / "etc/systemd/system/multi-user.target.wants"
        self.assertEqual({path.name for path in wanted.iterdir()},
                         {"neurontrace-aggregator.service", "neurontrace-slurm.service"})
        prolog = self.head / "opt/slurm/etc/scripts/prolog.d/50_neurontrace"
        self.assertTrue((self.head / os.readlink(prolog).lstrip("/")).stat().st_mode & 0o111)

        kept = self.head / "opt/slurm/etc/neurontrace/agent.toml"
        kept.write_text(kept.read_text() + 'log-level = "debug"\n')
        (self.head / "opt/slurm/etc/neurontrace/task_prolog.sh").write_text("broken")
        self.assertIn("task_prolog.sh", self.configure(self.head, self.package))
        self.assertIn("debug", kept.read_text())

    def test_a_run_that_ends_half_way_leaves_the_restart_to_the_next(self):
        units = [f"neurontrace-{name}" for name in ("aggregator.service", "slurm.service", "certificates.timer")]
        restarts = [f"restart {unit}" for unit in units]

        def orders():
            return [order for order in self.orders() if "start" in order]
        self.systemctl()
        self.configure(self.head, self.package)
        self.assertEqual(orders(), restarts)
        self.configure(self.head, self.package)
        self.assertEqual(orders(), [f"start {unit}" for unit in units])
        for fails_at in ("daemon-reload", restarts[1], f"--quiet is-active {units[0]}"):
            self.make_package(fails_at.replace(" ", "-"))
            self.systemctl(fails_at)
            printed = self.configure(self.head, self.package, code=1)
            self.assertEqual("journalctl -u neurontrace-aggregator" in printed, "is-active" in fails_at, printed)
            self.systemctl()
            self.assertIn("nothing changed", self.configure(self.head, self.package))
            self.assertEqual(orders(), restarts, fails_at)
            self.configure(self.head, self.package)
            self.assertNotIn(restarts[0], orders())

    def test_options_that_a_daemon_does_not_take_change_and_restart_nothing(self):
        self.configure(self.head, self.package)
        node = self.make_node("node", "ComputeFleet")
        self.share(node)
        self.configure(node)
        self.environment["NT_STRICT"] = "1"
        for root, edited, own in ((node, self.head / "opt/slurm/etc/neurontrace/agent.toml", "agent.toml"),
                                  (self.head, self.head / "etc/neurontrace/aggregator.toml", "aggregator.toml")):
            self.systemctl()
            good, before = edited.read_text(), self.tree(root)
            edited.write_text("wrong = 7\n" + good)
            printed = self.configure(root, code=1)
            self.assertRegex(printed, rf"rejects the options in \S+/neurontrace/{own} and ")
            self.assertIn("1:wrong = 7", printed)
            self.assertEqual(self.orders(), [])
            if root is node:
                self.assertNotIn("wrong", (root / "etc/neurontrace" / own).read_text())
            edited.write_text(good)
            self.configure(root)
            # What the failure left would be here.
            self.assertEqual(self.tree(root), before)

    def test_daemons_accept_node_settings(self):
        self.configure(self.head, self.package)
        node = self.make_node("node", "ComputeFleet")
        self.share(node)
        self.configure(node)
        for root, program in ((self.head, "aggregator"), (node, "agent")):
            file = self.dir / f"{program}.toml"
            text = (root / f"etc/neurontrace/{program}.toml").read_text()
            file.write_text(text.replace("/etc/neurontrace/", f"{root}/etc/neurontrace/"))
            command = [BUILD / "bin" / f"neurontrace-{program}", "--config", file, "--validate-config"]
            done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
            self.assertEqual(done.returncode, 0, done.stderr)
            file.write_text("wrong = 7\n" + text)
            self.assertEqual(subprocess.run(command, capture_output=True, check=False, env={}).returncode, 2)
            # And without being asked, which systemd has not to try again.
            self.assertEqual(subprocess.run(command[:-1], capture_output=True, check=False, env={}).returncode, 2)
            unit = (FOLDER / f"neurontrace-{program}.service").read_text()
            self.assertIn("\nRestartPreventExitStatus=2\n", unit)

    def test_restarts_slurmctld_once_without_epilog(self):
        config = self.head / "opt/slurm/etc/slurm.conf"
        config.write_text("EpilogSlurmctld=/opt/slurm/etc/neurontrace/epilog_slurmctld.sh\n")
        self.systemctl("try-restart slurmctld.service")
        self.configure(self.head, self.package, code=1)
        self.systemctl()
        for times in (1, 0):
            self.configure(self.head, self.package)
            self.assertEqual(self.orders().count("try-restart slurmctld.service"), times)
        # Of a cluster that does not want the epilog.
        config.write_text("# EpilogSlurmctld=/opt/slurm/etc/neurontrace/epilog_slurmctld.sh\n")
        (self.head / "opt/slurm/etc/neurontrace/epilog_slurmctld.sh").unlink()
        self.configure(self.head, self.package)
        self.assertNotIn("try-restart slurmctld.service", self.orders())

    def test_a_compute_node_takes_everything_from_the_head_node(self):
        self.configure(self.head, self.package)
        node = self.make_node("node", "ComputeFleet")
        self.share(node)
        self.configure(node)
        first = self.tree(node)
        self.assertIn("nothing changed", self.configure(node))
        self.assertEqual(self.tree(node), first)
        self.assertIn(f'aggregator = "{ADDRESS}:9400"', (node / "etc/neurontrace/agent.toml").read_text())
        self.assertIn("# first\n", (node / "opt/neurontrace/bin/neurontrace-agent").read_text())
        wanted = node / "etc/systemd/system/multi-user.target.wants"
        self.assertEqual([path.name for path in wanted.iterdir()], ["neurontrace-agent.service"])
        owner = int(re.search(r"^neurontrace:x:(\d+):", (node / "etc/passwd").read_text(), re.M)[1])
        key = (node / "etc/neurontrace/tls/agent.key").stat()
        self.assertEqual((key.st_uid, oct(key.st_mode & 0o777)), (owner, "0o400"))
        self.assertEqual(list((node / "etc/neurontrace").rglob("*ca.key")), [])

    def test_an_upgrade_switches_and_keeps_the_version_before(self):
        self.configure(self.head, self.package)
        for mark in ("second", "third"):
            self.make_package(mark)
            self.configure(self.head, self.package)
            self.assertIn(f"# {mark}\n", (self.head / "opt/neurontrace/bin/neurontrace").read_text())
        self.assertEqual(len(list((self.head / "opt").glob("neurontrace-*"))), 2)

    def test_reports_errors_without_stopping_nodes(self):
        self.assertIn("checksum", self.configure(self.head, self.package, "0" * 64, code=1))
        self.assertIn("pass PACKAGE", self.configure(self.head, code=1))
        nowhere = self.make_node("nowhere", "HeadNode", address=None)
        self.assertIn("no address of the head node", self.configure(nowhere, self.package, code=1))
        node = self.make_node("node", "ComputeFleet")
        self.assertIn("continues without neurontrace", self.configure(node))
        login = self.make_node("login", "LoginNode")
        before = self.tree(login)
        self.assertIn("nothing to do", self.configure(login))
        self.assertEqual(self.tree(login), before)

    def test_certificates_identify_callers(self):
        self.configure(self.head, self.package)
        authority = self.head / "etc/neurontrace/authority"
        self.assertEqual(oct(authority.stat().st_mode & 0o777), "0o700")
        self.assertEqual(oct((authority / "ca.key").stat().st_mode & 0o777), "0o600")
        shared = self.head / "opt/slurm/etc/neurontrace/tls"
        self.assertEqual(sorted(path.name for path in shared.iterdir()), ["agent.key", "agent.pem", "ca.pem"])
        self.assertEqual(oct((shared / "agent.key").stat().st_mode & 0o777), "0o600")
        own, ca = self.head / "etc/neurontrace/tls", authority / "ca.pem"
        for file, purpose, other in ((own / "aggregator.pem", "sslserver", "sslclient"),
                                     (shared / "agent.pem", "sslclient", "sslserver"),
                                     (own / "slurm.pem", "sslclient", "sslserver")):
            self.assertEqual(self.openssl("verify", "-CAfile", ca, "-purpose", purpose, file).returncode, 0)
            self.assertNotEqual(self.openssl("verify", "-CAfile", ca, "-purpose", other, file).returncode, 0)
        for option, name in (("-verify_ip", ADDRESS), ("-verify_hostname", "neurontrace-aggregator")):
            self.assertEqual(self.openssl("verify", "-CAfile", ca, option, name, own / "aggregator.pem").returncode, 0)
        for file, role in ((shared / "agent.pem", "agent"), (own / "slurm.pem", "operator")):
            text = self.openssl("x509", "-in", file, "-noout", "-ext", "subjectAltName").stdout
            self.assertIn(f"URI:neurontrace:{role}\n", text)

    def certificates(self, node, *arguments, code=0):
        done = subprocess.run(["bash", FOLDER / "certificates.sh", *map(str, arguments)], capture_output=True, text=True,
                              check=False, env={**os.environ, "NT_ROOT": str(node)})
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_certificates_that_end_soon_are_renewed_and_reach_the_nodes(self):
        self.configure(self.head, self.package)
        node = self.make_node("node", "ComputeFleet")
        self.share(node)
        self.configure(node)
        self.assertEqual(self.certificates(self.head, "head", ADDRESS), "")
        self.assertEqual(self.certificates(node, "node"), "")
        authority = self.head / "etc/neurontrace/authority"
        ca = (authority / "ca.pem").read_bytes()
        # One that ends in 29 days, of the same key.
        request = self.dir / "request"
        names = self.dir / "names"
        names.write_text("subjectAltName=URI:neurontrace:agent\n")
        for command in (["req", "-new", "-key", authority / "agent.key", "-subj", "/CN=old", "-out", request],
                        ["x509", "-req", "-in", request, "-CA", authority / "ca.pem", "-CAkey", authority / "ca.key",
                         "-set_serial", "7", "-days", "29", "-extfile", names, "-out", authority / "agent.pem"]):
            self.assertEqual(self.openssl(*command).returncode, 0)
        self.assertIn("agent.pem", self.certificates(self.head, "head", ADDRESS))
        self.assertIn("agent.pem", self.certificates(node, "node"))
        self.assertEqual((authority / "ca.pem").read_bytes(), ca)
        self.assertEqual((node / "etc/neurontrace/tls/agent.key").read_bytes(), (authority / "agent.key").read_bytes())
        # Another address of the head node: another certificate of the aggregator, and of nobody else.
        printed = self.certificates(self.head, "head", "10.0.7.6")
        self.assertIn("aggregator.pem", printed)
        self.assertNotIn("slurm.pem", printed)

    def test_certificates_of_another_authority_are_checked_and_never_written_over(self):
        other = self.make_node("other", "HeadNode")
        self.certificates(self.head_of(other), "head", ADDRESS)
        self.configure(self.head, self.package)
        own, shared = (self.head / path for path in ("etc/neurontrace/tls", "opt/slurm/etc/neurontrace/tls"))
        for path in (own, shared):
            shutil.copytree(other / path.relative_to(self.head), path, dirs_exist_ok=True)
        before = self.tree(own), self.tree(shared)
        # Not said, and still not lost.
        self.assertIn("authority/external", self.configure(self.head, self.package, code=1))
        self.assertIn("authority/external", self.certificates(self.head, "head", ADDRESS, code=1))
        authority = self.head / "etc/neurontrace/authority"
        (authority / "external").touch()
        timer = self.head / "etc/systemd/system/timers.target.wants/neurontrace-certificates.timer"
        timer.unlink()
        self.systemctl()
        self.configure(self.head, self.package)
        self.assertFalse(timer.is_symlink())
        self.assertNotIn("certificates.timer", " ".join(self.orders()))
        self.assertEqual(self.certificates(self.head, "head", ADDRESS), "")
        self.assertEqual((self.tree(own), self.tree(shared)), before)
        printed = self.certificates(self.head, "issue", "bob", "viewer", self.dir / "b", code=1)
        self.assertIn("an external authority", printed)
        node = self.make_node("node", "ComputeFleet")
        self.share(node)
        self.configure(node)
        self.assertEqual((node / "etc/neurontrace/tls/agent.pem").read_bytes(), (shared / "agent.pem").read_bytes())

        shutil.copy(authority / "agent.pem", shared / "agent.pem")
        shutil.copy(own / "aggregator.key", own / "slurm.key")
        (own / "aggregator.key").unlink()
        printed = self.certificates(self.head, "head", ADDRESS, code=1)
        for words in ("agent.pem is not signed by", "slurm.key is not the key of", "needs ca.pem, aggregator.pem"):
            self.assertIn(words, printed)
        self.assertIn("the certificates need to be renewed", self.configure(self.head, self.package))

    def head_of(self, root):
        """A head node that has nothing but its user."""
        with (root / "etc/passwd").open("a") as passwd:
            passwd.write("neurontrace:x:64999:64999::/:/bin/false\n")
        return root

    def test_people_get_certificates_with_a_role(self):
        self.configure(self.head, self.package)
        self.certificates(self.head, "issue", "alice", "operator", self.dir / "alice")
        text = self.openssl("x509", "-in", self.dir / "alice/alice.pem", "-noout", "-subject", "-ext",
                            "subjectAltName").stdout
        self.assertIn("CN = alice", text)
        self.assertIn("URI:neurontrace:operator", text)
        self.assertIn("unknown role", self.certificates(self.head, "issue", "bob", "agent", self.dir / "bob", code=1))
        self.assertIn("letters", self.certificates(self.head, "issue", "../bob", "viewer", self.dir / "bob", code=1))


if __name__ == "__main__":
    suite.main()
