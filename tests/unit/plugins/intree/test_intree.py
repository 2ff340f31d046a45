"""The list of in-tree plugins."""

from __future__ import annotations

from importlib import import_module

import pytest

from bayplan.framework import Plugin
from bayplan.framework.checks import check_plugin
from bayplan.framework.points import ExtensionPoint, extends
from bayplan.plugins import intree
from bayplan.plugins.intree import INTREE

SECTIONS = (
    "*What it does*:",
    "*Rejects when*:",
    "*Scores by*:",
    "*Retries on*:",
    "*Arguments*:",
    "*Differs from kube-scheduler*:",
)
HERE = [
    "SchedulingGates",
    "PrioritySort",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "DynamicResources",
    "ImageLocality",
    "DefaultBinder",
    "NodeDeclaredFeatures",
]


def load(name: str) -> type[Plugin]:
    kind: type[Plugin] = getattr(import_module(f"{intree.__name__}.{INTREE[name]}"), name)
    return kind


def test_the_order_is_that_of_the_default_profile() -> None:
    assert list(INTREE) == [
        "SchedulingGates",
        "PrioritySort",
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "DefaultPreemption",
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "DefaultBinder",
        "NodeDeclaredFeatures",
    ]


@pytest.mark.parametrize("name", HERE)
def test_a_plugin_is_named_as_listed_and_documented_in_all_sections(name: str) -> None:
    kind = load(name)

    assert issubclass(kind, Plugin)
    assert kind.name == name
    assert [section for section in SECTIONS if section not in (kind.__doc__ or "")] == []


@pytest.mark.parametrize("name", HERE)
def test_filters_and_scores_come_in_both_forms(name: str) -> None:
    kind = load(name)

    assert hasattr(kind, "filter") == hasattr(kind, "filter_nodes") == extends(kind, ExtensionPoint.FILTER)
    assert hasattr(kind, "score") == hasattr(kind, "score_nodes") == extends(kind, ExtensionPoint.SCORE)


@pytest.mark.parametrize("name", HERE)
def test_a_plugin_passes_the_checks_of_registration(name: str) -> None:
    assert check_plugin(load(name)) is load(name)
