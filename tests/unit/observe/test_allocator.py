"""Large blocks: asked of glibc, and of nobody else."""

from __future__ import annotations

import platform

import pytest

from bayplan.observe.allocator import keep_large_blocks_apart


def test_glibc_listens() -> None:
    assert keep_large_blocks_apart() is (platform.libc_ver()[0] == "glibc")


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))

    assert keep_large_blocks_apart() is False
