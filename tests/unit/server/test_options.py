from __future__ import annotations

from typing import Any

import pytest

from bayplan.server import ServerOptions, ServingError


def test_a_server_listens_on_loopback_unless_told_otherwise() -> None:
    assert ServerOptions().is_loopback
    assert ServerOptions().port == 10259
    assert not ServerOptions(bind_address="0.0.0.0").is_loopback


@pytest.mark.parametrize(
    "options",
    [
        {"port": -1},
        {"port": 65536},
        {"is_plain_http": True, "bind_address": "0.0.0.0"},
        {"is_plain_http": True, "bind_address": "example.test"},
        {"loopback_token": "abc"},
    ],
)
def test_options_that_would_be_unsafe_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ServingError):
        ServerOptions(**options)


def test_a_token_is_not_shown_when_options_are_printed() -> None:
    assert "hunter22" not in repr(ServerOptions(is_plain_http=True, loopback_token="hunter22"))
