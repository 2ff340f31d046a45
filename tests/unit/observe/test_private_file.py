"""Content under a name: readable while it is needed, gone afterwards, on systems with files in memory and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bayplan.observe.private_file import private_file


@pytest.mark.parametrize("in_memory", [True, False])
def test_the_content_is_there_while_it_is_needed(in_memory: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    with private_file(b"secret") as name:
        assert Path(name).read_bytes() == b"secret"
        assert Path(name).stat().st_mode & 0o077 == 0 or name.startswith("/proc/self/")
    assert not Path(name).exists()
