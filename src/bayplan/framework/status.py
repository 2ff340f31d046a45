"""Outcomes of plugin calls. "Does not fit" is a value, never an exception.

A plugin returns nothing (or `SUCCESS`) when all is well, otherwise one of the constructors below:

    return Unschedulable("node(s) had no free licences")      # may change when pods leave
    return Unresolvable("node(s) are in the wrong country")   # no preemption will help
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from math import isnan

__all__ = [
    "SKIP",
    "SUCCESS",
    "Code",
    "Error",
    "Pending",
    "Skip",
    "Status",
    "Unresolvable",
    "Unschedulable",
    "Wait",
    "reason_of",
]


class Code(IntEnum):
    """Numbered as kube-scheduler numbers them."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    """Not now; removing pods may help."""
    UNRESOLVABLE = 3
    """Not now, and preemption cannot help (UnschedulableAndUnresolvable)."""
    WAIT = 4
    """Permit only: hold the pod until it is allowed or rejected."""
    SKIP = 5
    """This plugin has no say for this pod; leave out what follows of it."""
    PENDING = 6
    """Waiting for something outside; requeued without back-off when it comes."""

    @property
    def label(self) -> str:
        """The name that kube-scheduler prints."""
        return _LABELS[self]


_LABELS = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}
_REJECTED = frozenset((Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING))
# Looking a member up in its enum takes longer than the comparison, which runs a dozen times for every pod.
_SUCCESS, _SKIP, _WAIT = Code.SUCCESS, Code.SKIP, Code.WAIT


class Status:
    """A code, the reasons for it, and the plugin that said so. Immutable; shared between nodes."""

    __slots__ = ("code", "exception", "plugin", "reasons", "timeout_seconds")

    def __init__(
        self,
        code: Code,
        reasons: tuple[str, ...] = (),
        *,
        plugin: str = "",
        exception: BaseException | None = None,
        timeout_seconds: float = 0.0,
    ) -> None:
        # Checked here rather than where it is read: the traceback then shows the line of the plugin.
        if type(code) is not Code:
            raise TypeError(f"the code of a status must be a `Code`, found {code!r:.60}")
        if type(reasons) is not tuple:
            raise TypeError(f"the reasons of a status must be a tuple of texts, found {reasons!r:.60}")
        for reason in reasons:
            if not isinstance(reason, str):
                raise TypeError(f"a reason of a status must be a text, found {reason!r:.60}")
        self.code = code
        self.reasons = reasons
        self.plugin = plugin
        self.exception = exception
        self.timeout_seconds = timeout_seconds

    def __repr__(self) -> str:
        return f"<{self.code.label} {self.plugin} {', '.join(self.reasons)!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Status):
            return NotImplemented
        return (self.code, self.reasons, self.plugin) == (other.code, other.reasons, other.plugin)

    def __hash__(self) -> int:
        return hash((self.code, self.reasons, self.plugin))

    @property
    def is_success(self) -> bool:
        return self.code is _SUCCESS

    @property
    def is_skip(self) -> bool:
        return self.code is _SKIP

    @property
    def is_wait(self) -> bool:
        return self.code is _WAIT

    @property
    def is_rejected(self) -> bool:
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same outcome, said by that plugin."""
        if self.plugin == plugin:
            return self
        if self is SUCCESS or self is SKIP:
            return _plain(self.code, plugin)
        return Status(
            self.code, self.reasons, plugin=plugin, exception=self.exception, timeout_seconds=self.timeout_seconds
        )


SUCCESS = Status(Code.SUCCESS)
SKIP = Status(Code.SKIP)


@lru_cache(maxsize=1024)
def _plain(code: Code, plugin: str) -> Status:
    """A status without reasons, made once for each plugin."""
    return Status(code, plugin=plugin)


def Unschedulable(*reasons: str) -> Status:  # noqa: N802 - reads as the outcome it makes
    return Status(Code.UNSCHEDULABLE, reasons)


def Unresolvable(*reasons: str) -> Status:  # noqa: N802
    return Status(Code.UNRESOLVABLE, reasons)


def Pending(*reasons: str) -> Status:  # noqa: N802
    return Status(Code.PENDING, reasons)


def Skip() -> Status:  # noqa: N802
    return SKIP


def Wait(timeout_seconds: float, *reasons: str) -> Status:  # noqa: N802
    """Permit: hold the pod for at most that long (15 minutes is the cap)."""
    if isinstance(timeout_seconds, bool) or not isinstance(timeout_seconds, int | float) or isnan(timeout_seconds):
        raise TypeError(f"`Wait` takes a number of seconds, found {timeout_seconds!r:.60}")
    return Status(Code.WAIT, reasons, timeout_seconds=timeout_seconds)


def Error(*reasons: str, exception: BaseException | None = None) -> Status:  # noqa: N802
    """Something went wrong that is not a verdict about the pod: it is retried after back-off."""
    return Status(Code.ERROR, reasons, exception=exception)


def reason_of(status: Status) -> str:
    """The message of a status that is no success; where the plugin gave none, what can be said instead of it."""
    said = status.message
    if said.strip(", "):
        return said
    if status.is_rejected or status.code is Code.ERROR:
        return "no reason given"
    return f"answered {status.code.label}, which means nothing there"
