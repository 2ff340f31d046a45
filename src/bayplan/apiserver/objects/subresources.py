"""Subresources with logic of their own: binding, eviction, scale, token, finalize, log.

`status` is not here: it is an ordinary update that touches nothing but the status (see `objects`).
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.objects.bodies import read_as, read_object
from bayplan.apiserver.objects.conditions import set_condition
from bayplan.apiserver.objects.eviction import evict
from bayplan.apiserver.objects.scaling import Scaling
from bayplan.apiserver.objects.writing import Caller, ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, decode_object, timestamp
from bayplan.apiserver.protocol.exchange import ApiAnswer, Request, WriteOptions, json_answer, text_answer
from bayplan.apiserver.protocol.identity import TokenIssuer

_CREATED: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def subresources_of(kind: ServedKind) -> list[str]:
    """The names of a kind's subresources, as discovery lists them."""
    names = ["status"] if kind.status else []
    names += ["scale"] if kind.scale is not None else []
    return names + {
        "pods": ["binding", "ephemeralcontainers", "eviction", "log", "resize"],
        "namespaces": ["finalize"],
        "certificatesigningrequests.certificates.k8s.io": ["approval"],
        "serviceaccounts": ["token"],
    }.get(kind.resource, [])


class Subresources:
    """The special subresources."""

    def __init__(self, objects: ObjectWriter, tokens: TokenIssuer) -> None:
        self._objects = objects
        self._tokens = tokens

    def handle(
        self,
        kind: ServedKind,
        namespace: str,
        name: str,
        subresource: str,
        request: Request,
        warnings: list[str],
    ) -> ApiAnswer:
        if subresource == "binding" and request.method == "POST":
            return self.bind(namespace, request, name=name)
        if subresource == "eviction" and request.method == "POST":
            evict(self._objects, namespace, name, request)
            return json_answer(_CREATED, 201)
        if subresource == "scale" and request.method in ("GET", "PUT", "PATCH"):
            return Scaling(self._objects).answer(kind, namespace, name, request, warnings)
        if subresource == "token" and request.method == "POST":
            return self._token(namespace, name, request)
        if subresource == "finalize" and request.method == "PUT":
            return self._finalize(name, request)
        if subresource == "log" and request.method == "GET":
            return self._log(namespace, name, request)
        raise errors.method_not_allowed()

    # ---- binding

    def bind(self, namespace: str, request: Request, *, name: str = "") -> ApiAnswer:
        """Assign a pod to a node, exactly once."""
        binding = read_as(request.body, request.headers, "v1", "Binding", "core.v1.Binding")
        metadata = binding.get("metadata") or {}
        pod_name = name or metadata.get("name", "")
        if metadata.get("name") != pod_name:
            raise errors.bad_request("name in URL does not match name in Binding object")
        if metadata.get("namespace") and metadata["namespace"] != namespace:
            raise errors.bad_request(errors.NAMESPACE_MISMATCH)
        target = binding.get("target") or {}
        causes = []
        if target.get("kind", "") not in ("", "Node"):
            causes.append(errors.not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
        if not target.get("name"):
            causes.append(errors.required("target.name"))
        if causes:
            raise errors.invalid("Binding", pod_name, causes)
        kind = self._objects.kinds.resource("pods")
        caller = Caller(request.user, WriteOptions.of(request), subresource="binding")
        self._objects.update(kind, namespace, pod_name, self._assign(target["name"], metadata), caller)
        return json_answer(_CREATED, 201)

    def _assign(self, node: str, metadata: Json) -> Callable[[Json], Json]:
        def assign(pod: Json) -> Json:
            _check_assignable(pod, metadata)
            pod["spec"]["nodeName"] = node
            for field in ("annotations", "labels"):
                if metadata.get(field):
                    pod["metadata"].setdefault(field, {}).update(metadata[field])
            status = pod.setdefault("status", {})
            status.pop("nominatedNodeName", None)
            set_condition(status, "PodScheduled", "True", now=timestamp(self._objects.clock.now()))
            return pod

        return assign

    # ---- the rest

    def _token(self, namespace: str, name: str, request: Request) -> ApiAnswer:
        account = self._objects.store.get("serviceaccounts", namespace, name)
        if account is None:
            raise errors.not_found("serviceaccounts", name)
        review = read_as(
            request.body, request.headers, "authentication.k8s.io/v1", "TokenRequest", "authentication.v1.TokenRequest"
        )
        spec = review.setdefault("spec", {})
        seconds = spec.setdefault("expirationSeconds", 3600)
        if seconds < 600:
            cause = errors.invalid_value(
                "spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"
            )
            raise errors.invalid("TokenRequest", name, [cause], group="authentication.k8s.io")
        token, expires = self._tokens.issue(namespace, name, account.uid, seconds=seconds)
        spec.setdefault("audiences", [self._tokens.audience])
        review["metadata"] = {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": timestamp(self._objects.clock.now()),
        }
        review["status"] = {"token": token, "expirationTimestamp": timestamp(expires)}
        return json_answer(review, 201)

    def _finalize(self, name: str, request: Request) -> ApiAnswer:
        kind = self._objects.kinds.resource("namespaces")
        entry = self._objects.store.get("namespaces", "", name)
        if entry is None:
            raise errors.not_found("namespaces", name)
        wanted = read_object(
            request.body, request.headers.get("content-type", ""), kind, validation="Ignore", warnings=[]
        )
        document = decode_object(entry.raw)
        document["spec"]["finalizers"] = (wanted.get("spec") or {}).get("finalizers") or []
        raw = finish_namespace(self._objects, kind, document)
        return ApiAnswer(200, raw)

    def _log(self, namespace: str, name: str, request: Request) -> ApiAnswer:
        entry = self._objects.store.get("pods", namespace, name)
        if entry is None:
            raise errors.not_found("pods", name)
        pod = decode_object(entry.raw)
        containers = [container["name"] for container in pod["spec"]["containers"]]
        container = request.query.get("container") or containers[0]
        if container not in containers:
            raise errors.bad_request(f"container {container} is not valid for pod {name}")
        if not pod["spec"].get("nodeName"):
            raise errors.bad_request(
                f'container "{container}" in pod "{name}" is waiting to start: the pod is not scheduled'
            )
        return text_answer(
            f"{container}: simulated container on {pod['spec']['nodeName']}; nothing runs, nothing is printed\n"
        )


def finish_namespace(objects: ObjectWriter, kind: ServedKind, document: Json) -> bytes:
    """Store a namespace with fewer finalizers, or remove it when none is left and it is being deleted."""
    metadata = document["metadata"]
    if "deletionTimestamp" in metadata and not document["spec"]["finalizers"] and not metadata.get("finalizers"):
        return objects.remove(kind, document)
    return objects.commit(kind, document)


def _check_assignable(pod: Json, metadata: Json) -> None:
    name, spec = pod["metadata"]["name"], pod["spec"]
    uid = pod["metadata"]["uid"]
    if metadata.get("uid") and metadata["uid"] != uid:
        problem = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {uid}"
        raise errors.conflict("pods", name, problem=problem)
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != pod["metadata"]["resourceVersion"]:
        found = pod["metadata"]["resourceVersion"]
        problem = f"Precondition failed: ResourceVersion in precondition: {metadata['resourceVersion']}, "
        raise errors.conflict("pods", name, problem=f"{problem}ResourceVersion in object meta: {found}")
    problem = ""
    if "deletionTimestamp" in pod["metadata"]:
        problem = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        problem = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        problem = f"pod {name} has non-empty .spec.schedulingGates"
    if problem:
        raise errors.conflict("pods/binding", name, problem=problem)
