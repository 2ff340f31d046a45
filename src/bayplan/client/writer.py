"""The writes of a scheduler: bindings, pod status, evictions, and any other resource through `resource`.

A binding must be correct under every failure. It is not repeatable: the second attempt of a binding that went through
is answered 409. So after a 409, or an attempt whose outcome is unknown, whatever error ends the attempts is followed by
reading the pod: if it is the same pod and on the requested node, it is bound, by this scheduler or by a leader before
it whose request was late. Reading is retried for long: releasing the resources of a pod whose binding is in doubt would
assign them twice. A deletion is looked after the same way: a victim taken for one that stays would be followed by
another one.

Writes wait for one of `max_in_flight` slots, in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

import msgspec

from bayplan.client.backoff import BackoffSettings, Draw
from bayplan.client.errors import ApiError, Conflict, InvalidResponse, NoAnswer, NotFound, ServerError
from bayplan.client.resources import ResourceClient, ResourceType, delete_options, segment
from bayplan.client.retry import RetryingSender, RetryPolicy, SendOutcome, WriteRequest
from bayplan.client.transport import STRATEGIC_MERGE_PATCH, Transport, always
from bayplan.observe.clock import Clock

_BINDING_POLICY = RetryPolicy()
_LOOK_POLICY = RetryPolicy(attempts=30, repeats_refusals=True)
_LOOKS = 5
_DELETE_POLICY = RetryPolicy(repeats_conflicts=True)
# kube-scheduler gives a status patch four tries, 10 ms apart at first and five times longer each time.
_STATUS_BACKOFF = BackoffSettings(initial_seconds=0.01, factor=5.0, ceiling_seconds=5.0, jitter=0.0)
_PINNED_STATUS_POLICY = RetryPolicy(attempts=4, backoff=_STATUS_BACKOFF)
_STATUS_POLICY = RetryPolicy(attempts=4, backoff=_STATUS_BACKOFF, repeats_conflicts=True)


class _FoundPodMeta(msgspec.Struct, rename="camel"):
    uid: str = ""
    deletion_timestamp: str | None = None


class _FoundPodSpec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _FoundPod(msgspec.Struct):
    metadata: _FoundPodMeta = msgspec.field(default_factory=_FoundPodMeta)
    spec: _FoundPodSpec = msgspec.field(default_factory=_FoundPodSpec)


_FOUND_POD = msgspec.json.Decoder(_FoundPod)


class Writer:
    """Writes of one scheduler to one API server."""

    def __init__(
        self,
        transport: Transport,
        *,
        clock: Clock,
        draw: Draw,
        max_in_flight: int = 64,
        may_write: Callable[[], bool] = always,
    ) -> None:
        self._transport = transport
        self._sender = RetryingSender(transport, clock=clock, draw=draw, may_write=may_write)
        self._places = asyncio.Semaphore(max_in_flight)
        self._many = max_in_flight // 2
        self._bindings_under_way = 0

    @property
    def bindings_under_way(self) -> int:
        """Bindings in flight."""
        return self._bindings_under_way

    @property
    def is_busy(self) -> bool:
        """Whether bindings need more than half of the slots: other writes should wait then."""
        return self._bindings_under_way > self._many

    @property
    def retries(self) -> int:
        """How many attempts after a first one were made so far."""
        return self._sender.retries

    async def bind(self, namespace: str, name: str, *, uid: str, node: str) -> None:
        """Assign a pod to a node.

        Returns when the API server has recorded it, after as many attempts as that takes. Raises `Conflict` when the
        pod is bound elsewhere or is another pod by now, `NotFound` when it is gone, another `ApiError` when the server
        refuses or keeps failing, and `NoAnswer` when there was no answer to the last attempt, or none to reading the
        pod.
        """
        body = _binding_body(namespace, name, uid, node)
        request = WriteRequest(method="POST", path=f"{_pod_path(namespace, name)}/binding", body=body)
        self._bindings_under_way += 1
        try:
            await self._places.acquire()
            try:
                outcome = await self._sender.send(request, _BINDING_POLICY)
                if outcome.error is not None:
                    await self._settle(outcome, outcome.error, namespace=namespace, name=name, uid=uid, node=node)
            finally:
                self._places.release()
        finally:
            self._bindings_under_way -= 1

    async def _settle(
        self, outcome: SendOutcome, error: ApiError | NoAnswer, *, namespace: str, name: str, uid: str, node: str
    ) -> None:
        """Return if the pod is on `node` after all, by whichever attempt or replica; else raise what is true of it."""
        if not _may_be_done(outcome) and not isinstance(error, Conflict):
            raise error
        pod = await self._look_at(namespace, name)
        if pod.metadata.uid != uid:
            raise Conflict(f"pod {namespace}/{name} is another pod by now", code=409, reason="Conflict") from error
        if not pod.spec.node_name:
            raise error
        if pod.spec.node_name != node:
            what = f'pod {namespace}/{name} is already assigned to node "{pod.spec.node_name}"'
            raise Conflict(what, code=409, reason="Conflict") from error

    async def _look_at(self, namespace: str, name: str) -> _FoundPod:
        """The pod as it is now. An answer that is not about a pod tells nothing: the question is repeated."""
        for _ in range(_LOOKS - 1):
            with contextlib.suppress(InvalidResponse):
                return await self._look_once(namespace, name)
        return await self._look_once(namespace, name)

    async def _look_once(self, namespace: str, name: str) -> _FoundPod:
        look = await self._sender.send(WriteRequest(method="GET", path=_pod_path(namespace, name)), _LOOK_POLICY)
        if isinstance(look.error, NotFound):
            raise look.error
        if look.response is None:
            what = f"what became of pod {namespace}/{name} is unknown: {look.error}"
            raise NoAnswer(what, may_have_been_processed=True) from look.error
        try:
            found = _FOUND_POD.decode(look.response.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InvalidResponse(f"the answer about pod {namespace}/{name} is not a pod: {error}") from error
        if not found.metadata.uid:
            raise InvalidResponse(f"the answer about pod {namespace}/{name} is not a pod: it has no uid")
        return found

    async def patch_pod_status(
        self, namespace: str, name: str, status: Mapping[str, object], *, uid: str = "", version: str = ""
    ) -> None:
        """Merge `status` into the pod's status, strategically: conditions are merged by their type.

        With `uid`, `Conflict` is raised for a successor of the same name; with `version`, for any later version.
        """
        expected = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
        body = {"metadata": expected, "status": status} if expected else {"status": status}
        request = WriteRequest(
            method="PATCH",
            path=f"{_pod_path(namespace, name)}/status",
            body=msgspec.json.encode(body),
            content_type=STRATEGIC_MERGE_PATCH,
        )
        async with self._places:
            outcome = await self._sender.send(request, _PINNED_STATUS_POLICY if version else _STATUS_POLICY)
        if outcome.error is not None:
            raise outcome.error

    async def delete_pod(self, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None) -> None:
        """Delete a pod; one that does not exist any more counts as deleted, and so does one that terminates after an
        attempt whose outcome is unknown. With `uid`, a successor of the same name stays, and `Conflict` is raised; one
        that is no fault of a successor is an error of the server."""
        body = delete_options(uid, grace_seconds)
        request = WriteRequest(method="DELETE", path=_pod_path(namespace, name), body=body)
        async with self._places:
            outcome = await self._sender.send(request, _DELETE_POLICY)
            if outcome.error is None or isinstance(outcome.error, NotFound):
                return
            if _may_be_done(outcome) and await self._is_deleted(namespace, name, uid):
                return
            if uid and isinstance(outcome.error, Conflict):
                await self._settle_conflict(outcome.error, namespace, name, uid)
                return
        raise outcome.error

    async def _is_deleted(self, namespace: str, name: str, uid: str) -> bool:
        try:
            pod = await self._look_at(namespace, name)
        except NotFound:
            return True
        return bool(pod.metadata.deletion_timestamp) or (bool(uid) and pod.metadata.uid != uid)

    async def _settle_conflict(self, conflict: Conflict, namespace: str, name: str, uid: str) -> None:
        """Return if the pod goes or is gone. One that stays must not be taken for a successor: who waits until the pod
        is gone would wait without end."""
        try:
            pod = await self._look_at(namespace, name)
        except NotFound:
            return
        if pod.metadata.uid != uid:
            raise conflict
        if not pod.metadata.deletion_timestamp:
            what = f"pod {namespace}/{name} was not deleted, though it is the pod that was meant: {conflict.message}"
            raise ServerError(what, code=conflict.code, reason=conflict.reason) from conflict

    def resource(self, group: str, version: str, plural: str, *, namespaced: bool = True) -> ResourceClient:
        """A client for any resource, built in or custom."""
        return ResourceClient(ResourceType(group, version, plural, namespaced), self._transport, self._sender)


def _may_be_done(outcome: SendOutcome) -> bool:
    """Whether an error leaves open that one of our attempts did what was asked for."""
    error = outcome.error
    if isinstance(error, NotFound):
        return False
    if outcome.is_retry_of_unknown or isinstance(error, ServerError):
        return True
    return isinstance(error, NoAnswer) and error.may_have_been_processed


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(name)}"


class _BindingMeta(msgspec.Struct, omit_defaults=True):
    name: str
    namespace: str
    uid: str = ""


class _BindingTarget(msgspec.Struct, rename="camel"):
    name: str
    kind: str = "Node"
    api_version: str = "v1"


class _Binding(msgspec.Struct, rename="camel"):
    metadata: _BindingMeta
    target: _BindingTarget
    kind: str = "Binding"
    api_version: str = "v1"


_encode_binding = msgspec.json.Encoder().encode


def _binding_body(namespace: str, name: str, uid: str, node: str) -> bytes:
    return _encode_binding(_Binding(_BindingMeta(name, namespace, uid), _BindingTarget(node)))
