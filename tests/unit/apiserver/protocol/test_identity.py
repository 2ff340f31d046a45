"""Tokens: who holds them, how long they last, and that they cannot be made up."""

from __future__ import annotations

from bayplan.apiserver.protocol.identity import ADMIN, TokenIssuer, new_admin_token
from bayplan.observe.clock import VirtualClock


def test_the_admin_token_is_the_administrators() -> None:
    issuer = TokenIssuer(clock=VirtualClock(), admin_token="secret")

    assert issuer.user("secret") is ADMIN
    assert issuer.user("Secret") is None
    assert issuer.user("") is None


def test_a_service_account_token_names_its_account_until_it_expires() -> None:
    clock = VirtualClock()
    issuer = TokenIssuer(clock=clock, admin_token="x")
    token, expires = issuer.issue("ns", "robot", "uid-1", seconds=600)
    user = issuer.user(token)

    assert user is not None
    assert user.name == "system:serviceaccount:ns:robot"
    assert "system:serviceaccounts:ns" in user.groups
    assert expires == clock.now() + 600
    clock.advance(601)
    assert issuer.user(token) is None


def test_a_forged_or_foreign_token_is_nobodys() -> None:
    issuer = TokenIssuer(clock=VirtualClock(), admin_token="x")
    token, _ = issuer.issue("ns", "robot", "uid-1", seconds=600)
    other, _ = TokenIssuer(clock=VirtualClock(), admin_token="x").issue("ns", "robot", "uid-1", seconds=600)

    assert issuer.user(token[:-2] + "xx") is None
    assert issuer.user(other) is None
    assert issuer.user("a.b.c") is None
    assert issuer.user("é.ü.ß") is None


def test_admin_tokens_are_long_and_different() -> None:
    assert len(new_admin_token()) >= 32
    assert new_admin_token() != new_admin_token()
