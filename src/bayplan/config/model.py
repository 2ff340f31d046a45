"""KubeSchedulerConfiguration v1 as frozen structs, with kube-scheduler's defaults.

Older versions are read into the same structs (see `versions`), so everything after loading knows one shape. Names on
the wire are camelCase and come from the fields. Nothing here reads files or checks values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec

from bayplan.config.errors import Problem
from bayplan.config.rendering import wire_form

__all__ = [
    "API_VERSION",
    "ClientConnection",
    "ConfigDocument",
    "ExtenderConfig",
    "ExtenderTls",
    "LeaderElection",
    "ManagedResource",
    "PluginConfig",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "ProfileConfig",
    "SchedulerConfig",
    "Source",
]

API_VERSION = "kubescheduler.config.k8s.io/v1"
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigStruct(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Base of the structs below."""


class LeaderElection(ConfigStruct, frozen=True):
    leader_elect: bool = True
    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnection(ConfigStruct, frozen=True):
    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    """Requests a second; negative for no limit."""
    burst: Int32 = 100


class PluginRef(ConfigStruct, frozen=True):
    name: str = ""
    weight: Int32 = 0
    """Of a score; 0 means 1."""


class PluginSet(ConfigStruct, frozen=True):
    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[PluginRef, ...] = ()

    @property
    def is_empty(self) -> bool:
        return not self.enabled and not self.disabled


class Plugins(ConfigStruct, frozen=True):
    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def sets(self) -> dict[str, PluginSet]:
        """Plugin sets by their name in a configuration."""
        return {field.encode_name: getattr(self, field.name) for field in msgspec.structs.fields(self)}

    def entries(self, kind: Literal["enabled", "disabled"]) -> Iterator[tuple[str, str, PluginRef]]:
        """(extension point, path inside `plugins`, entry) of everything that is enabled or disabled."""
        for point, plugin_set in self.sets().items():
            for index, plugin in enumerate(plugin_set.enabled if kind == "enabled" else plugin_set.disabled):
                yield point, f"{point}.{kind}[{index}]", plugin


class PluginConfig(ConfigStruct, frozen=True):
    name: str = ""
    args: Any = None
    """As written; decoded into the plugin's own type once the plugins are known."""


class ProfileConfig(ConfigStruct, frozen=True):
    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    """None takes the one of the whole configuration."""
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderTls(ConfigStruct, frozen=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    key_data: str = ""
    ca_data: str = ""
    """The three `data` fields hold base64."""


class ManagedResource(ConfigStruct, frozen=True):
    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderConfig(ConfigStruct, frozen=True):
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTls | None = None
    http_timeout: timedelta = timedelta(seconds=5)
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] = ()
    ignorable: bool = False


class ConfigDocument(ConfigStruct, frozen=True):
    """The whole document as it is read."""

    api_version: str = ""
    kind: str = "KubeSchedulerConfiguration"
    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    """None takes the value of `enable_profiling`."""
    percentage_of_nodes_to_score: Int32 = 0
    """0 stands for every node; kube-scheduler takes a sample then whose size depends on the cluster."""
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[ProfileConfig, ...] = ()
    extenders: tuple[ExtenderConfig, ...] = ()
    delay_cache_until_active: bool = False


class Source(msgspec.Struct, frozen=True):
    """Where a value came from."""

    file: str = ""
    """Empty for a default."""
    line: int = 0

    @property
    def is_default(self) -> bool:
        return not self.file

    def __str__(self) -> str:
        if self.is_default:
            return "default"
        return f"{self.file}:{self.line}" if self.line else self.file


DEFAULT = Source()


class SchedulerConfig(ConfigDocument, frozen=True):
    """A configuration that passed every check that needs no plugins. `profiles` holds at least one."""

    sources: Mapping[str, Source] = MappingProxyType({})
    """By path (`profiles[0].schedulerName`); what is not there is a default."""
    warnings: tuple[Problem, ...] = ()
    """What is accepted but has no effect, or should be rewritten."""

    def source_of(self, path: str) -> Source:
        """Where the value at a path (`profiles[0].pluginConfig[1].args.labelKey`) came from."""
        return self.sources.get(path, DEFAULT)

    def to_dict(self, *, redact: bool = True) -> dict[str, Any]:
        """The configuration in v1 form, for /configz; `redact=False` keeps key material, for writing a file."""
        return {
            "apiVersion": API_VERSION,
            "kind": self.kind,
            **wire_form(self, redact=redact, leave_out=frozenset(("api_version", "kind", "sources", "warnings"))),
        }
