"""Object metadata: names, labels, annotations, owners, finalizers, and what a client may not change.

Rules that all kinds share. Rules of one kind are in its own hooks.
"""

from __future__ import annotations

import random
import re

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue, encode
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.selectors import is_label_key, is_label_value

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_PATTERN = re.compile(rf"^{_LABEL}(\.{_LABEL})*\Z")
_LABEL_PATTERN = re.compile(rf"^{_LABEL}\Z")
SUBDOMAIN_HINT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_HINT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
    "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_KEY_HINT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
LABEL_VALUE_HINT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NO_OWNERS = (("v1", "Event"),)
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_MAX_ANNOTATIONS_BYTES = 256 * 1024
_GENERATED_LENGTH = 5
_GENERATED_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_BASE = 58
# The bits of a UUID that say what kind of UUID it is.
_UUID_FIXED, _UUID_VERSION_4 = 0xF000 << 64 | 0xC000 << 48, 0x4000 << 64 | 0x8000 << 48


def is_subdomain(name: str) -> bool:
    return len(name) <= 253 and _SUBDOMAIN_PATTERN.match(name) is not None


def is_dns_label(name: str) -> bool:
    return len(name) <= 63 and _LABEL_PATTERN.match(name) is not None


def name_problem(name: str, rule: str) -> str:
    """Why a name is not allowed, or nothing."""
    if rule == "path":
        if name in (".", ".."):
            return f"may not be '{name}'"
        return next((f"may not contain '{mark}'" for mark in ("/", "%") if mark in name), "")
    if rule == "label":
        return "" if is_dns_label(name) else LABEL_HINT
    return "" if is_subdomain(name) else SUBDOMAIN_HINT


def generated_name(base: str, source: random.Random) -> str:
    suffix = "".join(source.choice(_GENERATED_ALPHABET) for _ in range(_GENERATED_LENGTH))
    return base[:_MAX_GENERATED_BASE] + suffix


def new_uid(source: random.Random) -> str:
    """A random UUID (version 4)."""
    bits = source.getrandbits(128) & ~_UUID_FIXED | _UUID_VERSION_4
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def validate_metadata(document: Json, kind: ServedKind, old: Json | None = None) -> list[Cause]:
    """Problems of the metadata of a new object, or of one that was `old`."""
    metadata = document["metadata"]
    causes = _validate_name(metadata, kind)
    for key, value in (metadata.get("labels") or {}).items():
        causes += validate_label(key, value, "metadata.labels")
    causes += _validate_annotations(metadata.get("annotations") or {})
    if metadata.get("ownerReferences"):
        causes += _validate_owners(metadata["ownerReferences"])
    if metadata.get("finalizers"):
        causes += _validate_finalizers(metadata["finalizers"], kind)
        if old is not None and "deletionTimestamp" in old["metadata"]:
            causes += _validate_new_finalizers(metadata["finalizers"], old["metadata"].get("finalizers") or [])
    return causes


def _validate_name(metadata: Json, kind: ServedKind) -> list[Cause]:
    causes, name, prefix = [], metadata.get("name", ""), metadata.get("generateName")
    if prefix:
        # What is generated may follow a dash.
        masked = prefix[:-2] + "a" if len(prefix) > 1 and prefix.endswith("-") else prefix
        if problem := name_problem(masked, kind.name_rule):
            causes.append(errors.invalid_value("metadata.generateName", prefix, problem))
    if not name:
        return [*causes, errors.required("metadata.name", "name or generateName is required")]
    if problem := name_problem(name, kind.name_rule):
        causes.append(errors.invalid_value("metadata.name", name, problem))
    return causes


