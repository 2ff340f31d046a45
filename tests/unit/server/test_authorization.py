from __future__ import annotations

from bayplan.server.authorization import Authorizer
from bayplan.server.options import AuthorizationOptions
from bayplan.server.users import MASTERS, User


def test_probes_are_open_and_nothing_that_looks_like_them() -> None:
    authorizer = Authorizer(AuthorizationOptions(), None)

    assert all(authorizer.is_open(path) for path in ("/healthz", "/livez", "/readyz"))
    assert not any(authorizer.is_open(path) for path in ("/healthz/", "/healthz/ping", "/Healthz", "/metrics", "", "/"))


def test_a_star_opens_what_begins_so() -> None:
    authorizer = Authorizer(AuthorizationOptions(always_allow_paths=["/healthz/*"]), None)

    assert authorizer.is_open("/healthz/ping")
    assert not authorizer.is_open("/healthz")


async def test_without_an_api_server_to_ask_only_masters_may() -> None:
    authorizer = Authorizer(AuthorizationOptions(), None)

    assert not await authorizer.refusal_of(User(name="a", groups=(MASTERS,)), method="GET", path="/metrics")
    assert await authorizer.refusal_of(User(name="a"), method="GET", path="/metrics")
