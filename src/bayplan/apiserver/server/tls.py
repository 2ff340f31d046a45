"""A certificate for the embedded server, generated at start.

kubectl sends a token only over TLS, so the server has TLS by default: an authority that lives as long as the server
(or its data directory) and one server certificate signed by it. Keys never leave the process except into files that
only the owner can read.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bayplan.apiserver.storage.private_files import write_private

_DAYS = 3650


@dataclass(frozen=True, slots=True)
class ServingCertificate:
    """PEM texts: what clients trust, and what the server presents."""

    authority: bytes
    certificate: bytes
    key: bytes

    def context(self, *, client_authority: bytes = b"") -> ssl.SSLContext:
        """With a client authority, clients may show a certificate of it; one of another authority is refused."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        # The ssl module reads certificates from files only.
        with tempfile.TemporaryDirectory(prefix="bayplan-tls-") as folder:
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate.write_bytes(self.certificate)
            write_private(key, self.key)
            context.load_cert_chain(certificate, key)
        if client_authority:
            context.load_verify_locations(cadata=client_authority.decode())
            context.verify_mode = ssl.CERT_OPTIONAL
        return context


def load_certificate(certificate: Path, key: Path) -> ServingCertificate:
    """A certificate from files; clients have to trust its issuer, so the file doubles as the authority."""
    text = certificate.read_bytes()
    return ServingCertificate(authority=text, certificate=text, key=key.read_bytes())


def make_certificate(host: str) -> ServingCertificate:
    """A fresh authority and a certificate for `host` and loopback."""
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority_name = _name("bayplan-ca")
    authority = _sign(authority_name, authority_name, authority_key, authority_key, hosts=[], is_authority=True)
    key = ec.generate_private_key(ec.SECP256R1())
    hosts = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1", host]
    certificate = _sign(_name("bayplan-apiserver"), authority_name, key, authority_key, hosts=hosts)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return ServingCertificate(_pem(authority), _pem(certificate), private)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _sign(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    hosts: list[str],
    is_authority: bool = False,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
        .add_extension(_key_usage(is_authority), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_alternative(host) for host in dict.fromkeys(hosts)])
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(names, critical=False).add_extension(usage, critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _key_usage(is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
