"""Subresources with logic of their own: binding, eviction, scale, token, finalize, log.

`status` is not here: it is an ordinary update that touches nothing but the status (see `objects`).
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.apiserver.kinds.kind import ServedKind
from bayplan.apiserver.kinds.type_table import builtin_types
from bayplan.apiserver.objects.bodies import conform_object, read_document, read_object
from bayplan.apiserver.objects.deletion import DeleteOptions, delete
from bayplan.apiserver.objects.patching import JSON_PATCH, MERGE_PATCH, patched_with
from bayplan.apiserver.objects.writing import Caller, ObjectWriter
from bayplan.apiserver.protocol import errors
from bayplan.apiserver.protocol.encoding import Json, JsonValue, decode_object, timestamp
from bayplan.apiserver.protocol.exchange import ApiAnswer, Request, WriteOptions, json_answer, text_answer
from bayplan.apiserver.protocol.identity import TokenIssuer
from bayplan.apiserver.protocol.selectors import matches_label_selector

BUDGETS = "poddisruptionbudgets.policy"
_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."
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

    def handle(self, kind: ServedKind, namespace: str, name: str, subresource: str, request: Request) -> ApiAnswer:
        if subresource == "binding" and request.method == "POST":
            return self.bind(namespace, request, name=name)
        if subresource == "eviction" and request.method == "POST":
            return self._evict(namespace, name, request)
        if subresource == "scale" and request.method in ("GET", "PUT", "PATCH"):
            return self._scale(kind, namespace, name, request)
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
        binding = _read(request, "core.v1.Binding", "v1", "Binding")
        metadata = binding.get("metadata") or {}
        pod_name = name or metadata.get("name", "")
        if metadata.get("name") and metadata["name"] != pod_name:
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

    # ---- eviction

    def _evict(self, namespace: str, name: str, request: Request) -> ApiAnswer:
        eviction = _read_eviction(request)
        options = DeleteOptions.read(eviction.get("deleteOptions") or {}, request.query)
        kind = self._objects.kinds.resource("pods")
        entry = self._objects.store.get("pods", namespace, name)
        if entry is None:
            raise errors.not_found("pods", name)
        pod = decode_object(entry.raw)
        is_counted = pod.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        if is_counted:
            self._spend_budget(namespace, pod, dry_run=options.dry_run)
            if not options.dry_run:
                self._mark_disrupted(kind, namespace, name, request)
            entry = self._objects.store.get("pods", namespace, name) or entry
        delete(self._objects, kind, entry, options)
        return json_answer(_CREATED, 201)

    def _mark_disrupted(self, kind: ServedKind, namespace: str, name: str, request: Request) -> None:
        def mark(pod: Json) -> Json:
            now = timestamp(self._objects.clock.now())
            message = "Eviction API: evicting"
            set_condition(
                pod["status"], "DisruptionTarget", "True", now=now, reason="EvictionByEvictionAPI", message=message
            )
            return pod

        caller = Caller(request.user, subresource="status")
        self._objects.update(kind, namespace, name, mark, caller)

    def _spend_budget(self, namespace: str, pod: Json, *, dry_run: bool) -> None:
        """Take one disruption from the budget that covers the pod, or refuse."""
        labels = pod["metadata"].get("labels") or {}
        budgets = [
            decode_object(e.raw) for e in self._objects.store.listing(BUDGETS).entries if e.namespace == namespace
        ]
        covering = [b for b in budgets if matches_label_selector(b.get("spec", {}).get("selector"), labels)]
        if len(covering) > 1:
            raise errors.internal_error(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            )
        for budget in covering:
            _check_budget(budget)
            if not dry_run:
                self._write_budget(budget, pod["metadata"]["name"])

    def _write_budget(self, budget: Json, pod_name: str) -> None:
        status = budget["status"]
        status["disruptionsAllowed"] -= 1
        status.setdefault("disruptedPods", {})[pod_name] = timestamp(self._objects.clock.now())
        self._objects.commit(self._objects.kinds.resource(BUDGETS), budget)

    # ---- scale

    def _scale(self, kind: ServedKind, namespace: str, name: str, request: Request) -> ApiAnswer:
        if kind.scale is None:
            raise errors.unknown_path()
        entry = self._objects.store.get(kind.stored_as, namespace, name)
        if entry is None:
            raise errors.not_found(kind.plural, name, group=kind.group)
        current = _scale_of(kind, self._objects.decoded(entry, kind))
        if request.method == "GET":
            return json_answer(current)
        wanted = _wanted_scale(current, request)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        if replicas < 0:
            cause = errors.invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")
            raise errors.invalid("Scale", name, [cause], group="autoscaling")
        given = (wanted.get("metadata") or {}).get("resourceVersion")

        def change(document: Json) -> Json:
            _put(document, kind.scale.spec_path if kind.scale else (), replicas)
            if given:
                document["metadata"]["resourceVersion"] = given
            return document

        caller = Caller(request.user, WriteOptions.of(request), subresource="scale")
        raw = self._objects.update(kind, namespace, name, change, caller)
        return json_answer(_scale_of(kind, decode_object(raw)))

    # ---- the rest

    def _token(self, namespace: str, name: str, request: Request) -> ApiAnswer:
        account = self._objects.store.get("serviceaccounts", namespace, name)
        if account is None:
            raise errors.not_found("serviceaccounts", name)
        review = _read(request, "authentication.v1.TokenRequest", "authentication.k8s.io/v1", "TokenRequest")
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


def _check_budget(budget: Json) -> None:
    name, status = budget["metadata"]["name"], budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        message = f"The disruption budget {name} is still being processed by the server."
        causes = [{"reason": "DisruptionBudget", "message": message}]
        raise errors.too_many_requests(_VIOLATION, causes=causes, retry_after_seconds=10)
    if status.get("disruptionsAllowed", 0) <= 0:
        wanted, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        message = f"The disruption budget {name} needs {wanted} healthy pods and has {healthy} currently"
        raise errors.too_many_requests(_VIOLATION, causes=[{"reason": "DisruptionBudget", "message": message}])


def set_condition(status: Json, kind: str, value: str, *, now: str, reason: str = "", message: str = "") -> None:
    """Set one condition; its transition time moves only when its value changes."""
    conditions = status.setdefault("conditions", [])
    found = next((condition for condition in conditions if condition.get("type") == kind), None)
    since = now if found is None or found.get("status") != value else found.get("lastTransitionTime", now)
    condition: Json = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": since}
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    if found is None:
        conditions.append(condition)
    else:
        conditions[conditions.index(found)] = condition


def _read_eviction(request: Request) -> Json:
    """In either version: the older one is still sent by kubectls from before 1.22, and the same in shape."""
    try:
        return _read(request, "policy.v1.Eviction", "policy/v1", "Eviction")
    except errors.RequestRefused as problem:
        try:
            return _read(request, "policy.v1.Eviction", "policy/v1beta1", "Eviction")
        except errors.RequestRefused:
            raise problem from None


def _read(request: Request, type_name: str, api_version: str, kind_name: str) -> Json:
    """The body of a subresource that is a kind of its own."""
    group, _, version = api_version.rpartition("/")
    kind = ServedKind(group, version, kind_name, kind_name.lower(), type=builtin_types()[type_name])
    content_type = request.headers.get("content-type", "")
    if not request.body:
        return {"apiVersion": api_version, "kind": kind_name, "metadata": {}}
    return read_object(request.body, content_type, kind, validation="Ignore", warnings=[])


def _get(document: JsonValue, path: tuple[str, ...], default: JsonValue) -> JsonValue:
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return default
        document = document[part]
    return document


def _put(document: Json, path: tuple[str, ...], value: JsonValue) -> None:
    for part in path[:-1]:
        document = document.setdefault(part, {})
    document[path[-1]] = value


def _scale_of(kind: ServedKind, document: Json) -> Json:
    scale = kind.scale
    if scale is None:
        raise errors.unknown_path()
    metadata = document["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    selector = _get(document, scale.selector_path, None) if scale.selector_path else None
    status = {"replicas": _get(document, scale.status_path, 0)}
    if selector:
        status["selector"] = selector if isinstance(selector, str) else _selector_text(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _get(document, scale.spec_path, 0)},
        "status": status,
    }


def _selector_text(selector: Json) -> str:
    labels = (
        selector.get("matchLabels", selector) if "matchExpressions" not in selector else selector.get("matchLabels", {})
    )
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _wanted_scale(current: Json, request: Request) -> Json:
    """The Scale of a PUT, or the current one with the PATCH applied."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind = ServedKind("autoscaling", "v1", "Scale", "scales", type=builtin_types()["autoscaling.v1.Scale"])
    if request.method == "PUT":
        return read_object(request.body, content_type, kind, validation="Ignore", warnings=[])
    patch = read_document(request.body, "application/json")
    media_type = JSON_PATCH if content_type == JSON_PATCH else MERGE_PATCH
    wanted = patched_with(current, patch, media_type, kind)
    conform_object(wanted, kind, validation="Ignore", warnings=[])
    return wanted
