"""The controllers in manifests: where they are asked for, for the kinds that the plugins use, with their own rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.companions.world import configuration

from bayplan.app.controllers.status_controllers import PERMISSIONS, permissions_for
from bayplan.deploy.bundle import Bundle, load_bundle
from bayplan.deploy.crds import crd_document
from bayplan.deploy.manifests import ManifestOptions, manifests
from bayplan.deploy.rbac import merged_rules
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota
from bayplan.plugins.community.coscheduling.pod_group import PodGroup
from bayplan.plugins.community.node_resource_topology_match.node_resource_topology import NodeResourceTopology


def _bundle(folder: Path, *plugins: str, disabled: tuple[str, ...] = ()) -> Bundle:
    path = folder / "config.yaml"
    path.write_text(configuration(*plugins, disabled=disabled))
    return load_bundle(path, (), name="gangs")


@pytest.fixture
def gangs(tmp_path: Path) -> Bundle:
    return _bundle(tmp_path, "Coscheduling", disabled=("PrioritySort",))


def _documents(bundle: Bundle, **options: Any) -> dict[tuple[str, str], Any]:
    documents = manifests(bundle, ManifestOptions(**options))
    return {(document["kind"], document["metadata"]["name"]): document for document in documents}


def _resources(role: Any) -> set[str]:
    return {resource for rule in role["rules"] for resource in rule["resources"]}


def test_nobody_writes_status_unless_asked_to(gangs: Bundle) -> None:
    documents = _documents(gangs)

    assert [name for kind, name in documents if kind == "Deployment"] == ["gangs"]
    assert "podgroups/status" not in _resources(documents["ClusterRole", "bayplan:kube-system:gangs"])


def test_the_rules_of_the_deployment_are_those_that_the_controllers_declare(gangs: Bundle) -> None:
    role = _documents(gangs, controllers="deployment")["ClusterRole", "bayplan:kube-system:gangs-controllers"]

    assert role["rules"] == merged_rules(permissions_for([PodGroup]))


def test_the_deployment_cares_for_the_kinds_of_the_enabled_plugins_only(tmp_path: Path, gangs: Bundle) -> None:
    documents = _documents(gangs, controllers="deployment")
    [container] = documents["Deployment", "gangs-controllers"]["spec"]["template"]["spec"]["containers"]

    assert container["command"] + container["args"] == ["bayplan", "controllers", "--kind=PodGroup"]
    assert ("CustomResourceDefinition", "elasticquotas.scheduling.x-k8s.io") not in documents
    both = _bundle(tmp_path, "Coscheduling", "CapacityScheduling", disabled=("PrioritySort",))
    role = _documents(both, controllers="deployment")["ClusterRole", "bayplan:kube-system:gangs-controllers"]
    assert role["rules"] == merged_rules(PERMISSIONS)


def test_beside_plugins_that_use_neither_both_are_cared_for(tmp_path: Path) -> None:
    documents = _documents(_bundle(tmp_path, "ScoreByLabel"), controllers="deployment")

    [container] = documents["Deployment", "gangs-controllers"]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--kind=PodGroup", "--kind=ElasticQuota"]


def test_the_scheduler_that_carries_them_may_do_what_they_do(gangs: Bundle) -> None:
    documents = _documents(gangs, controllers="scheduler")
    [container] = documents["Deployment", "gangs"]["spec"]["template"]["spec"]["containers"]

    assert "--with-controllers" in container["args"]
    assert "podgroups/status" in _resources(documents["ClusterRole", "bayplan:kube-system:gangs"])
    assert ("Deployment", "gangs-controllers") not in documents


def test_two_replicas_elect_a_leader_under_a_lease_of_their_own(gangs: Bundle) -> None:
    documents = _documents(gangs, controllers="deployment", replicas=2, namespace="sched")
    template = documents["Deployment", "gangs-controllers"]["spec"]["template"]

    assert "--leader-elect-resource-name=gangs-controllers" in template["spec"]["containers"][0]["args"]
    assert documents["Role", "gangs-controllers-lease"]["rules"][1]["resourceNames"] == ["gangs-controllers"]
    scheduler = documents["Deployment", "gangs"]["spec"]["selector"]["matchLabels"]
    assert not scheduler.items() <= template["metadata"]["labels"].items()


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (PodGroup, ["Phase", "MinMember", "Running", "Succeeded", "Failed", "Age"]),
        (ElasticQuota, ["Used", "Max", "Age"]),
        (NodeResourceTopology, []),
    ],
)
def test_definitions_have_the_columns_and_the_approval_of_the_originals(kind: type[Any], columns: list[str]) -> None:
    document = crd_document(kind)
    [version] = document["spec"]["versions"]

    assert [column["name"] for column in version.get("additionalPrinterColumns", ())] == columns
    assert document["metadata"]["annotations"]["api-approved.kubernetes.io"].startswith("https://github.com/kubernetes")
