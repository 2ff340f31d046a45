"""What people call pods and nodes on a command line: `pod web`, `po/web`, `pods a,b`, `pod/a node/b`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bayplan.api.suggest import did_you_mean
from bayplan.cli.output import CommandError

__all__ = ["KINDS", "Target", "read_targets"]

KINDS = {"pod": "pod", "pods": "pod", "po": "pod", "node": "node", "nodes": "node", "no": "node"}
"""By name and short name, as kubectl has them."""


class Target(NamedTuple):
    kind: str
    name: str
    """For a pod, `namespace/name`."""


def read_targets(words: Sequence[str], namespace: str) -> list[Target]:
    """`KIND NAME...`, `KIND/NAME...`, names by comma; a pod may be `NAMESPACE/NAME`. Raises `CommandError`."""
    first = words[0]
    if "/" in first:
        parts = [part for word in words for part in word.split(",") if part]
        pairs = [(part.partition("/")[0], part.partition("/")[2]) for part in parts]
    else:
        names = [part for word in words[1:] for part in word.split(",") if part]
        pairs = [(first, name) for name in names]
        if not names:
            kind = _kind(first)
            raise CommandError(f"which {kind}?", hint=f"name it: `{kind} NAME`, or `{kind}/NAME`")
    return [_target(_kind(kind), name, namespace) for kind, name in pairs]


def _kind(word: str) -> str:
    found = KINDS.get(word.lower())
    if found is None:
        raise CommandError(f"`{word}` is neither a pod nor a node; {did_you_mean(word, ('pod', 'node'))}")
    return found


def _target(kind: str, name: str, namespace: str) -> Target:
    if not name:
        raise CommandError(f"which {kind}?", hint=f"name it: `{kind} NAME`, or `{kind}/NAME`")
    return Target(kind, name if kind == "node" or "/" in name else f"{namespace}/{name}")
