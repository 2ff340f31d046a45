"""What a type checker says of plugins: nothing of a proper one, and something of each mistake."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from mypy import api
from tests.unit.framework.typing import accepted

from bayplan.framework.checks import problems_of
from bayplan.testing import Harness, node, pod

HERE = Path(__file__).parent
ROOT = HERE.parents[3]


@cache
def reported() -> dict[str, dict[int, set[str]]]:
    """Error codes by file and line, of both files in one run."""
    files = [str(HERE / "accepted.py"), str(HERE / "rejected.py")]
    options = ["--strict", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    output, problems, _ = api.run([*options, "--follow-imports", "silent", *files])
    assert not problems, problems
    found: dict[str, dict[int, set[str]]] = {"accepted.py": {}, "rejected.py": {}}
    for path, line, code in re.findall(r"^(\S+?):(\d+): error: .*\[([a-z-]+)\]$", output, flags=re.MULTILINE):
        found[Path(path).name].setdefault(int(line), set()).add(code)
    return found


def test_a_proper_plugin_is_accepted() -> None:
    assert reported()["accepted.py"] == {}


def test_five_mistakes_are_reported_where_they_are() -> None:
    lines = (HERE / "rejected.py").read_text().splitlines()
    expected = {
        number: {match[1]}
        for number, line in enumerate(lines, 1)
        if (match := re.search(r"# expected: ([a-z-]+)$", line)) is not None
    }

    assert len(expected) == 5
    assert reported()["rejected.py"] == expected


def test_the_proper_plugin_also_runs() -> None:
    assert [problems_of(kind) for kind in (accepted.Seats, accepted.Bare, accepted.Nested)] == [[], [], []]
    nodes, args = [node("a", labels={"seats": "1"}), node("b")], {"Seats": {"waitSeconds": 5}}

    outcome = Harness(nodes=nodes, plugins=[accepted.Seats, accepted.Bare, accepted.Nested], args=args).schedule(
        pod("p")
    )

    assert outcome.node_name == "a"
    assert outcome.rejections["b"].plugin == "Seats"
