"""Paths and what they are about."""

from __future__ import annotations

import pytest

from bayplan.apiserver.kinds.builtin import builtin_kinds
from bayplan.apiserver.kinds.kind import Kinds
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.server.routing import RouteTable


def test_a_path_leads_to_a_resource_an_object_or_a_part_of_it() -> None:
    routes = RouteTable(Kinds(builtin_kinds()))
    found = routes.route("/apis/apps/v1/namespaces/a/deployments/b/scale")

    assert found is not None
    assert (found.kind.resource, found.namespace, found.name, found.subresource) == (
        "deployments.apps",
        "a",
        "b",
        "scale",
    )
    assert routes.route("/apis/apps/v1/namespaces/a/deployments/b/scale") is found
    assert routes.route("/apis/apps/v1") is None


def test_a_remembered_route_ends_with_its_kind() -> None:
    kinds = Kinds(builtin_kinds())
    routes = RouteTable(kinds)
    assert routes.route("/api/v1/nodes") is not None
    kinds.remove_resource("nodes")

    with pytest.raises(RequestRefused, match="could not find the requested resource"):
        routes.route("/api/v1/nodes")
