"""BayplanConfiguration: settings of this scheduler that kube-scheduler does not have, in a document of their own.

    apiVersion: bayplan.dev/v1alpha1
    kind: BayplanConfiguration
    decisions:
      memory: 256Mi

The KubeSchedulerConfiguration beside it stays one that kube-scheduler loads. Here are the fields and their defaults;
docs/reference/configuration.md is written from them, and `bayplan.config.own_loading` reads and checks the document.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import msgspec

from bayplan.api.quantity import value
from bayplan.config.model import ConfigStruct
from bayplan.config.rendering import wire_form

__all__ = [
    "OWN_API_VERSION",
    "OWN_KIND",
    "BayplanConfig",
    "DecisionSettings",
    "LoggingSettings",
    "RecordingSettings",
    "ServingSettings",
    "WatchdogSettings",
]

OWN_API_VERSION = "bayplan.dev/v1alpha1"
OWN_KIND = "BayplanConfiguration"
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class DecisionSettings(ConfigStruct, frozen=True):
    """What is kept of every decision, for `bayplan explain`, `pending` and the dashboard."""

    memory: str = "64Mi"
    """Limit of the decisions kept in memory; 64Mi hold some 50,000. More is for larger or busier clusters."""
    file: str = ""
    """File, or folder, to which decisions are appended, and from which they are read back after a restart."""
    file_size: str = "64Mi"
    """Size at which the file is rotated."""
    files_kept: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 4
    """Number of rotated files that are kept besides the current one."""

    @property
    def memory_bytes(self) -> int:
        return value(self.memory)

    @property
    def file_bytes(self) -> int:
        return value(self.file_size)


class WatchdogSettings(ConfigStruct, frozen=True):
    """What happens when a plugin computes or waits for so long that nothing else happens."""

    notice_after: timedelta = timedelta(seconds=1)
    """Time after which a scheduler that stands still is logged, with plugin and pod."""
    end_after: timedelta = timedelta(minutes=1)
    """Time after which it ends, so that a standby takes over; 0s for never."""
    stop_within: timedelta = timedelta(seconds=25)
    """Time in which a process that was asked to stop must end; below the pod's terminationGracePeriodSeconds."""


class ServingSettings(ConfigStruct, frozen=True):
    """Limits of the HTTPS endpoints."""

    connections: Count = 256
    """Connections at a time, of all clients."""
    connections_per_address: Count = 64
    """Connections at a time of one address. Behind a proxy all clients share its address."""
    review_pods: bool = False
    """Whether explanations are given only to those who may also read the pods in question: `get` on the pod that is
    explained, `list` in the namespace that is asked about, or in all where an answer is about the cluster."""


class LoggingSettings(ConfigStruct, frozen=True):
    """The log, beyond kube-scheduler's flags `-v` and `--logging-format`."""

    slow_call: timedelta = timedelta(milliseconds=100)
    """Time of one decision from which -v=2 names the plugins that took it."""


class RecordingSettings(ConfigStruct, frozen=True):
    """A recording of what the scheduler sees and decides, which `bayplan simulate` and `bayplan replay` read."""

    file: str = ""
    """File to append the recording to; empty for none."""
    size: str = "256Mi"
    """Size at which the recording ends; scheduling goes on. 256Mi hold some millions of changes."""

    @property
    def size_bytes(self) -> int:
        return value(self.size)


class BayplanConfig(ConfigStruct, frozen=True):
    """All of it. Flags of `bayplan run` win over these fields."""

    api_version: str = OWN_API_VERSION
    kind: str = OWN_KIND
    plugins: tuple[str, ...] = ()
    """Plugins to load, as `--plugin` names them; those of the flag come in addition."""
    seed: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    """Seed of random choices, such as between nodes that tie."""
    with_controllers: bool = False
    """Whether the leader also writes the status of PodGroups and ElasticQuotas."""
    device_taint_rules: bool = False
    """Whether DeviceTaintRules taint devices, as with kube-scheduler's feature gate DRADeviceTaintRules."""
    decisions: DecisionSettings = DecisionSettings()
    watchdog: WatchdogSettings = WatchdogSettings()
    serving: ServingSettings = ServingSettings()
    logging: LoggingSettings = LoggingSettings()
    recording: RecordingSettings = RecordingSettings()

    def to_dict(self) -> dict[str, Any]:
        """In the form that `bayplan.config.own_loading` reads."""
        return wire_form(self, redact=False)
