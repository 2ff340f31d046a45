"""Building the plugins of a profile: one that cannot be built is named, whatever it raises."""

from __future__ import annotations

from typing import Any

import pytest

from bayplan.app.frameworks import queue_policy
from bayplan.framework import Plugin
from bayplan.framework.errors import PluginError
from bayplan.testing import Harness, node


def plugin_with(**members: Any) -> type[Plugin]:
    return type("Mine", (Plugin,), {"permit": lambda self, *_arguments: None, **members})


def raising(exception: BaseException) -> Any:
    def method(self: Any) -> None:
        raise exception

    return method


@pytest.mark.parametrize(
    ("exception", "text"), [(ValueError("no key"), "ValueError: no key"), (SystemExit(3), "SystemExit: 3")]
)
def test_a_plugin_whose_setup_fails_is_named(exception: BaseException, text: str) -> None:
    with pytest.raises(PluginError) as caught:
        Harness(nodes=[node("a")], plugins=[plugin_with(setup=raising(exception))])

    assert str(caught.value) == f"plugin `Mine`: `setup` raised {text}"
    assert caught.value.__cause__ is exception


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (raising(KeyError("zone")), "`events_to_register` raised KeyError: 'zone'"),
        (lambda self: "all", "`events_to_register` returned 'all', expected a list of `EventHint`, or None"),
        (lambda self: ["all"], "`events_to_register` returned ['all'], expected a list of `EventHint`, or None"),
    ],
)
def test_a_plugin_whose_events_cannot_be_read_is_named(events: Any, text: str) -> None:
    harness = Harness(nodes=[node("a")], plugins=[plugin_with(events_to_register=events)])
    frameworks = {name: decider.framework for name, decider in harness.scheduler.deciders.items()}

    with pytest.raises(PluginError) as caught:
        queue_policy(frameworks)

    assert str(caught.value) == f"plugin `Mine`: {text}"
