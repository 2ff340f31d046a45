"""The extension points by the names that configurations, metrics and errors use, and which of them a plugin extends."""

from __future__ import annotations

import inspect
from enum import Enum
from functools import cache, lru_cache
from typing import Any

from bayplan.framework.plugin import Plugin

__all__ = ["METHODS", "ExtensionPoint", "contract_of", "defines", "extends"]


class ExtensionPoint(Enum):
    """(name in a KubeSchedulerConfiguration, methods any of which makes a plugin extend the point, methods that
    complete them)."""

    PRE_ENQUEUE = ("preEnqueue", ("pre_enqueue",), ())
    QUEUE_SORT = ("queueSort", ("less", "sort_key"), ())
    PRE_FILTER = ("preFilter", ("pre_filter",), ("add_pod", "remove_pod"))
    FILTER = ("filter", ("filter_nodes", "filter"), ())
    POST_FILTER = ("postFilter", ("post_filter",), ())
    PRE_SCORE = ("preScore", ("pre_score",), ())
    SCORE = ("score", ("score_nodes", "score"), ("normalize",))
    RESERVE = ("reserve", ("reserve", "unreserve"), ())
    PERMIT = ("permit", ("permit",), ())
    PRE_BIND = ("preBind", ("pre_bind",), ("pre_bind_pre_flight",))
    BIND = ("bind", ("bind",), ())
    POST_BIND = ("postBind", ("post_bind",), ())

    @property
    def config_name(self) -> str:
        name: str = self.value[0]
        return name

    @property
    def label(self) -> str:
        """The name in metrics and records: PreFilter, Score, ..."""
        return self.config_name[0].upper() + self.config_name[1:]

    @property
    def methods(self) -> tuple[str, ...]:
        methods: tuple[str, ...] = self.value[1]
        return methods

    @property
    def companions(self) -> tuple[str, ...]:
        """Methods that have a use only together with one of `methods`."""
        companions: tuple[str, ...] = self.value[2]
        return companions


METHODS: tuple[str, ...] = tuple(method for point in ExtensionPoint for method in (*point.methods, *point.companions))


def extends(plugin: type[Plugin] | Plugin, point: ExtensionPoint) -> bool:
    """Whether a plugin has a method of the point."""
    return any(defines(plugin, method) for method in point.methods)


def defines(plugin: type[Plugin] | Plugin, method: str) -> bool:
    """Whether a plugin has a method (or a promise) of its own, rather than the declaration on `Plugin`."""
    if isinstance(plugin, type):
        cls: Any = plugin
        return _class_defines(cls, method)
    cls = type(plugin)
    return _class_defines(cls, method) or callable(vars(plugin).get(method))


@lru_cache(maxsize=4096)
def _class_defines(cls: Any, method: str) -> bool:
    found = getattr(cls, method, None)
    return callable(found) and found is not getattr(Plugin, method)


@cache
def contract_of(method: str) -> inspect.Signature:
    """The signature that the contract declares for a method, without self."""
    signature = inspect.signature(getattr(Plugin, method))
    return signature.replace(parameters=list(signature.parameters.values())[1:])
