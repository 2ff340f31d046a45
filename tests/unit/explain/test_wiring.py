"""Explanations as a process carries them."""

from __future__ import annotations

from bayplan.app.settings import load_settings
from bayplan.config.own import DecisionSettings
from bayplan.explain.wiring import Explaining
from bayplan.loop.record import DecisionRecord
from bayplan.observe.clock import SystemClock, VirtualClock
from bayplan.observe.metrics import MetricsRegistry


def test_metrics_say_how_many_records_are_kept_and_how_many_made_room() -> None:
    explaining = Explaining(
        SystemClock(), settings=lambda: load_settings(None, []), decisions=DecisionSettings(memory="4Ki")
    )
    registry = MetricsRegistry()
    explaining.register(registry)

    explaining.recorder.restore(
        DecisionRecord(number=number, time=0.0, pod=f"default/web-{number}", uid=f"{number}", profile="default")
        for number in range(20)
    )

    read = {reading.family.name: reading.values[()] for reading in registry.collect()}
    kept, dropped = read["bayplan_decision_records"], read["bayplan_decision_records_dropped_total"]
    assert isinstance(kept, (int, float)) and isinstance(dropped, (int, float))
    assert 0 < kept < 20
    assert kept + dropped == 20
    assert read["bayplan_decision_record_bytes"] == explaining.recorder.bytes_kept


def test_a_reload_before_the_cluster_was_read_is_noted_as_well() -> None:
    clock = VirtualClock()
    explaining = Explaining(clock, settings=lambda: load_settings(None, []))
    explaining.note_reload("configuration reloaded", ())

    assert explaining.service.reloads == [(clock.now(), "configuration reloaded", [])]
