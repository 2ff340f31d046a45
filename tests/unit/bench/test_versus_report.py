"""The report: what its tables say, and that its plots are SVG."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

from bench.versus.charts import bars, tidy_step
from bench.versus.records import Growth, Raw, Results, Session
from bench.versus.report import markdown, save
from bench.versus.workload import load_workloads
from tests.unit.bench.runs import a_run

SESSION = "2026-01-01T00:00:00"


def results() -> Results:
    found = Results()
    found.add(Session(session=SESSION, about="two cores"))
    found.add(Raw(session=SESSION, workload="plain", nodes=5000, per_second=1500.0))
    found.add(a_run("kube-scheduler", pods_per_second=300.0, decision_ms=2.5, cpu_life_per_1000=4.0))
    found.add(a_run("bayplan"))
    return found


def row(text: str, start: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.startswith(start))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_row_has_both_sides_their_ratio_and_the_share_of_the_raw_rate() -> None:
    cells = row(markdown(results(), load_workloads()), "| plain | backlog")

    assert cells[2:9] == ["5,000", "3,000", "300", "1,200", "4.0", "1,500", "80%"]
    assert cells[9:11] == ["4.0 / 4.0", "2.500 / 0.100"]


def test_targets_are_counted_and_shown() -> None:
    text = markdown(results(), load_workloads())

    assert "5 of 5 met." in text
    assert "4.00 met (≥ 3)" in text


def test_the_cores_of_every_process_are_shown() -> None:
    cells = row(markdown(results(), load_workloads()), "| plain | backlog | 5,000 | bayplan")

    assert cells[4:] == ["1.00", "0.50", "1.5", "0.60", "1.20", "0.20", "0.04", "0.10"]


def test_a_scheduler_that_was_not_measured_is_a_dash() -> None:
    found = results()
    found.runs[:] = [run for run in found.runs if run.scheduler == "bayplan"]

    assert row(markdown(found, load_workloads()), "| plain | backlog")[4:7] == ["-", "1,200", "-"]


def test_pods_that_were_not_bound_are_said() -> None:
    found = results()
    found.runs.append(a_run("bayplan", bound=2990))

    assert "3,000 (bayplan bound 2,990)" in markdown(found, load_workloads())


def test_arrival_slower_than_asked_for_is_said() -> None:
    found = Results()
    found.add(a_run("bayplan", mode="arrival 200/s", created_per_second=120.0))

    assert "arrival 200/s (came at 120)" in markdown(found, load_workloads())


def test_answers_are_shown_where_somebody_asked_and_the_run_has_a_row_of_its_own() -> None:
    found = results()
    found.add(a_run("bayplan", mode="backlog, asked", answers={"pending": [0.25, 0.02, 0.03]}))
    text = markdown(found, load_workloads())

    assert row(text, "| pending")[1:] == ["3", "30", "250"]
    assert row(text, "| plain | backlog, asked")[4:7] == ["-", "1,200", "-"]


def test_an_empty_report_is_a_report() -> None:
    assert "None could be judged." in markdown(Results(), load_workloads())


def test_everything_is_saved_and_every_plot_is_well_formed(tmp_path: Path) -> None:
    found = results()
    found.add(a_run("bayplan", nodes=500))
    found.add(a_run("bayplan", mode="arrival 200/s", created=[[0.0, 1], [2.0, 3000]]))
    for nodes, cost in ((500, 20.0), (15000, 60.0)):
        found.add(Growth(session=SESSION, workload="template", nodes=nodes, bound_pods=0, decision_us=cost))

    save(tmp_path, found, load_workloads())

    names = {path.name for path in tmp_path.iterdir()}
    assert {"versus.md", "versus.json", "cost-against-nodes.svg", "decision-against-nodes-plain.svg"} <= names
    assert {"plain-5000.svg", "plain-5000-arrival.svg", "pods-per-second-5000.svg"} <= names
    for path in tmp_path.glob("*.svg"):
        assert ElementTree.fromstring(path.read_text()).tag.endswith("svg")
    assert json.loads((tmp_path / "versus.json").read_text())["workloads"][0]["workload"] == "plain"


def test_a_bar_is_as_long_as_its_value() -> None:
    root = ElementTree.fromstring(bars([("plain", {"kube-scheduler": 100.0, "bayplan": 400.0}, 400.0)], "title"))
    widths = [float(each.attrib["width"]) for each in root.iter("{http://www.w3.org/2000/svg}rect")][-2:]

    assert round(widths[1] / widths[0], 2) == 4.0


def test_steps_of_an_axis_are_round_and_reach_far_enough() -> None:
    assert [tidy_step(most) for most in (3000, 15000, 4.9, 100)] == [600, 3000, 1, 20]
