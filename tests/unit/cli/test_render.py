"""`bayplan render` and `bayplan doctor` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from bayplan.cli.main import main

EXAMPLES = Path(__file__).parents[3] / "examples" / "references"


def test_manifests_are_printed_as_documents(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "manifests", "--config", str(EXAMPLES / "node-crd/scheduler.yaml"), "-n", "sched"]) == 0

    captured = capsys.readouterr()
    kinds = [document["kind"] for document in yaml.safe_load_all(captured.out)]
    assert kinds[:3] == ["Namespace", "CustomResourceDefinition", "ServiceAccount"]
    assert "clientConnection.kubeconfig is left out" in captured.err


def test_a_second_scheduler_that_calls_itself_the_default_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    main(["render", "manifests", "--config", str(EXAMPLES / "timestamp/scheduler.yaml")])

    assert "a profile is called default-scheduler" in capsys.readouterr().err


def test_definitions_of_all_shipped_plugins_are_printed_without_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "crds"]) == 0

    names = [document["metadata"]["name"] for document in yaml.safe_load_all(capsys.readouterr().out)]
    assert "networkmetrics.network.example.com" in names


def test_chart_and_static_pod_are_written_into_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "chart", "--output", str(tmp_path / "chart")]) == 0
    assert main(["render", "static-pod", "--output", str(tmp_path / "static")]) == 0

    assert (tmp_path / "chart/Chart.yaml").is_file()
    assert "schedulerName: default-scheduler" in (tmp_path / "static/bayplan/config.yaml").read_text()
    assert "note" not in capsys.readouterr().err


def test_a_static_pod_without_a_default_profile_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(EXAMPLES / "block-all/scheduler.yaml")

    main(["render", "static-pod", "--output", str(tmp_path), "--config", config])

    assert "no profile is called default-scheduler" in capsys.readouterr().err


def test_an_unknown_plugin_is_refused_with_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text((EXAMPLES / "block-all/scheduler.yaml").read_text().replace("BlockAll", "BlockSome"))

    assert main(["render", "manifests", "--config", str(config)]) == 2
    assert "BlockSomeScheduler" in capsys.readouterr().err


def test_no_replicas_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["render", "manifests", "--replicas", "0"]) == 2


def test_the_doctor_says_what_is_wrong_with_a_configuration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofils: []\n")

    assert main(["doctor", "--config", str(config), "-o", "json"]) == 1

    [finding] = json.loads(capsys.readouterr().out)
    assert finding["level"] == "error"
    assert "profils" in finding["what"]


def test_the_doctor_wants_a_service_account_with_its_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--service-account", "bayplan"]) == 2
    assert "NAMESPACE/NAME" in capsys.readouterr().err


def test_definitions_of_other_projects_are_never_rendered_unless_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Applied over a wider schema, a derived one makes the API server drop fields of every object."""
    plugin = tmp_path / "watching.py"
    plugin.write_text(
        "from bayplan.framework import CustomResource, Plugin\n\n\n"
        "class Theirs(CustomResource, group='team.example.com', version='v1', plural='theirs'):\n"
        "    pass\n\n\n"
        "class Ours(CustomResource, group='team.example.com', version='v1', plural='ours', owned=True):\n"
        "    pass\n\n\n"
        "class Watching(Plugin):\n"
        "    watches = (Theirs, Ours)\n\n"
        "    def score(self, state, pod, node):\n"
        "        return 0\n"
    )

    def rendered(*words: str) -> tuple[list[str], str]:
        assert main(["render", *words, "--plugin", str(plugin)]) == 0
        captured = capsys.readouterr()
        documents = [each for each in yaml.safe_load_all(captured.out) if each["kind"] == "CustomResourceDefinition"]
        return [each["metadata"]["name"] for each in documents], captured.err

    for words in (["manifests"], ["crds"]):
        names, said = rendered(*words)
        assert names == ["ours.team.example.com"]
        assert "theirs.team.example.com: defined by other projects and left out" in said
    assert rendered("crds", "--all")[0] == ["ours.team.example.com", "theirs.team.example.com"]
    assert main(["render", "static-pod", "--output", str(tmp_path / "static"), "--plugin", str(plugin)]) == 0
    assert "theirs.team.example.com" not in (tmp_path / "static/cluster.yaml").read_text()
