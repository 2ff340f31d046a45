"""Pods by the value of a label, waiting ones included: the members of a group, and which of them have a node.

The rest of the cluster knows pods once they count on a node. Plugins that decide about several pods together need the
others too, so they name the label that makes a group; from then on every pod that carries it, of any scheduler, is kept
here. Labels that no plugin named cost nothing. Finished pods do not count.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.cluster.pod_info import PodInfo

__all__ = ["LabelledPods", "PodSet"]


class PodSet:
    """The pods of one namespace with one value of a label. Read-only for plugins."""

    __slots__ = ("placed", "pods")

    def __init__(self) -> None:
        self.pods: dict[str, PodInfo] = {}
        """By uid, as the API server last sent them."""
        self.placed: dict[str, PodInfo] = {}
        """Those that count on a node, as they count there, assumed ones included."""

    def __len__(self) -> int:
        return len(self.pods)


_NO_PODS = PodSet()
_Place = tuple[str, str, str]
"""(label, namespace, value)."""


class LabelledPods:
    def __init__(self) -> None:
        self._labels: set[str] = set()
        self._unfilled: set[str] = set()
        self._sets: dict[_Place, PodSet] = {}
        self._places: dict[str, list[_Place]] = {}
        """By uid, the sets that hold the pod."""
        self._only_placed: set[str] = set()
        """uids of pods that were placed but never put: no `drop` follows for them, so `displace` removes them."""

    def follow(self, label: str) -> None:
        """Keep the pods that carry this label from now on."""
        if label not in self._labels:
            self._labels.add(label)
            self._unfilled.add(label)

    def get(self, label: str, namespace: str, value: str) -> PodSet:
        """The pods of a namespace with this value; changes as pods come and go."""
        return self._sets.get((label, namespace, value), _NO_PODS)

    def sets(self) -> Iterable[PodSet]:
        return self._sets.values()

    @property
    def is_used(self) -> bool:
        """Whether a plugin named a label."""
        return bool(self._labels)

    # Written by the cache alone.

    @property
    def needs_filling(self) -> bool:
        """Whether a label was named after pods had come that may carry it."""
        return bool(self._unfilled)

    def fill(self, pods: Iterable[PodInfo], placed: Iterable[PodInfo]) -> None:
        """Everything that is known now, for labels that were named late."""
        for pod in pods:
            self.put(pod)
        for pod in placed:
            self.place(pod)
        self._unfilled.clear()

    def put(self, pod: PodInfo) -> None:
        """Take over a pod, new or changed; one whose label changed moves."""
        self._only_placed.discard(pod.uid)
        before, now = self._places.get(pod.uid), self._places_of(pod)
        if before is not None and before != now:
            counted = [found for place in before if (found := self._sets[place].placed.get(pod.uid))]
            self.drop(pod.uid)
            for place in now if counted else ():
                self._set(place).placed[pod.uid] = counted[0]
        for place in now:
            self._set(place).pods[pod.uid] = pod
        if now:
            self._places[pod.uid] = now

    def drop(self, uid: str) -> None:
        """The pod is gone."""
        self._only_placed.discard(uid)
        for place in self._places.pop(uid, ()):
            members = self._sets[place]
            members.pods.pop(uid, None)
            members.placed.pop(uid, None)
            if not members.pods:
                del self._sets[place]

    def place(self, pod: PodInfo) -> None:
        """The pod counts on a node from now on."""
        if pod.uid not in self._places:
            self.put(pod)
            if pod.uid in self._places:
                self._only_placed.add(pod.uid)
        for place in self._places.get(pod.uid, ()):
            self._sets[place].placed[pod.uid] = pod

    def displace(self, pod: PodInfo) -> None:
        """The pod counts on no node any more."""
        if pod.uid in self._only_placed:
            self.drop(pod.uid)
        for place in self._places.get(pod.uid, ()):
            self._sets[place].placed.pop(pod.uid, None)

    def _places_of(self, pod: PodInfo) -> list[_Place]:
        labels = pod.labels
        return [(label, pod.namespace, labels[label]) for label in sorted(self._labels) if label in labels]

    def _set(self, place: _Place) -> PodSet:
        found = self._sets.get(place)
        if found is None:
            found = self._sets[place] = PodSet()
        return found
