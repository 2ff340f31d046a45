"""Moves as kubectl commands. Evictions go through the eviction API, which enforces disruption budgets."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from bayplan.plan.emptying import MovePlan
from bayplan.plan.moves import BudgetWait, Move

__all__ = ["kubectl_commands"]


def kubectl_commands(plan: MovePlan) -> list[str]:
    """One line each, in the order in which they are meant to run."""
    return list(_lines(plan))


def _lines(plan: MovePlan) -> Iterator[str]:
    cordoned = dict.fromkeys(plan.cordon)
    for name in cordoned:
        yield _cordon(name)
    for move in plan.moves:
        if move.source not in cordoned:
            cordoned[move.source] = None
            yield _cordon(move.source)
        for wait in move.after:
            yield _wait(wait)
        yield _evict(move)


def _cordon(name: str) -> str:
    return f"kubectl cordon {shlex.quote(name)}"


def _wait(wait: BudgetWait) -> str:
    namespace, _, name = wait.budget.partition("/")
    path = f"jsonpath={{.status.disruptionsAllowed}}={wait.allowed}"
    return f"kubectl wait pdb {shlex.quote(name)} -n {shlex.quote(namespace)} --for={shlex.quote(path)} --timeout=15m"


def _evict(move: Move) -> str:
    namespace, _, name = move.pod.partition("/")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    return f"echo {shlex.quote(json.dumps(body))} | kubectl create --raw {shlex.quote(path)} -f -"
