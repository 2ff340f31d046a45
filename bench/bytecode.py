"""Bytecode beside the sources, as an installer leaves it: a process that is measured must not compile itself first.

Where `PYTHONDONTWRITEBYTECODE` is set, a checkout never gets any, and every start of `bayplan run` would compile some
three hundred files, a third of a second.
"""

from __future__ import annotations

import compileall
from pathlib import Path

import bayplan

__all__ = ["compile_sources"]


def compile_sources() -> None:
    """Compile what changed since the last time."""
    for folder in bayplan.__path__:
        compileall.compile_dir(Path(folder), quiet=1)
