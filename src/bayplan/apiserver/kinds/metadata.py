"""Object metadata: names, labels, annotations, owners, finalizers, and what a client may not change.

Rules that all kinds share. Rules of one kind are in its own hooks.
"""

from __future__ import annotations

import random
import re
import uuid

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue
from bayplan.apiserver.protocol.errors import Cause
from bayplan.apiserver.protocol.selectors import is_label_key, is_label_value

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_PATTERN = re.compile(rf"^{_LABEL}(\.{_LABEL})*$")
_LABEL_PATTERN = re.compile(rf"^{_LABEL}$")
_DNS1035_PATTERN = re.compile(r"^[a-z]([-a-z0-9]*[a-z0-9])?$")
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
DNS1035_HINT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
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
_MAX_ANNOTATIONS_BYTES = 256 * 1024
_GENERATED_LENGTH = 5
_GENERATED_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_MAX_GENERATED_BASE = 58


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
    if rule == "dns1035":
        return "" if len(name) <= 63 and _DNS1035_PATTERN.match(name) else DNS1035_HINT
    return "" if is_subdomain(name) else SUBDOMAIN_HINT


def generated_name(base: str, source: random.Random) -> str:
    suffix = "".join(source.choice(_GENERATED_ALPHABET) for _ in range(_GENERATED_LENGTH))
    return base[:_MAX_GENERATED_BASE] + suffix


def new_uid(source: random.Random) -> str:
    return str(uuid.UUID(int=source.getrandbits(128), version=4))


def validate_metadata(document: Json, kind: ServedKind) -> list[Cause]:
    metadata = document["metadata"]
    causes = _validate_name(metadata.get("name", ""), kind)
    for key, value in (metadata.get("labels") or {}).items():
        causes += validate_label(key, value, "metadata.labels")
    causes += _validate_annotations(metadata.get("annotations") or {})
    for index, owner in enumerate(metadata.get("ownerReferences") or []):
        causes += [
            errors.required(f"metadata.ownerReferences[{index}].{field}", f"{field} must not be empty")
            for field in ("apiVersion", "kind", "name", "uid")
            if not owner.get(field)
        ]
    for finalizer in metadata.get("finalizers") or []:
        if not is_label_key(finalizer):
            causes.append(errors.invalid_value("metadata.finalizers", finalizer, LABEL_KEY_HINT))
    return causes


def _validate_name(name: str, kind: ServedKind) -> list[Cause]:
    if not name:
        return [errors.required("metadata.name", "name or generateName is required")]
    problem = name_problem(name, kind.name_rule)
    return [errors.invalid_value("metadata.name", name, problem)] if problem else []


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
