{{- define "baton.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "baton.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains (include "baton.name" .) .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "baton.name" .) | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Labels of everything: (dict "root" $ "component" "api"). */}}
{{- define "baton.labels" -}}
{{ include "baton.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "baton.selector" -}}
app.kubernetes.io/name: {{ include "baton.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "baton.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "baton.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "baton.image" -}}
{{ .Values.image.repository }}:{{ default (printf "v%s" .Chart.AppVersion) .Values.image.tag }}
{{- end -}}

{{/* What every process is told. The chart decides addresses and ports: they belong to the pods. */}}
{{- define "baton.env" -}}
{{- if .Values.publicUrl }}
- { name: PUBLIC_URL, value: {{ .Values.publicUrl | quote }} }
{{- end }}
- { name: WORKER_CONCURRENCY, value: {{ .Values.worker.concurrency | quote }} }
- { name: API_GRACE_MS, value: {{ .Values.api.graceMs | int64 | quote }} }
- { name: WORKER_GRACE_MS, value: {{ .Values.worker.graceMs | int64 | quote }} }
{{- range $name, $value := .Values.settings }}
- { name: {{ $name }}, value: {{ (kindIs "float64" $value | ternary (int64 $value) $value) | toString | quote }} }
{{- end }}
{{- end -}}

{{/* Processes write nothing but temporary files, and need no rights. */}}
{{- define "baton.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 1000
fsGroup: 1000
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "baton.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end -}}

{{- define "baton.tmpMounts" -}}
- { name: tmp, mountPath: /tmp }
- { name: npm, mountPath: /home/node/.npm }
{{- end -}}

{{- define "baton.tmpVolumes" -}}
- { name: tmp, emptyDir: {} }
- { name: npm, emptyDir: {} }
{{- end -}}

{{/* Pods of one kind on several nodes and zones, if there are any. */}}
{{- define "baton.spread" -}}
{{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ $key }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector: { matchLabels: {{ include "baton.selector" $ | fromYaml | toJson }} }
{{- end }}
{{- end -}}

{{/* Grace time in ms, rounded up to seconds, and what a process takes at most after it (15 s). */}}
{{- define "baton.graceSeconds" -}}
{{- add (div (add (int64 .) 999) 1000) 15 -}}
{{- end -}}
