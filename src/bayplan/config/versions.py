"""Versions of the configuration: which are read, what each lacks, and how v1beta2 becomes v1.

v1beta3 differs from v1 by a few fields that came later. v1beta2 had no multiPoint defaults: each extension point had a
default list of its own, with other weights. It is rewritten so that the profile runs as it did then, plus what the
plugins have gained since (scheduling gates, dynamic resources, declared features). Names of plugins that are gone are
refused with what took their place; anything older than v1beta2 is refused as a whole.
"""

from __future__ import annotations

from typing import Any

import msgspec

from bayplan.api.documents import Table
from bayplan.config.errors import Problems
from bayplan.config.model import PluginRef, Plugins, PluginSet, ProfileConfig
from bayplan.config.own import OWN_KIND, BayplanConfig
from bayplan.config.reading import inside, shown

__all__ = [
    "RETIRED_PLUGINS",
    "VERSIONS",
    "check_header",
    "check_version_fields",
    "from_v1beta2",
    "hint_for_unknown",
    "merge_sets",
]

GROUP = "kubescheduler.config.k8s.io"
KIND = "KubeSchedulerConfiguration"
VERSIONS = ("v1", "v1beta3", "v1beta2")

_V1BETA2_DEFAULTS: dict[str, tuple[tuple[str, int], ...]] = {
    "queueSort": (("PrioritySort", 0),),
    "preFilter": tuple(
        (name, 0)
        for name in (
            "NodeResourcesFit",
            "NodePorts",
            "VolumeRestrictions",
            "PodTopologySpread",
            "InterPodAffinity",
            "VolumeBinding",
            "VolumeZone",
            "NodeAffinity",
        )
    ),
    "filter": tuple(
        (name, 0)
        for name in (
            "NodeUnschedulable",
            "NodeName",
            "TaintToleration",
            "NodeAffinity",
            "NodePorts",
            "NodeResourcesFit",
            "VolumeRestrictions",
            "NodeVolumeLimits",
            "VolumeBinding",
            "VolumeZone",
            "PodTopologySpread",
            "InterPodAffinity",
        )
    ),
    "postFilter": (("DefaultPreemption", 0),),
    "preScore": (("InterPodAffinity", 0), ("PodTopologySpread", 0), ("TaintToleration", 0), ("NodeAffinity", 0)),
    "score": (
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("InterPodAffinity", 1),
        ("NodeResourcesFit", 1),
        ("NodeAffinity", 1),
        ("PodTopologySpread", 2),
        ("TaintToleration", 1),
    ),
    "reserve": (("VolumeBinding", 0),),
    "preBind": (("VolumeBinding", 0),),
    "bind": (("DefaultBinder", 0),),
}

_FIT = "set `scoringStrategy.type: {}` in the args of NodeResourcesFit"
_CSI = "volumes of that kind are counted by NodeVolumeLimits"
RETIRED_PLUGINS: dict[str, str] = {
    "AzureDiskLimits": _CSI,
    "CinderLimits": _CSI,
    "EBSLimits": _CSI,
    "GCEPDLimits": _CSI,
    "NodeLabel": "use node affinity in pods, or `addedAffinity` in the args of NodeAffinity",
    "NodePreferAvoidPods": "use a taint with the effect PreferNoSchedule",
    "NodeResourcesLeastAllocated": _FIT.format("LeastAllocated"),
    "NodeResourcesMostAllocated": _FIT.format("MostAllocated"),
    "RequestedToCapacityRatio": _FIT.format("RequestedToCapacityRatio"),
    "SelectorSpread": "use PodTopologySpread, whose system defaults spread the pods of a service or owner",
    "DefaultPodTopologySpread": "use PodTopologySpread, whose system defaults spread the pods of a service or owner",
    "ServiceAffinity": "use pod affinity, or PodTopologySpread",
}
"""Plugins of earlier Kubernetes versions, and what to use instead."""

