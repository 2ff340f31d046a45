"""Targets for what was written before and is read again: cases, decision files, and the data of an embedded cluster."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.storage.change_log import Record
from bayplan.apiserver.storage.persistence import UnusableDataDir
from bayplan.cli.case_lines import _answer
from bayplan.explain.decision_file import FILE_VERSION, DecisionFileError, read_decisions
from bayplan.explain.offline.cases import CaseEvaluator
from bayplan.observe.clock import VirtualClock
from tests.e2e.objects import node, pod, spread
from tests.fuzz.file_targets import Failed
from tests.fuzz.mutation import mutated_bytes, mutated_document


class Cases:
    """Lines of `bayplan evaluate --cases`: each has a result or a problem in one line, never an internal error."""

    _SEED: Mapping[str, Any] = {
        "id": "one",
        "config": {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
        "objects": [node("n1"), node("n2"), pod("there", nodeName="n1", ports=[80])],
        "pods": [pod("p", topologySpreadConstraints=[spread("zone", "a", hard=True)]), pod("q", priority=5)],
    }

    def __init__(self) -> None:
        self._evaluator = CaseEvaluator()

    def close(self) -> None:
        """Nothing is held."""

    def attempt(self, random: Random) -> object:
        line = json.dumps(mutated_document(self._SEED, random)).encode()
        if random.random() < 0.2:
            line = mutated_bytes(line, random)
        answer = _answer(line, 1, "fuzz", self._evaluator)
        if answer.get("error", "").startswith("internal error"):
            raise Failed((answer["error"], line))
        return line


class Decisions:
    """A decision file, cut and changed anywhere: what can be read of it is read."""

    _RECORD: Mapping[str, Any] = {
        "number": 1,
        "time": 5.0,
        "pod": "default/web",
        "uid": "1",
        "profile": "default",
        "nodes": 3,
        "node": "n1",
        "message": "0/3",
        "phases": [["Filter", 0.1]],
    }

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "decisions"

    def close(self) -> None:
        self._folder.cleanup()

    def attempt(self, random: Random) -> object:
        lines = [{"version": FILE_VERSION}, self._RECORD, mutated_document(self._RECORD, random)]
        given = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        if random.random() < 0.7:
            given = mutated_bytes(given, random)
        self._path.write_bytes(given)
        try:
            read_decisions(self._path)
        except DecisionFileError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class Changes:
    """The log of a data directory whose process was killed: it is taken over, left out, or refused as a whole."""

    def __init__(self) -> None:
        logging.getLogger("bayplan.apiserver").setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "data"
        self._seeds = [("pods", "default", pod("p")), ("nodes", "", node("n")), ("unknown.example", "", {"kind": "X"})]

    def close(self) -> None:
        self._loop.close()
        self._folder.cleanup()

    def attempt(self, random: Random) -> object:
        given = b""
        for revision in range(1, random.randrange(2, 5)):
            resource, namespace, seed = random.choice(self._seeds)
            item = mutated_document(seed, random) if random.random() < 0.5 else seed
            raw = json.dumps(item).encode()
            if random.random() < 0.2:
                raw = mutated_bytes(raw, random)
            number = random.choice([revision, revision, -1, 2**63 - 1, 2**64 - 1])
            name = random.choice([seed.get("metadata", {}).get("name", "p"), "", "\x00"])
            record = Record(number, resource, namespace, name, random.choice([raw, None]))
            content = msgspec.msgpack.encode(record)
            given += len(content).to_bytes(4, "big") + content
        if random.random() < 0.5:
            given = mutated_bytes(given, random)
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.mkdir()
        (self._path / "changes-0.log").write_bytes(given)
        try:
            cluster = EmbeddedCluster(data_dir=self._path, listen=False, simulate=False, clock=VirtualClock())
            self._loop.run_until_complete(cluster.stop())
        except UnusableDataDir:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given
