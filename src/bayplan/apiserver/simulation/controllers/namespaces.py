"""Namespaces: a default account in each, and the deletion of their content."""

from __future__ import annotations

from bayplan.apiserver.kinds.custom_resources import DEFINITIONS
from bayplan.apiserver.objects.subresources import finish_namespace
from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.server.own_objects import create_if_absent
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.storage.store import Key


class Namespaces(Controller):
    """Fills new namespaces and empties terminating ones."""

    name = "namespace-controller"
    primary = "namespaces"

    def reconcile(self, key: Key) -> float | None:
        namespace = self.client.get("namespaces", key)
        if namespace is None:
            return None
        if "deletionTimestamp" not in namespace["metadata"]:
            metadata = {"name": "default", "namespace": key[1]}
            if self.client.store.get("serviceaccounts", key[1], "default") is None:
                document = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
                create_if_absent(self.client.api, document)
            return None
        return self._empty(namespace)

    def _empty(self, namespace: Json) -> float | None:
        name = namespace["metadata"]["name"]
        left = 0
        for resource in {kind.stored_as for kind in self.client.api.kinds if kind.namespaced}:
            for entry in list(self.client.entries(resource, name)):
                if b'"deletionTimestamp"' not in entry.raw:
                    self.client.delete(resource, entry.key)
                left += self.client.store.get(resource, *entry.key) is not None
        if left:
            return 0.2
        namespace = self.client.get("namespaces", ("", name)) or namespace
        namespace["spec"]["finalizers"] = []
        finish_namespace(self.client.api.objects, self.client.api.kinds.resource("namespaces"), namespace)
        return None


class Definitions(Controller):
    """Deletes the objects of a custom resource with its definition."""

    name = "customresource-cleaner"
    primary = DEFINITIONS

    def reconcile(self, key: Key) -> float | None:
        if self.client.store.get(DEFINITIONS, *key) is not None:
            return None
        resource = key[1]
        for entry in list(self.client.entries(resource)):
            self.client.store.discard(resource, entry)
        return None
