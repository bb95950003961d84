# SPDX-License-Identifier: Apache-2.0
"""A real control plane of Kubernetes on loopback: etcd, kube-apiserver and kube-controller-manager as processes of a test,
with throwaway keys. No scheduler and no kubelet: pods are made and judged, and none runs."""
import base64
import json
import pathlib
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

from fleet import free_ports, wait_until

START_SECONDS_MAX = 240  # of one program, on a machine with much else to do
WAIT_SECONDS_MAX = 120
ISSUER = "https://kubernetes.default.svc"


class Refused(Exception):
    """What the API server does not do."""

    def __init__(self, code, status):
        super().__init__(status.get("message", str(status)))
        self.code, self.status = code, status


class ControlPlane:
    """Started by the constructor, ended by close(). `config` is the file for kubectl and helm of an administrator."""

    def __init__(self, programs, folder):
        self.programs, self.dir = programs, pathlib.Path(folder)
        self.processes = []
        etcd, peer, self.port, manager = free_ports(4)
        self.url = f"https://127.0.0.1:{self.port}"
        self.make_keys()
        self.config = self.make_config("admin")
        try:
            self.start_etcd(etcd, peer)
            self.start_api_server(etcd)
            self.context = ssl.create_default_context(cafile=self.dir / "ca.crt")
            self.context.load_cert_chain(self.dir / "admin.crt", self.dir / "admin.key")
            self.wait_until_ready("kube-apiserver", self.is_ready)
            self.start_controller_manager(manager)
            # The first thing that controllers make: without it no pod is taken.
            self.wait_until_ready("kube-controller-manager", lambda: self.exists("/api/v1/namespaces/default/serviceaccounts/default"))
        except BaseException:
            self.close()
            raise

    def close(self):
        for name, process in reversed(self.processes):
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.clear()

    # Keys and certificates

    def openssl(self, *words):
        subprocess.run(["openssl", *words], cwd=self.dir, check=True, capture_output=True)

    def make_keys(self):
        curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self.openssl("req", "-x509", *curve, "-days", "2", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.crt")
        self.openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "accounts.key")
        self.openssl("pkey", "-in", "accounts.key", "-pubout", "-out", "accounts.pub")
        for name, subject, names in (
                ("server", "/CN=kube-apiserver", "IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc"),
                ("admin", "/O=system:masters/CN=admin", "DNS:admin"),
                ("manager", "/CN=system:kube-controller-manager", "DNS:manager")):
            (self.dir / f"{name}.ext").write_text(f"subjectAltName = {names}\n", encoding="utf-8")
            self.openssl("req", *curve, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr")
            self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
                         "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt")

    def make_config(self, name):
        def text(file):
            return base64.b64encode((self.dir / file).read_bytes()).decode()

        path = self.dir / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.url, "certificate-authority-data": text("ca.crt")}}],
            "users": [{"name": name, "user": {"client-certificate-data": text(f"{name}.crt"),
                                              "client-key-data": text(f"{name}.key")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": name}}]}), encoding="utf-8")
        path.chmod(0o600)
        return path

    # Programs

    def start(self, program, *options):
        with open(self.dir / f"{program}.log", "wb") as log:
            process = subprocess.Popen([self.programs / program, *options], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                       cwd=self.dir)
        self.processes.append((program, process))

    def start_etcd(self, port, peer):
        url, between = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
        # What a test loses with the machine's power is no loss.
        self.start("etcd", f"--data-dir={self.dir}/etcd", f"--listen-client-urls={url}", f"--advertise-client-urls={url}",
                   f"--listen-peer-urls={between}", f"--initial-advertise-peer-urls={between}",
                   f"--initial-cluster=default={between}", "--unsafe-no-fsync")

    def start_api_server(self, etcd):
        self.start(
            "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", f"--secure-port={self.port}",
            f"--cert-dir={self.dir}/made", f"--tls-cert-file={self.dir}/server.crt",
            f"--tls-private-key-file={self.dir}/server.key", f"--client-ca-file={self.dir}/ca.crt",
            f"--service-account-issuer={ISSUER}", f"--service-account-key-file={self.dir}/accounts.pub",
            f"--service-account-signing-key-file={self.dir}/accounts.key", "--service-cluster-ip-range=10.96.0.0/16",
            # As kubeadm and managed clusters have it.
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
            "--anonymous-auth=false", "--profiling=false")

    def start_controller_manager(self, port):
        self.start(
            "kube-controller-manager", f"--kubeconfig={self.make_config('manager')}", "--bind-address=127.0.0.1",
            f"--secure-port={port}", f"--cert-dir={self.dir}/made", "--leader-elect=false", "--use-service-account-credentials",
            f"--service-account-private-key-file={self.dir}/accounts.key", f"--root-ca-file={self.dir}/ca.crt",
            # Nodes of tests have no kubelet that says that it lives.
            "--controllers=*,-node-lifecycle-controller", "--profiling=false")

    def wait_until_ready(self, program, look):
        def ready():
            for name, process in self.processes:
                if process.poll() is not None:
                    log = (self.dir / f"{name}.log").read_text(encoding="utf-8", errors="replace")
                    raise AssertionError(f"{name} ended with {process.returncode}:\n{log[-3000:]}")
            return look()

        wait_until(ready, f"{program} to be ready, see {self.dir}/{program}.log", START_SECONDS_MAX)

    def is_ready(self):
        try:
            return self.request("GET", "/readyz") == "ok"
        except (OSError, Refused):
            return False

    # Requests

    def request(self, method, path, body=None, kind="application/json", token=None):
        """What the API server answers the administrator, or whoever has the token; Refused with its status where it does not."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(self.url + path, data=data, method=method, headers={"Content-Type": kind})
        context = self.context
        if token:
            asked.add_header("Authorization", f"Bearer {token}")
            context = ssl.create_default_context(cafile=self.dir / "ca.crt")
        try:
            with urllib.request.urlopen(asked, context=context, timeout=60) as answer:
                text = answer.read().decode()
                return json.loads(text) if answer.headers.get_content_type() == "application/json" else text
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            with error:
                raise Refused(error.code, json.loads(text) if text.startswith("{") else {"message": text}) from None

    def exists(self, path):
        try:
            return self.request("GET", path)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def list_at(self, path):
        """[whether it could be, items]; the storage of a definition that was just made is not there at once."""
        try:
            return [True, self.request("GET", path)["items"]]
        except Refused as refused:
            if refused.code == 429:
                return None
            raise

    def objects(self):
        """The path of every object there is, but for events, leases and what the API server makes for itself."""
        found = set()
        for group in ["/api/v1"] + [f"/apis/{version['groupVersion']}" for thing in self.request("GET", "/apis")["groups"]
                                    for version in [thing["preferredVersion"]]]:
            for resource in self.request("GET", group)["resources"]:
                name = resource["name"]
                if "/" in name or "list" not in resource["verbs"] or name in ("events", "leases", "componentstatuses"):
                    continue
                for item in wait_until(lambda at=f"{group}/{name}": self.list_at(at), f"the list of {name}", WAIT_SECONDS_MAX)[1]:
                    metadata = item["metadata"]
                    found.add(f"{name} {metadata.get('namespace', '')}/{metadata['name']}")
        return found


class Kubelets:
    """Replaces the scheduler and the kubelets of nodes that are not there: pods are bound to a node, said to be ready and,
    when they are to end, taken away. No container runs. A context manager."""

    def __init__(self, plane, namespace):
        self.plane, self.pods = plane, f"/api/v1/namespaces/{namespace}/pods"
        self.ended = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        if self.error:
            raise self.error

    def run(self):
        try:
            while not self.ended.wait(0.3):
                for pod in self.plane.request("GET", self.pods)["items"]:
                    self.tend(pod)
        except (OSError, Refused) as error:
            self.error = error

    def node_for(self, pod):
        """The node that a DaemonSet's pod is made for; any for others."""
        affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
        terms = affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", [])
        for field in (field for term in terms for field in term.get("matchFields", [])):
            if field["key"] == "metadata.name":
                return field["values"][0]
        return self.plane.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]

    def tend(self, pod):
        path = f"{self.pods}/{pod['metadata']['name']}"
        try:
            if "deletionTimestamp" in pod["metadata"]:
                self.plane.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0})
                return
            if "nodeName" not in pod["spec"]:
                node = self.node_for(pod)
                self.plane.request("POST", f"{path}/binding", {
                    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod["metadata"]["name"]},
                    "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
            elif pod["status"].get("phase") != "Running":
                now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                ready = [{"type": kind, "status": "True", "lastTransitionTime": now}
                         for kind in ("Ready", "ContainersReady", "Initialized", "PodScheduled")]
                self.plane.request("PATCH", f"{path}/status", {"status": {"phase": "Running", "conditions": ready}},
                                   "application/merge-patch+json")
        except Refused as refused:
            # Somebody else was quicker: looked at again in a moment.
            if refused.code not in (404, 409):
                raise


def add_node(plane, name, labels, taints=()):
    """A node that is ready, but has no machine behind it."""
    plane.request("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    path = f"/api/v1/nodes/{name}"
    # Each node starts with the taint that it is not ready, which a controller removes that here does not run.
    plane.request("PATCH", path, {"spec": {"taints": list(taints)}}, "application/merge-patch+json")
    plane.request("PATCH", f"{path}/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}},
                  "application/merge-patch+json")
