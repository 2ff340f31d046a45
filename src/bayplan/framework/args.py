"""Plugin arguments: a typed class inside the plugin, camelCase in YAML, snake_case in Python.

    class ScoreByLabel(Plugin):
        class Args(PluginArgs):
            label_key: str = "score-by-label"

Raise ValueError in `validate` (or return sentences from it) for what types cannot say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, dataclass_transform

import msgspec

__all__ = ["FieldsByName", "NoArgs", "PluginArgs"]


class FieldsByName(msgspec.StructMeta):
    """Fields are given by name, so that required ones may follow optional ones; msgspec does not inherit that."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        return super().__new__(mcs, name, bases, namespace, **{"kw_only": True, **options})


@dataclass_transform(kw_only_default=True, field_specifiers=(msgspec.field,))
class PluginArgs(msgspec.Struct, rename="camel", forbid_unknown_fields=True, metaclass=FieldsByName):
    """Base of every `Args` class. Fields without a default are required."""

    def validate(self) -> list[str]:
        """Problems, one sentence each, starting with the field's path (`resources[0].weight: must be 1 to 100`)."""
        return []

    def ignoring(self, resources: Sequence[str]) -> Self:
        """These arguments where extenders manage `resources` in the scheduler's place. Default: no difference."""
        return self


class NoArgs(PluginArgs):
    """For plugins that take none."""
