"""Misspelt fields are refused by `evaluate`, `whatif` and `apply`, with what was probably meant."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any, cast

import pytest

from bayplan.api.decode import InputError
from bayplan.app.settings import load_settings
from bayplan.cli.cluster_access import ClusterClient
from bayplan.cli.evaluate import evaluate_files
from bayplan.cli.main import main
from bayplan.cli.objects import _apply_one
from bayplan.cli.output import CommandError
from bayplan.client.http_transport import HttpTransport
from bayplan.sim.local import LocalCluster, LocalOptions

NODE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"nodeSelektor": {"disk": "ssd"}, "containers": [{"name": "main", "image": "app:1"}]},
}
MEANT = "unknown field `spec.nodeSelektor`; did you mean `nodeSelector`?"


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}))
    return str(path)


def test_evaluate_refuses_a_misspelt_field(manifest: str) -> None:
    with pytest.raises(InputError, match="nodeSelektor") as refused:
        evaluate_files([manifest], [])

    assert MEANT in str(refused.value)


def test_evaluate_warns_or_ignores_where_that_is_wanted(manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate_files([manifest], [], validate="warn")[0].is_scheduled
    assert MEANT in capsys.readouterr().err

    assert evaluate_files([manifest], [], validate="ignore")[0].is_scheduled
    assert MEANT not in capsys.readouterr().err


def test_whatif_refuses_a_misspelt_field_before_it_asks(manifest: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing listens at the address: who is not refused is told so."""
    asked = ["whatif", "--server", "http://127.0.0.1:9", "-f", manifest]
    assert main(asked) == 2
    assert MEANT in capsys.readouterr().err

    assert main([*asked, "--validate", "ignore"]) == 2
    said = capsys.readouterr().err
    assert "does not answer" in said and MEANT not in said


async def test_apply_refuses_a_misspelt_field_and_says_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    async with LocalCluster(load_settings(None, []), LocalOptions(nodes=1, listen=False)) as local:
        cluster = ClusterClient(cast(HttpTransport, local.transport()), "default")
        with pytest.raises(CommandError) as refused:
            await _apply_one(cluster, copy.deepcopy(POD), "strict")
        assert "spec.nodeSelektor" in str(refused.value) and MEANT in refused.value.hint
        response = await local.transport().request("GET", "/api/v1/namespaces/default/pods/web")
        assert response.status == 404

        assert (await _apply_one(cluster, copy.deepcopy(POD), "warn"))[0] == "created"
        assert MEANT in capsys.readouterr().err
        assert (await _apply_one(cluster, copy.deepcopy(POD), "ignore"))[0] == "applied"
        assert capsys.readouterr().err == ""
