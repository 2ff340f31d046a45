"""Checks the scheduler's permissions by access reviews, verb by verb."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec

from bayplan.api.kinds import kind_of
from bayplan.app.watching import DISPENSABLE
from bayplan.client.errors import ClientError
from bayplan.deploy.bundle import Bundle
from bayplan.deploy.doctor.cluster_reader import ClusterReader
from bayplan.deploy.doctor.finding import Finding, Level
from bayplan.deploy.rbac import Lease, needed_permissions, plugin_permissions

__all__ = ["check_permissions"]

_GROUP = "/apis/authorization.k8s.io/v1"
_DISPENSABLE = frozenset((kind_of(kind).group, kind_of(kind).plural) for kind in DISPENSABLE)


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
    name = user or await _own_name(reading)
    return [_missing(bundle, question, user or name or "this user", name) for question in missing]


def _missing(bundle: Bundle, question: _Question, who: str, name: str) -> Finding:
    needs = _plugins_that_need(bundle, question)
    is_dispensable = not needs and (question.group, question.resource) in _DISPENSABLE
    level = Level.WARNING if is_dispensable else Level.ERROR
    what = f"{who} may not {question.label}"
    return Finding(level, "rbac", what, _reason(question, needs), _fix(bundle, question, name))


async def _own_name(reading: ClusterReader) -> str:
    """The name of the connection's user; empty where the API server does not tell."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    try:
        answer = await reading.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
        return str(msgspec.json.decode(answer)["status"]["userInfo"]["username"])
    except (ClientError, msgspec.DecodeError, KeyError, TypeError):
        return ""


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


def _plugins_that_need(bundle: Bundle, question: _Question) -> list[str]:
    return [
        plugin.name
        for plugin in bundle.plugins
        for permission in plugin_permissions(plugin)
        if (permission.group, permission.resource) == (question.group, question.resource)
        and question.verb in permission.verbs
    ]


def _reason(question: _Question, users: list[str]) -> str:
    if question.resource == "leases":
        return "replicas elect their leader by this lease; without it none of them ever schedules"
    if users:
        return f"{' and '.join(users)} needs it"
    if (question.group, question.resource) in _DISPENSABLE:
        return "explanations go without these objects; decisions need none of them"
    if question.verb in ("get", "list", "watch"):
        return "the scheduler keeps a copy of these objects, and starts only when it has all of it"
    return "the scheduler itself does it, whichever plugins run"


def _fix(bundle: Bundle, question: _Question, user: str) -> str:
    """For a service account the rendered roles; for another user, such as `system:kube-scheduler`, its own rule."""
    parts = user.split(":")
    if not user or user.startswith("system:serviceaccount:"):
        namespace = f" --namespace {parts[2]}" if len(parts) == 4 else ""
        return f"bayplan render manifests{bundle.options}{namespace} | kubectl apply -f -"
    group = f".{question.group}" if question.group else ""
    resource, slash, subresource = question.resource.partition("/")
    name = "-".join(["bayplan", question.verb, resource, *([subresource] if slash else [])])
    where, kind = (f" --namespace {question.namespace}", "role") if question.namespace else ("", "clusterrole")
    named = f" --resource-name={question.name}" if question.name else ""
    rule = f"--verb={question.verb} --resource={resource}{group}{slash}{subresource}{named}"
    made = f"kubectl create {kind} {name}{where} {rule}"
    return f"{made} && kubectl create {kind}binding {name}{where} --{kind}={name} --user={user}"