def _validate_owners(owners: list[Json]) -> list[Cause]:
    causes: list[Cause] = []
    for index, owner in enumerate(owners):
        causes += [
            errors.required(f"metadata.ownerReferences[{index}].{field}", f"{field} must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
        if owner.get("apiVersion", "").count("/") > 1:
            detail = "version must not be empty"
            causes.append(errors.invalid_value("metadata.ownerReferences.apiVersion", owner["apiVersion"], detail))
        if (owner.get("apiVersion"), owner.get("kind")) in _NO_OWNERS:
            group, _, version = owner["apiVersion"].rpartition("/")
            detail = f"{group}/{version}, Kind={owner['kind']} is disallowed from being an owner"
            causes.append(Cause("metadata.ownerReferences", f"Invalid value: {encode(owner).decode()}: {detail}"))
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        first, second = (f"{one.get('kind')}/{one.get('name')}" for one in controllers[:2])
        detail = "Only one reference can have Controller set to true. "
        detail += f'Found "true" in references for {first} and {second}'
        causes.append(Cause("metadata.ownerReferences", f"Invalid value: {encode(owners).decode()}: {detail}"))
    return causes


def _validate_finalizers(finalizers: list[str], kind: ServedKind) -> list[Cause]:
    causes = [
        errors.invalid_value("metadata.finalizers", finalizer, LABEL_KEY_HINT)
        for finalizer in finalizers
        if not is_label_key(finalizer)
    ]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        causes.append(errors.invalid_value("metadata.finalizers", finalizers, detail))
    for index, finalizer in enumerate(() if kind.is_custom else finalizers):
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
            detail = "name is neither a standard finalizer name nor is it fully qualified"
            causes.append(errors.invalid_value(f"metadata.finalizers[{index}]", finalizer, detail))
    return causes


def _validate_new_finalizers(finalizers: list[str], before: list[str]) -> list[Cause]:
    added = [finalizer for finalizer in finalizers if finalizer not in before]
    if not added:
        return []
    listed = ", ".join(f'"{finalizer}"' for finalizer in added)
    detail = "no new finalizers can be added if the object is being deleted, found new finalizers "
    return [errors.forbidden_field("metadata.finalizers", f"{detail}[]string{{{listed}}}")]


def validate_label(key: str, value: JsonValue, field: str) -> list[Cause]:
    causes = []
    if not is_label_key(key):
        causes.append(errors.invalid_value(field, key, LABEL_KEY_HINT))
    if len(value) > 63:
        causes.append(Cause(field, f'Invalid value: "{value}": must be no more than 63 characters'))
    elif not is_label_value(value):
        causes.append(errors.invalid_value(field, value, LABEL_VALUE_HINT))
    return causes


def _validate_annotations(annotations: dict[str, str]) -> list[Cause]:
    causes = [
        errors.invalid_value("metadata.annotations", key, LABEL_KEY_HINT)
        for key in annotations
        if not is_label_key(key.lower())
    ]
    if sum(len(key) + len(value) for key, value in annotations.items()) > _MAX_ANNOTATIONS_BYTES:
        message = f"Too long: may not be more than {_MAX_ANNOTATIONS_BYTES} bytes"
        causes.append(Cause("metadata.annotations", message, "FieldValueTooLong"))
    return causes


# Set by the server alone; whatever a client sends for them is ignored or refused.
_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_READ_ONLY = (*_SERVER_FIELDS, "resourceVersion", "selfLink", "managedFields")


def stamp_new(metadata: Json, *, uid: str, now: str) -> None:
    """Give a new object its identity."""
    for name in _READ_ONLY:
        metadata.pop(name, None)
    metadata["uid"] = uid
    metadata["creationTimestamp"] = now


def carry_over(old: Json, new: Json) -> None:
    """Keep on an update what only the server sets."""
    for name in (*_SERVER_FIELDS, "resourceVersion"):
        if name in old:
            new[name] = old[name]
        else:
            new.pop(name, None)
    new.pop("selfLink", None)
    for name in ("name", "namespace", "generateName"):
        if name in old:
            new[name] = old[name]
    if not new.get("name"):
        new["name"] = old["name"]


def drop_empty(metadata: Json) -> None:
    for name in ("labels", "annotations", "ownerReferences", "finalizers"):
        if name in metadata and not metadata[name]:
            del metadata[name]
