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

{{/* Metadata of a pod. The labels of the chart win: selectors need them. (dict "root" $ "component" "api") */}}
{{- define "baton.podMetadata" -}}
{{- $values := index .root.Values .component -}}
labels: {{- mergeOverwrite (dict) .root.Values.podLabels $values.podLabels (include "baton.labels" . | fromYaml) | toYaml | nindent 2 }}
{{- $annotations := mergeOverwrite (dict) .root.Values.podAnnotations $values.podAnnotations }}
{{- with include "baton.secretVersions" .root }}
{{- $annotations = mergeOverwrite (dict "baton/secrets" .) $annotations }}
{{- end }}
{{- with $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/*
The versions of the Secrets and ConfigMaps that processes read when they start: if one changes, the next `helm upgrade` replaces the
pods. Not their contents or a hash of them: a reader of pods could guess a short password. Empty without a cluster, as in
`helm template`.
*/}}
{{- define "baton.secretVersions" -}}
{{- if .Values.restartOnSecretChange -}}
{{- $names := list (list "Secret" .Values.existingSecret) (list "Secret" .Values.caCertificates.secret) (list "ConfigMap" .Values.caCertificates.configMap) -}}
{{- range concat .Values.extraEnvFrom .Values.api.extraEnvFrom .Values.worker.extraEnvFrom -}}
{{- $names = append $names (list "Secret" (dig "secretRef" "name" "" .)) -}}
{{- $names = append $names (list "ConfigMap" (dig "configMapRef" "name" "" .)) -}}
{{- end -}}
{{- $versions := dict -}}
{{- range $names -}}
{{- if last . -}}
{{- with lookup "v1" (first .) $.Release.Namespace (last .) -}}
{{- $_ := set $versions (printf "%s/%s" .kind .metadata.name) .metadata.resourceVersion -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $versions }}{{ toJson . }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Fields of a pod that all kinds share, but for its containers. (dict "root" $ "component" "api") */}}
{{- define "baton.podSpec" -}}
{{- $values := index .root.Values .component -}}
automountServiceAccountToken: false
# Names of Services would look like settings.
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
# Processes write nothing but temporary files, and need no rights.
securityContext:
  runAsNonRoot: true
  runAsUser: 1000
  runAsGroup: 1000
  fsGroup: 1000
  seccompProfile: { type: RuntimeDefault }
{{- with $values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat .root.Values.initContainers $values.initContainers }}
initContainers: {{- toYaml . | nindent 2 }}
{{- end }}
volumes:
  - { name: tmp, emptyDir: {} }
  - { name: npm, emptyDir: {} }
  {{- with include "baton.caVolume" .root }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $values.agentsVolume }}
  - {{ mergeOverwrite (deepCopy .) (dict "name" "agents") | toJson }}
  {{- end }}
  {{- with concat .root.Values.extraVolumes $values.extraVolumes }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end -}}

