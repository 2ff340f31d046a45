"""The seam: whatever a plugin raises or answers, the scheduler goes on and says which plugin it was."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from bayplan.framework import (
    Code,
    Depends,
    Error,
    EventHint,
    Hint,
    ObjectRemedy,
    Plugin,
    PostFilterResult,
    PreFilterResult,
    Status,
    Verdicts,
    by_shape,
)
from bayplan.framework.answers import WrongAnswer, is_answer
from bayplan.framework.objects import Pod
from bayplan.framework.points import METHODS, contract_of
from bayplan.framework.promises import UNSIGNED
from bayplan.framework.runtime.call import (
    PluginFailure,
    Suspension,
    await_plugin,
    call_object_remedies,
    call_plugin,
    call_promise,
    hint_call,
    sort_key_call,
)
from bayplan.testing import Harness, node, pod

SYNC = [method for method in METHODS if method not in ("pre_bind", "bind")]


def _nothing() -> Iterator[None]:
    yield None


WRONG: list[Any] = [False, "no", 10, [], object(), _nothing()]


def plugin_with(**members: Any) -> type[Plugin]:
    return type("Mine", (Plugin,), members)


def answering(answer: Any) -> Callable[..., Any]:
    return lambda self, *_arguments: answer


def raising(exception: BaseException) -> Callable[..., Any]:
    def method(self: Any, *_arguments: Any) -> Any:
        raise exception

    return method


class Complaints(list[tuple[str, str, BaseException]]):
    def __call__(self, plugin: str, method: str, exception: BaseException) -> None:
        self.append((plugin, method, exception))


@pytest.mark.parametrize("answer", WRONG, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("method", SYNC)
def test_an_answer_of_another_type_is_an_error_that_names_plugin_method_and_what_was_expected(
    method: str, answer: Any
) -> None:
    if is_answer(method, answer):
        return  # `less` may answer False, `score` 10
    complaints = Complaints()
    arguments = [None] * len(contract_of(method).parameters)

    status = call_plugin(plugin_with(**{method: answering(answer)})(), method, complaints, *arguments)

    assert isinstance(status, Status)
    assert (status.code, status.plugin) == (Code.ERROR, "Mine")
    assert f"plugin `Mine`: `{method}` returned " in status.message
    assert f"expected `{contract_of(method).return_annotation}`" in status.message
    assert [(plugin, point) for plugin, point, _ in complaints] == [("Mine", method)]


@pytest.mark.parametrize("method", ["pre_bind", "bind"])
@pytest.mark.parametrize("answer", WRONG, ids=lambda each: type(each).__name__)
async def test_methods_that_wait_are_checked_too(method: str, answer: Any) -> None:
    async def waiting(self: Any, *_arguments: Any) -> Any:
        return answer

    complaints = Complaints()
    plugin = plugin_with(**{method: waiting})()

    status = await await_plugin(plugin, method, complaints, None, None, "n", is_cancelled=lambda _error: False)

    assert status.code is Code.ERROR
    assert f"plugin `Mine`: `{method}` returned " in status.message
    assert len(complaints) == 1


@pytest.mark.parametrize(
    "exception", [ValueError("bad"), SystemExit(3), asyncio.CancelledError(), MemoryError(), GeneratorExit()]
)
def test_whatever_a_plugin_raises_is_its_error(exception: BaseException) -> None:
    complaints = Complaints()

    status = call_plugin(plugin_with(permit=raising(exception))(), "permit", complaints, None, None, "n")

    assert (status.code, status.plugin) == (Code.ERROR, "Mine")
    assert complaints == [("Mine", "permit", exception)]


@pytest.mark.parametrize("exception", [KeyboardInterrupt(), Suspension()])
def test_what_is_not_the_plugins_doing_is_passed_on(exception: BaseException) -> None:
    complaints = Complaints()

    with pytest.raises(type(exception)):
        call_plugin(plugin_with(permit=raising(exception))(), "permit", complaints, None, None, "n")
    assert not complaints


async def test_a_cancelled_caller_is_cancelled_and_a_cancelled_task_of_the_plugin_is_an_error() -> None:
    plugin = plugin_with(bind=_cancelled)()

    with pytest.raises(asyncio.CancelledError):
        await await_plugin(plugin, "bind", Complaints(), is_cancelled=lambda _error: True)
    status = await await_plugin(plugin, "bind", Complaints(), is_cancelled=lambda _error: False)
    assert status.code is Code.ERROR


async def _cancelled(self: Any) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("promise", "arguments", "default"),
    [
        ("is_idle", 1, False),
        ("is_relevant", 1, True),
        ("sign", 1, UNSIGNED),
        ("accepts_all", 2, False),
        ("score_by_value", 3, None),
        ("combine_scores", 1, None),
        ("releases", 0, None),
    ],
)
def test_a_promise_that_fails_is_reported_and_counts_as_not_given(promise: str, arguments: int, default: Any) -> None:
    for method in (raising(ValueError("no idea")), answering([])):
        complaints = Complaints()

        answer = call_promise(plugin_with(**{promise: method})(), promise, complaints, *[None] * arguments)

        assert answer is default
        assert [(plugin, name) for plugin, name, _ in complaints] == [("Mine", promise)]


def test_a_hint_of_another_type_is_reported() -> None:
    complaints = Complaints()
    hint = hint_call(plugin_with()(), by_shape(lambda pod, old, new: "yes"), complaints)  # type: ignore[arg-type,return-value] # the mistake that is tested

    with pytest.raises(PluginFailure, match=r"a hint returned 'yes', expected `Hint`"):
        hint(None, None, None)  # type: ignore[arg-type] # no hint reads it
    assert len(complaints) == 1
    assert EventHint(None, hint).hint.is_by_shape  # type: ignore[arg-type,union-attr] # what `by_shape` marks


def test_a_proper_hint_is_passed_on() -> None:
    hint = hint_call(plugin_with()(), lambda pod, old, new: Hint.SKIP, Complaints())

    assert hint(None, None, None) is Hint.SKIP  # type: ignore[arg-type] # no hint reads it


DECIDING = {
    "pre_filter": answering(False),
    "filter": answering("no"),
    "filter_nodes": answering([0, 0]),
    "post_filter": answering(10),
    "pre_score": answering(True),
    "score": answering(1.5),
    "score_nodes": answering([1, 2]),
}


@pytest.mark.parametrize("method", DECIDING)
@pytest.mark.parametrize("depends", list(Depends), ids=lambda each: each.name)
@pytest.mark.parametrize("remember", [True, False])
def test_a_decision_with_a_wrong_answer_fails_with_that_reason(method: str, depends: Depends, remember: bool) -> None:
    members: dict[str, Any] = {method: DECIDING[method], "depends": depends}
    if method == "pre_score":
        members["score"] = answering(1)
    if method == "post_filter":
        members["filter"] = answering(Status(Code.UNSCHEDULABLE, ("full",)))
    harness = Harness(nodes=[node("a"), node("b")], plugins=[plugin_with(**members)], remember=remember)

    for name in ("first", "second", "third"):
        outcome = harness.schedule(pod(name))

        assert not outcome.is_scheduled
        assert f"`{method}` returned" in outcome.message, outcome.message
        assert "Mine" in outcome.message


def test_a_post_filter_that_raises_is_named_in_the_message() -> None:
    members = {"filter": answering(Status(Code.UNSCHEDULABLE, ("full",))), "post_filter": raising(ValueError("boom"))}

    outcome = Harness(nodes=[node("a")], plugins=[plugin_with(**members)], default_plugins=False).schedule(pod("p"))

    assert outcome.message.endswith('1 full. running PostFilter plugin "Mine": ValueError: boom')


def test_an_error_that_a_post_filter_answers_with_keeps_its_words() -> None:
    error = Error("extenders disagree", exception=ValueError("extenders disagree"))
    members = {"filter": answering(Status(Code.UNSCHEDULABLE, ("full",))), "post_filter": answering(error)}

    outcome = Harness(nodes=[node("a")], plugins=[plugin_with(**members)], default_plugins=False).schedule(pod("p"))

    assert outcome.message.endswith("1 full. extenders disagree")


@pytest.mark.parametrize("method", ["reserve", "permit"])
def test_a_wrong_answer_after_the_decision_refuses_the_pod(method: str) -> None:
    harness = Harness(nodes=[node("a")], plugins=[plugin_with(**{method: answering(False)})])

    outcome = harness.schedule(pod("p"))

    assert not outcome.is_scheduled
    assert f"plugin `Mine`: `{method}` returned False (bool)" in outcome.message


def test_columns_of_another_length_are_an_error() -> None:
    short = plugin_with(filter_nodes=lambda self, state, pod, nodes: Verdicts.accept(1))
    outcome = Harness(nodes=[node("a"), node("b")], plugins=[short]).schedule(pod("p"))
    assert "`filter_nodes` answered for 1 nodes, expected 2" in outcome.message

    scores = plugin_with(score_nodes=lambda self, state, pod, nodes: np.zeros(3, dtype=np.int64))
    outcome = Harness(nodes=[node("a"), node("b")], plugins=[scores]).schedule(pod("p"))
    assert "`score_nodes` answered for 3 nodes, expected 2" in outcome.message


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ([0, 0], "answered with a list, expected a plain array of NumPy"),
        (np.zeros(2), "returned numbers of type float64, expected int64"),
        (np.zeros((2, 2), dtype=np.int64), "answered with an array of 2 dimensions, expected one"),
    ],
)
def test_columns_of_anything_but_whole_numbers_are_an_error(ids: Any, problem: str) -> None:
    rejecting = plugin_with(filter_nodes=answering(Verdicts(ids, [Status(Code.SUCCESS)].__getitem__)))
    outcome = Harness(nodes=[node("a"), node("b")], plugins=[rejecting]).schedule(pod("p"))
    assert f"plugin `Mine`: `filter_nodes` {problem}" in outcome.message

    outcome = Harness(nodes=[node("a"), node("b")], plugins=[plugin_with(score_nodes=answering(ids))]).schedule(
        pod("p")
    )
    assert "plugin `Mine`: `score_nodes` " in outcome.message


@pytest.mark.parametrize(
    ("method", "answer", "problem"),
    [
        ("pre_filter", PreFilterResult("a"), "PreFilterResult whose `node_names` is 'a' (str)"),  # type: ignore[arg-type]
        ("pre_filter", PreFilterResult(["a"]), "PreFilterResult whose `node_names` is ['a'] (list)"),  # type: ignore[arg-type]
        ("post_filter", PostFilterResult(5), "PostFilterResult whose `nominated_node_name` is 5 (int)"),  # type: ignore[arg-type]
        ("post_filter", PostFilterResult("a", "full"), "PostFilterResult whose `status` is 'full' (str)"),  # type: ignore[arg-type]
        ("post_filter", PostFilterResult("a", victims=5), "PostFilterResult whose `victims` is 5 (int)"),  # type: ignore[arg-type]
    ],
)
def test_a_result_with_a_wrong_field_is_an_error_that_names_it(method: str, answer: Any, problem: str) -> None:
    members = {method: answering(answer), "filter": answering(Status(Code.UNSCHEDULABLE, ("full",)))}

    outcome = Harness(nodes=[node("a"), node("b")], plugins=[plugin_with(**members)]).schedule(pod("p"))

    assert f"plugin `Mine`: `{method}` returned a {problem}, expected `" in outcome.message


def test_a_set_of_node_names_does_as_well_as_a_frozen_one() -> None:
    plugin = plugin_with(pre_filter=answering(PreFilterResult({"b"})))  # type: ignore[arg-type] # what is tested

    assert Harness(nodes=[node("a"), node("b")], plugins=[plugin]).schedule(pod("p")).node_name == "b"


def test_a_plugin_that_fails_to_order_pods_is_reported() -> None:
    for members in ({"sort_key": answering("late")}, {"less": raising(SystemExit(3))}):
        complaints = Complaints()
        key = sort_key_call(plugin_with(**members)(), complaints)

        with pytest.raises(PluginFailure):
            sorted([None, None], key=key)  # type: ignore[arg-type] # no order reads it
        assert [(plugin, method) for plugin, method, _ in complaints] == [("Mine", next(iter(members)))]


def test_proposals_end_where_a_plugin_fails_to_make_them() -> None:
    good = ObjectRemedy("the quota were larger", None, Pod())

    def yields_and_fails(self: Any, _pod: Any) -> Iterator[Any]:
        yield good
        raise ValueError("no idea")

    for method in (yields_and_fails, answering([good, "a larger quota", good]), answering([good, *"no"])):
        complaints = Complaints()

        found = list(call_object_remedies(plugin_with(object_remedies=method)(), complaints, None))  # type: ignore[arg-type]

        assert found == [good]
        assert [(plugin, method) for plugin, method, _ in complaints] == [("Mine", "object_remedies")]


def test_a_reader_that_takes_the_first_proposal_alone_is_no_failure_of_the_plugin() -> None:
    good = ObjectRemedy("the quota were larger", None, Pod())

    def yields(self: Any, _pod: Any) -> Iterator[Any]:
        yield good
        yield good

    complaints = Complaints()
    proposals = call_object_remedies(plugin_with(object_remedies=yields)(), complaints, None)  # type: ignore[arg-type]
    assert next(proposals) is good
    proposals.close()

    assert list(complaints) == []


def test_a_verdict_without_a_status_is_an_error() -> None:
    def filter_nodes(self: Any, state: Any, pod: Any, nodes: Any) -> Verdicts:
        return Verdicts(np.ones(len(nodes), dtype=np.int32), ["", "no"].__getitem__)  # type: ignore[arg-type] # the mistake

    for depends in Depends:
        plugin = plugin_with(filter_nodes=filter_nodes, depends=depends)
        outcome = Harness(nodes=[node("a"), node("b")], plugins=[plugin]).schedule(pod("p"))
        assert "`filter_nodes` has 'no' for 1, not a `Status`" in outcome.message


def test_a_score_that_fails_once_is_computed_again() -> None:
    class Moody(Plugin):
        depends = Depends.NODE
        fails = True

        def score(self, state: Any, pod: Any, node: Any) -> int:
            if self.fails:
                raise ValueError("not today")
            return 100 if node.name == "b" else 0

    harness = Harness(nodes=[node("a"), node("b")], plugins=[Moody], default_plugins=False)
    for name in ("first", "second"):
        assert "not today" in harness.schedule(pod(name)).message
    harness.plugin("Moody").fails = False  # type: ignore[attr-defined] # of the class above

    assert harness.schedule(pod("third")).node_name == "b"


def test_a_wrong_answer_names_its_method_even_if_the_declaration_is_a_promise() -> None:
    assert "expected `bool`" in str(WrongAnswer("Mine", "is_idle", 3))
