"""The server's certificate and the authorities of its clients, reloaded from disk without a restart.

Files are checked when a connection opens, at most once a second; there is no background task. New files that do not
work (half written, key and certificate not matching) are reported, and the old ones stay in use. Without files a
self-signed certificate is made; its key is never on disk where the system has anonymous files, and elsewhere only for
the instant in which OpenSSL loads it, readable by its owner alone.
"""

from __future__ import annotations

import datetime
import ipaddress
import logging
import ssl
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bayplan.observe.clock import Clock
from bayplan.observe.private_file import private_file
from bayplan.server.options import AuthorityText, ServerOptions, ServingError, TlsFiles

__all__ = ["AuthorityFile", "KeyPair", "ServingTls", "check_tls", "choose_ciphers", "self_signed"]

_log = logging.getLogger(__name__)
_LOOK_EVERY_SECONDS = 1.0
_VALID_DAYS = 3650
_MIN_VERSIONS = {"VersionTLS12": ssl.TLSVersion.TLSv1_2, "VersionTLS13": ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM texts."""

    certificate: bytes
    key: bytes = field(repr=False)


class AuthorityFile:
    """A bundle of authorities that may be replaced, in a file or not; the last valid content is used."""

    def __init__(self, path: Path | AuthorityText) -> None:
        self._path = path
        self._stamp = _stamp(path)
        self._certificates = _read_authorities(path)

    def certificates(self) -> list[x509.Certificate]:
        stamp = _stamp(self._path)
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            try:
                self._certificates = _read_authorities(self._path)
            except ServingError as error:
                _log.warning("%s; the authorities read before stay in use", error)
        return self._certificates


def _read_authorities(path: Path | AuthorityText) -> list[x509.Certificate]:
    try:
        pem = path.pem if isinstance(path, AuthorityText) else path.read_bytes()
        return x509.load_pem_x509_certificates(pem)
    except (OSError, ValueError) as error:
        raise ServingError(
            f"cannot read the client authorities in `{path}`: {error}\nhint: a PEM file with `BEGIN CERTIFICATE` blocks"
        ) from error


class ServingTls:
    """The TLS side of a server: `context` for the listener, renewed for new connections when files change."""

    def __init__(self, options: ServerOptions, clock: Clock, *, hosts: Iterable[str] = ()) -> None:
        self._options = options
        self._monotonic = clock.monotonic
        self._files = options.tls
        self._pair = self_signed(hosts) if options.tls is None else None
        self._watched = [path for path in _watched_files(options) if path is not None]
        self._stamps = self._stamps_now()
        self._next_look = clock.monotonic() + _LOOK_EVERY_SECONDS
        self.context = self._current = self._make()
        self.context.sni_callback = self._on_hello

    @property
    def certificate(self) -> bytes:
        """The present certificate as PEM, for clients that pin it."""
        if self._pair is not None:
            return self._pair.certificate
        assert self._files is not None  # one of the two is always there
        return self._files.certificate.read_bytes()

    def reload(self) -> bool:
        """Check the files now; True when new ones are in use."""
        stamps = self._stamps_now()
        if stamps == self._stamps:
            return False
        self._stamps = stamps
        try:
            self._current = self._make()
        except ServingError as error:
            _log.warning("%s; the certificate read before stays in use", error)
            return False
        _log.info("the serving certificate was read again")
        return True

    def _on_hello(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, context: ssl.SSLContext) -> None:
        """Called for each ClientHello: switch to newer files. Must not raise."""
        if self._monotonic() >= self._next_look:
            self._next_look = self._monotonic() + _LOOK_EVERY_SECONDS
            self.reload()
        if self._current is not context:
            connection.context = self._current

    def _stamps_now(self) -> list[object]:
        return [_stamp(path) for path in self._watched]

    def _make(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _min_version(self._options.tls_min_version)
        if self._options.tls_cipher_suites:
            choose_ciphers(context, self._options.tls_cipher_suites)
        context.set_alpn_protocols(["http/1.1"])
        # A resumed session would skip the check of the client's certificate.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        _load_pair(context, self._pair, self._files)
        self._trust_clients(context)
        return context

    def _trust_clients(self, context: ssl.SSLContext) -> None:
        authentication = self._options.authentication
        header = authentication.request_header
        bundles = [authentication.client_ca_file, header.client_ca_file if header else None]
        for path in bundles:
            if path is None:
                continue
            try:
                if isinstance(path, AuthorityText):
                    context.load_verify_locations(cadata=path.pem.decode())
                else:
                    context.load_verify_locations(cafile=path)
            except (OSError, ValueError, ssl.SSLError) as error:
                raise ServingError(
                    f"cannot read the client authorities in `{path}`: {error}\n"
                    "hint: a PEM file that this user may read, with `BEGIN CERTIFICATE` blocks"
                ) from error
            context.verify_mode = ssl.CERT_OPTIONAL
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def check_tls(options: ServerOptions) -> None:
    """Raises ServingError for an unsupported version or cipher suite; reads no file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _min_version(options.tls_min_version)
    if options.tls_cipher_suites:
        choose_ciphers(context, options.tls_cipher_suites)


def _watched_files(options: ServerOptions) -> Iterator[Path | AuthorityText | None]:
    if options.tls is not None:
        yield options.tls.certificate
        yield options.tls.key
    yield options.authentication.client_ca_file
    header = options.authentication.request_header
    yield header.client_ca_file if header else None


def _min_version(name: str) -> ssl.TLSVersion:
    try:
        return _MIN_VERSIONS[name]
    except KeyError:
        raise ServingError(f"the least TLS version is VersionTLS12 or VersionTLS13, not `{name}`") from None


def _load_pair(context: ssl.SSLContext, pair: KeyPair | None, files: TlsFiles | None) -> None:
    if pair is not None:
        with private_file(pair.certificate) as certificate, private_file(pair.key) as key:
            context.load_cert_chain(certificate, key)
        return
    assert files is not None  # one of the two is always there
    try:
        context.load_cert_chain(files.certificate, files.key, password=_refuse_encrypted_key)
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        raise ServingError(
            f"cannot serve with the certificate `{files.certificate}` and the key `{files.key}`: {reason}\n"
            "hint: both must be PEM files that this user may read, and the key must belong to the certificate"
        ) from error


def _refuse_encrypted_key() -> str:
    """Called by OpenSSL for an encrypted key; without it, OpenSSL would prompt on the terminal."""
    raise ValueError("the key is encrypted")


def _stamp(path: Path | AuthorityText) -> object:
    if isinstance(path, AuthorityText):
        return path.pem
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def self_signed(hosts: Iterable[str]) -> KeyPair:
    """A certificate for loopback and `hosts`, signed with its own key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bayplan")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = [_alternative(host) for host in dict.fromkeys(("localhost", "127.0.0.1", "::1", *hosts))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    )


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


# Cipher suites, by the names of `--tls-cipher-suites`. Only those of TLS 1.2 can be chosen: all suites of TLS 1.3 are
# always on, in Go as in OpenSSL, so their names are accepted and change nothing. Suites without forward secrecy, and
# broken ones, are refused.

_TLS12 = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
}
_TLS13 = frozenset(("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"))


def choose_ciphers(context: ssl.SSLContext, names: Sequence[str]) -> None:
    """Allow these suites and no others in TLS 1.2."""
    unknown = [name for name in names if name not in _TLS12 and name not in _TLS13]
    if unknown:
        raise ServingError(
            f"--tls-cipher-suites: {', '.join(f'`{name}`' for name in unknown)} cannot be served\n"
            f"hint: choose from {', '.join(_TLS12)}"
        )
    chosen = [_TLS12[name] for name in names if name in _TLS12]
    if not chosen:
        # No suite of TLS 1.2 is allowed, and OpenSSL refuses an empty list.
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        return
    try:
        context.set_ciphers(":".join(chosen))
    except ssl.SSLError as error:
        raise ServingError(f"--tls-cipher-suites: OpenSSL here has none of {', '.join(names)}") from error
