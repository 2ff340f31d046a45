"""Events about pods, signed by a profile: `framework.handle.Recorder` over the client's event recorder."""

from __future__ import annotations

from bayplan.client.events import EventRecorder, ObjectReference
from bayplan.cluster.pod_info import PodInfo

__all__ = ["ProfileRecorder"]

_ONLY_ONCE = "Scheduled"
"""A pod is bound once; at a hundred pods a second, remembering each for minutes would cost more than it could save."""


class ProfileRecorder:
    def __init__(self, recorder: EventRecorder, profile_name: str) -> None:
        self._recorder = recorder
        self._profile_name = profile_name

    def event(self, pod: PodInfo, *, kind: str, reason: str, action: str, note: str) -> None:
        metadata = pod.pod.metadata
        regarding = ObjectReference(
            kind="Pod",
            api_version="v1",
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
        )
        self._recorder.record(
            regarding,
            controller=self._profile_name,
            type=kind,
            reason=reason,
            action=action,
            note=note,
            can_repeat=reason != _ONLY_ONCE,
        )
