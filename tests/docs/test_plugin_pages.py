"""The pages of the companion plugins: every configuration in them loads, every object fits its type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from bayplan.config.loading import load_config
from bayplan.config.profiles import resolve_profiles
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology
from bayplan.plugins.intree import default_registry
from tests.docs.markdown import ROOT

PAGES = sorted((ROOT / "docs" / "plugins").glob("*.md"))
TYPES: dict[str, Any] = {
    "ElasticQuota": ElasticQuota,
    "NodeResourceTopology": NodeResourceTopology,
    "PodGroup": PodGroup,
}


def blocks(page: Path) -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_the_page_shows_works(page: Path) -> None:
    for block in blocks(page):
        if block["kind"] == "KubeSchedulerConfiguration":
            assert resolve_profiles(load_config(block), default_registry())
        else:
            msgspec.convert(block, TYPES[block["kind"]])


def test_every_companion_has_a_page_that_says_what_differs() -> None:
    told = {page.stem for page in PAGES if "## What is different from the original" in page.read_text()}

    assert told == {
        "coscheduling",
        "capacity-scheduling",
        "node-resource-topology-match",
        "node-resources-allocatable",
    }
