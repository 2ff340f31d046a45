from __future__ import annotations

import os
import shutil
import ssl
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.controlplane.certificates import Authority, KeyPair

from bayplan.observe.clock import VirtualClock
from bayplan.server import (
    AuthenticationOptions,
    AuthorityText,
    ServerOptions,
    ServerParts,
    Serving,
    ServingError,
    TlsFiles,
    serve,
)
from bayplan.server.certificates import AuthorityFile, ServingTls, self_signed

from .support import Reviewer, client_of


def replace_with(target: KeyPair, source: KeyPair) -> None:
    """Put other content into place, as a rotation does."""
    for new, old in ((source.certificate, target.certificate), (source.key, target.key)):
        shutil.copy(new, old.with_suffix(".new"))
        os.replace(old.with_suffix(".new"), old)


def files_of(pair: KeyPair) -> TlsFiles:
    return TlsFiles(certificate=pair.certificate, key=pair.key)


def test_a_self_signed_certificate_is_for_loopback_and_the_hosts_given() -> None:
    pair = self_signed(["node-1.example", "192.0.2.7"])
    certificate = x509.load_pem_x509_certificate(pair.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert names.get_values_for_type(x509.DNSName) == ["localhost", "node-1.example"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "::1", "192.0.2.7"]
    assert b"PRIVATE KEY" in pair.key
    assert "PRIVATE KEY" not in repr(pair)


def test_the_least_tls_version_is_1_2() -> None:
    tls = ServingTls(ServerOptions(), VirtualClock())

    assert tls.context.minimum_version is ssl.TLSVersion.TLSv1_2
    with pytest.raises(ServingError, match="VersionTLS12 or VersionTLS13"):
        ServingTls(ServerOptions(tls_min_version="VersionTLS10"), VirtualClock())


async def test_certificates_from_files_are_shown(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    options = ServerOptions(port=0, tls=files_of(authority.server_pair()))
    async with (
        serve(options, ServerParts()) as server,
        client_of(server, authority=authority.certificate_file) as client,
    ):
        assert (await client.get("/healthz")).text == "ok"


async def test_new_files_are_used_for_new_connections(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    pair = old.server_pair()
    clock = VirtualClock()
    async with serve(ServerOptions(port=0, tls=files_of(pair)), ServerParts(clock=clock)) as server:
        async with client_of(server, authority=old.certificate_file) as client:
            assert (await client.get("/healthz")).status == 200
        replace_with(pair, new.server_pair())
        clock.advance(1.0)
        async with client_of(server, authority=new.certificate_file) as client:
            assert (await client.get("/healthz")).status == 200


async def test_new_files_that_do_not_work_leave_the_old_ones_in_use(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = Authority(tmp_path)
    pair = authority.server_pair()
    async with serve(ServerOptions(port=0, tls=files_of(pair)), ServerParts()) as server:
        pair.key.write_bytes(b"half a ke")
        assert not server.reload_certificates()
        async with client_of(server, authority=authority.certificate_file) as client:
            assert (await client.get("/healthz")).status == 200

    assert "stays in use" in caplog.text


@pytest.mark.parametrize("what", ["missing", "garbage", "mismatch", "encrypted"])
def test_files_that_cannot_be_used_are_an_error_that_names_them(what: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "a")
    pair = authority.server_pair()
    if what == "missing":
        pair.key.unlink()
    elif what == "garbage":
        pair.certificate.write_bytes(b"no certificate")
    elif what == "mismatch":
        shutil.copy(authority.client_pair("x").key, pair.key)
    else:
        pair.key.write_bytes(ENCRYPTED_KEY)
    with pytest.raises(ServingError, match=r"cannot serve with the certificate `.*server.crt`(.|\n)*hint: "):
        ServingTls(ServerOptions(tls=files_of(pair)), VirtualClock())


def test_client_authorities_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    missing = AuthenticationOptions(client_ca_file=tmp_path / "missing")
    with pytest.raises(ServingError, match="cannot read the client authorities"):
        ServingTls(ServerOptions(authentication=missing), VirtualClock())
    (tmp_path / "garbage").write_bytes(b"garbage")
    with pytest.raises(ServingError, match="cannot read the client authorities"):
        AuthorityFile(tmp_path / "garbage")


async def test_client_authorities_can_be_replaced_while_running(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    bundle = tmp_path / "bundle.crt"
    shutil.copy(old.certificate_file, bundle)
    options = ServerOptions(port=0, authentication=AuthenticationOptions(client_ca_file=bundle))
    valid_from = x509.load_pem_x509_certificate(bundle.read_bytes()).not_valid_before_utc
    clock = VirtualClock(start=valid_from.timestamp() + 60)
    async with serve(options, ServerParts(review=Reviewer(), clock=clock)) as server:
        assert await _may_get_metrics(server, old)
        shutil.copy(new.certificate_file, tmp_path / "next")
        os.replace(tmp_path / "next", bundle)
        clock.advance(1.0)

        assert await _may_get_metrics(server, new)
        assert not await _may_get_metrics(server, old)


async def test_client_authorities_that_are_no_file_can_be_replaced_too(tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    bundle = AuthorityText("a ConfigMap", old.certificate_file.read_bytes())
    options = ServerOptions(port=0, authentication=AuthenticationOptions(client_ca_file=bundle))
    valid_from = x509.load_pem_x509_certificate(bundle.pem).not_valid_before_utc
    clock = VirtualClock(start=valid_from.timestamp() + 60)
    async with serve(options, ServerParts(review=Reviewer(), clock=clock)) as server:
        assert await _may_get_metrics(server, old)
        bundle.pem = new.certificate_file.read_bytes()
        clock.advance(1.0)

        assert await _may_get_metrics(server, new)
        assert not await _may_get_metrics(server, old)


async def _may_get_metrics(server: Serving, authority: Authority) -> bool:
    pair = authority.client_pair("certified")
    try:
        async with client_of(server, pair=pair) as client:
            return (await client.get("/metrics")).status == 200
    except aiohttp.ClientError:
        return False


def _encrypted_key() -> bytes:
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"hunter22"),
    )


ENCRYPTED_KEY = _encrypted_key()
