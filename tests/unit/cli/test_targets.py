"""What people call pods and nodes on a command line."""

from __future__ import annotations

import pytest

from bayplan.cli.output import CommandError
from bayplan.cli.targets import Target, read_targets


@pytest.mark.parametrize(
    ("words", "targets"),
    [
        (["pod", "web"], [Target("pod", "shop/web")]),
        (["po", "web"], [Target("pod", "shop/web")]),
        (["pods", "a,b", "c"], [Target("pod", "shop/a"), Target("pod", "shop/b"), Target("pod", "shop/c")]),
        (["pod/web"], [Target("pod", "shop/web")]),
        (["pod/other/web"], [Target("pod", "other/web")]),
        (["pod", "other/web"], [Target("pod", "other/web")]),
        (["po/web,no/node-1"], [Target("pod", "shop/web"), Target("node", "node-1")]),
        (["Node", "node-1"], [Target("node", "node-1")]),
    ],
)
def test_kinds_and_names_may_be_written_as_for_kubectl(words: list[str], targets: list[Target]) -> None:
    assert read_targets(words, "shop") == targets


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["pod"], "which pod?"),
        (["pod/"], "which pod?"),
        (["deployment", "web"], "`deployment` is neither a pod nor a node"),
        ([""], "`` names no kind"),
        ([","], "`,` names no kind"),
        (["/web"], "`/web` names no kind"),
        (["shop/web"], "`shop` is neither a pod nor a node"),
    ],
)
def test_what_is_missing_or_unknown_is_said(words: list[str], problem: str) -> None:
    with pytest.raises(CommandError, match="^" + problem.replace("?", r"\?")):
        read_targets(words, "shop")
