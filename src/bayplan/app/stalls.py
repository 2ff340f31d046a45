"""What a scheduler that does not turn is busy with: the plugin and the pod, read from the frames of its thread."""

from __future__ import annotations

from types import FrameType

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.plugin import Plugin

__all__ = ["at_work"]


def at_work(frame: FrameType | None) -> dict[str, str]:
    """The innermost plugin with its method, and the innermost pod."""
    found: dict[str, str] = {}
    while frame is not None:
        for value in list(frame.f_locals.values()):
            if isinstance(value, Plugin) and "plugin" not in found:
                found |= {"plugin": value.name, "method": frame.f_code.co_name}
            elif isinstance(value, PodInfo):
                found.setdefault("pod", value.key)
        frame = frame.f_back
    return found
