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
    assert found.page().startswith("<!doctype html>")


def test_samples_and_decisions_are_frames_of_pandas() -> None:
    import pandas

    found = _run()
    samples, decisions = found.samples(), found.decisions()

    assert isinstance(samples, pandas.DataFrame)
    assert {"variant", "time", "pending", "allocated.cpu"} <= set(samples.columns)
    assert (
        samples[samples.variant == "packed"]["allocated.cpu"].iloc[-1] == found["packed"].samples[-1].allocated["cpu"]
    )
    assert decisions["pod"].iloc[0] == "default/web-0-1"
    assert len(decisions) == sum(len(outcome.decisions) for outcome in found.outcomes.values())


class FakePolars(ModuleType):
    """Stands in for a library of 50 MB."""

    class DataFrame(list[Any]):
        def __init__(self, rows: list[Any], infer_schema_length: object) -> None:
            assert infer_schema_length is None
            super().__init__(rows)

        def write_parquet(self, file: Any) -> None:
            file.write(b"PAR1")


def test_where_pandas_is_missing_they_are_frames_of_polars(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", FakePolars("polars"))
    found = _run()
    found.write_parquet(tmp_path / "samples.parquet")

    rows = found.samples()
    assert isinstance(rows, FakePolars.DataFrame)
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert found.decisions()[0]["victims"] == []
    assert (tmp_path / "samples.parquet").read_bytes() == b"PAR1"


def test_parquet_without_a_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ValueError, match="Parquet needs polars or pyarrow"):
        _run().write_parquet(tmp_path / "samples.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_shows_the_page_and_each_plot_in_frames() -> None:
    found = _run()
    plots = found.plots()

    assert found._repr_html_().startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert next(iter(plots)) == "cpu allocated (%)"
    assert "pods on another node than by default, so far" in plots
    for title, plot in plots.items():
        assert plot.plot.figure in found.page()
        assert plot._repr_html_().startswith("<iframe srcdoc=")
        assert plot.svg.startswith("<svg ") and 'xmlns="http' in plot.svg, title


def test_without_a_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(ImportError, match="install pandas or polars"):
        _run().samples()


def test_other_names_of_the_package_are_missing() -> None:
    with pytest.raises(AttributeError, match="simulte"):
        bayplan.simulte  # noqa: B018 - reading it is the test