{{/* Fields of the container of Baton that all kinds of pods share. (dict "root" $ "component" "api") */}}
{{- define "baton.container" -}}
{{- $values := index .root.Values .component -}}
image: {{ include "baton.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
resources: {{- toYaml $values.resources | nindent 2 }}
envFrom:
  - secretRef: { name: {{ required "existingSecret: name a Secret with DATABASE_URL" .root.Values.existingSecret }} }
  {{- with concat .root.Values.extraEnvFrom $values.extraEnvFrom }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- /* Of the migration. */}}
  {{- with $values.existingSecret }}
  - secretRef: { name: {{ . }} }
  {{- end }}
{{- end -}}

{{/* What every process is told. The chart decides addresses and ports: they belong to the pods. */}}
{{- define "baton.env" -}}
{{- $values := index .root.Values .component -}}
- { name: HOST, value: {{ .root.Values.host | quote }} }
{{- if $values.agentsVolume }}
- { name: BATON_AGENTS_DIR, value: /agents }
{{- end }}
{{- if .root.Values.publicUrl }}
- { name: PUBLIC_URL, value: {{ .root.Values.publicUrl | quote }} }
{{- end }}
- { name: WORKER_CONCURRENCY, value: {{ .root.Values.worker.concurrency | int64 | quote }} }
- { name: API_GRACE_MS, value: {{ .root.Values.api.graceMs | int64 | quote }} }
- { name: WORKER_GRACE_MS, value: {{ .root.Values.worker.graceMs | int64 | quote }} }
{{- if include "baton.caVolume" .root }}
- { name: NODE_EXTRA_CA_CERTS, value: {{ printf "/etc/baton/ca/%s" .root.Values.caCertificates.key | quote }} }
{{- end }}
{{- range $name, $value := .root.Values.settings }}
{{- /* JSON writes numbers in full: 1.9, and 10737418240 in place of 1.073741824e+10. */}}
- { name: {{ $name }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }} }
{{- end }}
{{- $names := list "HOST" "PORT" "GRPC_PORT" "MANAGEMENT_HOST" "MANAGEMENT_PORT" "WORKER_PORT" "PUBLIC_URL" "WORKER_CONCURRENCY" "API_GRACE_MS" "WORKER_GRACE_MS" "BATON_AGENTS_DIR" }}
{{- if include "baton.caVolume" .root }}
{{- $names = append $names "NODE_EXTRA_CA_CERTS" }}
{{- end }}
{{- $names = concat $names (keys .root.Values.settings) }}
{{- range concat .root.Values.extraEnv $values.extraEnv }}
{{- if has .name $names }}
{{- fail (printf "extraEnv: %s has a value already. Set it in one place: in a value of the chart, in settings, or once in extraEnv." .name) }}
{{- end }}
{{- $names = append $names .name }}
- {{ toJson . }}
{{- end }}
{{- end -}}

{{- define "baton.volumeMounts" -}}
{{- $values := index .root.Values .component -}}
- { name: tmp, mountPath: /tmp }
- { name: npm, mountPath: /home/node/.npm }
{{- if include "baton.caVolume" .root }}
- { name: ca-certificates, mountPath: /etc/baton/ca, readOnly: true }
{{- end }}
{{- if $values.agentsVolume }}
- { name: agents, mountPath: /agents, readOnly: true }
{{- end }}
{{- with concat .root.Values.extraVolumeMounts $values.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The volume with the certificates of private authorities. Empty if there are none. */}}
{{- define "baton.caVolume" -}}
{{- with .Values.caCertificates -}}
{{- if and .secret .configMap -}}
{{- fail "caCertificates: set secret or configMap, and not both." -}}
{{- else if .secret -}}
- { name: ca-certificates, secret: { secretName: {{ .secret }} } }
{{- else if .configMap -}}
- { name: ca-certificates, configMap: { name: {{ .configMap }} } }
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Pods of one kind on several nodes and zones, if there are any; or the constraints of the values, for the pods of this kind. */}}
{{- define "baton.spread" -}}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "baton.selector" . | fromYaml)) -}}
{{- range default (include "baton.defaultSpread" . | fromYamlArray) (index .root.Values .component).topologySpreadConstraints }}
- {{ mergeOverwrite (deepCopy $selector) . | toJson }}
{{- end }}
{{- end -}}

{{- define "baton.defaultSpread" -}}
- { maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway }
- { maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway }
{{- end -}}

{{/* Grace time in ms, rounded up to seconds, and what a process takes at most after it (15 s). */}}
{{- define "baton.graceSeconds" -}}
{{- add (div (add (int64 .) 999) 1000) 15 -}}
{{- end -}}

{{/* The IP families of a Service. Without them, the cluster decides. */}}
{{- define "baton.ipFamilies" -}}
{{- with .Values.ipFamilyPolicy }}
ipFamilyPolicy: {{ . }}
{{- end }}
{{- with .Values.ipFamilies }}
ipFamilies: {{ toJson . }}
{{- end }}
{{- end -}}
