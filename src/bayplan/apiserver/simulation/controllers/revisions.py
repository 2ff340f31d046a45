"""Revisions of a workload's pod template: one ControllerRevision each, numbered, the newest last.

DaemonSets and StatefulSets keep them, so that a rollout can be paused half-way and undone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from bayplan.apiserver.protocol.encoding import Json
from bayplan.apiserver.simulation.controllers.base import ControllerClient
from bayplan.apiserver.simulation.controllers.deployments import template_hash
from bayplan.apiserver.simulation.controllers.pods import copy_of, key_of, owner_reference

REVISIONS = "controllerrevisions.apps"
REVISION_LABEL = "controller-revision-hash"


class Revisions:
    """The revisions of the workloads of one controller."""

    def __init__(self, client: ControllerClient) -> None:
        self._client = client

    def of(self, owner: Json) -> list[Json]:
        """All revisions of a workload, oldest first."""
        found = self._client.owned(REVISIONS, owner["metadata"]["uid"])
        return sorted(found, key=lambda one: (one["revision"], one["metadata"]["name"]))

    def current(self, owner: Json) -> str:
        """The name of the revision of the template as it is; made, or made the newest again, where needed."""
        name = revision_name(owner)
        known = self.of(owner)
        newest = known[-1]["revision"] if known else 0
        mine = next((one for one in known if one["metadata"]["name"] == name), None)
        if mine is None:
            self._client.create(_revision(owner, name, newest + 1))
        elif mine["revision"] != newest:
            self._client.update(REVISIONS, key_of(mine), lambda document: document | {"revision": newest + 1})
        return name

    def template(self, owner: Json, name: str) -> Json:
        """The pod template of a revision; the workload's own where the revision is gone."""
        for one in self.of(owner):
            if one["metadata"]["name"] == name:
                template: Json = copy_of(one["data"]["spec"]["template"])
                template.pop("$patch", None)
                return template
        own: Json = owner["spec"]["template"]
        return own

    def trim(self, owner: Json, in_use: Collection[str]) -> None:
        """Delete the oldest revisions beyond the history limit; those of existing pods do not count."""
        idle = [one for one in self.of(owner) if one["metadata"]["name"] not in in_use]
        limit = owner["spec"].get("revisionHistoryLimit", 10)
        for one in idle[: max(0, len(idle) - limit)]:
            self._client.delete(REVISIONS, key_of(one))


def revision_name(owner: Json) -> str:
    return f"{owner['metadata']['name']}-{template_hash(owner['spec']['template'])}"


def _revision(owner: Json, name: str, number: int) -> Json:
    labels = dict((owner["spec"]["template"].get("metadata") or {}).get("labels") or {})
    metadata = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "labels": labels | {REVISION_LABEL: template_hash(owner["spec"]["template"])},
        "ownerReferences": [owner_reference(owner)],
    }
    # Clients compare these bytes with what they make of the template themselves, which has its keys in order.
    data = _in_order({"spec": {"template": {**copy_of(owner["spec"]["template"]), "$patch": "replace"}}})
    head = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}
    return head | {"data": data, "revision": number}


def _in_order(value: Any) -> Any:
    """A JSON value with the keys of its objects sorted."""
    if isinstance(value, dict):
        return {name: _in_order(value[name]) for name in sorted(value)}
    return [_in_order(item) for item in value] if isinstance(value, list) else value
