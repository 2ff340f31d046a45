from __future__ import annotations

import pytest

from bayplan.config import ConfigError, resolve_profile, resolve_profiles
from bayplan.framework import ExtensionPoint, Plugin, PluginArgs

from .support import profile, refusal, registry, stand_in, v1

POINT = {point.config_name: point for point in ExtensionPoint}


def test_the_default_profile_is_that_of_kube_scheduler() -> None:
    resolved = profile("{}")
    names = {point.config_name: " ".join(plugins) for point, plugins in resolved.points.items()}

    assert names["preEnqueue"] == "SchedulingGates DynamicResources DefaultPreemption"
    assert names["queueSort"] == "PrioritySort"
    assert names["preFilter"] == (
        "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
        "PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
    )
    assert names["filter"] == f"NodeUnschedulable NodeName TaintToleration {names['preFilter']}"
    assert names["postFilter"] == "DynamicResources DefaultPreemption"
    assert names["preScore"] == (
        "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "NodeResourcesBalancedAllocation"
    )
    assert list(resolved.weights.items()) == [
        ("TaintToleration", 3),
        ("NodeAffinity", 2),
        ("NodeResourcesFit", 1),
        ("VolumeBinding", 1),
        ("PodTopologySpread", 2),
        ("InterPodAffinity", 2),
        ("DynamicResources", 2),
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
    ]
    assert names["reserve"] == names["preBind"] == "VolumeBinding DynamicResources"
    assert (names["bind"], names["permit"], names["postBind"]) == ("DefaultBinder", "", "")
    assert set(resolved.args) == set(resolved.plugin_names)


def points(body: str, point: str, *more: type[Plugin]) -> str:
    return " ".join(profile(f"{{plugins: {{{body}}}}}", *more).points[POINT[point]])


def test_what_is_listed_at_a_point_goes_first_and_strangers_last() -> None:
    extra = (stand_in("Mine", "preScore"), stand_in("Yours", "preScore"))
    body = (
        "preScore: {enabled: [{name: Mine}, {name: InterPodAffinity}, {name: Yours}, {name: TaintToleration}],"
        " disabled: [{name: NodeAffinity}]}"
    )

    assert points(body, "preScore", *extra) == (
        "InterPodAffinity TaintToleration NodeResourcesFit VolumeBinding PodTopologySpread "
        "NodeResourcesBalancedAllocation Mine Yours"
    )


def test_a_star_at_a_point_leaves_what_is_listed() -> None:
    assert points("score: {enabled: [{name: ImageLocality}], disabled: [{name: '*'}]}", "score") == "ImageLocality"
    assert points("score: {disabled: [{name: '*'}]}", "score") == ""


def test_disabled_and_enabled_at_the_same_point_moves_to_the_end() -> None:
    body = "bind: {enabled: [{name: DefaultBinder}, {name: Mine}], disabled: [{name: DefaultBinder}]}"

    assert points(body, "bind", stand_in("Mine", "bind")) == "DefaultBinder Mine"


def test_multi_point_adds_a_plugin_wherever_it_extends() -> None:
    mine = stand_in("Mine", "filter score postBind")
    resolved = profile("{plugins: {multiPoint: {enabled: [{name: Mine, weight: 5}]}}}", mine)

    assert resolved.points[ExtensionPoint.FILTER][-1] == "Mine"
    assert resolved.points[ExtensionPoint.POST_BIND] == ("Mine",)
    assert resolved.weights["Mine"] == 5


def test_multi_point_star_starts_from_nothing() -> None:
    body = "{plugins: {multiPoint: {enabled: [{name: PrioritySort}, {name: DefaultBinder}], disabled: [{name: '*'}]}}}"

    assert profile(body).plugin_names == ("PrioritySort", "DefaultBinder")


def test_the_first_entry_that_names_a_plugin_decides_its_weight() -> None:
    body = (
        "{plugins: {score: {enabled: [{name: NodeAffinity, weight: 22}, {name: ImageLocality}]},"
        " multiPoint: {enabled: [{name: NodeAffinity, weight: 7}, {name: TaintToleration, weight: 9}]}}}"
    )
    weights = profile(body).weights

    assert (weights["NodeAffinity"], weights["TaintToleration"], weights["ImageLocality"]) == (22, 9, 1)


def test_a_queue_sort_takes_the_place_of_priority_sort_when_that_is_disabled() -> None:
    body = "{plugins: {multiPoint: {enabled: [{name: Mine}], disabled: [{name: PrioritySort}]}}}"

    assert profile(body, stand_in("Mine", "queueSort")).points[ExtensionPoint.QUEUE_SORT] == ("Mine",)


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ("score: {enabled: [{name: Mne}]}", "score.enabled[0]", 'ScorePlugin "Mne" does not exist'),
        (
            "score: {enabled: [{name: NodeName}]}",
            "score.enabled[0]",
            'plugin "NodeName" does not extend ScorePlugin plugin',
        ),
        (
            "score: {enabled: [{name: ImageLocality}, {name: ImageLocality}]}",
            "score.enabled[1]",
            'plugin "ImageLocality" already registered as "ScorePlugin"',
        ),
        ("multiPoint: {enabled: [{name: Mne}]}", "multiPoint.enabled[0]", 'PreFilterPlugin "Mne" does not exist'),
        (
            "multiPoint: {enabled: [{name: Mine}, {name: Mine}]}",
            "multiPoint.enabled[1]",
            'plugin "Mine" already registered as "QueueSortPlugin"',
        ),
        (
            "multiPoint: {enabled: [{name: Mine}]}",
            "queueSort",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 2',
        ),
        (
            "queueSort: {disabled: [{name: '*'}]}",
            "queueSort",
            'only one queue sort plugin required for profile with scheduler name "default-scheduler", but got 0',
        ),
        (
            "bind: {disabled: [{name: '*'}]}",
            "bind",
            'at least one bind plugin is needed for profile with scheduler name "default-scheduler"',
        ),
        ("filter: {disabled: [{name: NodeNme}]}", "filter.disabled[0]", "plugin `NodeNme` does not exist"),
        ("placementScore: {enabled: [{name: NodeName}]}", "placementScore.enabled[0]", "alpha"),
    ],
)
def test_errors_have_the_texts_of_kube_scheduler(body: str, path: str, message: str) -> None:
    (problem,) = refusal(f"{{plugins: {{{body}}}}}", stand_in("Mine", "queueSort"))

    assert f"profiles[0].plugins.{path}" == problem.path
    assert message in problem.message


