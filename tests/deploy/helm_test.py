# SPDX-License-Identifier: Apache-2.0
"""The chart: linted, rendered with a matrix of values, compared with schemas, with the programs' options, and with a golden
render. NT_UPDATE_GOLDEN=1 writes the golden render again."""
import json
import os
import pathlib
import re
import subprocess

import suite
from chart import CHART, GOLDEN, MINIMAL, POLICIES, ROOT, ChartCase, containers_of, merged, pod_of, yaml
from chart_values import EVERYTHING, MATRIX, MONITORED, ON_DEMAND, PEER, REFUSED, TYPOS

# What it takes to read fd and environ of another user's process; root without them is as anybody.
LOOKING = ["DAC_READ_SEARCH", "SYS_PTRACE"]


class RenderTest(ChartCase):
    def renders(self):
        return {name: self.render(values, "--api-versions", POLICIES) for name, values in MATRIX.items()}

    def test_lint_finds_nothing(self):
        for values in MINIMAL, merged(MINIMAL, MATRIX["load-balancer"]):
            done = self.helm("lint", "--strict", values=values)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotRegex(done.stdout, r"\[(WARNING|ERROR)\]")

    def test_every_render_is_what_kubernetes_takes(self):
        self.assertEqual(self.find_faults(self.renders()), "")

    def test_a_field_that_kubernetes_does_not_have_is_found(self):
        text = self.render()
        self.assertIn("failureThreshold", text)
        faults = self.find_faults({"broken": text.replace("failureThreshold", "failureTreshold")})
        self.assertIn("failureTreshold", faults)
        self.assertIn("DaemonSet", faults)
        monitors = self.render(MONITORED).replace("scrapeTimeout", "scrapeTime")
        self.assertIn("ServiceMonitor", self.find_faults({"broken": monitors}))

    def test_examples_are_what_kubernetes_takes(self):
        texts = {path.stem: path.read_text(encoding="utf-8") for path in (CHART / "examples").glob("*.yaml")}
        self.assertIn("worker", texts)
        self.assertEqual(self.find_faults(texts), "")

    def test_the_example_for_eks(self):
        values = yaml.safe_load((ROOT / "examples" / "eks" / "values.yaml").read_text(encoding="utf-8"))
        done = self.helm("template", values=values)  # with nothing else, as the example's page has it
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.find_faults({"eks": done.stdout}), "")
        self.assertIn("storageClassName: gp3", done.stdout)

    def test_values_that_contradict_are_refused_with_the_value_to_set(self):
        for word, values in REFUSED.items():
            with self.subTest(word):
                self.assertIn(word, self.refusal(merged(MINIMAL, values)))

    def test_typos_are_refused_by_name(self):
        for name, values in TYPOS.items():
            with self.subTest(name):
                words = self.refusal(merged(MINIMAL, values))
                self.assertIn("values don't meet the specifications of the schema", words)
                self.assertIn(name, words)

    def test_the_readme_names_values_that_are_there(self):
        values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
        readme = (CHART / "README.md").read_text(encoding="utf-8")
        rows = [row.split("|")[1] for row in readme.split("| value |")[1].split("## ")[0].splitlines() if row.startswith("| `")]
        self.assertGreater(len(rows), 25)
        for row in rows:
            whole = re.findall("`([^`]+)`", row)
            for name in whole:
                path = whole[0].rsplit(".", 1)[0] + name if name.startswith(".") else name
                found = values
                for part in path.split("."):
                    self.assertIn(part, found, path)
                    found = found[part]

    def test_names_stay_within_what_kubernetes_takes(self):
        things = self.things({"fullnameOverride": "n" * 60})
        for kind, name in things:
            self.assertLessEqual(len(name), 63, kind)

    def test_the_default_render_is_the_golden_one(self):
        path, text = GOLDEN / "default.yaml", self.render()
        if os.environ.get("NT_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        self.assertEqual(text.splitlines(), path.read_text(encoding="utf-8").splitlines(),
                         "NT_UPDATE_GOLDEN=1 rewrites it: look at what changed")

    def test_notes_contain_next_command(self):
        notes = self.notes({})
        self.assertIn("kubectl -n neurontrace port-forward service/neurontrace-aggregator 9400", notes)
        self.assertIn("get secret neurontrace-operator-tls", notes)
        self.assertIn("neurontrace capture", notes)
        self.assertNotIn("create token", notes)
        self.assertIn("delete pod neurontrace-aggregator-0", notes)
        self.assertIn("--audience traces", self.notes(EVERYTHING | {"injection": {}}))
        self.assertIn("--insecure status", self.notes(MATRIX["insecure"]))
        self.assertIn("aggregator.example:9400", self.notes(MATRIX["agents-only"]))

    def notes(self, values):
        """As helm install prints them, which needs a cluster."""
        chart = self.dir / "chart"
        if not chart.exists():
            subprocess.run(["cp", "-rL", CHART, chart], check=True)
            (chart / "templates" / "shown.yaml").write_text(
                'kind: Notes\ntext: |\n  {{- include (print $.Template.BasePath "/NOTES.txt") . | nindent 2 }}\n',
                encoding="utf-8")
        return self.render(values, "--show-only", "templates/shown.yaml", chart=chart)


