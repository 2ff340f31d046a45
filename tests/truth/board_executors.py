"""Executors of claims about all pending pods, about nodes, and about what-ifs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from bayplan.explain.claims import pods as c
from bayplan.loop.points import EXTENDER
from tests.truth.changes import key_of
from tests.truth.documents import SUBJECT, JsonObject
from tests.truth.owned_cases import is_lasting
from tests.truth.world import World, all_hold, evaluated

__all__ = ["BOARD_EXECUTORS"]

_MANY = 40
"""So many kinds of pods are looked at."""


async def _pending_together(world: World, claim: c.PendingTogether) -> str:
    """So many have no node; each of those that are counted was told the reason, or has the gate, or the scheduler."""
    waiting = {key for key, node in world.base.nodes.items() if not node}
    pods = {key_of(pod): pod for pod in world.case.pods}
    # A reason that names the pod is said of all without the name.
    told = {
        key: world.base.messages.get(key, "").replace(f"pod {key.partition('/')[2]} ", "pod ") for key in claim.pods
    }
    return all_hold(
        (claim.total == len(waiting), f"{len(waiting)} wait"),
        (claim.count == len(set(claim.pods)), f"{len(set(claim.pods))} are counted"),
        (set(claim.pods) <= waiting, "some of them run"),
        (not claim.reason or claim.reason in claim.title, "it says another reason"),
        (all(_is_because(world, claim, pods[key], told[key]) for key in claim.pods if key in pods), f"told {told}"),
    )


def _is_because(world: World, claim: c.PendingTogether, pod: JsonObject, told: str) -> bool:
    gates = [f"`{gate['name']}`" for gate in pod["spec"].get("schedulingGates", ())]
    if gates:
        return all(gate in claim.title for gate in gates) and "SchedulingGates" in claim.title
    scheduler = pod["spec"].get("schedulerName", "default-scheduler")
    if scheduler not in world.base.profiles:
        return f"`{scheduler}`" in claim.title
    if "at Permit by" in claim.title:
        return claim.title.endswith(tuple(world.base.plugins))
    if claim.title.startswith("preemption: "):
        return key_of(pod) in dict(world.base.nominations) and claim.reason == "pods that have to leave are still there"
    if claim.title.startswith(f"{EXTENDER}: "):
        return "no licence" in told
    if not claim.reason:
        return claim.title in told or claim.title.startswith("nothing: they fit")
    if any("resourceClaims" in each["spec"] for each in world.case.pods):
        return claim.title.startswith("DynamicResources")
    plugin, _, reason = claim.title.partition(": ")
    known = plugin.split(" at ")[0].removesuffix(" failed") in world.base.plugins or not plugin
    return (known and all(part in told for part in reason.split(", "))) or claim.title in told or _fails(world, reason)


def _fails(world: World, reason: str) -> bool:
    """What PreFilter says of a group changes with the time since its last attempt."""
    prefilter = (world.base.result or {}).get("prefilter", {})
    return sorted(reason.split(", ")) == sorted(prefilter.get("reasons", [])) != []


async def _node_stands(world: World, claim: c.NodeStands) -> str:
    node = next((n for n in world.case.nodes if n["metadata"]["name"] == claim.node), None)
    if node is None:
        return "no such node"
    pods = [pod for pod in world.case.pods if world.base.nodes.get(key_of(pod)) == claim.node]
    waiting = [pod for pod in world.case.pods if _is_queued(world, pod)]
    answers = [evaluated(world.case, subject=key_of(pod), nodes=world.base.nodes) for pod in waiting]
    fits = sum(claim.node in answer["scores"] for answer in answers if answer is not None)
    return all_hold(
        (claim.pods == len(pods), f"{len(pods)} run there"),
        (claim.coming == 0, "all of them are bound"),
        (claim.allowed == int(node["status"]["allocatable"]["pods"]), "another number of places"),
        (claim.waiting + claim.untried == len(waiting), f"{len(waiting)} wait"),
        (not claim.untried or len(waiting) > _MANY, "all of them were looked at"),
        (claim.fits == fits, f"{fits} would fit"),
        (claim.is_cordoned == bool(node["spec"].get("unschedulable")), "cordoned, or not"),
    )


def _is_queued(world: World, pod: JsonObject) -> bool:
    spec = pod["spec"]
    is_ours = spec.get("schedulerName", "default-scheduler") in world.base.profiles
    return world.base.nodes.get(key_of(pod)) == "" and is_ours and not spec.get("schedulingGates")


async def _node_answers(world: World, claim: c.NodeAnswers) -> str:
    answer = evaluated(world.case, subject=claim.pod, nodes=world.base.nodes)
    assert answer is not None  # nodes are asked about in such cases only
    totals = {name: entry["total"] for name, entry in answer["scores"].items()}
    refusal = answer.get("prefilter") or answer["nodes"].get(claim.node, {})
    if not claim.fits:
        return all_hold(
            (claim.node in {node["metadata"]["name"] for node in world.case.nodes}, "no such node"),
            (claim.node not in totals, "it would fit"),
            (claim.plugin == refusal.get("plugin"), f"{refusal} refuses it"),
            (sorted(claim.reasons) == refusal.get("reasons"), f"because of {refusal}"),
        )
    own = totals.get(claim.node, 0)
    place = 1 + sum(total > own for total in totals.values())
    return all_hold(
        (claim.node in totals, "it would not fit"), (claim.place == place, f"{place}"), (claim.total == own, f"{own}")
    )


async def _played(world: World, claim: c.Played) -> str:
    """The subject's node is drained: the pods that were there are scheduled again, in the order of the what-if."""
    home = world.base.nodes.get(SUBJECT, "")
    order = list(claim.went)
    lasting = {key_of(pod) for pod in world.case.pods if is_lasting(pod)}
    there = sorted(key for key, node in world.base.nodes.items() if node == home and key not in lasting)
    drained = tuple(sorted(there, key=lambda key: order.index(key) if key in order else len(order)))
    after = await world.again(drain=home, drained=drained)
    ended = {key: after.nodes.get(key, "") for key in drained}
    placed = {key: node for key, node in ended.items() if node}
    gone = [key for key, node in world.base.nodes.items() if node and key not in after.nodes]
    return all_hold(
        (claim.placed == len(placed), f"{len(placed)} find a node"),
        (claim.pending == len(drained) - len(placed), f"{len(drained) - len(placed)} wait"),
        (claim.evicted == len(gone), f"{gone} leave"),
        (claim.nodes == len(set(placed.values())), f"on {set(placed.values())}"),
        (len(drained) > 1 or claim.evicted > 0 or claim.went == ended, f"they go to {ended}"),
    )


BOARD_EXECUTORS: dict[type, Callable[[World, Any], Awaitable[str]]] = {
    c.PendingTogether: _pending_together,
    c.NodeStands: _node_stands,
    c.NodeAnswers: _node_answers,
    c.Played: _played,
}
