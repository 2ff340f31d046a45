"""Quotas of others cost a pod nothing: objects are read once, use is read where it is asked for."""

from __future__ import annotations

from bayplan.api.meta import Metadata
from bayplan.cache import Cache
from bayplan.cluster.namespace_usage import NamespaceUsage, Used
from bayplan.plugins.community.capacity_scheduling.elastic_quota import ElasticQuota, ElasticQuotaSpec
from bayplan.plugins.community.capacity_scheduling.quotas import QuotaBook, QuotaReader
from bayplan.testing import node, pod


def quota(namespace: str, name: str = "quota", cpu: str = "2") -> ElasticQuota:
    return ElasticQuota(
        metadata=Metadata(name=name, namespace=namespace), spec=ElasticQuotaSpec(min={"cpu": cpu}, max={"cpu": cpu})
    )


class CountedUsage(NamespaceUsage):
    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def of(self, namespace: str) -> Used:
        self.asked.append(namespace)
        return super().of(namespace)


def test_an_object_that_did_not_change_is_not_read_again() -> None:
    reader, kept = QuotaReader(), quota("a")
    first = reader.read([kept, quota("b")])
    second = reader.read([kept, quota("b", cpu="3")])

    assert second["a"] is first["a"]
    assert (first.guaranteed, second.guaranteed) == ({"cpu": 4000}, {"cpu": 5000})
    assert reader.read([quota("c", "z", "1"), quota("c", "a", "7")])["c"].most == {"cpu": 7000}


def test_use_is_read_for_the_namespaces_that_are_asked_about() -> None:
    usage = CountedUsage()
    book = QuotaBook(QuotaReader().read(quota(f"ns-{number}") for number in range(500)), usage)

    assert "ns-7" in book
    assert "elsewhere" not in book
    assert not book.is_over_max("ns-7", {"cpu": 2000})
    assert book.clone().is_over_max("ns-7", {"cpu": 2001})
    assert usage.asked == ["ns-7"]


def test_what_is_guaranteed_follows_quotas_that_change_and_go() -> None:
    reader, kept = QuotaReader(), quota("a")
    first = reader.read([kept, quota("b", cpu="0")])
    steps = ([kept], [kept, quota("b")], [quota("b", "other", "5")], [])
    seen = [reader.read(items).guaranteed for items in steps]

    assert seen == [{"cpu": 2000}, {"cpu": 4000}, {"cpu": 5000}, {}]
    assert first.guaranteed == {"cpu": 2000}


def test_the_use_of_all_quotas_together_is_followed_and_not_added_up_for_every_pod() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    quotas = QuotaReader().read(quota(f"ns-{number}", cpu="1") for number in range(500))
    usage = CountedUsage()
    cache.cluster.namespace_usage = usage
    pods = [cache.info(pod(f"p{number}", cpu=1, node="n1", namespace=f"ns-{number}")) for number in range(499)]
    for info in pods:
        cache.add_pod(info)
    cache.add_pod(pod("outside", cpu=900, node="n1", namespace="elsewhere"))

    book = QuotaBook(quotas, usage)
    assert not book.is_total_over_min({"cpu": 1000})
    assert book.is_total_over_min({"cpu": 1001})
    cache.add_pod(pod("more", cpu=1, node="n1", namespace="ns-3"))
    assert QuotaBook(quotas, usage).is_total_over_min({"cpu": 1})
    cache.remove_pod(pods[7].uid)
    assert not QuotaBook(quotas, usage).is_total_over_min({"cpu": 1000})
    assert usage.asked == []


def test_a_dry_run_changes_the_use_of_all_in_its_own_book_alone() -> None:
    cache = Cache()
    cache.add_node(node("n1"))
    info = cache.add_pod(pod("p", cpu=2, node="n1", namespace="a"))
    book = QuotaBook(QuotaReader().read([quota("a")]), cache.cluster.namespace_usage)
    trial = book.clone()
    trial.remove(info)

    assert (book.is_total_over_min({"cpu": 1}), trial.is_total_over_min({"cpu": 1})) == (True, False)
    assert trial.clone().is_total_over_min({"cpu": 2001})
    trial.add(info)
    assert trial.is_total_over_min({"cpu": 1})