_RETIRED_FIELDS = {
    "healthzBindAddress": "gone since v1beta3; health is served on the secure port (`--secure-port`)",
    "metricsBindAddress": "gone since v1beta3; metrics are served on the secure port (`--secure-port`)",
    "algorithmSource": "gone since v1alpha2; use `profiles`",
    "policy": "scheduling policies are gone; use `profiles`",
    "disablePreemption": "gone since v1beta1; disable DefaultPreemption at `postFilter`",
    "hardPodAffinitySymmetricWeight": "gone; use `hardPodAffinityWeight` in the args of InterPodAffinity",
    "bindTimeoutSeconds": "gone since v1beta1; set `bindTimeoutSeconds` in the args of VolumeBinding",
    "schedulerName": "it belongs into a profile: `profiles: [{schedulerName: ...}]`",
    "plugins": "it belongs into a profile: `profiles: [{plugins: ...}]`",
    "pluginConfig": "it belongs into a profile: `profiles: [{pluginConfig: ...}]`",
}
_OTHER_KINDS = {
    "Policy": "scheduling policies are gone since Kubernetes 1.23; use `profiles`",
    OWN_KIND: "give it with --bayplan-config",
}
_OWN_FIELDS = frozenset(field.encode_name for field in msgspec.structs.fields(BayplanConfig))
_POINTS = frozenset(field.encode_name for field in msgspec.structs.fields(Plugins))
_SINCE_V1_TOP = ("delayCacheUntilActive",)
_SINCE_V1_PROFILE = ("percentageOfNodesToScore",)
_SINCE_V1_POINTS = ("placementGenerate", "placementScore")


def hint_for_unknown(path: str, key: str) -> str:
    """A hint about a field that the model does not have but people write; empty for all others."""
    if not path:
        own = "it belongs into a BayplanConfiguration (--bayplan-config)" if key in _OWN_FIELDS else ""
        return _RETIRED_FIELDS.get(key, own)
    if path.startswith("profiles[") and path.endswith("]") and key in _POINTS:
        return f"it belongs into `plugins`: `plugins: {{{key}: ...}}`"
    return ""


def check_header(document: Table, problems: Problems) -> str:
    """The version that the document states; empty, with a problem, when it cannot be read."""
    api_version, kind = document.get("apiVersion"), document.get("kind")
    wanted = f"write `apiVersion: {GROUP}/v1` and `kind: {KIND}`"
    if kind == "ConfigMap":
        hint = "hand in the file inside it, the text under `data`"
        problems.add("kind", f"expected `{KIND}`, found a ConfigMap", hint=hint, line=document.lines.get("kind", 0))
    elif kind is None:
        problems.add("kind", "is missing", hint=wanted)
    elif kind != KIND:
        hint = _OTHER_KINDS.get(str(kind), wanted)
        problems.add("kind", f"expected `{KIND}`, found {shown(kind)}", hint=hint, line=document.lines.get("kind", 0))
    if kind is not None and kind != KIND:
        return ""
    return _version(api_version, problems, wanted, document.lines.get("apiVersion", 0))


def _version(api_version: Any, problems: Problems, wanted: str, line: int) -> str:
    if api_version is None:
        problems.add("apiVersion", "is missing", hint=wanted)
        return ""
    group, _, version = api_version.partition("/") if isinstance(api_version, str) else ("", "", "")
    if group == GROUP and version in VERSIONS:
        return version
    known = [f"{GROUP}/{name}" for name in VERSIONS]
    hint = f"read are {', '.join(f'`{name}`' for name in known)}"
    if group == GROUP and version in ("v1alpha1", "v1alpha2", "v1beta1"):
        hint = f"{version} ended with Kubernetes 1.22 or before; rewrite it as `{GROUP}/v1`"
    problems.add("apiVersion", f"unknown version {shown(api_version)}", hint=hint, line=line)
    return ""


def check_version_fields(document: Table, version: str, problems: Problems) -> Table:
    """The document without the fields that only old versions had; fields that came later are refused."""
    if version == "v1":
        return document
    _refuse_later(document, _SINCE_V1_TOP, "", version, problems)
    profiles = document.get("profiles")
    for index, profile in enumerate(profiles if isinstance(profiles, list) else ()):
        if isinstance(profile, Table):
            _refuse_later(profile, _SINCE_V1_PROFILE, f"profiles[{index}]", version, problems)
            plugins = profile.get("plugins")
            if isinstance(plugins, Table):
                _refuse_later(plugins, _SINCE_V1_POINTS, f"profiles[{index}].plugins", version, problems)
    return _without_addresses(document, problems) if version == "v1beta2" else document


def _refuse_later(table: Table, names: tuple[str, ...], path: str, version: str, problems: Problems) -> None:
    for name in names:
        if table.get(name) is not None:
            hint = f"set `apiVersion: {GROUP}/v1`, which has it"
            problems.add(inside(path, name), f"unknown field in {version}", hint=hint, line=table.lines.get(name, 0))


