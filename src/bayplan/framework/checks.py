"""Whether a class is a plugin, asked once when it registers.

A method that is misspelt, or has the wrong parameters, would otherwise never be called, or fail in the middle of a
scheduling cycle. Every problem of a class is found in one go and says what to write instead. What a method *does* is
not looked at here; the contract suite of the test kit does that.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bayplan.api.suggest import closest
from bayplan.framework.args import PluginArgs
from bayplan.framework.depends import Depends
from bayplan.framework.errors import PluginError
from bayplan.framework.plugin import EXTENSION_POINTS, Permission, Plugin
from bayplan.framework.points import METHODS, ExtensionPoint, extends, parameters_of

__all__ = ["check_plugin", "problems_of"]

_HOOKS = {"setup": (), "sign": ("pod",), "is_relevant": ("pod",), "events_to_register": ()}
"""Methods of the base class that a plugin may override."""

_GO_NAMES = {
    "Name": "the class attribute `name = ...`",
    "NormalizeScore": "`normalize(self, state, pod, scores)`",
    "ScoreExtensions": "`normalize(self, state, pod, scores)`",
    "PreFilterExtensions": "`add_pod` and `remove_pod`",
    "SignPod": "`sign(self, pod)`",
    "EventsToRegister": "`events_to_register(self)`",
    "New": "`setup(self)`",
}
_ALIKE = 0.86
_NAME = re.compile(r"[^\s*/]+")


def check_plugin(candidate: Any) -> type[Plugin]:
    """The class itself when it is a plugin; `PluginError` with everything that is wrong otherwise."""
    problems = problems_of(candidate)
    if problems:
        raise PluginError(_subject(candidate), problems)
    checked: type[Plugin] = candidate
    return checked


def problems_of(candidate: Any) -> list[str]:
    if not isinstance(candidate, type):
        kind = type(candidate).__name__
        return [f"is of type {kind}, not a class; write `class MyPlugin(Plugin): ...` and hand in the class"]
    if not issubclass(candidate, Plugin):
        return [
            f"is not a Plugin; write `class {candidate.__name__}(Plugin)` with `from bayplan.framework import Plugin`"
        ]
    if candidate is Plugin:
        return ["is the base class itself; write a class of your own, `class MyPlugin(Plugin): ...`"]
    steps = (_name, _args, _declarations, _constructor, _methods, _strangers, _companions)
    return [problem for step in steps for problem in step(candidate)]


def _subject(candidate: Any) -> str:
    name = getattr(candidate, "__name__", None) or repr(candidate)[:80]
    return f"plugin class `{name}`"


def _name(cls: type[Plugin]) -> Iterator[str]:
    name: object = inspect.getattr_static(cls, "name", None)
    if not isinstance(name, str):
        yield f"`name` must be a text, found {_kind(name)}; write `name = {cls.__name__!r}` or leave it out"
    elif not name:
        yield f"has no name; write `name = {cls.__name__!r}` or leave `name` out to take the class's"
    elif not _NAME.fullmatch(name):
        yield f"the name `{name}` holds a space, `*` or `/`; use letters and digits, as in `ScoreByLabel`"


def _args(cls: type[Plugin]) -> Iterator[str]:
    args: Any = cls.Args
    if not (isinstance(args, type) and issubclass(args, PluginArgs)):
        yield "`Args` is not a PluginArgs; write `class Args(PluginArgs):` with one typed field a line"
        return
    try:
        msgspec.inspect.type_info(args)
    except Exception as error:
        yield f"`Args` has a field whose type cannot be read ({_sentence(error)}); import it at the file's top level"


def _declarations(cls: type[Plugin]) -> Iterator[str]:
    depends: object = cls.depends
    if not isinstance(depends, Depends):
        yield f"`depends` must be a Depends, found {_kind(depends)}; write `depends = Depends.NODE` or the like"
    for attribute in ("filter_depends", "score_depends"):
        value = getattr(cls, attribute)
        if value is not None and not isinstance(value, Depends):
            yield f"`{attribute}` must be a Depends or None, found {_kind(value)}; write `{attribute} = Depends.NODE`"
    members = (("reasons", str, "texts"), ("watches", type, "classes"), ("permissions", Permission, "Permissions"))
    for attribute, member, plural in members:
        value = getattr(cls, attribute)
        if not isinstance(value, tuple) or not all(isinstance(item, member) for item in value):
            yield f"`{attribute}` must be a tuple of {plural}; write `{attribute} = (..., )`"
    parallel: object = cls.allow_parallel_pre_bind
    if not isinstance(parallel, bool):
        yield "`allow_parallel_pre_bind` must be True or False"


def _constructor(cls: type[Plugin]) -> Iterator[str]:
    if cls.__init__ is not Plugin.__init__:
        yield "overrides `__init__`; override `setup(self)` instead, where `self.args` and `self.handle` are in place"
    if inspect.isabstract(cls):
        names = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        yield f"has abstract methods ({names}); define them"


def _methods(cls: type[Plugin]) -> Iterator[str]:
    for name in METHODS:
        if hasattr(cls, name):
            yield from _method(cls, name, parameters_of(name), EXTENSION_POINTS[name].startswith("async"))
    for name, parameters in _HOOKS.items():
        yield from _method(cls, name, parameters, False)


def _method(cls: type[Plugin], name: str, parameters: tuple[str, ...], is_async: bool) -> Iterator[str]:
    value = getattr(cls, name)
    wanted = _written(name, parameters, is_async)
    if not callable(value):
        yield f"`{name}` is {_kind(value)}, not a method; write `{wanted}`"
        return
    if inspect.iscoroutinefunction(value) != is_async:
        yield f"`{name}` {'must be' if is_async else 'must not be'} async; write `{wanted}`"
    problem = _parameter_problem(cls, name, value, parameters)
    if problem:
        yield f"`{name}` {problem}; write `{wanted}`"


def _written(name: str, parameters: tuple[str, ...], is_async: bool) -> str:
    return f"{'async ' if is_async else ''}def {name}({', '.join(('self', *parameters))})"


def _parameter_problem(cls: type[Plugin], name: str, value: Callable[..., Any], parameters: tuple[str, ...]) -> str:
    try:
        found = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return ""  # a callable of C code; it will be called as the contract says
    if inspect.isfunction(value) and not isinstance(inspect.getattr_static(cls, name), staticmethod):
        if not found or found[0].kind is inspect.Parameter.VAR_KEYWORD:
            return "lacks `self`"
        found = found if found[0].kind is inspect.Parameter.VAR_POSITIONAL else found[1:]
    places = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in found)
    required = [p.name for p in found if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    names = [p.name.lstrip("_") for p in places]
    if all(given == wanted for given, wanted in zip(names, parameters, strict=False)) and (
        takes_any or len(places) >= len(parameters)
    ):
        extra = [given for given in required if given.lstrip("_") not in parameters]
        return f"has a parameter `{extra[0]}` that nobody fills; give it a default" if extra else ""
    taken, wanted = ", ".join(p.name for p in found), ", ".join(parameters)
    return f"takes ({taken or 'nothing'}), the contract is ({wanted or 'nothing'})"


def _strangers(cls: type[Plugin]) -> Iterator[str]:
    """Public methods that look like an extension point but are none."""
    known = {*METHODS, *dir(Plugin)}
    seen: set[str] = set()
    for base in cls.__mro__:
        if base is Plugin:
            break
        for name, value in vars(base).items():
            if name.startswith("_") or name in known or name in seen or not _is_method(value):
                continue
            seen.add(name)
            meant = _meant(name)
            if meant:
                yield f"`{name}` is not an extension point; write {meant}, or start its name with `_` if it is your own"


def _is_method(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, staticmethod | classmethod)


def _meant(name: str) -> str:
    """What an author who wrote `name` wanted to write, or nothing when it is a name of their own."""
    if name in _GO_NAMES:
        return _GO_NAMES[name]
    like = closest(name, (*METHODS, *_HOOKS), cutoff=_ALIKE)
    if like is None and closest(name, _GO_NAMES, cutoff=0.95):
        return _GO_NAMES[str(closest(name, _GO_NAMES, cutoff=0.95))]
    if like is None:
        return ""
    parameters = _HOOKS[like] if like in _HOOKS else parameters_of(like)
    is_async = EXTENSION_POINTS.get(like, "").startswith("async")
    return f"`{_written(like, parameters, is_async)}`"


def _companions(cls: type[Plugin]) -> Iterator[str]:
    """Methods that only make sense together, or never do."""

    def has(*names: str) -> bool:
        return any(hasattr(cls, name) for name in names)

    if has("less") and has("sort_key"):
        yield "defines both `less` and `sort_key`; keep `sort_key` where one tuple per pod says it, else `less`"
    if has("add_pod") != has("remove_pod"):
        yield "defines one of `add_pod` and `remove_pod`; a dry run needs both"
    if has("add_pod", "remove_pod") and not has("pre_filter"):
        yield "defines `add_pod` without `pre_filter`, so there is no state to bring up to date; define `pre_filter`"
    if has("normalize") and not has("score", "score_nodes"):
        yield "defines `normalize` without `score` or `score_nodes`; define one of them"
    if has("pre_bind_pre_flight") and not has("pre_bind"):
        yield "defines `pre_bind_pre_flight` without `pre_bind`; define `pre_bind`"
    if not any(extends(cls, point) for point in ExtensionPoint) and not any(_strangers(cls)):
        yield "defines no extension point; define at least one method, such as `def filter(self, state, pod, node)`"


def _kind(value: object) -> str:
    if value is None:
        return "None"
    return "a method" if callable(value) and not isinstance(value, type) else f"{type(value).__name__} {value!r:.60}"


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
