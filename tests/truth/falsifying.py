"""Claims falsified on purpose: with another node, another number, another victim. Their executors must catch them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bayplan.explain import claims as c
from bayplan.explain import device_claims as d
from tests.truth.documents import Case

__all__ = ["FALSIFIERS", "falsified"]

SOMEBODY = ("default/somebody-else",)


def falsified(claim: c.Claim, case: Case) -> Iterator[c.Claim]:
    for changes in FALSIFIERS[type(claim)](claim, case):
        yield msgspec.structs.replace(claim, **changes)  # type: ignore[type-var]


Changes = Iterator[dict[str, Any]]


def _other_node(claim: Any, case: Case) -> dict[str, Any]:
    names = [node["metadata"]["name"] for node in case.nodes]
    return {"node": next((name for name in names if name != claim.node), "elsewhere")}


def _chosen(claim: c.Chosen, case: Case) -> Changes:
    yield _other_node(claim, case)
    yield {"nodes": claim.nodes + 1}
    yield {"feasible": claim.feasible + 1}
    yield {"victims": SOMEBODY}
    if claim.by == "points":
        yield {"total": claim.total + 1}
        yield {"by": "only node"}
        yield {"ties": claim.ties + 1}
        yield {"runner_up": "elsewhere"}
    if claim.runner_up:
        yield {"ahead": claim.ahead + 1}


def _preempted(claim: c.Preempted, case: Case) -> Changes:
    yield {"by": SOMEBODY[0]}
    yield _other_node(claim, case)


def _unplaced(claim: c.Unplaced, case: Case) -> Changes:
    yield {"message": "another reason"}


def _refused_later(claim: c.RefusedLater, case: Case) -> Changes:
    yield _other_node(claim, case)
    yield {"point": "Bind"}
    yield {"plugin": "NodeName"}
    yield {"message": "another reason"}


def _goes_to(claim: c.GoesTo, case: Case) -> Changes:
    yield _other_node(claim, case)
    yield {"nodes": claim.nodes + 1}
    yield {"feasible": claim.feasible + 1}
    if claim.feasible > 1:
        yield {"total": claim.total + 1}


def _fits_nowhere(claim: c.FitsNowhere, case: Case) -> Changes:
    yield {"nodes": claim.nodes + 1}
    if claim.refused and not case.plugin:
        yield {"refused": claim.refused + 1}
        yield {"plugin": "NodeName"}
    if claim.resource:
        yield {"asked": "1 CPU"}


def _would_preempt(claim: c.WouldPreempt, case: Case) -> Changes:
    yield _other_node(claim, case)
    yield {"victims": SOMEBODY}
    yield {"ties": claim.ties + 1}
    yield {"violations": claim.violations + 1}


def _held_back(claim: c.HeldBack, case: Case) -> Changes:
    yield {"gates": ("another",)}
    yield {"plugin": "NodeName"}


def _held_at_permit(claim: c.HeldAtPermit, case: Case) -> Changes:
    yield _other_node(claim, case)
    yield {"plugins": ("NodeName",)}
    yield {"seconds_left": claim.seconds_left + 1000}


def _no_scheduler(claim: c.NoScheduler, case: Case) -> Changes:
    yield {"scheduler": "another"}


def _would_fit(claim: c.WouldFit, case: Case) -> Changes:
    if claim.node:
        yield _other_node(claim, case)
        yield {"nodes": claim.nodes + 1}
    yield {"edits": ()}


def _would_move(claim: c.WouldMove, case: Case) -> Changes:
    yield {"home": claim.node or "elsewhere"}
    yield {"node": "elsewhere"}


def _without(claim: c.Without, case: Case) -> Changes:
    yield {"nodes": claim.nodes + 1}


def _lacks(claim: c.Lacks, case: Case) -> Changes:
    yield {"amounts": dict.fromkeys(claim.amounts, "7777")}
    yield {"node": "elsewhere"}


def _too_large(claim: c.TooLarge, case: Case) -> Changes:
    yield {"asked": "1 CPU"}
    yield {"largest": "7 CPU"}


def _frees(claim: c.Frees, case: Case) -> Changes:
    yield {"count": claim.count + 1}
    yield {"of": claim.of + 100}


def _nothing_helps(claim: c.NothingHelps, case: Case) -> Changes:
    yield {"reason": ""}


def _about_device(claim: Any, case: Case) -> Changes:
    yield _other_node(claim, case)


def _nowhere(claim: Any, case: Case) -> Changes:
    """What is true of a node may be as true of another one that there is."""
    yield {"node": "elsewhere"}


FALSIFIERS: dict[type, Callable[[Any, Case], Changes]] = {
    c.Chosen: _chosen,
    c.Preempted: _preempted,
    c.Unplaced: _unplaced,
    c.RefusedLater: _refused_later,
    c.GoesTo: _goes_to,
    c.FitsNowhere: _fits_nowhere,
    c.WouldPreempt: _would_preempt,
    c.HeldBack: _held_back,
    c.HeldAtPermit: _held_at_permit,
    c.NoScheduler: _no_scheduler,
    c.WouldFit: _would_fit,
    c.WouldMove: _would_move,
    c.Without: _without,
    c.Lacks: _lacks,
    c.TooLarge: _too_large,
    c.Frees: _frees,
    c.NothingHelps: _nothing_helps,
    d.HasDevices: lambda claim, case: iter([{"devices": {"another": ("d/p/n",)}}]),
    d.LacksDevices: lambda claim, case: iter([{"usable": claim.usable + 1}]),
    d.DeviceFree: _about_device,
    d.DeviceTaken: lambda claim, case: iter([_other_node(claim, case), {"users": SOMEBODY}]),
    d.DeviceTainted: lambda claim, case: iter([_other_node(claim, case), {"taint": "another=one:NoSchedule"}]),
    d.DeviceRefused: lambda claim, case: iter([{"values": dict.fromkeys(claim.values, "another")}]),
    d.DeviceFails: _about_device,
    d.DeviceShort: lambda claim, case: iter([_other_node(claim, case), {"needs": "7777"}]),
    d.DeviceElsewhere: _about_device,
    d.NoDevices: _nowhere,
    d.DevicesSplit: lambda claim, case: iter([{"values": {"another": 1}}]),
    d.DevicesContested: _nowhere,
    d.PoolUnused: _nowhere,
    d.ClaimUnreachable: _nowhere,
}
