"""The scheduling queue: a state machine without asyncio, and a thin async shell around it.

`machine` is the place to start: it draws the states and the moves between them. `shell` adds waiting and timers.
`update_events` turns the difference of two versions of an object into cluster events. Nothing here sends requests to an
API server, and nothing here decides which node a pod gets.
"""

from bayplan.queue.backoff import BackoffTimes
from bayplan.queue.machine import QueuePolicy, SchedulingQueue
from bayplan.queue.nominations import Nominations
from bayplan.queue.places import Place, QueueSizes
from bayplan.queue.shell import Doorbell, QueueShell
from bayplan.queue.update_events import node_update_events, pod_update_events

__all__ = [
    "BackoffTimes",
    "Doorbell",
    "Nominations",
    "Place",
    "QueuePolicy",
    "QueueShell",
    "QueueSizes",
    "SchedulingQueue",
    "node_update_events",
    "pod_update_events",
]
