"""How many nodes of which template a workload needs: the cheapest mix of templates that a simulation accepts.

A mix is accepted by a condition on the measures of its run. Each template is tried by itself first; then the mixes that
just cost less than the best one so far, until all of them are refused. Two assumptions keep the number of runs small: a
mix with no more nodes of any template than one that was refused is refused too, and so is one that offers less than the
pods use on average. The answer itself was simulated.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import msgspec

from bayplan.api.decode import InputError
from bayplan.api.node import Node
from bayplan.api.pod import Pod
from bayplan.api.requests import to_amounts
from bayplan.app.settings import Settings
from bayplan.plan.bound import Bound, EqualPods, PackedBin, least_price
from bayplan.sim.compare import Condition, RunPlan
from bayplan.sim.engine.simulation import Simulation
from bayplan.sim.engine.world import WorldListener
from bayplan.sim.experiment import RunOutcome
from bayplan.sim.ledger import PRICE
from bayplan.sim.workloads.loading import NodePool, pool_nodes

__all__ = ["ACCEPTED", "CapacityPlan", "CapacityQuestion", "MixTrial", "plan_capacity"]

ACCEPTED = "pods.pending == 0 and wait.p99 <= 60"
_MOST_MIXES = 200_000
_MARGIN = 0.95
"""The mean use of a run is read from samples."""
Mix = tuple[int, ...]


class MixTrial(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One simulation."""

    nodes: dict[str, int]
    """By template."""
    price: float
    """Of these nodes for an hour."""
    is_accepted: bool
    pending: int
    wait_p99: float
    reason: str = ""
    """What most pods that wait at the end wait for."""


class CapacityPlan(msgspec.Struct, kw_only=True, rename="camel"):
    verdict: str
    best: MixTrial | None
    trials: list[MixTrial]
    """The cheapest first."""
    is_complete: bool
    """Whether every mix that could be cheaper was tried or ruled out."""
    bound: Bound | None = None
    """For the pods that run at the busiest moment of the best mix."""


@dataclass(frozen=True, kw_only=True)
class CapacityQuestion:
    plan: RunPlan
    settings: Settings
    pools: Sequence[NodePool]
    """`count` is the most that is considered."""
    accept: Condition
    most_runs: int = 60
    wants_bound: bool = False


def plan_capacity(question: CapacityQuestion, *, step: Callable[[], None] = lambda: None) -> CapacityPlan:
    search = _Search(question, step)
    best = search.cheapest()
    trials = sorted(search.trials.values(), key=lambda trial: (trial.price, sorted(trial.nodes.items())))
    if best is None:
        reason = search.last_reason
        verdict = f"No mix within the counts of the templates is enough. {reason}".strip()
        return CapacityPlan(verdict=verdict, best=None, trials=trials, is_complete=True)
    found = search.trials[best]
    said = " and ".join(f"{count} x {name}" for name, count in found.nodes.items() if count) or "no further node"
    verdict = f"{said} {'are' if sum(best) != 1 else 'is'} enough, for {found.price:,.2f} an hour."
    return CapacityPlan(
        verdict=verdict,
        best=found,
        trials=trials,
        is_complete=search.is_complete,
        bound=search.bound(best) if question.wants_bound else None,
    )


