"""`bayplan`: finds the command, runs it, and turns exceptions into error lines and an exit status.

A command is an entry in `COMMANDS` and a module with a function (or a `cyclopts.App` for a command with commands of its
own). The function's parameters are its options; it returns an exit status or None, and raises `CommandError` to stop.
The list of commands, the version and misspelt commands are answered from the table alone, without importing anything.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

from bayplan import __version__
from bayplan.cli.output import BAD_INPUT, CommandError, print_error

if TYPE_CHECKING:
    from cyclopts import App

__all__ = ["COMMANDS", "Command", "main", "make_app", "run"]

INTERRUPTED = 130
BROKEN_PIPE = 141
INTERNAL_ERROR = 70
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Of writes; those of files are reported where they are made, with the name of the file."""
_KUBE_SCHEDULER = "kube-scheduler"
_TRACEBACK_VARIABLE = "BAYPLAN_TRACEBACK"


class Command(NamedTuple):
    target: str
    """module:function, or module:app"""
    summary: str


COMMANDS: dict[str, Command] = {
    "evaluate": Command(
        "bayplan.cli.evaluate:evaluate", "say what the scheduler would do with a pod, without a cluster"
    ),
    "explain": Command("bayplan.cli.explain:explain", "say why a pod is where it is, or why it is nowhere"),
    "pending": Command("bayplan.cli.pending:pending", "show pending pods by what keeps them from running"),
    "top": Command("bayplan.cli.top:top", "watch a running scheduler: queue, rates, causes, latest decisions"),
    "whatif": Command("bayplan.cli.whatif:whatif", "play a change on a copy of the cluster"),
    "dashboard": Command(
        "bayplan.cli.dashboard:dashboard", "show a scheduler's dashboard in a browser on this machine"
    ),
    "up": Command("bayplan.cli.up:up", "start a cluster on this machine, with the scheduler on it"),
    "simulate": Command("bayplan.cli.simulate:simulate", "run a workload on a virtual clock, by one policy or several"),
    "sweep": Command("bayplan.cli.sweep:sweep", "simulate policies x seeds x workloads, on all cores or with Dask"),
    "plan": Command("bayplan.cli.plan:app", "say how many nodes a workload needs, or which pods to move"),
    "record": Command("bayplan.cli.record:record", "follow a cluster into a file, to simulate or replay it later"),
    "replay": Command("bayplan.cli.replay:replay", "show the decisions of a recording, or write one as a test"),
    "apply": Command("bayplan.cli.objects:apply", "create or change objects of a cluster from manifests"),
    "get": Command("bayplan.cli.get:get", "show objects of a cluster"),
    "delete": Command("bayplan.cli.objects:delete", "delete objects of a cluster"),
    "run": Command("bayplan.cli.run:run", "run the scheduler against a cluster"),
    "controllers": Command("bayplan.cli.controllers:controllers", "write the status of PodGroups and ElasticQuotas"),
    "render": Command("bayplan.cli.render:app", "write manifests, definitions or a chart for a cluster"),
    "new": Command("bayplan.cli.new:new", "write a plugin package with tests, ready to run"),
    "plugin": Command("bayplan.cli.plugin:app", "say what a plugin extends and what its answers depend on"),
    "doctor": Command("bayplan.cli.doctor:doctor", "find what keeps a scheduler from working in a cluster"),
    "completion": Command("bayplan.cli.completion:completion", "print the completion script of a shell"),
}

_OBJECTS_OF_A_START = 50_000
"""As many new objects are allocated before the garbage collector runs."""

_OPTIONS = ("--help", "-h", "--version", "-V")
"""Without a command."""

_EXAMPLES = (
    ("where would this pod go, and why?", "evaluate -f cluster.yaml --pod pod.yaml"),
    ("the same of a real cluster", "evaluate -f dump.yaml --pod default/web-0"),
    ("with another configuration, for a program", "evaluate -f cluster.yaml --pod pod.yaml --config c.yaml -o json"),
)


def run() -> None:
    """The entry point of the installed command; under the name `kube-scheduler` it is `bayplan run`."""
    name, *arguments = sys.argv
    if PurePath(name).name == _KUBE_SCHEDULER:
        arguments = ["run", *arguments]
    sys.exit(main(arguments, program=_program(name)))


