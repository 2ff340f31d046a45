"""Lists: selectors, paging, versions, tables."""

from __future__ import annotations

import pytest

from tests.apiconformance.client import TABLE, ApiClient, config_map, pod

PAGES = 7


@pytest.fixture
def seven(api: ApiClient, namespace: str) -> str:
    """Seven secrets, which nothing else creates."""
    path = f"/api/v1/namespaces/{namespace}/secrets"
    for index in range(PAGES):
        labels = {"parity": "even" if index % 2 == 0 else "odd", "index": str(index)}
        api.create(path, {"metadata": {"name": f"s{index}", "labels": labels}})
    return path


def names(items: list[dict[str, dict[str, str]]]) -> list[str]:
    return [one["metadata"]["name"] for one in items]


def test_a_list_is_in_order_of_names(api: ApiClient, seven: str) -> None:
    answer = api.get(seven)

    assert answer.body["kind"] == "SecretList"
    assert names(answer.body["items"]) == [f"s{index}" for index in range(PAGES)]
    assert int(answer.version) > 0


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("parity=even", ["s0", "s2", "s4", "s6"]),
        ("parity==even", ["s0", "s2", "s4", "s6"]),
        ("parity!=even", ["s1", "s3", "s5"]),
        ("index in (1,2)", ["s1", "s2"]),
        ("index notin (0,1,2,3)", ["s4", "s5", "s6"]),
        ("parity=odd,index in (1,2)", ["s1"]),
        ("!parity", []),
        ("parity", [f"s{index}" for index in range(PAGES)]),
        ("index>4", ["s5", "s6"]),
        ("index<2", ["s0", "s1"]),
    ],
)
def test_label_selectors_select(api: ApiClient, seven: str, selector: str, expected: list[str]) -> None:
    assert names(api.get(seven, query={"labelSelector": selector}).body["items"]) == expected


@pytest.mark.parametrize("selector", ["a in (b", "a=b,", ",a=b", "a>b", "a>", "a=b c", "a in b", "a..b/c=d"])
def test_a_bad_label_selector_is_a_bad_request(api: ApiClient, seven: str, selector: str) -> None:
    answer = api.get(seven, query={"labelSelector": selector})

    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_field_selectors_select(api: ApiClient, seven: str) -> None:
    assert names(api.get(seven, query={"fieldSelector": "metadata.name=s3"}).body["items"]) == ["s3"]
    assert len(api.get(seven, query={"fieldSelector": "metadata.name!=s3"}).body["items"]) == PAGES - 1
    assert len(api.get(seven, query={"fieldSelector": "type=Opaque"}).body["items"]) == PAGES


def test_an_unknown_field_selector_is_a_bad_request(api: ApiClient, seven: str) -> None:
    answer = api.get(seven, query={"fieldSelector": "spec.nonsense=1"})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "field label not supported: spec.nonsense" in answer.message


def test_only_separators_are_escaped_in_a_field_selector(api: ApiClient, seven: str) -> None:
    assert api.get(seven, query={"fieldSelector": r"metadata.name=a\,b"}).body["items"] == []
    answer = api.get(seven, query={"fieldSelector": r"metadata.name=a\x"})

    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert r"invalid escape sequence: \x" in answer.message


@pytest.mark.parametrize("query", [{"limit": "-1"}, {"limit": "2", "resourceVersion": "0"}, {"watch": "False"}])
def test_a_list_without_an_effective_limit_has_everything(api: ApiClient, seven: str, query: dict[str, str]) -> None:
    answer = api.get(seven, query=query)

    assert (answer.status, len(answer.body["items"])) == (200, PAGES)


