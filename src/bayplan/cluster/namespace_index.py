"""Namespaces by their labels: which ones a selector of an affinity term means.

A cluster may have ten thousand namespaces, and a pod a thousand terms with a selector each. So a selector is not
compared with every namespace: those it may mean are looked up by one of its requirements, and where these are many the
answer is a rule that is applied when a namespace is asked about, not a set.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bayplan.api.selectors import Requirement, Selector
from bayplan.api.workload import Namespace
from bayplan.cluster.objects import Objects

__all__ = ["NamespaceIndex", "SelectedNamespaces"]

_MOST_LISTED = 256
_NO_LABELS: Mapping[str, str] = {}


class SelectedNamespaces:
    """The namespaces that are named or that a selector means, as of one version of the namespaces."""

    __slots__ = ("_hash", "_index", "names", "selector", "version")

    def __init__(self, index: NamespaceIndex, names: frozenset[str], selector: Selector) -> None:
        self._index = index
        self.names, self.selector, self.version = names, selector, index.version
        self._hash = hash((names, selector, self.version))

    @property
    def is_current(self) -> bool:
        """Whether no namespace changed since."""
        return self.version == self._index.version

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.names or self.selector.matches(self._index.labels(namespace))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SelectedNamespaces) or self._hash != other._hash or self._index is not other._index:
            return False
        return (self.names, self.selector, self.version) == (other.names, other.selector, other.version)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"<namespaces {sorted(self.names)} and those of {self.selector}>"


class NamespaceIndex:
    """Follows the namespaces of the cluster."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._names: dict[str, dict[str, set[str]]] = {}
        """By key and value of a label."""
        self._with_key: dict[str, int] = {}
        objects.on_change(Namespace, self._changed)

    @property
    def version(self) -> int:
        return self._objects.version(Namespace)

    def labels(self, name: str) -> Mapping[str, str]:
        """Empty for a namespace that is not known."""
        found = self._objects.get(Namespace, name)
        return found.labels if found is not None else _NO_LABELS

    def select(self, names: frozenset[str], selector: Selector) -> frozenset[str] | SelectedNamespaces:
        """Those that are named, and those that exist and that the selector means. It must refuse empty labels."""
        if selector.is_nothing:
            return names
        wanted = [each for each in selector.requirements if each.operator in ("In", "Exists")]
        narrowest = min(wanted, key=self._reach)
        if self._reach(narrowest) > _MOST_LISTED:
            return SelectedNamespaces(self, names, selector)
        by_value = self._names.get(narrowest.key, {})
        values = narrowest.values if narrowest.operator == "In" else by_value.keys()
        found = {name for value in values for name in by_value.get(value, ())}
        return names | {name for name in found if selector.matches(self.labels(name))}

    def _reach(self, requirement: Requirement) -> int:
        """How many namespaces, and values, a requirement leads to."""
        if requirement.operator == "Exists":
            return self._with_key.get(requirement.key, 0)
        by_value = self._names.get(requirement.key)
        if by_value is None:
            return 0
        if len(requirement.values) > _MOST_LISTED:
            return self._with_key[requirement.key]
        return sum(len(by_value.get(value, ())) for value in requirement.values)

    def _changed(self, old: Any, new: Any) -> None:
        if old is not None:
            self._drop(old)
        if new is not None:
            self._note(new)

    def _note(self, item: Namespace) -> None:
        for key, value in item.labels.items():
            self._names.setdefault(key, {}).setdefault(value, set()).add(item.name)
            self._with_key[key] = self._with_key.get(key, 0) + 1

    def _drop(self, item: Namespace) -> None:
        for key, value in item.labels.items():
            by_value = self._names[key]
            by_value[value].discard(item.name)
            if not by_value[value]:
                del by_value[value]
            self._with_key[key] -= 1
            if not self._with_key[key]:
                del self._names[key], self._with_key[key]
