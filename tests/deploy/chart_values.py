# SPDX-License-Identifier: Apache-2.0
"""The values that tests render the chart with: the matrix, and what is refused."""
from chart import CHART, MINIMAL, merged, yaml

PEER = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
MONITORED = {"serviceMonitor": {"enabled": True}, "networkPolicy": {"metricsFrom": PEER}}
GIVEN = {"tls": {"certManager": {"enabled": False}, "secrets": {"aggregator": "aggregator-tls", "agent": "agent-tls"}}}
TRACES = {"name": "traces", "mountPath": "/shared/traces", "exportRoot": True}
ON_DEMAND = {"agent": {"frameworkDir": "/var/lib/neurontrace/traces", "kinetoDir": "/run/neurontrace-kineto"}}
EVERYTHING = {
    "labels": {"team": "platform"}, "annotations": {"owner": "platform"}, "imagePullSecrets": [{"name": "registry"}],
    "tls": {"serverName": "aggregator.example"},
    "agent": {"processScan": False, "hostPID": False, "instanceId": "imds", "inspectDirs": ["/var/neuron/inspect"],
              "frameworkDir": "/var/neuron/traces", "podResources": False, "logFormat": "text",
              "socketMode": "0666", "clocks": {"clockBound": True},
              "extraArgs": ["--worker-count=64"], "extraEnv": [{"name": "A", "value": "b"}], "runtimeClassName": "r",
              "podAnnotations": {"a": "b"}, "podLabels": {"c": "d"}, "nodeSelector": {"e": "f"},
              "image": {"digest": "sha256:" + "0" * 64}, "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}},
    "aggregator": {"quotas": {"captureBytes": "5GiB", "jobBytes": "50GiB", "storeBytes": "150GiB"},
                   "access": '[alice]\ncertificate = "cn:alice"\nrole = "operator"\n'
                             '[ci]\nservice-account = "team-a/ci"\nrole = "operator"\n',
                   "kubernetesTokens": {"enabled": True, "audience": "traces"}, "logFormat": "text",
                   "triggers": '[slow]\nwhen = "post"\n', "exportRoots": ["s3://bucket/prefix"],
                   "standingExports": ['{name = "all", to = "/shared/traces", formats = ["perfetto", "json"]}'],
                   "view": {"enabled": True, "hosts": ["traces.example.com", "traces"], "url": "https://traces.example.com"},
                   "s3": {"endpoint": "s3.example:9000", "region": "us-west-2"},
                   "persistence": {"storageClassName": "gp3"}, "podDisruptionBudget": {"maxUnavailable": 0},
                   "service": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"]},
                   "tolerations": [{"operator": "Exists"}], "priorityClassName": "high", "extraArgs": ["--no-udp-probes"]},
    "sharedVolumes": [{**TRACES, "size": "1200Gi", "storageClassName": "fsx-sc"}],
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}, "dashboards": {"enabled": True},
    "prometheusRule": {"enabled": True, "labels": {"release": "prometheus"}},
    "networkPolicy": {"operatorFrom": [{"podSelector": {}}], "viewFrom": [{"podSelector": {}}], "metricsFrom": PEER},
    "injection": {"admissionPolicy": {"enabled": True}},
}
MATRIX = {
    "default": {},
    "issuer-given": {"tls": {"certManager": {"issuerRef": {"name": "company", "kind": "ClusterIssuer"}}}},
    "certificates-given": GIVEN,
    "insecure": {"tls": {"enabled": False, "certManager": {"enabled": False}}, "insecure": True},
    "everything": EVERYTHING,
    "host-network": {"agent": {"hostNetwork": True}, "networkPolicy": {"nodeCidrs": ["10.0.0.0/16"]}},
    "no-network-policy": {"networkPolicy": {"enabled": False}, "serviceMonitor": {"enabled": True}},
    "fsx": {"sharedVolumes": [{**TRACES, "size": "1200Gi", "storageClassName": "fsx-sc"}],
            "storageClasses": {"fsx": {"create": True, "subnetId": "subnet-0", "securityGroupIds": "sg-0"}}},
    "fsx-scratch": {"storageClasses": {"fsx": {"create": True, "subnetId": "subnet-0", "securityGroupIds": "sg-0",
                                               "deploymentType": "SCRATCH_2"}}},
    "rsa": {"tls": {"certManager": {"privateKeyAlgorithm": "RSA"}}},
    "efs": {"sharedVolumes": [{**TRACES, "size": "100Gi", "storageClassName": "efs-sc"}],
            "storageClasses": {"efs": {"create": True, "fileSystemId": "fs-0"}}},
    "claim-given": {"sharedVolumes": [{**TRACES, "existingClaim": "fsx-claim", "withoutRename": True}]},
    "admission-policy": {"injection": {"admissionPolicy": {"enabled": True, "namespaces": ["team-a", "team-b"]}}},
    "admission-policy-beta": {"injection": {"admissionPolicy": {
        "enabled": True, "apiVersion": "admissionregistration.k8s.io/v1beta1"}}},
    "agents-only": {"aggregator": {"enabled": False, "address": "aggregator.example:9400"},
                    "tls": {"certManager": {"issuerRef": {"name": "company"}}}},
    "aggregator-only": {"agent": {"enabled": False}},
    "ipv6": {"listenAddress": "[::]"},
    # Where there is no package yaml nothing is rendered.
    "load-balancer": yaml.safe_load((CHART / "examples" / "values" / "load_balancer.yaml").read_text(encoding="utf-8")) if yaml else {},
    "claims": {"injection": {"admissionPolicy": {"enabled": True}, "claims": {"namespaces": ["team-a", "team-b"]}}},
    "framework-on-demand": {**ON_DEMAND, "injection": {
        "admissionPolicy": {"enabled": True}, "claims": {"namespaces": ["team-a"]}}},
    "names": {"nameOverride": "traces", "fullnameOverride": "nt", "namespaceOverride": "elsewhere"},
}
# What is refused, and the value that the words have to name.
REFUSED = {
    "tls.secrets.agent": merged(GIVEN, {"tls": {"secrets": {"agent": ""}}}),
    "tls.secrets.aggregator": merged(GIVEN, {"tls": {"secrets": {"aggregator": ""}}}),
    "insecure=true": {"tls": {"enabled": False}},
    "insecure: true": {"insecure": True},
    "exclude each other": {"tls": {"secrets": {"agent": "agent-tls"}}},
    "image.registry": {"image": {"registry": ""}},
    "maxSurge": {"agent": {"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}},
    "agent.processScan": {"agent": {"hostPID": False, "podResources": False}},
    "agent.podResources": {"agent": {"hostPID": False, "processScan": False}},
    "agent.kinetoDir requires agent.hostPID": merged(ON_DEMAND, {"agent": {
        "hostPID": False, "processScan": False, "podResources": False}}),
    "agent.frameworkDir": {"agent": {"kinetoDir": "/run/neurontrace-kineto"}},
    "networkPolicy.nodeCidrs": {"agent": {"hostNetwork": True}},
    "[{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]": {"serviceMonitor": {"enabled": True}},
    "aggregator.address": {"aggregator": {"enabled": False}, **merged(MINIMAL, {"tls": {"certManager": {
        "issuerRef": {"name": "company"}}}})},
    "tls.certManager.issuerRef.name": {"aggregator": {"enabled": False, "address": "a:1"}},
    "sharedVolumes: traces": {"sharedVolumes": [TRACES]},
    "storageClasses.fsx.subnetId": {"storageClasses": {"fsx": {"create": True}}},
    "storageClasses.fsx.perUnitStorageThroughput": {"storageClasses": {"fsx": {
        "create": True, "subnetId": "subnet-0", "securityGroupIds": "sg-0", "deploymentType": "PERSISTENT_2"}}},
    "RSA has no key of 256 bits": {"tls": {"certManager": {"privateKeyAlgorithm": "RSA", "privateKeySize": 256}}},
    "ECDSA has no key of 4096 bits": {"tls": {"certManager": {"privateKeySize": 4096}}},
    "storageClasses.efs.fileSystemId": {"storageClasses": {"efs": {"create": True}}},
    "aggregator.view.port": {"aggregator": {"view": {"enabled": True, "port": 9402}}},
    "networkPolicy.viewFrom": {"aggregator": {"view": {"enabled": True, "hosts": ["traces.example.com"]}}},
    "aggregator.kubernetesTokens": {"aggregator": {"kubernetesTokens": {"enabled": True}}},
    "this cluster has no MutatingAdmissionPolicy": {"injection": {"admissionPolicy": {"enabled": True}}},
}
# Values that do not exist or are none, and the key that the words have to name.
TYPOS = {
    "socktGroup": {"agent": {"socktGroup": 9400}},
    "agents": {"agents": {}},
    "certmanager": {"tls": {"certmanager": {}}},
    "listenAddress": {"listenAddress": "::"},
    "chrony": {"agent": {"clocks": {"chrony": True}}},
    "mountpath": {"sharedVolumes": [{**TRACES, "mountpath": "/x"}]},
    "/aggregator/view/hosts": {"aggregator": {"view": {"hosts": ["https://traces.example.com"]}}},
    "/aggregator/port": {"aggregator": {"port": "9400"}},
    "/aggregator/startupMinutes": {"aggregator": {"startupMinutes": 5}},
    "/agent/clockProbes": {"agent": {"clockProbes": "tcp"}},
    "/agent/socketMode": {"agent": {"socketMode": 660}},
    "/agent/hostPaths/socket": {"agent": {"hostPaths": {"socket": "run/neurontrace"}}},
    # A socket's path has room for 107 bytes.
    "/agent/kinetoDir": {"agent": {"kinetoDir": "/" + 60 * "a", "frameworkDir": "/traces"}},
    "/aggregator/quotas/storeBytes": {"aggregator": {"quotas": {"storeBytes": "5 GiB"}}},
}
