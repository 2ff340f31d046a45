"""A simulated device driver: it publishes the devices of nodes and reports when they are ready to be bound.

There is no hardware behind it. A `DeviceModel` says what each node of the cluster has; the driver keeps one slice for
each node and model, and a device class of the driver's name, and sets the binding conditions of allocated devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.controllers.base import Controller, ControllerClient
from bayplan.apiserver.simulation.controllers.pods import copy_of
from bayplan.apiserver.simulation.controllers.resource_claims import CLAIMS
from bayplan.apiserver.storage.store import Change, Key

__all__ = ["DeviceConditions", "DeviceDriver", "DeviceModel", "UnusableModel", "read_models"]

SLICES, CLASSES = "resourceslices.resource.k8s.io", "deviceclasses.resource.k8s.io"
_GROUP = "resource.k8s.io/v1"
_MOST_DEVICES = 128
_FIELDS = {"driver", "count", "nodeSelector", "device", "sharedCounters", "readyAfterSeconds"}


class UnusableModel(ValueError):
    """A description of devices that cannot be published; the text says what to change."""


@dataclass(frozen=True, kw_only=True)
class DeviceModel:
    """Devices of one driver on every node that has the labels."""

    driver: str
    count: int
    node_selector: dict[str, str] = field(default_factory=dict)
    device: Json = field(default_factory=dict)
    """What all of them have: attributes, capacity, consumesCounters, taints, bindingConditions, ..."""
    shared_counters: Sequence[Json] = ()
    ready_after_seconds: float = 0.0

    @property
    def short_name(self) -> str:
        return self.driver.split(".", 1)[0]

    def devices(self) -> list[Json]:
        return [
            {
                "name": f"{self.short_name}-{number}",
                **copy_of(self.device),
                "attributes": {"index": {"int": number}, **copy_of(self.device.get("attributes") or {})},
            }
            for number in range(self.count)
        ]


def read_models(descriptions: Iterable[str | Json]) -> list[DeviceModel]:
    """`DRIVER=COUNT` texts, or the entries of a file. Raises UnusableModel."""
    models: list[DeviceModel] = []
    for given in descriptions:
        if isinstance(given, str):
            driver, _, count = given.partition("=")
            if not driver or not count.isdigit():
                raise UnusableModel(f"`{given}` is not DRIVER=COUNT; write for example `gpu.example.com=8`")
            given = {"driver": driver, "count": int(count)}
        models.append(_model(given))
    return models


def _model(given: Json) -> DeviceModel:
    unknown = sorted(set(given) - _FIELDS)
    if unknown:
        raise UnusableModel(f"unknown field `{unknown[0]}` in devices; there are {', '.join(sorted(_FIELDS))}")
    driver, count = given.get("driver"), given.get("count", 1)
    if not isinstance(driver, str) or not driver:
        raise UnusableModel("devices without `driver`; name one, such as `gpu.example.com`")
    if not isinstance(count, int) or not 0 <= count <= _MOST_DEVICES:
        raise UnusableModel(f"{driver}: `count` is a number from 0 to {_MOST_DEVICES}, not {count!r}")
    return DeviceModel(
        driver=driver,
        count=count,
        node_selector=given.get("nodeSelector") or {},
        device=given.get("device") or {},
        shared_counters=given.get("sharedCounters") or (),
        ready_after_seconds=float(given.get("readyAfterSeconds") or 0.0),
    )


class DeviceDriver(Controller):
    """Publishes the slices of nodes. They belong to their node and go with it."""

    name = "device-driver"
    primary = "nodes"

    def __init__(self, client: ControllerClient, models: Sequence[DeviceModel] = ()) -> None:
        super().__init__(client)
        self.models = models

    def reconcile(self, key: Key) -> float | None:
        node = self.client.get("nodes", key)
        if node is None:
            return None
        labels = node["metadata"].get("labels") or {}
        for model in self.models:
            self._offer_class(model)
            if all(labels.get(name) == value for name, value in model.node_selector.items()):
                self._publish(model, node)
        return None

    def _offer_class(self, model: DeviceModel) -> None:
        if self.client.get(CLASSES, ("", model.driver)) is None:
            expression = f'device.driver == "{model.driver}"'
            spec = {"selectors": [{"cel": {"expression": expression}}]}
            metadata = {"name": model.driver}
            self.client.create({"apiVersion": _GROUP, "kind": "DeviceClass", "metadata": metadata, "spec": spec})

    def _publish(self, model: DeviceModel, node: Json) -> None:
        name = node["metadata"]["name"]
        slices: list[tuple[str, Json]] = [("", {"devices": model.devices()})]
        if model.shared_counters:
            slices.append(("-counters", {"sharedCounters": [copy_of(each) for each in model.shared_counters]}))
        for suffix, content in slices:
            slice_name = f"{name}-{model.driver}{suffix}"
            if self.client.get(SLICES, ("", slice_name)) is not None:
                continue
            pool = {"name": name, "generation": 1, "resourceSliceCount": len(slices)}
            owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
            self.client.create(
                {
                    "apiVersion": _GROUP,
                    "kind": "ResourceSlice",
                    "metadata": {"name": slice_name, "ownerReferences": [{**owner, "controller": True}]},
                    "spec": {"driver": model.driver, "pool": pool, "nodeName": name, **content},
                }
            )


class DeviceConditions(Controller):
    """Reports devices of allocated claims as ready, after the time that their model takes."""

    name = "device-conditions"
    primary = CLAIMS

    def __init__(self, client: ControllerClient, models: Sequence[DeviceModel] = ()) -> None:
        super().__init__(client)
        self._delays = {model.driver: model.ready_after_seconds for model in models}
        self._since: dict[str, float] = {}

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        return ()

    def reconcile(self, key: Key) -> float | None:
        claim = self.client.get(CLAIMS, key)
        waiting = [] if claim is None else self._waiting(claim)
        if claim is None or not waiting:
            return None
        uid, now = claim["metadata"]["uid"], self.client.clock.monotonic()
        left = self._since.setdefault(uid, now) + max(self._delays[each["driver"]] for each in waiting) - now
        if left > 0:
            return left
        self._since.pop(uid, None)
        self._report(key, waiting)
        return None

    def _waiting(self, claim: Json) -> list[Json]:
        status = claim.get("status") or {}
        known = {(each["driver"], each["pool"], each["device"]) for each in status.get("devices") or ()}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        return [
            each
            for each in results
            if each.get("bindingConditions")
            and each["driver"] in self._delays
            and (each["driver"], each["pool"], each["device"]) not in known
        ]

    def _report(self, key: Key, ready: list[Json]) -> None:
        now = self.client.now()

        def change(document: Json) -> Json:
            devices = document["status"].setdefault("devices", [])
            for each in ready:
                conditions = [
                    {"type": name, "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": now}
                    for name in each["bindingConditions"]
                ]
                place = {field: each[field] for field in ("driver", "pool", "device")}
                devices.append({**place, "conditions": conditions})
            return document

        self.client.update_status(CLAIMS, key, change)
