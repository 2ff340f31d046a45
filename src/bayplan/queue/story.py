"""What happened to each pod in the queue, told with the pod, and how many entered each queue for which cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from bayplan.framework.queued import QueuedPod
from bayplan.queue.places import Place

__all__ = ["STORY_LENGTH", "Storyteller"]

STORY_LENGTH = 48
_IN_FLIGHT = Place.IN_FLIGHT.value


class Storyteller:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.incoming: Counter[tuple[str, str]] = Counter()
        """(queue, cause) to how many pods entered; for `queue_incoming_pods_total`."""

    def entered(self, queued: QueuedPod, place: Place, cause: str) -> Place:
        """The pod is there now. One that stays gated after all has not entered anything."""
        if place is Place.GATED and queued.story and queued.story[-1][1] == Place.GATED.value:
            return place
        name = place.value
        self.incoming[name, cause] += 1
        self._tell(queued, name, cause)
        return place

    def popped(self, queued: QueuedPod, cause: str) -> None:
        self._tell(queued, _IN_FLIGHT, cause)

    def _tell(self, queued: QueuedPod, place: str, cause: str) -> None:
        story = queued.story
        story.append((self._now(), place, cause))
        if len(story) > STORY_LENGTH:
            # The beginning says how it all started, so the oldest entry after it goes.
            del story[1]
