"""A moment as a test: what a recording contains becomes text in it, and never code."""

from __future__ import annotations

import ast

from bayplan.app.settings import load_settings
from bayplan.sim.compare import Choice
from bayplan.sim.ledger import DecisionLine
from bayplan.sim.recording.entries import FORMAT, VERSION, PodDecided, RecordingHeader
from bayplan.sim.recording.moment import Moment, pytest_source
from bayplan.testing import pod

HOSTILE = 'a"""\nraise SystemExit("not text")\n"""\\'


def test_nothing_of_a_recording_is_run() -> None:
    header = RecordingHeader(
        format=FORMAT, version=VERSION, by=HOSTILE, bayplan=HOSTILE, config={"profiles": [HOSTILE]}, plugins=(HOSTILE,)
    )
    line = DecisionLine(5.0, HOSTILE, "", HOSTILE)
    moment = Moment(
        header=header,
        time=5.0,
        then=PodDecided(5.0, HOSTILE, "u", 1, "", HOSTILE),
        pod=pod(HOSTILE),
        objects=[pod(HOSTILE)],
        settings=load_settings(None, ()),
        now=Choice("now", line, 0, 0, []),
    )

    statements = [type(each).__name__ for each in ast.parse(pytest_source(moment)).body]

    assert statements == ["Expr", "ImportFrom", *["Assign"] * 4, "FunctionDef"]
