# SPDX-License-Identifier: Apache-2.0
"""The chart in a real API server, by the README's own commands: installed, upgraded, rolled back and taken away; what that
server admits and allows, what its admission policy does to pods, and its answers about tokens.

Needs scripts/setup_kubernetes, which a person calls; skipped without. Nodes have no kubelet: what runs in pods is not shown."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

import suite
from chart import CHART, MINIMAL, POLICIES, ROOT, ChartCase, blocks, find_tools, merged, pod_of, yaml
from chart_values import MATRIX
from control_plane import WAIT_SECONDS_MAX, ControlPlane, Kubelets, Refused, add_node
from fleet import wait_until

COMMAND_SECONDS_MAX = 240
TOKENS = {"aggregator": {"access": '[ci]\nservice-account = "team-a/ci"\nrole = "operator"\n', "kubernetesTokens": {"enabled": True}}}
POLICY = {"injection": {"admissionPolicy": {"enabled": True}}}
NODES = {"plain": {}, "labelled": {"neuron.amazonaws.com/present": "true"},
          "typed": {"node.kubernetes.io/instance-type": "trn2.48xlarge"}}


class Machine:
    """What the tests share: a control plane, and nodes in it."""

    plane = folder = tools = None


def setUpModule():
    Machine.tools, why = find_tools()
    programs, why_not = suite.built_by("setup_kubernetes")
    if not Machine.tools or not programs:
        raise unittest.SkipTest(why or why_not)
    Machine.folder = pathlib.Path(tempfile.mkdtemp(prefix="neurontrace-cluster-"))
    unittest.addModuleCleanup(shutil.rmtree, Machine.folder)
    Machine.plane = ControlPlane(pathlib.Path(programs), Machine.folder)
    unittest.addModuleCleanup(Machine.plane.close)
    path = Machine.folder / "bin"
    path.mkdir()
    (path / "helm").symlink_to(Machine.tools / "helm")
    (path / "kubectl").symlink_to(programs / "kubectl")
    for crd in sorted((programs / "crds").iterdir()):
        # Server-side: those of the Prometheus operator are too long for kubectl's annotation.
        run(f"kubectl apply --server-side -f {crd}")
    run("kubectl wait --for=condition=established --timeout=120s crd --all")
    for name, labels in NODES.items():
        taints = [{"key": "aws.amazon.com/neuron", "effect": "NoSchedule"}] if name == "typed" else []
        add_node(Machine.plane, name, labels, taints)


def run(script, folder=None, **environment):
    """What a person types, in bash; a command that fails ends it."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], cwd=folder or Machine.folder, capture_output=True, text=True,
        timeout=COMMAND_SECONDS_MAX, check=False, stdin=subprocess.DEVNULL,
        env={"HOME": str(Machine.folder), "PATH": f"{Machine.folder}/bin:/usr/bin:/bin", "KUBECONFIG": str(Machine.plane.config),
             **environment})
    if done.returncode:
        raise AssertionError(f"{script}\nends with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def make_namespace(name):
    Machine.plane.request("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_until(lambda: Machine.plane.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"),
               f"the account of {name}", WAIT_SECONDS_MAX)


class ClusterCase(ChartCase):
    """Takes away what a test made: its namespaces."""

    def setUp(self):
        super().setUp()
        self.plane = Machine.plane
        # As after a clone: the README's commands name the chart by its place in the repository.
        (self.dir / "deploy").symlink_to(ROOT / "deploy")

    def namespace(self, name):
        make_namespace(name)
        self.addCleanup(self.remove, f"/api/v1/namespaces/{name}")

    def remove(self, path):
        if self.plane.exists(path):
            self.plane.request("DELETE", path)
            wait_until(lambda: not self.plane.exists(path), f"{path} to be gone", WAIT_SECONDS_MAX)

    def type(self, script, **environment):
        return run(script, self.dir, **environment)

    def install(self, values):
        (self.dir / "values.yaml").write_text(json.dumps(values), encoding="utf-8")
        self.type("helm install neurontrace deploy/helm/neurontrace --namespace neurontrace --values values.yaml")
        self.addCleanup(self.type, "helm uninstall neurontrace --namespace neurontrace --ignore-not-found")

    def pods(self, namespace="neurontrace"):
        return self.plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]

    def try_pod(self, namespace, template):
        """The pod as this server would make it, or Refused."""
        return self.plane.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", **template.get("metadata", {})},
            "spec": {**template["spec"], "serviceAccountName": "default"}})


