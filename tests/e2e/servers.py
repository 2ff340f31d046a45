"""kubectl on an API server of either kind, from a test that goes on meanwhile, and the kubeconfig it uses."""

from __future__ import annotations

import asyncio
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.programs import program


@dataclass(frozen=True)
class Server:
    """An API server of either kind."""

    kubeconfig: Path

    async def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """What kubectl prints, errors included; a failure fails the test unless `check` is off."""
        done = await asyncio.to_thread(self._run, arguments, stdin)
        assert not check or done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stdout}"
        return done.stdout

    def _run(self, arguments: tuple[str, ...], stdin: str | None) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        return subprocess.run(
            [str(program("kubectl")), *arguments],
            input=stdin,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )

    async def apply(self, source: Path | str | dict[str, Any], *, check: bool = True) -> str:
        """Server-side apply of a file, a text or a document."""
        return await self.kubectl("apply", "--server-side", "-f", "-", stdin=_text(source), check=check)


def _text(source: Path | str | dict[str, Any]) -> str:
    if isinstance(source, Path):
        return source.read_text()
    return source if isinstance(source, str) else yaml.safe_dump(source)
