from __future__ import annotations

import pytest

from bayplan.config import load_config, resolve_profiles
from bayplan.config.model import PluginRef, PluginSet
from bayplan.config.versions import merge_sets
from bayplan.framework import ExtensionPoint, Plugin, PluginArgs

from .support import HEADER, problems_of, registry, stand_in

SCORE_BY_LABEL = """\
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: scorebylabel
  plugins:
    score:
      enabled:
      - name: ScoreByLabel
      disabled:
        - name: "*" # disable all default plugins
  pluginConfig:
    - name: ScoreByLabel
      args:
        labelKey: "score-by-label"
"""
CRD_FIT = """\
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
clientConnection:
  kubeconfig: "REPLACE_ME_WITH_KUBE_CONFIG_PATH"
profiles:
- schedulerName: secondary-scheduler
  plugins:
    filter:
      enabled:
      - name: NodeCRDResourceFit
      disabled:
      - name: "*"
    score:
      enabled:
      - name: NodeCRDResourceFit
      disabled:
      - name: "*"
"""
NAME_SCORE = """\
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: namescore-scheduler}
profiles:
- schedulerName: namescore-scheduler
  plugins:
    score:
      disabled: [{name: "*"}]
      enabled: [{name: ScoreByNameLength, weight: 1}]
"""


class ScoreByLabel(Plugin):
    class Args(PluginArgs):
        label_key: str = "other"

    def score(self, state, pod, node):  # type: ignore[no-untyped-def]
        return 1


def test_the_score_by_label_tutorial_loads_as_written() -> None:
    config = load_config(SCORE_BY_LABEL, source="c.yaml")
    (profile,) = resolve_profiles(config, registry(ScoreByLabel))

    assert profile.scheduler_name == "scorebylabel"
    assert profile.points[ExtensionPoint.SCORE] == ("ScoreByLabel",)
    assert profile.weights == {"ScoreByLabel": 1}
    assert profile.args["ScoreByLabel"] == ScoreByLabel.Args(label_key="score-by-label")
    assert "NodeResourcesFit" in profile.points[ExtensionPoint.FILTER]
    assert profile.points[ExtensionPoint.PRE_ENQUEUE][0] == "SchedulingGates"
    assert str(config.source_of("profiles[0].plugins.score.enabled[0].name")) == "c.yaml:10"
    assert config.source_of("profiles[0].plugins.filter.enabled[0].name").is_default


def test_the_custom_resource_tutorial_loads_as_written() -> None:
    config = load_config(CRD_FIT)
    (profile,) = resolve_profiles(config, registry(stand_in("NodeCRDResourceFit", "filter score")))

    assert profile.points[ExtensionPoint.FILTER] == ("NodeCRDResourceFit",)
    assert profile.points[ExtensionPoint.SCORE] == ("NodeCRDResourceFit",)
    assert profile.points[ExtensionPoint.BIND] == ("DefaultBinder",)
    assert "TaintToleration" not in profile.points[ExtensionPoint.FILTER]


def test_the_name_score_tutorial_loads_as_v1beta3() -> None:
    config = load_config(NAME_SCORE)
    (profile,) = resolve_profiles(config, registry(stand_in("ScoreByNameLength", "score")))

    assert profile.points[ExtensionPoint.SCORE] == ("ScoreByNameLength",)
    assert "v1beta3 is deprecated" in config.warnings[0].message


