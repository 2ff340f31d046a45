"""Client authorities read from the cluster, with flags first; reviews of tokens and permissions by the API server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from bayplan.app.authentication import ClientAuthorities, LookupFailed, find_authorities, review_with
from bayplan.app.run_options import RunOptions
from bayplan.client.errors import ClientError, ConnectionFailed
from bayplan.client.transport import Response
from bayplan.observe.clock import VirtualClock
from bayplan.server.certificates import self_signed
from bayplan.server.options import (
    AuthenticationOptions,
    AuthorityText,
    RequestHeaderOptions,
    ServerOptions,
    ServingError,
)

from .answering import Answering, answer

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
CLIENTS = self_signed(["clients"]).certificate.decode()
PROXIES = self_signed(["proxies"]).certificate.decode()
HEADERS = {
    "requestheader-client-ca-file": PROXIES,
    "requestheader-allowed-names": '["front-proxy-client"]',
    "requestheader-username-headers": '["X-Remote-User"]',
    "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
}


def config_map(**data: str) -> Response:
    return answer(200, {"kind": "ConfigMap", "data": {name.replace("_", "-"): text for name, text in data.items()}})


async def completed(given: Response, options: AuthenticationOptions | None = None) -> AuthenticationOptions:
    authorities = ClientAuthorities(Answering(given), VirtualClock())
    await authorities.look_up()
    return authorities.complete(options or AuthenticationOptions())


def pem_of(authority: Path | AuthorityText | None) -> str:
    assert isinstance(authority, AuthorityText)
    return authority.pem.decode()


async def test_what_the_cluster_publishes_is_trusted() -> None:
    options = await completed(config_map(client_ca_file=CLIENTS, **HEADERS))
    header = options.request_header

    assert pem_of(options.client_ca_file) == CLIENTS
    assert header is not None
    assert pem_of(header.client_ca_file) == PROXIES
    assert header.allowed_names == ("front-proxy-client",)
    assert header.username_headers == ("X-Remote-User",)
    assert header.group_headers == ("X-Remote-Group",)
    assert header.extra_header_prefixes == ("X-Remote-Extra-",)


async def test_flags_come_first() -> None:
    own = AuthenticationOptions(
        client_ca_file=Path("mine.pem"), request_header=RequestHeaderOptions(client_ca_file=Path("proxy.pem"))
    )

    assert await completed(config_map(client_ca_file=CLIENTS, **HEADERS), own) == own


async def test_a_cluster_that_publishes_nothing_changes_nothing() -> None:
    assert await completed(answer(200, {"kind": "ConfigMap"})) == AuthenticationOptions()


async def test_a_front_proxy_without_a_header_for_users_is_not_trusted() -> None:
    options = await completed(config_map(requestheader_client_ca_file=PROXIES))

    assert options.request_header is None


@pytest.mark.parametrize(
    "given",
    [
        answer(403, {"kind": "Status", "message": "you may not"}),
        answer(404, {"kind": "Status"}),
        Response(200, {}, b"no json"),
        config_map(client_ca_file="-----BEGIN CERTIFICATE-----\nno\n-----END CERTIFICATE-----"),
        config_map(**{**HEADERS, "requestheader-allowed-names": "front-proxy"}),
        ConnectionFailed("refused", may_have_been_processed=False),
    ],
)
async def test_anything_else_is_a_failed_lookup_that_names_the_config_map(given: Any) -> None:
    with pytest.raises(LookupFailed, match="cannot read the ConfigMap kube-system/extension-apiserver-authentication"):
        await ClientAuthorities(Answering(given), VirtualClock()).look_up()


async def test_authorities_are_followed_and_bad_news_leaves_them_as_they_were() -> None:
    clock, renewed = VirtualClock(), self_signed(["renewed"]).certificate.decode()
    bad = answer(500, {"message": "away"})
    transport = Answering(config_map(client_ca_file=CLIENTS), bad, bad, config_map(client_ca_file=renewed))
    authorities = ClientAuthorities(transport, clock)
    await authorities.look_up()
    authority = authorities.complete(AuthenticationOptions()).client_ca_file
    following = asyncio.create_task(authorities.follow())
    with capture_logs() as lines:
        await clock.run_for(130)
        assert pem_of(authority) == CLIENTS
        await clock.run_for(60)
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)

    assert pem_of(authority) == renewed
    assert [line["log_level"] for line in lines] == ["warning", "info"]


FORBIDDEN = answer(403, {"kind": "Status", "message": "you may not"})


async def test_a_cluster_that_does_not_say_is_done_without_and_the_log_says_what_to_do() -> None:
    with capture_logs() as lines:
        assert await find_authorities(RunOptions(), Answering(FORBIDDEN), VirtualClock()) is None

    assert "extension-apiserver-authentication" in lines[0]["reason"]
    assert "--authentication-skip-lookup" in lines[0]["hint"]


async def test_a_cluster_that_does_not_say_ends_the_start_where_that_is_asked_for() -> None:
    strict = RunOptions(tolerate_lookup_failure=False)
    with pytest.raises(ServingError, match=r"cannot read the ConfigMap(.|\n)*hint: bind the Role"):
        await find_authorities(strict, Answering(FORBIDDEN), VirtualClock())


@pytest.mark.parametrize(
    "options",
    [
        RunOptions(skip_lookup=True),
        RunOptions(server=ServerOptions(is_enabled=False)),
        RunOptions(
            server=ServerOptions(
                authentication=AuthenticationOptions(
                    client_ca_file=Path("a.pem"), request_header=RequestHeaderOptions(client_ca_file=Path("b.pem"))
                )
            )
        ),
    ],
)
async def test_the_cluster_is_not_asked_where_its_answer_would_not_count(options: RunOptions) -> None:
    transport = Answering()

    assert await find_authorities(options, transport, VirtualClock()) is None
    assert transport.calls == []


async def test_a_review_is_posted_and_its_answer_decoded() -> None:
    transport = Answering(answer(201, {"status": {"authenticated": True}}))
    said = await review_with(transport)(REVIEWS, {"kind": "TokenReview"})

    assert said == {"status": {"authenticated": True}}
    assert transport.calls == [("POST", REVIEWS, b'{"kind":"TokenReview"}')]


@pytest.mark.parametrize(
    "given", [answer(403, {"kind": "Status"}), answer(500, {}), Response(200, {}, b"[]"), Response(200, {}, b"no json")]
)
async def test_any_other_answer_to_a_review_is_an_error(given: Response) -> None:
    with pytest.raises(ClientError):
        await review_with(Answering(given))(REVIEWS, {})
