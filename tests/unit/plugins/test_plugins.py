"""The lists of plugins that come with Bayplan."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

from bayplan.framework import Plugin
from bayplan.framework.checks import check_plugin
from bayplan.framework.points import ExtensionPoint, defines, extends
from bayplan.plugins import community, intree
from bayplan.plugins.intree import INTREE, default_registry
from bayplan.plugins.shipped import COMMUNITY

SECTIONS = (
    "*What it does*:",
    "*Rejects when*:",
    "*Scores by*:",
    "*Retries on*:",
    "*Arguments*:",
    "*Differs from kube-scheduler*:",
)


def load(name: str) -> type[Plugin]:
    kind: type[Plugin] = getattr(import_module(f"{intree.__name__}.{INTREE[name]}"), name)
    return kind


def test_the_default_profile_is_that_of_the_binary() -> None:
    """Order and weights of kube-scheduler 1.36."""
    assert default_registry().defaults == (
        ("SchedulingGates", 0),
        ("PrioritySort", 0),
        ("NodeUnschedulable", 0),
        ("NodeName", 0),
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodePorts", 0),
        ("NodeResourcesFit", 1),
        ("VolumeRestrictions", 0),
        ("NodeVolumeLimits", 0),
        ("VolumeBinding", 0),
        ("VolumeZone", 0),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("DefaultPreemption", 0),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("DefaultBinder", 0),
        ("NodeDeclaredFeatures", 0),
    )


@pytest.mark.parametrize("name", INTREE)
def test_a_plugin_is_named_as_listed_and_documented_in_all_sections(name: str) -> None:
    kind = load(name)

    assert issubclass(kind, Plugin)
    assert kind.name == name
    assert [section for section in SECTIONS if section not in (kind.__doc__ or "")] == []


@pytest.mark.parametrize("name", INTREE)
def test_filters_come_in_both_forms_and_scores_in_columns(name: str) -> None:
    kind = load(name)

    assert defines(kind, "filter") == defines(kind, "filter_nodes") == extends(kind, ExtensionPoint.FILTER)
    assert defines(kind, "score_nodes") == extends(kind, ExtensionPoint.SCORE)


@pytest.mark.parametrize("name", INTREE)
def test_a_plugin_passes_the_checks_of_registration(name: str) -> None:
    assert check_plugin(load(name)) is load(name)


@pytest.mark.parametrize(
    ("folder", "modules"),
    [(intree, set(INTREE.values())), (community, {target.partition(":")[0] for target in COMMUNITY.values()})],
    ids=["intree", "community"],
)
def test_the_folder_lists_plugins_and_nothing_else(folder: ModuleType, modules: set[str]) -> None:
    found = {name for path in folder.__path__ for _, name, _ in iter_modules([path])}

    assert found == modules