def test_v1beta2_keeps_its_own_order_and_weights() -> None:
    config = load_config({"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "kind": "KubeSchedulerConfiguration"})
    (profile,) = resolve_profiles(config, registry())

    assert profile.points[ExtensionPoint.SCORE][:7] == (
        "NodeResourcesBalancedAllocation",
        "ImageLocality",
        "InterPodAffinity",
        "NodeResourcesFit",
        "NodeAffinity",
        "PodTopologySpread",
        "TaintToleration",
    )
    weights = {name: profile.weights[name] for name in ("InterPodAffinity", "NodeAffinity", "TaintToleration")}
    assert weights == {"InterPodAffinity": 1, "NodeAffinity": 1, "TaintToleration": 1}
    assert profile.weights["PodTopologySpread"] == 2
    assert profile.points[ExtensionPoint.PRE_FILTER][:8] == (
        "NodeResourcesFit",
        "NodePorts",
        "VolumeRestrictions",
        "PodTopologySpread",
        "InterPodAffinity",
        "VolumeBinding",
        "VolumeZone",
        "NodeAffinity",
    )


def test_a_plugin_that_v1beta2_disabled_everywhere_does_not_come_back_at_newer_points() -> None:
    config = load_config(
        "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]"
    )
    (profile,) = resolve_profiles(config, registry())

    assert "DefaultPreemption" not in profile.plugin_names


def test_v1beta2_addresses_are_accepted_only_when_they_mean_nothing() -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n"
    assert load_config(head + 'healthzBindAddress: ""\nmetricsBindAddress: "0.0.0.0:0"\n')
    (problem,) = problems_of(head + 'healthzBindAddress: "0.0.0.0:10251"\n')

    assert problem.path == "healthzBindAddress"
    assert "secure port" in problem.hint


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("delayCacheUntilActive: true", "delayCacheUntilActive"),
        ("profiles: [{percentageOfNodesToScore: 5}]", "profiles[0].percentageOfNodesToScore"),
        ("profiles: [{plugins: {placementScore: {}}}]", "profiles[0].plugins.placementScore"),
    ],
)
def test_fields_that_came_with_v1_are_refused_in_older_versions(body: str, path: str) -> None:
    (problem,) = problems_of(HEADER.replace("/v1\n", "/v1beta3\n") + body)

    assert path == problem.path
    assert "set `apiVersion: kubescheduler.config.k8s.io/v1`" in problem.hint


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("kubescheduler.config.k8s.io/v1beta1", "rewrite it as"),
        ("kubescheduler.config.k8s.io/v1alpha1", "rewrite it as"),
        ("kubescheduler.config.k8s.io/v2", "read are"),
        ("v1", "read are"),
        ("3", "read are"),
    ],
)
def test_other_versions_are_refused_with_what_to_write(version: str, hint: str) -> None:
    (problem,) = problems_of(f"apiVersion: {version}\nkind: KubeSchedulerConfiguration\n")

    assert problem.path == "apiVersion"
    assert hint in problem.hint


def test_other_kinds_are_refused_with_what_to_do() -> None:
    config_map = problems_of("apiVersion: v1\nkind: ConfigMap\ndata: {config.yaml: x}")
    policy = problems_of("apiVersion: v1\nkind: Policy")

    assert "the text under `data`" in config_map[0].hint
    assert "use `profiles`" in policy[0].hint


@pytest.mark.parametrize(
    ("field", "hint"),
    [
        ("algorithmSource: {}", "use `profiles`"),
        ("schedulerName: a", "it belongs into a profile"),
        ("healthzBindAddress: ''", "gone since v1beta3"),
    ],
)
def test_fields_of_the_past_are_refused_with_their_successor(field: str, hint: str) -> None:
    (problem,) = problems_of(HEADER + field)

    assert hint in problem.hint


@pytest.mark.parametrize(
    ("name", "successor"),
    [
        ("NodeResourcesMostAllocated", "scoringStrategy"),
        ("SelectorSpread", "PodTopologySpread"),
        ("NodePreferAvoidPods", "PreferNoSchedule"),
        ("EBSLimits", "NodeVolumeLimits"),
    ],
)
def test_plugins_of_the_past_are_refused_with_their_successor(name: str, successor: str) -> None:
    (problem,) = problems_of(HEADER + f"profiles: [{{plugins: {{score: {{enabled: [{{name: {name}}}]}}}}}}]")

    assert successor in problem.hint


def test_merging_replaces_in_place_moves_what_was_disabled_and_appends_the_rest() -> None:
    defaults = tuple(PluginRef(name=name) for name in "ABC")

    def merged(enabled: str, disabled: str) -> str:
        custom = PluginSet(
            enabled=tuple(PluginRef(name=name, weight=9) for name in enabled),
            disabled=tuple(PluginRef(name=name) for name in disabled),
        )
        return "".join(f"{p.name}{p.weight or ''}" for p in merge_sets(defaults, custom).enabled)

    assert merged("", "") == "ABC"
    assert merged("B", "") == "AB9C"
    assert merged("DB", "") == "AB9CD9"
    assert merged("B", "B") == "ACB9"
    assert merged("D", "*") == "D9"
    assert merged("BB", "") == "AB9CB9"
