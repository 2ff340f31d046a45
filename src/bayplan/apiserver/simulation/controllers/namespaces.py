"""Namespaces: the account and the certificate that each has, and the deletion of their content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from bayplan.apiserver.kinds.custom_resources import DEFINITIONS
from bayplan.apiserver.objects.subresources import finish_namespace
from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.server.own_objects import create_if_absent
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.storage.store import DELETED, Change, Key

ROOT_CERTIFICATE = "kube-root-ca.crt"
ACCOUNTS, MAPS = "serviceaccounts", "configmaps"
_GIVEN = {ACCOUNTS: "default", MAPS: ROOT_CERTIFICATE}
"""The names of the objects that every namespace has."""
_AGAIN_SECONDS = 0.2
# Type of a condition, and reason and message while nothing is wrong.
_CONDITIONS = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions", "All legacy kube types successfully parsed"),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    ("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
)


class Namespaces(Controller):
    """Fills new namespaces and empties terminating ones, pods first."""

    name = "namespace-controller"
    primary = "namespaces"
    watches = (ACCOUNTS, MAPS)

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        """The namespace of a given object that was deleted or changed."""
        if change.entry.name == _GIVEN[resource] and (change.type == DELETED or change.previous is not None):
            yield ("", change.entry.namespace)

    def reconcile(self, key: Key) -> float | None:
        namespace = self.client.get("namespaces", key)
        if namespace is None:
            return None
        if "deletionTimestamp" in namespace["metadata"]:
            return self._empty(namespace)
        self._add_account(key[1])
        self._publish_certificate(key[1])
        return None

    def _add_account(self, namespace: str) -> None:
        if self.client.store.get(ACCOUNTS, namespace, "default") is None:
            metadata = {"name": "default", "namespace": namespace}
            create_if_absent(self.client.api, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})

    def _publish_certificate(self, namespace: str) -> None:
        """Keep what clients in the namespace verify the API server with."""
        data = {"ca.crt": self.client.api.settings.authority}
        found = self.client.get(MAPS, (namespace, ROOT_CERTIFICATE))
        if found is None:
            note = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints."
            metadata = {"name": ROOT_CERTIFICATE, "namespace": namespace}
            metadata |= {"annotations": {"kubernetes.io/description": note}}  # type: ignore[dict-item]
            document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            create_if_absent(self.client.api, document)
        elif found.get("data") != data:
            self.client.update(MAPS, (namespace, ROOT_CERTIFICATE), lambda document: document | {"data": data})

    # ---- deletion

    def _empty(self, namespace: Json) -> float | None:
        name = namespace["metadata"]["name"]
        remaining, finalizers = self._delete_content(name)
        self._write_conditions(namespace, remaining, finalizers)
        if remaining:
            return _AGAIN_SECONDS
        namespace = self.client.get("namespaces", ("", name)) or namespace
        namespace["spec"]["finalizers"] = [one for one in namespace["spec"]["finalizers"] if one != "kubernetes"]
        finish_namespace(self.client.api.objects, self.client.api.kinds.resource("namespaces"), namespace)
        return None

    def _delete_content(self, name: str) -> tuple[Counter[str], Counter[str]]:
        """Delete the pods, and once they are gone the rest; answers what remains, by resource and by finalizer."""
        remaining: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        others = sorted({kind.stored_as for kind in self.client.api.kinds if kind.namespaced} - {"pods"})
        for resource in ("pods", *others):
            if resource != "pods" and remaining["pods"]:
                break
            for entry in list(self.client.entries(resource, name)):
                if b'"deletionTimestamp"' not in entry.raw:
                    self.client.delete(resource, entry.key)
                left = self.client.store.get(resource, *entry.key)
                if left is not None:
                    remaining[resource] += 1
                    finalizers.update(decode_object(left.raw)["metadata"].get("finalizers") or ())
        return +remaining, finalizers

    def _write_conditions(self, namespace: Json, remaining: Counter[str], finalizers: Counter[str]) -> None:
        problems: dict[str, tuple[str, str]] = {}
        if remaining["pods"]:
            remaining, finalizers = Counter(), Counter()  # nothing else was looked at yet
        if remaining:
            listed = ", ".join(
                sorted(f"{_plural_and_group(r)} has {n} resource instances" for r, n in remaining.items())
            )
            problems["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
        if finalizers:
            listed = ", ".join(sorted(f"{name} in {n} resource instances" for name, n in finalizers.items()))
            message = f"Some content in the namespace has finalizers remaining: {listed}"
            problems["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
        old = {c["type"]: c for c in (namespace.get("status") or {}).get("conditions") or ()}
        conditions = []
        for kind, reason, message in _CONDITIONS:
            status = "True" if kind in problems else "False"
            reason, message = problems.get(kind, (reason, message))
            before = old.pop(kind, {})
            moved = before["lastTransitionTime"] if before.get("status") == status else self.client.now()
            conditions.append(
                {"type": kind, "status": status, "lastTransitionTime": moved, "reason": reason, "message": message}
            )
        status_now = {**(namespace.get("status") or {}), "conditions": [*old.values(), *conditions]}
        if status_now != namespace.get("status"):
            self.client.set_status("namespaces", ("", namespace["metadata"]["name"]), status_now)


def _plural_and_group(resource: str) -> str:
    """As upstream writes it, with a dot before the empty name of the core group."""
    return resource if "." in resource else f"{resource}."


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
