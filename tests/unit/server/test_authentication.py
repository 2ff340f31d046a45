from __future__ import annotations

import time
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from tests.controlplane.certificates import Authority, KeyPair

from bayplan.observe.clock import VirtualClock
from bayplan.server import AuthenticationOptions, RequestHeaderOptions, ServerOptions, ServerParts, serve
from bayplan.server.authentication import Authenticator, RequestCredentials, bearer_token

from .support import Client, Got, Reviewer, client_of

X_REMOTE = {"X-Remote-User": "reader", "X-Remote-Group": "monitoring", "X-Remote-Extra-Scopes": "a"}


class Place:
    """Two authorities, and a server that knows which is for what."""

    def __init__(self, folder: Path, *, allowed_names: tuple[str, ...] = ()) -> None:
        self.clients = Authority(folder / "clients")
        self.proxies = Authority(folder / "proxies")
        self.strangers = Authority(folder / "strangers")
        self.reviewer = Reviewer()
        header = RequestHeaderOptions(client_ca_file=self.proxies.certificate_file, allowed_names=allowed_names)
        self.options = ServerOptions(
            port=0,
            authentication=AuthenticationOptions(client_ca_file=self.clients.certificate_file, request_header=header),
        )

    async def get(self, pair: KeyPair | None, *, token: str = "", **headers: str) -> Got:
        parts = ServerParts(metrics=lambda accept: (b"ok\n", "text/plain"), review=self.reviewer)
        async with serve(self.options, parts) as server, client_of(server, pair=pair) as client:
            assert isinstance(client, Client)
            sent = {"Authorization": f"Bearer {token}"} if token else {}
            return await client.send("GET", "/metrics", headers={**headers, **sent})


async def test_a_client_certificate_names_its_user_and_groups(tmp_path: Path) -> None:
    place = Place(tmp_path)
    certified = await place.get(place.clients.client_pair("certified", ["ops", "dev"]))

    assert certified.status == 200
    spec = place.reviewer.asked[0]["spec"]
    assert (spec["user"], spec["groups"]) == ("certified", ["ops", "dev", "system:authenticated"])


async def test_a_user_that_may_not_is_refused_whatever_the_certificate(tmp_path: Path) -> None:
    place = Place(tmp_path)

    assert (await place.get(place.clients.client_pair("nobody"))).status == 403


async def test_masters_are_not_asked_about(tmp_path: Path) -> None:
    place = Place(tmp_path)

    assert (await place.get(place.clients.client_pair("admin", ["system:masters"]))).status == 200
    assert place.reviewer.asked == []


async def test_a_certificate_of_a_stranger_ends_in_the_handshake(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with pytest.raises(aiohttp.ClientError):
        await place.get(place.strangers.client_pair("certified"))


async def test_without_a_certificate_a_token_still_counts(tmp_path: Path) -> None:
    place = Place(tmp_path)

    assert (await place.get(None, token="token-of-reader")).status == 200
    assert (await place.get(None)).status == 401


async def test_a_front_proxy_vouches_for_users(tmp_path: Path) -> None:
    place = Place(tmp_path)
    got = await place.get(place.proxies.client_pair("front-proxy"), **X_REMOTE)

    assert got.status == 200
    spec = place.reviewer.asked[0]["spec"]
    assert (spec["user"], spec["groups"]) == ("reader", ["monitoring", "system:authenticated"])
    assert spec["extra"] == {"scopes": ["a"]}


@pytest.mark.parametrize("who", ["nobody", "user"])
async def test_headers_of_a_front_proxy_from_anybody_else_are_noise(who: str, tmp_path: Path) -> None:
    place = Place(tmp_path)
    pair = place.clients.client_pair("certified-not") if who == "user" else None
    got = await place.get(pair, **X_REMOTE)

    assert got.status == (403 if who == "user" else 401)
    assert all(question["spec"]["user"] == "certified-not" for question in place.reviewer.asked)


async def test_a_front_proxy_is_no_user_itself(tmp_path: Path) -> None:
    """Its authority may sign for anybody; that must not make its certificates pass as users."""
    place = Place(tmp_path)

    assert (await place.get(place.proxies.client_pair("admin", ["system:masters"]))).status == 401


async def test_only_front_proxies_of_the_allowed_names_are_believed(tmp_path: Path) -> None:
    place = Place(tmp_path, allowed_names=("front-proxy",))

    assert (await place.get(place.proxies.client_pair("another"), **X_REMOTE)).status == 401
    assert (await place.get(place.proxies.client_pair("front-proxy"), **X_REMOTE)).status == 200


async def test_a_certificate_that_ran_out_since_the_handshake_counts_no_more(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.client_pair("certified")
    der = x509.load_pem_x509_certificate(pair.certificate.read_bytes()).public_bytes(Encoding.DER)
    clock = VirtualClock(start=time.time())
    options = AuthenticationOptions(client_ca_file=authority.certificate_file)
    authenticator = Authenticator(options, None, clock)
    credentials = RequestCredentials(headers=(), certificate=der)

    assert await authenticator.user(credentials) is not None
    clock.advance(8 * 24 * 3600)
    assert await authenticator.user(credentials) is None


async def test_bytes_that_are_no_certificate_are_nobody(tmp_path: Path) -> None:
    options = AuthenticationOptions(client_ca_file=Authority(tmp_path).certificate_file)
    authenticator = Authenticator(options, None, VirtualClock())

    assert await authenticator.user(RequestCredentials(headers=(), certificate=b"nonsense")) is None


@pytest.mark.parametrize(
    ("values", "token"),
    [
        (["Bearer abc"], "abc"),
        (["bearer  abc "], "abc"),
        ([], None),
        (["Bearer "], None),
        (["Basic abc"], None),
        (["abc"], None),
        (["Bearer abc", "Bearer def"], None),
        (["Bearer " + "x" * 20_000], None),
        (["Bearer a\tb"], None),
        (["Bearer ä"], None),
    ],
)
def test_a_token_is_what_follows_bearer_in_the_only_header(values: list[str], token: str | None) -> None:
    credentials = RequestCredentials(headers=tuple(("authorization", value) for value in values))

    assert bearer_token(credentials) == token
