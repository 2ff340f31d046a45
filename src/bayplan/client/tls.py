"""TLS settings for connections to an API server: trusted authorities and the client certificate.

The server is verified unless a kubeconfig says `insecure-skip-tls-verify`; there is no other way to turn that off.
Certificates and keys given as files are read again when they change on disk, so that rotation needs no restart. A key
given as data does not touch the disk where the system has anonymous files, and elsewhere only for the instant in which
OpenSSL loads it, readable by its owner alone.
"""

from __future__ import annotations

import os
import ssl
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from bayplan.client.errors import KubeconfigError
from bayplan.observe.private_file import private_file


@dataclass(frozen=True, slots=True)
class Pem:
    """A PEM document: bytes at hand, or a file that may be replaced while we run."""

    path: Path | None = None
    data: bytes | None = field(default=None, repr=False)

    def read(self) -> bytes:
        if self.data is not None:
            return self.data
        assert self.path is not None
        try:
            return self.path.read_bytes()
        except OSError as error:
            raise KubeconfigError(
                f"cannot read `{self.path}`: {error.strerror}",
                hint="check that the file the kubeconfig names exists and that this user may read it",
            ) from error

    def stamp(self) -> object:
        """Equal as long as the document is the same."""
        if self.path is None:
            return id(self.data)
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return (status.st_mtime_ns, status.st_size, status.st_ino)


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A client certificate with its key."""

    certificate: Pem
    key: Pem


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """TLS settings for one cluster. `server_name` replaces the URL's host in verification and SNI."""

    authority: Pem | None = None
    certificate: ClientCertificate | None = None
    server_name: str | None = None
    insecure: bool = False


class TlsContexts:
    """Contexts made from the settings, remade when a file behind them has changed."""

    def __init__(self, settings: TlsSettings) -> None:
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._made_from: object = None

    def context(self, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
        """The context to open a connection with; a certificate from a credential takes precedence over the configured
        one."""
        shown = certificate or self._settings.certificate
        stamp = _stamp(self._settings.authority, shown)
        if self._context is None or stamp != self._made_from:
            self._context = make_context(self._settings, shown)
            self._made_from = stamp
        return self._context


def make_context(settings: TlsSettings, certificate: ClientCertificate | None) -> ssl.SSLContext:
    # The authorities of the system take longer to read than to connect, and are trusted only where none is given.
    context = ssl.create_default_context() if settings.authority is None else _trusting(settings.authority)
    # Python 3.13 turned on checks that Go, which wrote most clusters' certificates, does not make: an authority
    # without key identifiers is common. An intermediate that is listed as trusted is trusted, as in Go.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _load_certificate(context, certificate)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trusting(authority: Pem) -> ssl.SSLContext:
    """A context that trusts only the given authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=authority.read().decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError) as error:
        raise KubeconfigError(
            f"the certificate authority {_place(authority)} is not PEM: {_ssl_reason(error)}",
            hint="`certificate-authority(-data)` must hold at least one `BEGIN CERTIFICATE` block",
        ) from error
    return context


def _load_certificate(context: ssl.SSLContext, certificate: ClientCertificate) -> None:
    with _as_file(certificate.certificate) as cert_file, _as_file(certificate.key) as key_file:
        try:
            context.load_cert_chain(cert_file, key_file, password=_refuse_encrypted_key)
        except (ssl.SSLError, ValueError) as error:
            raise KubeconfigError(
                f"the client certificate {_place(certificate.certificate)} and its key cannot be used: "
                f"{_ssl_reason(error)}",
                hint="both must be PEM, the key must belong to the certificate and must not be encrypted",
            ) from error


def _as_file(pem: Pem) -> AbstractContextManager[str]:
    """A file name that OpenSSL can open; it takes no bytes."""
    content = pem.read()
    return private_file(content) if pem.path is None else nullcontext(str(pem.path))


def _refuse_encrypted_key() -> str:
    """Called by OpenSSL for an encrypted key; without it, OpenSSL would prompt on the terminal."""
    raise ValueError("the key is encrypted")


def _stamp(authority: Pem | None, certificate: ClientCertificate | None) -> object:
    shown = (certificate.certificate.stamp(), certificate.key.stamp()) if certificate else None
    return (authority.stamp() if authority else None, shown)


def _place(pem: Pem) -> str:
    return f"in `{pem.path}`" if pem.path else "in the kubeconfig"


def _ssl_reason(error: Exception) -> str:
    return getattr(error, "reason", None) or (str(error) if not isinstance(error, ssl.SSLError) else "unreadable")
