"""Check that a class is a plugin, when it registers.

A method or promise that is misspelt, or a method with the wrong parameters, would otherwise have no effect, or fail in
the middle of a scheduling cycle. All problems of a class are found at once, each with what to write instead. What is
right follows from the declarations on `Plugin`. What a method *does* is checked by the contract suite of the test kit.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from bayplan.api.suggest import closest
from bayplan.framework.args import PluginArgs
from bayplan.framework.errors import PluginError
from bayplan.framework.plugin import Permission, Plugin, declared_args
from bayplan.framework.points import ExtensionPoint, contract_of, defines, extends
from bayplan.framework.promises import Depends, SpeedPromises

__all__ = ["check_plugin", "problems_of"]

_DECLARED = tuple(
    name
    for base in (Plugin, SpeedPromises)
    for name, value in vars(base).items()
    if inspect.isfunction(value) and not name.startswith("_")
)
"""Every method that a plugin may define: extension points, promises, `setup` and the like."""

_ATTRIBUTES = tuple(
    name
    for base in (Plugin, SpeedPromises)
    for name in inspect.get_annotations(base)
    if name not in ("args", "version_changes")
)
"""Every class attribute that a plugin may set."""

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
        yield f"the name `{name}` holds a space, `*` or `/`; use letters and digits, as in `PreferZone`"


def _args(cls: type[Plugin]) -> Iterator[str]:
    args: Any = cls.Args
    if not (isinstance(args, type) and issubclass(args, PluginArgs)):
        yield "`Args` is not a PluginArgs; write `class Args(PluginArgs):` with one typed field a line"
        return
    declared = declared_args(cls)
    if declared is not None and declared is not args:
        yield f"declares its arguments twice, as `{_name_of(declared)}` and as `{_name_of(args)}`; keep one"
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
    for attribute in _ATTRIBUTES:
        if isinstance(getattr(SpeedPromises, attribute, None), bool) and not isinstance(getattr(cls, attribute), bool):
            yield f"`{attribute}` must be True or False, found {_kind(getattr(cls, attribute))}"
    members = (("reasons", str, "texts"), ("watches", type, "classes"), ("permissions", Permission, "Permissions"))
    for attribute, member, plural in members:
        value = getattr(cls, attribute)
        if not isinstance(value, tuple) or not all(isinstance(item, member) for item in value):
            yield f"`{attribute}` must be a tuple of {plural}; write `{attribute} = (..., )`"


def _constructor(cls: type[Plugin]) -> Iterator[str]:
    if cls.__init__ is not Plugin.__init__:
        yield "overrides `__init__`; override `setup(self)` instead, where `self.args` and `self.handle` are in place"
    if inspect.isabstract(cls):
        names = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
        yield f"has abstract methods ({names}); define them"


def _methods(cls: type[Plugin]) -> Iterator[str]:
    for name in _DECLARED:
        value = getattr(cls, name)
        if value is not getattr(Plugin, name):
            yield from _method(cls, name, value)


def _method(cls: type[Plugin], name: str, value: Any) -> Iterator[str]:
    wanted, is_async = _written(name), _is_async(name)
    if not callable(value):
        yield f"`{name}` is {_kind(value)}, not a method; write `{wanted}`"
        return
    if inspect.iscoroutinefunction(value) != is_async:
        yield f"`{name}` {'must be' if is_async else 'must not be'} async; write `{wanted}`"
    problem = _parameter_problem(cls, name, value, tuple(contract_of(name).parameters))
    if problem:
        yield f"`{name}` {problem}; write `{wanted}`"


def _is_async(name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(Plugin, name))


def _written(name: str) -> str:
    """The line that defines a method of the contract."""
    return f"{'async ' if _is_async(name) else ''}def {name}({', '.join(('self', *contract_of(name).parameters))})"


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
        return f"has a parameter `{extra[0]}` that is never given; give it a default" if extra else ""
    taken, wanted = ", ".join(p.name for p in found), ", ".join(parameters)
    return f"takes ({taken or 'nothing'}), the contract is ({wanted or 'nothing'})"


def _strangers(cls: type[Plugin]) -> Iterator[str]:
    """Public names that look like an extension point or a promise but are none."""
    known = set(dir(Plugin))
    own = {
        name: value
        for base in reversed(cls.__mro__)
        if base not in Plugin.__mro__
        for name, value in vars(base).items()
    }
    for name, value in own.items():
        if name.startswith("_") or name in known:
            continue
        like, meant = None, ""
        if _is_method(value):
            like, meant = _meant(name)
        elif isinstance(value, bool | Depends):
            like = closest(name, (*_ATTRIBUTES, *_DECLARED), cutoff=_ALIKE)
            shown = f"Depends.{value.name}" if isinstance(value, Depends) else value
            if like is not None:
                meant = f"`{_written(like)}`" if like in _DECLARED else f"`{like} = {shown}`"
        if meant:
            what = "a promise" if like is not None and hasattr(SpeedPromises, like) else "an extension point"
            yield f"`{name}` is not {what}; write {meant}, or start its name with `_` if it is your own"


def _is_method(value: object) -> bool:
    return isinstance(value, staticmethod | classmethod) or (callable(value) and not isinstance(value, type))


def _meant(name: str) -> tuple[str | None, str]:
    """The declared method that an author who wrote `name` meant, and what to write; nothing for a name of their own."""
    like = None if name in _GO_NAMES else closest(name, _DECLARED, cutoff=_ALIKE)
    if like is not None:
        return like, f"`{_written(like)}`"
    go_name = closest(name, _GO_NAMES, cutoff=0.95)
    return None, _GO_NAMES[go_name] if go_name else ""


def _companions(cls: type[Plugin]) -> Iterator[str]:
    """Methods that only make sense together, or never do."""

    def has(*names: str) -> bool:
        return any(defines(cls, name) for name in names)

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


def _name_of(kind: object) -> str:
    return getattr(kind, "__name__", str(kind))


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
