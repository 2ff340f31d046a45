from __future__ import annotations

from bayplan.api.suggest import closest, did_you_mean


def test_the_closest_name_is_suggested_whatever_its_case() -> None:
    assert closest("nodename", ["NodeName", "NodePorts"]) == "NodeName"
    assert did_you_mean("pre_fliter", ["pre_filter", "score"]) == "did you mean `pre_filter`?"


def test_few_choices_are_listed_and_many_are_not() -> None:
    assert did_you_mean("zzz", ["b", "a"]) == "known are `a`, `b`"
    assert did_you_mean("zzz", [f"name{i}" for i in range(50)]) == ""
    assert did_you_mean("zzz", []) == ""
