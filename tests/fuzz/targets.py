"""The targets: each takes one mutated input, and whatever it raises, but for the errors that its parser promises, is a
defect. A target is a class in `TARGETS` by the name that `make fuzz TARGET=` takes; it is made once and tried often."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any, Protocol

import msgspec
import yaml

from bayplan.api import quantity
from bayplan.api.documents import DocumentError, parse_documents
from bayplan.api.meta import LabelSelector
from bayplan.api.pod import Pod
from bayplan.api.selectors import SelectorError, compile_selector
from bayplan.apiserver.cluster import EmbeddedCluster
from bayplan.apiserver.protocol.quantity import BadQuantity, canonical_quantity
from bayplan.apiserver.protocol.selectors import BadSelector, parse_field_selector, parse_label_selector
from bayplan.apiserver.server.http import Connection, HttpServer
from bayplan.app.settings import SettingsError
from bayplan.client.connection import BUFFER_BYTES, HttpConnection
from bayplan.client.decoding import ObjectDecoder
from bayplan.client.errors import ClientError, KubeconfigError
from bayplan.client.kubeconfig import access_from
from bayplan.client.kubeconfig_file import read_merged
from bayplan.config.errors import ConfigError
from bayplan.config.loading import load_config
from bayplan.explain.whatif.scenario import ScenarioError, read_scenario
from bayplan.observe.clock import VirtualClock
from bayplan.sim.engine.simulation import SimulationError
from bayplan.sim.recording.file import RecordingError, RecordingFile
from bayplan.sim.recording.replay import replay_recording
from tests.cel.fuzz import Mutator, check
from tests.e2e.objects import pod, spread
from tests.fuzz.answer_targets import Completion, Credentials, Extenders, Leases, Questions
from tests.fuzz.api_targets import ApiRequests, Schemas
from tests.fuzz.body_targets import Bodies, Conditions, OwnConfig, Reviews
from tests.fuzz.file_targets import Failed, Protobuf, Traces
from tests.fuzz.mutation import mutated_bytes, mutated_document, mutated_text
from tests.fuzz.plugin_targets import Annotations, CustomResources, Queries
from tests.fuzz.record_targets import Cases, Changes, Decisions

_EXAMPLES = Path(__file__).parents[2] / "examples"


class Target(Protocol):
    """A parser under attack."""

    def attempt(self, random: Random) -> object:
        """Try one input, and return it."""

    def close(self) -> None:
        """Let go of what the target holds."""


class Config(Target):
    _SEED: Mapping[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": True, "leaseDuration": "15s", "resourceName": "x"},
        "clientConnection": {"qps": 50, "burst": 100, "kubeconfig": "/k"},
        "percentageOfNodesToScore": 50,
        "podInitialBackoffSeconds": 1,
        "profiles": [
            {
                "schedulerName": "a",
                "plugins": {
                    "score": {"enabled": [{"name": "ImageLocality", "weight": 3}], "disabled": [{"name": "*"}]}
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                    {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 1}},
                    {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}},
                ],
            }
        ],
        "extenders": [{"urlPrefix": "http://x", "filterVerb": "f", "managedResources": [{"name": "a/b"}]}],
    }

    def attempt(self, random: Random) -> object:
        document = mutated_document(self._SEED, random)
        given: Any = document if isinstance(document, dict) and random.random() < 0.5 else _as_text(document, random)
        try:
            load_config(given)
        except ConfigError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


def _as_text(document: Any, random: Random) -> str:
    text = yaml.safe_dump(document) if random.random() < 0.5 else json.dumps(document)
    return mutated_text(text, random) if random.random() < 0.5 else text


class Manifests(Target):
    def __init__(self) -> None:
        self._texts = [path.read_text() for path in sorted(_EXAMPLES.glob("*.yaml"))]

    def attempt(self, random: Random) -> object:
        given = mutated_text(random.choice(self._texts), random)
        try:
            for document in parse_documents(given):
                msgspec.json.encode(document.value)
        except (DocumentError, UnicodeEncodeError):
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class Quantities(Target):
    _SEEDS = ("1", "100m", "1.5Gi", "2e3", "-4Ki", "1E", "0.000000001", "9223372036854775807", "1e-9", "+1")

    def attempt(self, random: Random) -> object:
        given = mutated_text(random.choice(self._SEEDS), random)[:200]
        for parse in (quantity.value, quantity.milli_value, quantity.nano_value, canonical_quantity):
            try:
                parse(given)
            except (quantity.QuantityError, BadQuantity):
                continue
            except BaseException as error:
                raise Failed(given) from error
        return given


class Selectors(Target):
    _SEEDS = ("a=b,c!=d", "x in (a, b),!y", "env notin (p),t", "metadata.name=x,spec.nodeName!=y", "a>1,b<2")
    _OBJECT: Mapping[str, Any] = {
        "matchLabels": {"a": "b"},
        "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}, {"key": "z", "operator": "Exists"}],
    }

    def attempt(self, random: Random) -> object:
        given: Any = mutated_text(random.choice(self._SEEDS), random)
        document = mutated_document(self._OBJECT, random)
        try:
            for parse in (parse_label_selector, parse_field_selector):
                try:
                    parse(given)
                except BadSelector:
                    continue
            compile_selector(msgspec.convert(document, LabelSelector))
        except (SelectorError, msgspec.ValidationError):
            pass
        except BaseException as error:
            raise Failed((given, document)) from error
        return given


class Expressions(Target):
    """CEL; `python -m tests.cel.fuzz` says more about slow ones."""

    def __init__(self) -> None:
        self._mutator = Mutator(1)

    def attempt(self, random: Random) -> object:
        given = self._mutator.text()
        try:
            check(given, self._mutator.device())
        except BaseException as error:
            raise Failed(given) from error
        return given


class Kubeconfig(Target):
    _SEED: Mapping[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://x:1", "certificate-authority-data": "YQ=="}}],
        "users": [{"name": "u", "user": {"token": "t", "exec": {"command": "true", "apiVersion": "x"}}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": "n"}}],
        "current-context": "x",
    }

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="bayplan-fuzz-")
        self._path = Path(self._folder.name) / "kubeconfig"

    def close(self) -> None:
        self._folder.cleanup()

    def attempt(self, random: Random) -> object:
        given = _as_text(mutated_document(self._SEED, random), random)
        self._path.write_text(given, errors="surrogateescape")
        try:
            access_from(read_merged([self._path]), clock=VirtualClock(), environment={})
        except KubeconfigError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class Watches(Target):
    """Lines and pages as an API server, or something before it, may send them."""

    def __init__(self) -> None:
        self._decoder = ObjectDecoder(Pod)
        item = pod("p", topologySpreadConstraints=[spread("zone", "a", hard=True)])
        self._line = json.dumps({"type": "ADDED", "object": item}).encode()
        self._page = json.dumps({"metadata": {"resourceVersion": "1", "continue": "x"}, "items": [item]}).encode()

    def attempt(self, random: Random) -> object:
        given = mutated_bytes(random.choice([self._line, self._page]), random)
        for decode in (self._decoder.event, self._decoder.page):
            try:
                decode(given)
            except ClientError:
                continue
            except BaseException as error:
                raise Failed(given) from error
        return given


class Scenarios(Target):
    _SEED: Mapping[str, Any] = {
        "addNodes": [{"like": "n1", "count": 3}],
        "drain": ["n2"],
        "addPods": [{"count": 2, "pod": pod("p")}],
        "weights": {"ImageLocality": 3},
        "edits": [],
        "pending": True,
    }

    def attempt(self, random: Random) -> object:
        given = _as_text(mutated_document(self._SEED, random), random).encode("utf-8", "replace")
        try:
            read_scenario(given)
        except ScenarioError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given


class _Wire(asyncio.Transport):
    """Where a connection under test writes."""

    def __init__(self) -> None:
        super().__init__()
        self.is_closed = False

    def write(self, data: Any) -> None:
        """Nobody reads it."""

    def abort(self) -> None:
        self.is_closed = True

    close = abort

    def is_closing(self) -> bool:
        return self.is_closed

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        """Nothing comes by itself."""

    resume_reading = pause_reading


class HttpAnswers(Target):
    """What the client gets from a server: an answer, or an error of the client."""

    _SEEDS = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nConnection: close\r\n\r\nxyz",
    )

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def close(self) -> None:
        self._loop.close()

    def attempt(self, random: Random) -> object:
        given = mutated_bytes(random.choice(self._SEEDS), random)
        try:
            self._loop.run_until_complete(self._exchange(given, random.randrange(1, 64)))
        except ClientError:
            pass
        except BaseException as error:
            raise Failed(given) from error
        return given

    async def _exchange(self, given: bytes, piece: int) -> None:
        wire = _Wire()
        connection = HttpConnection(on_lost=lambda lost: None, buffer=self._buffer, max_response_bytes=1 << 16)
        connection.connection_made(wire)
        answer = connection.exchange(b"GET / HTTP/1.1\r\n\r\n", 5.0)
        for start in range(0, len(given), piece):
            if wire.is_closed:
                break
            part = given[start : start + piece]
            connection.get_buffer(len(part))[: len(part)] = part
            connection.buffer_updated(len(part))
        connection.connection_lost(None)
        await answer


class HttpRequests(Target):
    """What the embedded API server gets from a client: it answers or closes, and never fails."""

    _SEEDS = (
        b"GET /api/v1/pods?limit=3 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer fuzz\r\nAccept: */*\r\n\r\n",
        b"POST /api/v1/pods HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nabcd",
        b"PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
    )

    def __init__(self) -> None:
        logging.getLogger("bayplan.apiserver").setLevel(logging.CRITICAL)
        self._loop = asyncio.new_event_loop()
        self._api = EmbeddedCluster(nodes=1, listen=False, token="fuzz", simulate=False).api

    def close(self) -> None:
        self._loop.close()

    def attempt(self, random: Random) -> object:
        given = mutated_bytes(random.choice(self._SEEDS), random)
        try:
            self._loop.run_until_complete(self._receive(given, random.randrange(1, 64)))
        except BaseException as error:
            raise Failed(given) from error
        return given

    async def _receive(self, given: bytes, piece: int) -> None:
        wire, connection = _Wire(), Connection(HttpServer(self._api.handle, self._api.handle_with_reviews))
        connection.connection_made(wire)
        for start in range(0, len(given), piece):
            if wire.is_closed:
                break
            connection.data_received(given[start : start + piece])
        connection.connection_lost(None)
        await connection.finished()


class Recordings(Target):
    """A recording, damaged as a whole or in its lines: it is read, replayed and listed, or refused with the place."""

    _LINES = (
        b'["+",6.0,"Node",{"metadata":{"name":"n1","uid":"1"},"status":{"allocatable":{"cpu":"4","pods":"9"}}}]',
        b'["+",6.1,"Pod",{"metadata":{"name":"web","namespace":"default","uid":"2"},"spec":{"schedulerName":'
        b'"default-scheduler","containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}]',
        b'["r",6.2]',
        b'["d",6.3,"default/web","2",1,"n1","","",[],1,0,1]',
        b'["e",6.4,"default/web","2",""]',
        b'["-",6.5,"Pod","default/web"]',
        b'["c",6.6,{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}]',
    )
    _HEADER = (
        b'{"format":"bayplan-recording","version":1,"by":"scheduler","time":5.0,'
        b'"config":{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}}'
    )

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name) / "recording"

    def close(self) -> None:
        self._folder.cleanup()

    def attempt(self, random: Random) -> object:
        lines = [self._HEADER, *self._LINES]
        if random.random() < 0.7:
            place = random.randrange(len(lines))
            lines[place] = mutated_bytes(lines[place], random).replace(b"\n", b"")
        self._path.unlink(missing_ok=True)
        file = RecordingFile(self._path, limit_bytes=2**20)
        for line in lines:
            file.append(line)
        file.close()
        if random.random() < 0.4:
            self._path.write_bytes(mutated_bytes(self._path.read_bytes(), random))
        given = self._path.read_bytes()
        try:
            replay_recording(self._path)
        except (RecordingError, SettingsError, SimulationError):
            pass
        except BaseException as error:
            raise Failed((lines, given)) from error
        return given


TARGETS: dict[str, Callable[[], Target]] = {
    "config": Config,
    "manifests": Manifests,
    "quantities": Quantities,
    "selectors": Selectors,
    "cel": Expressions,
    "kubeconfig": Kubeconfig,
    "watches": Watches,
    "scenarios": Scenarios,
    "api": ApiRequests,
    "schemas": Schemas,
    "http-answers": HttpAnswers,
    "http-requests": HttpRequests,
    "recordings": Recordings,
    "traces": Traces,
    "protobuf": Protobuf,
    "cases": Cases,
    "decisions": Decisions,
    "changes": Changes,
    "credentials": Credentials,
    "leases": Leases,
    "extenders": Extenders,
    "questions": Questions,
    "completion": Completion,
    "custom-resources": CustomResources,
    "annotations": Annotations,
    "queries": Queries,
    "bodies": Bodies,
    "reviews": Reviews,
    "conditions": Conditions,
    "own-config": OwnConfig,
}