class WalkTest(ClusterCase):
    """The README, command by command. What needs a kubelet is left out: the port-forward, and `neurontrace` through it."""

    def setUp(self):
        super().setUp()
        make_namespace("team-a")
        self.addCleanup(self.remove, "/api/v1/namespaces/team-a")
        self.before = self.plane.objects()
        self.addCleanup(self.remove, "/api/v1/namespaces/neurontrace")
        self.addCleanup(self.type, "helm uninstall neurontrace --namespace neurontrace --ignore-not-found")
        kubelets = Kubelets(self.plane, "neurontrace")
        kubelets.__enter__()
        self.addCleanup(kubelets.__exit__)

    def test_with_cert_manager(self):
        namespace, with_cert_manager = blocks(CHART / "README.md", "Install")[:2]
        self.type(namespace.split("helm install")[0] + with_cert_manager + self.rollouts())
        self.assertEqual({pod["spec"]["nodeName"] for pod in self.pods() if "-agent-" in pod["metadata"]["name"]},
                         {"labelled", "typed"})
        self.issue_certificates()
        capture, policy, _ = blocks(CHART / "README.md", "The first capture")
        self.type(capture.split("kubectl -n neurontrace port-forward")[0])
        shown = self.type("openssl verify -CAfile ca.crt tls.crt && openssl x509 -in tls.crt -noout -ext subjectAltName && ls -l tls.key")
        self.assertIn("URI:neurontrace:operator", shown)
        self.assertIn("-rw-------", shown)
        self.upgrade(policy)
        self.uninstall()

    def issue_certificates(self):
        """Replaces cert-manager, as the Certificates of the release say."""
        found = self.plane.request("GET", "/apis/cert-manager.io/v1/namespaces/neurontrace/certificates")["items"]
        self.assertEqual(len(found), 4)
        self.type(blocks(ROOT / "docs" / "operator" / "security.md", "Setting it up")[0].split("issue() {")[0])
        for certificate in found:
            spec = certificate["spec"]
            names = [f"DNS:{name}" for name in spec.get("dnsNames", [])] + [f"URI:{uri}" for uri in spec.get("uris", [])]
            if spec.get("isCA"):
                continue
            self.type(self.issue() + f"issue {spec['commonName']} {','.join(names)}\n"
                      f"kubectl -n neurontrace create secret generic {spec['secretName']} --from-file=ca.crt=ca.pem "
                      f"--from-file=tls.crt={spec['commonName']}.pem --from-file=tls.key={spec['commonName']}.key")

    @staticmethod
    def issue():
        """The function of security.md."""
        text = blocks(ROOT / "docs" / "operator" / "security.md", "Setting it up")[0]
        return "issue() {" + text.split("issue() {")[1].split("\n}\n")[0] + "\n}\n"

    @staticmethod
    def rollouts():
        lines = blocks(CHART / "README.md", "Install")[0].splitlines()
        return "".join(line + "\n" for line in lines if "rollout" in line)

    def test_with_no_values(self):
        self.type(blocks(CHART / "README.md", "Install")[0])
        names = ("neurontrace-ca", "neurontrace-aggregator-tls", "neurontrace-agent-tls", "neurontrace-operator-tls")
        secrets = {name: self.secret(name) for name in names}
        self.type("helm upgrade neurontrace deploy/helm/neurontrace --namespace neurontrace --set agent.logLevel=debug\n" + self.rollouts())
        self.assertEqual({name: self.secret(name) for name in names}, secrets)

    def secret(self, name):
        return self.plane.request("GET", f"/api/v1/namespaces/neurontrace/secrets/{name}")["data"]

    def upgrade(self, policy):
        name = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/neurontrace-neurontrace"
        self.type(policy)
        self.assertTrue(self.plane.exists(name))
        rollouts = self.rollouts()
        # Pods of another version take the place of these, one node after the other.
        old = {pod["metadata"]["uid"] for pod in self.pods()}
        self.type("helm upgrade neurontrace deploy/helm/neurontrace --namespace neurontrace --values values.yaml "
                  "--set agent.logLevel=debug --set aggregator.artifactBytes=1GiB\n" + rollouts)
        self.assertFalse(old & {pod["metadata"]["uid"] for pod in self.pods()})
        self.type("helm rollback neurontrace 1 --namespace neurontrace\n" + rollouts)
        self.assertFalse(self.plane.exists(name))
        self.type(blocks(CHART / "README.md", "Upgrade")[0] + rollouts)
        self.assertTrue(self.plane.exists(name))

    def uninstall(self):
        lines = blocks(CHART / "README.md", "Uninstall")[0]
        helm, rest = lines.split("\n", 1)
        self.type(helm)
        labelled = self.type("kubectl get all,pvc,secrets,configmaps,networkpolicies,certificates,issuers,clusterroles,storageclasses "
                             "-A -l app.kubernetes.io/part-of=neurontrace -o name")
        self.assertEqual([name for name in labelled.split() if not name.startswith("pod/")], [])
        claims = self.type("kubectl -n neurontrace get pvc -o name").split()
        self.assertEqual(claims, ["persistentvolumeclaim/store-neurontrace-aggregator-0"])
        self.type(rest)
        self.assertEqual(self.plane.objects() ^ self.before, set())

    def test_with_certificates_of_ones_own(self):
        namespace, install, issue, named = blocks(CHART / "README.md", "Install")
        prepare, rest = install.split("helm install")
        self.type(namespace.split("helm install")[0] + prepare)
        values = yaml.safe_load((self.dir / "values.yaml").read_text(encoding="utf-8"))
        (self.dir / "values.yaml").write_text(json.dumps({**values, **yaml.safe_load(named)}), encoding="utf-8")
        authority = blocks(ROOT / "docs" / "operator" / "security.md", "Setting it up")[0].split("issue aggregator")[0]
        self.type(authority + issue)
        self.type("helm install" + rest + self.rollouts())
        for pod in self.pods():
            wanted = {volume["secret"]["secretName"] for volume in pod["spec"]["volumes"] if "secret" in volume}
            for secret in wanted:
                data = self.plane.request("GET", f"/api/v1/namespaces/neurontrace/secrets/{secret}")["data"]
                self.assertEqual(set(data), {"ca.crt", "tls.crt", "tls.key"})
            self.assertEqual(len(wanted), 1)
        self.type("openssl verify -CAfile ca.pem aggregator.pem agent.pem alice.pem")
        self.uninstall()


