"""Executors: for each type of claim, what must be done and looked at to say that it is true.

An executor answers with what is wrong, or with nothing. Experiments are kept by their change, so that a claim that was
falsified on purpose is held against the same observation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from bayplan.api.quantity import milli_value, value
from bayplan.explain import claims as c
from bayplan.explain.cases import evaluate_case
from bayplan.explain.edits import Edit
from tests.truth.device_executors import DEVICE_EXECUTORS
from tests.truth.documents import SUBJECT, Case, JsonObject
from tests.truth.experiments import Change, Outcome, key_of
from tests.truth.world import World, all_hold

__all__ = ["EXECUTORS", "execute"]


async def execute(world: World, claim: c.Claim) -> str:
    """What is wrong with the claim; empty if nothing is."""
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
        (record.total == claim.total, f"{record.total} points"),
        (record.ties == claim.ties, f"{record.ties} ties"),
        (claim.runner_up == (second.node if second is not None else ""), "another runner-up"),
        (second is None or claim.ahead == record.total - second.total, "another lead"),
    )


def _left(world: World, victims: Sequence[str], outcome: Outcome) -> str:
    """Whether these pods and no others had to leave."""
    ran = {key_of(pod) for pod in world.case.pods if pod["spec"].get("nodeName")}
    gone = sorted(key for key in ran if key not in outcome.nodes)
    return "" if sorted(victims) == gone else f"{gone} left"


def _scores(world: World, *, without: Sequence[str] = ()) -> dict[str, dict[str, int]] | None:
    """By node, the points by plugin and in total, from the documents; None where another plugin takes part."""
    result = _evaluated(world.case, without=without)
    return None if result is None else result["scores"]


def _points(scores: dict[str, dict[str, int]] | None, claim: c.Chosen | c.GoesTo) -> str:
    """What is wrong with points, ties and lead."""
    if scores is None:
        return ""
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
    )


async def _unplaced(world: World, claim: c.Unplaced) -> str:
    """While it was there, it waited for what is said."""
    before = await world.after(Change())
    return all_hold(
        (claim.pod not in world.base.nodes, "it is there"),
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
        (claim.message in world.base.messages.get(claim.pod, ""), f"its condition says {world.base.messages}"),
        (without.nodes.get(claim.pod) == claim.node, f"without {claim.plugin}: {without.nodes.get(claim.pod)}"),
    )


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
    ) or _points(_scores(world), claim)


async def _fits_nowhere(world: World, claim: c.FitsNowhere) -> str:
    refused = _refused_offline(world.case)
    counted = None if refused is None else refused.get((claim.plugin, claim.reason))
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (claim.nodes == len(world.case.nodes), "another number of nodes"),
        (refused is None or not claim.plugin or counted == claim.refused, f"refused: {refused}"),
        (not claim.resource or _largest(world, claim.resource) == claim.largest, "another largest node"),
        (not claim.resource or _asked(world, claim.resource) == claim.asked, "it asks another amount"),
    )


def _evaluated(case: Case, *, without: Sequence[str] = ()) -> JsonObject | None:
    """The case as the reference cases are evaluated, from its documents; None where another plugin takes part."""
    if case.plugin or any("resourceClaims" in pod["spec"] for pod in case.pods):
        return None
    others = [pod for pod in case.pods if key_of(pod) not in (SUBJECT, *without) and pod["spec"].get("nodeName")]
    subject = next(pod for pod in case.pods if key_of(pod) == SUBJECT)
    result = evaluate_case({"objects": [*case.nodes, *case.objects, *others], "pod": subject})
    assert isinstance(result, dict)  # a single pod
    return result


def _refused_offline(case: Case) -> Counter[tuple[str, str]] | None:
    """Nodes by the plugin that refuses them and its reasons."""
    result = _evaluated(case)
    if result is None:
        return None
    if "prefilter" in result:
        entry = result["prefilter"]
        return Counter({(entry["plugin"], ", ".join(entry["reasons"])): len(case.nodes)})
    return Counter((entry["plugin"], ", ".join(entry["reasons"])) for entry in result["nodes"].values())


async def _would_preempt(world: World, claim: c.WouldPreempt) -> str:
    """Its turn comes: these pods leave, no others, and the pod gets their node."""
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    alike = _alike(world, claim)
    if claim.ties > 1:
        return alike
    return all_hold(
        (bool(claim.victims), "no victims"),
        (claim.ties == 1, "ties"),
        (all(ran.get(victim) == claim.node for victim in claim.victims), "victims that ran elsewhere"),
        (world.base.nodes.get(claim.pod) == claim.node, f"it is on {world.base.nodes.get(claim.pod)!r}"),
        (claim.violations == _violations(world.case, claim.victims), "other budgets"),
    ) or _left(world, claim.victims, world.base)


def _alike(world: World, claim: c.WouldPreempt) -> str:
    """Where several nodes cost the same: it gets one of them, and as many pods leave."""
    record = world.base.record
    preemption = record.preemption if record is not None else None
    ran = {key_of(pod): pod["spec"].get("nodeName") for pod in world.case.pods}
    left = [key for key, node in ran.items() if node and key not in world.base.nodes]
    return all_hold(
        (preemption is not None and preemption.ties == claim.ties, "another number of nodes that cost the same"),
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


async def _held_back(world: World, claim: c.HeldBack) -> str:
    gates = tuple(gate["name"] for gate in world.subject["spec"].get("schedulingGates", ()))
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (world.first is None, "it was tried"),
        (claim.gates == gates, f"its gates are {gates}"),
        (claim.plugin == "SchedulingGates", "another plugin"),
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
    )


async def _no_scheduler(world: World, claim: c.NoScheduler) -> str:
    return all_hold(
        (not world.base.nodes.get(claim.pod), "it has a node"),
        (world.subject["spec"].get("schedulerName") == claim.scheduler, "it names another scheduler"),
    )


# If


async def _would_fit(world: World, claim: c.WouldFit) -> str:
    after = await world.after(Change(edits=claim.edits))
    node, record = after.nodes.get(claim.pod, ""), after.record
    if not node or record is None:
        return f"it stays pending: {record.message if record is not None else ''}"
    if not claim.node:
        return ""
    return all_hold(
        (record.feasible == claim.nodes, f"{record.feasible} nodes fit"), (node == claim.node, f"on {node}")
    )


async def _would_move(world: World, claim: c.WouldMove) -> str:
    if claim.home != world.base.nodes.get(claim.pod):
        return f"it is on {world.base.nodes.get(claim.pod)}"
    weights = ((claim.plugin, claim.weight),) if claim.plugin else ()
    after = await world.again(drain=claim.drain, weights=weights)
    node = after.nodes.get(claim.pod, "")
    if not claim.node:
        return all_hold((not node, f"it goes to {node}"))
    if claim.ties > 1:
        preemption = after.record.preemption if after.record is not None else None
        return all_hold(
            (bool(node), "it stays pending"),
            (node != claim.home, "it stays"),
            (any(n["metadata"]["name"] == claim.node for n in world.case.nodes), "no such node"),
            (preemption is not None and preemption.ties == claim.ties, "another number of nodes that cost the same"),
        )
    return all_hold(
        (bool(node), "it stays pending"),
        (node == claim.node, f"it goes to {node}"),
        (all(victim not in after.nodes for victim in claim.victims), "a victim is still there"),
    )


async def _without(world: World, claim: c.Without) -> str:
    after = await world.after(Change(without_plugin=claim.plugin))
    feasible = after.record.feasible if after.record is not None else -1
    return all_hold((feasible == claim.nodes, f"{feasible} nodes fit"))


async def _lacks(world: World, claim: c.Lacks) -> str:
    node = next((n for n in world.case.nodes if n["metadata"]["name"] == claim.node), None)
    if node is None:
        return "no such node"
    problems = []
    for resource, amount in claim.amounts.items():
        offered = _amount(node["status"]["allocatable"].get(resource, "0"), resource)
        used = sum(
            _requested(pod, resource) for pod in world.case.pods if world.base.nodes.get(key_of(pod)) == claim.node
        )
        short = _requested(world.subject, resource) - (offered - used)
        if short != _amount(amount, resource):
            problems.append(f"{resource}: {short}")
    return "; ".join(problems)


async def _too_large(world: World, claim: c.TooLarge) -> str:
    return all_hold(
        (_largest(world, claim.resource) == claim.largest, f"the largest has {_largest(world, claim.resource)!r}"),
        (_asked(world, claim.resource) == claim.asked, "it asks another amount"),
    )


async def _frees(world: World, claim: c.Frees) -> str:
    after = await world.after(Change(edits=claim.edits))
    waiting = [key for key, node in world.base.nodes.items() if not node]
    freed = sum(1 for key in waiting if after.nodes.get(key))
    return all_hold(
        (freed == claim.count if not claim.is_limited else freed >= claim.count, f"{freed} find a node"),
        (claim.of <= len(waiting), "more than wait"),
    )


async def _nothing_helps(world: World, claim: c.NothingHelps) -> str:
    """Each thing that an operator would try first, by itself: the pod still waits."""
    if world.base.nodes.get(claim.pod):
        return "it runs"
    for what, edit in _simple_changes(world):
        after = await world.after(Change(edits=(edit,)))
        if after.nodes.get(claim.pod):
            return f"it runs {what}"
    return all_hold((bool(claim.reason), "no reason is given"))


def _simple_changes(world: World) -> Iterator[tuple[str, Edit]]:
    spec = world.subject["spec"]
    wants = "nodeSelector", "affinity", "topologySpreadConstraints", "schedulingGates", "volumes"
    for name in (name for name in wants if spec.get(name)):
        patch: JsonObject = {name: None}
        if name == "volumes":
            patch = {name: [{"$patch": "delete", "name": volume["name"]} for volume in spec[name]]}
        yield f"without {name}", Edit(kind="patchPod", name=SUBJECT, patch={"spec": patch})
    everything = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    yield "if it tolerates everything", Edit(kind="patchPod", name=SUBJECT, patch=everything)
    little = {"name": "main", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
    yield "if it asks little", Edit(kind="patchPod", name=SUBJECT, patch={"spec": {"containers": [little]}})
    ports = {"name": "main", "ports": [{"$patch": "replace"}]}
    yield "without ports", Edit(kind="patchPod", name=SUBJECT, patch={"spec": {"containers": [ports]}})
    for node in world.case.nodes:
        patch = {"spec": {"taints": None, "unschedulable": None}}
        yield f"on {node['metadata']['name']}", Edit(kind="patchNode", name=node["metadata"]["name"], patch=patch)
    large = {**world.case.nodes[0], "metadata": {"name": "new", "labels": {"kubernetes.io/hostname": "new"}}}
    yield "on a new node", Edit(kind="addNode", name="new", object=large)


def _amount(text: str, resource: str) -> int:
    return milli_value(text) if resource == "cpu" else value(text)


def _requested(pod: JsonObject, resource: str) -> int:
    if resource == "pods":
        return 1
    resources = pod["spec"]["containers"][0].get("resources", {})
    found = resources.get("requests", {}).get(resource) or resources.get("limits", {}).get(resource) or "0"
    return _amount(str(found), resource)


def _words(amount: int, resource: str) -> str:
    if resource == "cpu":
        return f"{amount // 1000 if amount % 1000 == 0 else f'{amount}m'} CPU"
    return f"{amount} {resource}"


def _largest(world: World, resource: str) -> str:
    most = max(_amount(n["status"]["allocatable"].get(resource, "0"), resource) for n in world.case.nodes)
    return _words(most, resource) if most else ""


def _asked(world: World, resource: str) -> str:
    return _words(_requested(world.subject, resource), resource)


EXECUTORS: dict[type, Callable[[World, Any], Awaitable[str]]] = {
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
    **DEVICE_EXECUTORS,
}
