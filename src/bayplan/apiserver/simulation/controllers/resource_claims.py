"""Resource claims of pods: made from templates, released when their pods end, deallocated when no pod uses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bayplan.apiserver.protocol.encoding import Json, decode_object
from bayplan.apiserver.protocol.errors import RequestRefused
from bayplan.apiserver.simulation.controllers.base import Controller
from bayplan.apiserver.simulation.controllers.pods import copy_of, is_active, is_terminating, owner_reference, phase
from bayplan.apiserver.storage.store import Change, Key

CLAIMS, TEMPLATES = "resourceclaims.resource.k8s.io", "resourceclaimtemplates.resource.k8s.io"
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
_RETRY_SECONDS = 1.0
# In the name of every field that names a claim; pods without one are not decoded.
_MARK = b"esourceClaim"


class TemplateClaims(Controller):
    """Makes the claims that pods ask for by template, and notes their names in the status of the pod."""

    name = "resourceclaim-controller"
    component = "resource_claim"
    primary = "pods"
    mark = _MARK

    def reconcile(self, key: Key) -> float | None:
        pod = self.client.get("pods", key)
        wanted = (pod or {}).get("spec", {}).get("resourceClaims") or []
        if pod is None or not is_active(pod) or not wanted:
            return None
        known = {each["name"]: each for each in pod.get("status", {}).get("resourceClaimStatuses") or ()}
        made: list[Json] = []
        for entry in wanted:
            template = entry.get("resourceClaimTemplateName")
            if template is None or entry["name"] in known:
                continue
            try:
                claim = self._existing(pod, entry["name"]) or self._make(pod, entry["name"], template)
            except RequestRefused as problem:
                what = f"PodResourceClaim {entry['name']}: failed to create ResourceClaim: {problem}"
                self.client.event(pod, "FailedResourceClaimCreation", what, is_warning=True)
                return _RETRY_SECONDS
            if claim is None:
                missing = f'resourceclaimtemplate.resource.k8s.io "{template}" not found'
                what = f'PodResourceClaim {entry["name"]}: resource claim template "{template}": {missing}'
                self.client.event(pod, "FailedResourceClaimCreation", what, is_warning=True)
                return _RETRY_SECONDS
            made.append({"name": entry["name"], "resourceClaimName": claim["metadata"]["name"]})
        if made:
            self._note(key, made)
        return None

    def _existing(self, pod: Json, name: str) -> Json | None:
        """A claim that was made before its name could be noted."""
        for claim in self.client.owned(CLAIMS, pod["metadata"]["uid"]):
            if (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_NAME) == name:
                return claim
        return None

    def _make(self, pod: Json, name: str, template_name: str) -> Json | None:
        """None when the template does not exist."""
        namespace = pod["metadata"]["namespace"]
        template = self.client.get(TEMPLATES, (namespace, template_name))
        if template is None:
            return None
        given = template["spec"].get("metadata") or {}
        metadata = {
            "generateName": f"{pod['metadata']['name']}-{name}-",
            "namespace": namespace,
            "labels": dict(given.get("labels") or {}),
            "annotations": {**(given.get("annotations") or {}), POD_CLAIM_NAME: name},
            "ownerReferences": [owner_reference(pod)],
        }
        spec = copy_of(template["spec"]["spec"])
        claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}
        return self.client.create(claim)

    def _note(self, key: Key, made: list[Json]) -> None:
        names = {each["name"] for each in made}

        def change(document: Json) -> Json:
            status = document.setdefault("status", {})
            kept = [each for each in status.get("resourceClaimStatuses") or () if each["name"] not in names]
            status["resourceClaimStatuses"] = [*kept, *made]
            return document

        self.client.update_status("pods", key, change)


class ClaimRelease(Controller):
    """Drops reservations of pods that ended, and deallocates and deletes claims that are not used any more."""

    name = "resourceclaim-release-controller"
    component = "resource_claim"
    primary = CLAIMS
    watches = ("pods",)

    def keys_for(self, resource: str, change: Change) -> Iterable[Key]:
        if not self.primaries or _MARK not in change.entry.raw:
            return []
        pod = decode_object(change.entry.raw)
        return [(pod["metadata"]["namespace"], name) for name in _claim_names(pod)]

    def reconcile(self, key: Key) -> float | None:
        claim = self.client.get(CLAIMS, key)
        if claim is None:
            return None
        before = (claim.get("status") or {}).get("reservedFor") or []
        after = [each for each in before if self._is_in_use(key[0], each)]
        is_deleted = "deletionTimestamp" in claim["metadata"]
        if len(after) < len(before) or (is_deleted and not before):
            self._release(key, after)
            if not after and FINALIZER in (claim["metadata"].get("finalizers") or ()):
                self._unprotect(key)
        if not after and not is_deleted and self._is_over(claim):
            self.client.delete(CLAIMS, key)
        return None

    def _is_in_use(self, namespace: str, consumer: Json) -> bool:
        if consumer.get("apiGroup") or consumer.get("resource") != "pods":
            return True
        pod = self.client.get("pods", (namespace, consumer["name"]))
        return pod is not None and pod["metadata"]["uid"] == consumer["uid"] and not _is_done(pod)

    def _release(self, key: Key, in_use: list[Json]) -> None:
        """Keep these reservations; without any, the devices are free again."""
        uids = {each["uid"] for each in in_use}

        def change(document: Json) -> Json:
            status = document.setdefault("status", {})
            kept = [each for each in status.pop("reservedFor", None) or () if each["uid"] in uids]
            if kept:
                status["reservedFor"] = kept
            else:
                status.pop("allocation", None)
                status.pop("devices", None)
            return document

        self.client.update_status(CLAIMS, key, change)

    def _unprotect(self, key: Key) -> None:
        def change(document: Json) -> Json:
            left = [each for each in document["metadata"].get("finalizers") or () if each != FINALIZER]
            document["metadata"]["finalizers"] = left
            return document

        self.client.update(CLAIMS, key, change)

    def _is_over(self, claim: Json) -> bool:
        """Whether the claim was made for a pod that will not run again."""
        for owner in claim["metadata"].get("ownerReferences") or ():
            if owner.get("kind") == "Pod" and owner.get("controller"):
                pod = self.client.get("pods", (claim["metadata"]["namespace"], owner["name"]))
                return pod is None or pod["metadata"]["uid"] != owner["uid"] or _is_done(pod)
        return False


def _is_done(pod: Json) -> bool:
    """Whether it has ended, or was deleted before it got a node."""
    return phase(pod) in ("Succeeded", "Failed") or (is_terminating(pod) and not pod["spec"].get("nodeName"))


def _claim_names(pod: Json) -> Iterator[str]:
    status = pod.get("status") or {}
    for entry in pod["spec"].get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    for entry in status.get("resourceClaimStatuses") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    extended = (status.get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
    if extended:
        yield extended
