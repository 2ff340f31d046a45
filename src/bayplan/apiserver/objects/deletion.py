"""Deleting objects: preconditions, grace, finalizers, propagation.

An object disappears at once, or is marked with a deletionTimestamp and disappears when its kubelet or the owners of
its finalizers are done. The garbage collector does what propagation asks for (see `simulation.controllers.garbage`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.objects.writing import ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue, timestamp
from bayplan.apiserver.storage.store import Entry

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_IMMORTAL_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
_DEFAULT_GRACE_SECONDS = 30
_POLICIES = ("Orphan", "Background", "Foreground")
_NUMBER = re.compile(r"-?[0-9]{1,10}")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """The body or query of a delete."""

    grace_seconds: int | None = None
    uid: str = ""
    resource_version: str = ""
    propagation: str = ""
    dry_run: bool = False

    @classmethod
    def read(cls, document: Json, query: Mapping[str, str]) -> DeleteOptions:
        """From a DeleteOptions document, with the query string filling in what it lacks."""
        preconditions = _typed(document, "preconditions", dict, {})
        grace = _typed(document, "gracePeriodSeconds", int, None)
        if grace is None and query.get("gracePeriodSeconds"):
            grace = _whole(query["gracePeriodSeconds"])
        policy = _typed(document, "propagationPolicy", str, query.get("propagationPolicy", ""))
        if policy and document.get("orphanDependents") is not None:
            detail = "orphanDependents and deletionPropagation cannot be both set"
            cause = errors.invalid_value("propagationPolicy", policy, detail)
            raise errors.invalid("DeleteOptions", "", [cause], group="meta.k8s.io")
        if document.get("orphanDependents") is True or query.get("orphanDependents") in ("true", "1"):
            policy = "Orphan"
        if policy and policy not in _POLICIES:
            cause = errors.not_supported("propagationPolicy", policy, [*_POLICIES, "nil"])
            raise errors.invalid("DeleteOptions", "", [cause], group="meta.k8s.io")
        dry_run = document.get("dryRun") or ([query["dryRun"]] if query.get("dryRun") else [])
        if dry_run not in ([], ["All"]):
            cause = errors.not_supported("dryRun", str(dry_run), ["All"])
            raise errors.invalid("DeleteOptions", "", [cause], group="meta.k8s.io")
        return cls(
            grace_seconds=grace,
            uid=_typed(preconditions, "uid", str, ""),
            resource_version=_typed(preconditions, "resourceVersion", str, ""),
            propagation=policy,
            dry_run=bool(dry_run),
        )


def _typed(document: Json, name: str, expected: type, default: JsonValue) -> JsonValue:
    value = document.get(name)
    if value is None:
        return default
    if not isinstance(value, expected) or isinstance(value, bool):
        raise errors.bad_request(f"DeleteOptions: {name}: expected {expected.__name__}")
    return value


def _whole(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise errors.bad_request(f'invalid gracePeriodSeconds: "{text}"')
    return int(text)


def delete(objects: ObjectWriter, kind: ServedKind, entry: Entry, options: DeleteOptions) -> tuple[bytes, bool]:
    """Delete one object. Answers its last bytes and whether it is gone already."""
    if kind.stored_as == "namespaces" and entry.name in _IMMORTAL_NAMESPACES:
        raise errors.forbidden(kind.plural, entry.name, "this namespace may not be deleted")
    _check_preconditions(kind, entry, options)
    document = objects.decoded(entry, kind)
    metadata = document["metadata"]
    grace = _grace_seconds(kind, document, options)
    _apply_propagation(metadata, options)
    waits = bool(metadata.get("finalizers")) or _namespace_waits(kind, document)
    if grace == 0 and not waits:
        if metadata.get("deletionGracePeriodSeconds"):
            metadata["deletionGracePeriodSeconds"] = 0
        return objects.remove(kind, document, dry_run=options.dry_run), True
    before = objects.decoded(entry, kind)
    _mark(objects, kind, document, grace)
    if document == before:
        return entry.raw, False
    return objects.commit(kind, document, dry_run=options.dry_run), False


def _check_preconditions(kind: ServedKind, entry: Entry, options: DeleteOptions) -> None:
    problem = ""
    if options.uid and options.uid != entry.uid:
        problem = f"the UID in the precondition ({options.uid}) does not match the UID in record ({entry.uid}). "
        problem += "The object might have been deleted and then recreated"
    elif options.resource_version and options.resource_version != str(entry.revision):
        given, found = options.resource_version, entry.revision
        problem = f"the ResourceVersion in the precondition ({given}) does not match the ResourceVersion in record "
        problem += f"({found}). The object might have been modified"
    if problem:
        # Deletions name the kind here, where every other conflict names the resource.
        raise errors.conflict(kind.kind, entry.name, group=kind.group, problem=problem)


def _grace_seconds(kind: ServedKind, document: Json, options: DeleteOptions) -> int:
    """How long the object may take; zero for everything but a pod on a node."""
    if not kind.graceful:
        return 0
    spec, status = document.get("spec", {}), document.get("status", {})
    grace = options.grace_seconds
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    if grace < 0:
        grace = 1
    if not spec.get("nodeName") or status.get("phase") in ("Succeeded", "Failed"):
        return 0
    running = document["metadata"].get("deletionGracePeriodSeconds")
    # A deletion under way can be shortened, never prolonged.
    return min(grace, running) if running is not None and grace > 0 else grace


def _namespace_waits(kind: ServedKind, document: Json) -> bool:
    return kind.stored_as == "namespaces" and bool(document.get("spec", {}).get("finalizers"))


def _apply_propagation(metadata: Json, options: DeleteOptions) -> None:
    finalizers = [name for name in metadata.get("finalizers", []) if name not in (FOREGROUND, ORPHAN)]
    if options.propagation == "Foreground":
        finalizers.append(FOREGROUND)
    elif options.propagation == "Orphan":
        finalizers.append(ORPHAN)
    elif not options.propagation:
        return
    metadata["finalizers"] = finalizers
    if not finalizers:
        del metadata["finalizers"]


def _mark(objects: ObjectWriter, kind: ServedKind, document: Json, grace: int) -> None:
    metadata = document["metadata"]
    if "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds", 0) <= grace:
        return
    metadata["deletionTimestamp"] = timestamp(objects.clock.now() + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if kind.generation:
        metadata["generation"] = metadata.get("generation", 0) + 1
    if kind.stored_as == "namespaces":
        document.setdefault("status", {})["phase"] = "Terminating"