class AdmissionTest(ClusterCase):
    """What the server takes, of what the chart renders."""

    def test_every_render_is_taken_strictly(self):
        for name in ("neurontrace", "elsewhere", "team-a"):
            self.namespace(name)
        for name, values in MATRIX.items():
            with self.subTest(name):
                file = self.dir / "rendered.yaml"
                file.write_text(self.render(values, "--api-versions", POLICIES), encoding="utf-8")
                apply = f"kubectl apply --server-side --dry-run=server --validate=strict -f {file}"
                if name == "admission-policy-beta":  # of what this server has as v1, and does not serve by default
                    self.assertRaisesRegex(AssertionError, "no matches for kind \"MutatingAdmissionPolicy\"", self.type, apply)
                else:
                    self.assertNotIn("Warning", self.type(apply + " 2>&1"))

    def test_examples_are_taken(self):
        self.namespace("team-a")
        for path in sorted((CHART / "examples").glob("*.yaml")):
            self.type(f"kubectl -n team-a apply --server-side --dry-run=server --validate=strict -f {path}")

    def test_pod_security_levels_match_readme(self):
        for level in ("privileged", "baseline", "restricted"):
            self.namespace(f"level-{level}")
            self.type(f"kubectl label namespace level-{level} pod-security.kubernetes.io/enforce={level}")
        things = self.things()
        agent, aggregator = (pod_of(things[key]) for key in (
            ("DaemonSet", "neurontrace-agent"), ("StatefulSet", "neurontrace-aggregator")))
        worker = pod_of(self.parse((CHART / "examples" / "worker.yaml").read_text(encoding="utf-8"))["Job", "llama-70b"])
        # The store is a volume of the claim that the StatefulSet makes.
        aggregator["spec"]["volumes"].append({"name": "store", "persistentVolumeClaim": {"claimName": "store"}})
        for template in (agent, worker):
            self.try_pod("level-privileged", template)
            for level in ("baseline", "restricted"):
                with self.assertRaises(Refused) as refused:
                    self.try_pod(f"level-{level}", template)
                self.assertEqual(refused.exception.code, 403)
                self.assertIn(f'violates PodSecurity "{level}:latest"', str(refused.exception))
                self.assertIn("hostPath", str(refused.exception))
        self.try_pod("level-restricted", aggregator)

    def test_accounts_have_no_extra_rights(self):
        self.namespace("neurontrace")
        self.install(merged(MINIMAL, TOKENS))
        anybody, agent, aggregator = (self.rights(name) for name in ("default", "neurontrace-agent", "neurontrace-aggregator"))
        self.assertIn("selfsubjectreviews.authentication.k8s.io", " ".join(anybody))
        self.assertEqual(agent, anybody)
        more = [row.split() for row in aggregator - anybody]
        self.assertEqual(more, [["tokenreviews.authentication.k8s.io", "[]", "[]", "[create]"]])
        self.assertEqual(anybody - aggregator, set())

    def rights(self, account):
        """All that an account of the namespace may, a line each."""
        return set(self.type("kubectl auth can-i --list --namespace neurontrace "
                             f"--as system:serviceaccount:neurontrace:{account}").splitlines())


