{{- define "bayplan.labels" -}}
app.kubernetes.io/name: bayplan
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bayplan.elects" -}}
{{- if or .Values.scheduler.leaderElect (gt (int .Values.scheduler.replicaCount) 1) }}true{{ end }}
{{- end }}

{{- define "bayplan.election" -}}
leaderElection:
  leaderElect: {{ eq (include "bayplan.elects" .) "true" }}
  resourceName: {{ .Values.scheduler.name }}
  resourceNamespace: {{ .Release.Namespace }}
{{- end }}

{{- define "bayplan.controllerLabels" -}}
app.kubernetes.io/name: bayplan-controllers
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- /* Whether the controllers have a deployment of their own: some enabled plugin has objects whose status they write,
and the scheduler does not carry them. */ -}}
{{- define "bayplan.controllers" -}}
{{- if and (include "bayplan.controllerKinds" .) (not .Values.scheduler.withControllers) (gt (int .Values.controller.replicaCount) 0) }}true{{ end }}
{{- end }}
