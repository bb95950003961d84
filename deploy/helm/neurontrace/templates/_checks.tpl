{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{/* What values may not say together, each with the value that mends it. Included once, by NOTES.txt and the workloads. */}}
{{- define "neurontrace.check" -}}
{{- $tls := .Values.tls -}}
{{- $given := or $tls.secrets.aggregator $tls.secrets.agent -}}
{{- if and $tls.enabled .Values.insecure -}}
{{- fail "insecure: true goes with tls.enabled: false only: choose one" -}}
{{- end -}}
{{- if and (not $tls.enabled) (not .Values.insecure) -}}
{{- fail "tls.enabled: false sends traces and orders in plain text, and lets everybody do everything: if that is wanted, set insecure=true" -}}
{{- end -}}
{{- if $tls.enabled -}}
{{- if and $tls.certManager.enabled $given -}}
{{- fail "tls.certManager.enabled and tls.secrets.* exclude each other: certificates are made, or given" -}}
{{- end -}}
{{- if and (not $tls.certManager.enabled) (not (include "neurontrace.ownCertificates" .)) -}}
{{- if and .Values.aggregator.enabled (not $tls.secrets.aggregator) -}}
{{- fail "tls.secrets.aggregator: with tls.secrets.agent given, name a secret with ca.crt, tls.crt and tls.key for the aggregator, too, or give neither: the chart then makes certificates" -}}
{{- end -}}
{{- if and .Values.agent.enabled (not $tls.secrets.agent) -}}
{{- fail "tls.secrets.agent: name a secret with ca.crt, tls.crt and tls.key for the agents: certificates that the chart makes are for agents with an aggregator of the same release, and tls.secrets.aggregator is not one of them" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and .Values.tls.certManager.enabled (not .Values.tls.certManager.issuerRef.name) (not .Values.aggregator.enabled) -}}
{{- fail "tls.certManager.issuerRef.name: agents without an aggregator of this release need the issuer that the aggregator's clients are known by" -}}
{{- end -}}
{{- with .Values.tls.certManager -}}
{{- if and .privateKeySize (ne (eq .privateKeyAlgorithm "ECDSA") (lt (int .privateKeySize) 2048)) -}}
{{- fail (printf "tls.certManager.privateKeySize: %s has no key of %d bits: leave it at 0, or set 256 or 384 for ECDSA, 2048, 3072 or 4096 for RSA" .privateKeyAlgorithm (int .privateKeySize)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.storageClasses.fsx -}}
{{- $speeds := index (dict "PERSISTENT_1" (list "50" "100" "200") "PERSISTENT_2" (list "125" "250" "500" "1000")) .deploymentType -}}
{{- if and .create $speeds (not (has .perUnitStorageThroughput $speeds)) -}}
{{- fail (printf "storageClasses.fsx.perUnitStorageThroughput: %s has one of %s, in quotes" .deploymentType (join ", " $speeds)) -}}
{{- end -}}
{{- end -}}
{{- with .Values.agent.updateStrategy.rollingUpdate -}}
{{- if and .maxSurge (ne (toString .maxSurge) "0") (ne (toString .maxSurge) "0%") -}}
{{- fail "agent.updateStrategy.rollingUpdate.maxSurge: two agents of one node cannot have its socket and spool: leave it at 0" -}}
{{- end -}}
{{- end -}}
{{- if and .Values.aggregator.enabled .Values.aggregator.kubernetesTokens.enabled (not .Values.aggregator.access) -}}
{{- fail "aggregator.kubernetesTokens: no service account has a role yet: say in aggregator.access who may do what, with service-account = \"NAMESPACE/NAME\"" -}}
{{- end -}}
{{- if and .Values.agent.processScan (not .Values.agent.hostPID) -}}
{{- fail "agent.processScan needs agent.hostPID=true: set both, or agent.processScan=false" -}}
{{- end -}}
{{- if and .Values.agent.podResources (not .Values.agent.hostPID) -}}
{{- fail "agent.podResources needs agent.hostPID=true, as devices are open in processes of other pods: set both, or agent.podResources=false" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled .Values.agent.enabled .Values.agent.hostNetwork .Values.aggregator.enabled (not .Values.networkPolicy.nodeCidrs) -}}
{{- fail "networkPolicy.nodeCidrs: with agent.hostNetwork=true agents come from the addresses of nodes: name these" -}}
{{- end -}}
{{- if and .Values.serviceMonitor.enabled .Values.networkPolicy.enabled (not .Values.networkPolicy.metricsFrom) (or .Values.aggregator.enabled (not .Values.agent.hostNetwork)) -}}
{{- fail "networkPolicy.metricsFrom: with serviceMonitor.enabled=true Prometheus has to be let in: say where it is, as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}], or set networkPolicy.enabled=false" -}}
{{- end -}}
{{- end -}}