class PolicyTest(ClusterCase):
    """The admission policy, in the server that it is for."""

    def setUp(self):
        super().setUp()
        self.namespace("neurontrace")
        self.namespace("team-a")
        self.namespace("team-b")
        self.type("kubectl label namespace team-a neurontrace/inject=enabled")
        self.install(merged(MINIMAL, POLICY))
        asked = {"metadata": {"annotations": {"neurontrace/inject": "true"}},
                 "spec": {"containers": [{"name": "worker", "image": "example",
                                          "resources": {"limits": {"aws.amazon.com/neuron": "1"}}}]}}
        self.asked = asked
        # The server learns of a policy in a moment, not with the answer that it is made.
        self.made = wait_until(self.mutated, "the policy to be in force", WAIT_SECONDS_MAX)

    def mutated(self):
        pod = self.try_pod("team-a", self.asked)
        return pod if self.ours(pod) else None

    @staticmethod
    def ours(pod):
        return [volume["name"] for volume in pod["spec"].get("volumes", []) if volume["name"].startswith("neurontrace-")]

    def test_pod_matches_snippet(self):
        worker = pod_of(self.parse((CHART / "examples" / "worker.yaml").read_text(encoding="utf-8"))["Job", "llama-70b"])["spec"]
        made = self.made["spec"]
        self.assertEqual(made["securityContext"]["supplementalGroups"], worker["securityContext"]["supplementalGroups"])
        for field in ("volumes", "containers"):
            self.assertTrue(made[field])
        self.assertEqual([volume for volume in made["volumes"] if volume["name"].startswith("neurontrace-")], worker["volumes"])
        mounts = [mount for mount in made["containers"][0]["volumeMounts"] if mount["name"].startswith("neurontrace-")]
        self.assertEqual(mounts, worker["containers"][0]["volumeMounts"])
        names = {variable["name"] for variable in made["containers"][0]["env"]}
        # Job and labels are of pods that say them.
        self.assertEqual(names, {"LD_PRELOAD", "NEURONTRACE_AGENT_SOCKET", "POD_NAME", "POD_NAMESPACE"})

    def test_others_are_left_alone(self):
        self.assertEqual(self.ours(self.try_pod("team-b", self.asked)), [])
        self.assertEqual(self.ours(self.try_pod("team-a", {"spec": self.asked["spec"]})), [])

    def test_a_job_of_kubernetes_is_named_by_its_label(self):
        self.plane.request("POST", "/apis/batch/v1/namespaces/team-a/jobs", {
            "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"},
            "spec": {"template": merged(self.asked, {"spec": {"restartPolicy": "Never"}})}})
        pod = wait_until(lambda: self.pods("team-a"), "a pod of the job", WAIT_SECONDS_MAX)[0]
        variables = {variable["name"]: variable.get("value") for variable in pod["spec"]["containers"][0]["env"]}
        self.assertEqual(variables["NEURONTRACE_JOB"], "train")
        self.assertEqual(len(self.ours(pod)), 2)


