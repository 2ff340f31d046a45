"""JSON, YAML and protobuf of random objects: what the embedded server reads and answers is what kube-apiserver does.

What a server reads is seen by a mutating webhook, which is sent every object before it is validated and refuses it: the
objects need not be valid. What it answers is seen with valid objects and statuses, which grow field by field as long as
kube-apiserver accepts them. Nulls, empty lists and maps, and empty parts that are no pointers (`resources: {}`) are not
compared: protobuf cannot tell them from absent ones.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.conform import conform
from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.protobuf import MEDIA_TYPE, read_protobuf, write_protobuf
from bayplan.apiserver.kinds.type_table import list_type
from tests.apiconformance.client import Answer, ApiClient, Json, unique
from tests.apiconformance.embedded import EmbeddedThread
from tests.apiconformance.made_objects import grown, random_value, valid_objects, without_empty_parts
from tests.apiconformance.webhook_server import Webhook
from tests.controlplane.cluster import ControlPlane
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

JSON, YAML = "application/json", "application/yaml"
FORMATS = (JSON, YAML, MEDIA_TYPE)
T = TypeVar("T")
SEEDS = range(2)
_MOST_DISTURBANCES = 20
OBJECTS_A_SEED = 4
GROWTH = 40
_HOOKS = "admissionregistration.k8s.io"
_LABEL = {"formats": "compared"}
KINDS = builtin_kinds()
STORED = [kind for kind in KINDS if "get" in kind.verbs]
# A binding is answered with a Status, not with the binding.
ANSWERED = [kind for kind in KINDS if kind.kind != "Binding"]
# Webhooks are not sent reviews here, and nowhere what registers webhooks.
READ = [kind for kind in STORED if kind.group != _HOOKS]
# Written by the server: who, when, in which order.
_STAMPS = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "selfLink", "generation")
# Written by the server whatever is sent, here before webhooks see the object and in kube-apiserver after them.
_WRITTEN = {
    "pods": ("spec.serviceAccount", "spec.serviceAccountName"),
    "services": ("spec.clusterIP", "spec.clusterIPs", "spec.ipFamilies", "spec.ipFamilyPolicy"),
    "jobs.batch": ("spec.selector", "spec.template.metadata"),
    "daemonsets.apps": ("metadata.annotations",),
    "namespaces": ("spec",),
    "nodes": ("spec.configSource",),
    "persistentvolumeclaims": ("spec.dataSource", "spec.dataSourceRef"),
    "endpointslices.discovery.k8s.io": ("endpoints.deprecatedTopology",),
    "customresourcedefinitions.apiextensions.k8s.io": ("spec.conversion",),
}
# Depends on who asks, on selectors of reviews, which are not looked at here, or is written by controllers.
_APART = {
    "certificatesigningrequests.certificates.k8s.io": ("spec.username", "spec.uid", "spec.groups", "spec.extra"),
    "selfsubjectrulesreviews.authorization.k8s.io": ("status",),
    "selfsubjectreviews.authentication.k8s.io": ("status",),
    "selfsubjectaccessreviews.authorization.k8s.io": ("status",),
    "subjectaccessreviews.authorization.k8s.io": ("status.evaluationError",),
    "localsubjectaccessreviews.authorization.k8s.io": ("status.evaluationError",),
    f"validatingadmissionpolicies.{_HOOKS}": ("status",),
    "flowschemas.flowcontrol.apiserver.k8s.io": ("status",),
    "customresourcedefinitions.apiextensions.k8s.io": ("status",),
}
_TIME = re.compile(r'"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z"')


@dataclass(frozen=True)
class Reviewed:
    """A server with a webhook that refuses every object that has the label."""

    name: str
    api: ApiClient
    webhook: Webhook
    namespace: str

    def read(self, kind: ServedKind, document: Json, form: str) -> Any:
        """What the webhook is shown of an object that is sent in this form, or the answer if it is not shown one."""
        self.webhook.requests.clear()
        answer = self.api.post(self.path(kind), spelled(document, kind, form), content_type=form)
        if not self.webhook.requests:
            return answer.status
        return self.webhook.requests[-1]["object"]

    def path(self, kind: ServedKind, name: str = "", subresource: str = "") -> str:
        root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        place = f"/namespaces/{self.namespace}" if kind.namespaced else ""
        return "/".join(part for part in (root + place, kind.plural, name, subresource) if part)


@pytest.fixture(scope="module")
def real(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reviewed]:
    authority = control_plane.ca_file.read_text()
    pair = (str(control_plane.client_cert), str(control_plane.client_key))
    client = ApiClient(control_plane.url, authority, certificate=pair)
    yield from reviewed("real", client, tmp_path_factory.mktemp("real"))


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reviewed]:
    thread = EmbeddedThread(authorization="rbac")
    thread.start()
    yield from reviewed("embedded", thread.client(), tmp_path_factory.mktemp("embedded"))
    thread.stop()


def reviewed(name: str, api: ApiClient, folder: Path) -> Iterator[Reviewed]:
    webhook = Webhook(folder)
    webhook.answer = lambda request: {"allowed": False, "status": {"code": 400, "message": "seen"}}
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["CREATE"]}]
    declared = {
        "name": "formats.example.com",
        "rules": rules,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "matchPolicy": "Exact",
        "timeoutSeconds": 30,
        "clientConfig": {"url": webhook.url, "caBundle": webhook.authority},
        "objectSelector": {"matchLabels": _LABEL},
    }
    path = f"/apis/{_HOOKS}/v1/mutatingwebhookconfigurations"
    api.create(path, {"metadata": {"name": "formats"}, "webhooks": [declared]})
    namespace = unique("formats")
    api.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    api.post(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "default"}})
    server = Reviewed(name, api, webhook, namespace)
    probe = next(kind for kind in KINDS if kind.kind == "ConfigMap")
    wait_until(
        lambda: isinstance(server.read(probe, {"metadata": {"name": "probe", "labels": _LABEL}}, JSON), dict),
        what="the webhook called",
    )
    yield server
    api.delete(f"{path}/formats")
    api.delete(f"/api/v1/namespaces/{namespace}")
    webhook.close()
    api.close()


def spelled(document: Json, kind: ServedKind, form: str) -> bytes:
    typed = document | {"apiVersion": kind.api_version, "kind": kind.kind}
    if form == MEDIA_TYPE:
        return write_protobuf(typed, kind.type)
    if form == YAML:
        return yaml.safe_dump(typed, allow_unicode=True).encode()
    return json.dumps(typed).encode()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.resource)
def test_what_is_read_in_any_format_is_what_kube_apiserver_reads(
    real: Reviewed, embedded: Reviewed, kind: ServedKind, seed: int
) -> None:
    chance = random.Random(f"{kind.resource} {seed}")
    shown = 0
    for _ in range(OBJECTS_A_SEED):
        document = made(kind, chance)
        wanted = sent(real.read(kind, document, JSON), kind, real.namespace)
        shown += isinstance(wanted, dict)
        for server in (real, embedded):
            for form in FORMATS:
                found = sent(server.read(kind, document, form), kind, server.namespace)
                assert found == wanted, f"{form} on {server.name}: {document}"
    assert shown, "no object was read by kube-apiserver"


def made(kind: ServedKind, chance: random.Random) -> Json:
    """Any object of a kind that decodes, with the label that the webhooks look for."""
    # Access to devices of others is refused before webhooks see it here, and after them by kube-apiserver.
    document: Json = without(random_value(kind.type, chance, 7), "adminAccess")
    metadata = {name: value for name, value in document.get("metadata", {}).items() if name == "annotations"}
    return document | {"metadata": metadata | {"name": unique("made"), "labels": _LABEL}}


def sent(found: Any, kind: ServedKind, namespace: str) -> Any:
    """What a webhook is shown of an object, without what the server writes."""
    plain = comparable(found, kind, namespace)
    if isinstance(plain, dict):
        remove(plain, ("status", *_WRITTEN.get(kind.resource, ())))
        plain = without_empty_parts(plain, kind.type)
    return plain


def comparable(found: Any, kind: ServedKind, namespace: str) -> Any:
    """An object without what differs from one write or one server to the next, and without what is empty."""
    if not isinstance(found, dict):
        return found
    uid = found.get("metadata", {}).get("uid") or "no uid"
    text = json.dumps(found).replace(uid, "UID").replace(f'"{namespace}"', '"NAMESPACE"')
    plain = json.loads(_TIME.sub(_without_present, text))
    for name in ("apiVersion", "kind"):
        plain.pop(name, None)
    for name in _STAMPS:
        plain.get("metadata", {}).pop(name, None)
    remove(plain, _APART.get(kind.resource, ()))
    return without_empty_parts(plain, kind.type)


def _without_present(found: re.Match[str]) -> str:
    """A time as it is, unless it is the time of the write."""
    age = datetime.now(UTC) - datetime.fromisoformat(found[1]).replace(tzinfo=UTC)
    return '"now"' if abs(age) < timedelta(hours=1) else found[0]


def remove(document: Json, paths: tuple[str, ...]) -> None:
    for path in paths:
        *parents, name = path.split(".")
        places = [document]
        for parent in parents:
            inner = [place.get(parent) or {} for place in places]
            places = [item for one in inner for item in (one if isinstance(one, list) else [one])]
        for place in places:
            place.pop(name, None)


def without(value: Any, name: str) -> Any:
    """The value without a field, wherever it is."""
    if isinstance(value, list):
        return [without(item, name) for item in value]
    if isinstance(value, dict):
        return {key: without(item, name) for key, item in value.items() if key != name}
    return value


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", ANSWERED, ids=lambda kind: kind.resource)
def test_what_is_answered_in_any_format_is_what_kube_apiserver_answers(
    real: Reviewed, embedded: Reviewed, kind: ServedKind, seed: int
) -> None:
    chance = random.Random(f"{kind.resource} {seed}")
    document = valid_objects(unique("grown"), real.namespace)[kind.resource]
    parts = tuple(part for part in kind.type.fields if part not in ("apiVersion", "kind", "metadata", "status"))
    document = grow(real, kind, Writing("POST", real.path(kind)), document, chance, parts)
    compare(
        *((server.name, dict(answers(server, kind, placed(document, real, server)))) for server in (real, embedded)),
        document=document,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", [kind for kind in STORED if kind.status], ids=lambda kind: kind.resource)
def test_a_status_in_any_format_is_answered_as_kube_apiserver_answers_it(
    real: Reviewed, embedded: Reviewed, kind: ServedKind, seed: int
) -> None:
    document = valid_objects(unique("grown"), real.namespace)[kind.resource]
    name = document["metadata"]["name"]
    for server in (real, embedded):
        created = server.api.post(server.path(kind), placed(document, real, server))
        assert created.status == 201, created.body

    def grow_status() -> Json:
        stored, chance = real.api.get(real.path(kind, name)).body, random.Random(f"{kind.resource} status {seed}")
        # Controllers write conditions at a time of their own, and what grows must not depend on that.
        stored.get("status", {}).pop("conditions", None)
        return grow(real, kind, Writing("PUT", real.path(kind, name, "status")), stored, chance, ("status",))

    def exchange_status() -> dict[str, Any]:
        writing = Writing("PUT", server.path(kind, name, "status"))
        changed = server.api.get(server.path(kind, name)).body | {"status": grown_up.get("status", {})}
        return dict(exchanges(server, kind, writing, changed))

    grown_up, found = undisturbed(grow_status), []
    for server in (real, embedded):
        found.append((server.name, undisturbed(exchange_status)))
        server.api.delete(server.path(kind, name))
    compare(*found, document=grown_up)


class Disturbed(Exception):
    """A controller of the server wrote the object between reading and writing it here."""


def undisturbed(attempt: Callable[[], T]) -> T:
    """What comes of it once no controller writes meanwhile."""
    for _ in range(_MOST_DISTURBANCES):
        with suppress(Disturbed):
            return attempt()
    return attempt()


@dataclass(frozen=True)
class Writing:
    """A request that writes an object."""

    method: str
    path: str

    def send(self, server: Reviewed, body: Any, **options: Any) -> Answer:
        """Without lasting effect."""
        answer = server.api.request(self.method, self.path, body, query={"dryRun": "All"}, **options)
        if self.method == "PUT" and answer.status == 409:
            raise Disturbed(answer.body)
        return answer


def placed(document: Json, here: Reviewed, there: Reviewed) -> Json:
    """The object in the namespace of another server."""
    moved: Json = json.loads(json.dumps(document).replace(f'"{here.namespace}"', f'"{there.namespace}"'))
    return moved


def compare(*found: tuple[str, dict[str, Any]], document: Json) -> None:
    """Every answer of every server says the same."""
    wanted = next(iter(found[0][1].values()))
    for server, by_form in found:
        for form, answer in by_form.items():
            assert answer == wanted, f"{form} by {server}: {document}"


def grow(
    server: Reviewed, kind: ServedKind, writing: Writing, document: Json, chance: random.Random, parts: tuple[str, ...]
) -> Json:
    """The object with as many random fields as the server accepts of those that are tried."""
    for turn in range(GROWTH):
        changed = grown(document, kind.type, chance, parts) if turn else document
        answer = writing.send(server, changed)
        assert turn or answer.status in (200, 201), answer.body
        document = changed if answer.status in (200, 201) else document
    return document


def answers(server: Reviewed, kind: ServedKind, document: Json) -> Iterator[tuple[str, Any]]:
    """The object as it is answered to creation in each format, and to reads and lists in each format."""
    path, name = server.path(kind), document["metadata"].get("name", "")
    yield from exchanges(server, kind, Writing("POST", path), document)
    if "get" not in kind.verbs:
        return
    created = server.api.post(path, document)
    assert created.status == 201, created.body
    try:
        for accepted in FORMATS:
            answer = server.api.get(server.path(kind, name), accept=accepted)
            yield f"read as {accepted}", comparable(opened(answer, kind, accepted), kind, server.namespace)
            query = {"fieldSelector": f"metadata.name={name}"}
            answer = server.api.get(path, query=query, accept=accepted)
            (item,) = opened(answer, kind, accepted, is_list=True)["items"]
            yield f"listed as {accepted}", comparable(item, kind, server.namespace)
    finally:
        server.api.delete(server.path(kind, name))


def exchanges(server: Reviewed, kind: ServedKind, writing: Writing, document: Json) -> Iterator[tuple[str, Any]]:
    """The answers to an object that is sent in each format, in each format."""
    for form in FORMATS:
        body = spelled(document, kind, form)
        for accepted in FORMATS:
            answer = writing.send(server, body, content_type=form, accept=accepted)
            assert answer.status in (200, 201), f"{form} on {server.name}: {answer.body}, {document}"
            found = comparable(opened(answer, kind, accepted), kind, server.namespace)
            yield f"sent as {form}, answered as {accepted}", found


def opened(answer: Answer, kind: ServedKind, form: str, *, is_list: bool = False) -> Json:
    """The document of an answer."""
    assert answer.headers["content-type"] == form
    if form == YAML:
        return dict(yaml.safe_load(answer.body))
    if form == JSON:
        return dict(answer.body)
    declared = list_type(kind.type) if is_list else kind.type
    document = read_protobuf(answer.body, declared)
    conform(document, declared, drops_empty=True)
    return document
