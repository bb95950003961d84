# SPDX-License-Identifier: Apache-2.0
"""The programs with the options that the chart gives them and the certificates that its README has people make, as processes of
this machine: mounts are directories, the aggregator's Service is a port of loopback, and a worker has the example's variables."""
import base64
import json
import os
import pathlib
import re
import subprocess

import suite
from chart import CHART, ROOT, ChartCase, blocks, containers_of, merged, pod_of, yaml
from fleet import Process, wait_until

# No other test's workers are to be found. The test reads the aggregator's answers.
VALUES = {"image": {"registry": "registry.example"}, "agent": {"processScan": False, "podResources": False, "hostPID": False},
          "aggregator": {"logFormat": "text"}}


class ChartWalkTest(ChartCase):
    def setUp(self):
        super().setUp()
        self.build = pathlib.Path(os.environ["NT_BUILD_DIR"])
        self.secrets = {}

    def follow_the_readme(self):
        """Makes certificates and secrets with the commands of the chart's README."""
        self.mine = ("ca.pem", "alice.pem", "alice.key")
        _, _, self.commands, tls = blocks(CHART / "README.md", "Install")
        self.values = merged(VALUES, yaml.safe_load(tls))
        authority = blocks(ROOT / "docs" / "operator" / "security.md", "Setting it up")[0].split("issue aggregator")[0]
        issue = self.commands.split("kubectl")[0]
        subprocess.run(["bash", "-euc", authority + issue], cwd=self.dir, check=True, capture_output=True)
        for name, rest in re.findall(r"create secret generic (\S+) (.*?)(?=kubectl|\Z)", self.commands, re.S):
            self.secrets[name] = self.dir / name
            self.secrets[name].mkdir()
            for key, file in re.findall(r"--from-file=(\S+?)=(\S+)", rest):
                (self.secrets[name] / key).symlink_to(self.dir / file)

    def start(self, thing, environment=(), **replaced):
        """The program of a workload as its pod would have it, with other paths and these options in place of the rendered ones."""
        container, spec = containers_of(thing)[-1], pod_of(thing)["spec"]
        secrets = {volume["name"]: self.secrets[volume["secret"]["secretName"]] for volume in spec["volumes"] if "secret" in volume}
        places = {}
        for mount in container["volumeMounts"]:
            place = secrets.get(mount["name"], self.dir / container["name"] / mount["name"])
            place.mkdir(parents=True, exist_ok=True)
            places[mount["mountPath"]] = place
        command = [self.build / "bin" / f"neurontrace-{container['name']}"]
        for arg in container["args"]:
            option, _, value = arg.replace("$(NODE_NAME)", "node-1").partition("=")
            value = replaced.pop(option[2:].replace("-", "_"), value)
            for path in sorted(places, key=len, reverse=True):
                if value.startswith(path + "/"):
                    value = f"{places[path]}{value[len(path):]}"
                    break
            command.append(f"{option}={value}" if value else option)
        command += [f"--{option.replace('_', '-')}={value}" for option, value in replaced.items()]
        process = Process(container["name"], command, self.dir, dict(environment))
        self.addCleanup(process.stop)
        return process, places

    def neurontrace(self, *words):
        """As the README has a person call it."""
        ca, certificate, key = self.mine
        environment = {"NEURONTRACE_TLS_CA": str(ca), "NEURONTRACE_TLS_CERT": str(certificate), "NEURONTRACE_TLS_KEY": str(key),
                       "NEURONTRACE_AGGREGATOR": self.forwarded}
        done = subprocess.run([self.build / "bin" / "neurontrace", *words], cwd=self.dir, capture_output=True, text=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, **environment, "NEURONTRACE_CONFIG": ""})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_first_capture(self):
        self.follow_the_readme()
        self.walk(self.things(merged({"tls": {"certManager": {"enabled": False}}}, self.values)))

    def test_the_first_capture_with_certificates_that_the_chart_makes(self):
        done = self.helm("template", values={name: value for name, value in VALUES.items() if name != "image"})
        self.assertEqual(done.returncode, 0, done.stderr)
        things = self.parse(done.stdout)
        for (kind, name), thing in things.items():
            if kind != "Secret":
                continue
            self.secrets[name] = self.dir / name
            self.secrets[name].mkdir()
            files = {file: base64.b64decode(text) for file, text in thing.get("data", {}).items()}
            files.update({file: text.encode() for file, text in thing.get("stringData", {}).items()})
            for file, content in files.items():
                (self.secrets[name] / file).write_bytes(content)
                (self.secrets[name] / file).chmod(0o600)
        self.mine = tuple(self.secrets["neurontrace-operator-tls"] / file for file in ("ca.crt", "tls.crt", "tls.key"))
        self.walk(things)

    def walk(self, things):
        aggregator, _ = self.start(things["StatefulSet", "neurontrace-aggregator"], listen="127.0.0.1:0",
                                   health_address="127.0.0.1:0")
        port = int(re.search(r"127\.0\.0\.1:(\d+)", aggregator.wait_for_line("listening on"))[1])
        self.forwarded = f"localhost:{port}"
        agent = things["DaemonSet", "neurontrace-agent"]
        service = next(arg for arg in containers_of(agent)[-1]["args"] if arg.startswith("--aggregator="))
        # The name in the certificate is that of the Service, which no name server of this machine knows.
        _, places = self.start(agent, {"NEURONTRACE_INSTANCE_ID": "node-1"}, aggregator=f"127.0.0.1:{port}",
                               health_address="127.0.0.1:0", tls_server_name=service.split("=")[1].rsplit(":", 1)[0])
        wait_until(lambda: json.loads(self.neurontrace("--output", "json", "status"))["agents_connected"] == 1, "the agent", 30)
        self.start_worker(places["/run/neurontrace"])
        # The agent's process scan sees the worker before its tap has connected, and whatever else runs on this machine.
        worker = wait_until(lambda: next((each for each in json.loads(self.neurontrace("--output", "json", "workers"))["workers"]
                                          if each["job"]), None), "the worker by its job's name", 30)
        self.assertEqual((worker["identity"]["instance_id"], worker["job"]), ("node-1", "llama-70b"))
        self.neurontrace("capture", "--duration", "2s", "-o", "trace.pftrace")
        self.assertGreater((self.dir / "trace.pftrace").stat().st_size, 1000)

    def start_worker(self, sockets):
        example = self.parse((CHART / "examples" / "worker.yaml").read_text(encoding="utf-8"))["Job", "llama-70b"]
        container = containers_of(example)[0]
        environment = {variable["name"]: variable.get("value", "llama-70b") for variable in container["env"]}
        environment["NEURONTRACE_AGENT_SOCKET"] = environment["NEURONTRACE_AGENT_SOCKET"].replace("/run/neurontrace", str(sockets))
        for name in ("LD_PRELOAD", "NVTX_INJECTION64_PATH"):
            environment[name] = environment[name].replace("/opt/neurontrace", str(self.build / "lib"))
        worker = Process("worker", [self.build / "tests" / "fake_nrt" / "sim_worker", "--print-ready", "--cores", "2", "--mix",
                                    "graph", "--executions-per-second", "20"], self.dir, environment)
        self.addCleanup(worker.stop)
        worker.wait_for_line("ready")


if __name__ == "__main__":
    suite.main()
