from __future__ import annotations

import logging
from pathlib import Path

import pytest

from bayplan.client.credentials import (
    TOKEN_FILE_MAX_AGE_SECONDS,
    Identity,
    StaticCredentials,
    TokenFileCredentials,
    basic,
    bearer,
)
from bayplan.client.errors import CredentialError
from bayplan.observe.clock import VirtualClock


async def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    credentials = TokenFileCredentials(path, clock=clock)
    assert credentials.cached() is None
    first = await credentials.obtain()
    path.write_text("two\n")

    clock.advance(TOKEN_FILE_MAX_AGE_SECONDS)
    assert credentials.cached() is first
    clock.advance(1)
    assert credentials.cached() is None
    second = await credentials.obtain()

    assert (first.authorization, second.authorization) == ("Bearer one", "Bearer two")


async def test_a_token_that_did_not_change_stays_the_same_identity(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFileCredentials(path, clock=clock)

    assert await credentials.obtain() is await credentials.obtain()


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFileCredentials(path, clock=clock)
    identity = await credentials.obtain()

    assert credentials.reject(identity) is True
    assert credentials.cached() is None


async def test_while_the_file_is_missing_the_last_good_token_stays(
    tmp_path: Path, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = TokenFileCredentials(path, clock=clock)
    identity = await credentials.obtain()
    path.unlink()
    clock.advance(120)

    with caplog.at_level(logging.WARNING):
        assert await credentials.obtain() is identity
    assert "keeping the last good token" in caplog.text
    assert "Bearer" not in caplog.text


@pytest.mark.parametrize(("content", "problem"), [(b"", "is empty"), (b"a\nb", "more than one"), (b"\xff", "not text")])
async def test_a_token_file_that_holds_no_token_is_refused(
    tmp_path: Path, clock: VirtualClock, content: bytes, problem: str
) -> None:
    path = tmp_path / "token"
    path.write_bytes(content)

    with pytest.raises(CredentialError, match=problem):
        await TokenFileCredentials(path, clock=clock).obtain()


async def test_a_missing_token_file_without_a_fallback_is_an_error(tmp_path: Path, clock: VirtualClock) -> None:
    path = tmp_path / "token"

    with pytest.raises(CredentialError, match=f"`{path}`: No such file"):
        await TokenFileCredentials(path, clock=clock).obtain()
    assert await TokenFileCredentials(path, clock=clock, fallback_token="spare").obtain() == bearer("spare")


async def test_static_credentials_never_change() -> None:
    credentials = StaticCredentials(basic("jane", "pässword"))

    assert credentials.cached() is await credentials.obtain()
    assert credentials.cached().authorization == "Basic amFuZTpww6Rzc3dvcmQ="
    assert credentials.reject(credentials.cached()) is False


def test_an_identity_does_not_show_what_it_holds() -> None:
    assert "secret" not in repr(bearer("secret"))
    assert Identity() == Identity(None, None)
