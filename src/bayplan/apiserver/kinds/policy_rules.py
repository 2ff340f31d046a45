"""Defaults, validation and compilation of ValidatingAdmissionPolicies and their bindings, and defaults of webhooks.

The variables of expressions are untyped, as for the API server: what an object lacks is an error when it is read.
`authorizer` is not offered, so an expression that uses it does not compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.protocol.errors import Cause
from bayplan.cel import CompileError, Environment, EvaluationError, Program
from bayplan.cel.library import KUBERNETES
from bayplan.cel.syntax import paths_read
from bayplan.cel.types import BOOL, DYN, STRING, Type, object_type
from bayplan.cel.values import Value

__all__ = ["PolicyProgram", "compile_policy"]

_COST_LIMIT = 1_000_000
_VARIABLES = {"object": DYN, "oldObject": DYN, "request": DYN, "namespaceObject": DYN, "params": DYN}
_COMPOSED = "kubernetes.variables"
_LONGEST_MESSAGE = 5 * 1024
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

    def concerns(self, values: Mapping[str, Value]) -> bool:
        """Whether all match conditions hold. Raises `EvaluationError`."""
        return all(self._value(condition, values) is True for condition in self.conditions)

    def broken(self, values: Mapping[str, Value], *, ignores_failures: bool) -> Iterator[tuple[str, str]]:
        """Message and reason of every validation that is not true, or could not be evaluated."""
        for validation in self.validations:
            try:
                if self._value(validation.program, values) is not True:
                    yield self._message(validation, values), validation.reason
            except EvaluationError as problem:
                if not ignores_failures:
                    yield str(problem), "Invalid"

    def _message(self, validation: CompiledValidation, values: Mapping[str, Value]) -> str:
        if validation.message_program is not None:
            try:
                made = self._value(validation.message_program, values)
            except EvaluationError:
                made = ""
            if isinstance(made, str) and made.strip() and "\n" not in made and len(made) <= _LONGEST_MESSAGE:
                return made.strip()
        return validation.message

    def _value(self, program: Program, values: Mapping[str, Value]) -> Value:
        composed = {path[0] for path in paths_read(program.expression, "variables") if path}
        given = dict(values)
        given["variables"] = {name: self._value(self.variables[name], values) for name in composed}
        outcome = program.evaluate(**given)
        if outcome.error is not None:
            raise EvaluationError(f"expression '{program.text}' resulted in error: {outcome.error}")
        return outcome.value


def compile_policy(spec: Json) -> tuple[PolicyProgram, list[Cause]]:
    """The programs of a policy, and what is wrong with its expressions."""
    policy, causes = PolicyProgram(), list[Cause]()
    composed: dict[str, Type] = {}

    def compiled(text: str, path: str, wanted: Type | None) -> Program | None:
        environment = Environment(
            _VARIABLES | {"variables": object_type(_COMPOSED)},
            KUBERNETES,
            fields={_COMPOSED: dict(composed)},
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
    return policy, causes


def _accepts(wanted: Type) -> Callable[[Type], str | None]:
    names = {BOOL: "bool", STRING: "string"}
    return lambda found: None if found in (wanted, DYN) else f"must evaluate to {names[wanted]}"


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


def validate_policy(document: Json, old: Json | None) -> list[Cause]:
    spec = document.get("spec") or {}
    causes = []
    if not spec.get("matchConstraints"):
        causes.append(errors.required("spec.matchConstraints"))
    elif not spec["matchConstraints"].get("resourceRules"):
        causes.append(errors.required("spec.matchConstraints.resourceRules"))
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        detail = "validations or auditAnnotations must contain at least one item"
        causes.append(errors.required("spec.validations", detail))
    if spec.get("failurePolicy") not in ("Fail", "Ignore"):
        causes.append(errors.not_supported("spec.failurePolicy", spec.get("failurePolicy"), ["Fail", "Ignore"]))
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
