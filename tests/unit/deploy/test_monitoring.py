"""The dashboard and the alerts of the chart ask for metrics that exist, with labels and places that they have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest
import yaml

from bayplan.deploy.bundle import load_bundle
from bayplan.deploy.chart import chart_files
from bayplan.observe import component_metrics, process_metrics
from bayplan.observe.metrics import Family, MetricKind
from bayplan.observe.scheduler_metrics import SCHEDULER_FAMILIES

FOLDER = files("bayplan.deploy") / "templates" / "monitoring"
BOARD = json.loads((FOLDER / "dashboard.json").read_text(encoding="utf-8"))
ALERTS = yaml.safe_load((FOLDER / "alerts.yaml").read_text(encoding="utf-8"))["groups"][0]["rules"]
OF_SCRAPES = {"job", "instance", "le"}
_SELECTOR = re.compile(r"\b((?:scheduler|bayplan|rest_client|leader_election|process)_[a-z_]+)(?:\{([^}]*)\})?")
_GROUPING = re.compile(r"\bby \(([^)]*)\)")


def known() -> dict[str, set[str]]:
    """Labels by the names that samples have."""
    modules = (vars(component_metrics), vars(process_metrics))
    declared = [value for names in modules for value in names.values() if isinstance(value, Family)]
    found: dict[str, set[str]] = {}
    for family in (*SCHEDULER_FAMILIES, *declared):
        ends = ("_bucket", "_sum", "_count") if family.kind is MetricKind.HISTOGRAM else ("",)
        found |= {family.name + end: set(family.labels) for end in ends}
    return found


def expressions() -> Iterator[tuple[str, str]]:
    yield from ((rule["alert"], rule["expr"]) for rule in ALERTS)
    for panel in BOARD["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel.get("targets", ()))


@pytest.mark.parametrize(("where", "expression"), [pytest.param(*each, id=each[0]) for each in expressions()])
def test_an_expression_names_metrics_and_labels_that_exist(where: str, expression: str) -> None:
    names = known()
    used = _SELECTOR.findall(expression)
    labels = {each.strip() for group in _GROUPING.findall(expression) for each in group.split(",")}

    assert used, expression
    for name, selector in used:
        assert name in names, name
        assert set(re.findall(r"(\w+)=", selector)) <= names[name] | OF_SCRAPES
    assert labels <= set().union(*(names[name] for name, _ in used)) | OF_SCRAPES
    assert expression.count("(") == expression.count(")")


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_it_means_and_what_to_look_at(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"].keys() == {"summary", "description"}
    grouped = {each.strip() for group in _GROUPING.findall(rule["expr"]) for each in group.split(",")}
    said = set(re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]))
    assert said <= grouped | {"resource"}


def test_panels_neither_overlap_nor_share_an_id() -> None:
    cells: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        x, y, width, height = (panel["gridPos"][name] for name in "xywh")
        own = {(column, row) for column in range(x, x + width) for row in range(y, y + height)}
        assert not own & cells and x + width <= 24, panel["title"]
        cells |= own
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_the_chart_carries_both_and_leaves_them_out_by_default() -> None:
    chart = chart_files(load_bundle(None, ()))
    values = yaml.safe_load(chart["values.yaml"])["monitoring"]

    assert json.loads(chart["monitoring/dashboard.json"]) == BOARD
    assert yaml.safe_load(chart["monitoring/alerts.yaml"])["groups"][0]["rules"] == ALERTS
    assert values["service"] is False
    assert not any(values[part]["enabled"] for part in ("serviceMonitor", "alerts", "dashboard"))
