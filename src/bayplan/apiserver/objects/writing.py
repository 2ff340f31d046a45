"""Writing objects: create and update, from a conforming document to a committed entry.

The order is the API server's: namespace, name, identity, defaulting, admission, validation, field ownership, commit.
Deletion is in `deletion`, patches arrive here as updates. Nothing is written until everything was checked.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from bayplan.apiserver.kinds.kind import Admission, Kinds, ServedKind
from bayplan.apiserver.kinds.limit_rules import apply_limits_to_pod
from bayplan.apiserver.kinds.metadata import (
    carry_over,
    drop_empty,
    generated_name,
    new_uid,
    stamp_new,
    validate_metadata,
)
from bayplan.apiserver.kinds.pod_updates import validate_resize
from bayplan.apiserver.kinds.quota_rules import is_charged
from bayplan.apiserver.objects import managed_fields
from bayplan.apiserver.objects.admission_attributes import CREATE, DELETE, AdmissionAttributes
from bayplan.apiserver.objects.admission_attributes import UPDATE as UPDATED
from bayplan.apiserver.objects.bodies import conform_object
from bayplan.apiserver.objects.entries import make_entry
from bayplan.apiserver.objects.managed_fields import UPDATE, FieldWriter
from bayplan.apiserver.objects.policies import AdmissionPolicies
from bayplan.apiserver.objects.quota import QUOTAS, charge
from bayplan.apiserver.objects.webhooks import Webhooks
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue, decode_object, encode, timestamp
from bayplan.apiserver.protocol.exchange import WriteOptions
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.storage.store import Entry, NotStored, Store
from bayplan.observe.clock import Clock

_GENERATE_ATTEMPTS = 8
# Writes of these subresources leave the spec unchanged, so nothing is defaulted, admitted or validated again.
_UNCHECKED = frozenset({"binding", "status", "approval"})
# Bindings and evictions reach this point as changes of pods, which is not what a webhook would be sent.
_UNREVIEWED = frozenset({"binding", "eviction"})
_NO_VERSION = (None, "", "0")
_IDENTITY = ("name", "namespace", "uid", "creationTimestamp", "resourceVersion")
_EPHEMERAL, _RESIZE = "ephemeralcontainers", "resize"
# The conditions of an approval are part of the status.
_STATUSES = ("status", "approval")
PLAIN_SUBRESOURCES = frozenset({*_STATUSES, _EPHEMERAL, _RESIZE})
"""Subresources that are read and written like the object, and let a part of it change."""
Change = Callable[[Json], Json]
"""Takes a copy of the current object and returns the wanted one."""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf, and how, a write is made."""

    user: ApiUser
    options: WriteOptions = field(default_factory=WriteOptions)
    operation: str = UPDATE
    subresource: str = ""
    keeps_identity: bool = False
    """Keep uid, creation time and status, for objects imported from another cluster."""
    warnings: list[str] | None = None
    """Where warnings for the client are collected, if there is one."""
    is_reviewed: bool = True
    """Whether admission webhooks look at the write; the simulated parts that cannot wait for them say no."""


