"""ValidatingAdmissionPolicies: writes that break an expression of a policy are refused, or answered with a warning.

Follows the policies and bindings in the store. Policies whose expressions do not compile were refused when they were
written (`kinds.policy_rules`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bayplan.apiserver.kinds.kind import Kinds, ServedKind
from bayplan.apiserver.kinds.policy_rules import PolicyProgram, compile_policy
from bayplan.apiserver.objects.admission_attributes import GROUP, AdmissionAttributes
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.storage.store import Change, Store
from bayplan.cel import EvaluationError
from bayplan.cel.values import Value

__all__ = ["AdmissionPolicies"]

POLICIES, BINDINGS = f"validatingadmissionpolicies.{GROUP}", f"validatingadmissionpolicybindings.{GROUP}"
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


class AdmissionPolicies:
    """The policies in force."""

    def __init__(self, store: Store, kinds: Kinds) -> None:
        self._store = store
        self._kinds = kinds
        self._bound: list[BoundPolicy] | None = None
        self._stored_bindings = store.collection(BINDINGS).entries
        for resource in (POLICIES, BINDINGS):
            store.listen(resource, self._on_change)

    def _on_change(self, resource: str, change: Change) -> None:
        self._bound = None

    @property
    def any(self) -> bool:
        """Whether a policy is bound."""
        return bool(self._stored_bindings)

    def judge(self, attributes: AdmissionAttributes, warnings: list[str]) -> None:
        """Refuse a write that breaks a policy whose binding denies; warn where the binding warns."""
        if attributes.kind.group == GROUP:
            return
        namespace = self.namespace_of(attributes)
        for bound in self._bindings():
            if not attributes.selected_by(bound.policy["spec"].get("matchConstraints") or {}, namespace):
                continue
            if not attributes.selected_by(bound.binding["spec"].get("matchResources") or {}, namespace):
                continue
            for finding in self._findings(bound, attributes, namespace):
                _act(bound, finding, attributes, warnings)

    def _bindings(self) -> list[BoundPolicy]:
        if self._bound is None:
            policies = {entry.name: decode_object(entry.raw) for entry in self._store.listing(POLICIES).entries}
            programs = {name: compile_policy(policy["spec"])[0] for name, policy in policies.items()}
            bindings = [decode_object(entry.raw) for entry in self._store.listing(BINDINGS).entries]
            self._bound = [
                BoundPolicy(policies[name], binding, programs[name])
                for binding in bindings
                if (name := binding["spec"].get("policyName")) in policies
            ]
        return self._bound

    def namespace_of(self, attributes: AdmissionAttributes) -> Json | None:
        """The namespace of the object, if it has one."""
        if not attributes.namespace:
            return None
        entry = self._store.get("namespaces", "", attributes.namespace)
        return None if entry is None else decode_object(entry.raw)

    def _findings(
        self, bound: BoundPolicy, attributes: AdmissionAttributes, namespace: Json | None
    ) -> list[PolicyFinding]:
        variables: dict[str, Value] = {
            "object": attributes.document,
            "oldObject": attributes.old,
            "request": attributes.request(),
            "namespaceObject": namespace,
            "params": None,
        }
        findings: list[PolicyFinding] = []
        ignores = bound.policy["spec"].get("failurePolicy") == "Ignore"
        try:
            if not bound.program.concerns(variables):
                return []
            for params in self._params(bound, attributes):
                broken = bound.program.broken(variables | {"params": params}, ignores_failures=ignores)
                findings += [PolicyFinding(*found) for found in broken]
        except (EvaluationError, PolicyFailed) as problem:
            if not ignores:
                findings.append(PolicyFinding(str(problem)))
        return findings

    def _params(self, bound: BoundPolicy, attributes: AdmissionAttributes) -> Iterator[Json | None]:
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
