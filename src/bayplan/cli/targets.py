"""What people call pods and nodes on a command line: `pod web`, `po/web`, `pods a,b`, `pod/a node/b`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.api.suggest import did_you_mean
from bayplan.cli.output import CommandError

__all__ = ["KINDS", "Target", "kinds_and_names", "read_targets"]

KINDS = {"pod": "pod", "pods": "pod", "po": "pod", "node": "node", "nodes": "node", "no": "node"}
"""By name and short name, as kubectl has them."""


class Target(NamedTuple):
    kind: str
    name: str
    """For a pod, `namespace/name`."""


def read_targets(words: Sequence[str], namespace: str) -> list[Target]:
    """`KIND NAME...`, `KIND/NAME...`, names by comma; a pod may be `NAMESPACE/NAME`. Raises `CommandError`."""
    return [_target(_kind(kind), name, namespace) for kind, name in kinds_and_names(words)]


def kinds_and_names(words: Sequence[str]) -> list[tuple[str, str]]:
    """(kind as it is written, name) of `KIND NAME...` and `KIND/NAME...`, also by comma; a kind alone has no name."""
    if "/" in words[0]:
        parts = [part.partition("/") for word in words for part in word.split(",") if part]
        found = [(kind, name) for kind, _, name in parts]
    else:
        names = [part for word in words[1:] for part in word.split(",") if part] or [""]
        found = [(kind, name) for kind in words[0].split(",") if kind for name in names]
    if not found or not all(kind for kind, _ in found):
        raise CommandError(
            f"`{' '.join(words)}` names no kind", hint="write `KIND NAME` or `KIND/NAME`, as in `pod/web`"
        )
    return found


def _kind(word: str) -> str:
    found = KINDS.get(word.lower())
    if found is None:
        raise CommandError(f"`{word}` is neither a pod nor a node; {did_you_mean(word, ('pod', 'node'))}")
    return found


def _target(kind: str, name: str, namespace: str) -> Target:
    if not name:
        raise CommandError(f"which {kind}?", hint=f"name it: `{kind} NAME`, or `{kind}/NAME`")
    return Target(kind, name if kind == "node" or "/" in name else f"{namespace}/{name}")
