"""What happened to claims while pods were bound, counted for kube-scheduler's metrics of devices.

Plugins feed them through `Devices.metrics`; `bayplan.app.metrics` shows them.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.api.devices import ResourceClaim
from bayplan.observe.metrics import Counter, Histogram, Metric
from bayplan.observe.scheduler_metrics import BINDING_CONDITIONS, BINDING_CONDITIONS_WAIT, CLAIM_CREATES

__all__ = ["DeviceMetrics"]


class DeviceMetrics:
    def __init__(self) -> None:
        self.creates = Metric(CLAIM_CREATES, Counter)
        self.conditions = Metric(BINDING_CONDITIONS, Counter)
        self.waits = Metric(BINDING_CONDITIONS_WAIT, lambda: Histogram(BINDING_CONDITIONS_WAIT.buckets))

    def created(self, *, is_made: bool) -> None:
        """A claim for extended resources was created, or could not be."""
        self.creates.labels("success" if is_made else "failure").inc()

    def waited(self, claims: Iterable[ResourceClaim], *, profile: str, status: str, seconds: float) -> None:
        """A pod waited for the conditions of its devices. As in kube-scheduler, the wait is observed for every device
        of the pod, and the outcome counted for those that have conditions."""
        for claim in claims:
            allocation = claim.status.allocation
            for result in allocation.devices.results or () if allocation is not None else ():
                self.waits.labels(profile, result.driver, status).observe(seconds)
                if result.binding_conditions:
                    self.conditions.labels(profile, result.driver, status).inc()
