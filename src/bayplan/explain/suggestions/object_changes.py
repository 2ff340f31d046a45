"""Objects that are missing or too small: volume claims and their classes, quotas, groups.

Plugins propose changes of the objects that they watch (`object_remedies`); claims and storage classes are looked for
here. `bayplan.explain.suggestions.search` tries every proposal and keeps those that work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from bayplan.api.kinds import KINDS
from bayplan.api.meta import KubeObject
from bayplan.api.pod import Pod
from bayplan.api.storage import PersistentVolumeClaim, StorageClass
from bayplan.app.frameworks import watched_resources
from bayplan.explain.claims.base import Edit, JsonObject
from bayplan.explain.whatif.cluster_copy import ClusterCopy
from bayplan.explain.whatif.edits import kind_of, merge_patch
from bayplan.framework.plugin import Plugin
from bayplan.framework.resources import resource_info
from bayplan.framework.runtime.call import Complaint, call_object_remedies

__all__ = ["has_companions", "object_changes"]

Proposal = tuple[str, list[Edit]]
"""In words, after "if"; and the edits."""


def object_changes(copy: ClusterCopy, pod: Pod, plugins: Iterable[Plugin], complain: Complaint) -> Iterator[Proposal]:
    """`plugins` are those that reject the pod."""
    yield from _missing_claims(copy, pod)
    yield from _missing_classes(copy, pod)
    info = copy.info(pod)
    for plugin in plugins:
        for remedy in call_object_remedies(plugin, complain, info):
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
    return {"apiVersion": resource_info(kind).api_version, "kind": kind_of(kind)}


def _missing_claims(copy: ClusterCopy, pod: Pod) -> Iterator[Proposal]:
    """Volume claims that the pod names and that do not exist, of each storage class."""
    objects = copy.cache.cluster.objects
    known = {claim.key for claim in objects.list(PersistentVolumeClaim)}
    wanted = [name for name in _claim_names(pod) if f"{pod.namespace}/{name}" not in known]
    named = " and ".join(f"the claim {name}" for name in wanted)
    classes = list(objects.list(StorageClass)) if wanted else []
    for storage_class in classes:
        edits = [_made(_claim(pod, name, storage_class.name)) for name in wanted]
        yield f"{named} of class {storage_class.name} existed", edits
    if wanted and not classes:
        # Without a storage class, volumes are created by hand, each for its claim.
        edits = [_made(document) for name in wanted for document in _claim_with_volume(pod, name)]
        volumes = " and ".join(f"{pod.namespace}-{name}" for name in wanted)
        yield f"{named} existed, bound to the volume{'' if len(wanted) == 1 else 's'} {volumes}", edits


def _made(document: JsonObject) -> Edit:
    namespace, name = document["metadata"].get("namespace", ""), document["metadata"]["name"]
    return Edit(kind="create", name=f"{namespace}/{name}" if namespace else name, object=document)


def _claim_names(pod: Pod) -> list[str]:
    claims = [volume.persistent_volume_claim for volume in pod.spec.volumes or ()]
    return [claim.claim_name for claim in claims if claim is not None]


def _claim_with_volume(pod: Pod, name: str) -> Iterator[JsonObject]:
    """A volume on the node's own disk, which any node can mount, and the claim that it is for."""
    volume = f"{pod.namespace}-{name}"
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "hostPath": {"path": f"/var/lib/volumes/{volume}", "type": "DirectoryOrCreate"},
        "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": pod.namespace, "name": name},
    }
    yield {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": spec}
    claim = _claim(pod, name, "")
    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    claim["spec"]["volumeName"] = volume
    yield claim


def _claim(pod: Pod, name: str, storage_class: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": pod.namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
        },
    }


def _missing_classes(copy: ClusterCopy, pod: Pod) -> Iterator[Proposal]:
    """Storage classes that the pod's claims name and that do not exist, modelled on one that does."""
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