class _Search:
    def __init__(self, question: CapacityQuestion, step: Callable[[], None]) -> None:
        self._question = question
        self._step = step
        pools = question.pools
        self._nodes = [pool_nodes(pool) for pool in pools]
        stated = [_price(nodes) for nodes in self._nodes]
        self._prices = stated if any(stated) else [1.0] * len(pools)
        self._offers = [to_amounts(nodes[0].status.allocatable) if nodes else {} for nodes in self._nodes]
        self._given_nodes = [
            item for item in question.plan.experiment(question.settings).objects if isinstance(item, Node)
        ]
        self._given: Counter[str] = Counter()
        """What the nodes that are there anyway offer."""
        for node in self._given_nodes:
            self._given.update(to_amounts(node.status.allocatable))
        self._mean: dict[str, float] = {}
        """Of each resource, what pods use on average."""
        self._refused: list[Mix] = []
        self._peaks: dict[Mix, _Peak] = {}
        self.trials: dict[Mix, MixTrial] = {}
        self.last_reason = ""
        self.is_complete = True

    def cheapest(self) -> Mix | None:
        count = len(self._nodes)
        none = (0,) * count
        if self._given_nodes and self._accepts(none):
            return none
        alone = [found for place in range(count) if (found := self._least_alone(place)) is not None]
        if not alone:
            everything = tuple(len(nodes) for nodes in self._nodes)
            if count == 1 or not self._accepts(everything):
                return None
            alone = [everything]
        best = min(alone, key=self._price_of)
        while (mix := self._next_cheaper(best)) is not None:
            if len(self.trials) >= self._question.most_runs:
                self.is_complete = False
                break
            if self._accepts(mix):
                best = self._reduced(mix)
        return best

    def _next_cheaper(self, best: Mix) -> Mix | None:
        """The cheapest of the largest mixes below a price; once all of them are refused, so is everything below."""
        found = [mix for mix in self._largest_below(self._price_of(best)) if not self._is_ruled_out(mix)]
        return min(found, key=lambda mix: (self._price_of(mix), mix), default=None)

    def _largest_below(self, price: float) -> Iterator[Mix]:
        """Mixes to which no node can be added at a lower price than this. The cheapest template fills what is left."""
        order = sorted(range(len(self._nodes)), key=lambda place: (-self._prices[place], place))
        ranges = [range(min(len(self._nodes[place]), self._affordable(place, price)) + 1) for place in order[:-1]]
        for number, counts in enumerate(product(*ranges)):
            if number >= _MOST_MIXES:
                self.is_complete = False
                return
            chosen = dict(zip(order, counts, strict=False))
            left = price - math.fsum(count * self._prices[place] for place, count in chosen.items())
            last = order[-1]
            if left > 1e-9:
                chosen[last] = min(len(self._nodes[last]), self._affordable(last, left))
                mix = tuple(chosen[place] for place in range(len(self._nodes)))
                if any(mix) and mix not in self.trials:
                    yield mix

    def _affordable(self, place: int, money: float) -> int:
        """How many nodes of a template cost less than this."""
        price = self._prices[place]
        return len(self._nodes[place]) if not price else max(math.ceil(money / price - 1e-9) - 1, 0)

    def _reduced(self, mix: Mix) -> Mix:
        """Without the nodes that are not needed, of the dearest template first."""
        for place in sorted(range(len(mix)), key=lambda place: (-self._prices[place], place)):
            low, high = -1, mix[place]
            while high - low > 1 and len(self.trials) < self._question.most_runs:
                middle = max((low + high) // 2, 0)
                less = (*mix[:place], middle, *mix[place + 1 :])
                if not any(less) or self._is_ruled_out(less) or not self._accepts(less):
                    low = middle
                else:
                    high = middle
            mix = (*mix[:place], high, *mix[place + 1 :])
        return mix

    def _least_alone(self, place: int) -> Mix | None:
        """The fewest nodes of one template that are enough by themselves."""
        most = len(self._nodes[place])
        if not most or not self._accepts(self._alone(place, most)):
            return None
        peak = self._peaks[self._alone(place, most)]
        low, high = self._needed(place, self._mean, _MARGIN) - 1, most
        guess = self._needed(place, peak.used, 1.0)
        first = [guess, guess - 1, guess + 1]
        while high - low > 1:
            middle = next((number for number in first if low < number < high), (low + high) // 2)
            if self._accepts(self._alone(place, middle)):
                high = middle
            else:
                low = middle
        return self._alone(place, high)

    def _alone(self, place: int, number: int) -> Mix:
        return tuple(number if each == place else 0 for each in range(len(self._nodes)))

    def _needed(self, place: int, use: Mapping[str, float], share: float) -> int:
        """How many nodes offer so much."""
        offers = self._offers[place]
        wanted = [
            (amount - self._given[name]) * share / offers[name] for name, amount in use.items() if offers.get(name)
        ]
        return max(1, math.ceil(max(wanted, default=1.0)))

    def _is_ruled_out(self, mix: Mix) -> bool:
        for name, amount in self._mean.items():
            offered = sum(count * offers.get(name, 0) for count, offers in zip(mix, self._offers, strict=True))
            if offered + self._given[name] < _MARGIN * amount:
                return True
        return any(all(own <= other for own, other in zip(mix, each, strict=True)) for each in self._refused)

    def _price_of(self, mix: Mix) -> float:
        return round(math.fsum(count * price for count, price in zip(mix, self._prices, strict=True)), 6)

    def _accepts(self, mix: Mix) -> bool:
        if mix in self.trials:
            return self.trials[mix].is_accepted
        outcome, peak = self._run(mix)
        accepted = self._question.accept(outcome.measures, outcome.measures)
        reason = next(iter(outcome.reasons), "").partition(". ")[0].rstrip(".")
        self._peaks[mix] = peak
        if not accepted:
            self._refused.append(mix)
            self.last_reason = reason or self.last_reason
        elif not self._mean:
            self._mean = {name: peak.mean(name) for name in peak.used}
        self.trials[mix] = MixTrial(
            nodes={pool.name: count for pool, count in zip(self._question.pools, mix, strict=True)},
            price=self._price_of(mix),
            is_accepted=accepted,
            pending=int(outcome.measures["pods.pending"]),
            wait_p99=outcome.measures["wait.p99"],
            reason=reason,
        )
        self._step()
        return accepted

    def _run(self, mix: Mix) -> tuple[RunOutcome, _Peak]:
        experiment, peak = self._question.plan.experiment(self._question.settings), _Peak()
        for count, nodes in zip(mix, self._nodes, strict=True):
            experiment.objects += nodes[:count]
        outcome = experiment.run(self._question.settings, prepare=peak.attach)
        return outcome, peak

    def bound(self, mix: Mix) -> Bound:
        """The least price of nodes for the pods that ran at the busiest moment."""
        groups = [
            EqualPods(count=count, amounts={**dict(request), "pods": 1})
            for request, count in sorted(self._peaks[mix].running_then.items())
        ]
        needed = max(sum(mix), 1)
        bins = [PackedBin(offers=to_amounts(node.status.allocatable), price=0.0) for node in self._given_nodes]
        bins += [
            PackedBin(offers=self._offers[place], price=self._prices[place], kind=str(place))
            for place, nodes in enumerate(self._nodes)
            for _ in range(min(len(nodes), max(needed, self._needed(place, self._peaks[mix].used, 1.0))))
        ]
        return least_price(groups, bins)


class _Peak(WorldListener):
    """The pods that run at the busiest moment, and what they use on average."""

    def __init__(self) -> None:
        self.used: dict[str, float] = {}
        """At the busiest moment of each resource."""
        self.running_then: Counter[tuple[tuple[str, int], ...]] = Counter()
        self._simulation: Simulation | None = None
        self._now: Counter[str] = Counter()
        self._running: Counter[tuple[tuple[str, int], ...]] = Counter()
        self._requests: dict[str, tuple[tuple[str, int], ...]] = {}
        self._most = -1
        self._areas: defaultdict[str, float] = defaultdict(float)
        self._seconds = 0.0

    def attach(self, simulation: Simulation) -> None:
        self._simulation = simulation
        simulation.listeners.append(self)

    def mean(self, resource: str) -> float:
        return self._areas[resource] / self._seconds if self._seconds else 0.0

    def time_passes(self, now: float, then: float) -> None:
        self._seconds = then
        for name, amount in self._now.items():
            self._areas[name] += amount * (then - now)

    def pod_bound(self, pod: Pod) -> None:
        assert self._simulation is not None  # it calls this
        request = tuple(sorted(self._simulation.core.cache.info(pod).shape.amounts.items()))
        self._requests[pod.uid] = request
        self._running[request] += 1
        for name, amount in request:
            self._now[name] += amount
            self.used[name] = max(self.used.get(name, 0), self._now[name])
        if self._now["cpu"] > self._most:
            self._most = self._now["cpu"]
            self.running_then = +self._running

    def pod_gone(self, pod: Pod, reason: str) -> None:
        request = self._requests.pop(pod.uid, None)
        if request is not None:
            self._running[request] -= 1
            for name, amount in request:
                self._now[name] -= amount


def _price(nodes: Sequence[Node]) -> float:
    """Of one node of a template. Raises InputError for a text that is no price."""
    if not nodes:
        return 0.0
    node = nodes[0]
    text = node.labels.get(PRICE) or node.annotations.get(PRICE) or "0"
    try:
        price = float(text)
    except ValueError:
        price = -1.0
    if not 0.0 <= price < 1e9:
        raise InputError(f"node template: {PRICE} is `{text}`, expected a number of 0 or more")
    return price
