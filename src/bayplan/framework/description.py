"""What is known of a plugin before it has run: what it extends, and how long its answers are kept and why not longer.

`bayplan plugin show` prints it, and the plugins page has it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from bayplan.framework.cautions import Caution, state_cautions
from bayplan.framework.normalize import Normalizer
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines, extends
from bayplan.framework.promises import Depends
from bayplan.framework.reading import Reading, reading_of, stated_depends

__all__ = ["KeptAnswers", "PluginDescription", "describe", "kept_answers"]

_KEPT = {
    Depends.NODE: "kept until the node's own object changes",
    Depends.USE: "computed again for a node when its object changes, or a pod comes or goes there",
    Depends.ROW: "computed again for a node when its object or a pod on it changes",
    Depends.NODES: "computed again for all nodes when any node object changes",
    Depends.CLUSTER: "computed for every node in every decision",
}


_STATED, _DERIVED, _UNKNOWN = "stated by the author", "derived from the code", "not all of the code is understood"
_WITHDRAWN = "no longer as derived from the code"


class KeptAnswers(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    """How long the answers of `filter` or `score` are kept."""

    method: str
    depends: str
    """NODE, USE, ROW, NODES or CLUSTER."""
    origin: str = ""
    """Whether the author states it or it is derived from the code."""
    kept: str = ""
    """What `depends` means, in words."""
    reasons: list[str] = []
    """What keeps it from less: expressions with their lines."""
    advice: str = ""
    """What the author could change."""


class PluginDescription(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    name: str
    summary: str = ""
    points: list[str] = []
    arguments: list[str] = []
    """Each as it would be declared: `zone: str = "a"`."""
    watches: list[str] = []
    answers: list[KeptAnswers] = []
    cautions: list[str] = []


def describe(plugin: Plugin | type[Plugin], cautions: Iterable[Caution] = ()) -> PluginDescription:
    """`cautions` come on top of those that the class itself gives rise to."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    return PluginDescription(
        name=cls.name,
        summary=(inspect.getdoc(cls) or "").split("\n\n")[0].replace("\n", " ") if cls.__doc__ else "",
        points=[point.config_name for point in ExtensionPoint if extends(cls, point)],
        arguments=[_argument(field) for field in msgspec.structs.fields(cls.Args)],
        watches=[kind.__name__ for kind in cls.watches],
        answers=kept_answers(plugin),
        cautions=list(
            dict.fromkeys([*state_cautions(cls), *(each.text for each in cautions if each.plugin == cls.name)])
        ),
    )


def _argument(field: Any) -> str:
    kind = field.type.__name__ if inspect.isclass(field.type) else str(field.type)
    if field.required:
        return f"{field.encode_name}: {kind}"
    default = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"{field.encode_name}: {kind} = {default!r}"


def kept_answers(plugin: Plugin | type[Plugin], in_use: Mapping[str, Depends] | None = None) -> list[KeptAnswers]:
    """For `filter` and for `score`, where the plugin has them in either form. `in_use` is what a scheduler that runs
    goes by at present, which is more than was derived once that turned out not to hold."""
    return [
        _kept(plugin, method, (in_use or {}).get(method, Depends.NODE))
        for method in ("filter", "score")
        if defines(plugin, method) or defines(plugin, f"{method}_nodes")
    ]


def _kept(plugin: Plugin | type[Plugin], method: str, in_use: Depends) -> KeptAnswers:
    stated, found = stated_depends(plugin, method), reading_of(plugin, method)
    depends = found.depends if stated is None else stated
    if stated is None and in_use > depends:
        return KeptAnswers(
            method=method,
            depends=in_use.name,
            origin=_WITHDRAWN,
            kept=_KEPT[in_use],
            reasons=["it failed for some node, or something changed what its code reads while the scheduler ran"],
            advice="the log says which; a reload reads the code again",
        )
    advice = _advice(method, found, depends) if stated is None else _advice_on_stated(method, found, stated)
    return KeptAnswers(
        method=method if defines(plugin, method) else f"{method}_nodes",
        depends=depends.name,
        origin=_STATED if stated is not None else _UNKNOWN if found.obstacle else _DERIVED,
        kept=_KEPT[depends],
        reasons=_reasons(found) if stated is None or _is_exceeded(found, stated) else [],
        advice=advice or _advice_on_normalizing(plugin, method, depends),
    )


def _reasons(found: Reading) -> list[str]:
    if found.obstacle:
        where = f"{PurePath(found.file).name}:{found.line}: " if found.line else ""
        return [f"{where}{found.obstacle}"]
    return [f"line {part.line}: `{part.expression}`" for part in found.parts if part.depends is found.depends]


def _advice(method: str, found: Reading, depends: Depends) -> str:
    if found.obstacle:
        own = (
            f"state `{method}_depends` if the answer follows from less than everything; the contract suite of "
            "bayplan.testing checks it"
        )
        return f"{found.advice}; or {own}" if found.advice else own
    if depends is Depends.ROW:
        return "`len(node.pods)`, `node.requested_of(...)` and `node.free(...)` cost less than a look at each pod"
    return ""


def _is_exceeded(found: Reading, stated: Depends) -> bool:
    return not found.obstacle and found.depends > stated


def _advice_on_stated(method: str, found: Reading, stated: Depends) -> str:
    if _is_exceeded(found, stated):
        return f"the code depends on {found.depends.name}, more than is stated: kept answers go stale; state that"
    if not found.obstacle and found.depends < stated:
        return f"the code depends on {found.depends.name} alone: leave the statement out, and that is used"
    return ""


def _advice_on_normalizing(plugin: Plugin | type[Plugin], method: str, depends: Depends) -> str:
    if method != "score" or depends is Depends.CLUSTER or not defines(plugin, "normalize"):
        return ""
    if isinstance(plugin.normalize, Normalizer):
        return ""
    return "`normalize` is a method of your own and runs in every decision; `normalize = normalize_highest` is kept"
