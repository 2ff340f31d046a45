from __future__ import annotations

import asyncio
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.waiting import until

from bayplan.client.errors import CredentialError
from bayplan.client.exec_plugin import ExecCredentials, ExecPlugin, resolve_command
from bayplan.observe.clock import VirtualClock

V1 = "client.authentication.k8s.io/v1"


def _plugin(
    tmp_path: Path, script: str, *, timeout_seconds: float = 60.0, cluster: dict[str, object] | None = None
) -> ExecPlugin:
    program = tmp_path / "plugin.py"
    program.write_text(f"#!{sys.executable} -SEs\nimport json, os, sys, time\n{script}")
    program.chmod(0o755)
    return ExecPlugin(
        api_version=V1,
        command=str(program),
        args=("--get", "token"),
        env={"EXTRA": "yes"},
        cluster=cluster,
        timeout_seconds=timeout_seconds,
    )


def _credentials(plugin: ExecPlugin, clock: VirtualClock) -> ExecCredentials:
    return ExecCredentials(plugin, clock=clock, environment=os.environ)


def _printing(status: dict[str, object], *, api_version: str = V1) -> str:
    return f"print({json.dumps(json.dumps({'kind': 'ExecCredential', 'apiVersion': api_version, 'status': status}))})\n"


async def test_the_token_is_kept_until_it_expires(tmp_path: Path, clock: VirtualClock) -> None:
    runs = tmp_path / "runs"
    expiry = datetime.fromtimestamp(clock.now() + 60, tz=UTC).isoformat()
    script = f"open({str(runs)!r}, 'a').write('x')\n" + _printing({"token": "abc", "expirationTimestamp": expiry})
    credentials = _credentials(_plugin(tmp_path, script), clock)

    first = await credentials.obtain()
    assert first.authorization == "Bearer abc"
    assert credentials.cached() is first
    clock.advance(50)
    assert await credentials.obtain() is first
    clock.advance(6)
    assert credentials.cached() is None
    await credentials.obtain()

    assert runs.read_text() == "xx"


async def test_many_requests_wait_for_one_run(tmp_path: Path, clock: VirtualClock) -> None:
    runs = tmp_path / "runs"
    credentials = _credentials(
        _plugin(tmp_path, f"open({str(runs)!r}, 'a').write('x')\n" + _printing({"token": "abc"})), clock
    )

    identities = await asyncio.gather(*(credentials.obtain() for _ in range(10)))

    assert runs.read_text() == "x"
    assert all(identity is identities[0] for identity in identities)


async def test_a_refused_identity_is_obtained_anew_but_only_by_the_first_to_say_so(
    tmp_path: Path, clock: VirtualClock
) -> None:
    credentials = _credentials(_plugin(tmp_path, _printing({"token": "abc"})), clock)
    first = await credentials.obtain()

    assert credentials.reject(first) is True
    assert credentials.cached() is None
    second = await credentials.obtain()
    assert credentials.reject(first) is True

    assert credentials.cached() is second


async def test_the_plugin_learns_what_it_is_asked(tmp_path: Path, clock: VirtualClock) -> None:
    seen = tmp_path / "seen"
    script = (
        "info = os.environ['KUBERNETES_EXEC_INFO']\n"
        f"open({str(seen)!r}, 'w').write(json.dumps([info, sys.argv[1:], os.environ['EXTRA'], sys.stdin.read()]))\n"
    )
    plugin = _plugin(tmp_path, script + _printing({"token": "abc"}), cluster={"server": "https://x"})

    await _credentials(plugin, clock).obtain()

    info, arguments, extra, stdin = json.loads(seen.read_text())
    assert json.loads(info) == {
        "kind": "ExecCredential",
        "apiVersion": V1,
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }
    assert (arguments, extra, stdin) == (["--get", "token"], "yes", "")


