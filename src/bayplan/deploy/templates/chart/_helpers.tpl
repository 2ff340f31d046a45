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
