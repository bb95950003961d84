{{/* SPDX-License-Identifier: Apache-2.0 */}}
{{- define "neurontrace.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "neurontrace.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{/* At most 40 characters, so that what is put behind it stays below the 63 of a name. */}}
{{- define "neurontrace.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "neurontrace.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "neurontrace.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "neurontrace.agent.fullname" -}}{{ include "neurontrace.fullname" . }}-agent{{- end -}}
{{- define "neurontrace.aggregator.fullname" -}}{{ include "neurontrace.fullname" . }}-aggregator{{- end -}}

{{/* (dict "root" $ "component" "agent"): the same in every version, as selectors cannot be changed. */}}
{{- define "neurontrace.selectorLabels" -}}
app.kubernetes.io/name: {{ include "neurontrace.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "neurontrace.labels" -}}
{{ include "neurontrace.selectorLabels" . }}
app.kubernetes.io/part-of: neurontrace
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
{{- with .root.Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "component" "agent" "name" NAME "annotations" {...}): the metadata of an object in the namespace. */}}
{{- define "neurontrace.metadata" -}}
name: {{ .name }}
{{- if not .clusterWide }}
namespace: {{ include "neurontrace.namespace" .root }}
{{- end }}
labels:
  {{- include "neurontrace.labels" . | nindent 2 }}
  {{- with .labels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with mergeOverwrite (deepCopy .root.Values.annotations) (default (dict) .annotations) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* (dict "root" $ "image" .Values.agent.image) */}}
{{- define "neurontrace.fullimage" -}}
{{- $registry := required "image.registry: set the registry that has the images of deploy/container, for example --set image.registry=111122223333.dkr.ecr.us-west-2.amazonaws.com" .root.Values.image.registry -}}
{{- $name := printf "%s/%s" (trimSuffix "/" $registry) .image.repository -}}
{{- if .image.digest -}}
{{- printf "%s@%s" $name .image.digest -}}
{{- else -}}
{{- printf "%s:%s" $name (default .root.Chart.AppVersion .image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "neurontrace.agent.serviceAccount" -}}
{{- if .Values.agent.serviceAccount.create -}}
{{- default (include "neurontrace.agent.fullname" .) .Values.agent.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.agent.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "neurontrace.aggregator.serviceAccount" -}}
{{- if .Values.aggregator.serviceAccount.create -}}
{{- default (include "neurontrace.aggregator.fullname" .) .Values.aggregator.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.aggregator.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "neurontrace.aggregator.host" -}}
{{ include "neurontrace.aggregator.fullname" . }}.{{ include "neurontrace.namespace" . }}.svc
{{- end -}}

{{- define "neurontrace.aggregator.address" -}}
{{- if .Values.aggregator.enabled -}}
{{ include "neurontrace.aggregator.host" . }}:{{ .Values.aggregator.port }}
{{- else -}}
{{- required "aggregator.address: with aggregator.enabled=false set the aggregator that agents send to, as HOST:PORT" .Values.aggregator.address -}}
{{- end -}}
{{- end -}}

{{/* "true" where the chart makes the certificates itself: neither cert-manager nor given secrets do. */}}
{{- define "neurontrace.ownCertificates" -}}
{{- $given := or .Values.tls.certManager.enabled .Values.tls.secrets.aggregator .Values.tls.secrets.agent -}}
{{- if and .Values.tls.enabled .Values.aggregator.enabled (not $given) -}}true{{- end -}}
{{- end -}}

{{/* The names that the aggregator is reached by, as JSON. */}}
{{- define "neurontrace.aggregator.dnsNames" -}}
{{- $aggregator := include "neurontrace.aggregator.fullname" . -}}
{{- $service := printf "%s.%s" $aggregator (include "neurontrace.namespace" .) -}}
{{- $more := .Values.tls.own.aggregatorDnsNames -}}
{{- if .Values.tls.certManager.enabled }}{{ $more = .Values.tls.certManager.aggregatorDnsNames }}{{ end -}}
{{- concat (list $aggregator $service (printf "%s.svc" $service) (printf "%s.svc.cluster.local" $service)) $more | toJson -}}
{{- end -}}

{{/* Who may do what. The chart's own certificates have no URI that could name a role: their names do, and what is given is added. */}}
{{- define "neurontrace.access" -}}
{{- if include "neurontrace.ownCertificates" . -}}
[neurontrace-agents]
certificate = "dns:agent.neurontrace"
role = "agent"
[neurontrace-operator]
certificate = "dns:operator.neurontrace"
role = "{{ .Values.tls.own.operatorRole }}"
{{ end -}}
{{- .Values.aggregator.access -}}
{{- end -}}

{{- define "neurontrace.agent.tlsSecret" -}}
{{- if or .Values.tls.certManager.enabled (include "neurontrace.ownCertificates" .) -}}
{{- include "neurontrace.agent.fullname" . }}-tls
{{- else -}}
{{- .Values.tls.secrets.agent -}}
{{- end -}}
{{- end -}}

{{- define "neurontrace.aggregator.tlsSecret" -}}
{{- if or .Values.tls.certManager.enabled (include "neurontrace.ownCertificates" .) -}}
{{- include "neurontrace.aggregator.fullname" . }}-tls
{{- else -}}
{{- .Values.tls.secrets.aggregator -}}
{{- end -}}
{{- end -}}

{{- define "neurontrace.issuerRef" -}}
{{- if .Values.tls.certManager.issuerRef.name -}}
{{ toYaml .Values.tls.certManager.issuerRef }}
{{- else -}}
name: {{ include "neurontrace.fullname" . }}-ca
kind: Issuer
group: cert-manager.io
{{- end -}}
{{- end -}}

{{/* The key of a certificate: of a size that its algorithm has. */}}
{{- define "neurontrace.keySize" -}}
{{- $manager := .Values.tls.certManager -}}
{{- default (ternary 256 3072 (eq $manager.privateKeyAlgorithm "ECDSA")) $manager.privateKeySize -}}
{{- end -}}

{{/* The options that TLS is, of both programs. */}}
{{- define "neurontrace.tlsArgs" -}}
{{- if .Values.tls.enabled }}
- --tls-ca=/etc/neurontrace/tls/ca.crt
- --tls-cert=/etc/neurontrace/tls/tls.crt
- --tls-key=/etc/neurontrace/tls/tls.key
{{- else }}
- --insecure
{{- end }}
{{- end -}}

{{/* (dict "secret" NAME "mode" 256): ca.crt has to be in it. */}}
{{- define "neurontrace.tlsVolume" -}}
- name: tls
  secret:
    secretName: {{ .secret }}
    defaultMode: {{ .mode }}
    items:
      - {key: ca.crt, path: ca.crt}
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end -}}

{{- define "neurontrace.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
