"""Plugins that hide what they depend on: every one of them must be treated as depending on everything."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from bayplan.framework import Depends, Plugin, PluginArgs
from bayplan.framework.reading import reading_of
from bayplan.testing import Harness

SEEN: dict[str, int] = {}
LIMIT = 3
MOST = 3


class Bumping:
    """A base that stands after `Plugin` in the order of resolution."""

    def bump(self) -> None:
        self.points = 7


class WithMixin(Plugin, Bumping):
    def setup(self) -> None:
        self.points = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.bump()


class KeyDefault(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        found = sorted((1, 2), key=lambda each, *, MOST=pod.name: len(MOST) * each)  # noqa: N803 - a constant's name
        return sum(found[:1])


class KeyRest(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return max((1, 2), key=lambda each, *MOST: len(MOST))  # noqa: N803 - a constant's name


class PodsOrPart(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int((node.pods or pod.spec.node_selector).get("u").labels.get("app") == "web")


class UnpackedPart(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        first, _second = pod.spec.node_selector
        return int(first == "zone")


class SetsByDunder(Plugin):
    def setup(self) -> None:
        self.points = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.__setattr__("points", 2)


class ChangesClass(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.__class__ = KeyRest  # type: ignore[assignment]  # what is being looked for


class GivesClassAway(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return 1

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        SEEN.update(vars_of=self.__class__)  # type: ignore[arg-type]  # what is being looked for


class ReachesItself(Plugin):
    def setup(self) -> None:
        self.points = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        SEEN[self.score.__self__.name] = 1  # type: ignore[attr-defined]  # what is being looked for


class InterceptedArgs(Plugin):
    class Args(PluginArgs):
        points: int = 1

        def __getattribute__(self, name: str) -> Any:
            return len(SEEN) if name == "points" else super().__getattribute__(name)

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.points  # type: ignore[no-any-return]


class AfterArgs:
    def bump(self) -> None:
        self.points = 9


class MixedArgs(Plugin):
    class Args(PluginArgs, AfterArgs):
        points: int = 1

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.args.points  # type: ignore[no-any-return]

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        self.args.bump()


class Odd:
    """Stores what is assigned, and answers with something else."""

    def __get__(self, instance: Any, owner: Any) -> Any:
        return len(SEEN)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)["points"] = value


class Descriptor(Plugin):
    points = Odd()

    def setup(self) -> None:
        self.points = 3

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.points  # type: ignore[no-any-return]


class Recorder:
    def __getitem__(self, key: Any) -> Any:
        return key.append("x")


class KeepsKey(Plugin):
    class Args(PluginArgs):
        zones: list[str] = []

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(self.args.zones)

    def reserve(self, state: Any, pod: Any, node_name: str) -> None:
        Recorder()[self.args.zones]


class Endless(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        points = 0
        while points < node.allocatable_of("seats"):
            points += 1
        return points


class Matching(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        match node.labels:
            case {"zone": zone}:
                return len(zone)
            case _:
                return 0


class Hashed(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return hash(node.name) % 100


class Identity(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return id(node) % 100


class Formatted(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(f"{pod}")


class FormattedNode(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(f"{node!r}")


class Handed(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self._length(**{"pod": pod})  # noqa: PIE804 - what is being looked for

    def _length(self, pod: Any) -> int:
        return len(pod.name)


class ThroughHelper(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self._length(pod)

    def _length(self, one: Any) -> int:
        return self._further(each=one)

    def _further(self, each: Any) -> int:
        return len(each.uid)


class ThroughMetadata(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(pod.pod.metadata.name)


class ThroughKey(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(pod.key)


class Owner(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(pod.controller.uid)


class OtherSpec(Plugin):
    """Pods on the node are replaced without notice where only such parts of them change."""

    def score(self, state: Any, pod: Any, node: Any) -> int:
        return sum(1 for other in node.pods.values() if other.is_terminating)


class OtherStatus(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return sum(1 for other in node.pods.values() if other.pod.status.phase == "Running")


class Superior(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(super().name)


class AsynchronousHelper(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> Any:
        return self._later(node)

    async def _later(self, node: Any) -> int:
        return len(SEEN)


class CalledLambda(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return (lambda each: len(each.name))(pod)


class KeptLambda(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        found = lambda: len(SEEN)  # noqa: E731 - what is being looked for
        return found()


class InnerFunction(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        def found() -> int:
            return len(pod.name)

        return found()


class BoundMethod(Plugin):
    def setup(self) -> None:
        self.seen: list[str] = []

    def score(self, state: Any, pod: Any, node: Any) -> int:
        note = self.seen.append
        note(node.name)
        return len(self.seen)


class WritesPod(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        pod.labels["seen"] = node.name
        return len(pod.labels)


class WritesNode(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        node.labels.update(seen="1")
        return len(node.labels)


class PopsLabel(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return len(node.labels.pop("zone", ""))


class Multiplies(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        found = [node.taints]
        found[0] *= 2
        return len(found[0])


class MultipliesName(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        taints = node.taints
        taints *= 2
        return len(taints)


class AddsCounted(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        len = list
        taints = node.taints
        taints += len(taints)
        return 1


class Deletes(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        found = dict(node.labels)
        del found["zone"]
        return len(found)


class StateInHelper(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self._from(state)

    def _from(self, kept: Any) -> int:
        return int(kept.get("points"))


class WithStatement(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        with SEEN:  # type: ignore[attr-defined]  # what is being looked for
            return 1


class Importing(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        import time

        return int(time.time()) % 100


class Raising(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        raise ValueError(pod.name)


class CaughtName(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        try:
            return int(node.labels["rank"])
        except KeyError as error:
            return id(error) % 100


class CatchesAll(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        try:
            return int(node.labels["rank"])
        except:  # noqa: E722 - what is being looked for
            return 0


class GlobalStatement(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        global LIMIT  # a name that is given another value
        LIMIT = 4
        return LIMIT


class ModuleAttribute(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return types.limit  # type: ignore[attr-defined,no-any-return]  # what is being looked for


class Snapshot(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return self.version


class Starred(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return max(*node.pods, 1)


class CompareNodes(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node == state)


class SameObject(Plugin):
    def score(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.labels is pod.labels)


DISGUISES = [
    *(WithMixin, KeyDefault, KeyRest, PodsOrPart, UnpackedPart, SetsByDunder, ChangesClass, GivesClassAway),
    *(ReachesItself, InterceptedArgs, MixedArgs, Descriptor, KeepsKey, Endless, Matching, Hashed, Identity, Formatted),
    *(FormattedNode, Handed, ThroughHelper, ThroughMetadata, ThroughKey, Owner, OtherSpec, OtherStatus, Superior),
    *(AsynchronousHelper, CalledLambda, KeptLambda, InnerFunction, BoundMethod, WritesPod, WritesNode, PopsLabel),
    *(
        Multiplies,
        MultipliesName,
        AddsCounted,
        Deletes,
        StateInHelper,
        WithStatement,
        Importing,
        Raising,
        CaughtName,
        CatchesAll,
        GlobalStatement,
    ),
    *(ModuleAttribute, Snapshot, Starred, CompareNodes, SameObject),
]


@pytest.mark.parametrize("plugin", DISGUISES)
def test_a_disguise_is_not_taken_for_something_fixed(plugin: type[Plugin]) -> None:
    found = reading_of(plugin(), "score")

    assert found.depends is Depends.CLUSTER
    assert found.obstacle


_MODULE = """
from bayplan.framework import Plugin, PluginArgs

{head}

class Mine(Plugin):
    class Args(PluginArgs):
        zones: list[str] = []

    def setup(self):
        self.table = dict({{"a": 1}})

    def score(self, state, pod, node):
        return {body}

    def reserve(self, state, pod, node_name):
        len(sorted(self.args.zones))
"""


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("SHARED = {'a': 1}\ndef dict(pairs):\n    return SHARED", 'self.table.get("a", 0)'),
        ("def sorted(zones):\n    zones.append('x')\n    return zones", "len(self.args.zones)"),
        ("__builtins__ = {**vars(__import__('builtins')), 'len': id}", "len(node.labels) % 100"),
        ("__LIMIT = 3\n_Mine__LIMIT = [4]", "__LIMIT"),
        ("LIMIT = 3\nfor LIMIT in range(3):\n    pass", "LIMIT"),
        ("LIMIT = 3\nvars(__import__('sys').modules[__name__])['LIMIT'] = 4", "LIMIT"),
    ],
)
def test_a_file_that_gives_known_names_another_meaning_is_not_read(head: str, body: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(_MODULE.format(head=head, body=body))
    found = reading_of(Harness(nodes=["n"], plugins=[file]).plugin("Mine"), "score")

    assert found.depends is Depends.CLUSTER
