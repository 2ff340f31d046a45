"""A certificate authority for one test run: serving certificate, client certificates and the service-account key.

Everything is made in memory within milliseconds, written with mode 0600 into the run's own folder, and worthless a week
later. It signs for loopback names only.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME = timedelta(days=7)
_CLOCK_SKEW = timedelta(hours=1)
_SERVER_NAMES = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")


@dataclass(frozen=True)
class KeyPair:
    """Where a certificate and its private key were written."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates and writes them into one folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("bayplan-test-ca")
        self._certificate = self._sign_authority()
        self.certificate_file = folder / "ca.crt"
        _write_private(self.certificate_file, _certificate_pem(self._certificate))

    def server_pair(self) -> KeyPair:
        """A serving certificate for 127.0.0.1 and the API server's own names."""
        names: list[x509.GeneralName] = [x509.DNSName(name) for name in _SERVER_NAMES]
        names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        alternatives = x509.SubjectAlternativeName(names)
        return self._issue("server", _name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH, alternatives)

    def client_pair(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """A client certificate that the API server reads as `user` in `groups`."""
        subject = _name(user, groups)
        label = "client-" + hashlib.sha256(subject.public_bytes()).hexdigest()[:16]
        return self._issue(label, subject, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def signing_key(self, label: str) -> Path:
        """A private key without a certificate, as the API server wants it for service-account tokens."""
        path = self._folder / f"{label}.key"
        # The server derives the public half from this file, which it does for keys in this older form only.
        key_form = serialization.PrivateFormat.TraditionalOpenSSL
        _write_private(path, _key_pem(ec.generate_private_key(ec.SECP256R1()), key_form))
        return path

    def _issue(
        self,
        label: str,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(subject, key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        pair = KeyPair(self._folder / f"{label}.crt", self._folder / f"{label}.key")
        _write_private(pair.certificate, _certificate_pem(builder.sign(self._key, hashes.SHA256())))
        _write_private(pair.key, _key_pem(key))
        return pair

    def _sign_authority(self) -> x509.Certificate:
        builder = self._builder(self._name, self._key)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        # Python 3.13 verifies strictly and refuses an authority that does not say what it may sign.
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        return builder.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        authority_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _CLOCK_SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(authority_key, critical=False)
        )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(
    key: ec.EllipticCurvePrivateKey,
    key_form: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8,
) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, key_form, serialization.NoEncryption())


def _write_private(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
