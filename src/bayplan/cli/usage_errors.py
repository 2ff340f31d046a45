"""Words for what is wrong with a command line: unknown options and commands, words too many, values missing or odd.

Cyclopts finds these errors; its own sentences name types of Python, lists and a wrong level of commands. Imported only
after a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)

from bayplan.api.suggest import closest, quoted, with_suggestion

__all__ = ["option_names", "unknown_option", "usage_lines"]

_EXPECTED: dict[Any, str] = {int: "a whole number", float: "a number", bool: "`true` or `false`"}
_ALIKE = 0.75
"""Of `-nodes`, which may also be several short options."""


def usage_lines(error: CycloptsError) -> list[str]:
    """What is wrong with the command line, a line for each problem."""
    match error:
        case UnknownOptionError():
            return [_unknown_option(error, error.token.keyword or error.token.value)]
        case UnknownCommandError():
            return [_unknown_command(error)]
        case MissingArgumentError():
            # An option that is missing may be there, but misspelt.
            unknown = [word for word in error.unused_tokens or () if _is_unknown(word, _options(error))]
            return [_unknown_option(error, word) for word in unknown] or [_missing(error)]
        case UnusedCliTokensError():
            return [_too_many(error, error.unused_tokens or [])]
        case CoercionError() if error.msg is not None and error.argument is not None:
            return [f"{_given_as(error)}: {error.msg}"]
        case CoercionError() if error.token is not None:
            return [_not_of_type(error, error.token.value)]
        case ValidationError() if error.argument is not None and error.exception_message:
            return [f"{_given_as(error)}: {error.exception_message}"]
        case RepeatArgumentError():
            return [f"{error.token.keyword} is given more than once"]
    return [str(error)]


def unknown_option(word: str, options: Sequence[str]) -> str:
    """Of a word that is none of the options: the sentence, with the option that was probably meant."""
    name = word.partition("=")[0]
    flags = [option for option in options if option.startswith("--")]
    if name.startswith("--no-") and f"--{name[5:]}" in flags:
        return f"unknown option `{name}`; write `--{name[5:]}=false`"
    if name.startswith("--"):
        begun = [option for option in flags if option.startswith(name)]
        meant = begun[0] if len(begun) == 1 else closest(name, flags)
    else:
        meant = closest(name, flags, cutoff=_ALIKE) if len(name) > 2 else None
    if meant is not None:
        return f"unknown option `{name}`; did you mean `{meant}`?"
    if len(name) > 2 and not name.startswith("--"):
        letter = next((letter for letter in name[1:] if f"-{letter}" not in options), name[1])
        return f"unknown option `-{letter}` in `{name}`"
    return f"unknown option `{name}`"


def _unknown_option(error: CycloptsError, word: str) -> str:
    name = word.partition("=")[0].lstrip("-").replace("-", "_").upper()
    argument = next((each.name for each in _arguments(error) if each.name == name), "")
    if argument:
        return f"unknown option `{word.partition('=')[0]}`; {argument} is given without it: `{_command(error)} {name}`"
    return unknown_option(word, _options(error))


def _unknown_command(error: CycloptsError) -> str:
    word = (error.unused_tokens or [""])[0]
    app: Any = error.app
    known = [name for name in app if not name.startswith("-")]
    if word.startswith("-"):
        return f"{unknown_option(word, ['--help'])}; `{_command(error)}` takes a command first: {quoted(known)}"
    return with_suggestion(f"`{_command(error)}` has no command `{word}`", word, known)


def _missing(error: MissingArgumentError) -> str:
    assert error.argument is not None  # it is about one
    name, metavar = error.argument.name, error.argument.parameter.metavar or "VALUE"
    if error.keyword:
        return f"{error.keyword} needs a value: `{error.keyword} {metavar}`"
    if name.startswith("-"):
        return f"{name} is required: `{name} {metavar}`"
    return f"{name} is missing: `{_command(error)} {name}`"


def _too_many(error: CycloptsError, words: Sequence[str]) -> str:
    taken = [each.name for each in _arguments(error)]
    if not taken:
        return f"`{_command(error)}` takes no arguments, found {quoted(words)}"
    return f"`{_command(error)}` takes nothing after {taken[-1]}, found {quoted(words)}"


def _not_of_type(error: CoercionError, value: str) -> str:
    wanted = error.target_type
    if get_origin(wanted) is Literal:
        choices = [str(each) for each in get_args(wanted)]
        meant = closest(value, choices)
        problem = f"{_given_as(error)}: expected one of {quoted(choices)}, found `{value}`"
        return f"{problem}; did you mean `{meant}`?" if meant else problem
    if wanted is not None and wanted in _EXPECTED:
        return f"{_given_as(error)}: expected {_EXPECTED[wanted]}, found `{value}`"
    return str(error)


def _given_as(error: CycloptsError) -> str:
    """The option as it was written, or the name of the argument."""
    argument, token = error.argument, getattr(error, "token", None)
    tokens = [token] if token is not None else argument.tokens if argument is not None else []
    written = next((each.keyword for each in tokens if each.keyword), None)
    return written or (argument.name if argument is not None else "the command line")


def _command(error: CycloptsError) -> str:
    """The command in the words of its help, without the name of the program."""
    return " ".join(error.command_chain or ())


def option_names(app: Any) -> list[str]:
    """All options of a command; of one that only has commands, that of its help."""
    return [*(name for each in _arguments_of(app) for name in each.names if name.startswith("-")), "--help", "-h"]


def _options(error: CycloptsError) -> list[str]:
    return option_names(error.app)


def _arguments(error: CycloptsError) -> list[Any]:
    """The arguments that are no options; groups of options have the name `*`."""
    return [each for each in _arguments_of(error.app) if each.name.isidentifier()]


def _arguments_of(app: Any) -> list[Any]:
    return [] if app is None or app.default_command is None else list(app.assemble_argument_collection())


def _is_unknown(word: str, options: Sequence[str]) -> bool:
    """Whether the word is an option, and none of these; several letters may be several options."""
    name = word.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 2 and name not in options
    return len(name) > 1 and name.startswith("-") and name[:2] not in options
