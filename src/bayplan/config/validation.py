"""Rules of a configuration beyond types that need no plugins.

Texts that kube-scheduler prints are kept where it has one. Everything is checked in one go; `Problems` keeps a second
problem from being reported at a place whose type was wrong already.
"""

from __future__ import annotations

import base64
import binascii
import re
from datetime import timedelta

from bayplan.api.requests import is_extended_resource
from bayplan.config.errors import Problems
from bayplan.config.model import ConfigDocument, ExtenderConfig, LeaderElection, ProfileConfig
from bayplan.config.reading import shown
from bayplan.config.versions import refuse_retired

__all__ = ["Checker", "validate"]

_JITTER = 1.2
_QUALIFIED_NAME = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


class Checker:
    """Adds problems with the line of their path."""

    def __init__(self, problems: Problems, lines: dict[str, int]) -> None:
        self.problems = problems
        self.lines = lines

    def refuse(self, path: str, message: str, *, hint: str = "") -> None:
        self.problems.add(path, message, hint=hint, line=self.line_of(path))

    def require(self, is_fine: bool, path: str, value: object, rule: str, *, hint: str = "") -> None:
        if not is_fine:
            self.refuse(path, f"found {shown(value)}, {rule}", hint=hint)

    def line_of(self, path: str) -> int:
        """The line of a path, or of the nearest thing around it that the document gives."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, 0)


def validate(config: ConfigDocument, check: Checker) -> None:
    check.require(
        config.parallelism > 0, "parallelism", config.parallelism, "should be an integer value greater than zero"
    )
    if config.leader_election.leader_elect:
        _leader_election(config.leader_election, check)
    burst = config.client_connection.burst
    check.require(burst >= 0, "clientConnection.burst", burst, "must be non-negative")
    _percentage("percentageOfNodesToScore", config.percentage_of_nodes_to_score, check)
    initial, longest = config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds
    check.require(initial > 0, "podInitialBackoffSeconds", initial, "must be greater than 0")
    rule = f"must be greater than or equal to podInitialBackoffSeconds ({initial})"
    check.require(longest >= initial, "podMaxBackoffSeconds", longest, rule)
    for index, profile in enumerate(config.profiles):
        _profile(profile, f"profiles[{index}]", check)
    _names(config.profiles, check)
    _extenders(config.extenders, check)


def validate_queue_sort(profiles: tuple[ProfileConfig, ...], check: Checker) -> None:
    """Pods of all profiles wait in one queue, so all must order it in the same way."""
    first = profiles[0].plugins.queue_sort
    if len(first.enabled) > 1:
        names = ", ".join(plugin.name for plugin in first.enabled)
        message = f"found {names}: only one queue sort plugin can be enabled"
        check.refuse("profiles[0].plugins.queueSort.enabled", message, hint="add the others to `queueSort.disabled`")
    chosen = first.enabled[0].name if first.enabled else ""
    args = {config.name: config.args for config in profiles[0].plugin_config}.get(chosen)
    for index, profile in enumerate(profiles[1:], start=1):
        if profile.plugins.queue_sort != first:
            path = f"profiles[{index}].plugins.queueSort"
            check.refuse(path, "must be the same for all profiles", hint="make it equal to that of profiles[0]")
        for place, config in enumerate(profile.plugin_config):
            if config.name == chosen and config.args != args:
                path = f"profiles[{index}].pluginConfig[{place}].args"
                check.refuse(path, "queueSort must be the same for all profiles")


def _leader_election(election: LeaderElection, check: Checker) -> None:
    path = "leaderElection"
    durations = {
        "leaseDuration": election.lease_duration,
        "renewDeadline": election.renew_deadline,
        "retryPeriod": election.retry_period,
    }
    for name, duration in durations.items():
        if duration <= timedelta(0):
            check.refuse(f"{path}.{name}", "must be greater than zero")
    if election.lease_duration <= election.renew_deadline:
        check.refuse(
            f"{path}.leaseDuration", "must be greater than renewDeadline", hint="kube-scheduler has 15s and 10s"
        )
    if election.renew_deadline <= election.retry_period * _JITTER:
        rule = f"must be greater than {_JITTER} times retryPeriod"
        check.refuse(f"{path}.renewDeadline", rule, hint="kube-scheduler has 10s and 2s")
    lock = election.resource_lock
    check.require(lock == "leases", f"{path}.resourceLock", lock, 'resourceLock value must be "leases"')


def _percentage(path: str, value: int | None, check: Checker) -> None:
    check.require(value is None or 0 <= value <= 100, path, value, "not in valid range [0-100]")


def _profile(profile: ProfileConfig, path: str, check: Checker) -> None:
    _percentage(f"{path}.percentageOfNodesToScore", profile.percentage_of_nodes_to_score, check)
    refuse_retired(profile, path, check.problems, check.lines)
    for _, place, plugin in (*profile.plugins.entries("enabled"), *profile.plugins.entries("disabled")):
        if not plugin.name:
            check.refuse(f"{path}.plugins.{place}.name", "is required", hint="write `name: <plugin>`")
    for _, place, plugin in profile.plugins.entries("enabled"):
        if plugin.name == "*":
            check.refuse(f"{path}.plugins.{place}", "`*` can only be disabled", hint="name the plugins to enable")
    _plugin_configs(profile, path, check)


def _plugin_configs(profile: ProfileConfig, path: str, check: Checker) -> None:
    seen: dict[str, int] = {}
    for index, config in enumerate(profile.plugin_config):
        place = f"{path}.pluginConfig[{index}]"
        if not config.name:
            check.refuse(f"{place}.name", "is required", hint="write `name: <plugin>`")
        elif config.name in seen:
            first = f"{path}.pluginConfig[{seen[config.name]}]"
            check.refuse(place, f"repeated config for plugin {config.name}", hint=f"put all of it into {first}")
        seen.setdefault(config.name, index)


def _names(profiles: tuple[ProfileConfig, ...], check: Checker) -> None:
    seen: dict[str, int] = {}
    for index, profile in enumerate(profiles):
        path, name = f"profiles[{index}].schedulerName", profile.scheduler_name
        if not name:
            check.refuse(path, "is required", hint="with several profiles each needs a name of its own")
        elif name in seen:
            check.refuse(path, f"`{name}` is the name of profiles[{seen[name]}] already", hint="give each its own")
        seen.setdefault(name, index)


def _extenders(extenders: tuple[ExtenderConfig, ...], check: Checker) -> None:
    resources: dict[str, str] = {}
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        _extender(extender, path, check)
        for place, resource in enumerate(extender.managed_resources):
            where = f"{path}.managedResources[{place}].name"
            _resource_name(resource.name, where, check)
            if resource.name in resources:
                message = f"`{resource.name}`: duplicate extender managed resource name"
                check.refuse(where, message, hint=f"it is at {resources[resource.name]} already")
            resources.setdefault(resource.name, where)
    binders = [index for index, extender in enumerate(extenders) if extender.bind_verb]
    for index in binders[1:]:
        message = f"found {len(binders)} extenders implementing bind, only one extender can implement bind"
        check.refuse(f"extenders[{index}].bindVerb", message)


def _extender(extender: ExtenderConfig, path: str, check: Checker) -> None:
    if not extender.url_prefix.startswith(("http://", "https://")):
        rule = "expected an http:// or https:// address"
        check.require(False, f"{path}.urlPrefix", extender.url_prefix or None, rule)
    if extender.prioritize_verb and extender.weight <= 0:
        rule = "must have a positive weight applied to it"
        check.require(False, f"{path}.weight", extender.weight, rule, hint="it has a prioritizeVerb")
    if extender.http_timeout < timedelta(0):
        check.refuse(f"{path}.httpTimeout", "must not be negative")
    tls = extender.tls_config
    for name, data in (("certData", tls.cert_data), ("keyData", tls.key_data), ("caData", tls.ca_data)) if tls else ():
        if not _is_base64(data):
            check.refuse(f"{path}.tlsConfig.{name}", "is not base64", hint="encode it with `base64 -w0`")
    if tls and tls.insecure and (tls.ca_file or tls.ca_data):
        check.refuse(f"{path}.tlsConfig.insecure", "is true although a CA is given", hint="remove one of them")


def _resource_name(name: str, path: str, check: Checker) -> None:
    if not name or len(name) > 317 or not _QUALIFIED_NAME.fullmatch(name):
        check.require(False, path, name or None, "expected a name such as `example.com/device`")
    elif not is_extended_resource(name):
        check.require(False, path, name, "is an invalid extended resource name", hint="such as `example.com/device`")


def _is_base64(data: str) -> bool:
    try:
        base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True