def _without_addresses(document: Table, problems: Problems) -> Table:
    """v1beta2's two addresses had to be empty or name port 0 already; that is accepted and means nothing."""
    kept = Table(document.line)
    kept.update(document)
    kept.lines, kept.repeated = document.lines, document.repeated
    for name in ("healthzBindAddress", "metricsBindAddress"):
        value = kept.pop(name, None)
        if value is None or (isinstance(value, str) and (value in ("", "0") or value.endswith(":0"))):
            continue
        message = f"expected nothing or port 0, found {shown(value)}"
        hint = "remove it; health and metrics are served on the secure port (`--secure-port`)"
        problems.add(name, message, hint=hint, line=document.lines.get(name, 0))
    return kept


def refuse_retired(profile: ProfileConfig, path: str, problems: Problems, lines: dict[str, int]) -> None:
    """Enabled or configured plugins that are gone. Disabling one has no effect and is reported elsewhere."""
    for _, place, plugin in profile.plugins.entries("enabled"):
        _refuse_one(plugin.name, f"{path}.plugins.{place}", problems, lines)
    for index, config in enumerate(profile.plugin_config):
        _refuse_one(config.name, f"{path}.pluginConfig[{index}]", problems, lines)


def _refuse_one(name: str, place: str, problems: Problems, lines: dict[str, int]) -> None:
    if name in RETIRED_PLUGINS:
        line = lines.get(place, 0)
        problems.add(place, f"plugin `{name}` does not exist any more", hint=RETIRED_PLUGINS[name], line=line)


def from_v1beta2(profile: ProfileConfig) -> ProfileConfig:
    """The same profile in v1 form.

    Every point lists v1beta2's defaults explicitly, merged with those of the profile. Explicitly listed plugins that
    multiPoint also has keep the order of the list; what multiPoint adds beyond it are points and plugins that came
    after v1beta2. A plugin that the profile disabled wherever v1beta2 had it is disabled altogether.
    """
    sets = profile.plugins.sets()
    converted: dict[str, PluginSet] = {}
    for point, names in _V1BETA2_DEFAULTS.items():
        defaults = tuple(PluginRef(name=name, weight=weight) for name, weight in names)
        converted[point] = PluginSet(enabled=merge_sets(defaults, sets[point]).enabled, disabled=sets[point].disabled)
    multi_point = sets["multiPoint"]
    gone = [PluginRef(name=name) for name in _disabled_everywhere(sets, multi_point)]
    converted["multiPoint"] = PluginSet(enabled=multi_point.enabled, disabled=(*multi_point.disabled, *gone))
    by_field = {field.encode_name: field.name for field in msgspec.structs.fields(Plugins)}
    plugins = msgspec.structs.replace(profile.plugins, **{by_field[point]: value for point, value in converted.items()})
    return msgspec.structs.replace(profile, plugins=plugins)


def _disabled_everywhere(sets: dict[str, PluginSet], multi_point: PluginSet) -> list[str]:
    kept = {plugin.name for plugin_set in sets.values() for plugin in plugin_set.enabled}
    kept |= {plugin.name for plugin in multi_point.disabled}
    gone = []
    for name in dict.fromkeys(name for names in _V1BETA2_DEFAULTS.values() for name, _ in names):
        points = [point for point, names in _V1BETA2_DEFAULTS.items() if any(name == other for other, _ in names)]
        if name not in kept and all(_disables(sets[point], name) for point in points):
            gone.append(name)
    return gone


def _disables(plugin_set: PluginSet, name: str) -> bool:
    return any(plugin.name in (name, "*") for plugin in plugin_set.disabled)


def merge_sets(defaults: tuple[PluginRef, ...], custom: PluginSet) -> PluginSet:
    """Defaults with a custom set laid over them.

    A default that is disabled goes; one that is enabled again with its own entry is replaced in its place; all other
    custom entries follow in their order. `*` disables every default.
    """
    disabled = {plugin.name for plugin in custom.disabled}
    last = {plugin.name: index for index, plugin in enumerate(custom.enabled)}
    replaced: set[int] = set()
    enabled: list[PluginRef] = []
    for plugin in () if "*" in disabled else defaults:
        if plugin.name in disabled:
            continue
        index = last.get(plugin.name)
        if index is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[index])
            replaced.add(index)
    enabled.extend(plugin for index, plugin in enumerate(custom.enabled) if index not in replaced)
    return PluginSet(enabled=tuple(enabled), disabled=custom.disabled)
