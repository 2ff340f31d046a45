"""The extension points by the names that configurations, metrics and errors use, derived from the contract."""

from __future__ import annotations

import re
from enum import Enum

from bayplan.framework.plugin import EXTENSION_POINTS, Plugin

__all__ = ["METHODS", "ExtensionPoint", "extends", "parameters_of"]


class ExtensionPoint(Enum):
    """(name in a KubeSchedulerConfiguration, methods any of which makes a plugin extend the point)."""

    PRE_ENQUEUE = ("preEnqueue", ("pre_enqueue",))
    QUEUE_SORT = ("queueSort", ("less", "sort_key"))
    PRE_FILTER = ("preFilter", ("pre_filter",))
    FILTER = ("filter", ("filter_nodes", "filter"))
    POST_FILTER = ("postFilter", ("post_filter",))
    PRE_SCORE = ("preScore", ("pre_score",))
    SCORE = ("score", ("score_nodes", "score"))
    RESERVE = ("reserve", ("reserve", "unreserve"))
    PERMIT = ("permit", ("permit",))
    PRE_BIND = ("preBind", ("pre_bind",))
    BIND = ("bind", ("bind",))
    POST_BIND = ("postBind", ("post_bind",))

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


METHODS: tuple[str, ...] = tuple(EXTENSION_POINTS)


def extends(plugin: type[Plugin] | Plugin, point: ExtensionPoint) -> bool:
    return any(callable(getattr(plugin, method, None)) for method in point.methods)


def parameters_of(method: str) -> tuple[str, ...]:
    """The parameter names that the contract gives a method, without self."""
    signature = EXTENSION_POINTS[method].split("->", 1)[0]
    inside = signature[signature.index("(") + 1 : signature.rindex(")")]
    return tuple(re.split(r"[:\s]", part.strip(), maxsplit=1)[0] for part in inside.split(","))
