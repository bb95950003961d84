{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* What values may not say together, each with the value that mends it. Included once, by NOTES.txt and the workloads. */}}
{{- define "neurontrace.check" -}}
{{- $tls := .Values.tls -}}
{{- $given := or $tls.secrets.aggregator $tls.secrets.agent -}}
{{- if and $tls.enabled .Values.insecure -}}
{{- fail "insecure: true requires tls.enabled: false; remove one of them" -}}
{{- end -}}
{{- if and (not $tls.enabled) (not .Values.insecure) -}}
{{- fail "tls.enabled: false sends traces and commands in plain text and gives every caller all rights; set insecure=true to accept that" -}}
{{- end -}}
{{- if $tls.enabled -}}
{{- if and $tls.certManager.enabled $given -}}
{{- fail "tls.certManager.enabled and tls.secrets.* exclude each other; set only one of them" -}}
{{- end -}}
{{- if and (not $tls.certManager.enabled) (not (include "neurontrace.ownCertificates" .)) -}}
{{- if and .Values.aggregator.enabled (not $tls.secrets.aggregator) -}}
{{- fail "tls.secrets.aggregator: tls.secrets.agent is set, so set a secret with ca.crt, tls.crt and tls.key for the aggregator too, or set neither and the chart creates certificates" -}}
{{- end -}}
{{- if and .Values.agent.enabled (not $tls.secrets.agent) -}}
{{- fail "tls.secrets.agent: set a secret with ca.crt, tls.crt and tls.key for the agents; the chart creates certificates only if agents and aggregator belong to one release and tls.secrets.aggregator is empty" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not .Values.tls.certManager.issuerRef.name) (not .Values.aggregator.enabled) -}}
{{- fail "tls.certManager.issuerRef.name: this release has no aggregator, so set the issuer that the aggregator trusts for its clients" -}}
{{- end -}}
{{- with .Values.tls.certManager -}}
{{- if and .privateKeySize (ne (eq .privateKeyAlgorithm "ECDSA") (lt (int .privateKeySize) 2048)) -}}
{{- fail (printf "tls.certManager.privateKeySize: %s has no key of %d bits; use 0 for the default, 256 or 384 for ECDSA, and 2048, 3072 or 4096 for RSA" .privateKeyAlgorithm (int .privateKeySize)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.storageClasses.fsx -}}
{{- $speeds := index (dict "PERSISTENT_1" (list "50" "100" "200") "PERSISTENT_2" (list "125" "250" "500" "1000")) .deploymentType -}}
{{- if and .create $speeds (not (has .perUnitStorageThroughput $speeds)) -}}
{{- fail (printf "storageClasses.fsx.perUnitStorageThroughput: %s supports %s; write the value in quotes" .deploymentType (join ", " $speeds)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.agent.updateStrategy.rollingUpdate -}}
{{- if and .maxSurge (ne (toString .maxSurge) "0") (ne (toString .maxSurge) "0%") -}}
{{- fail "agent.updateStrategy.rollingUpdate.maxSurge: two agents on one node cannot share its socket and spool; use 0" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.aggregator.enabled .Values.aggregator.kubernetesTokens.enabled (not .Values.aggregator.access) -}}
{{- fail "aggregator.kubernetesTokens: no service account has a role; add rules to aggregator.access with service-account = \"NAMESPACE/NAME\"" -}}
{{- end -}}
{{- if .Values.aggregator.view.enabled -}}
{{- if has (int .Values.aggregator.view.port) (list (int .Values.aggregator.port) (int .Values.aggregator.healthPort)) -}}
{{- fail "aggregator.view.port: gRPC or the health page has this port; set another one" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.aggregator.view.hosts (not .Values.networkPolicy.viewFrom) -}}
{{- fail "networkPolicy.viewFrom: aggregator.view.hosts names hosts of the page, and nothing may reach it; set where the ingress controller runs, as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ingress-nginx}}}]" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.agent.processScan (not .Values.agent.hostPID) -}}
{{- fail "agent.processScan requires agent.hostPID=true; set both, or set agent.processScan=false" -}}
{{- end -}}
{{- if and .Values.agent.kinetoDir (not .Values.agent.hostPID) -}}
{{- fail "agent.kinetoDir requires agent.hostPID=true, because the agent identifies senders by their process ids; set both, or set agent.kinetoDir to \"\"" -}}
{{- end -}}
{{- if and .Values.agent.kinetoDir (not .Values.agent.frameworkDir) -}}
{{- fail "agent.kinetoDir requires agent.frameworkDir, the directory of the node that workers write their traces to; set agent.frameworkDir=/var/lib/neurontrace/traces" -}}
{{- end -}}
{{- if and .Values.agent.podResources (not .Values.agent.hostPID) -}}
{{- fail "agent.podResources requires agent.hostPID=true, because processes of other pods hold the devices; set both, or set agent.podResources=false" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.agent.enabled .Values.agent.hostNetwork .Values.aggregator.enabled (not .Values.networkPolicy.nodeCidrs) -}}
{{- fail "networkPolicy.nodeCidrs: with agent.hostNetwork=true agents connect from the nodes' addresses; list these addresses" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) (or .Values.aggregator.enabled (not .Values.agent.hostNetwork)) -}}
{{- fail "networkPolicy.metricsFrom: with serviceMonitor.enabled=true Prometheus needs access; set where it runs, as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}], or set networkPolicy.enabled=false" -}}
{{- end -}}
{{- end -}}
