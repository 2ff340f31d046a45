"""How the edits of a suggestion are done: shell commands around kubectl that an API server accepts as they are.

Of a pod that exists, an API server lets labels change, tolerations be added and gates be removed; its subresource
`resize` changes CPU and memory. For everything else the pod is made anew: from the template of its owner, or, if it has
no owner, from what it is itself. What no command does is said in words.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from bayplan.api.devices import ResourceClaim
from bayplan.api.meta import OwnerReference
from bayplan.api.pod import Container, Pod, PodSpec, ResourceRequirements
from bayplan.api.workload import ReplicaSet
from bayplan.explain.claims.base import Edit, JsonObject
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.edits import patched

__all__ = ["Doing", "commands_for"]

_TEMPLATE_HASH = "pod-template-hash"
_RESIZABLE = frozenset({"cpu", "memory"})
_ROLLED_OUT = ("Deployment", "DaemonSet")
"""Owners that replace their pods when their template changes; of the others, the pod has to be deleted."""
_TEMPLATED = (*_ROLLED_OUT, "ReplicaSet", "ReplicationController", "StatefulSet")
_JOB_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_ADDED_BY_ADMISSION = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_AS_ANOTHER = {"uid": None, "resourceVersion": None, "creationTimestamp": None, "ownerReferences": None}


class Doing(NamedTuple):
    commands: list[str]
    """For a shell, in this order."""
    how: str
    """What has to be done by hand; empty where the commands do it all."""


def commands_for(copy: ClusterCopy, edits: Sequence[Edit]) -> Doing:
    commands: list[str] = []
    words: list[str] = []
    for step in (step for edit in edits for step in _STEPS[edit.kind](copy, edit)):
        if isinstance(step, _Words):
            words.append(step.text)
        else:
            commands.append(step)
    return Doing(list(dict.fromkeys(commands)), " ".join(dict.fromkeys(words)))


class _Words(NamedTuple):
    """A step that is no command."""

    text: str


_Step = str | _Words


def _kubectl(verb: str, kind: str, key: str, *more: str) -> str:
    namespace, _, name = key.rpartition("/")
    where = ("-n", namespace) if namespace else ()
    return shlex.join(("kubectl", verb, kind, name, *where, *more))


def _json(document: JsonObject) -> str:
    return json.dumps(document, separators=(",", ":"))


def _made_anew(kind: str, key: str, patch: JsonObject, *, kept: bool = False, merge: bool = False) -> str:
    """Read, changed, and put in place of what there is; or beside it."""
    change = ("kubectl", "patch", "--local", "-f", "-", *(("--type", "merge") if merge else ()), "-p", _json(patch))
    write = "kubectl create -f -" if kept else "kubectl replace --force -f -"
    steps = [_kubectl("get", kind, key, "-o", "json"), shlex.join((*change, "-o", "json")), write]
    return " | ".join(step for step in steps if patch or "--local" not in step)


# Pods


def _patch_pod(copy: ClusterCopy, edit: Edit) -> Iterator[_Step]:
    pod = copy.waiting.get(edit.name)
    if pod is None:
        return
    after = patched(pod, edit.patch)
    if _is_allowed(pod, after):
        yield _kubectl("patch", "pod", edit.name, "-p", _json(edit.patch))
    elif _is_allowed(pod, after, resized=True):
        rest = {**edit.patch, "spec": {name: part for name, part in edit.patch["spec"].items() if name != "containers"}}
        sizes = {"spec": {"containers": edit.patch["spec"]["containers"]}}
        yield _kubectl("patch", "pod", edit.name, "--subresource", "resize", "-p", _json(sizes))
        if rest["spec"] or len(rest) > 1:
            yield _kubectl("patch", "pod", edit.name, "-p", _json(rest))
    elif after.spec.volumes != pod.spec.volumes:
        yield _Words(f"Create it anew without the volume and its mounts{_from_template(pod)}.")
    else:
        yield from _pod_made_anew(copy, pod, edit.patch)


def _from_template(pod: Pod) -> str:
    owner = pod.controller
    return f", in the template of {owner.kind} {owner.name}" if owner is not None else ""


def _is_allowed(pod: Pod, after: Pod, *, resized: bool = False) -> bool:
    """Whether an API server takes the change of an existing pod, with a resize if need be."""
    before, wanted = pod.spec, after.spec
    if resized and not _is_resize(before, wanted):
        return False
    adds = all(toleration in (wanted.tolerations or ()) for toleration in before.tolerations or ())
    removes = all(gate in (before.scheduling_gates or ()) for gate in wanted.scheduling_gates or ())
    same = msgspec.structs.replace(
        wanted,
        tolerations=before.tolerations,
        scheduling_gates=before.scheduling_gates,
        containers=before.containers if resized else wanted.containers,
    )
    return adds and removes and same == before


def _is_resize(before: PodSpec, after: PodSpec) -> bool:
    """Whether containers differ in amounts of CPU and memory alone, and the pod stays of its class of service."""
    pairs = list(zip(before.containers or (), after.containers or (), strict=False))
    quality = [_is_guaranteed(spec) for spec in (before, after)]
    return quality[0] == quality[1] and all(_is_resized(one, other) for one, other in pairs)


def _is_resized(before: Container, after: Container) -> bool:
    if msgspec.structs.replace(after, resources=before.resources) != before:
        return False
    for part in ("requests", "limits"):
        old, new = _amounts(before.resources, part), _amounts(after.resources, part)
        if old.keys() != new.keys() or any(old[name] != new[name] for name in old.keys() - _RESIZABLE):
            return False
    return True


def _amounts(resources: ResourceRequirements | None, part: str) -> dict[str, str]:
    found: dict[str, str] | None = getattr(resources, part, None)
    return found or {}


def _is_guaranteed(spec: PodSpec) -> bool:
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    return all(
        _amounts(each.resources, "limits").get(name) == _amounts(each.resources, "requests").get(name) is not None
        for each in containers
        for name in _RESIZABLE
    )


def _pod_made_anew(copy: ClusterCopy, pod: Pod, patch: JsonObject) -> Iterator[_Step]:
    owner = _owner_of(copy, pod)
    if owner is None:
        yield _made_anew("pod", pod.key, patch)
        return
    key, template = f"{pod.namespace}/{owner.name}", {"spec": {"template": _for_template(patch)}}
    if owner.kind in _TEMPLATED:
        yield _kubectl("patch", owner.kind.lower(), key, "-p", _json(template))
        if owner.kind not in _ROLLED_OUT:
            yield _kubectl("delete", "pod", pod.key)
    elif owner.kind == "Job":
        # Its template cannot be changed, and its selector is made with it.
        metadata = {**template["spec"]["template"].get("metadata", {})}
        metadata["labels"] = {**metadata.get("labels", {}), **dict.fromkeys(_JOB_LABELS)}
        changed = {**template["spec"]["template"], "metadata": metadata}
        yield _made_anew("job", key, {"spec": {"selector": None, "template": changed}})
    else:
        yield _Words(f"Make the change where the pod comes from: {owner.kind} {owner.name}.")


def _owner_of(copy: ClusterCopy, pod: Pod) -> OwnerReference | None:
    """Who has the template: the Deployment behind a ReplicaSet."""
    owner = pod.controller
    if owner is None or owner.kind != "ReplicaSet":
        return owner
    replicas = copy.cache.cluster.objects.get(ReplicaSet, f"{pod.namespace}/{owner.name}")
    if replicas is not None:
        return replicas.controller or owner
    ending = f"-{pod.labels.get(_TEMPLATE_HASH, '')}"
    is_of_deployment = len(ending) > 1 and owner.name.endswith(ending)
    return OwnerReference(kind="Deployment", name=owner.name.removesuffix(ending)) if is_of_deployment else owner


def _for_template(patch: JsonObject) -> JsonObject:
    """Without the tolerations that every new pod gets by itself."""
    tolerations = patch.get("spec", {}).get("tolerations")
    if not tolerations:
        return patch
    own = [each for each in tolerations if each.get("key") not in _ADDED_BY_ADMISSION]
    return {**patch, "spec": {**patch["spec"], "tolerations": own}}


def _add_pod(copy: ClusterCopy, edit: Edit) -> Iterator[_Step]:
    namespace, _, name = edit.name.rpartition("/")
    model = copy.waiting.get(f"{namespace}/{name.rpartition('-more-')[0]}")
    if model is None or model.controller is not None:
        owner = f"{model.controller.kind} {model.controller.name}" if model is not None and model.controller else "it"
        yield _Words(f"Scale {owner} up.")
    else:
        yield _made_anew("pod", model.key, {"metadata": {"name": name, **_AS_ANOTHER}}, kept=True)


# Resource claims


def _patch_claim(copy: ClusterCopy, edit: Edit) -> Iterator[_Step]:
    """Neither a claim nor the template of one can be changed."""
    template = _template_of(copy, edit.name)
    if template is None:
        yield _made_anew("resourceclaim", edit.name, edit.patch, merge=True)
        return
    pod, name = template
    yield _made_anew("resourceclaimtemplate", f"{pod.namespace}/{name}", {"spec": edit.patch}, merge=True)
    yield _made_anew("pod", pod.key, {}) if pod.controller is None else _kubectl("delete", "pod", pod.key)


def _template_of(copy: ClusterCopy, claim: str) -> tuple[Pod, str] | None:
    """The pod that a claim was made for, and the template that it was made from."""
    namespace, _, name = claim.partition("/")
    for pod in copy.waiting.values():
        for status in pod.status.resource_claim_statuses or ():
            if pod.namespace == namespace and status.resource_claim_name == name:
                asked = next((each for each in pod.spec.resource_claims or () if each.name == status.name), None)
                if asked is not None and asked.resource_claim_template_name:
                    return pod, asked.resource_claim_template_name
    return None


def _release_claim(copy: ClusterCopy, edit: Edit) -> Iterator[_Step]:
    """When its pods are gone, which are edits of their own, a controller releases it; one without pods is made anew."""
    claim = copy.cache.cluster.objects.get(ResourceClaim, edit.name)
    if claim is not None and not claim.users:
        yield _made_anew("resourceclaim", edit.name, {})


# Everything else


def _create(copy: ClusterCopy, edit: Edit) -> Iterator[_Step]:
    if edit.like:
        name = {"name": edit.name.rpartition("/")[2], **_AS_ANOTHER}
        yield _made_anew(_type_of(edit.object), edit.like, {"metadata": name}, kept=True)
    else:
        yield f"echo {shlex.quote(_json(edit.object))} | kubectl create -f -"


def _patch_object(copy: ClusterCopy, edit: Edit) -> Iterator[_Step]:
    yield _kubectl("patch", _type_of(edit.object), edit.name, "--type", "merge", "-p", _json(edit.patch))


def _type_of(head: JsonObject) -> str:
    """`elasticquota.v1alpha1.scheduling.x-k8s.io`, as kubectl takes it."""
    group, _, version = str(head["apiVersion"]).rpartition("/")
    kind = str(head["kind"]).lower()
    return f"{kind}.{version}.{group}" if group else kind


def _said(words: str) -> Callable[[ClusterCopy, Edit], Iterable[_Step]]:
    return lambda copy, edit: [_Words(words)]


_STEPS: dict[str, Callable[[ClusterCopy, Edit], Iterable[_Step]]] = {
    "patchPod": _patch_pod,
    "patchNode": lambda copy, edit: [_kubectl("patch", "node", edit.name, "-p", _json(edit.patch))],
    "deletePod": lambda copy, edit: [_kubectl("delete", "pod", edit.name)],
    "addPod": _add_pod,
    "addNode": _said("Add a node of that kind."),
    "removeNode": lambda copy, edit: [_kubectl("delete", "node", edit.name)],
    "create": _create,
    "patchClaim": _patch_claim,
    "releaseClaim": _release_claim,
    "patch": _patch_object,
}
