"""One extender: requests and answers of kube-scheduler's extender protocol.

The protocol's field names are those of Go structs, read without regard to case. Every answer is checked: names that the
request did not have, victims that do not exist and scores that are no numbers are errors. `send` transports a request;
`bayplan.loop.decide_with_extenders` decides when one is made.

Unlike kube-scheduler, an extender that answers with whole nodes cannot change what we know of them: only their names
count, and scoring goes on with the pods that are really there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bayplan.api.node import Node
from bayplan.cluster.node_info import NodeInfo
from bayplan.cluster.pod_info import PodInfo
from bayplan.preemption.candidates import Candidate, importance

__all__ = ["Extender", "ExtenderError", "Filtered", "Send"]

Send = Callable[[str, object], Awaitable[Any]]
"""(verb, question) -> the decoded answer; raises when there is none."""

_SCALE = 10
"""An extender scores from 0 to 10, plugins from 0 to 100."""
_LARGEST_SCORE = 1 << 40


class ExtenderError(Exception):
    """An extender answered with an error, or with something that the protocol does not allow."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """What is left of the nodes, and why the others are not."""

    kept: tuple[str, ...]
    failed: Mapping[str, str]
    unresolvable: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Extender:
    name: str
    """Its address, as it is called in messages."""
    send: Send = field(repr=False)
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    is_ignorable: bool = False
    is_node_cache_capable: bool = False
    managed_resources: frozenset[str] = frozenset()

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether the pod asks for, or is limited in, a resource that this extender manages."""
        if not self.managed_resources:
            return True
        spec = pod.shape.spec
        for container in (*(spec.containers or ()), *(spec.init_containers or ())):
            resources = container.resources
            if resources is None:
                continue
            if not self.managed_resources.isdisjoint((*(resources.requests or ()), *(resources.limits or ()))):
                return True
        return False

    # filter

    async def filter(self, pod: PodInfo, nodes: Mapping[str, Node]) -> Filtered:
        answer = _table(await self.send(self.filter_verb, self._about(pod, nodes)))
        self._refuse_error(answer)
        kept = self._kept(answer)
        for name in kept:
            if name not in nodes:
                what = (
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found in the input node list'
                )
                raise ExtenderError(what)
        return Filtered(
            tuple(kept), _texts(answer.get("failednodes")), _texts(answer.get("failedandunresolvablenodes"))
        )

    def _kept(self, answer: Mapping[str, Any]) -> list[str]:
        names = answer.get("nodenames")
        if self.is_node_cache_capable and names is not None:
            return _names(names)
        if answer.get("nodes") is None:
            return []
        items = _table(answer["nodes"]).get("items") or []
        return [_name(_table(_table(item).get("metadata")).get("name")) for item in _sequence(items)]

    def _about(self, pod: PodInfo, nodes: Mapping[str, Node]) -> dict[str, object]:
        question: dict[str, object] = {"Pod": msgspec.to_builtins(pod.pod), "Nodes": None, "NodeNames": None}
        if self.is_node_cache_capable:
            question["NodeNames"] = list(nodes)
        else:
            question["Nodes"] = {"metadata": {}, "items": [msgspec.to_builtins(node) for node in nodes.values()]}
        return question

    # prioritize

    async def prioritize(self, pod: PodInfo, nodes: Mapping[str, Node]) -> dict[str, int]:
        """What to add to the total of each node."""
        answer = await self.send(self.prioritize_verb, self._about(pod, nodes))
        added: dict[str, int] = {}
        for entry in _sequence(answer or []):
            fields = _table(entry)
            amount = _number(fields.get("score", 0)) * self.weight * _SCALE
            if abs(amount) > _LARGEST_SCORE:
                raise ExtenderError(f'extender "{self.name}" gave a score out of range: {fields.get("score")}')
            added[_name(fields.get("host"))] = amount
        return added

    # preempt

    async def preempt(
        self, pod: PodInfo, candidates: Mapping[str, Candidate], node_of: Callable[[str], NodeInfo | None]
    ) -> dict[str, Candidate]:
        """The candidates that the extender agrees with, with the victims it names."""
        answer = _table(await self.send(self.preempt_verb, self._about_victims(pod, candidates)))
        agreed: dict[str, Candidate] = {}
        for name, victims in _table(answer.get("nodenametometavictims"), keep_case=True).items():
            info = node_of(name)
            if info is None:
                raise ExtenderError(f'extender "{self.name}" claims to preempt on node "{name}", which is not there')
            fields = _table(victims)
            pods = [self._victim(info, _name(_table(p).get("uid"))) for p in _sequence(fields.get("pods") or [])]
            violations = _number(fields.get("numpdbviolations", 0))
            agreed[name] = Candidate(info.row, name, tuple(sorted(pods, key=importance)), violations)
        return agreed

    def _victim(self, info: NodeInfo, uid: str) -> PodInfo:
        pod = info.pods.get(uid)
        if pod is None:
            what = f"extender: {self.name} claims to preempt pod (UID: {uid}) on node: {info.name}"
            raise ExtenderError(f"{what}, but the pod is not found on that node")
        return pod

    def _about_victims(self, pod: PodInfo, candidates: Mapping[str, Candidate]) -> dict[str, object]:
        by_node = {
            name: {
                "Pods": [self._shown(victim) for victim in candidate.victims],
                "NumPDBViolations": candidate.violations,
            }
            for name, candidate in candidates.items()
        }
        field_name = "NodeNameToMetaVictims" if self.is_node_cache_capable else "NodeNameToVictims"
        return {"Pod": msgspec.to_builtins(pod.pod), field_name: by_node}

    def _shown(self, victim: PodInfo) -> object:
        return {"UID": victim.uid} if self.is_node_cache_capable else msgspec.to_builtins(victim.pod)

    # bind

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        question = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node_name}
        self._refuse_error(_table(await self.send(self.bind_verb, question)))

    def _refuse_error(self, answer: Mapping[str, Any]) -> None:
        if answer.get("error"):
            raise ExtenderError(str(answer["error"]))


# Reading answers


def _table(given: Any, *, keep_case: bool = False) -> dict[str, Any]:
    """A JSON object by lower-case names; null is an empty one."""
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise ExtenderError(f"an object was expected, not {type(given).__name__}")
    return dict(given) if keep_case else {str(name).lower(): value for name, value in given.items()}


def _sequence(given: Any) -> Sequence[Any]:
    if not isinstance(given, list):
        raise ExtenderError(f"a list was expected, not {type(given).__name__}")
    return given


def _name(given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ExtenderError(f"a name was expected, not {given!r:.100}")
    return given


def _names(given: Any) -> list[str]:
    return [_name(each) for each in _sequence(given)]


def _number(given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool):
        raise ExtenderError(f"a whole number was expected, not {given!r:.100}")
    return given


def _texts(given: Any) -> dict[str, str]:
    return {name: str(message) for name, message in _table(given, keep_case=True).items()}
