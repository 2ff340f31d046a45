"""`bayplan new`: what it writes runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bayplan.app.settings import load_settings
from bayplan.cli.main import main
from bayplan.cli.new import package_files


def test_the_package_of_a_new_plugin_passes_its_own_tests(tmp_path: Path) -> None:
    folder = tmp_path / "score-by-disk"
    assert main(["new", "ScoreByDisk", "--output", str(folder)]) == 0

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "-p", "no:cacheprovider"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_its_configuration_and_plugin_load_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "made"
    main(["new", "license-fit", "--output", str(folder)])

    settings = load_settings(folder / "scheduler.yaml", [str(folder / "src/license_fit/__init__.py")])

    assert settings.profiles[0].scheduler_name == "license-fit"
    assert "LicenseFit" in settings.profiles[0].plugin_names
    assert settings.config.leader_election.resource_name == "license-fit"


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

    assert f"class {plugin}(Plugin):" in contents[f"src/{package}/__init__.py"]
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