def main(arguments: Sequence[str], *, program: str = "bayplan") -> int:
    """Run one command line and return its exit status. A closed pipe or Ctrl-C ends it without a message."""
    try:
        status = _dispatch(arguments, program)
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        # A second one while the interpreter ends has nothing to say either.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        # Where it came in text that `exec` ran, as dataclasses do, `python -m` would end by the signal and not with
        # this status: the interpreter forgets it when it runs other text.
        exec("")
        return INTERRUPTED
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:
        return _output_failed(error)


def _dispatch(arguments: Sequence[str], program: str) -> int:
    arguments = _without_program(arguments)
    first, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if first in ("--help", "-h", "help"):
        return _help_about(rest, program)
    if first in ("--version", "-V", "version"):
        if rest:
            return _refused(f"`{first}` takes no arguments, found `{rest[0]}`", program)
        print(f"bayplan {__version__}")
        return 0
    if first == "__complete":
        from bayplan.cli.completion import print_candidates

        return print_candidates(arguments[1:])
    if first.startswith("-"):
        return _unknown_option(first, rest, program)
    if first not in COMMANDS:
        return _unknown_command(first, program)
    try:
        return _run_command(first, rest, program)
    except BrokenPipeError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _NO_ROOM and error.filename is None:
            raise
        return _failed(error, program, first)


def _without_program(arguments: Sequence[str]) -> list[str]:
    """`[run] /bin/kube-scheduler --config=…`, as deployments of kube-scheduler start it, means `run --config=…`."""
    words = list(arguments)
    place = 1 if words[:1] == ["run"] else 0
    if [PurePath(word).name for word in words[place : place + 1]] == [_KUBE_SCHEDULER]:
        words[: place + 1] = ["run"]
    return words


def _program(path: str) -> str:
    """The name of the program in messages; `kubectl-bayplan` runs as the plugin `kubectl bayplan`."""
    return "kubectl bayplan" if PurePath(path).stem == "kubectl-bayplan" else "bayplan"


def _help(program: str) -> str:
    import textwrap
    from shutil import get_terminal_size

    width, columns = max(map(len, COMMANDS)), max(40, get_terminal_size((120, 24)).columns)

    def row(name: str, summary: str, width: int) -> str:
        beginning = f"  {name:<{width}}  "
        return textwrap.fill(summary, columns, initial_indent=beginning, subsequent_indent=" " * len(beginning))

    about = "The Kubernetes scheduler and its scheduling framework, in Python."
    commands = "\n".join(row(name, command.summary, width) for name, command in COMMANDS.items())
    shown = row("--help, -h", f"this text; `{program} COMMAND --help` for a command", 13)
    examples = "\n".join(f"  # {what}\n  {program} {line}" for what, line in _EXAMPLES)
    return (
        f"usage: {program} COMMAND [OPTIONS]\n\n"
        f"{textwrap.fill(about, columns)}\n\n"
        f"commands:\n{commands}\n\n"
        f"options:\n{shown}\n{row('--version, -V', 'the version', 13)}\n\n"
        f"examples:\n{examples}"
    )


def _help_about(words: Sequence[str], program: str) -> int:
    """`help`, `help COMMAND` and `help COMMAND COMMAND`; `--help` in place of `help` as well."""
    words = [word for word in words if word not in ("--help", "-h")]
    if not words:
        print(_help(program))
        return 0
    if words[0] in COMMANDS:
        app = make_app(words[0], program)
        for place, word in enumerate(words):
            if word not in app:
                return _refused(f"`{' '.join(words[:place])}` has no command `{word}`", program)
            app = app[word]
    return _dispatch([*words, "--help"], program)


def _unknown_command(name: str, program: str) -> int:
    from bayplan.api.suggest import with_suggestion

    return _refused(with_suggestion(f"unknown command `{name}`", name, COMMANDS), program)


