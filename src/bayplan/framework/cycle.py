"""State that crosses the phases of one scheduling cycle, under typed keys.

SEATS = StateKey[int]("MyPlugin/seats")     # owned by the module that writes it
state.put(SEATS, 3)
state[SEATS]                                # 3, and a type checker knows it is an int
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from bayplan.framework.times import PluginTimes

__all__ = ["CycleState", "StateKey"]

T = TypeVar("T")
_NO_PLUGINS: frozenset[str] = frozenset()


class StateKey(Generic[T]):
    """A name for a value in the cycle state. Identity is the object, the name is for messages."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class CycleState:
    """One per pod and attempt. Values that a dry run changes offer `clone()`; others are shared by copies."""

    __slots__ = ("_values", "pods_to_activate", "reached", "skip_filter", "skip_score", "times")

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        # Sets that many cycles share: to add a name, put another set in place.
        self.skip_filter = _NO_PLUGINS
        self.skip_score = _NO_PLUGINS
        self.reached = _NO_PLUGINS
        """Plugins whose PreFilter was reached in this cycle."""
        self.pods_to_activate: dict[str, Any] = {}
        """Pods to put into the active queue at the end of the cycle, by `namespace/name`."""
        self.times: PluginTimes | None = None
        """How long plugins took, where this cycle is one of the sample that is measured."""

    def put(self, key: StateKey[T], value: T) -> None:
        self._values[key] = value

    def get(self, key: StateKey[T]) -> T | None:
        return self._values.get(key)

    def __getitem__(self, key: StateKey[T]) -> T:
        value: T = self._values[key]
        return value

    def __contains__(self, key: StateKey[Any]) -> bool:
        return key in self._values

    def clone(self) -> CycleState:
        """A state that a dry run may change."""
        copy = CycleState()
        copy._values = {key: _cloned(value) for key, value in self._values.items()}
        copy.skip_filter, copy.skip_score, copy.reached = self.skip_filter, self.skip_score, self.reached
        copy.pods_to_activate = dict(self.pods_to_activate)
        return copy


def _cloned(value: Any) -> Any:
    clone = getattr(value, "clone", None)
    return clone() if callable(clone) else value
