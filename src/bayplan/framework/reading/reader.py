"""Read `filter` or `score` of a plugin.

An author who states no `depends` gets the speed of one who does, as long as every expression of the method is
understood: arguments, what pods of one shape share, parts of the node, attributes that keep their values, pure
builtins, and methods and functions of the same file that are as pure. Anything else is an obstacle, and the answer
counts as depending on everything. The source must compile to the very code that runs, so that an edited file, a
decorator or a replaced method is never misread.
"""

from __future__ import annotations

import ast
from types import CodeType, FunctionType
from typing import NamedTuple

from bayplan.framework.plugin import Plugin
from bayplan.framework.points import defines
from bayplan.framework.promises import Depends, SpeedPromises
from bayplan.framework.reading.attributes import FixedAttributes
from bayplan.framework.reading.body import Body, Kind, shown
from bayplan.framework.reading.premises import Premises
from bayplan.framework.reading.source import ReadingObstacle, source_of

__all__ = ["ReadPart", "Reading", "reading_of", "stated_depends"]

_PROMISES = ("sign", "is_idle", "accepts_all", "score_by_value", "combine_scores")


class ReadPart(NamedTuple):
    """An expression that makes an answer depend on more than the node's own object."""

    depends: Depends
    expression: str
    line: int


class Reading(NamedTuple):
    depends: Depends
    obstacle: str = ""
    """The first thing that was not understood."""
    file: str = ""
    """Where that is; empty for an obstacle that is not an expression."""
    line: int = 0
    advice: str = ""
    """What the author could write instead."""
    parts: tuple[ReadPart, ...] = ()
    premises: Premises | None = None
    """What was taken for fixed; None where nothing was derived."""


def stated_depends(plugin: Plugin | type[Plugin], method: str) -> Depends | None:
    """What the author states about `filter` or `score`; None where nothing is stated."""
    own: Depends | None = plugin.filter_depends if method == "filter" else plugin.score_depends
    if own is not None:
        return own
    cls = plugin if isinstance(plugin, type) else type(plugin)
    bases = cls.__mro__[: cls.__mro__.index(SpeedPromises)]
    return plugin.depends if any("depends" in vars(base) for base in bases) else None


def reading_of(plugin: Plugin | type[Plugin], method: str) -> Reading:
    """What `filter` or `score` of a plugin depends on, by its source. Of a class, values of arguments and of attributes
    that `setup` sets are taken to be constants."""
    try:
        _check_forms(plugin, method)
        reader = _Reader(plugin)
        reader.call(reader.attributes.method(method), [Kind.SELF, Kind.STATE, Kind.POD, Kind.NODE], method)
        reader.attributes.check(reader.finished)
        parts = tuple(dict.fromkeys(reader.parts))
        return Reading(reader.depends, parts=parts, premises=reader.attributes.premises)
    except ReadingObstacle as found:
        return Reading(Depends.CLUSTER, str(found), found.file, found.line, found.advice)
    except RecursionError:
        return Reading(Depends.CLUSTER, f"`{method}` is nested too deeply to be read")


def _check_forms(plugin: Plugin | type[Plugin], method: str) -> None:
    """Only the one-node form by itself is read: other methods may prepare, change or promise something about it."""
    for other in (f"{method}_nodes", f"pre_{method}", *_PROMISES):
        if defines(plugin, other):
            raise ReadingObstacle(f"`{other}` is defined besides `{method}`")


class _Reader:
    """One reading. `depends` grows with what is read."""

    def __init__(self, plugin: Plugin | type[Plugin]) -> None:
        self.attributes = FixedAttributes(plugin)
        self.depends = Depends.NODE
        self.parts: list[ReadPart] = []
        self.finished: set[CodeType] = set()
        """Code that was read from its first line to the last."""
        self._under_way: list[CodeType] = []

    def reads(self, depends: Depends, each: ast.expr) -> None:
        if depends is not Depends.NODE:
            self.parts.append(ReadPart(depends, shown(each), each.lineno))
        self.depends = max(self.depends, depends)

    def call(self, function: FunctionType, kinds: list[Kind], name: str) -> None:
        """Read a function that is called with arguments of these kinds; its answer must be plain data."""
        try:
            self._call(function, kinds, name)
        except ReadingObstacle as found:
            found.file = found.file or function.__code__.co_filename
            raise

    def _call(self, function: FunctionType, kinds: list[Kind], name: str) -> None:
        code = function.__code__
        if code in self._under_way:
            raise ReadingObstacle(f"`{name}` calls itself", advice="write it as a loop")
        tree = source_of(function)
        if not isinstance(tree, ast.FunctionDef):
            raise ReadingObstacle(f"`{name}` is asynchronous", tree.lineno)
        parameters = [*tree.args.posonlyargs, *tree.args.args]
        is_plain = all(isinstance(each, ast.Name) and each.id == "staticmethod" for each in tree.decorator_list)
        if tree.args.vararg or tree.args.kwarg or tree.args.kwonlyargs or tree.args.defaults or not is_plain:
            raise ReadingObstacle(f"`{name}` has decorators, defaults or parameters besides plain ones", tree.lineno)
        if len(parameters) != len(kinds):
            raise ReadingObstacle(f"`{name}` is called with another number of arguments", tree.lineno)
        names = dict(zip((each.arg for each in parameters), kinds, strict=True))
        self._under_way.append(code)
        Body(self, function, names, tree).block(tree.body)
        self._under_way.pop()
        self.finished.add(code)
        self.attributes.premises.function(function)
