"""The proof: every claim about a generated case is executed, and falsified ones are caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bayplan.explain import claims as c
from bayplan.explain import device_claims as d
from bayplan.explain.model import PodExplanation, Suggestion
from bayplan.explain.wording import sentence
from tests.truth.cases import CAUSES, generate
from tests.truth.documents import SUBJECT, Case
from tests.truth.executors import execute
from tests.truth.experiments import Running, running
from tests.truth.world import World

__all__ = ["Proof", "falsified", "prove"]


@dataclass
class Proof:
    """What was found out about some cases."""

    cases: int = 0
    executed: Counter[str] = field(default_factory=Counter)
    experiments: int = 0
    false: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    """Falsified claims that an executor let pass."""
    silent: list[str] = field(default_factory=list)
    """Cases of pods that wait without a suggestion or a sentence why there is none."""

    @property
    def problems(self) -> list[str]:
        return [*self.false, *self.missed, *self.silent]

    def add(self, other: Proof) -> None:
        self.cases += other.cases
        self.executed += other.executed
        self.experiments += other.experiments
        self.false += other.false
        self.missed += other.missed
        self.silent += other.silent

    def summary(self) -> str:
        claims = ", ".join(f"{count} {name}" for name, count in sorted(self.executed.items()))
        return (
            f"{self.cases} cases of {len(CAUSES)} causes, {self.executed.total()} claims ({claims}), "
            f"{self.experiments} experiments: {len(self.false)} false, {len(self.missed)} falsified and not caught, "
            f"{len(self.silent)} without an answer"
        )


async def prove(seed: int, number: int, proof: Proof) -> None:
    case = generate(seed, number)
    async with running(case) as found:
        claims, has_answer = await _claims(found)
        world = World(case, found.outcome())
    proof.cases += 1
    if not has_answer:
        proof.silent.append(f"case {number} ({case.cause})")
    for claim in claims:
        what = f"case {number} ({case.cause}): {sentence(claim)}"
        problem = await execute(world, claim)
        proof.executed[type(claim).__name__] += 1
        if problem:
            proof.false.append(f"{what} -- {problem}")
            continue
        for lie in falsified(claim, case):
            if not await execute(world, lie):
                proof.missed.append(f"{what} as: {sentence(lie)}")
    proof.experiments += world.experiments


async def _claims(found: Running) -> tuple[list[c.Claim], bool]:
    """Everything that is said about the case, and whether a pod that waits got an answer."""
    service = found.service
    subject = service.explain_pod(SUBJECT)
    claims: list[c.Claim] = [subject.claim] if subject.claim is not None else []
    has_answer = bool(claims)
    claims += _device_claims(subject)
    if subject.state in ("pending", "gated", "placed") and not isinstance(subject.claim, c.NoScheduler):
        changes = await service.changes(SUBJECT)
        said = [*changes.suggestions, *changes.nearest, *changes.without]
        claims += [each.claim for each in said if each.claim is not None]
        has_answer &= bool(changes.suggestions) or changes.schedulable or changes.is_placed
    board = await service.pending(with_change=True)
    claims += [each.claim for each in _change(board.change)]
    live = {f"{pod.namespace}/{pod.name}" for pod in found.local.live.watching.pods()}
    for record in service.recorder.latest(50):
        for victim in record.victims:
            if victim.pod not in live:
                gone = service.explain_pod(victim.pod)
                claims += [gone.claim] if gone.claim is not None else []
    return claims, has_answer


def _device_claims(subject: PodExplanation) -> list[c.Claim]:
    report = subject.now.devices if subject.now is not None and subject.state == "pending" else None
    nodes = report.nodes if report is not None else []
    about_one = [fact.claim for node in nodes for request in node.requests for fact in request.devices]
    return [*subject.devices, *about_one, *(fact.claim for node in nodes for fact in node.facts)]


def _change(change: Suggestion | None) -> Iterator[Any]:
    if change is not None and change.claim is not None:
        yield change


_OF_MANY = d.LacksDevices | d.NoDevices | d.DevicesSplit | d.DevicesContested | d.ClaimUnreachable | d.PoolUnused
"""Claims that may be as true of another node."""


def falsified(claim: c.Claim, case: Case) -> Iterator[c.Claim]:
    """The claim with another node, another number, another victim."""
    names = [node["metadata"]["name"] for node in case.nodes]
    change = msgspec.structs.replace
    node = getattr(claim, "node", "")
    if node and not isinstance(claim, c.GoesTo | c.WouldPreempt | c.Lacks | _OF_MANY):
        yield change(claim, node=next((name for name in names if name != node), "elsewhere"))  # type: ignore[type-var]
    for number in ("count", "ahead", *(() if case.plugin else ("refused",))):
        if getattr(claim, number, 0):
            yield change(claim, **{number: getattr(claim, number) + 1})  # type: ignore[type-var]
    if isinstance(claim, c.Without | c.FitsNowhere | c.Chosen) or (isinstance(claim, c.WouldFit) and claim.node):
        yield change(claim, nodes=claim.nodes + 1)
    if isinstance(claim, c.Chosen | c.WouldPreempt) and claim.victims:
        yield change(claim, victims=("default/somebody-else",))
    if isinstance(claim, c.Preempted):
        yield change(claim, by="default/somebody-else")
    if isinstance(claim, c.TooLarge):
        yield change(claim, asked="1 CPU")
    if isinstance(claim, c.Lacks):
        yield change(claim, amounts=dict.fromkeys(claim.amounts, "7777"))
    if isinstance(claim, d.DeviceTaken):
        yield change(claim, users=("default/somebody-else",))
    if isinstance(claim, d.DeviceTainted):
        yield change(claim, taint="another=one:NoSchedule")
    if isinstance(claim, d.DeviceRefused):
        yield change(claim, values=dict.fromkeys(claim.values, "another"))
    if isinstance(claim, d.DeviceShort):
        yield change(claim, needs="7777")
    if isinstance(claim, d.LacksDevices):
        yield change(claim, usable=claim.usable + 1)
    if isinstance(claim, d.DevicesSplit):
        yield change(claim, values={"another": 1})
    if isinstance(claim, d.HasDevices):
        yield change(claim, devices={"another": ("d/p/n",)})
    if isinstance(claim, c.HeldBack):
        yield change(claim, gates=("another",))
