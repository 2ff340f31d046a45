"""The one seam through which plugins are called.

    an exception, or an answer that the contract does not know ──▶ a complaint with the traceback, and an Error status

A plugin that fails does not stop the scheduler: the failure is reported once to the observers and counts as an Error
status of that plugin. A speed promise that fails is reported in the same way and counts as not given (`call_promise`).
Interrupting the process (Ctrl-C) is not a failure of the plugin that happens to run.

Calls for every node and decision are in `node_calls`, with the same rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, cmp_to_key, partial, update_wrapper
from typing import Any

from bayplan.cluster.pod_info import PodInfo
from bayplan.framework.answers import WrongAnswer, check_answer, is_answer
from bayplan.framework.cycle import CycleState
from bayplan.framework.diagnosis import ObjectRemedy
from bayplan.framework.events import Hint, HintFunction
from bayplan.framework.plugin import Plugin
from bayplan.framework.points import ExtensionPoint, defines
from bayplan.framework.promises import UNSIGNED, SpeedPromises
from bayplan.framework.queued import QueuedPod
from bayplan.framework.status import SUCCESS, Error, Status
from bayplan.framework.times import PluginTimes
from bayplan.observe.failures import described

__all__ = [
    "POINT_LABELS",
    "Complaint",
    "KeptScoreFailure",
    "PluginFailure",
    "Suspension",
    "await_plugin",
    "call_bound",
    "call_object_remedies",
    "call_plugin",
    "call_promise",
    "caller",
    "error_status",
    "failed",
    "has_raised",
    "hint_call",
    "key_from_less",
    "not_given",
    "sort_key_call",
    "tear_down",
]

Complaint = Callable[[str, str, BaseException], None]
"""(plugin, method, exception): called once for every failure of a plugin."""

POINT_LABELS = {method: point.label for point in ExtensionPoint for method in point.methods} | {
    "unreserve": "Unreserve",
    "pre_bind_pre_flight": "PreBindPreFlight",
}
"""Method of a plugin to the name of its extension point in metrics."""


class PluginFailure(Exception):
    """A plugin answered with an Error status where the cycle cannot go on."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class KeptScoreFailure(PluginFailure):
    """A score whose `depends` was derived fails for some node, and is not kept any longer. Decide again."""


class Suspension(BaseException):
    """Ends a decision on behalf of the engine while a plugin is on the stack; never a failure of that plugin."""


_PASSED_ON = (KeyboardInterrupt, Suspension)


def call_plugin(plugin: Plugin, method: str, complain: Complaint, *arguments: Any) -> Any:
    """Call a method; the answer as the contract declares it, a Status with the plugin's name."""
    try:
        answer = getattr(plugin, method)(*arguments)
    except BaseException as exception:
        return failed(plugin, method, complain, exception)
    if answer is None and _may_be_none(method):
        return None
    if type(answer) is Status:
        return answer.by(plugin.name)
    if is_answer(method, answer):
        return answer.by(plugin.name) if isinstance(answer, Status) else answer
    return failed(plugin, method, complain, WrongAnswer(plugin.name, method, answer))


def caller(state: CycleState) -> Callable[..., Any]:
    """How to call the plugins of a cycle: `call_plugin`, with the time taken where the cycle is measured."""
    return call_plugin if state.times is None else partial(_call_timed, state.times)


def _call_timed(times: PluginTimes, plugin: Plugin, method: str, complain: Complaint, *arguments: Any) -> Any:
    return times.measure(plugin.name, POINT_LABELS[method], call_plugin, plugin, method, complain, *arguments)


def call_bound(bound: Callable[..., Any], plugin: Plugin, method: str, complain: Complaint, *arguments: Any) -> Any:
    """As `call_plugin`, for hot paths that hold the bound method. A Status that is not an Error has no plugin name."""
    try:
        answer = bound(*arguments)
    except BaseException as exception:
        return failed(plugin, method, complain, exception)
    if type(answer) is Status or (_may_be_none(method) if answer is None else is_answer(method, answer)):
        return answer
    return failed(plugin, method, complain, WrongAnswer(plugin.name, method, answer))


async def await_plugin(
    plugin: Plugin, method: str, complain: Complaint, *arguments: Any, is_cancelled: Callable[[BaseException], bool]
) -> Status:
    """As `call_plugin`, for the methods that may wait; None becomes SUCCESS. `is_cancelled` tells the exceptions that
    end the caller, and are passed on, from those of the plugin."""
    try:
        answer: Status | None = await getattr(plugin, method)(*arguments)
        if answer is None and _may_be_none(method):
            return SUCCESS
        check_answer(plugin.name, method, answer)
    except BaseException as exception:
        if isinstance(exception, GeneratorExit) or is_cancelled(exception):  # the former closes this coroutine
            raise
        return failed(plugin, method, complain, exception)
    return SUCCESS if answer is None else answer.by(plugin.name)


