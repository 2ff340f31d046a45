"""`bayplan new`: a plugin package that works from the first minute: modules, tests, README, configuration, CI."""

from __future__ import annotations

import keyword
import re
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from bayplan.cli.options import named_path, option
from bayplan.cli.output import CommandError

__all__ = ["new", "package_files"]

EXAMPLES = """\
{program} new ScoreByDisk
{program} new license-fit --output plugins/license-fit
"""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_ ][A-Za-z0-9]+)*")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[A-Z]")
_TEMPLATES = (
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "scheduler.yaml",
    "DOTgitignore",
    "DOTgithub/workflows/test.yaml",
    "src/PACKAGE/__init__.py",
    "src/PACKAGE/args.py",
    "src/PACKAGE/plugin.py",
    "src/PACKAGE/py.typed",
    "tests/test_unit.py",
    "tests/test_contract.py",
    "tests/test_cluster.py",
)
"""In the wheel a name with a leading dot might be left out; DOT stands for it."""


def new(
    name: str,
    /,
    *,
    output: Annotated[
        str | None, option("--output", "-o", metavar="FOLDER", about="folder to write to (./NAME, in lower case)")
    ] = None,
) -> None:
    """Write a plugin package whose tests pass.

    The plugin filters by one label and scores by another, with arguments, reasons and events, as a start to change. Its
    name may be given as ScoreByDisk or as score-by-disk.
    """
    words = _words(name)
    folder = named_path(output or "-".join(words))
    contents = package_files(name)
    try:
        if folder.exists() and any(folder.iterdir() if folder.is_dir() else [folder]):
            raise CommandError(f"`{folder}` exists and is not empty", hint="name another folder with --output")
        _write(folder, contents)
    except OSError as error:
        raise CommandError(f"cannot write {error.filename or folder}: {error.strerror or error}") from error
    print(f"wrote {len(contents)} files into {folder}")
    print(f"  cd {folder} && python -m pytest")
    print("  bayplan up --config scheduler.yaml --plugin . --watch")


def _write(folder: Path, contents: dict[str, str]) -> None:
    """Write into a folder that is empty or not there yet; what cannot be written whole is taken away again."""
    try:
        for relative, text in contents.items():
            path = folder / relative
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except BaseException:
        for inside in folder.iterdir() if folder.is_dir() else ():
            if inside.is_dir():
                shutil.rmtree(inside, ignore_errors=True)
            else:
                inside.unlink(missing_ok=True)
        raise


def _words(name: str) -> list[str]:
    if not _NAME.fullmatch(name):
        raise CommandError(f"`{name}` cannot name a plugin; use letters and digits, as in ScoreByDisk")
    words = [word.lower() for word in _WORD.findall(name)]
    if keyword.iskeyword("_".join(words)) or not words[0][0].isalpha():
        raise CommandError(f"`{name}` cannot name a Python module; choose another")
    return words


def package_files(name: str) -> dict[str, str]:
    """Path inside the package to content."""
    words = _words(name)
    plugin = name if name[0].isupper() and name.isalnum() else "".join(word.capitalize() for word in words)
    source = files("bayplan.deploy") / "templates" / "plugin"
    marks = {"PACKAGE": "_".join(words), "PROJECT": "-".join(words), "PLUGIN": plugin}
    contents = {}
    for template in _TEMPLATES:
        text = (source / f"{template.replace('/', '__')}.txt").read_text(encoding="utf-8")
        contents[_filled(template, marks | {"DOT": "."})] = _filled(text, marks)
    return contents


def _filled(text: str, marks: dict[str, str]) -> str:
    for mark, value in marks.items():
        text = text.replace(mark, value)
    return text
