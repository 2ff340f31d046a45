"""Files of Kubernetes objects from a command line: a cluster, and the pods to decide about.

Reads files and standard input, leaves out what scheduling does not read (with a note), applies defaults, and finds the
pods that `--pod` names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from bayplan.api.decode import InputError, decode_object
from bayplan.api.kinds import ObjectKind
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.suggest import closest
from bayplan.api.workload import PriorityClass
from bayplan.cli.documents import STDIN, FoundObject, is_object_file, read_found_objects
from bayplan.cli.field_validation import check_fields
from bayplan.cli.output import CommandError, note, progress
from bayplan.explain.whatif.raw_objects import complete_objects
from bayplan.framework.resources import object_kinds

__all__ = ["Manifests", "read_manifests"]

CustomKinds = Mapping[tuple[str, str], ObjectKind]
"""By `apiVersion` and `kind`."""
Sources = list[tuple[str, list[KubeObject]]]
_UNREAD = frozenset(
    (
        *(
            "ConfigMap",
            "ControllerRevision",
            "CronJob",
            "DaemonSet",
            "Deployment",
            "EndpointSlice",
            "Endpoints",
            "Event",
        ),
        *("HorizontalPodAutoscaler", "Ingress", "IngressClass", "Job", "Lease", "LimitRange", "NetworkPolicy"),
        *("PodTemplate", "ResourceQuota", "RuntimeClass", "Secret", "ServiceAccount", "VolumeAttributesClass"),
        *("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "APIService", "CustomResourceDefinition"),
        *("FlowSchema", "PriorityLevelConfiguration", "CertificateSigningRequest", "ResourceClaimTemplate"),
        *("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"),
        *("ValidatingAdmissionPolicyBinding", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
    )
)
"""Built-in kinds that a dump may hold and no decision reads. Other unknown kinds may be misspelt and are refused."""


class Manifests(msgspec.Struct, frozen=True):
    """What the files hold: the cluster without the pods to decide about, and those pods."""

    objects: list[KubeObject]
    pods: list[Pod]
    are_named: bool
    """Whether the pods were named one by one; otherwise they are all that wait, in no particular order."""


def read_manifests(
    files: Sequence[str], pods: Sequence[str], *, watched: Iterable[type[Any]] = (), validate: str = "strict"
) -> Manifests:
    """`watched` are the custom resource types that enabled plugins read; `validate` says what becomes of fields that a
    kind does not have. Raises `InputError` or `CommandError`."""
    if [*files, *pods].count(STDIN) > 1:
        raise CommandError("`-` stands for standard input and can be given once only")
    read = partial(_read, kinds=object_kinds(watched), validate=validate)
    cluster = [(name, read(name, leaves_out=True)) for name in files]
    pod_files = [(name, read(name, leaves_out=False)) for name in dict.fromkeys(pods) if is_object_file(name)]
    _refuse_repeated(cluster)
    classes = [item for _, items in (*cluster, *pod_files) for item in items if isinstance(item, PriorityClass)]
    for source, items in (*cluster, *pod_files):
        complete_objects(items, priority_classes=classes, source=source)
    present = [item for _, items in cluster for item in items]
    chosen = _chosen(pods, dict(pod_files), present)
    keys = {pod.key for pod in chosen}
    extra = [item for _, items in pod_files for item in items if not isinstance(item, Pod)]
    objects = [item for item in present if not (isinstance(item, Pod) and item.key in keys)] + extra
    return Manifests(objects, chosen, bool(pods))


def _read(name: str, *, kinds: CustomKinds, leaves_out: bool, validate: str) -> list[KubeObject]:
    objects: list[KubeObject] = []
    left_out: Counter[str] = Counter()
    foreign: Counter[str] = Counter()
    with progress(f"reading {'standard input' if name == STDIN else name}") as done:
        for found in read_found_objects(name):
            if leaves_out and _is_custom(found) and _identity(found) not in kinds:
                _refuse_other_version(found, kinds)
                foreign[found.item["kind"]] += 1
            elif leaves_out and _is_unread(found):
                left_out[found.item["kind"]] += 1
            else:
                objects.append(_decoded(found, kinds))
                check_fields(found, validate)
            done.step()
    if left_out:
        note(f"{name}: left out {_counts(left_out)}; scheduling does not read these kinds")
    if foreign:
        note(f"{name}: left out {_counts(foreign)}; no plugin that is enabled watches these custom resources")
    return objects


def _counts(kinds: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))


def _identity(found: FoundObject) -> tuple[str, str]:
    return str(found.item.get("apiVersion")), str(found.item.get("kind"))


def _is_custom(found: FoundObject) -> bool:
    """Of a group that is not Kubernetes' own."""
    version, kind = found.item.get("apiVersion"), found.item.get("kind")
    group = version.rpartition("/")[0] if isinstance(version, str) else ""
    return "." in group and not group.endswith(".k8s.io") and isinstance(kind, str)


