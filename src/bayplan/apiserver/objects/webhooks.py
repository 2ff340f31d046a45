"""Admission webhooks: which ones look at a write, what they are sent, and what becomes of their answers.

Writing is synchronous and changes nothing before everything was checked. A write that a webhook has yet to look at is
therefore given up with `ReviewNeeded`; the caller calls the webhook and repeats the write with the answer at
hand (`Webhooks.answers`). If the object has changed meanwhile, the review differs and the webhook is called again.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bayplan.api.patches import BadPatch, json_patch
from bayplan.apiserver.kinds.policy_rules import compile_policy
from bayplan.apiserver.objects.admission_attributes import GROUP, AdmissionAttributes
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import BadJson, Json, decode, decode_object, encode
from bayplan.apiserver.storage.store import Change, Store
from bayplan.cel import EvaluationError

__all__ = ["Review", "ReviewNeeded", "Webhooks"]

MUTATING, VALIDATING = f"mutatingwebhookconfigurations.{GROUP}", f"validatingwebhookconfigurations.{GROUP}"
_MOST_REVIEWS = 100


@dataclass(frozen=True, slots=True)
class Review:
    """A question to one webhook."""

    webhook: Json
    body: Json

    @property
    def key(self) -> str:
        """The same for the same question."""
        return f"{self.webhook['name']} {self.body['request']['uid']}"


class ReviewNeeded(Exception):
    """A write waits for the answer of a webhook."""

    def __init__(self, review: Review) -> None:
        super().__init__(f"the webhook {review.webhook['name']} has to look at it first")
        self.review = review


class ReviewFailed(Exception):
    """A webhook did not answer, or not with a review; the message says why."""


class Webhooks:
    """The webhooks in force."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._found: dict[str, list[Json]] | None = None
        self._stored = [store.collection(resource).entries for resource in (MUTATING, VALIDATING)]
        self._answers: dict[str, Json | ReviewFailed] = {}
        for resource in (MUTATING, VALIDATING):
            store.listen(resource, self._on_change)

    @property
    def any(self) -> bool:
        mutating, validating = self._stored
        return bool(mutating or validating)

    @contextmanager
    def answers(self, known: dict[str, Json | ReviewFailed]) -> Iterator[None]:
        """Use these answers of webhooks, by the key of their review."""
        earlier, self._answers = self._answers, known
        try:
            yield
        finally:
            self._answers = earlier

    def mutate(self, attributes: AdmissionAttributes, namespace: Json | None, warnings: list[str]) -> Json | None:
        """The object as the mutating webhooks want it, or None if they leave it alone."""
        changed: Json | None = None
        for webhook in self._matching(MUTATING, attributes, namespace):
            document = changed if changed is not None else attributes.document
            response = self._response(webhook, attributes, document, warnings)
            if response is not None and response.get("patch") and document is not None:
                changed = _patched(webhook, document, response)
        return changed

    def validate(self, attributes: AdmissionAttributes, namespace: Json | None, warnings: list[str]) -> None:
        """Refuse the write if a validating webhook does."""
        for webhook in self._matching(VALIDATING, attributes, namespace):
            self._response(webhook, attributes, attributes.document, warnings)

    def _on_change(self, resource: str, change: Change) -> None:
        self._found = None

    def _matching(self, resource: str, attributes: AdmissionAttributes, namespace: Json | None) -> list[Json]:
        if attributes.kind.group == GROUP:
            return []
        if self._found is None:
            self._found = {
                one: [
                    webhook
                    for entry in sorted(self._store.listing(one).entries, key=lambda entry: entry.name)
                    for webhook in decode_object(entry.raw).get("webhooks") or ()
                ]
                for one in (MUTATING, VALIDATING)
            }
        return [
            webhook
            for webhook in self._found[resource]
            if attributes.selected_by({"rules": []} | webhook, namespace) and _concerns(webhook, attributes, namespace)
        ]

    def _response(
        self, webhook: Json, attributes: AdmissionAttributes, document: Json | None, warnings: list[str]
    ) -> Json | None:
        """What the webhook answered, if it allows the write. Raises `ReviewNeeded` if it was not called yet."""
        review = _review(webhook, attributes, document)
        answer = self._answers.get(review.key)
        if answer is None:
            if len(self._answers) >= _MOST_REVIEWS:
                raise errors.internal_error("webhooks keep changing the object")
            raise ReviewNeeded(review)
        if isinstance(answer, ReviewFailed):
            if webhook.get("failurePolicy") == "Ignore":
                return None
            problem = f'failed calling webhook "{webhook["name"]}": failed to call webhook: {answer}'
            raise errors.internal_error(problem)
        warnings.extend(str(warning) for warning in answer.get("warnings") or ())
        if not answer.get("allowed"):
            raise _denial(webhook, answer)
        return answer


def _concerns(webhook: Json, attributes: AdmissionAttributes, namespace: Json | None) -> bool:
    conditions = webhook.get("matchConditions")
    if not conditions:
        return True
    program, _ = compile_policy({"matchConditions": conditions})
    variables = {"object": attributes.document, "oldObject": attributes.old, "request": attributes.request()}
    try:
        return program.concerns(variables | {"namespaceObject": namespace, "params": None})
    except EvaluationError as problem:
        if webhook.get("failurePolicy") == "Ignore":
            return False
        kind = attributes.kind
        raise errors.forbidden(kind.plural, attributes.name, str(problem), group=kind.group) from problem


def _review(webhook: Json, attributes: AdmissionAttributes, document: Json | None) -> Review:
    request = attributes.request() | {"object": _unnamed(attributes, document), "oldObject": attributes.old}
    if not request["name"]:
        del request["name"]
    request["uid"] = _uid(encode([webhook["name"], request]))
    return Review(webhook, {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def _unnamed(attributes: AdmissionAttributes, document: Json | None) -> Json | None:
    """A new object as its author sent it: identity and generated names come after the webhooks."""
    if document is None or attributes.old is not None:
        return document
    unset = {"uid", "creationTimestamp"} | ({"name"} if not attributes.name else set())
    metadata = {name: value for name, value in document["metadata"].items() if name not in unset}
    return document | {"metadata": metadata}


def _uid(content: bytes) -> str:
    digest = hashlib.sha256(content).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def _patched(webhook: Json, document: Json, response: Json) -> Json:
    try:
        operations = decode(base64.b64decode(str(response["patch"]), validate=True))
        patched = json_patch(decode_object(encode(document)), operations)
    except (BadPatch, BadJson, ValueError) as problem:
        raise errors.internal_error(f'webhook "{webhook["name"]}" sent a bad patch: {problem}') from problem
    if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
        raise errors.internal_error(f'webhook "{webhook["name"]}" left no object')
    return patched


def _denial(webhook: Json, answer: Json) -> errors.RequestRefused:
    given = answer.get("status")
    status: Json = given if isinstance(given, dict) else {}
    head = f'admission webhook "{webhook["name"]}" denied the request'
    message, reason = status.get("message"), str(status.get("reason") or "")
    text = f"{head}: {message or reason}" if message or reason else f"{head} without explanation"
    code = status.get("code")
    if not isinstance(code, int) or not 400 <= code < 600:
        code = 400
    return errors.RequestRefused(errors.failure(code, reason, text))
