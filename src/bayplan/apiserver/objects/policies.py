"""Admission policies: writes that break an expression of a validating policy are refused, or answered with a warning;
mutating policies change what is written.

Follows the policies and bindings in the store. Policies whose expressions do not compile were refused when they were
written (`kinds.policy_rules`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bayplan.api.patches import BadPatch, TestFailed, json_patch
from bayplan.apiserver.kinds.kind import Kinds, ServedKind
from bayplan.apiserver.kinds.policy_patches import applied_object, atomic_paths, patch_operations
from bayplan.apiserver.kinds.policy_rules import PolicyProgram, compile_policy
from bayplan.apiserver.objects.admission_attributes import GROUP, AdmissionAttributes
from bayplan.apiserver.objects.bodies import conform_object
from bayplan.apiserver.objects.managed_fields import merge
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.storage.store import Change, Store
from bayplan.cel import EvaluationError
from bayplan.cel.values import Value

__all__ = ["AdmissionPolicies"]

POLICIES, BINDINGS = f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}"
MUTATING, MUTATING_BINDINGS = f"mutatingadmissionpolicies.{GROUP}", f"mutatingadmissionpolicybindings.{GROUP}"
_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """What is wrong with a write, in the words of a policy."""

    message: str
    reason: str = "Invalid"


@dataclass(frozen=True, slots=True)
class BoundPolicy:
    """A policy with one of its bindings."""

    policy: Json
    binding: Json
    program: PolicyProgram


class PolicyFailed(Exception):
    """A policy could not be evaluated; its failure policy decides."""


class BoundPolicies:
    """The policies of one kind that are in force, by their bindings."""

    def __init__(self, store: Store, kinds: Kinds, policies: str, bindings: str) -> None:
        self._store = store
        self._kinds = kinds
        self._policies, self._bindings = policies, bindings
        self._bound: list[BoundPolicy] | None = None
        for resource in (policies, bindings):
            store.listen(resource, self._on_change)

    def _on_change(self, resource: str, change: Change) -> None:
        self._bound = None

    def concerning(self, attributes: AdmissionAttributes, namespace: Json | None) -> Iterator[BoundPolicy]:
        """The policies that select a write; of their own kinds, they select none."""
        if attributes.kind.group == GROUP:
            return
        for bound in self._all():
            if attributes.selected_by(
                bound.policy["spec"].get("matchConstraints") or {}, namespace
            ) and attributes.selected_by(bound.binding["spec"].get("matchResources") or {}, namespace):
                yield bound

    def _all(self) -> list[BoundPolicy]:
        if self._bound is None:
            policies = {entry.name: decode_object(entry.raw) for entry in self._store.listing(self._policies).entries}
            programs = {name: compile_policy(policy["spec"])[0] for name, policy in policies.items()}
            bindings = [decode_object(entry.raw) for entry in self._store.listing(self._bindings).entries]
            self._bound = sorted(
                (
                    BoundPolicy(policies[name], binding, programs[name])
                    for binding in bindings
                    if (name := binding["spec"].get("policyName")) in policies
                ),
                key=lambda bound: (bound.policy["metadata"]["name"], bound.binding["metadata"]["name"]),
            )
        return self._bound

    def params(self, bound: BoundPolicy, attributes: AdmissionAttributes) -> Iterator[Json | None]:
        """The objects that a policy is evaluated with, one after another. Raises `PolicyFailed`."""
        declared, reference = bound.policy["spec"].get("paramKind"), bound.binding["spec"].get("paramRef")
        if not declared or not reference:
            yield None
            return
        group, _, version = declared["apiVersion"].rpartition("/")
        wanted = (group, version, declared["kind"])
        kind = next((one for one in self._kinds if (one.group, one.version, one.kind) == wanted), None)
        if kind is None:
            raise PolicyFailed(f"failed to configure binding: paramKind kind `{declared['kind']}` not known")
        found = list(self._matching(kind, reference, attributes))
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            detail = "no params found for policy binding with `Deny` parameterNotFoundAction"
            raise PolicyFailed(f"failed to configure binding: {detail}")
        yield from found

    def _matching(self, kind: ServedKind, reference: Json, attributes: AdmissionAttributes) -> Iterator[Json]:
        namespace = (reference.get("namespace") or attributes.namespace) if kind.namespaced else ""
        if reference.get("name"):
            entry = self._store.get(kind.stored_as, namespace, reference["name"])
            if entry is not None:
                yield decode_object(entry.raw)
            return
        for entry in self._store.listing(kind.stored_as).entries:
            is_near = not kind.namespaced or entry.key[0] == namespace
            if is_near and matches_label_selector(reference.get("selector") or {}, entry.labels or {}):
                yield decode_object(entry.raw)


class AdmissionPolicies:
    """The policies in force."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._validating = BoundPolicies(store, kinds, POLICIES, BINDINGS)
        self._mutating = BoundPolicies(store, kinds, MUTATING, MUTATING_BINDINGS)
        self._stored_bindings = [store.collection(resource).entries for resource in (BINDINGS, MUTATING_BINDINGS)]

    @property
    def any(self) -> bool:
        """Whether a policy is bound."""
        validating, mutating = self._stored_bindings
        return bool(validating or mutating)

    def namespace_of(self, attributes: AdmissionAttributes) -> Json | None:
        """The namespace of the object, if it has one."""
        if not attributes.namespace:
            return None
        entry = self._store.get("namespaces", "", attributes.namespace)
        return None if entry is None else decode_object(entry.raw)

    def judge(self, attributes: AdmissionAttributes, warnings: list[str]) -> None:
        """Refuse a write that breaks a policy whose binding denies; warn where the binding warns."""
        if not self._stored_bindings[0]:
            return
        namespace = self.namespace_of(attributes)
        for bound in self._validating.concerning(attributes, namespace):
            for finding in self._findings(bound, attributes, namespace):
                _act(bound, finding, attributes, warnings)

    def _findings(
        self, bound: BoundPolicy, attributes: AdmissionAttributes, namespace: Json | None
    ) -> list[PolicyFinding]:
        variables = _variables(attributes, namespace)
        findings: list[PolicyFinding] = []
        ignores = bound.policy["spec"].get("failurePolicy") == "Ignore"
        try:
            if not bound.program.concerns(variables):
                return []
            for params in self._validating.params(bound, attributes):
                broken = bound.program.broken(variables | {"params": params}, ignores_failures=ignores)
                findings += [PolicyFinding(*found) for found in broken]
        except (EvaluationError, PolicyFailed) as problem:
            if not ignores:
                findings.append(PolicyFinding(str(problem)))
        return findings

    def mutate(self, attributes: AdmissionAttributes, *, is_again: bool = False) -> Json | None:
        """A copy of the object as mutating policies want it, or None if they leave it alone.

        They look at it again after it was changed by others (`is_again`), those that ask for it.
        """
        if attributes.document is None or not self._stored_bindings[1]:
            return None
        namespace, document = self.namespace_of(attributes), attributes.document
        for bound in self._mutating.concerning(attributes, namespace):
            if is_again and bound.policy["spec"].get("reinvocationPolicy") != "IfNeeded":
                continue
            try:
                document = self._mutated(bound, replace(attributes, document=document), document, namespace)
            except (EvaluationError, PolicyFailed, BadPatch, errors.RequestRefused) as problem:
                if bound.policy["spec"].get("failurePolicy") != "Ignore":
                    raise _denial(bound, str(problem), attributes) from problem
        return None if document is attributes.document else document

    def _mutated(
        self, bound: BoundPolicy, attributes: AdmissionAttributes, document: Json, namespace: Json | None
    ) -> Json:
        variables = _variables(attributes, namespace)
        if not bound.program.concerns(variables):
            return document
        for params in self._mutating.params(bound, attributes):
            for patch_type, program in bound.program.mutations:
                given = variables | {"object": document, "params": params}
                document = _patched(document, patch_type, bound.program.value(program, given), attributes.kind)
        return document


