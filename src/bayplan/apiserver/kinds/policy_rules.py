"""Defaults, validation and compilation of admission policies and their bindings, and defaults of webhooks.

The variables of expressions are untyped, as for the API server: what an object lacks is an error when it is read.
`authorizer` is not offered, so an expression that uses it does not compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bayplan.apiserver.kinds.policy_patches import APPLY, JSON_PATCH, PATCHES, patch_constructor
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.cel import CompileError, Environment, EvaluationError, Program
from bayplan.cel.declarations import Constructor
from bayplan.cel.library import KUBERNETES
from bayplan.cel.syntax import paths_read
from bayplan.cel.types import BOOL, DYN, STRING, Type, display, list_of, object_type
from bayplan.cel.values import Value

__all__ = ["PolicyProgram", "compile_policy"]

_COST_LIMIT = 1_000_000
_VARIABLES = {"object": DYN, "oldObject": DYN, "request": DYN, "namespaceObject": DYN, "params": DYN}
_COMPOSED = "kubernetes.variables"
_LONGEST_MESSAGE = 5 * 1024
_MUTABLE = ("*", "CONNECT", "CREATE", "UPDATE")
_REINVOCATIONS = ("IfNeeded", "Never")
_ACTIONS = ("Deny", "Warn", "Audit")


@dataclass(frozen=True, slots=True)
class CompiledValidation:
    """One expression that must be true, and what is said if it is not."""

    program: Program
    message_program: Program | None
    message: str
    reason: str


class PolicyProgram:
    """The compiled expressions of a policy."""

    def __init__(self) -> None:
        self.variables: dict[str, Program] = {}
        self.conditions: list[Program] = []
        self.validations: list[CompiledValidation] = []
        self.mutations: list[tuple[str, Program]] = []
        """What to do with the value (`ApplyConfiguration`, `JSONPatch`), and what evaluates to it."""

    def concerns(self, values: Mapping[str, Value]) -> bool:
        """Whether all match conditions hold. Raises `EvaluationError`."""
        return all(self.value(condition, values) is True for condition in self.conditions)

    def broken(self, values: Mapping[str, Value], *, ignores_failures: bool) -> Iterator[tuple[str, str]]:
        """Message and reason of every validation that is not true, or could not be evaluated."""
        for validation in self.validations:
            try:
                if self.value(validation.program, values) is not True:
                    yield self._message(validation, values), validation.reason
            except EvaluationError as problem:
                if not ignores_failures:
                    yield str(problem), "Invalid"

    def _message(self, validation: CompiledValidation, values: Mapping[str, Value]) -> str:
        if validation.message_program is not None:
            try:
                made = self.value(validation.message_program, values)
            except EvaluationError:
                made = ""
            if isinstance(made, str) and made.strip() and "\n" not in made and len(made) <= _LONGEST_MESSAGE:
                return made.strip()
        return validation.message

    def value(self, program: Program, values: Mapping[str, Value]) -> Value:
        """What an expression of the policy evaluates to. Raises `EvaluationError`."""
        composed = {path[0] for path in paths_read(program.expression, "variables") if path}
        given = dict(values)
        given["variables"] = {name: self.value(self.variables[name], values) for name in composed}
        outcome = program.evaluate(**given)
        if outcome.error is not None:
            raise EvaluationError(f"expression '{program.text}' resulted in error: {outcome.error}")
        return outcome.value


def compile_policy(spec: Json) -> tuple[PolicyProgram, list[Cause]]:
    """The programs of a policy, and what is wrong with its expressions."""
    policy, causes = PolicyProgram(), list[Cause]()
    composed: dict[str, Type] = {}

    def compiled(text: str, path: str, wanted: Type | None, *, is_patch: bool = False) -> Program | None:
        environment = Environment(
            _VARIABLES | {"variables": object_type(_COMPOSED)},
            (*KUBERNETES, PATCHES) if is_patch else KUBERNETES,
            fields={_COMPOSED: dict(composed)},
            constructor=patch_constructor if is_patch else _nothing,
            cost_limit=_COST_LIMIT,
        )
        try:
            return environment.compile(text.strip(), accept=None if wanted is None else _accepts(wanted))
        except CompileError as problem:
            causes.append(errors.invalid_value(path, text, str(problem)))
            return None

    for index, condition in enumerate(spec.get("matchConditions") or ()):
        program = compiled(condition.get("expression", ""), f"spec.matchConditions[{index}].expression", BOOL)
        policy.conditions += [program] if program else []
    for index, variable in enumerate(spec.get("variables") or ()):
        program = compiled(variable.get("expression", ""), f"spec.variables[{index}].expression", None)
        if program is not None:
            policy.variables[variable["name"]] = program
            composed[variable["name"]] = program.result_type
    for index, validation in enumerate(spec.get("validations") or ()):
        path = f"spec.validations[{index}]"
        program = compiled(validation.get("expression", ""), f"{path}.expression", BOOL)
        text = validation.get("messageExpression")
        message = compiled(text, f"{path}.messageExpression", STRING) if text else None
        if program is not None:
            said = (validation.get("message") or "").strip() or f"failed expression: {program.text}"
            reason = validation.get("reason") or "Invalid"
            policy.validations.append(CompiledValidation(program, message, said, reason))
    for index, mutation in enumerate(spec.get("mutations") or ()):
        kind = mutation.get("patchType", "")
        member, wanted = _PATCHES[kind]
        text = (mutation.get(member) or {}).get("expression", "")
        program = compiled(text, f"spec.mutations[{index}].{member}.expression", wanted, is_patch=True)
        policy.mutations += [(kind, program)] if program else []
    return policy, causes


_PATCHES: dict[str, tuple[str, Type]] = {
    "ApplyConfiguration": ("applyConfiguration", APPLY),
    "JSONPatch": ("jsonPatch", list_of(JSON_PATCH)),
}


def _nothing(name: str) -> Constructor | None:
    return None


def _accepts(wanted: Type) -> Callable[[Type], str | None]:
    accepted = (wanted,) if wanted in (APPLY, list_of(JSON_PATCH)) else (wanted, DYN)
    return lambda found: None if found in accepted else f"must evaluate to {display(wanted)}"


def default_policy(document: Json) -> None:
    spec = document.setdefault("spec", {})
    spec.setdefault("failurePolicy", "Fail")
    if isinstance(spec.get("matchConstraints"), dict):
        _default_match(spec["matchConstraints"])


def default_policy_binding(document: Json) -> None:
    spec = document.setdefault("spec", {})
    if isinstance(spec.get("matchResources"), dict):
        _default_match(spec["matchResources"])


def _default_match(match: Json) -> None:
    match.setdefault("matchPolicy", "Equivalent")
    match.setdefault("namespaceSelector", {})
    match.setdefault("objectSelector", {})
    for rule in (match.get("resourceRules") or []) + (match.get("excludeResourceRules") or []):
        rule.setdefault("scope", "*")


def default_policy_status(document: Json) -> None:
    """What the controller of policies would report: the policy was seen, and nothing is wrong with its types."""
    document["status"] = {"observedGeneration": document["metadata"].get("generation", 1), "typeChecking": {}}


def _wrong_with_head(spec: Json) -> list[Cause]:
    """What is wrong with the parts that validating and mutating policies share."""
    causes = []
    if not spec.get("matchConstraints"):
        causes.append(errors.required("spec.matchConstraints"))
    elif not spec["matchConstraints"].get("resourceRules"):
        causes.append(errors.required("spec.matchConstraints.resourceRules"))
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        causes.append(errors.not_supported("spec.failurePolicy", spec.get("failurePolicy"), ["Fail", "Ignore"]))
    return causes


def validate_mutating_policy(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = _wrong_with_head(spec)
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        causes += [
            errors.not_supported("spec.matchConstraints.resourceRules.operations", operation, _MUTABLE)
            for operation in rule.get("operations") or ()
            if operation not in _MUTABLE
        ]
    if not spec.get("mutations"):
        causes.append(errors.required("spec.mutations", "mutations must contain at least one item"))
    policy = spec.get("reinvocationPolicy")
    if not policy:
        causes.append(errors.required("spec.reinvocationPolicy"))
    elif policy not in _REINVOCATIONS:
        causes.append(errors.not_supported("spec.reinvocationPolicy", policy, _REINVOCATIONS))
    wrong = [
        cause
        for index, mutation in enumerate(spec.get("mutations") or ())
        for cause in _wrong_with_mutation(mutation, f"spec.mutations[{index}]")
    ]
    return causes + (wrong or compile_policy(spec)[1])


def _wrong_with_mutation(mutation: Json, path: str) -> Iterator[Cause]:
    kind = mutation.get("patchType")
    if not kind:
        yield errors.required(f"{path}.patchType")
        return
    if kind not in _PATCHES:
        yield errors.not_supported(f"{path}.patchType", kind, list(_PATCHES))
        return
    for other, (member, _) in _PATCHES.items():
        given = mutation.get(member)
        if other != kind and given is not None:
            detail = f"must not be specified when patchType is {kind}"
            yield errors.invalid_value(f"{path}.{member}", f"{{{member}}}", detail)
        elif other == kind and given is None:
            yield errors.required(f"{path}.{member}", f"must be specified when patchType is {kind}")
        elif other == kind and given is not None and not str(given.get("expression", "")).strip():
            yield errors.required(f"{path}.{member}.expression")


def validate_mutating_policy_binding(document: Json, old: Json | None) -> list[Cause]:
    return [] if (document.get("spec") or {}).get("policyName") else [errors.required("spec.policyName")]


def validate_policy(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = _wrong_with_head(spec)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        causes.append(errors.required("spec.validations", detail))
    for index, validation in enumerate(spec.get("validations") or ()):
        if not str(validation.get("expression", "")).strip():
            detail = "expression is not specified"
            return [*causes, errors.required(f"spec.validations[{index}].expression", detail)]
    return causes + compile_policy(spec)[1]


def validate_policy_binding(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = [] if spec.get("policyName") else [errors.required("spec.policyName")]
    actions = spec.get("validationActions") or []
    if not actions:
        causes.append(errors.required("spec.validationActions"))
    causes += [
        errors.not_supported(f"spec.validationActions[{index}]", action, _ACTIONS)
        for index, action in enumerate(actions)
        if action not in _ACTIONS
    ]
    if "Deny" in actions and "Warn" in actions:
        detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API "
        detail += "response and headers serves no purpose)"
        causes.append(errors.invalid_value("spec.validationActions", actions, detail))
    return causes


def default_webhooks(document: Json) -> None:
    for webhook in document.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("matchPolicy", "Equivalent")
        webhook.setdefault("namespaceSelector", {})
        webhook.setdefault("objectSelector", {})
        webhook.setdefault("timeoutSeconds", 10)
        if document.get("kind") == "MutatingWebhookConfiguration":
            webhook.setdefault("reinvocationPolicy", "Never")
        for rule in webhook.get("rules") or ():
            rule.setdefault("scope", "*")
        service = (webhook.get("clientConfig") or {}).get("service")
        if isinstance(service, dict):
            service.setdefault("port", 443)


def validate_webhooks(document: Json, old: Json | None) -> list[Cause]:
    causes = []
    for index, webhook in enumerate(document.get("webhooks") or ()):
        path = f"webhooks[{index}]"
        if str(webhook.get("name", "")).count(".") < 2:
            detail = "should be a domain with at least three segments separated by dots"
            causes.append(errors.invalid_value(f"{path}.name", webhook.get("name", ""), detail))
        client = webhook.get("clientConfig") or {}
        if bool(client.get("url")) == bool(client.get("service")):
            causes.append(errors.required(f"{path}.clientConfig", "exactly one of url or service is required"))
        if webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            allowed = ["None", "NoneOnDryRun"]
            causes.append(errors.not_supported(f"{path}.sideEffects", webhook.get("sideEffects"), allowed))
        if not {"v1"} & set(webhook.get("admissionReviewVersions") or ()):
            detail = "must include at least one of v1, v1beta1"
            found = webhook.get("admissionReviewVersions")
            causes.append(errors.invalid_value(f"{path}.admissionReviewVersions", found, detail))
        if not 1 <= webhook.get("timeoutSeconds", 10) <= 30:
            detail = "the timeout value must be between 1 and 30 seconds"
            causes.append(errors.invalid_value(f"{path}.timeoutSeconds", webhook["timeoutSeconds"], detail))
    return causes
