"""The flags of `bayplan run`: what they come to, and what is said about those that cannot be right."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from bayplan.cli.output import CommandError
from bayplan.cli.run import run
from bayplan.cli.run_flags import ElectionFlags, ServingFlags, duration_of, shown_flags


def problems(**flags: Any) -> str:
    with pytest.raises(CommandError) as caught:
        ServingFlags(**flags).server_options()
    return "; ".join(caught.value.problems)


def test_without_flags_the_server_listens_on_loopback_and_opens_health_alone() -> None:
    options = ServingFlags().server_options()

    assert (options.bind_address, options.port, options.is_enabled) == ("127.0.0.1", 10259, True)
    assert set(options.authorization.always_allow_paths) == {"/healthz", "/livez", "/readyz"}
    assert options.authentication.request_header is None
    assert options.tls is None


def test_port_zero_switches_the_server_off() -> None:
    assert not ServingFlags(secure_port=0).server_options().is_enabled


def test_every_flag_reaches_the_server() -> None:
    options = ServingFlags(
        bind_address="0.0.0.0",
        cert_file="/tls/cert.pem",
        key_file="/tls/key.pem",
        tls_min_version="VersionTLS13",
        cipher_suites=["TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384"],
        client_ca_file="/tls/clients.pem",
        proxy_ca_file="/tls/proxy.pem",
        proxy_names=["front-proxy,other"],
        user_headers=["X-User"],
        uid_headers=["X-Uid"],
        group_headers=["X-Group", "X-Team"],
        extra_prefixes=["X-Extra-"],
        open_paths=["/healthz,/metrics"],
        token_ttl="1m30s",
        allowed_ttl="5",
        denied_ttl="500ms",
    ).server_options()
    header = options.authentication.request_header

    assert options.tls is not None
    assert (options.tls.certificate, options.tls.key) == (Path("/tls/cert.pem"), Path("/tls/key.pem"))
    assert options.tls_min_version == "VersionTLS13"
    assert options.tls_cipher_suites == ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384")
    assert options.authentication.client_ca_file == Path("/tls/clients.pem")
    assert options.authentication.token_cache_seconds == 90
    assert header is not None
    assert header.client_ca_file == Path("/tls/proxy.pem")
    assert header.allowed_names == ("front-proxy", "other")
    assert header.username_headers == ("X-User",)
    assert header.uid_headers == ("X-Uid",)
    assert header.group_headers == ("X-Group", "X-Team")
    assert header.extra_header_prefixes == ("X-Extra-",)
    assert options.authorization.always_allow_paths == ("/healthz", "/metrics")
    assert options.authorization.allowed_cache_seconds == 5
    assert options.authorization.denied_cache_seconds == 0.5


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"cert_file": "a.pem"}, "--tls-cert-file and --tls-private-key-file are given together"),
        ({"key_file": "a.pem"}, "--tls-cert-file and --tls-private-key-file are given together"),
        ({"proxy_names": ["a"]}, "--requestheader-allowed-names: without --requestheader-client-ca-file"),
        ({"open_paths": ["metrics"]}, "`metrics` does not start with a slash"),
        ({"token_ttl": "soon"}, "--authentication-token-webhook-cache-ttl: `soon` is not a duration"),
        ({"allowed_ttl": "-1s"}, "--authorization-webhook-cache-authorized-ttl: `-1s` is too short"),
        ({"secure_port": 70000}, "the port is a number from 0 to 65535"),
        ({"tls_min_version": "VersionTLS10"}, "the least TLS version is VersionTLS12 or VersionTLS13"),
        ({"cipher_suites": ["RC4"]}, "--tls-cipher-suites: `RC4` cannot be served"),
    ],
)
def test_flags_that_cannot_be_right_are_refused_before_anything_starts(flags: dict[str, Any], complaint: str) -> None:
    assert complaint in problems(**flags)


def test_all_problems_are_told_at_once() -> None:
    told = problems(cert_file="a.pem", token_ttl="soon", open_paths=["metrics"])

    assert all(part in told for part in ("--tls-cert-file", "`soon`", "`metrics`"))


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("0.5", 0.5), ("1m30s", 90), ("5m0s", 300), ("0", 0)])
def test_a_duration_is_as_kubernetes_writes_it_or_in_seconds(text: str, seconds: float) -> None:
    assert duration_of(text) == seconds


@pytest.mark.parametrize("text", ["", "nan", "inf", "1e9", "5 m", "9" * 400, "١"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        duration_of(text)


def test_flags_about_the_lease_replace_what_the_configuration_says() -> None:
    flags = ElectionFlags(elect=False, name="mine", lease_duration="1m", retry_period="3s")

    assert flags.overrides() == {
        "leader_elect": False,
        "resource_name": "mine",
        "lease_duration": timedelta(minutes=1),
        "retry_period": timedelta(seconds=3),
    }
    assert ElectionFlags().overrides() == {}


@pytest.mark.parametrize("flags", [{"lock": "endpoints"}, {"renew_deadline": "0s"}, {"retry_period": "x"}])
def test_a_lease_that_cannot_be_is_refused(flags: dict[str, str]) -> None:
    with pytest.raises(CommandError):
        ElectionFlags(**flags).overrides()  # type: ignore[arg-type]


def test_flags_are_shown_under_the_names_by_which_they_are_given() -> None:
    shown = shown_flags(run, {"config": "c.yaml", "serving": ServingFlags(secure_port=1), "election": ElectionFlags()})

    assert shown["config"] == "c.yaml"
    assert shown["secure-port"] == "1"
    assert shown["leader-elect"] == ""
    assert "serving" not in shown
