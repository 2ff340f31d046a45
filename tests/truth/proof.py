"""The proof: every claim about a generated case is executed, and falsified ones are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import msgspec

from bayplan.cli.evaluate import evaluate_files
from bayplan.explain.claims import pods as c
from bayplan.explain.claims.wording import sentence
from bayplan.explain.model import PodExplanation, Suggestion
from bayplan.explain.whatif.scenario import Scenario
from tests.truth.causes import CAUSES, generate
from tests.truth.configurations import PATIENT
from tests.truth.device_executors import DEVICE_EXECUTORS
from tests.truth.documents import SUBJECT, Case
from tests.truth.executors import execute
from tests.truth.experiments import Running, running
from tests.truth.falsifying import falsified
from tests.truth.world import World

__all__ = ["Proof", "prove"]

_HELPED_SIMPLY = ("taint", "selector", "port", "gate", "affinity")
"""Causes where one of the things that are tried first helps, so that "nothing helps" is false."""


@dataclass
class Proof:
    """What was found out about some cases."""

    cases: int = 0
    executed: Counter[str] = field(default_factory=Counter)
    experiments: int = 0
    false: list[str] = field(default_factory=list)
    caught: Counter[str] = field(default_factory=Counter)
    """Falsified claims, by type, that their executors saw through."""
    missed: list[str] = field(default_factory=list)
    """Falsified claims that an executor let pass."""
    silent: list[str] = field(default_factory=list)
    """Cases of pods that wait without a suggestion or a sentence why there is none."""

    @property
    def problems(self) -> list[str]:
        return [*self.false, *self.missed, *self.silent]

    def gaps(self) -> list[str]:
        """Types of claims that no case made, or that nobody falsified."""
        names = [kind.__name__ for kind in get_args(c.Claim) if kind not in DEVICE_EXECUTORS]
        silent = [f"no case claims {name}" for name in names if not self.executed[name]]
        return silent + [f"{name} was never falsified" for name in names if not self.caught[name]]

    def add(self, other: Proof) -> None:
        self.cases += other.cases
        self.executed += other.executed
        self.experiments += other.experiments
        self.caught += other.caught
        self.false += other.false
        self.missed += other.missed
        self.silent += other.silent

    def summary(self) -> str:
        claims = ", ".join(f"{count} {name}" for name, count in sorted(self.executed.items()))
        return (
            f"{self.cases} cases of {len(CAUSES)} causes, {self.executed.total()} claims ({claims}), "
            f"{self.experiments} experiments: {len(self.false)} false, {self.caught.total()} falsified and caught, "
            f"{len(self.missed)} not caught, "
            f"{len(self.silent)} without an answer"
        )


async def prove(seed: int, number: int, proof: Proof) -> None:
    case = generate(seed, number)
    claims: list[c.Claim] = [*_evaluated(case)]
    places: list[str] = []

    def ask_early(found: Running) -> None:
        claims.extend(_verdict(found) if case.is_asked_early else [])
        places.append(found.place)

    async with running(case, ask_early=ask_early) as found:
        more, has_answer = await _claims(found)
        claims += more
        world = World(case, found.outcome(), places=[*places, found.place])
    proof.cases += 1
    proof.false += [f"case {number} ({case.cause}): {problem}" for problem in found.malformed]
    if not has_answer:
        proof.silent.append(f"case {number} ({case.cause})")
    for claim in claims:
        await _prove(world, claim, proof)
    helpful = next((claim for claim in claims if isinstance(claim, c.WouldFit)), None)
    if helpful is not None and case.cause in _HELPED_SIMPLY:
        await _catch(world, c.NothingHelps(pod=helpful.pod, reason="nothing"), proof, "pod")
    proof.experiments += world.experiments


async def _prove(world: World, claim: c.Claim, proof: Proof) -> None:
    problem = await execute(world, claim)
    proof.executed[type(claim).__name__] += 1
    if problem:
        proof.false.append(f"{_name(world)}: {sentence(claim)} -- {problem}")
        return
    for field_name, lie in falsified(claim, world.case):
        await _catch(world, lie, proof, field_name)


async def _catch(world: World, lie: c.Claim, proof: Proof, field_name: str) -> None:
    if await execute(world, lie):
        proof.caught[type(lie).__name__] += 1
    else:
        what = f"{type(lie).__name__}.{field_name}"
        proof.missed.append(f"{_name(world)}: passed for true with another {what}: {sentence(lie)} {lie}")


def _name(world: World) -> str:
    return f"case {world.case.number} ({world.case.cause})"


def _verdict(found: Running) -> list[c.Claim]:
    """What is said about the subject at this moment."""
    claim = found.service.explain_pod(SUBJECT).claim
    return [] if claim is None else [claim]


def _evaluated(case: Case) -> Iterator[c.Claim]:
    """What `bayplan evaluate` says about the manifests."""
    if case.plugin or case.cause == "other scheduler":
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        objects = [item for item in case.objects if item["kind"] != "DaemonSet"]  # refused: its pods are what counts
        path.write_bytes(msgspec.json.encode({"kind": "List", "items": [*case.nodes, *objects, *case.pods]}))
        config = Path(folder) / "config.yaml"
        config.write_text(PATIENT)
        yield from (each.claim for each in evaluate_files([str(path)], [SUBJECT], config=str(config)))


async def _claims(found: Running) -> tuple[list[c.Claim], bool]:
    """Everything that is said about the case, and whether a pod that waits got an answer."""
    service = found.service
    subject = service.explain_pod(SUBJECT, decision=await service.ask_extenders(SUBJECT))
    found.check("explain-pod", subject)
    claims: list[c.Claim] = [subject.claim] if subject.claim is not None else []
    has_answer = bool(claims)
    claims += _device_claims(subject)
    if subject.state in ("pending", "gated", "placed"):
        changes = await service.changes(SUBJECT)
        said = [*changes.suggestions, *changes.nearest, *changes.without]
        subject.suggestions, subject.nearest, subject.without = changes.suggestions, changes.nearest, changes.without
        found.check("explain-pod", subject)
        claims += [each.claim for each in said if each.claim is not None]
        has_answer &= bool(changes.suggestions) or changes.schedulable or changes.is_placed
    board = await service.pending(with_change=True)
    found.check("pending", board)
    claims += [each.claim for each in _change(board.change)]
    claims += [cause.claim for cause in board.causes if cause.claim is not None]
    claims += [board.claim] if board.claim is not None and not board.causes else []
    claims += [claim for claim in found.logged if claim.pod == SUBJECT]
    claims += await _boards(found, subject)
    live = {f"{pod.namespace}/{pod.name}" for pod in found.local.live.watching.pods()}
    for record in service.recorder.latest(50):
        for victim in record.victims:
            if victim.pod not in live:
                gone = service.explain_pod(victim.pod)
                claims += [gone.claim] if gone.claim is not None else []
    return claims, has_answer


async def _boards(found: Running, subject: PodExplanation) -> list[c.Claim]:
    """What is said about some nodes, and about draining the subject's; where the default plugins alone decide."""
    service, case = found.service, found.case
    if case.plugin or any("resourceClaims" in pod["spec"] for pod in case.pods):
        return []
    claims: list[c.Claim] = []
    for node in case.nodes[:2]:
        explained = service.explain_node(node["metadata"]["name"])
        found.check("explain-node", explained)
        said = [explained.claim, *(each.claim for each in explained.pending)]
        claims += [claim for claim in said if claim is not None]
    if subject.node:
        answer = await service.whatif(Scenario(drain=[subject.node], pending=False))
        found.check("whatif", answer)
        claims += [answer.claim] if answer.claim is not None else []
    return claims


def _device_claims(subject: PodExplanation) -> list[c.Claim]:
    report = subject.now.devices if subject.now is not None and subject.state == "pending" else None
    nodes = report.nodes if report is not None else []
    about_one = [fact.claim for node in nodes for request in node.requests for fact in request.devices]
    return [*subject.devices, *about_one, *(fact.claim for node in nodes for fact in node.facts)]


def _change(change: Suggestion | None) -> Iterator[Any]:
    if change is not None and change.claim is not None:
        yield change
