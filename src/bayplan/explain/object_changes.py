"""Objects that are missing or too small: volume claims and their classes, quotas, groups.

Plugins propose changes of the objects that they watch (`object_remedies`); claims and storage classes are looked for
here. `bayplan.explain.suggestions` tries every proposal and keeps those that work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from bayplan.api.kinds import KINDS
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolumeClaim, StorageClass
from bayplan.app.frameworks import watched_resources
from bayplan.explain.case import JsonObject
from bayplan.explain.cluster_copy import ClusterCopy
from bayplan.explain.edits import Edit, merge_patch
from bayplan.framework.plugin import Plugin
from bayplan.framework.resources import resource_info

__all__ = ["has_companions", "object_changes"]

Proposal = tuple[str, list[Edit]]
"""In words, after "if"; and the edits."""


def object_changes(copy: ClusterCopy, pod: Pod, plugins: Iterable[Plugin]) -> Iterator[Proposal]:
    """`plugins` are those that reject the pod."""
    yield from _missing_claims(copy, pod)
    yield from _missing_classes(copy, pod)
    info = copy.info(pod)
    for plugin in plugins:
        for remedy in plugin.object_remedies(info):
            yield remedy.what, [_edit(remedy.current, remedy.wanted)]


def _edit(current: KubeObject | None, wanted: KubeObject) -> Edit:
    head = _head(type(wanted))
    if current is None:
        return Edit(kind="create", name=wanted.key, object={**head, **msgspec.to_builtins(wanted)})
    return Edit(kind="patch", name=wanted.key, object=head, patch=merge_patch(current, wanted))


def _head(kind: type[KubeObject]) -> JsonObject:
    """apiVersion and kind."""
    builtin = next((each for each in KINDS if each.type is kind), None)
    if builtin is not None:
        return {"apiVersion": builtin.api_version, "kind": builtin.name}
    info = resource_info(kind)
    return {"apiVersion": f"{info.group}/{info.version}", "kind": kind.__name__}


def _missing_claims(copy: ClusterCopy, pod: Pod) -> Iterator[Proposal]:
    """Volume claims that the pod names and nobody made, of the first class that there is."""
    objects = copy.cache.cluster.objects
    known = {claim.key for claim in objects.list(PersistentVolumeClaim)}
    wanted = [name for name in _claim_names(pod) if f"{pod.namespace}/{name}" not in known]
    for storage_class in objects.list(StorageClass) if wanted else ():
        edits = [
            Edit(kind="create", name=f"{pod.namespace}/{name}", object=_claim(pod, name, storage_class))
            for name in wanted
        ]
        yield f"{' and '.join(f'the claim {name}' for name in wanted)} of class {storage_class.name} existed", edits


def _claim_names(pod: Pod) -> list[str]:
    claims = [volume.persistent_volume_claim for volume in pod.spec.volumes or ()]
    return [claim.claim_name for claim in claims if claim is not None]


def _claim(pod: Pod, name: str, storage_class: StorageClass) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": pod.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class.name,
        },
    }


def _missing_classes(copy: ClusterCopy, pod: Pod) -> Iterator[Proposal]:
    """Storage classes that the pod's claims name and nobody made, like one that there is."""
    objects = copy.cache.cluster.objects
    claims = [objects.get(PersistentVolumeClaim, f"{pod.namespace}/{name}") for name in _claim_names(pod)]
    names = {claim.spec.storage_class_name for claim in claims if claim is not None and not claim.spec.volume_name}
    for name in sorted(name for name in names if name and objects.get(StorageClass, name) is None):
        for model in objects.list(StorageClass):
            metadata = msgspec.structs.replace(model.metadata, name=name, uid="", resource_version="")
            wanted = msgspec.structs.replace(model, metadata=metadata)
            made = msgspec.structs.replace(_edit(None, wanted), like=model.name)
            yield f"the storage class {name} existed, like {model.name}", [made]


def has_companions(copy: ClusterCopy, node: str) -> bool:
    """Whether plugins watch objects with the name of the node: a new node would need one of its own."""
    kinds = watched_resources(decider.framework for decider in copy.deciders.values())
    return any(copy.cache.cluster.objects.get(kind, node) is not None for kind in kinds)
