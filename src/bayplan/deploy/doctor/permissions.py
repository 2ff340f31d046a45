"""Checks the scheduler's permissions by access reviews, verb by verb."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec

from bayplan.deploy.bundle import Bundle
from bayplan.deploy.doctor.cluster_reader import ClusterReader
from bayplan.deploy.doctor.finding import Finding, Level
from bayplan.deploy.rbac import Lease, needed_permissions, plugin_permissions

__all__ = ["check_permissions"]

_GROUP = "/apis/authorization.k8s.io/v1"


class _Question(NamedTuple):
    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    @property
    def label(self) -> str:
        where = f" in namespace {self.namespace}" if self.namespace else ""
        named = f" `{self.name}`" if self.name else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{named}{where}"


async def check_permissions(
    reading: ClusterReader, bundle: Bundle, *, lease: Lease | None, user: str | None
) -> list[Finding]:
    """One finding a missing verb. `user` is another user than that of the connection, such as a service account."""
    questions = _questions(bundle, lease)
    answers = await asyncio.gather(*(_is_allowed(reading, question, user) for question in questions))
    missing = [question for question, allowed in zip(questions, answers, strict=True) if not allowed]
    who = user or "this user"
    if not missing:
        return [Finding(Level.OK, "rbac", f"{who} may do all {len(questions)} things that the plugins need")]
    fix = _fix(bundle, user)
    return [
        Finding(Level.ERROR, "rbac", f"{who} may not {question.label}", _reason(bundle, question), fix)
        for question in missing
    ]


def _questions(bundle: Bundle, lease: Lease | None) -> list[_Question]:
    questions = [
        _Question(verb, permission.group, permission.resource)
        for permission in needed_permissions(bundle.plugins)
        for verb in permission.verbs
    ]
    if lease is not None:
        group = "coordination.k8s.io"
        questions.append(_Question("create", group, "leases", lease.namespace))
        questions += [_Question(verb, group, "leases", lease.namespace, lease.name) for verb in ("get", "update")]
    return questions


async def _is_allowed(reading: ClusterReader, question: _Question, user: str | None) -> bool:
    resource, _, subresource = question.resource.partition("/")
    attributes = question._asdict() | {"resource": resource, "subresource": subresource}
    kind = "SelfSubjectAccessReview" if user is None else "SubjectAccessReview"
    spec: dict[str, Any] = {"resourceAttributes": attributes}
    if user is not None:
        spec |= {"user": user, "groups": _groups(user)}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
    answer = msgspec.json.decode(await reading.call("POST", f"{_GROUP}/{kind.lower()}s", body))
    return bool(answer.get("status", {}).get("allowed"))


def _groups(user: str) -> list[str]:
    """The groups that the API server gives a service account of that name."""
    parts = user.split(":")
    if user.startswith("system:serviceaccount:") and len(parts) == 4:
        return ["system:serviceaccounts", f"system:serviceaccounts:{parts[2]}", "system:authenticated"]
    return ["system:authenticated"]


def _reason(bundle: Bundle, question: _Question) -> str:
    if question.resource == "leases":
        return "replicas elect their leader by this lease; without it none of them ever schedules"
    users = [
        plugin.name
        for plugin in bundle.plugins
        for permission in plugin_permissions(plugin)
        if (permission.group, permission.resource) == (question.group, question.resource)
        and question.verb in permission.verbs
    ]
    if users:
        return f"{' and '.join(users)} needs it"
    if question.verb in ("get", "list", "watch"):
        return "the scheduler keeps a copy of these objects, and starts only when it has all of it"
    return "the scheduler itself does it, whichever plugins run"


def _fix(bundle: Bundle, user: str | None) -> str:
    parts = (user or "").split(":")
    namespace = f" --namespace {parts[2]}" if len(parts) == 4 else ""
    return f"bayplan render manifests{bundle.options}{namespace} | kubectl apply -f -"
