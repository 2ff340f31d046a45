"""PATCH: JSON patch, merge patch, strategic merge patch and apply (JSON or YAML), all written as updates."""

from __future__ import annotations

from bayplan.api.patches import BadPatch, json_patch, merge_patch
from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.objects import managed_fields
from bayplan.apiserver.objects.bodies import (
    check_kind,
    check_repetitions,
    conform_applied,
    conform_object,
    read_document,
)
from bayplan.apiserver.objects.strategic_merge import strategic_merge
from bayplan.apiserver.objects.writing import Caller, ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, encode
from bayplan.apiserver.protocol.exchange import Request, WriteOptions

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Patcher:
    """Applies patches to objects and their subresources."""

    def __init__(self, objects: ObjectWriter) -> None:
        self._objects = objects

    def patch(
        self, kind: ServedKind, namespace: str, name: str, request: Request, *, subresource: str, warnings: list[str]
    ) -> tuple[bytes, int]:
        """Patch an object; answers its bytes and 201 when an apply created it."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] + ([] if kind.is_custom else [STRATEGIC_PATCH])
        if media_type not in accepted:
            raise errors.unsupported_media_type(accepted)
        options = WriteOptions.of(request)
        if media_type == APPLY_PATCH:
            return self._apply(kind, namespace, name, request, options, subresource, warnings)
        if "force" in request.query:
            cause = errors.forbidden_field("force", "may not be specified for non-apply patch")
            raise errors.invalid("PatchOptions", "", [cause], group="meta.k8s.io")
        patch = read_document(request.body, "application/json")
        caller = Caller(request.user, options, subresource=subresource, warnings=warnings)

        def change(current: Json) -> Json:
            patched = patched_with(current, patch, media_type, kind)
            try:
                conform_object(patched, kind, validation=options.field_validation, warnings=warnings)
            except errors.RequestRefused as problem:
                raise _unfit(patch, problem) from problem
            _check_uid(kind, current, patched)
            return patched

        return self._objects.update(kind, namespace, name, change, caller), 200

    def _apply(
        self,
        kind: ServedKind,
        namespace: str,
        name: str,
        request: Request,
        options: WriteOptions,
        subresource: str,
        warnings: list[str],
    ) -> tuple[bytes, int]:
        applied = applied_object(kind, namespace, name, request)
        check_repetitions(request.body, kind, options.field_validation, warnings)
        caller = Caller(request.user, options, managed_fields.APPLY, subresource, warnings=warnings)
        writer = self._objects.writer(kind, caller)

        owned = _ownable(kind, applied, subresource)

        def change(current: Json) -> Json:
            return managed_fields.apply(current, owned, kind.type, writer, force=options.force)

        if self._objects.store.get(kind.stored_as, namespace, name) is not None:
            return self._objects.update(kind, namespace, name, change, caller), 200
        if subresource:
            raise errors.not_found(kind.plural, name, group=kind.group)
        if applied["metadata"].get("uid"):
            problem = "uid mismatch: the provided object specified uid "
            problem += f"{applied['metadata']['uid']}, and no existing object was found"
            raise errors.conflict(kind.plural, name, group=kind.group, problem=problem)
        created = managed_fields.apply(None, owned, kind.type, writer, force=options.force)
        return self._objects.create(kind, namespace, applied | created, caller), 201


def applied_object(kind: ServedKind, namespace: str, name: str, request: Request) -> Json:
    """The configuration that a request applies to an object of this name."""
    if not request.query.get("fieldManager"):
        cause = errors.required("fieldManager", "is required for apply patch")
        raise errors.invalid("PatchOptions", "", [cause], group="meta.k8s.io")
    applied = read_document(request.body, "application/yaml")
    if not isinstance(applied, dict):
        raise errors.bad_request("an applied configuration is an object")
    for field in ("apiVersion", "kind"):
        if not applied.get(field):
            raise errors.bad_request(f"an applied configuration needs `{field}`")
    check_kind(applied, kind)
    metadata = applied["metadata"]
    if metadata.get("managedFields"):
        raise errors.bad_request("metadata.managedFields must be nil")
    if metadata.setdefault("name", name) != name:
        given = metadata["name"]
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    given_namespace = str(metadata.get("namespace") or "")
    if kind.namespaced and metadata.setdefault("namespace", namespace) != namespace:
        raise errors.bad_request(errors.NAMESPACE_MISMATCH)
    conform_applied(applied, kind, given_namespace=given_namespace)
    return applied


def _ownable(kind: ServedKind, applied: Json, subresource: str) -> Json:
    """The part of a configuration that can be set, and so owned, at the object or at its status."""
    if not kind.status or subresource not in ("", "status"):
        return applied
    other = "spec" if subresource else "status"
    return {name: value for name, value in applied.items() if name != other}


def _unfit(patch: object, problem: errors.RequestRefused) -> errors.RequestRefused:
    """A patch that makes of an object something else than an object of its kind."""
    text = problem.status["message"].partition(": ")[2]
    return errors.invalid("", "", [errors.Cause("patch", f"Invalid value: {encode(patch).decode()}: {text}")])


def _check_uid(kind: ServedKind, current: Json, patched: Json) -> None:
    """A patch that names another uid is invalid, where an update with one is a conflict."""
    metadata = patched.get("metadata")
    given = metadata.get("uid") if isinstance(metadata, dict) else None
    if given and given != current["metadata"]["uid"]:
        cause = errors.invalid_value("metadata.uid", given, "field is immutable")
        raise errors.invalid(kind.kind, current["metadata"]["name"], [cause], group=kind.group)


def patched_with(current: Json, patch: object, media_type: str, kind: ServedKind) -> Json:
    """The document after the patch. Raises 400 for a malformed patch and 422 for one that does not fit."""
    name = current["metadata"].get("name", "")
    try:
        if media_type == JSON_PATCH:
            patched = json_patch(current, patch)
        elif media_type == MERGE_PATCH:
            patched = merge_patch(current, patch)
        else:
            patched = strategic_merge(current, patch, kind.type)
    except BadPatch as problem:
        if problem.is_malformed:
            raise errors.bad_request(str(problem)) from problem
        cause = errors.Cause("patch", f"Invalid value: {problem}")
        raise errors.invalid(kind.kind, name, [cause], group=kind.group) from problem
    except RecursionError as problem:
        raise errors.bad_request("the patch is nested too deeply") from problem
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise errors.bad_request("the patched object is no object with metadata")
    return patched