def _unknown_option(given: str, rest: Sequence[str], program: str) -> int:
    """An option where a command is expected: one of this program, misspelt, or one of a command after it."""
    from bayplan.cli.usage_errors import option_names, unknown_option

    command = next((word for word in rest if word in COMMANDS), "")
    if not command:
        name = given.partition("=")[0]
        problem = unknown_option(given, _OPTIONS)
        known = f"`{program} --help` lists the commands"
        is_other = problem == f"unknown option `{name}`"
        hint = f"options of a command stand after it: `{program} COMMAND {name}`; {known}" if is_other else known
        return _refused(problem, program, hint=hint)
    options = option_names(make_app(command, program)[command])
    if given.partition("=")[0] in options:
        hint = f"write `{program} {command} {given}`"
        return _refused(f"the option `{given}` stands before its command", program, hint=hint)
    hint = f"write options of `{command}` after it; `{program} {command} --help` lists them"
    return _refused(unknown_option(given, options), program, hint=hint)


def _refused(problem: str, program: str, *, hint: str = "") -> int:
    print_error([problem], hint=hint or f"`{program} --help` lists the commands")
    return BAD_INPUT


def _run_command(name: str, arguments: Sequence[str], program: str) -> int:
    # Modules and what they define are no garbage; to look for some ten times while they load delays every command.
    gc.set_threshold(_OBJECTS_OF_A_START, *gc.get_threshold()[1:])
    app = make_app(name, program, arguments)
    status: Any = app([name, *arguments], exit_on_error=False, print_error=False)
    if _wants_help(arguments):
        print(_examples(name, program), end="")
    return status if isinstance(status, int) else 0


def make_app(name: str, program: str, arguments: Sequence[str] = ()) -> App:
    """The parser of one command."""
    from cyclopts import App

    module_name, _, attribute = COMMANDS[name].target.partition(":")
    module = import_module(module_name)
    target = getattr(module, attribute)
    app = App(
        name=program,
        version_flags=(),
        help_format="plaintext",
        help_formatter=_help_formatter(arguments, target),
        result_action="return_value",
        console=_help_console(arguments),
        suppress_keyboard_interrupt=False,
    )
    if isinstance(target, App):
        app.command(target, name=name)
    else:
        app.command(target, name=name, help=_unwrapped(target.__doc__ or ""))
    return app


def _wants_help(arguments: Sequence[str]) -> bool:
    return not {"--help", "-h"}.isdisjoint(arguments)


def _examples(name: str, program: str) -> str:
    """The end of a command's help; a command with commands of its own has none."""
    lines = getattr(import_module(COMMANDS[name].target.partition(":")[0]), "EXAMPLES", "").format(program=program)
    return "".join(["\nexamples:\n", *(f"  {line}\n" for line in lines.splitlines())]) if lines else ""


def _help_formatter(arguments: Sequence[str], target: object) -> Any:
    """Loaded where there may be help to show: what draws it takes longer to load than most commands take."""
    if isinstance(target, FunctionType) and not _wants_help(arguments):
        return None
    from bayplan.cli.help_format import AlignedFormatter

    return AlignedFormatter()


def _help_console(arguments: Sequence[str]) -> Any:
    """None where no help is shown: Rich takes long to load."""
    if not _wants_help(arguments):
        return None
    from bayplan.cli.output import result_console

    return result_console()


def _unwrapped(docstring: str) -> str:
    """Paragraphs as single lines; the terminal's width is not that of the source."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in docstring.split("\n\n"))


def _failed(error: Exception, program: str, command: str) -> int:
    """Print an exception about the input as error lines, and any other as an internal error."""
    if os.environ.get(_TRACEBACK_VARIABLE):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, CommandError):
        print_error(error.problems, hint=error.hint)
        return error.status
    from bayplan.cli.error_lines import error_lines, usage_of

    problems = error_lines(error)
    if problems:
        *others, last = problems
        what, _, hint = last.partition("\nhint: ")
        usage = usage_of(error, command)
        print_error([*others, what], hint=hint or (f"`{program} {usage} --help` lists the options" if usage else ""))
        return BAD_INPUT
    print_error(
        [f"internal error: {type(error).__name__}: {error}"],
        hint=f"this is a fault of bayplan; {_TRACEBACK_VARIABLE}=1 shows where, please report it",
    )
    return INTERNAL_ERROR


def _output_failed(error: OSError) -> int:
    _discard_output()
    print_error([f"standard output cannot be written: {error.strerror or error}"])
    return BAD_INPUT


def _discard_output() -> None:
    """Send the rest to /dev/null, also what the interpreter flushes at its end."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
