"""What is done to a case before an experiment with it: its documents as their author would have written them then."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import msgspec

from bayplan.api.patches import merge_patch
from bayplan.explain.claims.base import Edit
from tests.patching import merged
from tests.truth.documents import SUBJECT, Case, JsonObject, budget_status
from tests.truth.owned_cases import is_lasting, is_made_again

__all__ = ["Change", "changed", "key_of"]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to a case before it is started."""

    edits: tuple[Edit, ...] = ()
    gone: tuple[str, ...] = ()
    """Pods that are not there any more."""
    drain: str = ""
    drained: tuple[str, ...] = (SUBJECT,)
    """The pods that have to leave the drained node, in the order in which they come again."""
    without_plugin: str = ""
    weights: tuple[tuple[str, int], ...] = ()
    line: tuple[str, ...] = ()
    """The pods that wait, in the order in which they come; the others keep their places."""
    nominated: tuple[tuple[str, str], ...] = ()
    """Pods that wait for the room that they have made on a node."""
    placed: tuple[tuple[str, str], ...] = ()
    """Pods that stay on a node, where only the subject is scheduled again."""
    only_devices: tuple[str, ...] = ()
    """The devices that are left, if not all are."""
    without_extenders: bool = False
    """Which is how suppositions are tried, and said to be."""


def changed(case: Case, change: Change) -> Case:
    """The case as its author would have written it after the change."""
    case = copy.deepcopy(case)
    case.pods[:] = [pod for pod in case.pods if key_of(pod) not in change.gone]
    for edit in change.edits:
        _EDITS[edit.kind](case, edit)
    if change.drain:
        for node in case.nodes:
            if node["metadata"]["name"] == change.drain:
                node["spec"]["unschedulable"] = True
        for pod in case.pods:
            if key_of(pod) in change.drained:
                pod["spec"].pop("nodeName", None)
                pod.pop("status", None)
        place = {key: number for number, key in enumerate(change.drained)}
        case.pods.sort(key=lambda pod: place.get(key_of(pod), -1))
    if change.line:
        _put_in_line(case, change.line)
    if change.only_devices:
        _keep_devices(case, frozenset(change.only_devices))
    nodes, nominated = dict(change.placed), dict(change.nominated)
    for pod in case.pods:
        if key_of(pod) in nominated:
            pod["status"] = {"nominatedNodeName": nominated[key_of(pod)]}
        if key_of(pod) in nodes:
            pod["spec"]["nodeName"] = nodes[key_of(pod)]
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for item in case.objects:
        if item["kind"] == "PodDisruptionBudget":
            item["status"] = budget_status(item, [pod for pod in case.pods if pod["spec"].get("nodeName")])
    return case


def _put_in_line(case: Case, line: Sequence[str]) -> None:
    """Those that wait and are not in line come after those that are."""
    places = [place for place, pod in enumerate(case.pods) if key_of(pod) in line]
    ordered = sorted((case.pods[place] for place in places), key=lambda pod: line.index(key_of(pod)))
    for place, pod in zip(places, ordered, strict=True):
        case.pods[place] = pod


def _keep_devices(case: Case, names: frozenset[str]) -> None:
    for item in case.objects:
        spec = item.get("spec", {})
        if item["kind"] == "ResourceSlice" and "devices" in spec:
            prefix = f"{spec['driver']}/{spec['pool']['name']}"
            spec["devices"] = [device for device in spec["devices"] if f"{prefix}/{device['name']}" in names]


def key_of(item: JsonObject) -> str:
    return f"{item['metadata'].get('namespace', 'default')}/{item['metadata']['name']}"


def _patch_pod(case: Case, edit: Edit) -> None:
    case.pods[:] = [merged(pod, edit.patch) if key_of(pod) == edit.name else pod for pod in case.pods]


def _patch_node(case: Case, edit: Edit) -> None:
    case.nodes[:] = [merged(n, edit.patch) if n["metadata"]["name"] == edit.name else n for n in case.nodes]


def _patch_object(case: Case, edit: Edit) -> None:
    def patched(item: JsonObject) -> JsonObject:
        names = key_of(item), item["metadata"]["name"] if "namespace" not in item["metadata"] else ""
        is_meant = item["kind"] == edit.object["kind"] and edit.name in names
        return merge_patch(item, edit.patch) if is_meant else item

    case.objects[:] = [patched(item) for item in case.objects]


def _delete_pod(case: Case, edit: Edit) -> None:
    """Its controller makes it again: it waits, and came last."""
    deleted = [pod for pod in case.pods if key_of(pod) == edit.name]
    case.pods[:] = [pod for pod in case.pods if key_of(pod) != edit.name]
    for pod in filter(is_made_again, deleted):
        pod["spec"].pop("nodeName", None)
        pod.pop("status", None)
        case.pods.append(pod)


def _add_node(case: Case, edit: Edit) -> None:
    """A twin, which is named after its model, gets pods as that has from DaemonSets and its kubelet."""
    case.nodes.append(edit.object)
    model, _, is_twin = edit.name.rpartition("-more-")
    for pod in [pod for pod in case.pods if is_twin and is_lasting(pod) and pod["spec"].get("nodeName") == model]:
        started = copy.deepcopy(pod)
        started["metadata"]["name"] = f"{pod['metadata']['name']}-started"
        started["spec"]["nodeName"] = edit.name
        case.pods.append(started)


def _patch_claim(case: Case, edit: Edit) -> None:
    case.objects[:] = [merged(item, edit.patch) if _is_claim(item, edit.name) else item for item in case.objects]


def _release_claim(case: Case, edit: Edit) -> None:
    for item in case.objects:
        if _is_claim(item, edit.name):
            item.pop("status", None)


def _is_claim(item: JsonObject, name: str) -> bool:
    return item["kind"] == "ResourceClaim" and key_of(item) == name


_EDITS = {
    "patchClaim": _patch_claim,
    "releaseClaim": _release_claim,
    "patchPod": _patch_pod,
    "patchNode": _patch_node,
    "deletePod": _delete_pod,
    "addPod": lambda case, edit: case.pods.append(edit.object),
    "addNode": _add_node,
    "patch": _patch_object,
    "create": lambda case, edit: case.objects.append(edit.object),
}
