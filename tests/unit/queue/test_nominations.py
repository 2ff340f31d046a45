from __future__ import annotations

from tests.unit.queue.kit import make_pod

from bayplan.api.pod import Pod
from bayplan.cluster.pod_info import PodInfo
from bayplan.queue.nominations import Nominations


class Server:
    def __init__(self, *infos: PodInfo) -> None:
        self.pods = {(info.namespace, info.name): info.pod for info in infos}

    def get(self, namespace: str, name: str) -> Pod | None:
        return self.pods.get((namespace, name))


def names(nominator: Nominations, node: str) -> list[str]:
    return [info.name for info in nominator.nominated_pods(node)]


def test_a_pod_is_nominated_to_the_given_node() -> None:
    info = make_pod()
    nominator = Nominations(Server(info).get)

    nominator.add(info, "n1")

    assert nominator.nominated_pods("n1") == [info]
    assert list(nominator.nominated_nodes()) == ["n1"]
    assert nominator.node_of(info.uid) == "n1"
    assert len(nominator) == 1


def test_without_a_given_node_the_status_decides() -> None:
    nominated, plain = make_pod("nominated", nominated="n2"), make_pod("plain")
    nominator = Nominations(Server(nominated, plain).get)

    nominator.add(nominated)
    nominator.add(plain)

    assert names(nominator, "n2") == ["nominated"]
    assert nominator.node_of(plain.uid) == ""


def test_a_given_node_overrides_the_status() -> None:
    info = make_pod(nominated="n2")
    nominator = Nominations(Server(info).get)

    nominator.add(info, "n1")

    assert (names(nominator, "n1"), names(nominator, "n2")) == (["pod"], [])


def test_an_empty_node_withdraws_the_nomination() -> None:
    info = make_pod(nominated="n2")
    nominator = Nominations(Server(info).get)
    nominator.add(info)

    nominator.add(info, "")

    assert list(nominator.nominated_nodes()) == []
    assert len(nominator) == 0


def test_a_new_nomination_replaces_the_old_one() -> None:
    info = make_pod()
    nominator = Nominations(Server(info).get)

    nominator.add(info, "n1")
    nominator.add(info, "n2")

    assert list(nominator.nominated_nodes()) == ["n2"]


def test_a_pod_that_is_gone_or_bound_is_not_nominated() -> None:
    gone, bound = make_pod("gone"), make_pod("bound")
    nominator = Nominations(Server(make_pod("bound", node="n9")).get)

    nominator.add(gone, "n1")
    nominator.add(bound, "n1")

    assert len(nominator) == 0


def test_pods_of_a_node_are_in_order_of_nomination() -> None:
    infos = [make_pod(name) for name in "cab"]
    nominator = Nominations(Server(*infos).get)
    for info in infos:
        nominator.add(info, "n1")

    nominator.update(infos[0], infos[0])

    assert names(nominator, "n1") == ["a", "b", "c"]


def test_an_update_without_nomination_keeps_what_memory_holds_and_takes_the_new_object() -> None:
    old, new = make_pod(), make_pod(labels={"new": "yes"})
    nominator = Nominations(Server(old).get)
    nominator.add(old, "n1")

    nominator.update(old, new)

    assert nominator.nominated_pods("n1") == [new]


def test_an_update_that_adds_changes_or_removes_the_nomination_is_followed() -> None:
    plain, first, second = make_pod(), make_pod(nominated="n1"), make_pod(nominated="n2")
    nominator = Nominations(Server(plain).get)

    nominator.update(plain, first)
    assert list(nominator.nominated_nodes()) == ["n1"]
    nominator.update(first, second)
    assert list(nominator.nominated_nodes()) == ["n2"]
    nominator.update(second, plain)
    assert list(nominator.nominated_nodes()) == []


def test_deleting_leaves_the_others_and_forgets_empty_nodes() -> None:
    first, second = make_pod("first"), make_pod("second")
    nominator = Nominations(Server(first, second).get)
    nominator.add(first, "n1")
    nominator.add(second, "n1")

    nominator.delete(first)
    nominator.delete(first)
    assert names(nominator, "n1") == ["second"]
    nominator.delete(second)
    assert list(nominator.nominated_nodes()) == []
    assert names(nominator, "n1") == []


def test_the_list_handed_out_is_the_callers() -> None:
    info = make_pod()
    nominator = Nominations(Server(info).get)
    nominator.add(info, "n1")

    nominator.nominated_pods("n1").clear()

    assert names(nominator, "n1") == ["pod"]
