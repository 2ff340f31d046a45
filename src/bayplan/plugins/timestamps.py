"""The time at which a pod was scored, as an annotation of the pod: taken in the cycle, written once before binding."""

from __future__ import annotations

from bayplan.framework import CycleState, Error, Handle, Permission, PodInfo, StateKey, Status

__all__ = ["PATCH_PODS", "take_time", "write_time"]

PATCH_PODS = Permission("", "pods", ("patch",))
_TAKEN: StateKey[int] = StateKey("timestamps/nanoseconds")


def take_time(handle: Handle, state: CycleState) -> None:
    """Put the time, in nanoseconds since the epoch, into the state, unless it is there already."""
    if _TAKEN not in state:
        seconds, rest = divmod(handle.clock.now(), 1)
        state.put(_TAKEN, int(seconds) * 10**9 + int(rest * 1e9))


async def write_time(handle: Handle, state: CycleState, pod: PodInfo, *, annotation: str) -> Status | None:
    """Patch the annotation. Only the annotation is sent, so it cannot conflict with other writers."""
    take_time(handle, state)
    try:
        await handle.api.patch_pod(pod, {"metadata": {"annotations": {annotation: str(state[_TAKEN])}}})
    except Exception as error:
        return Error(f"cannot patch timestamp to pod {pod.name}, err: {error}", exception=error)
    return None