class ObjectWriter:
    """The writing half of the API."""

    def __init__(self, *, store: Store, kinds: Kinds, clock: Clock, randomness: random.Random) -> None:
        self.store = store
        self.kinds = kinds
        self.clock = clock
        self._random = randomness
        self.policies = AdmissionPolicies(store, kinds)
        self.webhooks = Webhooks(store)

    # ---- create

    def create(self, kind: ServedKind, namespace: str, document: Json, caller: Caller) -> bytes:
        """Store a new object; answers its bytes in storage form."""
        metadata = document["metadata"]
        self._place(kind, namespace, metadata)
        is_named = bool(metadata.get("name"))
        is_versioned = not caller.keeps_identity and metadata.get("resourceVersion") not in _NO_VERSION
        metadata["name"] = metadata.get("name") or self._generate_name(kind, namespace, metadata)
        if caller.operation == managed_fields.APPLY:
            owners = metadata.get("managedFields")
        else:
            owners = None
        uid, born = new_uid(self._random), timestamp(self.clock.now())
        if caller.keeps_identity:
            uid, born = metadata.get("uid") or uid, metadata.get("creationTimestamp") or born
        stamp_new(metadata, uid=uid, now=born)
        status = document.get("status") if caller.keeps_identity else None
        document = self._prepared_for_create(kind, document, caller, is_named=is_named)
        if status:
            document["status"] = (document.get("status") or {}) | status
        if owners is not None:
            document["metadata"]["managedFields"] = owners
        else:
            managed_fields.record_create(document, kind.type, self._writer(kind, caller))
        if is_versioned:
            raise errors.bad_request("resourceVersion should not be set on objects to be created")
        if self.store.get(kind.stored_as, namespace, metadata["name"]) is not None:
            raise errors.already_exists(kind.plural, metadata["name"], group=kind.group)
        if kind.namespaced and not caller.options.dry_run and self.store.count(QUOTAS):
            charge(self.store, kind, document, self._set_used)
        return self.commit(kind, document, dry_run=caller.options.dry_run)

    def _set_used(self, quota: Json, used: Json) -> None:
        hard = quota["spec"].get("hard") or {}
        self.commit(self.kinds.resource(QUOTAS), quota | {"status": {"hard": hard, "used": used}})

    def _place(self, kind: ServedKind, namespace: str, metadata: Json) -> None:
        if not kind.namespaced:
            metadata.pop("namespace", None)
            return
        if metadata.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(errors.NAMESPACE_MISMATCH)
        owner = self.store.get("namespaces", "", namespace)
        if owner is None:
            raise errors.not_found("namespaces", namespace)
        if b'"deletionTimestamp"' in owner.raw:
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {namespace} is being terminated",
                "field": "metadata.namespace",
            }
            problem = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise errors.forbidden(kind.plural, metadata.get("name", ""), problem, group=kind.group, causes=[cause])

    def _generate_name(self, kind: ServedKind, namespace: str, metadata: Json) -> str:
        base = metadata.get("generateName")
        if not base:
            return ""
        for _ in range(_GENERATE_ATTEMPTS):
            name = generated_name(base, self._random)
            if self.store.get(kind.stored_as, namespace, name) is None:
                return name
        raise errors.already_exists(kind.plural, name, group=kind.group)

    def _prepared_for_create(self, kind: ServedKind, document: Json, caller: Caller, *, is_named: bool) -> Json:
        if kind.status and not kind.keeps_status_on_create:
            document.pop("status", None)
            if zero := kind.empty_status():
                document["status"] = zero
        if kind.generation:
            document["metadata"]["generation"] = 1
        drop_empty(document["metadata"])
        if kind.default is not None:
            kind.default(document)
        if kind.admit is not None:
            kind.admit(document, None, self._admission(caller.user))
        attributes = None
        if self.is_guarded:
            attributes = self._attributes(CREATE, kind, document, None, caller, is_named=is_named)
            self._mutate(attributes, caller)
        if kind.default_status is not None:
            kind.default_status(document)
        self._validate(kind, document, None)
        if attributes is not None:
            self._judge(attributes, caller)
        head = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": document["metadata"]}
        return head | document

    # ---- update

    def update(self, kind: ServedKind, namespace: str, name: str, change: Change, caller: Caller) -> bytes:
        """Change an object, or leave it alone when nothing changed; answers its bytes in storage form."""
        entry = self.store.get(kind.stored_as, namespace, name)
        if entry is None:
            raise errors.not_found(kind.plural, name, group=kind.group)
        old = self.decoded(entry, kind)
        new = change(self.decoded(entry, kind))
        self._check_identity(kind, old, new)
        self._check_version(kind, entry, new["metadata"].get("resourceVersion"), caller)
        self._prepare_for_update(kind, old, new, caller)
        if caller.operation != managed_fields.APPLY:
            managed_fields.record_update(old, new, kind.type, self._writer(kind, caller))
        if new == old:
            return entry.raw
        is_bounded = self.store.count(QUOTAS) and not caller.options.dry_run
        if is_bounded and is_charged(kind.resource, caller.subresource, old, new):
            charge(self.store, kind, new, self._set_used, old=old)
        if self._is_finished(new, kind):
            return self.remove(kind, new, dry_run=caller.options.dry_run)
        return self.commit(kind, new, dry_run=caller.options.dry_run)

    def _check_identity(self, kind: ServedKind, old: Json, new: Json) -> None:
        metadata = new.get("metadata")
        if not isinstance(metadata, dict):
            raise errors.bad_request("metadata must be an object")
        name = old["metadata"]["name"]
        if metadata.get("name", name) != name:
            given = metadata.get("name")
            raise errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
        if metadata.get("namespace", old["metadata"].get("namespace")) != old["metadata"].get("namespace"):
            raise errors.bad_request(errors.NAMESPACE_MISMATCH)
        uid = old["metadata"]["uid"]
        if metadata.get("uid") and metadata["uid"] != uid:
            problem = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {uid}"
            raise errors.conflict(kind.plural, name, group=kind.group, problem=problem)

    def _check_version(self, kind: ServedKind, entry: Entry, given: JsonValue, caller: Caller) -> None:
        if given in _NO_VERSION:
            if not kind.unconditional_update and caller.options.field_manager != "":
                cause = errors.invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
                raise errors.invalid(kind.kind, entry.name, [cause], group=kind.group)
            return
        if given != str(entry.revision):
            raise errors.conflict(kind.plural, entry.name, group=kind.group)

    def _prepare_for_update(self, kind: ServedKind, old: Json, new: Json, caller: Caller) -> None:
        check_kind_unchanged(kind, new)
        _separate_subresources(kind, old, new, caller.subresource)
        carry_over(old["metadata"], new["metadata"])
        drop_empty(new["metadata"])
        attributes = self._attributes(UPDATED, kind, new, old, caller)
        if caller.subresource in _UNCHECKED and not kind.is_custom:
            if kind.admit_status is not None:
                kind.admit_status(new, old, self._admission(caller.user))
            self._mutate(attributes, caller)
            self._validate_metadata(kind, new, old)
            self._judge(attributes, caller)
            return
        if kind.default is not None:
            kind.default(new)
        if kind.admit is not None:
            kind.admit(new, old, self._admission(caller.user))
        if caller.subresource == _RESIZE:
            apply_limits_to_pod(new, self._admission(caller.user))
        self._mutate(attributes, caller)
        # What these may change, the rules of an update forbid.
        self._validate(kind, new, None if caller.subresource in (_EPHEMERAL, _RESIZE) else old)
        if caller.subresource == _RESIZE and (causes := validate_resize(new, old)):
            raise errors.invalid(kind.kind, new["metadata"]["name"], causes, group=kind.group)
        self._judge(attributes, caller)
        if kind.generation and _wanted(kind, old) != _wanted(kind, new):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def _is_finished(self, document: Json, kind: ServedKind) -> bool:
        """Whether an object that is being deleted has nothing left to wait for."""
        metadata = document["metadata"]
        if "deletionTimestamp" not in metadata or metadata.get("finalizers"):
            return False
        if kind.stored_as == "namespaces" and document.get("spec", {}).get("finalizers"):
            return False
        return not metadata.get("deletionGracePeriodSeconds")

    # ---- shared

    @property
    def is_guarded(self) -> bool:
        """Whether there are admission policies or webhooks."""
        return self.policies.any or self.webhooks.any

    def judge_deletion(self, kind: ServedKind, old: Json, user: ApiUser, *, dry_run: bool = False) -> None:
        """Have admission policies and webhooks look at a deletion."""
        caller = Caller(user, WriteOptions(dry_run=dry_run))
        self._judge(self._attributes(DELETE, kind, None, old, caller), caller)

    def _attributes(
        self,
        operation: str,
        kind: ServedKind,
        new: Json | None,
        old: Json | None,
        caller: Caller,
        *,
        is_named: bool = True,
    ) -> AdmissionAttributes | None:
        """What policies and webhooks see of a write; None if there are none."""
        if not self.is_guarded:
            return None
        metadata = (new or old or {})["metadata"]
        return AdmissionAttributes(
            kind,
            operation,
            metadata.get("namespace", ""),
            metadata.get("name", "") if is_named else "",
            caller.user,
            new,
            old,
            caller.subresource,
            caller.options.dry_run,
        )

    def _mutate(self, attributes: AdmissionAttributes | None, caller: Caller) -> None:
        """Let mutating policies and webhooks change the object, in place, and fill in defaults of what they added."""
        if attributes is None or caller.subresource in _UNREVIEWED or attributes.document is None:
            return
        changed = self.policies.mutate(attributes)
        seen = attributes if changed is None else replace(attributes, document=changed)
        if caller.is_reviewed:
            warnings = [] if caller.warnings is None else caller.warnings
            reviewed = self.webhooks.mutate(seen, self.policies.namespace_of(seen), warnings)
            changed = changed if reviewed is None else reviewed
        if changed is None:
            return
        changed = self.policies.mutate(replace(attributes, document=changed), is_again=True) or changed
        document, kind = attributes.document, attributes.kind
        metadata = document["metadata"]
        wanted = changed["metadata"] | {name: metadata[name] for name in _IDENTITY if name in metadata}
        metadata.clear()
        metadata.update(wanted)
        changed["metadata"] = metadata
        document.clear()
        document.update(changed)
        conform_object(document, kind, validation="Ignore", warnings=[])
        if kind.default is not None:
            kind.default(document)

    def _judge(self, attributes: AdmissionAttributes | None, caller: Caller) -> None:
        if attributes is None:
            return
        warnings = [] if caller.warnings is None else caller.warnings
        self.policies.judge(attributes, warnings)
        if _goes_to_webhooks(caller):
            self.webhooks.validate(attributes, self.policies.namespace_of(attributes), warnings)

    def _validate(self, kind: ServedKind, document: Json, old: Json | None) -> None:
        causes = (
            []
            if old is not None and old["metadata"] == document["metadata"]
            else validate_metadata(document, kind, old)
        )
        if kind.validate is not None:
            causes = causes + kind.validate(document, old)
        if causes:
            raise errors.invalid(kind.kind, document["metadata"].get("name", ""), causes, group=kind.group)

    def _validate_metadata(self, kind: ServedKind, document: Json, old: Json) -> None:
        if old["metadata"] != document["metadata"] and (causes := validate_metadata(document, kind, old)):
            raise errors.invalid(kind.kind, document["metadata"].get("name", ""), causes, group=kind.group)

    def _admission(self, user: ApiUser) -> Admission:
        return Admission(self.store, self.clock, user)

    def _writer(self, kind: ServedKind, caller: Caller) -> FieldWriter:
        now = timestamp(self.clock.now())
        return FieldWriter(caller.options.field_manager, caller.operation, kind.api_version, now, caller.subresource)

    def writer(self, kind: ServedKind, caller: Caller) -> FieldWriter:
        return self._writer(kind, replace(caller, operation=managed_fields.APPLY))

    def decoded(self, entry: Entry, kind: ServedKind) -> Json:
        """A copy of a stored object in the shape of a kind."""
        document = decode_object(entry.raw)
        return kind.from_storage(document) if kind.from_storage is not None else document

    def commit(self, kind: ServedKind, document: Json, *, dry_run: bool = False) -> bytes:
        """Give the document the next revision and store it."""
        if kind.to_storage is not None:
            document = kind.to_storage(document)
        if dry_run:
            return encode(document)
        try:
            return self.store.put(kind.stored_as, self._entry(kind, document)).entry.raw
        except NotStored as problem:
            raise errors.internal_error(str(problem)) from problem

    def remove(self, kind: ServedKind, document: Json, *, dry_run: bool = False) -> bytes:
        """Delete the object for good; `document` is its last state."""
        if kind.to_storage is not None:
            document = kind.to_storage(document)
        if dry_run:
            return encode(document)
        try:
            return self.store.remove(kind.stored_as, self._entry(kind, document)).entry.raw
        except NotStored as problem:
            raise errors.internal_error(str(problem)) from problem

    def _entry(self, kind: ServedKind, document: Json) -> Entry:
        revision = self.store.next_revision()
        metadata = document["metadata"]
        metadata["resourceVersion"] = str(revision)
        return make_entry(self.kinds, kind, document, revision)


