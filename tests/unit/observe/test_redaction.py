from __future__ import annotations

import pytest

from bayplan.observe.redaction import BLANK, is_secret_name, redact_text, redacted

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJl"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIsecret\n-----END EC PRIVATE KEY-----"


SECRET_NAMES = (
    *("token", "Authorization", "bearerToken", "client-key-data", "keyData", "password", "api_key", "session_token"),
    *("id_token", "set-cookie", "clientKeyData", "privateKey", "cookie"),
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_names_of_secrets_are_known_in_every_spelling(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name", ["pod", "key", "topologyKey", "label_key", "tokens_used", "podKey", "secretName", "error", "monkey"]
)
def test_other_names_are_left_alone(name: str) -> None:
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"Authorization: Bearer {JWT}", JWT),
        ("authorization: basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        (f"the token is {JWT}!", JWT),
        (f"loading {KEY} failed", "MHcCAQEEIIsecret"),
        ("-----BEGIN PRIVATE KEY-----\ncut off in the mid", "cut off"),
        ("GET https://admin:hunter22@host/path", "hunter22"),
        ("GET /?token=abcdef&x=1", "abcdef"),
        ('{"password": "hunter22"}', "hunter22"),
        ("access_token=abcdef", "abcdef"),
    ],
)
def test_secrets_inside_texts_are_blanked(text: str, secret: str) -> None:
    assert secret not in redact_text(text)
    assert BLANK in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "pod default/web bound to n1",
        "0/5 nodes are available: 5 node(s) had untolerated taint(s)",
        "https://10.0.0.1:6443/api/v1/pods?watch=1",
        "token review failed",
    ],
)
def test_ordinary_texts_stay_as_they_are(text: str) -> None:
    assert redact_text(text) == text


def test_data_is_copied_without_its_secrets() -> None:
    data = {"extenders": [{"tlsConfig": {"keyData": "c2VjcmV0", "insecure": False}}], "n": 3, "token": ""}

    assert redacted(data) == {
        "extenders": [{"tlsConfig": {"keyData": BLANK, "insecure": False}}],
        "n": 3,
        "token": "",
    }
    assert data["n"] == 3


def test_data_nested_without_end_is_cut() -> None:
    data: dict[str, object] = {}
    data["self"] = data

    assert BLANK in str(redacted(data))


def test_a_hostile_text_takes_no_time() -> None:
    assert redact_text("a" * 200_000 + "://" + "b" * 200_000) != ""
    assert redact_text("token" * 20_000) != ""
