"""A Helm chart with the values of the scheduler-plugins chart, whose rules follow the enabled plugins.

The templates are written from declarations when the chart is rendered: each plugin's permissions and definitions depend
on a condition on its name, so `helm install --set plugins.enabled={ScoreByLabel}` grants what ScoreByLabel needs and
nothing else. Names of plugins are taken as they are, every cluster-wide name carries the release, and there is a
ConfigMap also when no plugin is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import yaml

from bayplan import __version__
from bayplan.app.controllers.status_controllers import WATCHES, permissions_for
from bayplan.deploy.bundle import Bundle
from bayplan.deploy.crds import crd_document
from bayplan.deploy.manifests import DEFAULT_IMAGE, DEFAULT_MEMORY_LIMIT
from bayplan.deploy.rbac import core_permissions, merged_rules, plugin_permissions
from bayplan.deploy.role_documents import summary_rules, viewer_rules
from bayplan.framework.plugin import Permission, Plugin
from bayplan.framework.resources import resource_info
from bayplan.plugins.intree import INTREE
from bayplan.plugins.shipped import COMMUNITY

__all__ = ["chart_files"]

_STATIC = (
    "_helpers.tpl",
    "configmap.yaml",
    "controllers.yaml",
    "deployment.yaml",
    "monitoring.yaml",
    "networkpolicy.yaml",
    "serviceaccount.yaml",
    "pdb.yaml",
    "NOTES.txt",
)
_MONITORING = ("alerts.yaml", "dashboard.json")


def chart_files(bundle: Bundle, *, image: str = DEFAULT_IMAGE) -> dict[str, str | bytes]:
    """Path inside the chart to content."""
    registry = bundle.settings.registry
    own = [plugin.name for plugin in bundle.plugins]
    names = dict.fromkeys([*INTREE, *COMMUNITY, *own])
    plugins = [registry.get(name) for name in names]
    templates = files("bayplan.deploy") / "templates"
    source, monitoring = templates / "chart", templates / "monitoring"
    return {
        "Chart.yaml": _chart_yaml(),
        "values.yaml": _values(bundle, image),
        **{f"templates/{name}": (source / name).read_text(encoding="utf-8") for name in _STATIC},
        **{f"monitoring/{name}": (monitoring / name).read_text(encoding="utf-8") for name in _MONITORING},
        "templates/_controllers.tpl": _controllers(plugins),
        "templates/rbac.yaml": _rbac(plugins),
        "templates/crds.yaml": _crds(plugins),
        **{f"files/{name}": text for name, text in sorted(bundle.carried.texts.items())},
        **{f"files/{name}": archive for name, archive in sorted(bundle.carried.archives.items())},
    }


def _chart_yaml() -> str:
    chart = {
        "apiVersion": "v2",
        "name": "bayplan",
        "description": "The Kubernetes scheduler and its scheduling framework, in Python, beside the default one",
        "type": "application",
        "version": __version__,
        "appVersion": __version__,
    }
    return yaml.safe_dump(chart, sort_keys=False)


def _values(bundle: Bundle, image: str) -> str:
    """The values of the scheduler-plugins chart, and `config` for a whole configuration."""
    profile = (bundle.config.get("profiles") or [{}])[0]
    shared = (profile.get("plugins") or {}).get("multiPoint") or {}
    is_simple = len(bundle.scheduler_names) == 1 and set(profile.get("plugins") or {}) <= {"multiPoint"}
    used = [plugin.name for plugin in bundle.plugins if plugin.name not in INTREE]
    values: dict[str, Any] = {
        "scheduler": {
            "name": bundle.name,
            "image": image,
            "command": ["bayplan", "run"],
            "replicaCount": 1,
            "leaderElect": False,
            "withControllers": False,
            **_pod_values(cpu="100m", memory="256Mi", limit=DEFAULT_MEMORY_LIMIT),
        },
        "controller": {
            "name": f"{bundle.name}-controllers",
            "image": "",
            "command": ["bayplan", "controllers"],
            "replicaCount": 1,
            "leaderElect": False,
            **_pod_values(cpu="50m", memory="128Mi", limit="512Mi"),
        },
        "crds": {"install": True},
        "plugins": {
            "enabled": [ref["name"] for ref in shared.get("enabled", ())] if is_simple else used,
            "disabled": [ref["name"] for ref in shared.get("disabled", ())] if is_simple else [],
        },
        "pluginConfig": (profile.get("pluginConfig") or []) if is_simple else [],
        "pluginModules": list(bundle.carried.modules),
        "pluginVolume": {"claim": "", "plugins": []},
        "config": {} if is_simple else bundle.config,
        "bayplanConfig": bundle.own,
        "networkPolicy": {"enabled": True},
        "monitoring": {
            "service": False,
            "serviceMonitor": {"enabled": False, "interval": "30s", "labels": {}},
            "alerts": {"enabled": False, "labels": {}},
            "dashboard": {"enabled": False, "labels": {"grafana_dashboard": "1"}},
        },
    }
    return _VALUES_HEAD + yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)


def _pod_values(*, cpu: str, memory: str, limit: str) -> dict[str, Any]:
    return {
        "priorityClassName": "",
        "resources": {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}},
        "nodeSelector": {},
        "affinity": {},
        "tolerations": [],
    }


_VALUES_HEAD = """\
# plugins.enabled decides which permissions and definitions are installed. Without `config`, it also makes the one
# profile, called scheduler.name, to which plugins.disabled and pluginConfig belong. `config` is a whole
# KubeSchedulerConfiguration in its place; list the plugins that it enables in plugins.enabled too.
# bayplanConfig is a BayplanConfiguration: settings that kube-scheduler does not have.
#
# Plugins of this chart are in its folder files/, as Python files, zips or wheels. pluginModules are in the image
# (MODULE:CLASS); pluginVolume.plugins are zips and wheels on the PersistentVolumeClaim pluginVolume.claim.
#
# networkPolicy.enabled: let only the HTTPS port be reached.
#
# monitoring: a Service for the HTTPS port; for the Prometheus operator, a ServiceMonitor and a PrometheusRule; for
# Grafana's sidecar, a ConfigMap with the dashboard. The files themselves are in the folder monitoring/.
#
# crds.install: install definitions that the cluster lacks. Those that exist are left as they are, unless this release
# has installed them; all stay when the release is uninstalled.
#
# The controllers write the status of PodGroups and ElasticQuotas. They come with the plugins that use these, in a
# deployment of their own with the scheduler's image unless controller.image names another; scheduler.withControllers
# lets the scheduler carry them instead, and controller.replicaCount 0 leaves them out.
"""


def _rbac(plugins: Sequence[type[Plugin]]) -> str:
    head = (files("bayplan.deploy") / "templates" / "chart" / "rbac.yaml").read_text(encoding="utf-8")
    blocks = ["# what the scheduler does whichever plugins run", _yaml(merged_rules(core_permissions())).rstrip()]
    for plugin in plugins:
        permissions = plugin_permissions(plugin)
        if permissions:
            rules = _yaml(merged_rules(permissions)).rstrip()
            blocks.append(f"{_condition(plugin)}\n# {plugin.name}\n{rules}\n{{{{- end }}}}")
    head = head.replace("VIEWER", _yaml(viewer_rules()).rstrip()).replace("SUMMARIES", _yaml(summary_rules()).rstrip())
    return head.replace("RULES", "\n".join(blocks))


def _controllers(plugins: Sequence[type[Plugin]]) -> str:
    """Templates with the kinds and the rules of the controllers, depending on the enabled plugins."""
    kinds, rules = [], []
    for kind in WATCHES:
        wanted = f"{{{{- if {_any_enabled(p.name for p in plugins if kind in p.watches)} }}}}"
        kinds.append(f"{wanted}\n- --kind={kind.__name__}\n{{{{- end }}}}")
        rules.append(f"{wanted}\n{_yaml(merged_rules(_only(kind))).rstrip()}\n{{{{- end }}}}")
    shared = _yaml(merged_rules(permissions_for(()))).rstrip()
    return _definition("bayplan.controllerKinds", kinds) + _definition("bayplan.controllerRules", [shared, *rules])


def _definition(name: str, blocks: Sequence[str]) -> str:
    text = "\n".join(blocks)
    return f'{{{{- define "{name}" -}}}}\n{text}\n{{{{- end }}}}\n\n'


def _only(kind: type[Any]) -> list[Permission]:
    """The permissions that the controllers need for this kind only."""
    return [permission for permission in permissions_for([kind]) if permission not in permissions_for(())]


def _any_enabled(names: Iterable[str]) -> str:
    return "or " + " ".join(f'(has "{name}" .Values.plugins.enabled)' for name in names)


def _condition(plugin: type[Plugin]) -> str:
    """In-tree plugins run unless they are disabled, all others only when they are enabled."""
    if plugin.name in INTREE:
        off = f'(or (has "{plugin.name}" .Values.plugins.disabled) (has "*" .Values.plugins.disabled))'
        return f'{{{{- if or (has "{plugin.name}" .Values.plugins.enabled) (not {off}) }}}}'
    return f'{{{{- if has "{plugin.name}" .Values.plugins.enabled }}}}'


def _crds(plugins: Iterable[type[Plugin]]) -> str:
    """Definitions stay when the release goes, because deleting one deletes every object of its kind.

    An existing definition is never changed, except by the release that installed it and only if it is the plugin's own.
    """
    users: dict[type[Any], list[str]] = {}
    for plugin in plugins:
        for kind in plugin.watches:
            users.setdefault(kind, []).append(plugin.name)
    blocks = []
    for kind, names in users.items():
        document = crd_document(kind)
        document["metadata"].setdefault("annotations", {})["helm.sh/resource-policy"] = "keep"
        blocks.append(
            f"{{{{- if and ({_any_enabled(names)}) {_may_install(kind)} }}}}\n---\n{_yaml(document)}{{{{- end }}}}"
        )
    body = "\n".join(blocks)
    return f'{{{{- if dig "install" true (.Values.crds | default dict) }}}}\n{body}\n{{{{- end }}}}\n'


def _may_install(kind: type[Any]) -> str:
    """A condition of templates: the definition is not there, or this release has installed it and may change it."""
    info = resource_info(kind)
    found = f'(lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "{info.crd_name}")'
    if not info.is_owned:
        return f"(not {found})"
    installed_by = f'(dig "metadata" "annotations" "meta.helm.sh/release-name" "" ({found} | default dict))'
    return f"(or (not {found}) (eq {installed_by} .Release.Name))"


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
