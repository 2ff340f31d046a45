"""Cipher suites by kube-scheduler's names."""

from __future__ import annotations

import ssl

import pytest

from bayplan.server.certificates import choose_ciphers
from bayplan.server.options import ServingError


def context() -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    return made


def of_tls12(given: ssl.SSLContext) -> set[str]:
    return {suite["name"] for suite in given.get_ciphers() if suite["protocol"] != "TLSv1.3"}


def test_only_the_suites_that_are_named_are_left() -> None:
    made = context()
    choose_ciphers(made, ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"])

    assert of_tls12(made) == {"ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"}


def test_suites_of_tls_1_3_alone_leave_nothing_older() -> None:
    made = context()
    choose_ciphers(made, ["TLS_AES_128_GCM_SHA256"])

    assert made.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize("name", ["TLS_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA", "nonsense", ""])
def test_a_suite_that_is_weak_or_unknown_is_refused_with_the_choice(name: str) -> None:
    with pytest.raises(ServingError, match="cannot be served\nhint: choose from TLS_ECDHE_ECDSA_WITH_AES_128"):
        choose_ciphers(context(), [name])
