"""`format` of strings in schemas of custom resources: the same texts are taken and refused by both servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.apiconformance.client import ApiClient, Json, unique
from tests.apiconformance.test_cluster import CRDS
from tests.waiting import wait_until

TEXTS: dict[str, list[tuple[str, bool]]] = {
    "date": [("2026-02-28", True), ("2026-02-30", False), ("2026-2-28", False), ("", False)],
    "date-time": [("2026-02-28T01:02:03Z", True), ("2026-02-28T01:02:03.5+01:00", True), ("2026-02-28", False)],
    "duration": [("1h30m", True), ("1.5s", True), ("-2m", True), ("3 days", True), ("5", False), ("1y", False)],
    "uuid": [
        ("123e4567-e89b-12d3-a456-426614174000", True),
        ("123E4567E89B12D3A456426614174000", True),
        ("123e4567-e89b-12d3-a456-42661417400", False),
    ],
    "byte": [("aGk=", True), ("aGk", False), ("a-_b", False)],
    "email": [("a@example.com", True), ("A B <a@example.com>", True), ("a@", False), ("example.com", False)],
    "hostname": [("a.example.com", True), ("localhost", True), ("a_b.example.com", False), ("-a.com", False)],
    "ipv4": [("10.0.0.1", True), ("10.0.0", False), ("::1", False), ("0.0.0.0", True)],
    "ipv6": [("::1", True), ("10.0.0.1", False), ("::", True)],
    "cidr": [
        ("10.0.0.0/8", True),
        ("10.0.0.1/8", True),
        ("fd00::/8", True),
        ("10.0.0.0", False),
        ("10.0.0.0/33", False),
    ],
    "mac": [("00:11:22:33:44:55", True), ("00-11-22-33-44-55", True), ("0011.2233.4455", True), ("00:11:22", False)],
    "hexcolor": [("#fff", True), ("#A0b1C2", True), ("#ffff", False)],
    "no-such-format": [("anything", True)],
}
CASES = [(form, text, is_taken) for form, texts in TEXTS.items() for text, is_taken in texts]


@pytest.fixture(scope="module")
def things(api: ApiClient) -> Iterator[str]:
    group = f"{unique('formats')}.example.com"
    properties: Json = {form: {"type": "string", "format": form} for form in TEXTS}
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition: Json = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition["metadata"] = {"name": f"things.{group}"}
    names = {"plural": "things", "kind": "Thing"}
    definition["spec"] = {"group": group, "scope": "Cluster", "names": names, "versions": [version]}
    api.create(CRDS, definition)
    path = f"/apis/{group}/v1/things"
    wait_until(lambda: api.get(path).status == 200, what="the kind served")
    yield path
    api.delete(f"{CRDS}/things.{group}")


@pytest.mark.parametrize(("form", "text", "is_taken"), CASES)
def test_a_text_has_its_format(api: ApiClient, things: str, form: str, text: str, is_taken: bool) -> None:
    group = things.split("/")[2]
    thing = {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"generateName": "t-"}, "spec": {form: text}}

    answer = api.post(things, thing)

    assert answer.status == (201 if is_taken else 422), answer.message
    if not is_taken:
        assert f"spec.{form}: Invalid value:" in answer.message