def test_pods_are_selected_by_node_and_phase(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    api.create(pods, pod("b", nodeName="somewhere"))

    assert names(api.get(pods, query={"fieldSelector": "spec.nodeName="}).body["items"]) == ["a"]
    assert names(api.get(pods, query={"fieldSelector": "spec.nodeName!="}).body["items"]) == ["b"]
    both = api.get(pods, query={"fieldSelector": "status.phase=Pending,spec.nodeName=somewhere"})
    assert names(both.body["items"]) == ["b"]
    assert names(api.get(pods, query={"fieldSelector": "status.phase!=Pending"}).body["items"]) == []


def test_pages_continue_where_the_last_one_ended(api: ApiClient, seven: str) -> None:
    first = api.get(seven, query={"limit": "3"})
    assert names(first.body["items"]) == ["s0", "s1", "s2"]
    assert first.body["metadata"]["remainingItemCount"] == 4
    api.delete(f"{seven}/s5")
    token = first.body["metadata"]["continue"]
    second = api.get(seven, query={"limit": "3", "continue": token})

    assert names(second.body["items"]) == ["s3", "s4", "s5"]
    assert second.version == first.version
    last = api.get(seven, query={"limit": "3", "continue": second.body["metadata"]["continue"]})
    assert names(last.body["items"]) == ["s6"]
    assert not last.body["metadata"].get("continue")


def test_a_bad_continue_token_is_a_bad_request(api: ApiClient, seven: str) -> None:
    answer = api.get(seven, query={"limit": "3", "continue": "!!!"})

    assert (answer.status, answer.reason) == (400, "BadRequest")


def test_a_version_from_the_future_times_out(api: ApiClient, seven: str) -> None:
    answer = api.get(seven, query={"resourceVersion": "999999999"})

    assert (answer.status, answer.reason) == (504, "Timeout")
    assert "Too large resource version: 999999999" in answer.message


def test_an_exact_version_shows_the_past(api: ApiClient, seven: str) -> None:
    before = api.get(seven).version
    api.delete(f"{seven}/s0")
    answer = api.get(seven, query={"resourceVersion": before, "resourceVersionMatch": "Exact"})

    assert len(answer.body["items"]) == PAGES
    assert answer.version == before


def test_a_version_match_without_a_version_is_invalid(api: ApiClient, seven: str) -> None:
    answer = api.get(seven, query={"resourceVersionMatch": "Exact"})

    assert (answer.status, answer.reason) == (422, "Invalid")


def test_a_list_over_all_namespaces_has_everything(api: ApiClient, config_maps: str, namespace: str) -> None:
    api.create(config_maps, config_map("found"))
    answer = api.get("/api/v1/configmaps", query={"fieldSelector": "metadata.name=found"})

    assert namespace in {one["metadata"]["namespace"] for one in answer.body["items"]}


def test_a_table_has_the_columns_people_know(api: ApiClient, pods: str) -> None:
    api.create(pods, pod("a"))
    answer = api.get(pods, accept=TABLE)

    assert answer.body["kind"] == "Table"
    columns = [column["name"] for column in answer.body["columnDefinitions"]]
    assert columns[:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert columns[5:] == ["IP", "Node", "Nominated Node", "Readiness Gates"]
    row = answer.body["rows"][0]
    assert row["cells"][:4] == ["a", "0/1", "Pending", 0] or row["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


def test_metadata_alone_can_be_listed(api: ApiClient, seven: str) -> None:
    accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    answer = api.get(seven, accept=accept)

    assert answer.body["kind"] == "PartialObjectMetadataList"
    assert set(answer.body["items"][0]) <= {"kind", "apiVersion", "metadata"}


def test_an_unacceptable_representation_is_refused(api: ApiClient, seven: str) -> None:
    answer = api.get(seven, accept="text/html")

    assert (answer.status, answer.reason) == (406, "NotAcceptable")


def test_events_are_selected_by_their_source_whichever_shape_has_it(api: ApiClient, namespace: str) -> None:
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    event = {"metadata": {"name": "e"}, "regarding": {"namespace": namespace}, "type": "Normal", "reason": "Shown"}
    event |= {"eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "my-controller"}
    api.create(path, event | {"reportingInstance": "one", "action": "Show"})
    chosen = api.get(f"/api/v1/namespaces/{namespace}/events?fieldSelector=source%3Dmy-controller").body["items"]

    assert [one["metadata"]["name"] for one in chosen] == ["e"]
