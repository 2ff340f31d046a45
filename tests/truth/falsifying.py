"""Claims falsified on purpose: every field that is said, with another node, number, victim, plugin, reason.

A field that the sentence does not mention is left alone: the lie would say the same. Executors must catch all others,
and edits that do something else than is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bayplan.explain.claims import devices as d
from bayplan.explain.claims import pods as c
from bayplan.explain.claims.base import Edit
from bayplan.explain.claims.wording import sentence
from tests.truth.documents import SUBJECT, Case

__all__ = ["AS_TRUE", "falsified"]

SOMEBODY = "default/somebody-else"
NOWHERE = "elsewhere"

AS_TRUE: dict[tuple[type, str], str] = {
    (c.NodeStands, "node"): "another node may stand as well",
    (c.NodeAnswers, "node"): "another node may answer the same",
    (c.Lacks, "node"): "another node may lack as much",
    (d.DevicesSplit, "node"): "the devices of another node may be split as well",
    (d.LacksDevices, "node"): "another node may come as near",
    (d.NoDevices, "node"): "another node may have no devices either",
    (d.DevicesContested, "node"): "the devices of another node may be contested too",
    (d.PoolUnused, "node"): "the name of the node is that of its pool",
    (d.ClaimUnreachable, "node"): "the devices are as far from other nodes",
}
"""Fields of which another value that there is may be as true: these get one that there is not."""


SAYS_LESS: dict[tuple[type, str], str] = {
    (c.GoesTo, "is_offline"): "the same in other words",
    (c.Frees, "is_limited"): "at least as many is true of as many",
    (c.GoesTo, "place"): "nothing is said about a place that is unknown",
}
"""Fields whose change makes another sentence, and one that holds."""


def falsified(claim: c.Claim, case: Case) -> Iterator[tuple[str, c.Claim]]:
    """(field, claim) with the field changed, where that changes what is said."""
    said = sentence(claim)
    for name in claim.__struct_fields__:
        if (type(claim), name) in SAYS_LESS:
            continue
        for value in _others(claim, name, case):
            lie: c.Claim = msgspec.structs.replace(claim, **{name: value})
            if name == "edits" or sentence(lie) != said:
                yield name, lie


def _others(claim: c.Claim, name: str, case: Case) -> Iterator[Any]:
    """Values that the field does not have."""
    value = getattr(claim, name)
    if name == "edits":
        yield (Edit(kind="patchPod", name=SUBJECT, patch={"metadata": {"labels": {"unrelated": "yes"}}}),)
    elif name in _NODES:
        yield NOWHERE
        if (type(claim), name) not in AS_TRUE and value:
            yield from (other for other in _node_names(case) if other != value)
    elif isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1) if value > 1 else (value + 1,)
    elif isinstance(value, float):
        yield value + 10_000
    elif isinstance(value, str):
        yield SOMEBODY if "/" in value else "another"
    elif isinstance(value, tuple):
        yield (SOMEBODY,)
        if value and (name != "also" or len(value) == 1):
            # Of several that object, some object too.
            yield value[:-1]
    elif isinstance(value, dict):
        yield from ({**value, key: _other_value(value[key])} for key in value)


_NODES = ("node", "home", "runner_up")


def _node_names(case: Case) -> list[str]:
    return [node["metadata"]["name"] for node in case.nodes][:2]


def _other_value(value: Any) -> Any:
    return value + 1 if isinstance(value, int) else ("d/p/n",) if isinstance(value, tuple) else "7777"
