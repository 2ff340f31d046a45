"""Executors: for each type of claim, what must be done and looked at to say that it is true.

An executor answers with what is wrong, or with nothing. Experiments are kept by their change, so that a claim that was
falsified on purpose is held against the same observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, get_args

from bayplan.explain.claims import pods as c
from bayplan.explain.claims.base import ClaimAboutPod
from bayplan.explain.claims.devices import DEVICES
from bayplan.loop.points import EXTENDER
from bayplan.loop.record import NOMINATION, DecisionRecord, ScoredNode
from tests.truth.amounts import asked_in_words, largest_in_words
from tests.truth.board_executors import BOARD_EXECUTORS
from tests.truth.changes import Change, key_of
from tests.truth.device_executors import DEVICE_EXECUTORS, unknown_names
from tests.truth.documents import SUBJECT, Case, JsonObject
from tests.truth.experiments import Outcome
from tests.truth.suppositions import SUPPOSITIONS
from tests.truth.world import World, all_hold, evaluated

__all__ = ["EXECUTORS", "execute"]


async def execute(world: World, claim: c.Claim) -> str:
    """What is wrong with the claim; empty if nothing is."""
    if isinstance(claim, ClaimAboutPod) and claim.pod not in {key_of(pod) for pod in world.case.pods}:
        return "there is no such pod"
    if isinstance(claim, get_args(DEVICES)):
        unknown = unknown_names(world, claim)
        if unknown:
            return unknown
    # Answers about what would be if say that extenders were not asked.
    world.asks_extenders = not (world.case.plugin.startswith(EXTENDER) and isinstance(claim, get_args(c.IF)))
    return await EXECUTORS[type(claim)](world, claim)


# Then


async def _chosen(world: World, claim: c.Chosen) -> str:
    """Scheduled once more, it comes to the same; points and nodes are those of an evaluation of the documents."""
    once_more = await world.after(Change())
    return "; ".join(
        filter(
            None,
            (
                _choice(world, claim, world.base),
                _choice(world, claim, once_more),
                _left(world, claim.victims, once_more),
                _points(_scores(world, without=claim.victims), claim) if claim.by == "points" else "",
            ),
        )
    )


def _choice(world: World, claim: c.Chosen, outcome: Outcome) -> str:
    record, node = outcome.record, outcome.nodes.get(claim.pod, "")
    if record is None:
        return "there is no record"
    second = record.runner_up
    return all_hold(
        (node == claim.node, f"it is on {node!r}"),
        (len(world.case.nodes) == claim.nodes, "another number of nodes"),
        (claim.by == record.chosen_by, f"it was chosen by {record.chosen_by}"),
        (record.feasible == claim.feasible, f"{record.feasible} nodes fit"),
        (_narrows_down(record), f"the funnel {record.funnel} does not end with {record.feasible} nodes"),
        (record.scored == claim.scored, f"{record.scored} were scored, or all"),
        (record.total == claim.total, f"{record.total} points"),
        (record.ties == claim.ties, f"{record.ties} ties"),
        (claim.runner_up == (second.node if second is not None else ""), "another runner-up"),
        (second is None or claim.ahead == record.total - second.total, "another lead"),
        (not claim.plugin or _gains(record).get(claim.plugin, 0) == max(_gains(record).values()), "decides nothing"),
        (claim.is_bound, "it is bound"),
        (not claim.is_past, "it is there"),
    )


def _narrows_down(record: DecisionRecord) -> bool:
    """Whether the nodes that filters rejected are all but those that fitted; no filter ran for a nominated node."""
    left = record.nodes - sum(step.rejected for step in record.funnel)
    return left == record.feasible or record.chosen_by == NOMINATION


def _gains(record: DecisionRecord) -> dict[str, int]:
    """By plugin, how many points more than the runner-up it gave."""
    others = record.runner_up.points if record.runner_up is not None else {}
    second = {name: points.weighted for name, points in others.items()}
    return {name: points.weighted - second.get(name, 0) for name, points in record.points.items()} or {"": 0}


def _left(world: World, victims: Sequence[str], outcome: Outcome) -> str:
    """Whether these pods and no others had to leave for the subject."""
    gone = _gone(world, outcome)
    return "" if sorted(victims) == gone else f"{gone} left"


def _gone(world: World, outcome: Outcome) -> list[str]:
    """Pods that ran and do not any more; where others preempt too, those of the node that the subject has."""
    home = outcome.nodes.get(SUBJECT)
    has_rivals = any(key_of(pod) != SUBJECT and "priorityClassName" in pod["spec"] for pod in _waiting(world))
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    left = [key for key, node in ran.items() if node and key not in outcome.nodes]
    return sorted(key for key in left if not has_rivals or ran[key] == home)


def _waiting(world: World) -> list[JsonObject]:
    return [pod for pod in world.case.pods if not pod["spec"].get("nodeName")]


def _scores(world: World, *, without: Sequence[str] = ()) -> dict[str, dict[str, int]] | None:
    """By node, the points by plugin and in total, from the documents; None where another plugin takes part."""
    result = evaluated(world.case, without=without)
    return None if result is None else result["scores"]


def _points(scores: dict[str, dict[str, int]] | None, claim: c.Chosen | c.GoesTo) -> str:
    """What is wrong with points, ties and lead."""
    if scores is None:
        return ""
    if claim.node not in scores:
        return f"{sorted(scores)} fit"
    best = max(entry["total"] for entry in scores.values())
    first, second = scores[claim.node], scores.get(claim.runner_up, {})
    others = [entry["total"] for name, entry in scores.items() if name != claim.node]
    gains = {name: first.get(name, 0) - second.get(name, 0) for name in {*first, *second} - {"total"}}
    return all_hold(
        (first["total"] == claim.total == best, f"{first['total']} points of {best}"),
        (len(scores) == claim.feasible, f"{len(scores)} nodes fit"),
        (claim.ties == [e["total"] for e in scores.values()].count(best), "another number of ties"),
        (bool(claim.runner_up) == bool(others), "a runner-up"),
        (not others or second.get("total") == max(others), f"the runner-up has {max(others, default=0)}"),
        (not others or claim.ahead == best - max(others), "another lead"),
        (not claim.plugin or gains.get(claim.plugin) == max(gains.values()), f"{gains}"),
    )


async def _preempted(world: World, claim: c.Preempted) -> str:
    victim = next((pod for pod in world.case.pods if key_of(pod) == claim.pod), None)
    return all_hold(
        (victim is not None and victim["spec"].get("nodeName") == claim.node, "it ran elsewhere"),
        (claim.pod not in world.base.nodes, "it is still there"),
        (world.base.nodes.get(claim.by) == claim.node, "the preemptor is elsewhere"),
        (world.base.times[0] <= claim.time <= world.base.times[1], f"between {world.base.times}"),
    )


async def _left_since(world: World, claim: c.Left) -> str:
    """While it was there, it was on that node."""
    before = await world.after(Change())
    return all_hold(
        (claim.pod not in world.base.nodes, "it is there"),
        (before.nodes.get(claim.pod) == claim.node, f"it was on {before.nodes.get(claim.pod)!r}"),
    )


async def _unplaced(world: World, claim: c.Unplaced) -> str:
    """While it was there, it waited for what is said."""
    before = await world.after(Change())
    return all_hold(
        (claim.is_gone and claim.pod not in world.base.nodes, "it is there, or gone"),
        (before.nodes.get(claim.pod) == "", "it had a node"),
        (before.messages.get(claim.pod, "").startswith(claim.message), f"it said {before.messages}"),
    )


async def _refused_later(world: World, claim: c.RefusedLater) -> str:
    """Without the plugin that refused it, the pod is bound to the node."""
    record = world.base.record
    without = await world.again(without_plugin=claim.plugin)
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (record is not None and (record.stopped_at, record.stopped_by) == (claim.point, claim.plugin), "elsewhere"),
        (record is not None and claim.has_failed == (record.outcome == "error"), "refused, or failed"),
        (claim.message in world.base.messages.get(claim.pod, ""), f"its condition says {world.base.messages}"),
        (without.nodes.get(claim.pod) == claim.node, f"without {claim.plugin}: {without.nodes.get(claim.pod)}"),
    )


# The log


async def _picked(world: World, claim: c.Picked) -> str:
    """One of its attempts chose that node, for that reason; it fits there by the documents too."""
    told = [(each.node, each.feasible, each.scored, each.total, each.ties) for each in world.base.attempts]
    by = {each.node: each.chosen_by == "nomination" for each in world.base.attempts}
    scores = _scores(world) if not any(each.preemption for each in world.base.attempts) else None
    return all_hold(
        ((claim.node, claim.feasible, claim.scored, claim.total, claim.ties) in told, f"its attempts chose {told}"),
        (by.get(claim.node) == claim.is_nominated, "nominated, or not"),
        (scores is None or claim.node in scores, f"{sorted(scores or ())} fit"),
        (scores is None or len(scores) == claim.feasible, f"{len(scores or ())} nodes fit"),
    )


async def _failed(world: World, claim: c.Failed) -> str:
    told = [each.message for each in world.base.attempts if not each.node]
    said = world.base.messages.get(claim.pod, "")
    is_last = len(told) == 1 and world.base.nodes.get(claim.pod) == ""
    return all_hold(
        (claim.message in told, f"its attempts were told {told}"),
        (not is_last or said.startswith(claim.message), f"its condition says {said}"),
    )


async def _preempts(world: World, claim: c.Preempts) -> str:
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    ended = await world.let_go() if _is_kept_waiting(world) else world.base
    left = [key for key, node in ran.items() if node == claim.node and key not in ended.nodes]
    return all_hold(
        (all(ran.get(victim) == claim.node for victim in claim.victims), "victims that ran elsewhere"),
        (sorted(left) == sorted(claim.victims), f"{left} left"),
        (ended.nodes.get(claim.pod) == claim.node, "it got another node"),
    )


def _is_kept_waiting(world: World) -> bool:
    """Whether the subject has preempted pods that do not leave."""
    made = [each.preemption for each in world.base.attempts if each.preemption is not None]
    there = [victim.pod in world.base.nodes for each in made for victim in each.victims]
    return any(there) and not world.base.nodes.get(SUBJECT)


async def _put_on_hold(world: World, claim: c.PutOnHold) -> str:
    waits = [(each.node, each.permit.plugins) for each in world.base.attempts if each.permit is not None]
    told = [(node, tuple(plugins), min(plugins.values())) for node, plugins in waits]
    return all_hold(((claim.node, claim.plugins, claim.seconds) in told, f"its attempts were held: {told}"))


# Now


async def _goes_to(world: World, claim: c.GoesTo) -> str:
    """Its turn comes, and it gets the node."""
    record = world.first
    if record is None:
        return "it was never tried"
    return all_hold(
        (record.node == claim.node, f"it went to {record.node!r}"),
        (record.nodes == claim.nodes, f"{record.nodes} nodes"),
        (record.feasible == claim.feasible, f"{record.feasible} nodes fit"),
        (not record.is_scored or record.total == claim.total, f"{record.total} points"),
        (not claim.sample, "all nodes are scored"),
        (claim.is_offline or claim.place in world.places, f"it was in {world.places}"),
        (not claim.plugin or claim.plugin in world.base.plugins, "there is no such plugin"),
        (not record.is_scored or record.ties == claim.ties, f"{record.ties} ties"),
        (not record.is_scored or (record.runner_up or NOBODY).node == claim.runner_up, "another runner-up"),
        (not record.is_scored or _lead(record) == claim.ahead, "another lead"),
    ) or _points(_scores(world), claim)


NOBODY = ScoredNode(node="", total=0, points={})


def _lead(record: DecisionRecord) -> int:
    return record.total - record.runner_up.total if record.runner_up is not None else 0


async def _fits_nowhere(world: World, claim: c.FitsNowhere) -> str:
    """As the documents are evaluated, or as it was refused when it was tried."""
    refused = _refused_offline(world.case) or _refused_then(world)
    key = (claim.plugin, _sorted(claim.reason))
    if refused.get(key) != claim.refused:
        # Others have found a node since it was tried.
        now = world.base.result if world.case.plugin else evaluated(world.case, nodes=world.base.nodes)
        refused = _refused_in(now, world.case)
    said = f"{world.base.messages.get(claim.pod, '')} {world.first.message if world.first is not None else ''}"
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (claim.nodes == len(world.case.nodes), "another number of nodes"),
        (not claim.refused or refused.get(key) == claim.refused, f"refused: {refused}"),
        (bool(claim.refused) or (claim.reason or claim.message) in said, f"it was told {said}"),
        (not claim.resource or largest_in_words(world, claim.resource) == claim.largest, "another largest node"),
        (not claim.resource or asked_in_words(world, claim.resource) == claim.asked, "it asks another amount"),
    )


def _sorted(reason: str) -> str:
    return ", ".join(sorted(reason.split(", ")))


def _refused_then(world: World) -> Counter[tuple[str, str]]:
    record = world.first
    groups = record.refused if record is not None else ()
    found: Counter[tuple[str, str]] = Counter()
    for group in groups:
        # Nodes that lack the same for now and for ever are groups of their own.
        found[group.plugin, _sorted(", ".join(group.reasons))] += group.count
    return found


def _refused_offline(case: Case) -> Counter[tuple[str, str]]:
    """Nodes by the plugin that refuses them and its reasons."""
    return _refused_in(evaluated(case), case)


def _refused_in(result: JsonObject | None, case: Case) -> Counter[tuple[str, str]]:
    if result is None:
        return Counter()
    if "prefilter" in result:
        entry = result["prefilter"]
        return Counter({(entry["plugin"], _sorted(", ".join(entry["reasons"]))): len(case.nodes)})
    return Counter((entry["plugin"], _sorted(", ".join(entry["reasons"]))) for entry in result["nodes"].values())


async def _would_preempt(world: World, claim: c.WouldPreempt) -> str:
    """Its turn comes: these pods leave, no others, and the pod gets their node."""
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    ended = await world.let_go() if _is_kept_waiting(world) else world.base
    alike = _alike(world, claim, ended)
    if claim.ties > 1:
        return alike
    return all_hold(
        (bool(claim.victims), "no victims"),
        (_ties(world) == claim.ties, "another number of nodes that cost the same"),
        (all(ran.get(victim) == claim.node for victim in claim.victims), "victims that ran elsewhere"),
        (ended.nodes.get(claim.pod) == claim.node, f"it is on {ended.nodes.get(claim.pod)!r}"),
        (claim.violations == _violations(world.case, claim.victims), "other budgets"),
    ) or _left(world, claim.victims, ended)


def _ties(world: World) -> int:
    preemption = world.base.record.preemption if world.base.record is not None else None
    return preemption.ties if preemption is not None else 1


def _alike(world: World, claim: c.WouldPreempt, ended: Outcome) -> str:
    """Where several nodes cost the same: it gets one of them, and as many pods leave."""
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    left = _gone(world, ended)
    return all_hold(
        (_ties(world) == claim.ties, "another number of nodes that cost the same"),
        (all(ran.get(victim) == claim.node for victim in claim.victims), "victims that ran elsewhere"),
        (len(left) == len(claim.victims), f"{left} left"),
        (claim.violations == _violations(world.case, claim.victims), "other budgets"),
    )


def _violations(case: Case, victims: Sequence[str]) -> int:
    """Victims whose leaving no budget allows any more."""
    labels = {key_of(pod): pod["metadata"]["labels"] for pod in case.pods}
    count = 0
    for budget in (item for item in case.objects if item["kind"] == "PodDisruptionBudget"):
        wanted = budget["spec"]["selector"]["matchLabels"].items()
        covered = sum(1 for victim in victims if wanted <= labels.get(victim, {}).items())
        count += max(covered - budget["status"]["disruptionsAllowed"], 0)
    return count


async def _awaits_victims(world: World, claim: c.AwaitsVictims) -> str:
    """It has no node as long as they are there, and gets theirs when nothing keeps them any more."""
    made = next((each.preemption for each in world.base.attempts if each.preemption is not None), None)
    if made is None:
        return "it has not preempted"
    there = sorted(victim.pod for victim in made.victims if world.base.nodes.get(victim.pod) == made.node)
    after = await world.let_go()
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (made.node == claim.node, f"it preempted on {made.node}"),
        (sorted(claim.victims) == there, f"{there} are there"),
        (after.nodes.get(claim.pod) == claim.node, f"it gets {after.nodes.get(claim.pod)!r} when they leave"),
        (not set(claim.victims) & set(after.nodes), "they do not leave"),
    )


async def _held_back(world: World, claim: c.HeldBack) -> str:
    gates = tuple(gate["name"] for gate in world.subject["spec"].get("schedulingGates", ()))
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (world.first is None, "it was tried"),
        (claim.gates == gates, f"its gates are {gates}"),
        (claim.plugin == "SchedulingGates", "another plugin"),
        (bool(gates) or not claim.message, "no gates"),
    )


async def _held_at_permit(world: World, claim: c.HeldAtPermit) -> str:
    """Without the plugins that hold it, the pod is bound to the node."""
    record = world.base.record
    held = record.permit if record is not None else None
    limits = [held.plugins.get(plugin, 0.0) for plugin in claim.plugins] if held is not None else []
    without = await world.again(without_plugin=next(iter(claim.plugins), ""))
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it is bound"),
        (held is not None and tuple(held.plugins) == claim.plugins and not held.result, "others hold it"),
        (0 < claim.seconds_left <= min(limits, default=0.0), f"for {limits} at most"),
        (without.nodes.get(claim.pod) == claim.node, f"let go, it is bound to {without.nodes.get(claim.pod)!r}"),
        (claim.reason == _group_words(world.case), f"it waits for {_group_words(world.case)}"),
    )


def _group_words(case: Case) -> str:
    """What Coscheduling waits for, from the group's document."""
    group = next(item for item in case.objects if item["kind"] == "PodGroup")
    return f"pod group {key_of(group)} needs {group['spec']['minMember']} pods that have a node"


async def _no_scheduler(world: World, claim: c.NoScheduler) -> str:
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (world.subject["spec"].get("schedulerName") == claim.scheduler, "it names another scheduler"),
        (claim.known == world.base.profiles, f"there are {world.base.profiles}"),
    )


EXECUTORS: dict[type, Callable[[World, Any], Awaitable[str]]] = {
    c.Chosen: _chosen,
    c.Preempted: _preempted,
    c.Left: _left_since,
    c.Unplaced: _unplaced,
    c.RefusedLater: _refused_later,
    c.Picked: _picked,
    c.Failed: _failed,
    c.Preempts: _preempts,
    c.PutOnHold: _put_on_hold,
    c.GoesTo: _goes_to,
    c.FitsNowhere: _fits_nowhere,
    c.WouldPreempt: _would_preempt,
    c.AwaitsVictims: _awaits_victims,
    c.HeldBack: _held_back,
    c.HeldAtPermit: _held_at_permit,
    c.NoScheduler: _no_scheduler,
    **BOARD_EXECUTORS,
    **SUPPOSITIONS,
    **DEVICE_EXECUTORS,
}