def test_a_misspelt_plugin_gets_a_suggestion_and_a_line() -> None:
    (problem,) = refusal("{plugins: {score: {enabled: [{name: NodeResourcesFitt}]}}}")

    assert problem.hint == "did you mean `NodeResourcesFit`?"
    assert problem.line == 3


def test_disabling_a_plugin_that_is_gone_is_a_warning() -> None:
    resolved = profile("{plugins: {filter: {disabled: [{name: EBSLimits}]}}}")

    assert "has no effect" in resolved.warnings[0].message


def test_profiles_must_order_the_queue_in_the_same_way_however_they_say_it() -> None:
    config = v1(
        "profiles: [{schedulerName: a}, {schedulerName: b, plugins: {multiPoint: {enabled: [{name: Mine}],"
        " disabled: [{name: PrioritySort}]}}}]"
    )

    with pytest.raises(ConfigError, match="different queue sort plugins for profile `b`: `Mine`"):
        resolve_profiles(config, registry(stand_in("Mine", "queueSort")))


def test_problems_of_all_profiles_come_at_once() -> None:
    bad = "plugins: {score: {enabled: [{name: %s}]}}"
    config = v1(f"profiles: [{{schedulerName: a, {bad % 'X'}}}, {{schedulerName: b, {bad % 'Y'}}}]")

    with pytest.raises(ConfigError) as caught:
        resolve_profiles(config, registry())

    assert [problem.path for problem in caught.value.problems] == [
        "profiles[0].plugins.score.enabled[0]",
        "profiles[1].plugins.score.enabled[0]",
    ]


class Labelled(Plugin):
    class Args(PluginArgs):
        label_key: str

    def score(self, state, pod, node):  # type: ignore[no-untyped-def]
        return 1


def test_arguments_are_typed_and_complete() -> None:
    body = "{plugins: {score: {enabled: [{name: Labelled}]}}, pluginConfig: [{name: Labelled, args: {labelKey: a}}]}"

    assert profile(body, Labelled).args["Labelled"] == Labelled.Args(label_key="a")


def test_a_plugin_without_its_required_arguments_says_where_to_put_them() -> None:
    (problem,) = refusal("{plugins: {score: {enabled: [{name: Labelled}]}}}", Labelled)

    assert problem.path == "profiles[0].pluginConfig[Labelled].args.labelKey"
    assert problem.hint == "add `- name: Labelled` with its `args` to pluginConfig"


def test_arguments_of_a_plugin_that_does_not_run_are_checked_too() -> None:
    (problem,) = refusal("{pluginConfig: [{name: Labelled, args: {labelkey: a, labelKey: b}}]}", Labelled)

    assert str(problem) == (
        "line 3: profiles[0].pluginConfig[0].args.labelkey: unknown field; did you mean `labelKey`?"
    )


def test_arguments_for_an_unknown_plugin_are_refused() -> None:
    (problem,) = refusal("{pluginConfig: [{name: NodeAfinity}]}")

    assert problem.hint == "did you mean `NodeAffinity`?"


def test_a_plugin_that_does_not_load_is_reported_where_it_is_named(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bayplan.framework.errors import PluginLoadError

    known = registry()

    def get(name: str) -> type[Plugin]:
        raise PluginLoadError("mine.py:3", "NameError: name 'x' is not defined")

    inner = known.get
    monkeypatch.setattr(known, "get", lambda name: get(name) if name == "Broken" else inner(name))
    config = v1("profiles: [{plugins: {score: {enabled: [{name: Broken}]}}}]")

    with pytest.raises(ConfigError, match=r"score\.enabled\[0\]: mine\.py:3: NameError"):
        resolve_profiles(config, known)


def test_resources_that_an_extender_manages_replace_the_ignored_ones() -> None:
    config = v1(
        "extenders: [{urlPrefix: 'http://x', managedResources:"
        " [{name: a.b/c, ignoredByScheduler: true}, {name: d.e/f}]}]\n"
        "profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: [g.h/i]}}]}]"
    )
    (resolved,) = resolve_profiles(config, registry())
    alone = resolve_profile(config.profiles[0], registry())

    assert resolved.args["NodeResourcesFit"].ignored_resources == ["a.b/c"]  # type: ignore[attr-defined]
    assert alone.args["NodeResourcesFit"].ignored_resources == ["g.h/i"]  # type: ignore[attr-defined]


def test_every_node_is_scored_unless_the_profile_or_the_configuration_asks_for_a_sample() -> None:
    def shares(whole: int) -> list[int]:
        body = f"percentageOfNodesToScore: {whole}\nprofiles:\n- schedulerName: a\n"
        for name, share in (("b", 50), ("c", 0)):
            body += f"- schedulerName: {name}\n  percentageOfNodesToScore: {share}\n"
        return [profile.percentage_of_nodes_to_score for profile in resolve_profiles(v1(body), registry())]

    assert shares(30) == [30, 50, 100]
    assert shares(0) == [100, 50, 100]
