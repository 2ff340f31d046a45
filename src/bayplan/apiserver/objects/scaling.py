"""The scale of a workload: its counts of replicas, as an object of their own."""

from __future__ import annotations

from bayplan.apiserver.kinds.columns import AGE, NAME, Column, at
from bayplan.apiserver.kinds.kind import FieldPath, Scale, ServedKind
from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.apiserver.objects import managed_fields
from bayplan.apiserver.objects.bodies import conform_object, read_document, read_object
from bayplan.apiserver.objects.patching import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    applied_object,
    patched_with,
)
from bayplan.apiserver.objects.representation import negotiate, render
from bayplan.apiserver.objects.writing import Caller, ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue, decode_object, encode
from bayplan.apiserver.protocol.exchange import ApiAnswer, Request, WriteOptions
from bayplan.apiserver.protocol.selectors import selector_text

_COLUMNS = (
    NAME,
    Column("Desired", at("spec", "replicas", default=0), type="integer"),
    Column("Available", at("status", "replicas", default=0), type="integer"),
    AGE,
)
_KIND = ServedKind(
    "autoscaling", "v1", "Scale", "scales", type=builtin_types()["autoscaling.v1.Scale"], columns=_COLUMNS
)
_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class Scaling:
    """Reads and writes scales."""

    def __init__(self, objects: ObjectWriter) -> None:
        self._objects = objects

    def answer(self, kind: ServedKind, namespace: str, name: str, request: Request, warnings: list[str]) -> ApiAnswer:
        """Answer a GET, PUT or PATCH of the scale of an object."""
        entry = self._objects.store.get(kind.stored_as, namespace, name)
        if kind.scale is None:
            raise errors.unknown_path()
        if entry is None:
            raise errors.not_found(kind.plural, name, group=kind.group)
        current = _scale_of(kind, kind.scale, self._objects.decoded(entry, kind))
        if request.method != "GET":
            options = WriteOptions.of(request)
            media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "PATCH" and media_type == APPLY_PATCH:
                raw = self._apply(kind, kind.scale, namespace, name, request)
            else:
                wanted = _wanted(kind, current, request, media_type, warnings)
                _check(wanted, name)
                caller = Caller(request.user, options, subresource="scale", warnings=warnings)
                raw = self._objects.update(
                    kind, namespace, name, lambda document: _scaled(document, kind.scale, wanted), caller
                )
            current = _scale_of(kind, kind.scale, decode_object(raw))
        representation = negotiate(request.headers.get("accept", ""), request.query.get("includeObject", ""))
        body = render(_KIND, encode(current), representation, now=self._objects.clock.now())
        return ApiAnswer(200, body, representation.content_type)

    def _apply(self, kind: ServedKind, scale: Scale, namespace: str, name: str, request: Request) -> bytes:
        applied = applied_object(_KIND, namespace, name, request)
        _check(applied, name)
        options = WriteOptions.of(request)
        caller = Caller(request.user, options, managed_fields.APPLY, "scale")
        writer = self._objects.writer(kind, caller)
        owned: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}}
        if "replicas" in (applied.get("spec") or {}):
            _put(owned, scale.spec_path, applied["spec"]["replicas"])

        def change(document: Json) -> Json:
            return managed_fields.apply(document, owned, kind.type, writer, force=options.force)

        return self._objects.update(kind, namespace, name, change, caller)


def _wanted(kind: ServedKind, current: Json, request: Request, media_type: str, warnings: list[str]) -> Json:
    """The scale of a PUT, or the current one with a patch applied."""
    validation = WriteOptions.of(request).field_validation
    if request.method == "PUT":
        content_type = request.headers.get("content-type", "")
        return read_object(request.body, content_type, _KIND, validation=validation, warnings=warnings)
    accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH] + ([] if kind.is_custom else [STRATEGIC_PATCH])
    if media_type not in accepted:
        raise errors.unsupported_media_type(accepted)
    wanted = patched_with(current, read_document(request.body, "application/json"), media_type, _KIND)
    conform_object(wanted, _KIND, validation=validation, warnings=warnings)
    return wanted


def _check(wanted: Json, name: str) -> None:
    given = wanted["metadata"].get("name")
    if not given:
        problem = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise errors.bad_request(problem)
    if given != name:
        raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        cause = errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise errors.invalid("Scale", name, [cause], group="autoscaling")


def _scaled(document: Json, scale: Scale | None, wanted: Json) -> Json:
    """The workload with the wanted number of replicas, if it is still the one that was meant."""
    _put(document, scale.spec_path if scale else (), (wanted.get("spec") or {}).get("replicas", 0))
    for field in ("uid", "resourceVersion"):
        if wanted["metadata"].get(field):
            document["metadata"][field] = wanted["metadata"][field]
    return document


def _scale_of(kind: ServedKind, scale: Scale, document: Json) -> Json:
    metadata = document["metadata"]
    selector = _get(document, scale.selector_path, None) if scale.selector_path else None
    status = {"replicas": _get(document, scale.status_path, 0)}
    if selector:
        is_plain = kind.resource == "replicationcontrollers"
        status["selector"] = selector if isinstance(selector, str) else selector_text(selector, is_plain=is_plain)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in _KEPT if name in metadata},
        "spec": {"replicas": _get(document, scale.spec_path, 0)},
        "status": status,
    }


def _get(document: JsonValue, path: FieldPath, default: JsonValue) -> JsonValue:
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return default
        document = document[part]
    return document


def _put(document: Json, path: FieldPath, value: JsonValue) -> None:
    for part in path[:-1]:
        document = document.setdefault(part, {})
    document[path[-1]] = value
