"""Rules that hold for every text file of the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOT_PROSE = (".gz", ".recording", ".png", ".svg", ".sum", ".mod", "LICENSE")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError|pytest\.skip\b|mark\.skip\b|mark\.xfail\b")
ALLOWED_UNFINISHED = {
    "tests/unit/test_repository.py": "names what it looks for",
    "CONTRIBUTING.md": "says what is not wanted",
    "tests/cel/test_differential.py": "says why it did not run where Go is absent",
    "tests/e2e/test_other_python.py": "says why it did not run where there is one Python",
    "tests/controlplane/fixtures.py": "end-to-end tests say why they did not run where there is no control plane",
    "tests/apiconformance/test_kubectl.py": "names the kubectl that cannot be had where there is no apt",
    "tests/unit/controlplane/test_controlplane_programs.py": "tests that saying so",
}
BANNED_NAMES = re.compile(r"(^|_)(util|utils|helper|helpers|common|manager|misc)(_|$)")


def tracked() -> list[Path]:
    """Files of the repository; of a source archive without git, everything that is not a cache."""
    try:
        done = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True)
        names = done.stdout.split("\0")[:-1]
    except (OSError, subprocess.CalledProcessError):
        names = [p.relative_to(ROOT).as_posix() for p in ROOT.rglob("*") if not any(x[0] == "." for x in p.parts[-3:])]
    return [ROOT / name for name in names if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    prose = [path for path in tracked() if not path.name.endswith(NOT_PROSE)]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in prose}


def test_nothing_is_left_unfinished(texts: dict[str, str]) -> None:
    found = {name: match[0] for name, text in texts.items() if (match := UNFINISHED.search(text))}

    assert {name: word for name, word in found.items() if name not in ALLOWED_UNFINISHED} == {}


def test_modules_are_named_for_what_they_are_about() -> None:
    assert [path.name for path in tracked() if path.suffix == ".py" and BANNED_NAMES.search(path.stem)] == []


def test_code_for_tests_stays_in_tests(texts: dict[str, str]) -> None:
    """A branch that only tests reach is a branch that nobody tests."""
    phrase = re.compile(r"\b(only (for|in)|outside( of)?) tests\b|\bfor tests only\b", re.IGNORECASE)
    found = [name for name, text in texts.items() if name.startswith("src/") and phrase.search(text)]

    assert found == []


def test_no_file_ends_without_a_newline_or_has_stray_blanks(texts: dict[str, str]) -> None:
    assert [name for name, text in texts.items() if text and not text.endswith("\n")] == []
    assert [
        name for name, text in texts.items() if name.endswith((".py", ".md")) and re.search(r"[ \t]+$", text, re.M)
    ] == []


def test_time_and_chance_come_from_ports(texts: dict[str, str]) -> None:
    """`sim` replays to the byte because only the clock knows the time."""
    direct = re.compile(r"\btime\.(sleep|time|monotonic)\(|\brandom\.(random|randint|choice|shuffle|uniform|sample)\(")
    allowed = ("src/bayplan/observe/clock.py", "src/bayplan/testing/")
    found = [name for name, text in texts.items() if name.startswith("src/") and direct.search(text)]

    assert [name for name in found if not name.startswith(allowed)] == []


def test_tests_that_documents_name_exist(texts: dict[str, str]) -> None:
    named = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
    found = [match.groups() for name, text in texts.items() if name.endswith(".md") for match in named.finditer(text)]

    assert len(found) >= 18, "SECURITY.md names a test for every attack"
    assert [(file, test) for file, test in found if f"def {test}(" not in texts.get(file, "")] == []
