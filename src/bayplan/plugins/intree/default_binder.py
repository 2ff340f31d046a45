"""DefaultBinder: bind a pod to its node at the API server."""

from __future__ import annotations

from bayplan.framework import CycleState, Error, Permission, Plugin, PodInfo, Status

__all__ = ["DefaultBinder"]


class DefaultBinder(Plugin):
    """Bind a pod through the `binding` subresource.

    *What it does*: posts a Binding with the pod's name, namespace and uid, and the node as its target.
    *Rejects when*: never; a refusal by the API server is an error, after which the pod is tried again.
    *Scores by*: nothing.
    *Retries on*: nothing; errors are retried after back-off.
    *Arguments*: none.
    *Differs from kube-scheduler*: nowhere.
    """

    default_weight = 0
    permissions = (Permission("", "pods/binding", ("create",)),)
    binds_at_once = True

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        try:
            await self.handle.api.bind(pod, node_name)
        except Exception as error:
            return Error(str(error), exception=error)
        return None
