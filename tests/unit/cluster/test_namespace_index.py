"""Namespaces by label: few are listed, many are a rule, and both follow the namespaces."""

from __future__ import annotations

from bayplan.api.meta import LabelSelector
from bayplan.api.selectors import compile_selector
from bayplan.api.workload import Namespace
from bayplan.cluster.namespace_index import SelectedNamespaces
from bayplan.cluster.state import ClusterState
from bayplan.testing import namespace, selector

_NONE: frozenset[str] = frozenset()


def cluster_of(count: int) -> ClusterState:
    cluster = ClusterState()
    for number in range(count):
        cluster.objects.put(namespace(f"n{number}", labels={"team": f"t{number % 5}", "name": f"n{number}"}))
    return cluster


def selected(
    cluster: ClusterState, names: frozenset[str], wanted: LabelSelector
) -> frozenset[str] | SelectedNamespaces:
    return cluster.namespaces.select(names, compile_selector(wanted))


def test_those_that_are_named_or_selected_are_listed() -> None:
    cluster = cluster_of(10)

    assert selected(cluster, frozenset({"x"}), selector({"team": "t1"})) == {"x", "n1", "n6"}
    assert selected(cluster, _NONE, selector(is_in={"name": ["n3", "n4", "no"]}, not_in={"team": ["t4"]})) == {"n3"}
    assert selected(cluster, _NONE, selector({"team": "t1"}, exists=["absent"])) == _NONE


def test_a_namespace_that_changes_or_goes_is_followed_and_leaves_nothing() -> None:
    cluster = cluster_of(10)
    cluster.objects.put(namespace("n1", labels={"team": "t2"}))
    cluster.objects.remove(namespace("n6"))

    assert selected(cluster, _NONE, selector({"team": "t1"})) == _NONE
    assert selected(cluster, _NONE, selector({"team": "t2"})) == {"n1", "n2", "n7"}

    for item in list(cluster.objects.list(Namespace)):
        cluster.objects.remove(item)
    assert not cluster.namespaces._names and not cluster.namespaces._with_key


def test_many_are_a_rule_and_not_a_set() -> None:
    """A thousand terms that each select nearly all of ten thousand namespaces would be ten million names."""
    cluster = cluster_of(1000)
    wanted = selector(exists=["name"], not_in={"name": ["n7"]})
    found = selected(cluster, frozenset({"x"}), wanted)

    assert isinstance(found, SelectedNamespaces)
    assert "x" in found and "n8" in found
    assert "n7" not in found and "unknown" not in found
    assert found == selected(cluster, frozenset({"x"}), wanted) and found.is_current
    assert found != selected(cluster, _NONE, wanted)

    cluster.objects.put(namespace("n8"))
    assert not found.is_current
    assert found != selected(cluster, frozenset({"x"}), wanted)


def test_a_narrow_requirement_is_looked_up_beside_a_wide_one() -> None:
    cluster = cluster_of(1000)

    assert selected(cluster, _NONE, selector({"name": "n7"}, exists=["team"])) == {"n7"}
