"""In-tree volumes in the words of their CSI drivers."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.unit.plugins.volume_cluster import csi_node, terms, volume

from bayplan.api.node import NodeSelector
from bayplan.api.pod import Volume
from bayplan.plugins.volumes.csi_migration import (
    TranslationError,
    driver_of_provisioner,
    handle_of_inline,
    handle_of_volume,
    inline_plugin,
    is_migratable_provisioner,
    migrated_plugins,
    plugin_of_volume,
    translated_affinity,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"

SOURCES: list[tuple[dict[str, Any], str, str, str]] = [
    ({"awsElasticBlockStore": {"volumeID": "vol-1"}}, "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "vol-1"),
    (
        {"gcePersistentDisk": {"pdName": "d"}},
        "kubernetes.io/gce-pd",
        "pd.csi.storage.gke.io",
        "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    ),
    ({"azureDisk": {"diskName": "d", "diskURI": "u"}}, "kubernetes.io/azure-disk", "disk.csi.azure.com", "u"),
    ({"azureFile": {"shareName": "s"}}, "kubernetes.io/azure-file", "file.csi.azure.com", "s"),
    ({"cinder": {"volumeID": "c"}}, "kubernetes.io/cinder", "cinder.csi.openstack.org", "c"),
    ({"portworxVolume": {"volumeID": "x"}}, "kubernetes.io/portworx-volume", "pxd.portworx.com", "x"),
    ({"vsphereVolume": {"volumePath": "p"}}, "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "p"),
]


@pytest.mark.parametrize(("source", "name", "driver", "handle"), SOURCES)
def test_every_migratable_source_has_a_driver_and_a_handle(
    source: dict[str, Any], name: str, driver: str, handle: str
) -> None:
    inline, stored = msgspec.convert({"name": "v"} | source, Volume), volume("v", **source)
    plugin = inline_plugin(inline)

    assert plugin is not None
    assert plugin is plugin_of_volume(stored)
    assert (plugin.name, plugin.driver) == (name, driver)
    assert handle_of_inline(inline, plugin) == handle
    assert handle_of_volume(stored, plugin) == handle


def test_other_sources_are_not_migratable() -> None:
    assert inline_plugin(msgspec.convert({"name": "v", "rbd": {"image": "i"}}, Volume)) is None
    assert plugin_of_volume(volume("v", csi={"driver": "d", "volumeHandle": "h"})) is None


def test_provisioners_have_a_driver_where_they_are_followed() -> None:
    assert driver_of_provisioner("kubernetes.io/cinder") == "cinder.csi.openstack.org"
    assert driver_of_provisioner("kubernetes.io/azure-file") is None
    assert driver_of_provisioner("csi.x") is None
    assert is_migratable_provisioner("kubernetes.io/azure-file")
    assert not is_migratable_provisioner("csi.x")


def test_a_node_lists_the_plugins_that_it_handed_over() -> None:
    assert migrated_plugins(csi_node("n", migrated="a,b")) == {"a", "b"}
    assert migrated_plugins(csi_node("n")) == frozenset()
    assert migrated_plugins(None) == frozenset()


@pytest.mark.parametrize(
    ("text", "expected"), [("vol-1", "vol-1"), ("aws:///vol-1", "vol-1"), ("aws://us-1a/vol-1/", "vol-1"), ("x", "x")]
)
def test_ebs_ids_lose_their_address(text: str, expected: str) -> None:
    stored = volume("v", awsElasticBlockStore={"volumeID": text})
    plugin = plugin_of_volume(stored)

    assert plugin is not None
    assert handle_of_volume(stored, plugin) == expected


@pytest.mark.parametrize("text", ["aws://", "aws://z/disk-1", "aws://z/vol-1/x"])
def test_other_aws_addresses_are_an_error(text: str) -> None:
    stored = volume("v", awsElasticBlockStore={"volumeID": text})
    plugin = plugin_of_volume(stored)

    assert plugin is not None
    with pytest.raises(TranslationError, match="Invalid format for AWS volume"):
        handle_of_volume(stored, plugin)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({ZONE: "us-1-a"}, "zones/us-1-a"),
        ({BETA_ZONE: "us-1-b", ZONE: "us-1-a"}, "zones/us-1-b"),
        ({BETA_ZONE: "", ZONE: "us-1-a"}, "zones/us-1-a"),
        ({ZONE: "us-1-a__us-1-b"}, "regions/us-1"),
        ({}, "zones/UNSPECIFIED"),
    ],
)
def test_a_gce_volume_is_where_its_labels_say(labels: dict[str, str], expected: str) -> None:
    stored = volume("v", labels=labels, gcePersistentDisk={"pdName": "d"})
    plugin = plugin_of_volume(stored)

    assert plugin is not None
    assert handle_of_volume(stored, plugin) == f"projects/UNSPECIFIED/{expected}/disks/d"


@pytest.mark.parametrize("zones", ["us-1-a__eu-1-a", "us-1-a__odd"])
def test_gce_zones_that_make_no_region_are_an_error(zones: str) -> None:
    stored = volume("v", labels={ZONE: zones}, gcePersistentDisk={"pdName": "d"})
    plugin = plugin_of_volume(stored)

    assert plugin is not None
    with pytest.raises(TranslationError, match="failed to get region from zones"):
        translated_affinity(stored, plugin)


def moved(**parts: Any) -> Any:
    """The translated affinity of an EBS volume, as wire objects."""
    stored = volume("v", awsElasticBlockStore={"volumeID": "vol-1"}, **parts)
    plugin = plugin_of_volume(stored)
    assert plugin is not None
    return msgspec.to_builtins(translated_affinity(stored, plugin))


def selector(affinity: list[dict[str, Any]]) -> Any:
    return msgspec.to_builtins(msgspec.convert({"nodeSelectorTerms": affinity}, NodeSelector))


@pytest.mark.parametrize("key", [ZONE, BETA_ZONE])
def test_zones_in_the_affinity_change_their_key(key: str) -> None:
    assert moved(affinity=terms(key, "a", "b")) == selector(terms(EBS_ZONE, "a", "b"))


def test_the_affinity_speaks_before_the_labels() -> None:
    assert moved(affinity=terms(ZONE, "a"), labels={ZONE: "z"}) == selector(terms(EBS_ZONE, "a"))


def test_zones_in_the_labels_are_added_to_every_term() -> None:
    extra = {"key": EBS_ZONE, "operator": "In", "values": ["a", "b"]}
    disk = terms("disk", "ssd")[0]
    with_zone = {"matchExpressions": [*disk["matchExpressions"], extra]}

    assert moved(labels={ZONE: "b__a__ "}) == selector([{"matchExpressions": [extra]}])
    assert moved(labels={BETA_ZONE: "a__b"}, affinity=[disk, disk]) == selector([with_zone, with_zone])


def test_labels_without_a_zone_change_nothing() -> None:
    assert moved(labels={ZONE: " "}) is None
    assert moved(labels={ZONE: ""}, affinity=terms("disk", "ssd")) == selector(terms("disk", "ssd"))
    assert moved() is None
    assert moved(affinity=[]) == selector([])


def test_a_beta_region_becomes_the_new_one_beside_a_beta_zone() -> None:
    region = terms(BETA_REGION, "r")[0]["matchExpressions"]
    both = [{"matchExpressions": terms(BETA_ZONE, "a")[0]["matchExpressions"] + region}]
    expected = [{"matchExpressions": [*terms(EBS_ZONE, "a")[0]["matchExpressions"]]}]
    expected[0]["matchExpressions"] += terms(REGION, "r")[0]["matchExpressions"]

    assert moved(affinity=both) == selector(expected)


def test_drivers_without_a_zone_label_leave_the_affinity() -> None:
    stored = volume("v", azureDisk={"diskURI": "u"}, affinity=terms(ZONE, "a"), labels={ZONE: "b"})
    plugin = plugin_of_volume(stored)

    assert plugin is not None
    assert msgspec.to_builtins(translated_affinity(stored, plugin)) == selector(terms(ZONE, "a"))