def _goes_to_webhooks(caller: Caller) -> bool:
    return caller.is_reviewed and caller.subresource not in _UNREVIEWED


def check_kind_unchanged(kind: ServedKind, document: Json) -> None:
    if document.get("kind", kind.kind) != kind.kind or document.get("apiVersion", kind.api_version) != kind.api_version:
        raise errors.bad_request("apiVersion and kind of an object cannot be changed")
    document["kind"], document["apiVersion"] = kind.kind, kind.api_version


def _separate_subresources(kind: ServedKind, old: Json, new: Json, subresource: str) -> None:
    """Keep the old status on writes to the main resource, and everything but status on writes to status."""
    if not kind.status:
        return
    if subresource in _STATUSES:
        for name in [name for name in (*old, *new) if name not in ("status", "metadata", "kind", "apiVersion")]:
            _restore(old, new, name)
        if kind.is_custom:
            new["metadata"] = dict(old["metadata"])
        for name in kind.kept_by_status:
            _restore(old["metadata"], new["metadata"], name)
    elif subresource not in ("binding", "eviction"):
        _restore(old, new, "status")
    if subresource in (_EPHEMERAL, _RESIZE):
        new["spec"] = _with_part(old["spec"], new.get("spec") or {}, subresource)


def _with_part(old: Json, new: Json, subresource: str) -> Json:
    """The old spec of a pod with the part that a subresource may change."""
    if subresource == _EPHEMERAL:
        return old | {"ephemeralContainers": new.get("ephemeralContainers") or []}
    changed = old
    for group in ("containers", "initContainers"):
        wanted = {one.get("name"): one.get("resources") or {} for one in new.get(group) or ()}
        containers = [
            one | {"resources": wanted.get(one["name"], one.get("resources", {}))} for one in old.get(group) or ()
        ]
        changed = changed | ({group: containers} if containers else {})
    return changed


def _restore(old: Json, new: Json, name: str) -> None:
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def _wanted(kind: ServedKind, document: Json) -> Json:
    """The part of an object whose changes count in metadata.generation."""
    return {name: value for name, value in document.items() if name not in ("metadata", "status")}