def _variables(attributes: AdmissionAttributes, namespace: Json | None) -> dict[str, Value]:
    return {
        "object": attributes.document,
        "oldObject": attributes.old,
        "request": attributes.request(),
        "namespaceObject": namespace,
        "params": None,
    }


def _patched(document: Json, patch_type: str, value: Value, kind: ServedKind) -> Json:
    """A copy of the object with a patch applied, defaults filled in."""
    current = decode_object(encode(document))
    if patch_type == "JSONPatch":
        try:
            patched = json_patch(current, patch_operations(value))
        except TestFailed:
            return document
    else:
        applied = applied_object(value)
        if atomics := atomic_paths(applied, kind.type):
            problem = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
            raise PolicyFailed(f"error applying patch: invalid ApplyConfiguration: {problem}")
        patched = merge(current, applied, kind.type)
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise PolicyFailed("the mutated object is no object with metadata")
    conform_object(patched, kind, validation="Strict", warnings=[])
    if kind.default is not None:
        kind.default(patched)
    return patched


def _denial(bound: BoundPolicy, problem: str, attributes: AdmissionAttributes) -> errors.RequestRefused:
    kind, names = attributes.kind, (bound.policy["metadata"]["name"], bound.binding["metadata"]["name"])
    message = "policy '{}' with binding '{}' denied request: {}".format(*names, problem)
    refusal = errors.forbidden(kind.plural, attributes.name, message, group=kind.group, causes=[{"message": message}])
    refusal.status |= {"message": message, "reason": "Invalid"}
    return refusal


def _act(bound: BoundPolicy, finding: PolicyFinding, attributes: AdmissionAttributes, warnings: list[str]) -> None:
    names = bound.policy["metadata"]["name"], bound.binding["metadata"]["name"]
    about = "ValidatingAdmissionPolicy '{}' with binding '{}'".format(*names)
    actions = bound.binding["spec"].get("validationActions") or ()
    if "Warn" in actions:
        warnings.append(f"Validation failed for {about}: {finding.message}")
    if "Deny" in actions:
        kind = attributes.kind
        problem = f"{about} denied request: {finding.message}"
        refusal = errors.forbidden(kind.plural, attributes.name, problem, group=kind.group)
        refusal.status |= {"reason": finding.reason, "code": _CODES.get(finding.reason, 422)}
        raise refusal
