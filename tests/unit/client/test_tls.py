from __future__ import annotations

import contextlib
import os
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bayplan.client.errors import KubeconfigError
from bayplan.client.tls import ClientCertificate, Pem, TlsContexts, TlsSettings, make_context

from .support import Certificates


def presented(context: ssl.SSLContext, certificates: Certificates, folder: Path) -> bytes:
    """The certificate that a client with this context shows to a server that wants one, as PEM."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(to_client, to_server, server_hostname="kubernetes.default")
    server = certificates.server_context(folder, needs_client=True).wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    shown = server.getpeercert(binary_form=True)
    assert shown is not None
    return ssl.DER_cert_to_PEM_cert(shown).encode()


def test_a_server_is_verified_unless_told_otherwise() -> None:
    context = make_context(TlsSettings(), None)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)

    context = make_context(TlsSettings(insecure=True), None)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


def test_with_an_authority_nobody_else_is_trusted(certificates: Certificates) -> None:
    context = make_context(TlsSettings(authority=Pem(data=certificates.authority)), None)

    assert [entry["subject"] for entry in context.get_ca_certs()] == [((("commonName", "test-ca"),),)]
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_files_that_change_make_a_new_context(certificates: Certificates, tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_bytes(certificates.authority)
    contexts = TlsContexts(TlsSettings(authority=Pem(path=path)))

    first = contexts.context()
    assert contexts.context() is first
    path.write_bytes(certificates.authority + b"\n")
    os.utime(path, ns=(1, 1))

    assert contexts.context() is not first


def test_a_certificate_of_the_credential_wins_over_the_configured_one(certificates: Certificates) -> None:
    pair = ClientCertificate(Pem(data=certificates.client_certificate), Pem(data=certificates.client_key))
    contexts = TlsContexts(TlsSettings(certificate=ClientCertificate(Pem(data=b"bad"), Pem(data=b"bad"))))

    first = contexts.context(pair)

    assert contexts.context(pair) is first
    with pytest.raises(KubeconfigError, match="client certificate in the kubeconfig and its key cannot be used"):
        contexts.context()


def test_a_certificate_and_key_from_files_are_loaded(certificates: Certificates, tmp_path: Path) -> None:
    (tmp_path / "crt").write_bytes(certificates.client_certificate)
    (tmp_path / "key").write_bytes(certificates.client_key)

    pair = ClientCertificate(Pem(path=tmp_path / "crt"), Pem(path=tmp_path / "key"))
    context = make_context(TlsSettings(authority=Pem(data=certificates.authority)), pair)

    assert presented(context, certificates, tmp_path) == certificates.client_certificate


def test_an_authority_that_is_not_pem_is_named(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="authority in the kubeconfig is not PEM"):
        make_context(TlsSettings(authority=Pem(data=b"nonsense")), None)
    (tmp_path / "ca").write_bytes(b"")
    with pytest.raises(KubeconfigError, match=f"authority in `{tmp_path / 'ca'}` is not PEM"):
        make_context(TlsSettings(authority=Pem(path=tmp_path / "ca")), None)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(KubeconfigError, match="cannot read `/no/such/file`: No such file"):
        make_context(TlsSettings(authority=Pem(path=Path("/no/such/file"))), None)


def test_a_key_that_is_encrypted_or_belongs_to_another_certificate_is_refused(certificates: Certificates) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    encodings = (
        (serialization.BestAvailableEncryption(b"x"), "the key is encrypted"),
        (serialization.NoEncryption(), "KEY_VALUES_MISMATCH"),
    )
    for encryption, problem in encodings:
        key = other.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        pair = ClientCertificate(Pem(data=certificates.client_certificate), Pem(data=key))

        with pytest.raises(KubeconfigError, match=problem):
            make_context(TlsSettings(), pair)


def test_where_there_are_no_anonymous_files_a_key_is_loaded_all_the_same(
    certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    pair = ClientCertificate(Pem(data=certificates.client_certificate), Pem(data=certificates.client_key))
    context = make_context(TlsSettings(authority=Pem(data=certificates.authority)), pair)

    assert presented(context, certificates, tmp_path) == certificates.client_certificate


def test_data_is_not_shown(certificates: Certificates) -> None:
    assert "BEGIN" not in repr(TlsSettings(authority=Pem(data=certificates.authority)))
