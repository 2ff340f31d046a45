from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from bayplan.config.args import decode_args
from bayplan.config.errors import Problems
from bayplan.framework import Plugin, PluginArgs


class Resource(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str = ""
    weight: int = 1


class Weighted(Plugin):
    class Args(PluginArgs):
        resources: list[Resource] = []
        bind_timeout: timedelta = timedelta(minutes=10)
        mood: str = "good"

        def validate(self) -> list[str]:
            if self.mood == "angry":
                raise ValueError("mood: must not be angry")
            if self.mood == "broken":
                raise KeyError("oops")
            found = [f"resources[{i}].weight: must be 1 to 100" for i, r in enumerate(self.resources) if r.weight > 100]
            return found + (["resources and mood do not go together"] if self.mood == "odd" else [])

    def score(self, state, pod, node):  # type: ignore[no-untyped-def]
        return 1


def decode(given: Any) -> tuple[PluginArgs | None, list[str]]:
    problems = Problems()
    args = decode_args(Weighted, given, path="args", problems=problems)
    return args, [str(problem) for problem in problems.sorted()]


def test_nothing_given_means_the_defaults() -> None:
    assert decode(None) == (Weighted.Args(), [])
    assert decode({}) == (Weighted.Args(), [])


def test_keys_are_camel_case_and_durations_are_durations() -> None:
    args, problems = decode({"bindTimeout": "30s", "resources": [{"name": "cpu"}]})

    assert not problems
    assert args == Weighted.Args(bind_timeout=timedelta(seconds=30), resources=[Resource(name="cpu")])


def test_kind_and_version_may_be_given_in_every_version() -> None:
    for version in ("v1", "v1beta2", "v1beta3"):
        args, problems = decode({"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "WeightedArgs"})
        assert (args, problems) == (Weighted.Args(), [])


def test_a_wrong_kind_or_version_is_refused() -> None:
    _, problems = decode({"apiVersion": "kubescheduler.config.k8s.io/v7", "kind": "Weighted"})

    assert problems == [
        "args.kind: expected `WeightedArgs`, found `Weighted`; or leave it out",
        "args.apiVersion: expected `kubescheduler.config.k8s.io/v1`, found `kubescheduler.config.k8s.io/v7`; "
        "or leave it out",
    ]


def test_sentences_of_the_author_are_put_at_their_path() -> None:
    _, problems = decode({"resources": [{"weight": 1}, {"weight": 101}], "mood": "odd"})

    assert problems == ["args.resources[1].weight: must be 1 to 100", "args: resources and mood do not go together"]


def test_fields_and_sentences_are_reported_together() -> None:
    _, problems = decode({"resources": [{"weight": 101, "nam": "x"}], "bindTimeout": 3})

    assert [text.split(":")[0] for text in problems] == [
        "args.resources[0].nam",
        "args.bindTimeout",
        "args.resources[0].weight",
    ]


def test_an_exception_in_validate_is_a_problem_and_not_a_crash() -> None:
    assert decode({"mood": "angry"}) == (None, ["args.mood: must not be angry"])
    _, problems = decode({"mood": "broken"})
    assert problems == ["args: `validate` of the plugin failed with KeyError: 'oops'"]


def test_arguments_that_are_no_mapping_are_refused() -> None:
    assert decode([1]) == (None, ["args: expected a mapping, found a list"])
