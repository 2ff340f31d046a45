"""Following custom resources: present, absent, forbidden, broken, and replaced by a reload."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from tests.unit.client.support import ScriptedTransport, page, refusal
from tests.waiting import until

from bayplan.app.custom_resources import CustomResourceReflectors
from bayplan.client.backoff import BackoffSettings
from bayplan.client.transport import Response
from bayplan.framework import CustomResource, ResourcePart
from bayplan.observe.clock import SystemClock


class SeatSpec(ResourcePart):
    seats: int = 0


class Seat(CustomResource, group="seats.example.com", version="v1", plural="seats", scope="Cluster"):
    spec: SeatSpec


class Desk(CustomResource, group="seats.example.com", version="v1", plural="desks", scope="Cluster"):
    spec: SeatSpec


class Room(CustomResource, group="seats.example.com", version="v1", plural="rooms", scope="Cluster"):
    names: list[str] = msgspec.field(default_factory=list)
    more: Any = None


PATH = "/apis/seats.example.com/v1/seats"


def _item(name: str, seats: object) -> dict[str, object]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "spec": {"seats": seats}}


class _Server:
    """Answers lists; watches stay silent."""

    def __init__(self) -> None:
        self.lists: dict[str, Response] = {}
        self.asked: list[str] = []
        self.transport = ScriptedTransport(self._answer, self._silence)

    def _answer(self, call: Any) -> Response:
        self.asked.append(call.path)
        return self.lists.get(call.path, refusal(404, "NotFound"))

    async def _silence(self, *_: Any) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


@contextlib.asynccontextmanager
async def _following(server: _Server, *kinds: type) -> AsyncIterator[tuple[CustomResourceReflectors, list[Any]]]:
    heard: list[Any] = []

    def handler(event: str) -> Callable[[Any, Any], None]:
        return lambda old, new: heard.append((event, old.name if old else None, new.name if new else None))

    resources = CustomResourceReflectors(
        server.transport,
        handler,
        clock=SystemClock(),
        draw=lambda: 0.0,
        retry=BackoffSettings(initial_seconds=0.01, ceiling_seconds=0.01, jitter=0.0),
    )
    resources.follow(kinds)
    task = asyncio.create_task(resources.run())
    try:
        yield resources, heard
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_objects_arrive_as_events_named_after_the_resource() -> None:
    server = _Server()
    server.lists[PATH] = page([_item("a", 1)], 7)

    async with _following(server, Seat) as (resources, heard):
        await resources.wait_until_settled()

        assert heard == [("seats.v1.seats.example.com", None, "a")]
        assert resources.problems() == []


async def test_a_missing_definition_stops_nothing_and_is_asked_for_until_it_comes() -> None:
    server = _Server()

    async with _following(server, Seat) as (resources, heard):
        await asyncio.wait_for(resources.wait_until_settled(), 60)
        [problem] = resources.problems()
        assert "`seats.seats.example.com` (v1) is not installed" in problem
        assert "bayplan render crds" in problem

        server.lists[PATH] = page([_item("a", 1)], 7)
        await until(lambda: heard)

        assert resources.problems() == []


async def test_a_missing_permission_says_how_to_grant_it() -> None:
    server = _Server()
    server.lists[PATH] = refusal(403, "Forbidden")

    async with _following(server, Seat) as (resources, _):
        await asyncio.wait_for(resources.wait_until_settled(), 60)

        [problem] = resources.problems()
        assert "not allowed to list" in problem
        assert "bayplan render manifests" in problem


async def test_an_object_that_does_not_fit_is_reported_by_name_and_the_others_arrive() -> None:
    server = _Server()
    server.lists[PATH] = page([_item("bad", "many"), _item("good", 2)], 7)

    async with _following(server, Seat) as (resources, heard):
        await resources.wait_until_settled()

        assert [new for _, _, new in heard] == ["good"]
        [problem] = resources.problems()
        assert problem.startswith("Seat `bad` is skipped: ")


async def test_a_reload_follows_new_types_and_lets_old_ones_go() -> None:
    server = _Server()
    server.lists[PATH] = page([_item("a", 1)], 7)
    server.lists["/apis/seats.example.com/v1/desks"] = page([_item("d", 1)], 8)

    async with _following(server, Seat) as (resources, heard):
        await resources.wait_until_settled()
        resources.follow([Desk])
        await resources.wait_until_settled()
        await asyncio.sleep(0)

        assert [new for _, _, new in heard] == ["a", "d"]
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert not any("/seats" in name and "reflector" in name for name in names if "desks" not in name)


async def test_a_server_that_hangs_does_not_hold_up_the_start() -> None:
    class Hanging(ScriptedTransport):
        async def request(self, *args: Any, **options: Any) -> Response:
            await asyncio.Event().wait()
            raise AssertionError("never")

    server = _Server()
    server.transport = Hanging()

    async with _following(server, Seat) as (resources, _):
        await asyncio.wait_for(resources.wait_until_settled(timeout=0.05), 60)


async def test_without_types_there_is_nothing_to_wait_for() -> None:
    async with _following(_Server()) as (resources, heard):
        await resources.wait_until_settled()

        assert heard == []


async def test_equal_strings_of_an_object_are_kept_once() -> None:
    deep: Any = "end of it"
    for _ in range(900):
        deep = {"more": deep}
    rooms = [_room("small", ["window", "window"], None), _room("deep", ["door", "door"], deep)]
    server, kept = _Server(), dict[str, Any]()
    server.lists["/apis/seats.example.com/v1/rooms"] = page(rooms, 7)
    resources = CustomResourceReflectors(
        server.transport, lambda _: lambda old, new: kept.update({new.name: new}), clock=SystemClock(), draw=lambda: 0.0
    )
    resources.follow([Room])
    task = asyncio.create_task(resources.run())
    await until(lambda: len(kept) == 2)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    first, second = kept["small"].names
    assert first is second
    assert kept["deep"].names == ["door", "door"]


def _room(name: str, names: list[str], more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": "1"}, "names": names, "more": more}