class TokenTest(ClusterCase):
    """What an aggregator with kubernetesTokens relies on: its own token may ask, and these are the answers."""

    def setUp(self):
        super().setUp()
        self.namespace("neurontrace")
        self.namespace("team-a")
        self.install(merged(MINIMAL, TOKENS))
        self.type("kubectl -n team-a create serviceaccount ci")
        self.own = self.token("neurontrace", "neurontrace-aggregator", None)

    def token(self, namespace, account, audience, holder=None):
        spec = {"audiences": [audience] if audience else [], "expirationSeconds": 3600}
        if holder:
            spec["boundObjectRef"] = holder
        return self.plane.request("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})["status"]["token"]

    def review(self, token, by=None):
        """The answer, with no token in it, kept where NT_KEEP_ANSWERS says."""
        answer = self.plane.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": ["neurontrace"]}}, token=by or self.own)
        self.assertEqual(answer["spec"].pop("token"), token)
        if os.environ.get("NT_KEEP_ANSWERS"):
            name = "answer" if answer["status"].get("authenticated") else "refused"
            pathlib.Path(os.environ["NT_KEEP_ANSWERS"], f"tokenreview_{name}.json").write_text(
                json.dumps(answer, indent=1) + "\n", encoding="utf-8")
        return answer["status"]

    def test_a_token_for_this_audience_is_its_accounts(self):
        template = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker-0"},
                    "spec": {"containers": [{"name": "worker", "image": "example"}]}}
        pod = self.plane.request("POST", "/api/v1/namespaces/team-a/pods", merged(template, {"spec": {"serviceAccountName": "ci"}}))
        holder = {"apiVersion": "v1", "kind": "Pod", "name": "worker-0", "uid": pod["metadata"]["uid"]}
        status = self.review(self.token("team-a", "ci", "neurontrace", holder))
        self.assertIs(status["authenticated"], True)
        self.assertEqual(status["audiences"], ["neurontrace"])
        self.assertEqual(status["user"]["username"], "system:serviceaccount:team-a:ci")
        self.assertEqual(status["user"]["groups"],
                         ["system:serviceaccounts", "system:serviceaccounts:team-a", "system:authenticated"])
        self.assertEqual(status["user"]["extra"]["authentication.kubernetes.io/pod-name"], ["worker-0"])
        # As the README has a person make one.
        by_hand = self.type("kubectl -n team-a create token ci --audience neurontrace").strip()
        self.assertEqual(self.review(by_hand)["user"]["username"], "system:serviceaccount:team-a:ci")

    def test_a_token_dies_with_its_pod(self):
        pod = self.plane.request("POST", "/api/v1/namespaces/team-a/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker-1"},
            "spec": {"serviceAccountName": "ci", "containers": [{"name": "worker", "image": "example"}]}})
        holder = {"apiVersion": "v1", "kind": "Pod", "name": "worker-1", "uid": pod["metadata"]["uid"]}
        token = self.token("team-a", "ci", "neurontrace", holder)
        self.assertTrue(self.review(token)["authenticated"])
        self.remove("/api/v1/namespaces/team-a/pods/worker-1")
        # The server keeps what it found out for some seconds.
        wait_until(lambda: not self.review(token).get("authenticated"), "the token to be refused", WAIT_SECONDS_MAX)

    def test_other_tokens_are_unauthenticated(self):
        for what, token in {"of the API server's audience": self.token("team-a", "ci", None),
                            "of another": self.token("team-a", "ci", "vault"), "no token": "some-password"}.items():
            with self.subTest(what):
                status = self.review(token)
                self.assertFalse(status.get("authenticated", False))
                self.assertNotIn("username", status["user"])
                self.assertIn("error", status)

    def test_the_aggregators_own_token_does_this_alone(self):
        for path in ("/api/v1/namespaces/neurontrace/secrets", "/api/v1/namespaces/team-a/pods", "/api/v1/nodes"):
            with self.assertRaises(Refused) as refused:
                self.plane.request("GET", path, token=self.own)
            self.assertEqual(refused.exception.code, 403)
        with self.assertRaises(Refused) as refused:
            self.review(self.own, by=self.token("neurontrace", "neurontrace-agent", None))
        self.assertEqual(refused.exception.code, 403)


if __name__ == "__main__":
    suite.main()
