"""What `simulate`, `sweep` and `plan` read alike: named policies, and the objects of a running cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayplan.cli.output import CommandError

if TYPE_CHECKING:
    from bayplan.sim.compare import PolicyVariant

__all__ = ["live_objects", "read_variants"]


def read_variants(
    config: str | None, plugins: Sequence[str], others: Sequence[str], recording: Path | None = None
) -> list[PolicyVariant]:
    """The policy of a recording, that of --config and --plugin, and those of --variant NAME=FILE[,PLUGIN]."""
    from bayplan.sim.compare import PolicyVariant

    found = [] if recording is None else [PolicyVariant(name="recorded", recording=recording)]
    if recording is None or config or plugins:
        first = Path(config).stem if config else "with plugins" if recording else "default"
        found.append(PolicyVariant(name=first, config=Path(config) if config else None, plugins=tuple(plugins)))
    for text in others:
        name, equals, words = text.partition("=")
        if not equals or not name or not words:
            raise CommandError(f"--variant {text}: write NAME=CONFIG.yaml, NAME=PLUGIN, or both with a comma")
        if any(each.name == name for each in found):
            raise CommandError(f"--variant {text}: there are two variants of the name `{name}`")
        files = [word for word in words.split(",") if word.endswith((".yaml", ".yml", ".json"))]
        if len(files) > 1:
            raise CommandError(f"--variant {text}: names two configurations")
        rest = tuple(word for word in words.split(",") if word not in files)
        found.append(PolicyVariant(name=name, config=Path(files[0]) if files else None, plugins=(*plugins, *rest)))
    return found


def live_objects(kubeconfig: str | None) -> tuple[dict[str, Any], ...]:
    """The objects of a running cluster, which is only read; none without one."""
    if kubeconfig is None:
        return ()
    from bayplan.sim.sources import read_live_objects

    return tuple(asyncio.run(read_live_objects(Path(kubeconfig))))
