"""Endpoints and EndpointSlices of Services: the addresses of the pods that a Service selects.

A Service without a selector has the addresses that its Endpoints name; a slice mirrors them. One slice holds all
addresses with the same ports.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.protocol.encoding import Json, decode_object, encode
from bayplan.apiserver.protocol.selectors import matches_label_selector
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pod_tally import ADDRESS_FIELD, facts_of
from bayplan.apiserver.simulation.controllers.pods import owner_reference
from bayplan.apiserver.storage.store import DELETED, Change, Entry, Key

ENDPOINTS, SLICES = "endpoints", "endpointslices.discovery.k8s.io"
_SERVICE_NAME, _MANAGED_BY = "kubernetes.io/service-name", "endpointslice.kubernetes.io/managed-by"
_OURS = ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io")
_MADE_BY = "endpoints.kubernetes.io/managed-by"
# A slice of Endpoints that their writer keeps as well.
_UNMIRRORED = "endpointslice.kubernetes.io/skip-mirror"


class ServiceEndpoints(Controller):
    """Keeps the Endpoints and EndpointSlices of Services."""

    name = "endpointslice-controller"
    primary = "services"
    watches = ("pods", ENDPOINTS, SLICES)

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if resource == ENDPOINTS:
            return [change.entry.key]
        entry, previous = change.entry, change.previous
        if resource == SLICES:
            labels = (previous or entry).labels or {}
            is_ours = previous is not None and labels.get(_MANAGED_BY) in _OURS
            return [(entry.namespace, labels.get(_SERVICE_NAME, ""))] if is_ours else []
        if not entry.fields[ADDRESS_FIELD] or (
            previous is not None and change.type != DELETED and _address(previous) == _address(entry)
        ):
            return []
        states = [entry.labels] + ([previous.labels] if previous is not None else [])
        return [
            service.key
            for service in self.client.entries(self.primary, entry.namespace)
            if (selector := _selector(service)) and any(matches_label_selector(selector, labels) for labels in states)
        ]

    def reconcile(self, key: Key) -> float | None:
        service = self.client.get(self.primary, key)
        if service is None:
            entry = self.client.store.get(ENDPOINTS, *key)
            if entry is not None and _MADE_BY in (entry.labels or {}):
                self.client.delete(ENDPOINTS, key)
            self._write_slices(key, None, [], "")
            return None
        if service["spec"].get("type") == "ExternalName":
            return None
        if service["spec"].get("selector"):
            subsets = self._selected(service)
            self._write_endpoints(service, subsets)
            self._write_slices(key, service, subsets or [_EMPTY], _OURS[0])
        else:
            endpoints = self.client.get(ENDPOINTS, key)
            is_mirrored = endpoints is not None and _UNMIRRORED not in (endpoints["metadata"].get("labels") or {})
            self._write_slices(key, endpoints, (endpoints or {}).get("subsets") or [] if is_mirrored else [], _OURS[1])
        return None

    def _selected(self, service: Json) -> list[Json]:
        """The subsets of the Endpoints: addresses by their ports."""
        selector = {"matchLabels": service["spec"]["selector"]}
        unready_too = service["spec"].get("publishNotReadyAddresses", False)
        subsets: dict[bytes, Json] = {}
        for entry in self.client.entries("pods", service["metadata"]["namespace"]):
            if not matches_label_selector(selector, entry.labels) or not facts_of(entry).is_active:
                continue
            pod = decode_object(entry.raw)
            if not pod["status"].get("podIP"):
                continue
            ports = _ports(service, pod)
            subset = subsets.setdefault(encode(ports), {"ports": ports} if ports else {})
            is_ready = unready_too or facts_of(entry).is_ready
            subset.setdefault("addresses" if is_ready else "notReadyAddresses", []).append(_endpoint_address(pod))
        return list(subsets.values())

    def _write_endpoints(self, service: Json, subsets: list[Json]) -> None:
        key = (service["metadata"]["namespace"], service["metadata"]["name"])
        found = self.client.get(ENDPOINTS, key)
        if found is None:
            labels = {**(service["metadata"].get("labels") or {}), _MADE_BY: "endpoint-controller"}
            metadata = {"name": key[1], "namespace": key[0], "labels": labels}
            document: Json = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
            self.client.create(document | ({"subsets": subsets} if subsets else {}))
        elif (found.get("subsets") or []) != subsets:
            self.client.update(ENDPOINTS, key, lambda document: document | {"subsets": subsets})

    def _write_slices(self, key: Key, owner: Json | None, subsets: list[Json], manager: str) -> None:
        """Make the slices of the Service those of the subsets; slices of others are left alone."""
        wanted = [] if owner is None else [_slice(key, owner, subset, manager) for subset in subsets]
        for entry in list(self.client.entries(SLICES, key[0])):
            labels = entry.labels or {}
            if labels.get(_SERVICE_NAME) != key[1] or labels.get(_MANAGED_BY) not in _OURS:
                continue
            document = decode_object(entry.raw)
            same = next((one for one in wanted if _content(one) == _content(document)), None)
            if same is not None:
                wanted.remove(same)
            elif wanted and labels.get(_MANAGED_BY) == manager:
                content = _content(wanted.pop())
                self.client.update(SLICES, entry.key, lambda old, content=content: old | content)  # type: ignore[misc]
            else:
                self.client.delete(SLICES, entry.key)
        for document in wanted:
            self.client.create(document)


_EMPTY: Json = {"ports": []}


def _selector(service: Entry) -> Json | None:
    labels = decode_object(service.raw)["spec"].get("selector")
    return {"matchLabels": labels} if labels else None


def _address(pod: Entry) -> tuple[object, ...]:
    """What the endpoints of a pod follow from."""
    facts = facts_of(pod)
    return facts.is_active, facts.is_ready, pod.labels, bool(pod.fields[ADDRESS_FIELD])


def _ports(service: Json, pod: Json) -> list[Json]:
    found = []
    for port in service["spec"].get("ports") or ():
        number = port.get("targetPort", port["port"])
        if isinstance(number, str):
            number = _named_port(pod, number, port.get("protocol", "TCP"))
        if number is not None:
            name = {"name": port["name"]} if port.get("name") else {}
            found.append({**name, "port": number, "protocol": port.get("protocol", "TCP")})
    return found


def _named_port(pod: Json, name: str, protocol: str) -> int | None:
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == name and port.get("protocol", "TCP") == protocol:
                return int(port["containerPort"])
    return None


def _endpoint_address(pod: Json) -> Json:
    metadata = pod["metadata"]
    target = {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]}
    return {"ip": pod["status"]["podIP"], "nodeName": pod["spec"].get("nodeName", ""), "targetRef": target}


def _slice(key: Key, owner: Json, subset: Json, manager: str) -> Json:
    labels = {_SERVICE_NAME: key[1], _MANAGED_BY: manager}
    metadata = {
        "generateName": f"{key[1]}-",
        "namespace": key[0],
        "labels": labels,
        "ownerReferences": [owner_reference(owner)],
    }
    ready = [_endpoint(address, is_ready=True) for address in subset.get("addresses") or ()]
    unready = [_endpoint(address, is_ready=False) for address in subset.get("notReadyAddresses") or ()]
    addresses = [one["ip"] for one in subset.get("addresses") or subset.get("notReadyAddresses") or ()]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": metadata,
        "addressType": "IPv6" if ":" in "".join(addresses[:1]) else "IPv4",
        "endpoints": ready + unready,
        "ports": [{"name": port.get("name", ""), **port} for port in subset.get("ports") or ()],
    }


def _endpoint(address: Json, *, is_ready: bool) -> Json:
    conditions = {"ready": is_ready, "serving": is_ready, "terminating": False}
    found = {"addresses": [address["ip"]], "conditions": conditions}
    return found | {name: address[name] for name in ("targetRef", "nodeName") if address.get(name)}


def _content(document: Json) -> Json:
    return {"endpoints": document.get("endpoints") or [], "ports": document.get("ports") or []}
