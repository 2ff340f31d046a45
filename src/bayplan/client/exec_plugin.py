"""Credentials from an exec plugin: a program named in the kubeconfig that prints an ExecCredential.

Versions v1 and v1beta1 of client.authentication.k8s.io. The program learns what it needs from KUBERNETES_EXEC_INFO;
what it prints is kept until the time it names, or until the server answers 401. Its standard error is passed through,
as kubectl does: it may hold what must not be logged, and interactive plugins prompt there.

At most one process of the program runs at a time, whatever the number of requests that wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from bayplan.client.credentials import Identity, is_header_safe
from bayplan.client.errors import CredentialError
from bayplan.client.tls import ClientCertificate, Pem
from bayplan.observe.clock import Clock

API_GROUP = "client.authentication.k8s.io"
SUPPORTED_VERSIONS = (f"{API_GROUP}/v1", f"{API_GROUP}/v1beta1")

_EXPIRY_LEEWAY_SECONDS = 5.0
_MAX_OUTPUT_BYTES = 1 << 20
_READ_BYTES = 1 << 16
_END_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """The `exec` block of a kubeconfig user, paths resolved. `cluster` is None unless the plugin asked to know it."""

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    install_hint: str = ""
    interactive_mode: str = "IfAvailable"
    cluster: Mapping[str, object] | None = field(default=None, repr=False)
    timeout_seconds: float = 60.0


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


_DECODER = msgspec.json.Decoder(_ExecCredential)


class ExecCredentials:
    """Runs the plugin when needed and caches its answer."""

    def __init__(self, plugin: ExecPlugin, *, clock: Clock, environment: Mapping[str, str]) -> None:
        self._plugin = plugin
        self._clock = clock
        self._environment = environment
        self._identity: Identity | None = None
        self._expires_at: float | None = None
        self._running = asyncio.Lock()

    def cached(self) -> Identity | None:
        if self._expires_at is not None and self._clock.now() >= self._expires_at - _EXPIRY_LEEWAY_SECONDS:
            return None
        return self._identity

    async def obtain(self) -> Identity:
        async with self._running:
            identity = self.cached()
            if identity is None:
                identity = self._remember(await self._run())
            return identity

    def reject(self, identity: Identity) -> bool:
        """Forget the refused identity, unless another request's refusal has already brought a newer one."""
        if self._identity is identity:
            self._identity = None
        return True

    async def _run(self) -> bytes:
        interactive = self._is_interactive()
        try:
            process = await asyncio.create_subprocess_exec(
                self._plugin.command,
                *self._plugin.args,
                stdin=None if interactive else DEVNULL,
                stdout=PIPE,
                env=self._child_environment(interactive=interactive),
                # A session of its own ends as a whole. One that asks a person needs the session of the terminal.
                start_new_session=not interactive,
            )
        except OSError as error:
            raise self._cannot_run(error) from error
        output = await self._output_of(process, end=process.kill if interactive else partial(_end_session, process.pid))
        if process.returncode != 0:
            raise self._failed(f"ended with status {process.returncode}")
        return output

    async def _output_of(self, process: asyncio.subprocess.Process, end: Callable[[], None]) -> bytes:
        assert process.stdout is not None
        output = bytearray()
        try:
            async with asyncio.timeout(self._plugin.timeout_seconds):
                while some := await process.stdout.read(_READ_BYTES):
                    output += some
                    if len(output) > _MAX_OUTPUT_BYTES:
                        raise self._failed(f"printed more than {_MAX_OUTPUT_BYTES:,} bytes")
                await process.wait()
                return bytes(output)
        except TimeoutError:
            raise self._failed(f"gave no answer within {self._plugin.timeout_seconds:g} s") from None
        finally:
            if process.returncode is None or not process.stdout.at_eof():
                with contextlib.suppress(ProcessLookupError):
                    end()
                await _ended(process, process.stdout)

    def _remember(self, output: bytes) -> Identity:
        status = self._checked(output)
        certificate = None
        if status.client_certificate_data and status.client_key_data:
            certificate = ClientCertificate(
                Pem(data=status.client_certificate_data.encode()), Pem(data=status.client_key_data.encode())
            )
        identity = Identity(f"Bearer {status.token}" if status.token else None, certificate)
        expiry = status.expiration_timestamp
        if expiry is not None and expiry.tzinfo is None:
            expiry = expiry.replace(tzinfo=UTC)
        self._expires_at = expiry.timestamp() if expiry else None
        self._identity = identity
        return identity

    def _checked(self, output: bytes) -> _ExecStatus:
        """The answer's status, or an error that names what is wrong and shows none of it: it may hold a token."""
        try:
            credential = _DECODER.decode(output)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise self._failed("did not print an ExecCredential as JSON") from None
        if credential.kind != "ExecCredential" or credential.api_version != self._plugin.api_version:
            raise self._failed(f"did not answer with kind ExecCredential of {self._plugin.api_version}")
        status = credential.status
        if status is None:
            raise self._failed("printed an ExecCredential without a status")
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failed("printed a client certificate without its key, or a key without its certificate")
        if not status.token and not status.client_certificate_data:
            raise self._failed("printed neither a token nor a client certificate")
        if status.token and not is_header_safe(status.token):
            raise self._failed("printed a token with characters that a header cannot hold")
        return status

    def _is_interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        has_terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not has_terminal:
            raise self._failed("has to prompt (interactiveMode Always), and there is no terminal")
        return mode != "Never" and has_terminal

    def _child_environment(self, *, interactive: bool) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": interactive}
        if self._plugin.cluster is not None:
            spec["cluster"] = self._plugin.cluster
        info = {"kind": "ExecCredential", "apiVersion": self._plugin.api_version, "spec": spec}
        return {**self._environment, **self._plugin.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _cannot_run(self, error: OSError) -> CredentialError:
        hint = self._plugin.install_hint or f"install `{Path(self._plugin.command).name}` or fix `exec.command`"
        return CredentialError(
            f"cannot run the credential plugin `{self._plugin.command}`: {error.strerror}", hint=hint
        )

    def _failed(self, what: str) -> CredentialError:
        return CredentialError(
            f"the credential plugin `{self._plugin.command}` {what}",
            hint="run it by hand, or log in again with the tool it belongs to",
        )


async def _ended(process: asyncio.subprocess.Process, output: asyncio.StreamReader) -> None:
    """Wait for the end, which comes when the output is read. Whoever left the session may keep it open for longer."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            while await output.read(_READ_BYTES):
                pass
            await process.wait()


def _end_session(leader: int) -> None:
    os.killpg(leader, signal.SIGKILL)


def resolve_command(command: str, folder: Path) -> str:
    """A command with a slash is relative to its kubeconfig; a bare name is looked up in PATH."""
    if os.sep in command and not os.path.isabs(command):
        return str(folder / command)
    return command
