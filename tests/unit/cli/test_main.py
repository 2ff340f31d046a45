"""The command table, and what goes wrong before or while a command runs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from importlib import import_module
from itertools import takewhile
from pathlib import Path

import pytest

from bayplan import __version__
from bayplan.cli import main as main_module
from bayplan.cli.main import COMMANDS, Command, main, make_app
from bayplan.cli.output import CommandError

FAILING: list[BaseException] = []
ROOT = Path(__file__).parents[3] / "examples"
ONE_POD = ["-f", str(ROOT / "cluster.yaml"), "--pod", str(ROOT / "pod.yaml")]


def fail() -> int:
    raise FAILING[0]


def answer(*, number: int = 0) -> int:
    """Say a number.

    It wraps
    here.
    """
    return number


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """A command `fail` that raises what is put here."""
    monkeypatch.setitem(COMMANDS, "fail", Command(f"{__name__}:fail", "fails"))
    monkeypatch.setitem(COMMANDS, "answer", Command(f"{__name__}:answer", "answers"))
    monkeypatch.setattr(main_module, "import_module", lambda _: sys.modules[__name__])
    FAILING.clear()
    return FAILING


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"], ["help"]])
def test_help_lists_every_command_and_an_example(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0

    shown = capsys.readouterr().out
    assert all(f"  {name}" in shown and command.summary in shown for name, command in COMMANDS.items())
    assert "bayplan evaluate -f cluster.yaml --pod pod.yaml" in shown


@pytest.mark.parametrize("command", ["--version", "--help", "evaluate --help", "SCENARIO", "SCENARIO -o json"])
def test_a_disk_that_is_full_is_one_line(command: str) -> None:
    line = command.replace("SCENARIO", shlex.join(["evaluate", *ONE_POD]))
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-m", "bayplan.cli", *shlex.split(line)], stdout=full, stderr=subprocess.PIPE, text=True
        )

    assert found.returncode == 2
    assert found.stderr == "error: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("name", ["--version", "-V", "version"])
def test_the_version_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 0

    assert capsys.readouterr().out == f"bayplan {__version__}\n"


def test_an_unknown_command_is_answered_with_the_one_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evalute"]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == "error: unknown command `evalute`; did you mean `evaluate`?"
    assert err.splitlines()[1].startswith("hint: ")


def test_an_option_before_the_command_is_called_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--bogus"]) == 2

    assert "unknown option `--bogus`" in capsys.readouterr().err


def test_help_about_a_command_is_the_help_of_that_command(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["help", "answer"]) == 0

    assert "It wraps here." in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_of_the_table_exists(name: str) -> None:
    module, _, attribute = COMMANDS[name].target.partition(":")

    assert callable(getattr(import_module(module), attribute))


def test_the_status_that_a_command_returns_is_the_exit_status(failing: list[BaseException]) -> None:
    assert main(["answer", "--number", "7"]) == 7
    assert main(["answer"]) == 0


def test_a_wrong_option_is_one_line_with_a_hint(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["answer", "--number", "seven"]) == 2

    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("error: ") and "seven" in err[0]
    assert err[1] == "hint: `bayplan answer --help` lists the options"
    assert len(err) == 2


def test_each_problem_of_a_command_is_a_line(failing: list[BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    failing.append(CommandError("first", "second", hint="do this", status=3))

    assert main(["fail"]) == 3
    assert capsys.readouterr().err == "error: first\nerror: second\nhint: do this\n"


def test_a_fault_of_ours_is_said_without_a_traceback(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BAYPLAN_TRACEBACK", raising=False)
    failing.append(ZeroDivisionError("oops"))

    assert main(["fail"]) == 70
    err = capsys.readouterr().err
    assert "error: internal error: ZeroDivisionError: oops" in err
    assert "Traceback" not in err


def test_a_traceback_can_be_asked_for(
    failing: list[BaseException], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BAYPLAN_TRACEBACK", "1")
    failing.append(ZeroDivisionError("oops"))

    main(["fail"])
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_ends_quietly(failing: list[BaseException], capsys: pytest.CaptureFixture[str]) -> None:
    failing.append(KeyboardInterrupt())

    assert main(["fail"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_interrupt_of_generated_code_has_the_same_status(tmp_path: Path) -> None:
    """Dataclasses and named tuples are made by `exec`, many of them while modules are loaded."""
    (tmp_path / "interrupted.py").write_text(
        "from bayplan.cli import main as main_module\n"
        "main_module._dispatch = lambda arguments, program: exec('raise KeyboardInterrupt')\n"
        "main_module.run()\n"
    )
    done = subprocess.run([sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_kubectl_finds_us_as_a_plugin() -> None:
    assert main_module._program("/usr/bin/kubectl-bayplan") == "kubectl bayplan"
    assert main_module._program("/usr/bin/bayplan") == "bayplan"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    """`bayplan ... | head` must not end in a message."""
    cases = tmp_path / "cases.jsonl"
    cases.write_text('{"objects": [], "pod": {}}\n' * 5000)
    program = "from bayplan.cli.main import run; run()"
    command = [sys.executable, "-c", program, "evaluate", "--cases", str(cases)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        err = process.stderr.read()

    assert process.returncode == 141
    assert "BrokenPipe" not in err


def test_help_imports_neither_the_engine_nor_the_libraries_of_commands() -> None:
    """What keeps `--help` quick; the time itself is measured elsewhere."""
    program = (
        "import sys; from bayplan.cli.main import main; main(['--help']); "
        "print([n for n in ('numpy', 'cyclopts', 'rich', 'msgspec', 'yaml', 'structlog') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_evaluate_loads_neither_expressions_nor_an_api_server_nor_a_client() -> None:
    """What keeps its start short: a pod without devices needs none of them."""
    program = (
        f"import sys; from bayplan.cli.main import main; main(['evaluate', *{ONE_POD!r}, '-o', 'json']); "
        "print([n for n in ('bayplan.cel', 'bayplan.apiserver.kinds.builtin', 'bayplan.client.http_transport', "
        "'bayplan.app.live') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["evaluate", "--help"],
        ["render", "--help"],
        ["--version"],
        ["completion", "bash"],
        ["evaluate", *ONE_POD],
    ],
)
def test_help_into_a_closed_pipe_ends_without_a_message(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "bayplan.cli", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)

    assert [line for line in done.stderr.splitlines() if not line.startswith("reading ")] == []
    assert done.returncode == 141


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_help_looks_the_same_and_fits_sixty_columns(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    assert main([command, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    told = lines[: lines.index("examples:")] if "examples:" in lines else lines

    assert lines[0].startswith(f"usage: bayplan {command}")
    assert set(headings) <= {"arguments:", "options:", "commands:", "examples:"}
    assert [line for line in told if len(line) > 60] == []
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_the_examples_of_every_help_are_command_lines_that_it_takes(command: str) -> None:
    module = import_module(COMMANDS[command].target.partition(":")[0])
    for line in getattr(module, "EXAMPLES", "").format(program="bayplan").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>()")
        lexer.whitespace_split = True
        words = list(lexer)
        for place in (place for place, word in enumerate(words) if word == "bayplan"):
            ours = list(takewhile(lambda word: not set(word) <= set("|<>()"), words[place + 1 :]))
            _, bound, _ = make_app(ours[0], "bayplan").parse_args(ours, exit_on_error=False, print_error=False)
            assert bound is not None


def test_options_stand_in_one_column_and_their_help_in_another(capsys: pytest.CaptureFixture[str]) -> None:
    main(["up", "--help"])
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("options:") + 1
    rows = lines[first : lines.index("", first)]

    starts = {len(row) - len(row[row.index("  ", 3) :].lstrip()) for row in rows}
    assert len(starts) == 1


@pytest.mark.parametrize(
    "words", [["/bin/kube-scheduler", "--help"], ["run", "/bin/kube-scheduler", "--help"], ["kube-scheduler", "--help"]]
)
def test_a_command_line_of_kube_scheduler_runs_the_scheduler(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    assert "usage: bayplan run [OPTIONS]" in capsys.readouterr().out
