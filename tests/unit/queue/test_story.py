from __future__ import annotations

from tests.unit.queue.kit import make_queued

from bayplan.queue.places import Place
from bayplan.queue.story import STORY_LENGTH, Storyteller


def test_each_move_is_told_with_its_time_and_cause() -> None:
    storyteller = Storyteller(lambda: 7.0)
    queued = make_queued()

    storyteller.entered(queued, Place.ACTIVE, "PodAdd")
    storyteller.popped(queued, "Pop")

    assert queued.story == [(7.0, "active", "PodAdd"), (7.0, "in-flight", "Pop")]
    assert storyteller.incoming == {("active", "PodAdd"): 1}


def test_a_pod_that_stays_gated_enters_once() -> None:
    storyteller = Storyteller(lambda: 7.0)
    queued = make_queued()
    for _ in range(3):
        storyteller.entered(queued, Place.GATED, "NodeAdd")

    assert len(queued.story) == 1
    assert storyteller.incoming == {("gated", "NodeAdd"): 1}


def test_a_story_is_bounded_and_keeps_its_beginning() -> None:
    storyteller = Storyteller(lambda: 7.0)
    queued = make_queued()
    for number in range(3 * STORY_LENGTH):
        storyteller.entered(queued, Place.ACTIVE, str(number))

    causes = [cause for _, _, cause in queued.story]

    assert len(causes) == STORY_LENGTH
    assert causes[0] == "0"
    assert causes[-1] == str(3 * STORY_LENGTH - 1)
