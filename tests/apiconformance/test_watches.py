"""Watches: what is seen, in which order, from which version."""

from __future__ import annotations

from tests.apiconformance.client import ApiClient, config_map, pod

ONLY_MINE = {"labelSelector": "mine=yes"}
MINE = {"mine": "yes"}


def test_a_watch_sees_creation_change_and_deletion_in_order(api: ApiClient, config_maps: str) -> None:
    version = api.get(config_maps).version
    with api.watch(config_maps, resourceVersion=version, **ONLY_MINE) as watch:
        created = api.create(config_maps, config_map("a", {"n": "1"}, labels=MINE))
        api.patch(f"{config_maps}/a", {"data": {"n": "2"}})
        api.delete(f"{config_maps}/a")
        events = [watch.next_object() for _ in range(3)]

    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[0]["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    assert events[1]["object"]["data"] == {"n": "2"}
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[2] > versions[1]


def test_a_watch_without_a_version_begins_with_what_exists(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", labels=MINE))
    with api.watch(config_maps, **ONLY_MINE) as watch:
        event = watch.next_object()

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")


def test_a_watch_resumes_from_a_version(api: ApiClient, config_maps: str) -> None:
    first = api.create(config_maps, config_map("a", labels=MINE))
    api.create(config_maps, config_map("b", labels=MINE))
    with api.watch(config_maps, resourceVersion=first["metadata"]["resourceVersion"], **ONLY_MINE) as watch:
        event = watch.next_object()

    assert event["object"]["metadata"]["name"] == "b"


def test_an_object_that_leaves_the_selection_is_deleted_to_the_watcher(api: ApiClient, config_maps: str) -> None:
    version = api.get(config_maps).version
    with api.watch(config_maps, resourceVersion=version, **ONLY_MINE) as watch:
        api.create(config_maps, config_map("a", labels=MINE))
        left = api.patch(f"{config_maps}/a", {"metadata": {"labels": {"mine": "no"}}})
        back = api.patch(f"{config_maps}/a", {"metadata": {"labels": {"mine": "yes"}}})
        events = [watch.next_object() for _ in range(3)]

    assert [event["type"] for event in events] == ["ADDED", "DELETED", "ADDED"]
    assert events[1]["object"]["metadata"]["labels"] == MINE
    assert events[1]["object"]["metadata"]["resourceVersion"] == left.version
    assert events[2]["object"]["metadata"]["resourceVersion"] == back.version


def test_a_watch_follows_a_field_selector(api: ApiClient, pods: str) -> None:
    version = api.get(pods).version
    with api.watch(pods, resourceVersion=version, fieldSelector="spec.nodeName=somewhere") as watch:
        api.create(pods, pod("unassigned"))
        api.create(pods, pod("assigned", nodeName="somewhere"))
        event = watch.next_object()

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "assigned")


def test_a_watch_of_one_name_sees_only_that(api: ApiClient, config_maps: str) -> None:
    version = api.get(config_maps).version
    with api.watch(config_maps, resourceVersion=version, fieldSelector="metadata.name=b") as watch:
        api.create(config_maps, config_map("a"))
        api.create(config_maps, config_map("b"))
        event = watch.next_object()

    assert event["object"]["metadata"]["name"] == "b"


def test_initial_events_can_be_streamed_and_end_with_a_bookmark(api: ApiClient, config_maps: str) -> None:
    api.create(config_maps, config_map("a", labels=MINE))
    api.create(config_maps, config_map("b", labels=MINE))
    options = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}
    with api.watch(config_maps, **options, **ONLY_MINE) as watch:
        events = [watch.next() for _ in range(3)]

    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    annotations = events[2]["object"]["metadata"]["annotations"]
    assert annotations == {"k8s.io/initial-events-end": "true"}
    assert int(events[2]["object"]["metadata"]["resourceVersion"]) > 0


def test_initial_events_need_a_version_match(api: ApiClient, config_maps: str) -> None:
    answer = api.get(config_maps, query={"watch": "true", "sendInitialEvents": "true"})

    assert (answer.status, answer.reason) == (422, "Invalid")


def test_a_watch_ends_when_its_time_is_up(api: ApiClient, config_maps: str) -> None:
    version = api.get(config_maps).version
    with api.watch(config_maps, resourceVersion=version, timeoutSeconds="1", **ONLY_MINE) as watch:
        events = [event for event in watch.rest() if event["type"] != "BOOKMARK"]

    assert events == []
