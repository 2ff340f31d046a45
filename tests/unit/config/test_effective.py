from __future__ import annotations

from datetime import timedelta

from bayplan.config import default_config, load_config, resolve_profiles
from bayplan.config.effective import effective_dict
from bayplan.framework import Plugin, PluginArgs

from .support import registry, v1


class Timed(Plugin):
    class Args(PluginArgs):
        wait_time: timedelta = timedelta(seconds=90)
        nothing: str | None = None

    def score(self, state, pod, node):  # type: ignore[no-untyped-def]
        return 1


def test_the_default_profile_is_written_out() -> None:
    config = default_config()
    form = effective_dict(config, resolve_profiles(config, registry()))
    (profile,) = form["profiles"]

    assert profile["plugins"]["multiPoint"]["enabled"][4] == {"name": "TaintToleration", "weight": 3}
    assert [entry["name"] for entry in profile["pluginConfig"]] == ["NodeResourcesFit"]
    assert profile["pluginConfig"][0]["args"]["kind"] == "NodeResourcesFitArgs"


def test_what_is_written_resolves_to_the_same_profile() -> None:
    config = v1(
        "profiles: [{plugins: {multiPoint: {enabled: [{name: Timed, weight: 4}, {name: NodeAffinity, weight: 9}],"
        " disabled: [{name: ImageLocality}]}, score: {enabled: [{name: InterPodAffinity}]}},"
        " pluginConfig: [{name: Timed, args: {waitTime: 5s}}]}]"
    )
    known = registry(Timed)
    before = resolve_profiles(config, known)
    written = effective_dict(config, before)
    after = resolve_profiles(load_config(written), known)

    assert [entry["args"] for entry in written["profiles"][0]["pluginConfig"] if entry["name"] == "Timed"] == [
        {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "TimedArgs", "waitTime": "5s"}
    ]
    assert (before[0].points, before[0].weights, before[0].args) == (after[0].points, after[0].weights, after[0].args)