class ManifestTest(ChartCase):
    """Contents of manifests that schemas do not check."""

    def of_each(self, check):
        for name, values in MATRIX.items():
            with self.subTest(name):
                check(name, self.things(values, "--api-versions", POLICIES))

    def test_containers_have_minimal_rights(self):
        self.of_each(self.check_pods)

    def check_pods(self, name, things):
        for (kind, _), thing in things.items():
            for container in containers_of(thing):
                self.check_rights(container, name)
            if not pod_of(thing):
                continue
            spec = pod_of(thing)["spec"]
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            is_aggregator = kind == "StatefulSet"
            # A token is there where tokens of others are reviewed, and nowhere else.
            self.assertEqual(spec["automountServiceAccountToken"], is_aggregator and name == "everything")
            self.assertEqual(spec["securityContext"].get("runAsNonRoot", False), is_aggregator)
            self.assertNotEqual(any("hostPath" in volume for volume in spec["volumes"]), is_aggregator)

    def check_rights(self, container, name):
        context = container["securityContext"]
        self.assertTrue(context["readOnlyRootFilesystem"])
        self.assertFalse(context["allowPrivilegeEscalation"])
        self.assertNotIn("privileged", context)
        self.assertEqual(context["capabilities"]["drop"], ["ALL"])
        looks = container["name"] == "agent" and name != "everything"
        self.assertEqual(context["capabilities"].get("add", []), LOOKING if looks else [])
        for resources in container["resources"].values():
            self.assertFalse([resource for resource in resources if "neuron" in resource])

    def test_process_inspection_requires_both_capabilities(self):
        for scan in (True, False):
            for kubelet in (True, False):
                things = self.things({"agent": {"processScan": scan, "podResources": kubelet}})
                _, agent = containers_of(things["DaemonSet", "neurontrace-agent"])
                self.assertEqual(agent["securityContext"]["capabilities"].get("add", []), LOOKING if scan or kubelet else [])

    def test_explicit_security_settings_win(self):
        for section, workload in ("agent", ("DaemonSet", "neurontrace-agent")), ("aggregator", ("StatefulSet", "neurontrace-aggregator")):
            plain, own = (self.things(values)[workload] for values in ({}, {section: {
                "securityContext": {"readOnlyRootFilesystem": False, "capabilities": {"drop": []}},
                "podSecurityContext": {"runAsUser": 0, "runAsNonRoot": False, "seccompProfile": {"type": "Unconfined"}}}}))
            before, after = (containers_of(thing)[-1]["securityContext"] for thing in (plain, own))
            self.assertEqual(after, merged(before, {"readOnlyRootFilesystem": False, "capabilities": {"drop": []}}))
            before, after = (pod_of(thing)["spec"]["securityContext"] for thing in (plain, own))
            self.assertEqual(after, merged(before, {"runAsUser": 0, "runAsNonRoot": False, "seccompProfile": {"type": "Unconfined"}}))

    def test_mounted_paths_exist(self):
        self.of_each(self.check_mounts)

    def check_mounts(self, _, things):
        made = {"aggregator-tls", "agent-tls", "fsx-claim"}  # those that values name
        made |= {name for kind, name in things if kind in ("Secret", "ConfigMap", "PersistentVolumeClaim")}
        made |= {thing["spec"]["secretName"] for (kind, _), thing in things.items() if kind == "Certificate"}
        for thing in filter(pod_of, things.values()):
            spec = pod_of(thing)["spec"]
            self.assertIn(("ServiceAccount", spec["serviceAccountName"]), things)
            names = {volume["name"] for volume in spec["volumes"]}
            names |= {claim["metadata"]["name"] for claim in thing["spec"].get("volumeClaimTemplates", [])}
            mounted = {mount["name"] for container in containers_of(thing) for mount in container["volumeMounts"]}
            self.assertEqual(mounted, names)
            for volume in spec["volumes"]:
                source = volume.get("secret", {}).get("secretName") or volume.get("configMap", {}).get("name") or \
                    volume.get("persistentVolumeClaim", {}).get("claimName")
                self.assertIn(source, made | {None})

    def test_an_aggregator_that_is_not_ready_is_replaced_and_drained(self):
        things = self.things()
        self.assertEqual(things["StatefulSet", "neurontrace-aggregator"]["spec"]["podManagementPolicy"], "Parallel")
        budget = things["PodDisruptionBudget", "neurontrace-aggregator"]["spec"]
        self.assertEqual((budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]), (1, "AlwaysAllow"))

    def test_a_repair_has_the_time_that_it_is_given(self):
        for minutes in (None, 30, 44640):
            things = self.things({"aggregator": {"startupMinutes": minutes}} if minutes else {})
            probe = containers_of(things["StatefulSet", "neurontrace-aggregator"])[0]["startupProbe"]
            self.assertEqual(probe["failureThreshold"] * probe["periodSeconds"], 60 * (minutes or 24 * 60))

    def test_selectors_select(self):
        self.of_each(self.check_selectors)

    def check_selectors(self, _, things):
        pods = [pod_of(thing) for thing in things.values() if pod_of(thing)]
        for (kind, name), thing in things.items():
            if kind in ("DaemonSet", "StatefulSet", "PodDisruptionBudget", "PodMonitor"):
                wanted = thing["spec"]["selector"]["matchLabels"]
            elif kind == "NetworkPolicy":
                wanted = thing["spec"]["podSelector"]["matchLabels"]
            elif kind == "Service":
                wanted = thing["spec"]["selector"]
            else:
                continue
            chosen = [pod for pod in pods if wanted.items() <= pod["metadata"]["labels"].items()]
            self.assertEqual(len(chosen), 1, f"{kind} {name}")
            ports = {port["name"] for c in chosen[0]["spec"]["containers"] for port in c["ports"]}
            if kind == "Service":
                self.assertLessEqual({port["targetPort"] for port in thing["spec"]["ports"]}, ports)
            if kind == "PodMonitor":
                self.assertLessEqual({end["port"] for end in thing["spec"]["podMetricsEndpoints"]}, ports)

    def test_the_service_monitor_finds_one_service(self):
        things = self.things(MONITORED)
        monitor = things["ServiceMonitor", "neurontrace-aggregator"]["spec"]
        services = [thing for (kind, _), thing in things.items() if kind == "Service" and
                    monitor["selector"]["matchLabels"].items() <= thing["metadata"]["labels"].items()]
        self.assertEqual(len(services), 1)
        self.assertIn(monitor["endpoints"][0]["port"], [port["name"] for port in services[0]["spec"]["ports"]])
        for name, port in ("neurontrace-aggregator", 9402), ("neurontrace-agent", 9401):
            rules = [rule for rule in things["NetworkPolicy", name]["spec"]["ingress"] if rule["from"] == PEER]
            self.assertEqual([rule["ports"] for rule in rules], [[{"port": port, "protocol": "TCP"}]])

    def test_dashboards_are_those_of_observability(self):
        kept = {path.name: json.loads(path.read_text(encoding="utf-8"))
                for path in (ROOT / "deploy" / "observability" / "dashboards").glob("*.json")}
        self.assertTrue(kept)
        given = {}
        for (kind, name), thing in self.things({"dashboards": {"enabled": True}}).items():
            if kind == "ConfigMap":
                self.assertEqual(thing["metadata"]["labels"]["grafana_dashboard"], "1", name)
                given.update({file: json.loads(text) for file, text in thing["data"].items()})
        self.assertEqual(given, kept)

    def test_alerts_are_those_of_observability(self):
        kept = yaml.safe_load((ROOT / "deploy" / "observability" / "alerts.yaml").read_text(encoding="utf-8"))
        things = self.things({"prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}}})
        rule = things["PrometheusRule", "neurontrace"]
        self.assertEqual(rule["spec"], kept)
        self.assertGreater(len(rule["spec"]["groups"][0]["rules"]), 3)
        self.assertEqual(rule["metadata"]["labels"]["release"], "prometheus")

    def test_token_reviewer_has_no_other_rights(self):
        things = self.things({"aggregator": {"access": "[ci]\n", "kubernetesTokens": {"enabled": True}}})
        name = "neurontrace-neurontrace-token-review"
        self.assertEqual(things["ClusterRole", name]["rules"], [
            {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]}])
        binding = things["ClusterRoleBinding", name]
        self.assertEqual(binding["roleRef"]["name"], name)
        account = pod_of(things["StatefulSet", "neurontrace-aggregator"])["spec"]["serviceAccountName"]
        self.assertEqual(binding["subjects"], [{"kind": "ServiceAccount", "name": account, "namespace": "neurontrace"}])
        self.assertFalse([kind for kind, _ in self.things() if kind.startswith("ClusterRole")])

    def test_agents_go_where_neuron_is_and_request_none(self):
        spec = pod_of(self.things()["DaemonSet", "neurontrace-agent"])["spec"]
        terms = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        self.assertEqual([term["matchExpressions"][0]["key"] for term in terms],
                         ["neuron.amazonaws.com/present", "node.kubernetes.io/instance-type"])
        # Whatever taint keeps other pods away from these nodes.
        self.assertEqual(spec["tolerations"], [{"operator": "Exists"}])
        own = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
        changed = pod_of(self.things({"agent": {"affinity": own}})["DaemonSet", "neurontrace-agent"])["spec"]
        self.assertEqual(changed["affinity"], own)

    def test_certificates_have_names_and_roles(self):
        things = self.things()
        aggregator = things["Certificate", "neurontrace-aggregator"]["spec"]
        address = next(arg for arg in self.args("DaemonSet", things) if arg.startswith("--aggregator="))
        self.assertIn(address.removeprefix("--aggregator=").rsplit(":", 1)[0], aggregator["dnsNames"])
        self.assertIn("localhost", aggregator["dnsNames"])
        self.assertEqual(things["Certificate", "neurontrace-agent"]["spec"]["uris"], ["neurontrace:agent"])
        self.assertEqual(things["Certificate", "neurontrace-operator"]["spec"]["uris"], ["neurontrace:operator"])

    def test_no_values_are_needed(self):
        done = self.helm("template")
        self.assertEqual(done.returncode, 0, done.stderr)
        things = self.parse(done.stdout)
        self.check_encryption("no values", things)
        self.check_mounts("no values", things)
        self.assertEqual(self.find_faults({"no-values": done.stdout}), "")
        names = {name for kind, name in things if kind == "Secret"}
        self.assertEqual(names, {"neurontrace-ca", "neurontrace-aggregator-tls", "neurontrace-agent-tls", "neurontrace-operator-tls",
                                 "neurontrace-aggregator-access"})

    def test_rules_that_are_given_are_added_to_those_of_the_charts_own_certificates(self):
        done = self.helm("template", values={"aggregator": {"access": '[alice]\ncertificate = "cn:alice"\nrole = "admin"\n'}})
        text = self.parse(done.stdout)["Secret", "neurontrace-aggregator-access"]["stringData"]["access.toml"]
        self.assertEqual(re.findall(r"(?m)^\[(.*)\]$", text), ["neurontrace-agents", "neurontrace-operator", "alice"])

    def own_secrets(self, values, kept):
        """The secrets of certificates that an upgrade makes where `kept` are in the cluster."""
        chart = self.dir / "own"
        if not chart.exists():
            subprocess.run(["cp", "-rL", CHART, chart], check=True)
            (chart / "values.schema.json").unlink()
            template = chart / "templates" / "own_certificates.yaml"
            text = template.read_text(encoding="utf-8")
            self.assertEqual(text.count('lookup "v1" "Secret" $namespace'), 2)
            template.write_text(text.replace('lookup "v1" "Secret" $namespace', "get (default dict $.Values.kept)"), encoding="utf-8")
        done = self.helm("template", values={**values, "kept": kept}, chart=chart)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {name: thing for (kind, name), thing in self.parse(done.stdout).items() if kind == "Secret" and "data" in thing}

    def test_an_upgrade_keeps_the_charts_own_certificates(self):
        first = self.own_secrets({}, {})
        self.assertEqual(len(first), 4)
        self.assertEqual(self.own_secrets({}, first), first)
        more = self.own_secrets({"tls": {"own": {"aggregatorDnsNames": ["traces.example.com"]}}}, first)
        changed = {name for name in first if more[name]["data"] != first[name]["data"]}
        self.assertEqual(changed, {"neurontrace-aggregator-tls"})
        first["neurontrace-agent-tls"]["metadata"]["annotations"]["neurontrace/ends-at"] = "1790000000"
        renewed = self.own_secrets({}, first)
        changed = {name for name in first if renewed[name]["data"] != first[name]["data"]}
        self.assertEqual(changed, {"neurontrace-agent-tls"})
        self.assertGreater(int(renewed["neurontrace-agent-tls"]["metadata"]["annotations"]["neurontrace/ends-at"]), 1900000000)

    def test_namespaces_that_allow_no_host_paths_get_claims(self):
        things = self.things({"injection": {"claims": {"namespaces": ["team-a"]}}})
        for what, path in ("tap", "/var/lib/neurontrace/tap"), ("socket", "/run/neurontrace"):
            claim = things["PersistentVolumeClaim", f"neurontrace-{what}"]
            volume = things["PersistentVolume", claim["spec"]["volumeName"]]
            self.assertEqual(claim["metadata"]["namespace"], "team-a")
            self.assertEqual(volume["spec"]["hostPath"]["path"], path)
            self.assertEqual(volume["spec"]["claimRef"], {"namespace": "team-a", "name": f"neurontrace-{what}"})
            self.assertEqual(volume["spec"]["accessModes"], claim["spec"]["accessModes"])

    def test_claims_of_framework_traces_are_written_to(self):
        things = self.things(MATRIX["framework-on-demand"], "--api-versions", POLICIES)
        modes = {name.removeprefix("neurontrace-"): thing["spec"]["accessModes"][0]
                 for (kind, name), thing in things.items() if kind == "PersistentVolumeClaim" and name.startswith("neurontrace-")}
        self.assertEqual(modes, {"tap": "ReadOnlyMany", "socket": "ReadOnlyMany", "kineto": "ReadWriteMany",
                                 "traces": "ReadWriteMany"})

    def test_agent_and_workers_have_the_paths_of_framework_traces(self):
        """Orders name a file, and a socket's directory is in the environment of workers."""
        agent = self.things(ON_DEMAND)["DaemonSet", "neurontrace-agent"]["spec"]["template"]["spec"]
        container = agent["containers"][0]
        for argument in ("--framework-dir=/var/lib/neurontrace/traces", "--kineto-dir=/run/neurontrace-kineto",
                         "--kineto-group=9400"):
            self.assertIn(argument, container["args"])
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in agent["volumes"] if "hostPath" in volume}
        mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
        for name, writes in (("framework", False), ("kineto", True)):
            self.assertEqual(mounts[name]["mountPath"], paths[name])
            self.assertEqual(not mounts[name].get("readOnly", False), writes)
        prepare = next(one for one in agent["initContainers"] if one["name"] == "prepare-framework-dir")
        self.assertEqual(prepare["command"][-3:], ["--mode=1770", "--group=9400", "/var/lib/neurontrace/traces"])

    def test_a_load_balancer_has_both_protocols_and_is_let_in(self):
        things = self.things(MATRIX["load-balancer"])
        service = things["Service", "neurontrace-aggregator"]
        self.assertEqual([(port["port"], port["protocol"]) for port in service["spec"]["ports"]], [(9400, "TCP"), (9400, "UDP")])
        self.assertEqual(service["metadata"]["annotations"]["service.beta.kubernetes.io/aws-load-balancer-enable-tcp-udp-listener"],
                         "true")
        agents, *others = things["NetworkPolicy", "neurontrace-aggregator"]["spec"]["ingress"][0]["from"]
        self.assertIn("podSelector", agents)
        # Whoever the load balancer takes, the policy takes too.
        self.assertLessEqual(set(service["spec"]["loadBalancerSourceRanges"]), {peer["ipBlock"]["cidr"] for peer in others})
        self.assertIn("traces.example.com", things["Certificate", "neurontrace-aggregator"]["spec"]["dnsNames"])

    def test_the_page_has_a_port_that_chosen_peers_reach(self):
        for view, ports in (({}, []), ({"enabled": True, "port": 8443}, [8443])):
            peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
            things = self.things({"aggregator": {"view": view}, "networkPolicy": {"viewFrom": peers}})
            service = things["Service", "neurontrace-aggregator"]["spec"]["ports"]
            self.assertEqual([port["port"] for port in service if port["name"] == "page"], ports)
            container = containers_of(things["StatefulSet", "neurontrace-aggregator"])[-1]
            self.assertEqual([port["containerPort"] for port in container["ports"] if port["name"] == "page"], ports)
            self.assertEqual([arg for arg in container["args"] if arg.startswith("--view")],
                             [f"--view-address=0.0.0.0:{port}" for port in ports])
            rules = things["NetworkPolicy", "neurontrace-aggregator"]["spec"]["ingress"]
            self.assertEqual([rule["ports"][0]["port"] for rule in rules if rule["from"] == peers], ports)
        everything = self.args("StatefulSet", self.things(EVERYTHING, "--api-versions", POLICIES))
        self.assertIn("--view-host=traces.example.com,traces", everything)
        self.assertIn("--view-url=https://traces.example.com", everything)

    def test_keys_have_a_size_of_their_algorithm(self):
        for given, size in (({}, 256), ({"privateKeySize": 384}, 384), ({"privateKeyAlgorithm": "RSA"}, 3072),
                            ({"privateKeyAlgorithm": "RSA", "privateKeySize": 4096}, 4096)):
            things = self.things({"tls": {"certManager": given}})
            keys = [thing["spec"]["privateKey"] for (kind, _), thing in things.items() if kind == "Certificate"]
            self.assertEqual([key["size"] for key in keys], 4 * [size])

    def test_a_file_system_has_a_speed_where_its_type_has(self):
        for deployment, speed in ("SCRATCH_2", None), ("PERSISTENT_1", "200"), ("PERSISTENT_2", "1000"):
            fsx = {**MATRIX["fsx"]["storageClasses"]["fsx"], "deploymentType": deployment,
                   **({"perUnitStorageThroughput": speed} if speed else {})}
            made = self.things({"storageClasses": {"fsx": fsx}})["StorageClass", "fsx-sc"]["parameters"]
            self.assertEqual((made["deploymentType"], made.get("perUnitStorageThroughput")), (deployment, speed))

    @staticmethod
    def args(kind, things):
        """What the workload of this kind gives its program; nothing where there is none."""
        return next((containers_of(thing)[-1]["args"] for (what, _), thing in things.items() if what == kind), [])

    def test_ports_listen_where_pods_have_their_addresses(self):
        for values, host in (({}, "0.0.0.0"), (MATRIX["ipv6"], "[::]")):
            things = self.things(values)
            given = {arg for kind in ("DaemonSet", "StatefulSet") for arg in self.args(kind, things)
                     if arg.startswith(("--listen", "--health-address"))}
            self.assertEqual(given, {f"--health-address={host}:9401", f"--listen={host}:9400", f"--health-address={host}:9402"})

    def test_programs_know_the_options_that_they_are_given(self):
        programs = {"DaemonSet": "neurontrace-agent", "StatefulSet": "neurontrace-aggregator"}
        given = {kind: set() for kind in programs}

        def collect(_, things):
            for kind, options in given.items():
                options.update(arg.split("=", 1)[0] for arg in self.args(kind, things))

        self.of_each(collect)
        for kind, program in programs.items():
            binary = pathlib.Path(os.environ["NT_BUILD_DIR"]) / "bin" / program
            reported = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
            known = set(re.findall(r"--[a-z0-9]+(?:-[a-z0-9]+)*", reported))
            self.assertEqual(given[kind] - known, set(), program)
            self.assertGreater(len(given[kind]), 15)

    def test_plain_text_only_on_request(self):
        self.of_each(self.check_encryption)

    def check_encryption(self, name, things):
        for kind in ("DaemonSet", "StatefulSet"):
            options = {arg.split("=", 1)[0] for arg in self.args(kind, things)}
            if options:
                self.assertEqual("--insecure" in options, name == "insecure", kind)
                tls = {"--tls-ca", "--tls-cert", "--tls-key"}
                self.assertEqual(options & tls, set() if name == "insecure" else tls, kind)

    def test_worker_example_matches_tap_variables(self):
        worker = self.parse((CHART / "examples" / "worker.yaml").read_text(encoding="utf-8"))["Job", "llama-70b"]
        read = set(re.findall(r'"([A-Z][A-Z0-9_]+)"', "".join(
            path.read_text(encoding="utf-8") for path in (ROOT / "tap").iterdir() if path.suffix in (".cc", ".h"))))
        names = {variable["name"] for variable in containers_of(worker)[0]["env"]}
        kineto = {"KINETO_USE_DAEMON", "KINETO_IPC_SOCKET_DIR", "KINETO_ONDEMAND_TRACE_DIR"}  # read by PyTorch
        self.assertEqual(names - read, {"LD_PRELOAD", "NVTX_INJECTION64_PATH", *kineto})
        agent = pod_of(self.things(ON_DEMAND)["DaemonSet", "neurontrace-agent"])["spec"]
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in agent["volumes"] if "hostPath" in volume}
        mounted = {volume["name"]: volume["hostPath"]["path"] for volume in pod_of(worker)["spec"]["volumes"]}
        self.assertEqual(mounted, {"neurontrace-tap": paths["tap"], "neurontrace-socket": paths["socket"],
                                   "neurontrace-kineto": paths["kineto"], "neurontrace-traces": paths["framework"]})
        self.assertEqual(pod_of(worker)["spec"]["securityContext"]["supplementalGroups"],
                         [agent["securityContext"]["runAsGroup"]])


if __name__ == "__main__":
    suite.main()
