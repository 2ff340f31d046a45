"""Defaults and validation of workloads: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, ReplicationController."""

from __future__ import annotations

import re

from bayplan.apiserver.kinds.cron_schedule import BadSchedule, Schedule, is_time_zone
from bayplan.apiserver.kinds.kind import Admission
from bayplan.apiserver.kinds.pod_admission import default_pod_spec
from bayplan.apiserver.kinds.pod_validation import validate_pod_spec, validate_selector
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.selectors import matches_label_selector

_PERCENT = re.compile(r"^[0-9]{1,3}%\Z")
_POLICIES = ("Allow", "Forbid", "Replace")
JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _default_template(spec: Json) -> None:
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))


def default_replica_set(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _default_template(spec)


def default_replication_controller(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    if spec.get("template") is None:  # a pointer here, unlike in the other workloads
        return
    _default_template(spec)
    labels = spec["template"]["metadata"].get("labels") or {}
    if labels:
        spec.setdefault("selector", dict(labels))
        document["metadata"].setdefault("labels", dict(labels))


def default_deployment(document: Json) -> None:
    default_replica_set(document)
    spec = document["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def default_stateful_set(document: Json) -> None:
    default_replica_set(document)
    spec = document["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and isinstance(strategy.get("rollingUpdate"), dict):
        strategy["rollingUpdate"].setdefault("partition", 0)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim |= {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim["status"] = {"phase": "Pending"} | (claim.get("status") or {})
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")


def default_daemon_set(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _default_template(spec)
    spec.setdefault("revisionHistoryLimit", 10)
    strategy = spec.setdefault("updateStrategy", {})
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
    if isinstance(strategy.get("rollingUpdate"), dict):
        strategy["rollingUpdate"].setdefault("maxUnavailable", 0)
        strategy["rollingUpdate"].setdefault("maxSurge", 0)


def admit_daemon_set(document: Json, old: Json | None, admission: Admission) -> None:
    """Count the changes of the template in an annotation, as older clients expect it."""
    generation = 1
    if old is not None:
        known = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        generation = int(known) if known.isdecimal() else 1
        generation += old["spec"].get("template") != document["spec"].get("template")
    document["metadata"]["annotations"] = (document["metadata"].get("annotations") or {}) | {
        _TEMPLATE_GENERATION: str(generation)
    }


def default_job(document: Json) -> None:
    spec = document.setdefault("spec", {})
    _default_template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = spec["parallelism"] = 1
    spec.setdefault("parallelism", 1)
    # Where each index has a limit of its own, the Job as a whole has none.
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    _default_job_rules(spec)
    if spec.get("manualSelector") is None:
        spec["manualSelector"] = False


def _default_job_rules(spec: Json) -> None:
    """Of a Job, or of the template of a CronJob."""
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern["status"] = pattern.get("status") or "True"


def admit_job(document: Json, old: Json | None, admission: Admission) -> None:
    """Select the pods of a job by its uid, unless manualSelector is set."""
    spec = document["spec"]
    if old is not None or spec.get("manualSelector"):
        return
    uid, name = document["metadata"]["uid"], document["metadata"]["name"]
    labels = spec["template"]["metadata"].setdefault("labels", {})
    for label, value in zip(JOB_LABELS, (uid, name), strict=True):
        labels[label] = value
        labels[label.rpartition("/")[2]] = value
    spec["selector"] = {"matchLabels": {JOB_LABELS[0]: uid}}
    if not document["metadata"].get("labels"):
        document["metadata"]["labels"] = dict(labels)


def default_pod_template(document: Json) -> None:
    _default_template(document)


def validate_pod_template(document: Json, old: Json | None) -> list[Cause]:
    return validate_pod_spec((document.get("template") or {}).get("spec") or {}, "template.spec")


def default_cron_job(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("concurrencyPolicy", "Allow")
    spec.setdefault("suspend", False)
    spec.setdefault("successfulJobsHistoryLimit", 3)
    spec.setdefault("failedJobsHistoryLimit", 1)
    template = spec.setdefault("jobTemplate", {}).setdefault("spec", {})
    _default_template(template)
    _default_job_rules(template)


def validate_cron_job(document: Json, old: Json | None) -> list[Cause]:
    spec = document["spec"]
    causes: list[Cause] = []
    schedule = spec.get("schedule", "")
    try:
        if "TZ" in schedule:
            raise BadSchedule("cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        Schedule.parse(schedule)
    except BadSchedule as problem:
        causes.append(errors.invalid_value("spec.schedule", schedule, str(problem)))
    if spec.get("timeZone") is not None and not is_time_zone(spec["timeZone"]):
        causes.append(errors.invalid_value("spec.timeZone", spec["timeZone"], f"unknown time zone {spec['timeZone']}"))
    if spec["concurrencyPolicy"] not in _POLICIES:
        causes.append(errors.not_supported("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES))
    pod_spec = spec["jobTemplate"]["spec"]["template"].get("spec") or {}
    causes += validate_pod_spec(pod_spec, "spec.jobTemplate.spec.template.spec")
    if pod_spec.get("restartPolicy", "Always") not in ("Never", "OnFailure"):
        path = "spec.jobTemplate.spec.template.spec.restartPolicy"
        causes.append(errors.not_supported(path, pod_spec.get("restartPolicy", "Always"), ("OnFailure", "Never")))
    return causes


def validate_template(document: Json, old: Json | None) -> list[Cause]:
    """The rules every workload with a selector and a template shares."""
    spec = document.get("spec", {})
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    causes = _validate_replicas(spec)
    selector = spec.get("selector")
    if not selector:
        causes.append(errors.required("spec.selector"))
    else:
        causes += validate_selector(selector, "spec.selector")
    if selector and not matches_label_selector(selector, labels):
        detail = "`selector` does not match template `labels`"
        causes.append(errors.invalid_value("spec.template.metadata.labels", _spelled(labels), detail))
    if old is not None and old.get("spec", {}).get("selector") != selector:
        causes.append(errors.invalid_value("spec.selector", _spelled(selector or {}), "field is immutable"))
    if old is None or old.get("spec", {}).get("template") != template:
        causes += validate_pod_spec(template.get("spec") or {}, "spec.template.spec")
        causes += _validate_restart(template.get("spec") or {}, ("Always",))
    return causes


def validate_replication_controller(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    causes = _validate_replicas(spec)
    if not spec.get("selector"):
        causes.append(errors.required("spec.selector"))
    return causes + validate_pod_spec((spec.get("template") or {}).get("spec") or {}, "spec.template.spec")


def validate_job(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    if old is not None:
        if old["spec"].get("completions") != spec.get("completions") and spec.get("completionMode") != "Indexed":
            return [errors.invalid_value("spec.completions", spec.get("completions"), "field is immutable")]
        return []
    causes = validate_pod_spec(pod_spec, "spec.template.spec")
    causes += _validate_restart(pod_spec, ("Never", "OnFailure"))
    for name in ("parallelism", "completions", "backoffLimit"):
        if spec.get(name) is not None and spec[name] < 0:
            detail = "must be greater than or equal to 0"
            causes.append(errors.invalid_value(f"spec.{name}", spec[name], detail))
    return causes


def _validate_replicas(spec: Json) -> list[Cause]:
    replicas = spec.get("replicas", 1)
    if replicas >= 0:
        return []
    return [errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")]


def _validate_restart(spec: Json, allowed: tuple[str, ...]) -> list[Cause]:
    policy = spec.get("restartPolicy")
    if policy in allowed or policy not in ("Always", "Never", "OnFailure"):
        return []
    return [errors.not_supported("spec.template.spec.restartPolicy", policy, allowed)]


def _spelled(labels: Json) -> str:
    return ", ".join(f"{key}:{value}" for key, value in sorted(labels.items()))


def validate_disruption_budget(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec", {})
    minimum, maximum = spec.get("minAvailable"), spec.get("maxUnavailable")
    causes = []
    if minimum is not None and maximum is not None:
        detail = "minAvailable and maxUnavailable cannot be both set"
        causes.append(errors.invalid_value("spec", "", detail))
    for name, value in (("minAvailable", minimum), ("maxUnavailable", maximum)):
        if isinstance(value, str) and not _PERCENT.match(value):
            detail = "a valid percent string must be a numeric string followed by an ending '%'"
            causes.append(errors.invalid_value(f"spec.{name}", value, detail))
        elif isinstance(value, str) and int(value[:-1]) > 100:
            causes.append(errors.invalid_value(f"spec.{name}", value, "must not be greater than 100%"))
        elif isinstance(value, int) and value < 0:
            causes.append(errors.invalid_value(f"spec.{name}", value, "must be greater than or equal to 0"))
    return causes + validate_selector(spec.get("selector"), "spec.selector")
