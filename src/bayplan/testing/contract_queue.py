"""The promise of a plugin that orders the queue: an order, and the same each time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

from bayplan.framework.queued import QueuedPod
from bayplan.testing.contract_trial import PluginTrial
from bayplan.testing.odd import ODD_PODS

__all__ = ["queue_order_is_strict"]

_SOME = 8
"""Of these, every three are compared with each other."""


def queue_order_is_strict(trial: PluginTrial) -> list[str]:
    """Any two pods can be compared, none goes before itself, no two before each other, and order carries over."""
    if not trial.has("less", "sort_key"):
        return []
    waiting = _waiting(trial)
    problems: list[str] = []
    if trial.has("sort_key"):
        problems += _key_problems(trial.plugin.sort_key, waiting)
    if trial.has("less"):
        problems += _less_problems(trial.plugin.less, waiting[:_SOME])
    return problems


def _waiting(trial: PluginTrial) -> list[QueuedPod]:
    """Pods that came at different times and at the same, tried before and not."""
    pods = [*trial.pods(), *(make() for make in ODD_PODS.values())]
    queued = [QueuedPod(trial.one.info(pod), float(number // 2)) for number, pod in enumerate(pods)]
    for each in queued[::3]:
        each.initial_attempt_timestamp = 1.0
    return queued


def _key_problems(sort_key: Callable[[QueuedPod], Any], waiting: Sequence[QueuedPod]) -> list[str]:
    try:
        keys = [sort_key(each) for each in waiting]
        sorted(keys)
    except Exception as error:
        return [f"sort_key: {type(error).__name__}: {error}"]
    unlike = [each.key for each, key in zip(waiting, keys, strict=True) if sort_key(each) != key]
    return [f"sort_key answers differently when asked again about `{key}`" for key in unlike]


def _less_problems(less: Callable[[QueuedPod, QueuedPod], bool], waiting: Sequence[QueuedPod]) -> list[str]:
    try:
        problems = [f"less: `{each.key}` goes before itself" for each in waiting if less(each, each)]
        for one, other in permutations(waiting, 2):
            if less(one, other) and less(other, one):
                problems.append(f"less: `{one.key}` and `{other.key}` go before each other")
        for first, second, third in permutations(waiting, 3):
            if less(first, second) and less(second, third) and not less(first, third):
                problems.append(f"less: `{first.key}` goes before `{second.key}` and that before `{third.key}`, not it")
    except Exception as error:
        return [f"less: {type(error).__name__}: {error}"]
    return problems
