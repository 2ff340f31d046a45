"""A finding of `bayplan doctor`."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ["Finding", "Level"]


class Level(Enum):
    """The severity. Only errors decide the exit status."""

    ERROR = "error"
    WARNING = "warning"
    OK = "ok"


class Finding(NamedTuple):
    level: Level
    check: str
    """The check that found it: api, rbac, crd, lease, config, pods, profiles, nodes, rivals."""
    what: str
    why: str = ""
    """Why it matters."""
    fix: str = ""
    """A command, or what to change."""
