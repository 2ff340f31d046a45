"""The best chain of nodes, link by link, without trying them one by one.

A chain takes nodes in the order they are listed, so the best chain from a node on does not depend on how one got there:
one pass from the last link to the first finds it in links times nodes squared steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bayplan.plugins.community.network_metrics import NetworkTables

__all__ = ["Link", "best_chain"]

_FULL = 200.0
_HALF = 100.0
Matrix = npt.NDArray[np.float64]


class Link(NamedTuple):
    """What two neighbours of the chain need of the network between them."""

    least_bandwidth: float
    wanted_bandwidth: float
    most_latency: float
    wanted_latency: float


_ANY = Link(0.0, 0.0, np.inf, np.inf)


def best_chain(names: Sequence[str], tables: NetworkTables, links: Sequence[Link], *, length: int) -> list[str] | None:
    """The chain with the highest sum of link scores, the first in the order of `names` among equals; None without.

    Links beyond the last requirement need nothing.
    """
    if length < 1 or len(names) < length:
        return None
    bandwidth, latency = _matrix(names, tables.bandwidth), _matrix(names, tables.latency)
    onward: Matrix = np.zeros(len(names))
    steps: list[Matrix] = []
    for place in reversed(range(length - 1)):
        link = links[place] if place < len(links) else _ANY
        step = _scores(bandwidth, latency, link) + onward[np.newaxis, :]
        steps.append(step)
        onward = step.max(axis=1)
    if not np.isfinite(onward.max()):
        return None
    chain = [int(onward.argmax())]
    for step in reversed(steps):
        chain.append(int(step[chain[-1]].argmax()))
    return [names[place] for place in chain]


def _matrix(names: Sequence[str], table: dict[str, dict[str, float]] | None) -> Matrix:
    places = {name: place for place, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for source, row in (table or {}).items():
        if source in places:
            for target, value in row.items():
                if target in places:
                    matrix[places[source], places[target]] = value
    return matrix


def _scores(bandwidth: Matrix, latency: Matrix, link: Link) -> Matrix:
    """The score of each pair as neighbours; minus infinity where the chain may not go."""
    partly = np.zeros_like(bandwidth)
    if link.wanted_bandwidth > link.least_bandwidth:
        partly += (bandwidth - link.least_bandwidth) / (link.wanted_bandwidth - link.least_bandwidth) * _HALF
    if link.most_latency > link.wanted_latency:
        partly += (link.most_latency - latency) / (link.most_latency - link.wanted_latency) * _HALF
    is_full = (bandwidth >= link.wanted_bandwidth) | (latency <= link.wanted_latency)
    is_broken = (bandwidth < link.least_bandwidth) | (latency > link.most_latency)
    scores = np.where(is_broken, -np.inf, np.where(is_full, _FULL, partly))
    scores[np.tril_indices(len(scores))] = -np.inf  # a chain goes forward in the list and visits a node once
    return scores
