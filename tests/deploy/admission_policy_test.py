# SPDX-License-Identifier: Apache-2.0
"""The admission policy, as the API server's own evaluator applies it to pods."""
import copy
import json
import subprocess

import suite
from chart import POLICIES, ChartCase
from chart_values import ON_DEMAND

TAP = "/opt/neurontrace/libneurontrace_tap.so"
ASKED = {"neurontrace/inject": "true"}


def pod(*containers, annotations=None, labels=None, **spec):
    metadata = {"name": "worker-0", "namespace": "team-a", "annotations": ASKED if annotations is None else annotations}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata,
            "spec": {"containers": list(containers) or [container()], **spec}}


def container(name="worker", **fields):
    """One that has devices, unless it says otherwise."""
    return {"name": name, "image": "example", "resources": {"limits": {"aws.amazon.com/neuron": "1"}}, **fields}


def environment(made, index=0):
    """{name: value, or the field that it comes from}."""
    return {variable["name"]: variable.get("value", variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath"))
            for variable in made["spec"]["containers"][index]["env"]}


class AdmissionPolicyTest(ChartCase):
    def setUp(self):
        super().setUp()
        self.manifests = self.dir / "rendered.yaml"
        self.use({})

    def use(self, values):
        self.manifests.write_text(self.render({"injection": {"admissionPolicy": {"enabled": True}}, **values},
                                             "--api-versions", POLICIES), encoding="utf-8")

    def apply(self, *pods):
        done = subprocess.run([self.tools / "admission_policy", self.manifests], input=json.dumps(pods), text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        made = json.loads(done.stdout)
        texts = {f"pod-{i}": json.dumps({"apiVersion": "v1", "kind": "Pod", **thing}) for i, thing in enumerate(made)}
        self.assertEqual(self.find_faults(texts), "")
        return made[0] if len(made) == 1 else made

    def test_requesting_pod_gets_tap_socket_and_names(self):
        made = self.apply(pod())
        self.assertEqual(environment(made), {
            "LD_PRELOAD": TAP, "POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace",
            "NEURONTRACE_AGENT_SOCKET": "/run/neurontrace/agent.sock"})
        self.assertEqual({volume["name"]: volume["hostPath"]["path"] for volume in made["spec"]["volumes"]},
                         {"neurontrace-tap": "/var/lib/neurontrace/tap", "neurontrace-socket": "/run/neurontrace"})
        self.assertEqual({mount["name"]: (mount["mountPath"], mount["readOnly"])
                          for mount in made["spec"]["containers"][0]["volumeMounts"]},
                         {"neurontrace-tap": ("/opt/neurontrace", True), "neurontrace-socket": ("/run/neurontrace", True)})
        self.assertEqual(made["spec"]["securityContext"]["supplementalGroups"], [9400])

    def test_annotations_are_set_up_where_the_chart_asks_for_them(self):
        self.use({"injection": {"annotations": True, "admissionPolicy": {"enabled": True}}})
        made = self.apply(pod(container("worker"), container("profiled", env=[
            {"name": "NVTX_INJECTION64_PATH", "value": "/other.so"}]), container("proxy", resources={})))
        self.assertEqual(environment(made)["NVTX_INJECTION64_PATH"], "/opt/neurontrace/libneurontrace_annotate.so")
        self.assertEqual(environment(made, 1)["NVTX_INJECTION64_PATH"], "/other.so")
        self.assertNotIn("env", made["spec"]["containers"][2])

    def test_namespaces_with_claims_get_these_and_others_the_directories(self):
        self.use({"injection": {"admissionPolicy": {"enabled": True}, "claims": {"namespaces": ["team-a"]}}})
        other = pod()
        other["metadata"]["namespace"] = "team-b"
        claims, directories = self.apply(pod(), other)
        self.assertEqual({volume["name"]: volume["persistentVolumeClaim"] for volume in claims["spec"]["volumes"]},
                         {name: {"claimName": name, "readOnly": True} for name in ("neurontrace-tap", "neurontrace-socket")})
        self.assertTrue(all("hostPath" in volume for volume in directories["spec"]["volumes"]))
        self.assertEqual(claims["spec"]["containers"], directories["spec"]["containers"])

    def test_others_stay_as_they_are(self):
        others = [pod(annotations={}), pod(annotations={"neurontrace/inject": "false"})]
        for before, made in zip(others, self.apply(*copy.deepcopy(others))):
            self.assertEqual(made["spec"]["containers"], before["spec"]["containers"])
            self.assertNotIn("volumes", made["spec"])
            self.assertNotIn("securityContext", made["spec"])

    def preloading(self, made):
        """Names of the containers that load the tap; the others have nothing of ours."""
        found = []
        for i, thing in enumerate(made["spec"]["containers"]):
            if "env" in thing and TAP in (environment(made, i).get("LD_PRELOAD") or ""):
                found.append(thing["name"])
            else:
                self.assertNotIn("neurontrace", json.dumps([thing.get("env"), thing.get("volumeMounts")]))
        return found

    def test_containers_with_devices_get_the_tap_and_no_others(self):
        """A sidecar with another C library does not start with it."""
        made = self.apply(pod(
            container("proxy", resources={}, env=[{"name": "LD_PRELOAD", "value": "libproxy.so"}]), container("worker"),
            container("core", resources={"requests": {"aws.amazon.com/neuroncore": "2"}}),
            container("device", resources={"limits": {"aws.amazon.com/neurondevice": "1"}}),
            container("other", resources={"limits": {"cpu": "1", "example.com/neuron": "1"}})))
        self.assertEqual(self.preloading(made), ["worker", "core", "device"])
        self.assertEqual(environment(made)["LD_PRELOAD"], "libproxy.so")

    def test_the_annotation_names_containers_instead(self):
        def named(names):
            return self.preloading(self.apply(pod(container("a", resources={}), container("b"), container("c", resources={}),
                                                  annotations={**ASKED, "neurontrace/containers": names})))

        self.assertEqual(named("a"), ["a"])
        self.assertEqual(named("c, a"), ["a", "c"])
        self.assertEqual(named("b,d"), ["b"])
        self.assertEqual(named(""), [])

    def test_a_pod_without_such_a_container_stays_as_it_is(self):
        for more in ({}, {"neurontrace/containers": "elsewhere"}):
            made = self.apply(pod(container(resources={}), annotations={**ASKED, **more}))
            self.assertEqual(made["spec"]["containers"], [container(resources={})])
            self.assertNotIn("volumes", made["spec"])
            self.assertNotIn("securityContext", made["spec"])

    def test_nothing_is_made_that_a_pod_would_be_refused_or_held_up_for(self):
        """Two volumes of a name, two mounts at a path, a folder that a node does not have."""
        taken = {"name": "mine", "emptyDir": {}}
        for before in (pod(volumes=[{**taken, "name": "neurontrace-socket"}]),
                       pod(container(volumeMounts=[{"name": "mine", "mountPath": "/opt/neurontrace"}]), volumes=[taken]),
                       pod(container(volumeMounts=[{"name": "mine", "mountPath": "/run/neurontrace"}]), volumes=[taken])):
            made = self.apply(copy.deepcopy(before))
            self.assertEqual(made["spec"]["volumes"], before["spec"]["volumes"])
            self.assertEqual(made["spec"]["containers"], before["spec"]["containers"])
        self.assertEqual({volume["hostPath"]["type"] for volume in self.apply(pod())["spec"]["volumes"]}, {"DirectoryOrCreate"})

    def test_a_second_time_changes_nothing(self):
        once = self.apply(pod())
        self.assertEqual(self.apply(copy.deepcopy(once)), once)

    def test_container_preloads_follow_the_tap(self):
        made = self.apply(pod(
            container("a", env=[{"name": "X", "value": "y"}, {"name": "LD_PRELOAD", "value": "libjemalloc.so.2"}]),
            container("b", env=[{"name": "LD_PRELOAD", "value": ""}]),
            container("c", env=[{"name": "LD_PRELOAD", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]),
            container("d")))
        self.assertEqual([environment(made, i)["LD_PRELOAD"] for i in range(4)],
                         [f"{TAP}:libjemalloc.so.2", TAP, None, TAP])
        self.assertEqual(environment(made)["X"], "y")
        names = [variable["name"] for thing in made["spec"]["containers"] for variable in thing["env"]]
        self.assertEqual(names.count("LD_PRELOAD"), 4)

    def test_keeps_existing_pod_settings(self):
        made = self.apply(pod(
            container(env=[{"name": "NEURONTRACE_JOB", "value": "mine"}, {"name": "POD_NAME", "value": "me"}],
                      volumeMounts=[{"name": "data", "mountPath": "/data"}]),
            labels={"batch.kubernetes.io/job-name": "theirs"}, volumes=[{"name": "data", "emptyDir": {}}],
            securityContext={"runAsUser": 1000, "supplementalGroups": [7]}))
        self.assertEqual(environment(made)["NEURONTRACE_JOB"], "mine")
        self.assertEqual(environment(made)["POD_NAME"], "me")
        self.assertEqual([volume["name"] for volume in made["spec"]["volumes"]],
                         ["data", "neurontrace-tap", "neurontrace-socket"])
        self.assertEqual(made["spec"]["containers"][0]["volumeMounts"][0]["mountPath"], "/data")
        self.assertEqual(made["spec"]["securityContext"], {"runAsUser": 1000, "supplementalGroups": [7, 9400]})
        bare = self.apply(pod(securityContext={"runAsUser": 1000}))
        self.assertEqual(bare["spec"]["securityContext"], {"runAsUser": 1000, "supplementalGroups": [9400]})

    def test_job_name_comes_from_annotation_or_pod_owner(self):
        def job(labels, **annotations):
            return environment(self.apply(pod(labels=labels, annotations={**ASKED, **annotations}))).get("NEURONTRACE_JOB")

        kubeflow = {"training.kubeflow.org/job-name": "kubeflow", "batch.kubernetes.io/job-name": "batch"}
        self.assertEqual(job(kubeflow), "kubeflow")
        self.assertEqual(job(kubeflow, **{"neurontrace/job": "given"}), "given")
        self.assertEqual(job({"jobset.sigs.k8s.io/jobset-name": "set", "batch.kubernetes.io/job-name": "set-0"}), "set")
        self.assertEqual(job({"batch.kubernetes.io/job-name": "batch"}), "batch")
        self.assertEqual(job({"ray.io/cluster": "ray"}), "ray")
        self.assertIsNone(job({"app": "something"}))

    def test_labels_of_a_job_come_from_the_annotation(self):
        made = self.apply(pod(annotations={**ASKED, "neurontrace/labels": "team=search,run=7"}))
        self.assertEqual(environment(made)["NEURONTRACE_LABELS"], "team=search,run=7")

    def test_paths_and_group_are_those_of_the_agent(self):
        self.use({"agent": {"hostPaths": {"socket": "/var/run/nt", "tap": "/opt/nt"}, "socketGroup": 77}})
        made = self.apply(pod())
        self.assertEqual(environment(made)["NEURONTRACE_AGENT_SOCKET"], "/var/run/nt/agent.sock")
        self.assertEqual([volume["hostPath"]["path"] for volume in made["spec"]["volumes"]], ["/opt/nt", "/var/run/nt"])
        self.assertEqual(made["spec"]["securityContext"]["supplementalGroups"], [77])

    def test_pods_that_ask_can_be_asked_for_framework_traces(self):
        self.use(ON_DEMAND)
        asks = {**ASKED, "neurontrace/framework": "true"}
        other, silent, made = self.apply(pod(annotations={**ASKED, "neurontrace/framework": "false"}), pod(), pod(
            container(env=[{"name": "KINETO_ONDEMAND_TRACE_DIR", "value": "/mine"}]), container("sidecar", resources={}),
            annotations=asks))
        for plain in (other, silent):
            self.assertNotIn("kineto", json.dumps(plain).lower())
        variables = environment(made)
        self.assertEqual({name: variables[name] for name in variables if "KINETO" in name}, {
            "KINETO_USE_DAEMON": "1", "KINETO_IPC_SOCKET_DIR": "/run/neurontrace-kineto", "KINETO_ONDEMAND_TRACE_DIR": "/mine"})
        mounts = {mount["name"]: mount for mount in made["spec"]["containers"][0]["volumeMounts"]}
        volumes = {volume["name"]: volume["hostPath"]["path"] for volume in made["spec"]["volumes"]}
        for name, path in ("kineto", "/run/neurontrace-kineto"), ("traces", "/var/lib/neurontrace/traces"):
            self.assertEqual((mounts[f"neurontrace-{name}"]["mountPath"], volumes[f"neurontrace-{name}"]), (path, path))
            self.assertNotIn("readOnly", mounts[f"neurontrace-{name}"])
        self.assertEqual(made["spec"]["securityContext"]["supplementalGroups"], [9400])
        self.assertNotIn("volumeMounts", made["spec"]["containers"][1])
        self.assertEqual(self.apply(copy.deepcopy(made)), made)

    def test_framework_traces_in_namespaces_with_claims(self):
        self.use({**ON_DEMAND, "injection": {"admissionPolicy": {"enabled": True}, "claims": {"namespaces": ["team-a"]}}})
        made = self.apply(pod(annotations={**ASKED, "neurontrace/framework": "true"}))
        claims = {volume["name"]: volume["persistentVolumeClaim"] for volume in made["spec"]["volumes"]}
        for name in ("neurontrace-kineto", "neurontrace-traces"):
            self.assertEqual(claims[name], {"claimName": name})

    def test_an_expression_that_is_none_is_refused(self):
        text = self.manifests.read_text(encoding="utf-8")
        self.manifests.write_text(text.replace("transformList(i, c,", "transformLists(i, c,"), encoding="utf-8")
        done = subprocess.run([self.tools / "admission_policy", self.manifests], input="[]", text=True,
                              capture_output=True, check=False)
        self.assertIn("transformLists", done.stderr)
        self.assertEqual(done.returncode, 1)


if __name__ == "__main__":
    suite.main()
