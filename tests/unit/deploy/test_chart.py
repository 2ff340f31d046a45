"""The chart: values in the known shape, rules behind the names of plugins. Helm itself reads it in the e2e tests."""

from __future__ import annotations

from pathlib import Path

import yaml

from bayplan.deploy.bundle import load_bundle
from bayplan.deploy.chart import chart_files

EXAMPLES = Path(__file__).parents[3] / "examples" / "references"


def _files(reference: str | None) -> dict[str, str]:
    return chart_files(load_bundle(EXAMPLES / reference / "scheduler.yaml" if reference else None, ()))


def test_values_have_the_shape_of_the_write_up() -> None:
    values = yaml.safe_load(_files(None)["values.yaml"])
    known = yaml.safe_load((EXAMPLES / "block-all/values-images.yaml").read_text())

    assert known["scheduler"].keys() <= values["scheduler"].keys()
    assert values["plugins"] == {"enabled": [], "disabled": []}
    assert values["pluginConfig"] == []


def test_a_profile_of_multi_point_alone_becomes_plain_values() -> None:
    values = yaml.safe_load(_files("block-all")["values.yaml"])

    assert values["plugins"]["enabled"] == ["BlockAllScheduler"]
    assert values["config"] == {}


def test_any_other_configuration_is_kept_whole() -> None:
    values = yaml.safe_load(_files("score-by-label")["values.yaml"])

    assert values["config"]["profiles"][0]["schedulerName"] == "scorebylabel"
    assert values["plugins"]["enabled"] == ["ScoreByLabel"]


def test_every_rule_and_definition_of_a_plugin_stands_behind_its_name() -> None:
    files = _files(None)

    assert '{{- if has "SchedulingTimestamp" .Values.plugins.enabled }}' in files["templates/rbac.yaml"]
    assert '(has "NodeCRDResourceFit" .Values.plugins.enabled)' in files["templates/crds.yaml"]
    assert "title" not in files["templates/configmap.yaml"]


def test_definitions_survive_the_release() -> None:
    text = _files(None)["templates/crds.yaml"]

    assert text.count("helm.sh/resource-policy: keep") == text.count("kind: CustomResourceDefinition") >= 3


def test_an_existing_definition_is_left_alone_and_none_need_be_installed() -> None:
    files = _files(None)
    text = files["templates/crds.yaml"]
    there = 'lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "{}"'

    assert yaml.safe_load(files["values.yaml"])["crds"] == {"install": True}
    assert text.startswith('{{- if dig "install" true (.Values.crds | default dict) }}')
    assert f"(not ({there.format('podgroups.scheduling.x-k8s.io')})) }}}}" in text
    owned = there.format("clusterscopedresources.scheduling.sigs.k8s.io")
    assert f'(eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" (({owned}) | default dict))' in text


def test_the_controllers_stand_behind_the_plugins_whose_objects_they_write() -> None:
    files = _files(None)
    values = yaml.safe_load(files["values.yaml"])
    known = yaml.safe_load((EXAMPLES / "block-all/values-images.yaml").read_text())

    assert known["controller"].keys() <= values["controller"].keys()
    kinds = files["templates/_controllers.tpl"].split("{{- define")[1]
    assert '(has "Coscheduling" .Values.plugins.enabled) }}\n- --kind=PodGroup' in kinds
    assert '(has "CapacityScheduling" .Values.plugins.enabled) }}\n- --kind=ElasticQuota' in kinds
    assert 'include "bayplan.controllerRules"' in files["templates/controllers.yaml"]