@cache
def _may_be_none(method: str) -> bool:
    return is_answer(method, None)


def call_promise(plugin: Plugin, promise: str, complain: Complaint, *arguments: Any) -> Any:
    """What a speed promise says. One that fails is reported and counts as not given: promises change no decision."""
    try:
        answer = getattr(plugin, promise)(*arguments)
        check_answer(plugin.name, promise, answer)
    except BaseException as exception:
        return not_given(plugin, promise, complain, exception, *arguments)
    return answer


def not_given(plugin: Plugin, promise: str, complain: Complaint, exception: BaseException, *arguments: Any) -> Any:
    """Report a promise that fails; what holds without it."""
    failed(plugin, promise, complain, exception)
    return UNSIGNED if promise == "sign" else getattr(SpeedPromises, promise)(plugin, *arguments)


def hint_call(plugin: Plugin, hint: HintFunction, complain: Complaint) -> HintFunction:
    """A queueing hint with the rules of this module; raises PluginFailure where it fails, after the complaint."""

    def called(pod: Any, old: Any, new: Any) -> Hint:
        try:
            answer = hint(pod, old, new)
            if isinstance(answer, Hint):
                return answer
            raise TypeError(f"plugin `{plugin.name}`: a hint returned {answer!r:.60}, expected `Hint`")
        except BaseException as exception:
            raise PluginFailure(failed(plugin, "events_to_register", complain, exception)) from exception

    update_wrapper(called, hint)  # keeps the mark of `by_shape`
    return called


def sort_key_call(plugin: Plugin, complain: Complaint) -> Callable[[QueuedPod], Any]:
    """The order of a queue-sort plugin as a key, by its `sort_key` where it has one, else by its `less`. Key and
    comparisons raise PluginFailure where the plugin fails, after the complaint."""
    method = "sort_key" if defines(plugin, "sort_key") else "less"
    bound, wanted = getattr(plugin, method), tuple if method == "sort_key" else bool

    def called(*queued: QueuedPod) -> Any:
        try:
            answer = bound(*queued)
            if type(answer) is not wanted:
                check_answer(plugin.name, method, answer)
        except BaseException as exception:
            raise PluginFailure(failed(plugin, method, complain, exception)) from exception
        return answer

    return called if method == "sort_key" else key_from_less(called)


def key_from_less(less: Callable[[QueuedPod, QueuedPod], bool]) -> Callable[[QueuedPod], Any]:
    def compare(first: QueuedPod, second: QueuedPod) -> int:
        if less(first, second):
            return -1
        return 1 if less(second, first) else 0

    return cmp_to_key(compare)


def call_object_remedies(plugin: Plugin, complain: Complaint, pod: PodInfo) -> Iterator[ObjectRemedy]:
    """What the plugin proposes, until it fails: it may yield one proposal after another."""
    proposals = _proposals(plugin, pod)
    while True:
        try:
            remedy = next(proposals)
        except StopIteration:
            return
        except BaseException as exception:
            failed(plugin, "object_remedies", complain, exception)
            return
        # Outside of the try: a reader that has enough closes this generator here, which is no failure of the plugin.
        yield remedy


def _proposals(plugin: Plugin, pod: PodInfo) -> Iterator[ObjectRemedy]:
    for remedy in plugin.object_remedies(pod):
        if not isinstance(remedy, ObjectRemedy):
            raise TypeError(
                f"plugin `{plugin.name}`: `object_remedies` proposed {remedy!r:.60}, expected an `ObjectRemedy`"
            )
        yield remedy


def tear_down(plugins: Iterable[Plugin], complain: Complaint) -> None:
    """Let plugins that are not used any more release what they acquired."""
    for plugin in plugins:
        if defines(plugin, "teardown"):
            call_plugin(plugin, "teardown", complain)


def failed(plugin: Plugin, method: str, complain: Complaint, exception: BaseException) -> Status:
    """Report an exception and turn it into an Error status of the plugin."""
    if isinstance(exception, _PASSED_ON):
        raise exception
    complain(plugin.name, method, exception)
    return error_status(exception).by(plugin.name)


def has_raised(status: Status) -> bool:
    """Whether a status stands for an exception or a wrong answer of its plugin, rather than being its answer."""
    exception = status.exception
    return exception is not None and status.reasons == error_status(exception).reasons


def error_status(exception: BaseException) -> Status:
    return Error(described(exception), exception=exception)
