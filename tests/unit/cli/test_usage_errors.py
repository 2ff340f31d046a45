"""What is wrong with a command line, in words: options, commands, arguments and values."""

from __future__ import annotations

import shlex

import pytest

from bayplan.api.suggest import with_suggestion
from bayplan.cli.main import COMMANDS, main, make_app
from bayplan.cli.options import option
from bayplan.cli.usage_errors import option_names, unknown_option

PROBLEMS = {
    "up --nodez 3": "unknown option `--nodez`; did you mean `--nodes`?",
    "up -nodes 3": "unknown option `-nodes`; did you mean `--nodes`?",
    "up --Nodes=3": "unknown option `--Nodes`; did you mean `--nodes`?",
    "evaluate --fil x": "unknown option `--fil`; did you mean `--filename`?",
    "evaluate --zzzzz": "unknown option `--zzzzz`",
    "get pods -xA": "unknown option `-x` in `-xA`",
    "get -x pods": "unknown option `-x`",
    "explain pod web --no-brief": "unknown option `--no-brief`; write `--brief=false`",
    "completion --shell bash": "unknown option `--shell`; SHELL is given without it: `completion SHELL`",
    "simulate --sede 3": "unknown option `--sede`; did you mean `--seed`?",
    "plan capacity w.yaml --poolz p.yaml": "unknown option `--poolz`; did you mean `--pools`?",
    "plan drain a --nodez": "unknown option `--nodez`",
    "plan --nodez": "unknown option `--nodez`; `plan` takes a command first: `capacity`, `drain`, `defrag`",
    "plan darin a": "`plan` has no command `darin`; did you mean `drain`?",
    "plan x": "`plan` has no command `x`; known are `capacity`, `defrag`, `drain`",
    "plan drain": "NODES is missing: `plan drain NODES`",
    "plan capacity w.yaml": "--pools is required: `--pools FILE`",
    "run --config": "--config needs a value: `--config FILE`",
    "run --config --kubeconfig x": "--config: expected a value, found the option `--kubeconfig`",
    "run --config a --config b": "--config is given more than once",
    "run extra": "`run` takes no arguments, found `extra`",
    "top a b": "`top` takes no arguments, found `a`, `b`",
    "new a b": "`new` takes nothing after NAME, found `b`",
    "run --secure-port abc": "--secure-port: expected a whole number, found `abc`",
    "up --nodes 1.5": "--nodes: expected a whole number, found `1.5`",
    "up --nodes=": "--nodes: expected a whole number, found ``",
    "top --interval nan": "--interval: expected a number, found `nan`",
    "top --interval a": "--interval: expected a number, found `a`",
    "sweep w.yaml --processes 1.5": "--processes: expected a whole number, found `1.5`",
    "run --leader-elect=maybe": "--leader-elect: expected `true` or `false`, found `maybe`",
    "get pods -o jsno": "-o: expected one of `table`, `wide`, `json`, `yaml`, `name`, found `jsno`; "
    "did you mean `json`?",
    "completion x": "SHELL: expected one of `bash`, `zsh`, `fish`, found `x`",
    "--hlep": "unknown option `--hlep`; did you mean `--help`?",
    "--nodez": "unknown option `--nodez`",
    "--nodez 3 up": "unknown option `--nodez`; did you mean `--nodes`?",
    "--nodes=3 up": "the option `--nodes=3` stands before its command",
    "traces": "unknown command `traces`",
    "--version extra": "`--version` takes no arguments, found `extra`",
    "help up extra": "`up` has no command `extra`",
    "help plan x": "`plan` has no command `x`",
    "help zzz": "unknown command `zzz`",
}


@pytest.mark.parametrize("line", PROBLEMS)
def test_what_is_wrong_with_a_command_line_is_one_whole_sentence_and_where_to_look(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(shlex.split(line)) == 2

    out, err = capsys.readouterr()
    problem, hint = err.splitlines()
    assert out == ""
    assert problem == f"error: {PROBLEMS[line]}"
    assert hint.startswith("hint: ")


@pytest.mark.parametrize(
    ("line", "help_of"), [("plan drain", "plan drain"), ("plan x", "plan"), ("plugin show", "plugin show")]
)
def test_the_help_that_is_named_is_that_of_the_command_below(
    line: str, help_of: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(shlex.split(line), program="kubectl bayplan")

    assert f"hint: `kubectl bayplan {help_of} --help` lists" in capsys.readouterr().err


@pytest.mark.parametrize("line", ["help plan drain", "--help plan drain", "help plan drain --help"])
def test_help_names_a_command_below_a_command(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(line)) == 0
    assert capsys.readouterr().out.startswith("usage: bayplan plan drain")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_with_a_letter_missing_is_answered_with_that_option(name: str) -> None:
    app = make_app(name, "bayplan")[name]
    for inner in [app[word] for word in app if not word.startswith("-")] or [app]:
        known = option_names(inner)
        for whole in (each for each in known if len(each) > 7):
            typed = whole[:4] + whole[5:]
            if typed not in known:
                assert unknown_option(typed, known) == f"unknown option `{typed}`; did you mean `{whole}`?"


def test_no_sentence_ends_where_a_suggestion_would_stand() -> None:
    many = [f"name-{place}" for place in range(50)]

    assert with_suggestion("no such thing", "zzz", many) == "no such thing"
    assert with_suggestion("no such thing", "nam-7", many) == "no such thing; did you mean `name-7`?"


def test_only_values_that_are_numbers_are_read_as_numbers() -> None:
    assert option("--a", metavar="NUMBER", about="").converter is not None
    assert option("--a", metavar="FILE", about="").converter is None
