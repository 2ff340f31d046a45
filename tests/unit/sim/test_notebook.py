"""`bayplan.simulate` in Python."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import bayplan

EXAMPLES = Path(__file__).parents[3] / "examples" / "simulate"


def _run() -> Any:
    return bayplan.simulate(
        EXAMPLES / "workload.yaml",
        cluster=EXAMPLES / "cluster.yaml",
        policies={"default": None, "packed": EXAMPLES / "packed.yaml"},
        until="20m",
    )


def test_policies_are_compared_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _run()
    divergence = found.divergence("packed")

    assert list(found.measures) == ["default", "packed"]
    assert found["packed"].measures["pods.bound"] >= 24
    assert divergence.choices[1].variant == "packed"
    assert found._repr_html_().startswith("<!doctype html>")


def test_samples_and_decisions_are_frames_of_the_library_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    library = ModuleType("pandas")
    library.DataFrame = list  # type: ignore[attr-defined]  # stands in for the real one
    monkeypatch.setitem(sys.modules, "pandas", library)
    found = _run()

    assert {"variant", "time", "pending", "allocated.cpu"} <= found.samples()[0].keys()
    assert found.decisions()[0]["pod"] == "default/web-0-1"


def test_without_a_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ImportError, match="install pandas or polars"):
        _run().samples()


def test_other_names_of_the_package_are_missing() -> None:
    with pytest.raises(AttributeError, match="simulte"):
        bayplan.simulte  # noqa: B018 - reading it is the test
