"""`bayplan new`: what it writes runs."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bayplan.app.settings import load_settings
from bayplan.cli.main import main
from bayplan.cli.new import package_files
from bayplan.framework.promises import Depends
from bayplan.framework.reading import reading_of


def test_the_package_of_a_new_plugin_passes_its_own_tests(tmp_path: Path) -> None:
    folder = tmp_path / "score-by-disk"
    assert main(["new", "ScoreByDisk", "--output", str(folder)]) == 0

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_its_configuration_and_plugin_load_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    main(["new", "license-fit", "--output", str(folder)])

    settings = load_settings(folder / "scheduler.yaml", [str(folder)])

    assert settings.profiles[0].scheduler_name == "license-fit"
    assert "LicenseFit" in settings.profiles[0].plugin_names
    assert settings.config.leader_election.resource_name == "license-fit"


def test_a_full_disk_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that the same command can be typed again."""
    whole = Path.write_text

    def write_some(path: Path, text: str, **options: str) -> int:
        if path.name == "plugin.py":
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(path, text, **options)

    monkeypatch.setattr(Path, "write_text", write_some)

    assert main(["new", "ScoreByDisk", "--output", str(tmp_path / "made")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert list((tmp_path / "made").iterdir()) == []


def test_the_home_of_nobody_is_a_folder_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert main(["new", "ScoreByDisk", "--output", "~nobody-at-all/made"]) == 0
    assert (tmp_path / "~nobody-at-all" / "made" / "pyproject.toml").is_file()


@pytest.mark.parametrize(
    ("name", "plugin", "package"),
    [
        ("ScoreByDisk", "ScoreByDisk", "score_by_disk"),
        ("score-by-disk", "ScoreByDisk", "score_by_disk"),
        ("GPUFit", "GPUFit", "gpu_fit"),
        ("a", "A", "a"),
    ],
)
def test_names_may_be_written_either_way(name: str, plugin: str, package: str) -> None:
    contents = package_files(name)

    assert f"class {plugin}(Plugin[{plugin}Args]):" in contents[f"src/{package}/plugin.py"]
    assert f'{plugin} = "{package}:{plugin}"' in contents["pyproject.toml"]
    assert yaml.safe_load(contents["scheduler.yaml"])["profiles"][0]["schedulerName"] == package.replace("_", "-")


@pytest.mark.parametrize("name", ["1st", "a/b", "../x", "", "class", "é"])
def test_names_that_cannot_be_modules_are_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", name]) == 2

    assert "error:" in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("keep")

    assert main(["new", "ScoreByDisk", "--output", str(tmp_path)]) == 2
    assert "is not empty" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_every_command_takes_the_package_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["new", "FolderFit", "--output", str(tmp_path / "fit")])
    monkeypatch.chdir(tmp_path / "fit")
    examples = Path(__file__).parents[3] / "examples"
    pod = tmp_path / "pod.yaml"
    pod.write_text((examples / "pod.yaml").read_text().replace("spec:", "spec:\n  schedulerName: folder-fit", 1))
    given = ["--config", "scheduler.yaml", "--plugin", "."]

    statuses = [
        main(["evaluate", "-f", str(examples / "cluster.yaml"), "--pod", str(pod), *given]),
        main(["plugin", "show", "."]),
        main(["render", "manifests", *given]),
        main(["render", "chart", *given, "--output", str(tmp_path / "chart")]),
        main(["render", "static-pod", *given, "--output", str(tmp_path / "static")]),
        main(["render", "image", "--plugin", "."]),
        main(["render", "crds", "--plugin", "."]),
        main(["run", *given, "--write-config-to", str(tmp_path / "effective.yaml")]),
    ]

    assert statuses == [0] * 8, capsys.readouterr().err
    assert "FROM bayplan:" in capsys.readouterr().out
    assert (tmp_path / "chart/files/folder_fit.zip").is_file()


def test_its_answers_are_kept_without_a_word_from_the_author(tmp_path: Path) -> None:
    main(["new", "KeptFit", "--output", str(tmp_path / "fit")])
    settings = load_settings(tmp_path / "fit/scheduler.yaml", [str(tmp_path / "fit")])

    readings = [reading_of(settings.registry.get("KeptFit"), method).depends for method in ("filter", "score")]

    assert readings == [Depends.NODE, Depends.NODE]


def test_a_checker_of_types_and_a_linter_have_no_complaints(tmp_path: Path) -> None:
    main(["new", "TypedFit", "--output", str(tmp_path / "fit")])

    for tool in (["mypy", "--strict", "src"], ["ruff", "check", "."]):
        done = subprocess.run(
            [sys.executable, "-m", *tool],
            cwd=tmp_path / "fit",
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
