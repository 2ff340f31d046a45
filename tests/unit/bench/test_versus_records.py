"""Lines of results: nothing is lost, sessions are not mixed."""

from __future__ import annotations

from pathlib import Path

from bench.versus.records import FILE, Growth, Raw, Results, Session, append, medians, read
from tests.unit.bench.runs import a_run

KEY = ("plain", "backlog", 5000)


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    run = a_run(timeline=[], created=[])
    raw = Raw(session=run.session, workload="plain", nodes=5000, per_second=1500.0)
    grown = Growth(session=run.session, workload="template", nodes=500, bound_pods=0, decision_us=40.0)
    session = Session(session=run.session, about="a machine")
    for record in (session, raw, run, grown):
        append(tmp_path, record)

    results = read(tmp_path)

    assert (results.runs, results.raw, results.growth, results.sessions) == ([run], [raw], [grown], [session])
    assert results.about() == "- a machine"


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    append(tmp_path, a_run())
    with (tmp_path / FILE).open("a") as file:
        file.write('{"kind": "run", "sess')

    assert len(read(tmp_path).runs) == 1


def test_no_file_is_no_results(tmp_path: Path) -> None:
    assert read(tmp_path).runs == []


def test_the_newest_session_counts(tmp_path: Path) -> None:
    append(tmp_path, a_run(session="1", pods_per_second=1.0))
    append(tmp_path, a_run(session="2", pods_per_second=2.0))

    assert [run.session for run in read(tmp_path).newest(KEY)] == ["2"]


def test_a_session_with_both_schedulers_counts_before_a_newer_one_with_one(tmp_path: Path) -> None:
    append(tmp_path, a_run("bayplan", session="1"))
    append(tmp_path, a_run("kube-scheduler", session="1"))
    append(tmp_path, a_run("bayplan", session="2"))

    results = read(tmp_path)

    assert {run.session for run in results.newest(KEY)} == {"1"}
    assert len(results.of(KEY, "bayplan")) == 1


def test_the_raw_rate_is_the_median_of_the_same_session(tmp_path: Path) -> None:
    append(tmp_path, a_run(session="2"))
    for session, rate in (("1", 9.0), ("2", 100.0), ("2", 300.0), ("2", 200.0)):
        append(tmp_path, Raw(session=session, workload="plain", nodes=5000, per_second=rate))

    assert read(tmp_path).raw_rate(KEY) == 200.0
    assert read(tmp_path).raw_rate(("other", "backlog", 5000)) == 0.0


def test_medians_are_taken_figure_by_figure() -> None:
    runs = [a_run(pods_per_second=rate, peak_mib=300 - rate) for rate in (100.0, 200.0, 120.0)]

    assert medians(runs)["pods_per_second"] == 120.0
    assert medians(runs)["peak_mib"] == 180.0
    assert medians(runs)["cpu_window_per_1000"] == 0.5
    assert medians([]) == {}


def test_workloads_that_wait_for_something_count_from_the_start() -> None:
    found = Results()
    found.add(a_run(pods_per_second=80.0))
    found.add(Raw(session="2026-01-01T00:00:00", workload="plain", nodes=5000, per_second=1500.0))
    whole = found.counted_whole({"plain"})

    assert whole.runs[0].pods_per_second == 3000 / 4.0
    assert not whole.raw
    assert found.counted_whole(set()) == found
