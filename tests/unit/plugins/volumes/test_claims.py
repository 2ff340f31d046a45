"""The claims of a pod."""

from __future__ import annotations

import msgspec
from tests.unit.plugins.small_cluster import SmallCluster, pod_object
from tests.unit.plugins.volume_cluster import BOUND, claim, uses, volume

from bayplan.plugins.volumes.claims import (
    claim_class,
    is_bound,
    is_for_pod,
    is_volume_of,
    names_claim,
    pod_claims,
    uses_claim,
    volume_class,
)

BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def test_claims_are_named_or_made_for_ephemeral_volumes() -> None:
    volumes = [*uses("c"), {"name": "e", "ephemeral": {}}, {"name": "d", "iscsi": {"iqn": "q"}}]
    pod = SmallCluster().pod(volumes=volumes)

    assert [(used.name, used.is_ephemeral) for used in pod_claims(pod)] == [("c", False), ("p-e", True)]
    assert uses_claim(pod, claim("c"))
    assert uses_claim(pod, claim("p-e"))
    assert names_claim(pod, claim("c"))
    assert not names_claim(pod, claim("p-e"))
    assert not uses_claim(pod, claim("c", namespace="other"))
    assert not names_claim(pod, claim("c", namespace="other"))


def test_pods_of_one_template_have_ephemeral_claims_of_their_own() -> None:
    cluster, volumes = SmallCluster(), [{"name": "e", "ephemeral": {}}]
    first, second = cluster.pod("a", volumes=volumes), cluster.pod("b", volumes=volumes)

    assert pod_claims(first)[0].name == "a-e"
    assert pod_claims(second)[0].name == "b-e"


def test_ownership_is_by_uid_of_the_controller() -> None:
    pod = SmallCluster().pod()

    assert is_for_pod(pod, claim("c", owner="uid-p"))
    assert not is_for_pod(pod, claim("c", owner="uid-q"))
    assert not is_for_pod(pod, claim("c"))
    assert not is_for_pod(pod, claim("c", owner="uid-p", namespace="other"))


def test_a_pod_without_a_uid_owns_no_claim() -> None:
    bare = pod_object()
    bare.metadata.uid = ""
    pod = SmallCluster().cache.info(bare)

    assert not is_for_pod(pod, claim("c", owner="default/p"))


def test_bound_means_named_and_completed() -> None:
    assert is_bound(claim("c", bound_to="v"))
    assert not is_bound(claim("c", volumeName="v"))
    assert not is_bound(claim("c", annotations=BOUND))


def test_the_beta_annotation_names_the_class_first() -> None:
    metadata = msgspec.structs.replace(volume("v").metadata, annotations={BETA_CLASS: "old"})

    assert claim_class(claim("c")) == "fast"
    assert claim_class(claim("c", storage_class=None)) == ""
    assert claim_class(claim("c", annotations={BETA_CLASS: ""})) == ""
    assert volume_class(volume("v")) == "fast"
    assert volume_class(msgspec.structs.replace(volume("v"), metadata=metadata)) == "old"


def test_a_volume_belongs_to_the_claim_that_it_refers_to() -> None:
    assert is_volume_of(volume("v", claim="c"), claim("c"))
    assert is_volume_of(volume("v", claim="c:uid-c"), claim("c"))
    assert not is_volume_of(volume("v", claim="c:other"), claim("c"))
    assert not is_volume_of(volume("v", claim="d"), claim("c"))
    assert not is_volume_of(volume("v", claim="c"), claim("c", namespace="other"))
    assert not is_volume_of(volume("v"), claim("c"))
