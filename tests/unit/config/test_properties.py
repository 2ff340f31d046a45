"""Random configurations: valid ones survive writing and reading, broken ones never do more than raise ConfigError."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.config import ConfigError, load_config, resolve_profiles
from bayplan.config.effective import effective_dict
from bayplan.config.profiles import ResolvedProfile

from .support import INTREE, registry

REGISTRY = registry()
NAMES = st.sampled_from(sorted(INTREE))
POINTS = ("preFilter", "filter", "preScore", "score", "multiPoint")


@st.composite
def plugin_sets(draw: st.DrawFn, point: str) -> dict[str, Any]:
    fitting = sorted(name for name, points in INTREE.items() if point == "multiPoint" or point in points.split())
    enabled = draw(st.lists(st.sampled_from(fitting), unique=True, max_size=4))
    disabled = draw(st.lists(st.sampled_from([*fitting, *([] if point == "multiPoint" else ["*"])]), max_size=3))
    fixed = {"PrioritySort", "DefaultBinder"}
    weights = st.integers(0, 100)
    return {
        "enabled": [{"name": name, "weight": draw(weights)} for name in enabled],
        "disabled": [{"name": name} for name in disabled if name not in fixed],
    }


@st.composite
def profiles(draw: st.DrawFn, name: str) -> dict[str, Any]:
    profile: dict[str, Any] = {"schedulerName": name}
    points = draw(st.lists(st.sampled_from(POINTS), unique=True, max_size=3))
    profile["plugins"] = {point: draw(plugin_sets(point)) for point in points}
    if draw(st.booleans()):
        profile["percentageOfNodesToScore"] = draw(st.integers(0, 100))
    if draw(st.booleans()):
        args = {"ignoredResources": draw(st.lists(st.sampled_from(["a.b/c", "d.e/f"]), max_size=2))}
        profile["pluginConfig"] = [{"name": "NodeResourcesFit", "args": args}]
    return profile


@st.composite
def configs(draw: st.DrawFn) -> dict[str, Any]:
    names = draw(st.lists(st.from_regex(r"[a-z]{1,8}", fullmatch=True), unique=True, max_size=3))
    retry = draw(st.integers(1, 100))
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "parallelism": draw(st.integers(1, 2**31 - 1)),
        "percentageOfNodesToScore": draw(st.integers(0, 100)),
        "leaderElection": {
            "leaderElect": draw(st.booleans()),
            "retryPeriod": f"{retry}ms",
            "renewDeadline": f"{retry * 2}ms",
            "leaseDuration": f"{retry * 3}ms",
        },
        "clientConnection": {"qps": draw(st.floats(0.5, 1e6)), "burst": draw(st.integers(1, 10**6))},
        "profiles": [draw(profiles(name)) for name in names],
    }
    if draw(st.booleans()):
        config["extenders"] = [{"urlPrefix": "http://x", "filterVerb": "f", "httpTimeout": "1500ms"}]
    return config


def essence(profile: ResolvedProfile) -> tuple[Any, ...]:
    return profile.scheduler_name, profile.points, profile.weights, profile.args


@settings(max_examples=80, deadline=None)
@given(configs())
def test_valid_configurations_survive_writing_and_reading(document: dict[str, Any]) -> None:
    config = load_config(document)
    resolved = resolve_profiles(config, REGISTRY)
    again = load_config(yaml.safe_dump(config.to_dict(redact=False)))
    effective = load_config(json.dumps(effective_dict(config, resolved, redact=False)))

    assert again.to_dict() == config.to_dict()
    assert list(map(essence, resolve_profiles(again, REGISTRY))) == list(map(essence, resolved))
    assert list(map(essence, resolve_profiles(effective, REGISTRY))) == list(map(essence, resolved))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
    st.sampled_from(["*", "15s", "-1s", "NodeName", "SelectorSpread", 10**30, {"name": "X"}, [{"name": "X"}]]),
)


def mutate(node: Any, junk: Any, chance: random.Random) -> Any:
    """Put junk, or a junk key, somewhere into a document."""
    inner = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
    if not inner or chance.random() < 0.2:
        if isinstance(node, dict) and chance.random() < 0.5:
            return {**node, str(junk)[:8]: junk}
        return junk
    key = chance.choice(inner)
    node[key] = mutate(node[key], junk, chance)
    return node


def is_resolved_or_refused(given_: dict[str, Any] | str) -> bool:
    """Whether a configuration has profiles that run, or problems that are named; any other exception is passed on."""
    try:
        return bool(resolve_profiles(load_config(given_), REGISTRY))
    except ConfigError as error:
        return all(problem.message for problem in error.problems) and bool(error.problems)


@settings(max_examples=300, deadline=None)
@given(configs(), st.lists(JUNK, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_broken_configurations_raise_config_errors_and_nothing_else(
    document: dict[str, Any], junk: list[Any], chance: random.Random
) -> None:
    for item in junk:
        document = mutate(copy.deepcopy(document), copy.deepcopy(item), chance)
    for given_ in (document, json.dumps(document), yaml.safe_dump(document)):
        if isinstance(given_, dict | str):
            assert is_resolved_or_refused(given_)


@settings(max_examples=200, deadline=None)
@given(configs(), st.randoms(use_true_random=False), st.text(max_size=3))
def test_broken_text_raises_config_errors_and_nothing_else(
    document: dict[str, Any], chance: random.Random, noise: str
) -> None:
    text = yaml.safe_dump(document)
    start = chance.randrange(len(text))
    text = text[:start] + noise + text[start + chance.randrange(20) :]

    assert is_resolved_or_refused(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_raises_config_errors_and_nothing_else(text: str) -> None:
    assert is_resolved_or_refused(text)
