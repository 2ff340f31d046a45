"""A workload file at work: its items and node events on the timeline of a simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from random import Random

from bayplan.api.decode import InputError
from bayplan.api.pod import Pod
from bayplan.api.pod_defaults import UnknownPriorityClass, apply_pod_defaults
from bayplan.api.suggest import closest
from bayplan.api.workload import PriorityClass
from bayplan.sim.engine.controllers import Deployment, Job, PodTemplate
from bayplan.sim.engine.node_events import NodeFailures, drain, remove_node, uncordon
from bayplan.sim.engine.simulation import Simulation
from bayplan.sim.engine.timeline import Action
from bayplan.sim.workloads.arrivals import Arrival, arrival_times
from bayplan.sim.workloads.loading import decode_template, nodes_of
from bayplan.sim.workloads.model import Item, NodeEvent, WorkloadFile
from bayplan.sim.workloads.units import Durations, seconds_of

__all__ = ["FileWorkload"]


class FileWorkload:
    """What a workload file describes. Each item draws from a generator of its own, seeded by the run and its name."""

    def __init__(self, given: WorkloadFile, *, source: Path) -> None:
        self._given = given
        self._source = source

    def check_nodes(self, names: Iterable[str]) -> None:
        """Raise InputError for an event of a node that is neither in the cluster nor added, and for a new node that is
        there already. `names` are the cluster's.

        A simulation goes on without: what `plan capacity` tries has fewer nodes at times.
        """
        known = list(names)
        removed = {event.remove.node for event in self._given.nodes if event.remove is not None}
        for place, event in enumerate(self._given.nodes):
            added = [node.name for node in nodes_of(event.add, source="")] if event.add is not None else []
            twice = set(known).intersection(added) - removed
            if twice:
                self._refuse(place, f"there is a node `{min(twice)}` already; give the new nodes another name")
            known += added
        for place, event in enumerate(self._given.nodes):
            prefix = event.fail.nodes if event.fail is not None else ""
            if not any(name.startswith(prefix) for name in known):
                self._refuse(place, f"there is no node whose name begins with `{prefix}`")
            for change in (event.drain, event.remove):
                if change is not None and change.node not in known:
                    like = closest(change.node, known)
                    meant = f"; did you mean `{like}`?" if like else ""
                    self._refuse(place, f"there is no node `{change.node}`{meant}")

    def _refuse(self, place: int, problem: str) -> None:
        raise InputError(problem, source=str(self._source), where=f"nodes[{place}]")

    def begin(self, simulation: Simulation) -> None:
        if simulation.options.until_seconds is None:
            self._check_end()
        for item in self._given.items:
            simulation.timeline.follow(self._happenings(simulation, item))
        for event in self._given.nodes:
            self._plan(simulation, event)

    def _check_end(self) -> None:
        """Refuse what goes on for ever."""
        endless = [
            f"pods of the Deployment `{item.name}` are replaced again and again"
            for item in self._given.items
            if item.kind == "Deployment" and (item.duration is not None or item.rollout is not None)
        ]
        endless += ["nodes fail again and again" for event in self._given.nodes if event.fail is not None]
        if endless:
            what = f"the workload never ends: {endless[0]}\nhint: state `until` of the workload, or --until"
            raise InputError(what, source=str(self._source))

    def _happenings(self, simulation: Simulation, item: Item) -> Iterator[tuple[float, Action]]:
        # Names are unique in a namespace.
        own = item.name if item.namespace == "default" else f"{item.namespace}/{item.name}"
        dice = Random(f"{simulation.options.seed}/{own}")
        pod = self._pod(simulation, item)
        template = PodTemplate(pod=pod, draw_seconds=_drawing(item.duration, dice))
        arrivals = arrival_times(
            item.arrivals,
            Random(f"{simulation.options.seed}/arrivals/{own}"),
            start=simulation.options.start,
            end=simulation.options.until_seconds,
            folder=self._source.parent,
        )
        is_single = item.kind == "Deployment" and item.arrivals.count in (None, 1)
        for number, (time, duration) in enumerate(self._placed(item, arrivals)):
            name = item.name if is_single else f"{item.name}-{number}"
            yield time, partial(self._create, simulation, item, template, name, duration)

    def _placed(self, item: Item, arrivals: Iterator[Arrival]) -> Iterator[Arrival]:
        """The arrivals; what is wrong with them is said of the item."""
        try:
            yield from arrivals
        except InputError as error:
            if error.source:
                raise
            raise InputError(error.message, source=str(self._source), where=f"item `{item.name}`") from None

    def _pod(self, simulation: Simulation, item: Item) -> Pod:
        """The pod of an item with the defaults and the priority that the API server gives it."""
        classes = [each for each in simulation.world.objects.values() if isinstance(each, PriorityClass)]
        try:
            return apply_pod_defaults(decode_template(item, source=str(self._source)), priority_classes=classes)
        except UnknownPriorityClass as error:
            raise InputError(f"item `{item.name}`: {error}", source=str(self._source)) from error

    def _create(
        self, simulation: Simulation, item: Item, template: PodTemplate, name: str, duration: float | None
    ) -> None:
        if item.kind == "Deployment":
            self._deploy(simulation, item, template, name)
        elif item.kind == "Job":
            job = Job(
                simulation,
                name,
                template,
                completions=item.completions,
                parallelism=item.parallelism,
                backoff_limit=item.backoff_limit,
                duration_seconds=duration,
            )
            job.start()
        else:
            pod: Pod = template.make(simulation, name)
            simulation.submit(pod, duration_seconds=template.draw_seconds() if duration is None else duration)

    def _deploy(self, simulation: Simulation, item: Item, template: PodTemplate, name: str) -> None:
        surge = item.rollout.surge if item.rollout is not None else 1
        deployment = Deployment(simulation, name, template, replicas=item.replicas, surge=surge)
        deployment.start()
        if item.rollout is not None:
            _repeat(simulation, seconds_of(item.rollout.every), deployment.roll_out)

    def _plan(self, simulation: Simulation, event: NodeEvent) -> None:
        at = simulation.timeline.at
        if event.fail is not None:
            failures = NodeFailures(
                simulation,
                every_seconds=seconds_of(event.fail.every),
                repaired_seconds=seconds_of(event.fail.repaired_after),
                pods_lost_seconds=seconds_of(event.fail.pods_lost_after),
                prefix=event.fail.nodes,
            )
            at(0.0, failures.start)
        elif event.drain is not None:
            time = seconds_of(event.drain.at)
            at(time, partial(drain, simulation, event.drain.node))
            if event.drain.back_after is not None:
                at(time + seconds_of(event.drain.back_after), partial(uncordon, simulation, event.drain.node))
        elif event.add is not None:
            for node in nodes_of(event.add, source=str(self._source)):
                at(seconds_of(event.add.at), partial(simulation.world.put, node))
        elif event.remove is not None:
            at(seconds_of(event.remove.at), partial(remove_node, simulation, event.remove.node))


def _drawing(given: Durations | str | None, dice: Random) -> Callable[[], float | None]:
    if isinstance(given, Durations):
        return partial(given.draw, dice)
    fixed = None if given is None else seconds_of(given)
    return lambda: fixed


def _repeat(simulation: Simulation, seconds: float, action: Action) -> None:
    """Do something again and again, for as long as the simulation is to last."""
    until = simulation.options.until_seconds

    def again() -> None:
        action()
        plan()

    def plan() -> None:
        time = simulation.now + seconds
        if until is not None and time <= until:
            simulation.timeline.at(time, again)

    plan()