async def test_a_client_certificate_may_come_instead_of_a_token(tmp_path: Path, clock: VirtualClock) -> None:
    status: dict[str, object] = {"clientCertificateData": "CERT", "clientKeyData": "KEY"}

    identity = await _credentials(_plugin(tmp_path, _printing(status)), clock).obtain()

    assert identity.authorization is None
    assert identity.certificate is not None
    assert (identity.certificate.certificate.data, identity.certificate.key.data) == (b"CERT", b"KEY")
    assert "KEY" not in repr(identity) + repr(identity.certificate)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("sys.exit(3)", "ended with status 3"),
        ("print('secret: not json')", "did not print an ExecCredential as JSON"),
        ("print('{}')", "did not answer with kind ExecCredential"),
        (
            _printing({"token": "secret"}, api_version="client.authentication.k8s.io/v1alpha1"),
            "did not answer with kind",
        ),
        (_printing({}), "neither a token nor a client certificate"),
        (_printing({"clientKeyData": "secret"}), "without its certificate"),
        (_printing({"token": "secret\nInjected: header"}), "characters that a header cannot hold"),
        (f"print(json.dumps({{'kind': 'ExecCredential', 'apiVersion': {V1!r}}}))", "without a status"),
    ],
)
async def test_a_plugin_that_fails_is_named_with_its_failure_and_without_its_output(
    tmp_path: Path, clock: VirtualClock, script: str, problem: str
) -> None:
    with pytest.raises(CredentialError, match=problem) as caught:
        await _credentials(_plugin(tmp_path, script), clock).obtain()

    assert "plugin.py" in str(caught.value)
    assert "secret" not in str(caught.value)


async def test_a_plugin_that_hangs_is_ended(tmp_path: Path, clock: VirtualClock) -> None:
    with pytest.raises(CredentialError, match=r"no answer within 0\.1 s"):
        await _credentials(_plugin(tmp_path, "time.sleep(60)", timeout_seconds=0.1), clock).obtain()


async def test_what_a_plugin_that_hangs_has_started_is_ended_too(tmp_path: Path, clock: VirtualClock) -> None:
    """A child that keeps the output open would hold every request up for as long as it runs."""
    child = tmp_path / "child"
    script = (
        "import subprocess\n"
        f"open({str(child)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))\n"
        "time.sleep(600)\n"
    )
    async with asyncio.timeout(60):
        with pytest.raises(CredentialError, match="no answer within 2 s"):
            await _credentials(_plugin(tmp_path, script, timeout_seconds=2.0), clock).obtain()

    await until(lambda: not _runs(int(child.read_text())))


def _runs(pid: int) -> bool:
    try:
        return " (sleep) Z" not in Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_output_without_end_is_not_gathered(tmp_path: Path, clock: VirtualClock) -> None:
    script = "while True: os.write(1, bytes(65536))\n"
    async with asyncio.timeout(60):
        with pytest.raises(CredentialError, match="printed more than 1,048,576 bytes"):
            await _credentials(_plugin(tmp_path, script, timeout_seconds=600), clock).obtain()


async def test_a_plugin_that_is_not_installed_shows_its_own_hint(clock: VirtualClock) -> None:
    plugin = ExecPlugin(api_version=V1, command="no-such-plugin", install_hint="brew install it")

    with pytest.raises(CredentialError, match="cannot run the credential plugin `no-such-plugin`") as caught:
        await _credentials(plugin, clock).obtain()
    assert caught.value.hint == "brew install it"


async def test_a_plugin_that_must_ask_a_person_is_not_run_without_a_terminal(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    plugin = ExecPlugin(api_version=V1, command="irrelevant", interactive_mode="Always")

    with pytest.raises(CredentialError, match="there is no terminal"):
        await _credentials(plugin, clock).obtain()


def test_a_command_with_a_slash_is_relative_to_its_kubeconfig() -> None:
    assert resolve_command("bin/login", Path("/home/me/.kube")) == "/home/me/.kube/bin/login"
    assert resolve_command("login", Path("/home/me/.kube")) == "login"
    assert resolve_command("/usr/bin/login", Path("/home/me/.kube")) == "/usr/bin/login"