def _refuse_other_version(found: FoundObject, kinds: CustomKinds) -> None:
    version, kind = _identity(found)
    for known, name in kinds:
        if name == kind and known.rpartition("/")[0] == version.rpartition("/")[0]:
            raise InputError(
                f"{kind} is read as `{known}`, found apiVersion `{version}`", source=found.source, where=found.where
            )


def _is_unread(found: FoundObject) -> bool:
    kind, api_version = found.item.get("kind"), found.item.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        return False
    group = api_version.rpartition("/")[0]
    return kind in _UNREAD and ("." not in group or group.endswith(".k8s.io"))


def _decoded(found: FoundObject, kinds: CustomKinds) -> KubeObject:
    decoded = decode_object(found.item, source=found.source, where=found.where, more_kinds=kinds)
    assert decoded is not None  # unread kinds are refused, not left out
    return decoded


def _refuse_repeated(sources: Sources) -> None:
    seen: dict[tuple[type[KubeObject], str], str] = {}
    for source, items in sources:
        for item in items:
            identity = (type(item), item.key)
            if identity in seen:
                place = "twice" if seen[identity] == source else f"in {seen[identity]} already"
                raise InputError(f"{type(item).__name__} `{item.key}` is there {place}; remove one", source=source)
            seen[identity] = source


def _chosen(names: Sequence[str], files: dict[str, list[KubeObject]], present: Sequence[KubeObject]) -> list[Pod]:
    known = [item for item in present if isinstance(item, Pod)]
    if not names:
        return _all_waiting(known)
    chosen: list[Pod] = []
    for name in names:
        # A file takes precedence over a pod of that name.
        chosen += _from_file(name, files[name], known) if name in files else [_named(name, known)]
    repeated = [key for key, count in Counter(pod.key for pod in chosen).items() if count > 1]
    if repeated:
        raise CommandError(f"pod `{repeated[0]}` is given twice; each pod can be placed once")
    return chosen


def _all_waiting(known: Iterable[Pod]) -> list[Pod]:
    waiting = [pod for pod in known if not pod.spec.node_name and not pod.is_finished and not pod.is_terminating]
    if not waiting:
        raise CommandError(
            "there is no pod to decide about: every pod of the files is on a node, or finished",
            hint="name a file or a pod with --pod",
        )
    return waiting


def _from_file(name: str, items: Iterable[KubeObject], known: Iterable[Pod]) -> list[Pod]:
    pods = [item for item in items if isinstance(item, Pod)]
    if not pods:
        raise InputError("holds no Pod", source=name)
    running = {pod.key: pod.spec.node_name for pod in known if pod.spec.node_name}
    for pod in pods:
        if pod.key in running:
            problem = f"pod `{pod.key}` is in the cluster already, on node `{running[pod.key]}`; rename or remove one"
            raise InputError(problem, source=name)
        if pod.spec.node_name:
            note(f"{name}: pod `{pod.key}` has `spec.nodeName`, so only `{pod.spec.node_name}` is considered")
    return pods


def _named(name: str, known: Sequence[Pod]) -> Pod:
    """`namespace/name`, or a name that is the only one of its kind, the namespace `default` coming first."""
    matches = [pod for pod in known if pod.key == name or pod.name == name]
    preferred = [pod for pod in matches if pod.key in (name, f"default/{name}")]
    found = preferred or matches
    if not found:
        waiting = [pod.key for pod in known if not pod.spec.node_name]
        like = closest(name if "/" in name else f"default/{name}", waiting)
        hint = f"did you mean `{like}`?" if like else "name a pod of the cluster as NAMESPACE/NAME, or a .yaml file"
        raise CommandError(f"--pod {name}: no such file, and no such pod in the cluster", hint=hint)
    if len(found) > 1:
        keys = ", ".join(f"`{pod.key}`" for pod in found)
        raise CommandError(f"--pod {name}: several pods have this name: {keys}", hint="write NAMESPACE/NAME")
    pod = found[0]
    if pod.spec.node_name:
        raise CommandError(
            f"--pod {name}: already on node `{pod.spec.node_name}`, so there is nothing to decide",
            hint="to see where it would go now, remove `spec.nodeName` from it",
        )
    return pod
