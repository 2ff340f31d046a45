"""The base of all simulated controllers: a queue of keys, a loop that reconciles them, and a client.

A controller declares the resources it watches, the keys that a change affects, and how to reconcile one key. It
is level-triggered and does not wait; the loop yields to other tasks. A reconcile that fails is logged and retried.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import ClassVar

from bayplan.apiserver.objects.deletion import DeleteOptions, delete
from bayplan.apiserver.objects.webhooks import Review, ReviewFailed, ReviewNeeded
from bayplan.apiserver.objects.writing import Caller
from bayplan.apiserver.protocol.encoding import Json, decode_object, timestamp
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.protocol.exchange import WriteOptions
from bayplan.apiserver.protocol.identity import ApiUser
from bayplan.apiserver.server.api import Api
from bayplan.apiserver.server.own_objects import create
from bayplan.apiserver.server.webhook_calls import call_webhook
from bayplan.apiserver.simulation.controllers.claims import Claims
from bayplan.apiserver.simulation.controllers.event_writer import EventWriter
from bayplan.apiserver.simulation.controllers.owners import OwnerIndex
from bayplan.apiserver.simulation.controllers.pod_tally import PodTally
from bayplan.apiserver.simulation.timers import TimerQueue
from bayplan.apiserver.storage.store import ADDED, Change, Entry, Key

_log = logging.getLogger("bayplan.apiserver.simulation.controllers")
_SLICE = 50
_RETRY_SECONDS = 1.0
# A key that took long to reconcile (a set of thousands of pods) rests for some times as long, however often it is
# touched meanwhile, so that one large workload cannot take the whole process.
_LONG_SECONDS = 0.002
_REST_FACTOR = 4.0


class ControllerClient:
    """What a controller works with: reading the store, writing through the API."""

    def __init__(self, api: Api, owners: OwnerIndex, pods: PodTally, name: str, component: str = "") -> None:
        self.api = api
        self.clock = api.clock
        self.store = api.store
        self.owners = owners
        self.pods = pods
        user = ApiUser(f"system:serviceaccount:kube-system:{name}", ("system:masters", "system:authenticated"))
        self._caller = Caller(user, WriteOptions(field_manager=name))
        self._status_caller = replace(self._caller, subresource="status", is_reviewed=False)
        self._events = EventWriter(api, component or name, replace(self._caller, is_reviewed=False))

    def now(self) -> str:
        return timestamp(self.clock.now())

    def get(self, resource: str, key: Key) -> Json | None:
        entry = self.store.get(resource, *key)
        return None if entry is None else decode_object(entry.raw)

    def entries(self, resource: str, namespace: str = "") -> Iterator[Entry]:
        for entry in self.store.listing(resource).entries:
            if not namespace or entry.namespace == namespace:
                yield entry

    def objects(self, resource: str, namespace: str = "") -> Iterator[Json]:
        for entry in self.entries(resource, namespace):
            yield decode_object(entry.raw)

    def owned(self, resource: str, owner_uid: str) -> list[Json]:
        """The objects of a resource that this owner controls, in key order."""
        found = [self.store.get(resource, *key) for key in sorted(self.owners.dependents(owner_uid, resource))]
        return [decode_object(entry.raw) for entry in found if entry and entry.controller == owner_uid]

    def event(self, about: Json, reason: str, message: str, *, is_warning: bool = False) -> None:
        self._events.write(about, reason, message, is_warning=is_warning)

    def create(self, document: Json) -> Json:
        return decode_object(create(self.api, document, self._caller))

    def update(self, resource: str, key: Key, change: Callable[[Json], Json]) -> None:
        self.api.objects.update(self.api.kinds.resource(resource), *key, change, self._caller)

    def set_status(self, resource: str, key: Key, status: Json) -> None:
        def change(document: Json) -> Json:
            document["status"] = status
            return document

        self.api.objects.update(self.api.kinds.resource(resource), *key, change, self._status_caller)

    def update_status(self, resource: str, key: Key, change: Callable[[Json], Json]) -> None:
        self.api.objects.update(self.api.kinds.resource(resource), *key, change, self._status_caller)

    def delete(self, resource: str, key: Key, options: DeleteOptions | None = None) -> None:
        entry = self.store.get(resource, *key)
        if entry is not None:
            kind = self.api.kinds.resource(resource)
            delete(self.api.objects, kind, entry, options or DeleteOptions(propagation="Background"))

    def create_pod(self, owner: Json, pod: Json) -> None:
        """Create a pod of a workload, and write an event about it."""
        try:
            created = self.create(pod)
        except RequestRefused as problem:
            self.event(owner, "FailedCreate", f"Error creating: {problem}", is_warning=True)
            raise
        self.event(owner, "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")

    def delete_pod(self, owner: Json, key: Key) -> None:
        self.delete("pods", key)
        self.event(owner, "SuccessfulDelete", f"Deleted pod: {key[1]}")


class Controller:
    """Reconciles the objects of one resource."""

    name: ClassVar[str]
    component: ClassVar[str] = ""
    """The source of its events, where that is not its name."""
    primary: ClassVar[str]
    """The resource whose keys are reconciled."""
    watches: ClassVar[tuple[str, ...]] = ()
    """Other resources whose changes may require reconciling."""
    mark: ClassVar[bytes] = b""
    """What the bytes of an object have if it concerns the controller."""
    adopts: ClassVar[str] = ""
    """The resource whose objects it adopts and releases by its selector, if any."""

    def __init__(self, client: ControllerClient) -> None:
        self.client = client
        self.claims = Claims(client, self.primary, self.adopts)
        self.primaries = client.store.collection(self.primary).entries

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        """The keys that a change of another resource affects; by default those of its owners."""
        if not self.primaries:
            return ()
        found: list[Key] = []
        if change.entry.owners or (change.previous is not None and change.previous.owners):
            places = [self.client.owners.place(uid) for uid in self.client.owners.owners_of(change)]
            found = [place[1] for place in places if place is not None and place[0] == self.primary]
        return found + self.claims.note(change) if resource == self.adopts else found

    def seconds_until_available(self, owner: Json) -> float | None:
        """When the next pod of a workload will have been ready for as long as the workload asks for."""
        pods = self.client.pods.of(owner["metadata"]["uid"])
        return pods.seconds_until_available(owner["spec"].get("minReadySeconds", 0), self.client.clock.now())

    def reconcile(self, key: Key) -> float | None:
        """Make the cluster equal to the spec. Returns the seconds until the next check, or None."""
        raise AssertionError(f"{type(self).__name__} reconciles nothing")


class ControllerLoop:
    """Runs one controller until it is stopped."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self._pending: dict[Key, None] = {}
        self._later: TimerQueue[Key] = TimerQueue(controller.client.clock)
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._unlisten: list[Callable[[], None]] = []
        self._resting: dict[Key, None] = {}
        self._reviews: dict[Key, dict[str, Json | ReviewFailed]] = {}
        """Answers of webhooks about what the next attempt for a key will write."""
        self._asking: set[asyncio.Task[None]] = set()

    @property
    def is_running(self) -> bool:
        return bool(self._tasks)

    def start(self) -> None:
        if self._tasks:
            return
        controller, store = self.controller, self.controller.client.store
        for resource in (controller.primary, *controller.watches):
            self._unlisten.append(store.listen(resource, self._on_change))
            for entry in store.listing(resource).entries:
                self._on_change(resource, Change(ADDED, entry, None))
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._run(), name=f"controller {controller.name}"),
            loop.create_task(self._requeue(), name=f"controller {controller.name} timer"),
        ]

    async def stop(self) -> None:
        for unlisten in self._unlisten:
            unlisten()
        tasks, self._tasks, self._unlisten = [*self._tasks, *self._asking], [], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._pending.clear()
        self._later.clear()
        self._resting.clear()
        self._reviews.clear()

    def _on_change(self, resource: str, change: Change) -> None:
        if resource == self.controller.primary:
            if self.controller.mark in change.entry.raw:
                self._add(change.entry.key)
        else:
            for key in self.controller.keys_for(resource, change):
                self._add(key)

    def _add(self, key: Key) -> None:
        if key in self._resting:
            return
        self._pending[key] = None
        self._wake.set()

    def _rest(self, key: Key, seconds: float) -> None:
        self._resting[key] = None
        self._later.add(seconds, key)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            done = 0
            while self._pending:
                key = next(iter(self._pending))
                del self._pending[key]
                self._reconcile(key)
                done += 1
                if done % _SLICE == 0:
                    await asyncio.sleep(0)

    def _reconcile(self, key: Key) -> None:
        clock = self.controller.client.clock
        begin = clock.monotonic()
        try:
            with self.controller.client.api.objects.webhooks.answers(self._reviews.get(key, {})):
                again = self.controller.reconcile(key)
            self._reviews.pop(key, None)
        except ReviewNeeded as needed:
            self._ask(key, needed.review)
            return
        except RequestRefused as problem:
            self._reviews.pop(key, None)
            _log.debug("controller %s will retry %s: %s", self.controller.name, key, problem)
            again = _RETRY_SECONDS
        except Exception:
            _log.exception("controller %s could not reconcile %s", self.controller.name, key)
            again = _RETRY_SECONDS * 5
        if again is not None:
            self._later.add(again, key)
        taken = clock.monotonic() - begin
        if taken > _LONG_SECONDS:
            self._rest(key, taken * _REST_FACTOR)

    def _ask(self, key: Key, review: Review) -> None:
        """Call a webhook, and reconcile again with its answer."""

        async def ask() -> None:
            self._reviews.setdefault(key, {})[review.key] = await call_webhook(review)
            self._add(key)

        task = asyncio.get_running_loop().create_task(ask(), name=f"{self.controller.name} review")
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _requeue(self) -> None:
        """Move keys whose time has come into the queue."""
        done = 0
        while True:
            key = await self._later.due()
            self._resting.pop(key, None)
            self._add(key)
            done += 1
            if done % _SLICE == 0:
                await asyncio.sleep(0)
