"""Odd pods: what outside input can look like when it was not validated. A plugin must answer, not raise."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.api.meta import LabelSelector, LabelSelectorRequirement, Metadata, OwnerReference
from bayplan.api.node import NodeSelectorRequirement, NodeSelectorTerm
from bayplan.api.pod import Affinity, NodeAffinity, Pod, PodAffinity, PodSpec, Toleration, Volume
from bayplan.testing.build import container, pod
from bayplan.testing.parts import HOSTNAME, ZONE, apart, near, node_term, port, require_nodes, selector, spread

__all__ = ["ODD_PODS"]


def _bare() -> Pod:
    return Pod(metadata=Metadata(name="odd", namespace="default", uid="odd"))


def _no_containers() -> Pod:
    return pod("odd", containers=[])


def _huge_requests() -> Pod:
    return pod("odd", cpu="9223372036854775807", memory="8Ei", requests={"example.com/gpu": 10**18})


def _zero_requests() -> Pod:
    return pod("odd", cpu=0, memory=0, requests={"example.com/gpu": 0})


def _many_resources() -> Pod:
    return pod("odd", requests={f"example.com/r{number}": 1 for number in range(40)})


def _many_labels() -> Pod:
    return pod("odd", labels={f"key-{number}": "x" * 63 for number in range(200)})


def _empty_parts() -> Pod:
    return Pod(
        metadata=Metadata(name="odd", namespace="default", uid="odd", labels={}, owner_references=[]),
        spec=PodSpec(
            containers=[],
            init_containers=[],
            node_selector={},
            affinity=Affinity(node_affinity=NodeAffinity(), pod_affinity=PodAffinity()),
            tolerations=[],
            topology_spread_constraints=[],
            volumes=[],
        ),
    )


def _selector_without_terms() -> Pod:
    return pod("odd", affinity=require_nodes())


def _contradicting_names() -> Pod:
    fields = [NodeSelectorRequirement(key="metadata.name", operator="In", values=[name]) for name in ("a", "b")]
    return pod("odd", affinity=require_nodes(NodeSelectorTerm(match_fields=fields)))


def _unknown_operators() -> Pod:
    broken = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key="zone", operator="Near", values=["a"])])
    return pod("odd", affinity=require_nodes(broken), tolerations=[Toleration(operator="Almost")])


def _unreadable_terms() -> Pod:
    broken = LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Near")])
    return pod("odd", affinity=[near(ZONE, broken), apart(HOSTNAME, broken, weight=3)])


def _selects_itself_away() -> Pod:
    return pod("odd", labels={"app": "odd"}, affinity=[near(ZONE, {"app": "odd"}), apart(ZONE, {"app": "odd"})])


def _topology_of_no_node() -> Pod:
    everything = selector()
    return pod("odd", spread=[spread("no/such-key", everything)], affinity=near("no/other-key", everything))


def _same_port_twice() -> Pod:
    return pod("odd", host_ports=[80, 80, port(80, protocol=""), port(80, address="not an address")])


def _claims_that_are_missing() -> Pod:
    return pod("odd", volumes=["nowhere", "nowhere", Volume(name="empty")])


def _owner_that_is_gone() -> Pod:
    return pod("odd", owner=OwnerReference(kind="ReplicaSet", name="gone", api_version="apps/v1", controller=True))


def _pinned_to_a_ghost() -> Pod:
    return pod("odd", affinity=require_nodes(node_term(name="ghost")))


def _nominated_to_a_ghost() -> Pod:
    return pod("odd", nominated="ghost", priority=2**31 - 1)


def _lowest_priority() -> Pod:
    return pod("odd", priority=-(2**31), preemption_policy="Never")


def _leaving() -> Pod:
    return pod("odd", terminating=True)


def _unicode() -> Pod:
    return pod("ødd", namespace="näme", labels={"ключ": "値"}, containers=[container("☃", image="")])


ODD_PODS: dict[str, Callable[[], Pod]] = {
    function.__name__.strip("_").replace("_", " "): function
    for function in (
        _bare,
        _no_containers,
        _huge_requests,
        _zero_requests,
        _many_resources,
        _many_labels,
        _empty_parts,
        _selector_without_terms,
        _contradicting_names,
        _unknown_operators,
        _unreadable_terms,
        _selects_itself_away,
        _topology_of_no_node,
        _same_port_twice,
        _claims_that_are_missing,
        _owner_that_is_gone,
        _pinned_to_a_ghost,
        _nominated_to_a_ghost,
        _lowest_priority,
        _leaving,
        _unicode,
    )
}
"""By what is odd about them; each call makes a new one."""
